/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One rate for each client address, in a table of fixed size: PEERS_ENTRIES buckets (GCRA,
 * see limit.h), shared by all workers without a lock. An address whose bucket is full again
 * needs no entry, so the table holds those that were busy within the last burst. When more
 * than PEERS_WAYS busy addresses fall into one set, the latest shares the bucket of another:
 * it may then get less than the rate, never more.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"

#define PEERS_ENTRIES 4096
#define PEERS_WAYS 8
#define PEERS_RATE_MAX UINT64_C(10000000)
#define PEERS_BURST_MAX UINT64_C(1000000)

struct peers_entry {
    _Atomic uint64_t key; /* keyed hash of the address; 0: never used */
    _Atomic uint64_t tat; /* when its bucket is full again */
};

struct peers {
    _Atomic uint64_t rate, burst; /* tokens a second, tokens; rate 0: no limit */
    _Atomic uint64_t shared;      /* times that a bucket was shared */
    struct peers_entry entries[PEERS_ENTRIES];
};

void peers_init(struct peers *p);
/* rate 0 lifts the limit; burst 0 means limit_default_burst. Tokens stay, as with limit_set. One
 * call at a time. */
void peers_set(struct peers *p, uint64_t rate, uint64_t burst, nsec_t now);
static inline bool
peers_is_set(const struct peers *p)
{
    return atomic_load_explicit(&p->rate, memory_order_relaxed) != 0;
}
/* In which a bucket fills; 0: no limit. */
static inline nsec_t
peers_burst_time(const struct peers *p)
{
    uint64_t rate = atomic_load_explicit(&p->rate, memory_order_relaxed);
    return rate != 0 ? atomic_load_explicit(&p->burst, memory_order_relaxed) *
                           NSEC_PER_SEC / rate
                     : 0;
}
/* n tokens of the address with this key (not 0); as limit_take_n. */
bool peers_take(struct peers *p, uint64_t key, uint32_t n, nsec_t now, nsec_t *retry_at);
/* Gives n tokens back, right after peers_take. */
void peers_refund(struct peers *p, uint64_t key, uint32_t n);
/* Takes n more tokens, there or not. */
void peers_owe(struct peers *p, uint64_t key, uint64_t n, nsec_t now);
