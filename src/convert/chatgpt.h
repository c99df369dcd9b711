/* ChatGPT's data export. */
#ifndef CONVERT_CHATGPT_H
#define CONVERT_CHATGPT_H

#include "convert/convert.h"

int chatgpt_write(export *ex);

#endif
