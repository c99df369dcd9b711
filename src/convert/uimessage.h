/* UI messages of the AI SDK: writing them. */
#ifndef CONVERT_UIMESSAGE_H
#define CONVERT_UIMESSAGE_H

#include "convert/convert.h"

int uimessage_write(export *ex);

#endif
