/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/limit.h"

#include "base/must.h"

#define BURST_MIN UINT64_C(16)
#define BURST_PER_SEC UINT64_C(500)  /* default burst: 2 ms worth of tokens */
#define LEASE_PER_SEC UINT64_C(5000) /* lease: 200 us worth of tokens, of all workers */
#define LEASE_MAX UINT64_C(64)
#define CHANGE_RETRY                                                                     \
    (10 * NSEC_PER_USEC) /* patience while another thread is in limit_set */

/* What one decision is based on: all values of the same setting. */
struct setting {
    uint64_t epoch;
    uint64_t rate;
    uint64_t burst;
    uint64_t tat;
};

/* Sequence lock without a fence (TSan knows none): the writer makes epoch odd, then
 * stores the values with release. A thread that acquires one of the new values therefore
 * sees an epoch that has moved on when it looks again. False while a change is going
 * on. */
static bool
setting_read(struct limit *l, struct setting *s)
{
    s->epoch = atomic_load_explicit(&l->epoch, memory_order_acquire);
    s->rate = atomic_load_explicit(&l->rate, memory_order_acquire);
    s->burst = atomic_load_explicit(&l->burst, memory_order_acquire);
    s->tat = atomic_load_explicit(&l->tat, memory_order_acquire);
    return s->epoch % 2 == 0 &&
           atomic_load_explicit(&l->epoch, memory_order_relaxed) == s->epoch;
}

/* Time that `burst` tokens need to arrive, rounded up so that one token always fits. */
static uint64_t
burst_ns(uint64_t rate, uint64_t burst)
{
    return (burst * NSEC_PER_SEC + rate - 1) / rate;
}

/* What is in the bucket, as time: 0 (empty) to burst_ns (full). */
static uint64_t
level_ns(const struct setting *s, nsec_t now)
{
    uint64_t full = burst_ns(s->rate, s->burst);
    uint64_t debt = s->tat > now ? s->tat - now : 0;
    return debt < full ? full - debt : 0;
}

/* Release: a reader that sees the new arrival time sees what was stored before it.
 * Fails also when another worker was first. */
static bool
tat_move(struct limit *l, uint64_t from, uint64_t to)
{
    if (atomic_compare_exchange_strong_explicit(&l->tat, &from, to, memory_order_acq_rel,
                                                memory_order_relaxed)) {
        return true;
    }
    atomic_fetch_add_explicit(&l->cas_retries, 1, memory_order_relaxed);
    return false;
}

void
limit_init(struct limit *l, unsigned workers)
{
    must(workers > 0);
    atomic_init(&l->tat, 0);
    atomic_init(&l->rate, 0);
    atomic_init(&l->burst, 0);
    atomic_init(&l->epoch, 2); /* a zeroed lease belongs to no setting */
    atomic_init(&l->cas_retries, 0);
    atomic_init(&l->reserved, 0);
    l->workers = workers;
    PTHREAD_OK(pthread_mutex_init(&l->set_lock, NULL));
}

void
limit_fini(struct limit *l)
{
    PTHREAD_OK(pthread_mutex_destroy(&l->set_lock));
}

uint64_t
limit_default_burst(uint64_t rate)
{
    uint64_t burst = rate / BURST_PER_SEC;
    if (burst < BURST_MIN) {
        return BURST_MIN;
    }
    return burst > LIMIT_BURST_MAX ? LIMIT_BURST_MAX : burst;
}

nsec_t
limit_time(const struct limit *l, uint64_t tokens)
{
    uint64_t rate = atomic_load_explicit(&l->rate, memory_order_relaxed);
    return rate > 0 ? burst_ns(rate, tokens) : 0;
}

nsec_t
limit_burst_time(const struct limit *l)
{
    return limit_time(l, atomic_load_explicit(&l->burst, memory_order_relaxed));
}

uint64_t
limit_lease_size(uint64_t rate, unsigned workers)
{
    uint64_t size = rate / LEASE_PER_SEC / workers;
    if (size < 1) {
        return 1;
    }
    return size > LEASE_MAX ? LEASE_MAX : size;
}

double
limit_tokens(const struct limit *l, nsec_t now)
{
    uint64_t rate = atomic_load_explicit(&l->rate, memory_order_relaxed);
    uint64_t burst = atomic_load_explicit(&l->burst, memory_order_relaxed);
    nsec_t full_at = atomic_load_explicit(&l->tat, memory_order_relaxed);
    double missing =
        full_at > now ? (double)(full_at - now) * (double)rate / (double)NSEC_PER_SEC : 0;
    return rate > 0 ? (double)burst - missing : 0;
}

/* What is owed beyond an empty bucket, in time. It does not grow with a lower rate: a
 * large request under a high one does not block the others for minutes. */
static uint64_t
owed_ns(const struct setting *old, uint64_t rate, nsec_t now)
{
    uint64_t full = burst_ns(old->rate, old->burst);
    uint64_t debt = old->tat > now ? old->tat - now : 0;
    uint64_t owed = debt > full ? debt - full : 0;
    return rate > old->rate ? (uint64_t)((double)owed * (double)old->rate / (double)rate)
                            : owed;
}

/* The arrival time that leaves as many tokens in the bucket under the new setting as there
 * were under the old one (at most the new burst), or the debt: a change is never worth a
 * burst. */
static uint64_t
tat_convert(const struct setting *old, uint64_t reserved, uint64_t rate, uint64_t burst,
            nsec_t now)
{
    if (old->rate == 0) {
        return now;
    }
    uint64_t most = UINT64_MAX / NSEC_PER_SEC;
    uint64_t back = (reserved < most ? reserved : most) * NSEC_PER_SEC / old->rate;
    struct setting kept = *old;
    kept.tat = old->tat > back ? old->tat - back : 0;
    /* Parts of a token count, or changing often would starve: unit is 1e-9 tokens. */
    uint64_t full = burst * NSEC_PER_SEC;
    uint64_t level = level_ns(&kept, now) * old->rate;
    uint64_t missing = level < full ? full - level : 0;
    uint64_t debt_ns = (missing + rate - 1) / rate;
    uint64_t owed = owed_ns(&kept, rate, now);
    uint64_t room = UINT64_MAX - now;
    return debt_ns < room && owed < room - debt_ns ? now + debt_ns + owed : UINT64_MAX;
}

void
limit_set(struct limit *l, uint64_t rate, uint64_t burst, nsec_t now)
{
    must(rate <= LIMIT_RATE_MAX && burst <= LIMIT_BURST_MAX);
    if (burst == 0) {
        burst = limit_default_burst(rate);
    }
    PTHREAD_OK(pthread_mutex_lock(&l->set_lock));
    struct setting old = {
        .epoch = atomic_load_explicit(&l->epoch, memory_order_relaxed),
        .rate = atomic_load_explicit(&l->rate, memory_order_relaxed),
        .burst = atomic_load_explicit(&l->burst, memory_order_relaxed),
    };
    if (old.rate != rate || old.burst != burst) {
        atomic_store_explicit(&l->epoch, old.epoch + 1, memory_order_release);
        int64_t held = atomic_load_explicit(&l->reserved, memory_order_relaxed);
        uint64_t reserved = held > 0 ? (uint64_t)held : 0;
        uint64_t tat;
        do {
            old.tat = atomic_load_explicit(&l->tat, memory_order_acquire);
            tat = rate == 0 ? now : tat_convert(&old, reserved, rate, burst, now);
            if (tat == old.tat) {
                tat++; /* a worker that still computes with the old rate must notice */
            }
        } while (!tat_move(l, old.tat, tat));
        atomic_store_explicit(&l->reserved, 0, memory_order_relaxed);
        atomic_store_explicit(&l->burst, burst, memory_order_release);
        atomic_store_explicit(&l->rate, rate, memory_order_release);
        atomic_store_explicit(&l->epoch, old.epoch + 2, memory_order_release);
    }
    PTHREAD_OK(pthread_mutex_unlock(&l->set_lock));
}

/* Reads the setting for a decision at `now`; the carry begins anew with each setting. Prices
 * are rarely whole nanoseconds: lease->carry keeps the part not charged yet. It starts just
 * short of a nanosecond, so a worker's charges add up to the exact price, rounded up once:
 * never cheaper than the rate, and not dearer at rates where a token lasts few nanoseconds. */
static bool
setting_open(struct limit *l, struct limit_lease *lease, nsec_t now, struct setting *s,
             nsec_t *retry_at)
{
    if (!setting_read(l, s)) {
        *retry_at = now < UINT64_MAX - CHANGE_RETRY ? now + CHANGE_RETRY : UINT64_MAX;
        return false;
    }
    if (lease->epoch != s->epoch) {
        lease->epoch = s->epoch;
        lease->tokens = 0;
        lease->carry = s->rate - 1; /* without a limit nothing is charged */
    }
    return true;
}

static uint64_t
price_of(const struct setting *s, const struct limit_lease *lease, uint64_t n)
{
    return (n * NSEC_PER_SEC + lease->carry) / s->rate;
}

/* Charges n tokens behind what is charged already. False: another was first, or time ends. */
static bool
charge(struct limit *l, struct limit_lease *lease, const struct setting *s, uint64_t n,
       nsec_t now)
{
    uint64_t start = s->tat > now ? s->tat : now;
    uint64_t price = price_of(s, lease, n);
    if (start > UINT64_MAX - price || !tat_move(l, s->tat, start + price)) {
        return false;
    }
    lease->carry = (n * NSEC_PER_SEC + lease->carry) % s->rate;
    return true;
}

/* When `need` tokens will be there, if no other request comes first. */
static nsec_t
time_of(const struct setting *s, const struct limit_lease *lease, uint64_t need,
        nsec_t now)
{
    uint64_t start = s->tat > now ? s->tat : now;
    uint64_t price = price_of(s, lease, need);
    uint64_t full = burst_ns(s->rate, s->burst);
    if (start > UINT64_MAX - price) {
        return UINT64_MAX;
    }
    /* Rounding may make one token dearer than the bucket that holds one. */
    return start + price > full && start + price - full > now ? start + price - full
                                                              : now;
}

static bool
is_end_of_time(const struct setting *s, const struct limit_lease *lease, uint64_t n,
               nsec_t now)
{
    uint64_t start = s->tat > now ? s->tat : now;
    return start > UINT64_MAX - price_of(s, lease, n);
}

/* Takes a new lease and its first token. */
static bool
lease_refill(struct limit *l, struct limit_lease *lease, nsec_t now, nsec_t *retry_at)
{
    for (;;) {
        struct setting s;
        if (!setting_open(l, lease, now, &s, retry_at)) {
            return false;
        }
        if (s.rate == 0) {
            return true;
        }
        uint64_t level = level_ns(&s, now);
        uint64_t size = limit_lease_size(s.rate, l->workers);
        uint64_t there = ((level + 1) * s.rate - 1 - lease->carry) / NSEC_PER_SEC;
        if (there == 0) {
            *retry_at = time_of(&s, lease, 1, now);
            return false;
        }
        uint64_t n = there < size ? there : size;
        if (is_end_of_time(&s, lease, n, now)) {
            *retry_at = UINT64_MAX;
            return false;
        }
        if (charge(l, lease, &s, n, now)) {
            lease->tokens = n - 1;
            lease->taken_at = now;
            lease->is_scarce = there - n < s.burst / 2;
            return true;
        }
    }
}

void
limit_return(struct limit *l, struct limit_lease *lease, nsec_t now)
{
    uint64_t tokens = lease->tokens;
    lease->tokens = 0;
    if (tokens > 0 && atomic_load_explicit(&l->tat, memory_order_relaxed) > now) {
        limit_refund(l, lease, tokens); /* else the bucket is full without them */
    }
}

bool
limit_take(struct limit *l, struct limit_lease *lease, nsec_t now, nsec_t *retry_at)
{
    if (likely(atomic_load_explicit(&l->rate, memory_order_relaxed) == 0)) {
        return true;
    }
    /* A lease of the future is as good as one of now: the clock of its taker was
     * ahead. */
    if (limit_take_leased(l, lease, now < lease->taken_at ? lease->taken_at : now)) {
        return true;
    }
    limit_return(l, lease, now);
    return lease_refill(l, lease, now, retry_at);
}

/* As many of n as the bucket can hold. */
static uint64_t
needed(const struct setting *s, uint64_t n)
{
    return n < s->burst ? n : s->burst;
}

bool
limit_take_n(struct limit *l, struct limit_lease *lease, uint32_t n, nsec_t now,
             nsec_t *retry_at)
{
    if (likely(n == 1)) {
        return limit_take(l, lease, now, retry_at);
    }
    must(n > 0);
    limit_return(l, lease, now);
    for (;;) {
        struct setting s;
        if (!setting_open(l, lease, now, &s, retry_at)) {
            return false;
        }
        if (s.rate == 0) {
            return true;
        }
        nsec_t at = time_of(&s, lease, needed(&s, n), now);
        if (at > now || is_end_of_time(&s, lease, n, now)) {
            *retry_at = at > now ? at : UINT64_MAX;
            return false;
        }
        if (charge(l, lease, &s, n, now)) {
            return true;
        }
    }
}

bool
limit_reserve(struct limit *l, struct limit_lease *lease, uint32_t n, nsec_t now,
              nsec_t *due)
{
    must(n > 0);
    for (;;) {
        struct setting s;
        if (!setting_open(l, lease, now, &s, due)) {
            return false;
        }
        if (s.rate == 0) {
            atomic_fetch_add_explicit(&l->reserved, n, memory_order_relaxed);
            *due = now;
            return true;
        }
        if (is_end_of_time(&s, lease, n, now)) {
            *due = UINT64_MAX;
            return false;
        }
        nsec_t at = time_of(&s, lease, needed(&s, n), now);
        if (charge(l, lease, &s, n, now)) {
            atomic_fetch_add_explicit(&l->reserved, n, memory_order_relaxed);
            *due = at;
            return true;
        }
    }
}

void
limit_redeem(struct limit *l, uint64_t epoch, int64_t n)
{
    if (limit_epoch(l) == epoch) {
        atomic_fetch_sub_explicit(&l->reserved, n, memory_order_relaxed);
    }
}

void
limit_refund(struct limit *l, struct limit_lease *lease, uint64_t n)
{
    struct setting s;
    while (n > 0 && setting_read(l, &s) && s.epoch == lease->epoch && s.rate != 0) {
        /* The carry pays for rounding up: it is below the price of one token. */
        uint64_t price_num = n * NSEC_PER_SEC;
        uint64_t refund = (price_num - lease->carry + s.rate - 1) / s.rate;
        if (tat_move(l, s.tat, s.tat > refund ? s.tat - refund : 0)) {
            lease->carry = lease->carry + refund * s.rate - price_num;
            return;
        }
    }
}

void
limit_owe(struct limit *l, struct limit_lease *lease, uint64_t n, nsec_t now)
{
    struct setting s;
    nsec_t ignored;
    uint64_t held = lease->epoch == limit_epoch(l) ? lease->tokens : 0;
    uint64_t in_hand = n < held ? n : held;
    lease->tokens -= in_hand;
    n -= in_hand;
    while (n > 0 && setting_open(l, lease, now, &s, &ignored) && s.rate != 0 &&
           !is_end_of_time(&s, lease, n, now) && !charge(l, lease, &s, n, now)) {
    }
}
