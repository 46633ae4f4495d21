/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/wire/md5.h"
#include "proto/client.h"

#define POINTS 100         /* of a server, law KETAMA */
#define WEIGHTED_HASHES 40 /* of a server, law KETAMA_WEIGHTED */
#define POINTS_A_HASH 4    /* each 32 bits of an MD5 sum */
#define NAME_MAX_BYTES (TARGET_NAME_MAX + 32)
#define DEFAULT_PORT 11211

static const char *const names[SHARD_LAWS] = {
    [SHARD_NONE] = "none",     [SHARD_MODULO] = "modulo",
    [SHARD_KETAMA] = "ketama", [SHARD_KETAMA_WEIGHTED] = "ketama-weighted",
    [SHARD_JUMP] = "jump",
};

bool
shard_find(const char *name, enum shard_law *found)
{
    for (unsigned i = 0; i < SHARD_LAWS; i++) {
        if (strcmp(name, names[i]) == 0) {
            *found = (enum shard_law)i;
            return true;
        }
    }
    return false;
}

const char *
shard_name(enum shard_law law)
{
    must(law < SHARD_LAWS);
    return names[law];
}

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

static uint64_t
fnv_1a(const char *key, size_t len)
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

bool
shard_init(struct shard *s, enum shard_law law, const struct target *targets,
           unsigned targets_len)
{
    must(targets_len > 0 && law < SHARD_LAWS);
    *s = (struct shard){.law = law, .servers = targets_len};
    if (law != SHARD_KETAMA && law != SHARD_KETAMA_WEIGHTED) {
        return true;
    }
    unsigned each = law == SHARD_KETAMA ? POINTS : WEIGHTED_HASHES * POINTS_A_HASH;
    s->points = calloc((size_t)targets_len * each, sizeof *s->points);
    if (s->points == NULL) {
        return false;
    }
    for (unsigned i = 0; i < targets_len; i++) {
        add_points(s, &targets[i], i);
    }
    qsort(s->points, s->points_len, sizeof *s->points, compare_points);
    return true;
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
        return shard_jump(fnv_1a(key, len), s->servers);
    default:
        unreachable();
    }
}
