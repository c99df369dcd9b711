/* Hits of a search as people read them. */
#ifndef CLI_HIT_H
#define CLI_HIT_H

#include "view.h"

/* The session of a hit, in a part of a line: its name, its id if that is wanted, its directory. */
void hit_session(const cli *c, buf *out, const sheaf_hit *hit, bool id);

/* Who said it and when, in a part of a line. */
void hit_who(const cli *c, buf *out, const sheaf_hit *hit);

/* What was said there with the matches brought out: so many lines at most, each ended. */
void hit_snippet(const cli *c, buf *out, const sheaf_hit *hit, size_t indent, unsigned lines);

#endif
