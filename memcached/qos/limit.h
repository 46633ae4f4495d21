/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Rate limit as the generic cell rate algorithm (ITU-T I.371, virtual scheduling): one 64-bit
 * "theoretical arrival time" (TAT) shared by all workers, from which each leases a few tokens
 * at a time. Pure: every function takes the time; nothing sleeps.
 *
 * Conformance, for any interval of length T: at most burst + rate * T tokens are given, plus
 * what the workers' leases hold (limit_lease_size each).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"

#define LIMIT_RATE_MAX UINT64_C(1000000000) /* tokens a second */
#define LIMIT_BURST_MAX UINT64_C(1000000)

/* Shared by all workers; limit_set may be called by any thread at any time. */
struct limit {
    _Atomic uint64_t tat;   /* ns, when the bucket would be full again */
    _Atomic uint64_t rate;  /* tokens a second; 0: no limit */
    _Atomic uint64_t burst; /* tokens */
    _Atomic uint64_t epoch; /* odd while limit_set works; leases of another are void */
    unsigned workers;
    _Atomic uint64_t cas_retries;
    /* Tokens reserved under this setting whose time has not been used yet. A change gives them
     * back. A worker that is just reserving or redeeming may be missed: relaxed. */
    _Atomic int64_t reserved;
    pthread_mutex_t set_lock; /* one limit_set at a time; limit_take never takes it */
};

/* One per worker; that worker's thread only. Zero-initialised. */
struct limit_lease {
    uint64_t tokens;
    uint64_t epoch;
    uint64_t carry; /* price not charged yet, in 1/rate ns; less than a nanosecond */
    nsec_t taken_at;
    bool
        is_scarce; /* less than half of the bucket was left: others may want what is not used */
};

void limit_init(struct limit *l, unsigned workers);
void limit_fini(struct limit *l);

/* rate 0 lifts the limit. burst 0 means the default: max(16, rate x 2 ms). rate must be
 * <= LIMIT_RATE_MAX and burst <= LIMIT_BURST_MAX. Tokens in the bucket stay, and those
 * that have arrived for those that had reserved them go back into it (up to the new
 * burst); lifting the limit and setting it again starts with a full one. Workers that
 * sleep until an earlier retry_at must be woken by the caller, after this returns. */
void limit_set(struct limit *l, uint64_t rate, uint64_t burst, nsec_t now);
uint64_t limit_default_burst(uint64_t rate);
/* How long the bucket takes to fill: sleeping longer loses rate. 0 without a limit. */
nsec_t limit_burst_time(const struct limit *l);
/* In which so many tokens arrive; likewise. */
nsec_t limit_time(const struct limit *l, uint64_t tokens);
/* How many tokens there are, besides those that workers have leased; below 0: more are reserved
 * than there are. 0 without a limit. For statistics: other threads go on. */
double limit_tokens(const struct limit *l, nsec_t now);
/* Tokens a worker leases at once: clamp(rate x 200 us / workers, 1, 64). */
uint64_t limit_lease_size(uint64_t rate, unsigned workers);

/* True: one token is taken. False: none before *retry_at (> now). */
bool limit_take(struct limit *l, struct limit_lease *lease, nsec_t now, nsec_t *retry_at);

/* The same for n tokens at once, n > 0: all of them, or a full bucket when it holds fewer; the
 * rest is then owed, and the next one waits for it. */
bool limit_take_n(struct limit *l, struct limit_lease *lease, uint32_t n, nsec_t now,
                  nsec_t *retry_at);
/* Takes n tokens that are still to come, behind all that have reserved before: *due is
 * when they are there. False while the setting changes: again at *due. */
bool limit_reserve(struct limit *l, struct limit_lease *lease, uint32_t n, nsec_t now,
                   nsec_t *due);
/* n tokens that were reserved under `epoch` are so no more: used, refunded, or void. Below 0:
 * more are, which have been charged already. */
void limit_redeem(struct limit *l, uint64_t epoch, int64_t n);
/* Gives back what was taken or reserved under lease->epoch; a no-op under another. */
void limit_refund(struct limit *l, struct limit_lease *lease, uint64_t n);
/* Takes n more tokens, there or not. */
void limit_owe(struct limit *l, struct limit_lease *lease, uint64_t n, nsec_t now);
/* Changes whenever limit_set does: what was reserved before is void. */
static inline uint64_t
limit_epoch(const struct limit *l)
{
    return atomic_load_explicit(&l->epoch, memory_order_relaxed);
}
static inline bool
limit_is_set(const struct limit *l)
{
    return atomic_load_explicit(&l->rate, memory_order_relaxed) != 0;
}

/* Gives the lease's unused tokens back. limit_take itself returns one of LIMIT_LEASE_AGE. */
#define LIMIT_LEASE_AGE NSEC_PER_MSEC
void limit_return(struct limit *l, struct limit_lease *lease, nsec_t now);
/* The same when the worker goes idle. While there are plenty they are not needed, and a
 * worker that goes idle behind each request need not take a lease for each. */
static inline void
limit_rest(struct limit *l, struct limit_lease *lease, nsec_t now)
{
    if (lease->is_scarce && lease->tokens > 0) {
        limit_return(l, lease, now);
    }
}

/* Tokens of the lease, while they count. */
static inline uint64_t
limit_leased(const struct limit *l, const struct limit_lease *lease, nsec_t now)
{
    bool counts = lease->epoch == limit_epoch(l) &&
                  now - lease->taken_at < LIMIT_LEASE_AGE; /* and not before that */
    return counts ? lease->tokens : 0;
}

/* One of them; false: limit_take is to be asked. */
static inline bool
limit_take_leased(const struct limit *l, struct limit_lease *lease, nsec_t now)
{
    if (limit_leased(l, lease, now) == 0) {
        return false;
    }
    lease->tokens--;
    return true;
}
