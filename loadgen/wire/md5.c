/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/md5.h"

#include <endian.h>
#include <string.h>

#include "base/must.h"

#define BLOCK 64
#define ROUNDS 64
#define LENGTH_BYTES 8

/* 2^32 |sin(i + 1)| */
static const uint32_t sines[ROUNDS] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
    0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
    0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
    0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
    0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
    0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
    0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
    0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
    0xeb86d391,
};

static const unsigned shifts[4][4] = {
    {7, 12, 17, 22},
    {5, 9, 14, 20},
    {4, 11, 16, 23},
    {6, 10, 15, 21},
};

static uint32_t
rotate(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* Takes in one block of 16 little-endian numbers. */
static void
add_block(uint32_t sum[4], const uint32_t block[BLOCK / 4])
{
    uint32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t f;
        unsigned from;
        switch (i / 16) {
        case 0:
            f = (b & c) | (~b & d);
            from = i;
            break;
        case 1:
            f = (d & b) | (~d & c);
            from = 5 * i + 1;
            break;
        case 2:
            f = b ^ c ^ d;
            from = 3 * i + 5;
            break;
        default:
            f = c ^ (b | ~d);
            from = 7 * i;
            break;
        }
        f += a + sines[i] + le32toh(block[from % 16]);
        a = d;
        d = c;
        c = b;
        b += rotate(f, shifts[i / 16][i % 4]);
    }
    sum[0] += a;
    sum[1] += b;
    sum[2] += c;
    sum[3] += d;
}

void
md5_sum(const char *text, size_t len, uint32_t sum[4])
{
    uint32_t blocks[(MD5_TEXT_MAX + 1 + LENGTH_BYTES) / 4] = {0};
    must(len <= MD5_TEXT_MAX);
    size_t count = (len + 1 + LENGTH_BYTES + BLOCK - 1) / BLOCK;
    memcpy(blocks, text, len);
    ((unsigned char *)blocks)[len] = 0x80;
    blocks[count * (BLOCK / 4) - 2] = htole32((uint32_t)(len * 8));
    sum[0] = 0x67452301;
    sum[1] = 0xefcdab89;
    sum[2] = 0x98badcfe;
    sum[3] = 0x10325476;
    for (size_t i = 0; i < count; i++) {
        add_block(sum, blocks + i * (BLOCK / 4));
    }
}
