/* CRC-32C (Castagnoli), by the processor's instruction where there is one. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Start with 0; feed a previous result to go on. crc32c(0,"123456789",9) == 0xE3069283. */
uint32_t crc32c(uint32_t crc, const void *ptr, size_t len);

#endif
