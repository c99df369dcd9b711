/*
 * A session as one HTML page that needs nothing else: no network, no server, no script but its own.
 *
 * Nothing in a transcript is trusted. Every byte of it goes through html_text() or html_attr();
 * the page's policy forbids all scripts and styles but the two that are part of it, and lets it
 * load nothing.
 */
#ifndef CLI_HTML_H
#define CLI_HTML_H

#include "find.h"

/*
 * Writes the page. Memory grows with the number of entries, not with what they hold.
 * @param at     the path that is shown first
 * @param write  takes the bytes in order; anything but 0 ends it with that code
 * @return 0 or an error code, with c->err set
 */
int html_export(cli *c, sheaf_session *session, const place *at, sheaf_write_fn write, void *ctx);

#endif
