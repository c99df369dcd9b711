/* Between the parts of the pi converter. */
#ifndef CONVERT_PI_H
#define CONVERT_PI_H

#include "convert/convert.h"

int pi_write(export *ex);
int pi_place(export *ex);

#endif
