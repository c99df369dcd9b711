/* Dive's session files. */
#ifndef CONVERT_DIVE_H
#define CONVERT_DIVE_H

#include "convert/convert.h"

int dive_write(export *ex);

#endif
