/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which of several servers a key belongs to, as clients decide it. Constant once made; any
 * thread. Pure.
 */
#pragma once

#include "loadgen/wire/target.h"

/* ---- md5 --------------------------------------------------------------------------- */

/* MD5 (RFC 1321) of short texts, for rings of servers and nothing that has to be safe: no
 * library is there in every build, and those that may be allocate memory. Pure. */
#define MD5_TEXT_MAX 311 /* bytes: five blocks less what ends them */

/* Of at most MD5_TEXT_MAX bytes: the sum as four little-endian numbers. */
void md5_sum(const char *text, size_t len, uint32_t sum[4]);

/* ---- shard ------------------------------------------------------------------------- */

enum shard_law {
    SHARD_NONE, /* every key to every server */
    /* libmemcached's default: one-at-a-time hash (Jenkins), remainder. */
    SHARD_MODULO,
    /* MEMCACHED_BEHAVIOR_KETAMA: 100 points a server on a ring, by the same hash. */
    SHARD_KETAMA,
    /* MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, all weights 1, which libketama's other clients
     * agree with: 160 points a server, by MD5. */
    SHARD_KETAMA_WEIGHTED,
    /* Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm" (2014), of the
     * key's FNV-1a hash of 64 bits. */
    SHARD_JUMP,
    SHARD_LAWS,
};

struct shard_point {
    uint32_t value;
    unsigned server;
};

struct shard {
    enum shard_law law;
    unsigned servers;
    struct shard_point *points; /* of a ring, rising */
    unsigned points_len;
};

extern const char *const shard_names[SHARD_LAWS];

/* For these servers in this order; at least one. */
void shard_init(struct shard *s, enum shard_law law, const struct target *targets,
                unsigned targets_len);
void shard_fini(struct shard *s);

/* FNV-1a. */
uint64_t shard_fnv(const char *key, size_t len);
/* Jump consistent hash: a number below `servers`. */
unsigned shard_jump(uint64_t key, unsigned servers);

/* The number of the server that a key of at most CLIENT_KEY_MAX bytes belongs to; not for
 * SHARD_NONE. */
unsigned shard_of(const struct shard *s, const char *key, size_t len);
