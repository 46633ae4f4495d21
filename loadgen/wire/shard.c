/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/shard.h"

#include <endian.h>

#include "base/alloc.h"
#include "base/must.h"
#include "proto/client.h"

#define POINTS 100         /* of a server, law KETAMA */
#define WEIGHTED_HASHES 40 /* of a server, law KETAMA_WEIGHTED */
#define POINTS_A_HASH 4    /* each 32 bits of an MD5 sum */
#define NAME_MAX_BYTES (TARGET_NAME_MAX + 32)
#define DEFAULT_PORT 11211

const char *const shard_names[SHARD_LAWS] = {
    [SHARD_NONE] = "none",     [SHARD_MODULO] = "modulo",
    [SHARD_KETAMA] = "ketama", [SHARD_KETAMA_WEIGHTED] = "ketama-weighted",
    [SHARD_JUMP] = "jump",
};

/* ---- hashes ------------------------------------------------------------------------ */

/* libmemcached takes bytes above 127 for negative numbers. */
static uint32_t
one_at_a_time(const char *key, size_t len)
{
    uint32_t h = 0;
    for (size_t i = 0; i < len; i++) {
        h += (uint32_t)(signed char)key[i];
        h += h << 10;
        h ^= h >> 6;
    }
    h += h << 3;
    h ^= h >> 11;
    h += h << 15;
    return h;
}

uint64_t
shard_fnv(const char *key, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}

unsigned
shard_jump(uint64_t key, unsigned servers)
{
    int64_t server = -1, next = 0;
    while (next < (int64_t)servers) {
        server = next;
        key = key * UINT64_C(2862933555777941757) + 1;
        next = (int64_t)((double)(server + 1) *
                         ((double)(INT64_C(1) << 31) / (double)((key >> 33) + 1)));
    }
    return (unsigned)server;
}

/* ---- the ring ---------------------------------------------------------------------- */

static int
compare_points(const void *a, const void *b)
{
    const struct shard_point *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value)
                                : (x->server > y->server) - (x->server < y->server);
}

/* The port is left out of the name when it is the usual one. */
static size_t
point_name(char *name, const struct target *t, unsigned number)
{
    int n = t->port == DEFAULT_PORT
                ? snprintf(name, NAME_MAX_BYTES, "%s-%u", t->host, number)
                : snprintf(name, NAME_MAX_BYTES, "%s:%u-%u", t->host, t->port, number);
    return (size_t)n;
}

static void
add_point(struct shard *s, uint32_t value, unsigned server)
{
    s->points[s->points_len++] = (struct shard_point){value, server};
}

static void
add_points(struct shard *s, const struct target *t, unsigned server)
{
    char name[NAME_MAX_BYTES];
    bool is_weighted = s->law == SHARD_KETAMA_WEIGHTED;
    for (unsigned i = 0; i < (is_weighted ? WEIGHTED_HASHES : POINTS); i++) {
        size_t len = point_name(name, t, i);
        if (!is_weighted) {
            add_point(s, one_at_a_time(name, len), server);
            continue;
        }
        uint32_t sum[POINTS_A_HASH];
        md5_sum(name, len, sum);
        for (unsigned k = 0; k < POINTS_A_HASH; k++) {
            add_point(s, sum[k], server);
        }
    }
}

void
shard_init(struct shard *s, enum shard_law law, const struct target *targets,
           unsigned targets_len)
{
    must(targets_len > 0 && law < SHARD_LAWS);
    *s = (struct shard){.law = law, .servers = targets_len};
    if (law != SHARD_KETAMA && law != SHARD_KETAMA_WEIGHTED) {
        return;
    }
    unsigned each = law == SHARD_KETAMA ? POINTS : WEIGHTED_HASHES * POINTS_A_HASH;
    s->points = alloc_zeroed((size_t)targets_len * each, sizeof *s->points);
    for (unsigned i = 0; i < targets_len; i++) {
        add_points(s, &targets[i], i);
    }
    qsort(s->points, s->points_len, sizeof *s->points, compare_points);
}

void
shard_fini(struct shard *s)
{
    free(s->points);
    s->points = NULL;
}

/* The first point that is not before the value, around the ring. */
static unsigned
find_point(const struct shard *s, uint32_t value)
{
    unsigned low = 0, high = s->points_len;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (s->points[middle].value < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return s->points[low == s->points_len ? 0 : low].server;
}

unsigned
shard_of(const struct shard *s, const char *key, size_t len)
{
    uint32_t sum[POINTS_A_HASH];
    must(len <= CLIENT_KEY_MAX);
    switch (s->law) {
    case SHARD_MODULO:
        return one_at_a_time(key, len) % s->servers;
    case SHARD_KETAMA:
        return find_point(s, one_at_a_time(key, len));
    case SHARD_KETAMA_WEIGHTED:
        md5_sum(key, len, sum);
        return find_point(s, sum[0]);
    case SHARD_JUMP:
        return shard_jump(shard_fnv(key, len), s->servers);
    default:
        unreachable();
    }
}

/* ---- md5 --------------------------------------------------------------------------- */

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
