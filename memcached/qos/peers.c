/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/peers.h"

#include <assert.h>

#include "base/must.h"
#include "qos/limit.h"

#define SETS (PEERS_ENTRIES / PEERS_WAYS)

static_assert((SETS & (SETS - 1)) == 0, "the set is taken from bits of the key");

void
peers_init(struct peers *p)
{
    atomic_init(&p->rate, 0);
    atomic_init(&p->burst, 0);
    atomic_init(&p->shared, 0);
    for (unsigned i = 0; i < PEERS_ENTRIES; i++) {
        atomic_init(&p->entries[i].key, 0);
        atomic_init(&p->entries[i].tat, 0);
    }
}

/* The arrival time of a bucket that is not full, under another setting. */
static uint64_t
tat_convert(uint64_t debt_ns, const struct peers *old, double rate, double burst,
            nsec_t now)
{
    double old_rate = (double)atomic_load_explicit(&old->rate, memory_order_relaxed);
    double old_burst = (double)atomic_load_explicit(&old->burst, memory_order_relaxed);
    double missing = (double)debt_ns * old_rate / (double)NSEC_PER_SEC;
    double owed = missing > old_burst ? missing - old_burst : 0;
    double level = missing < old_burst ? old_burst - missing : 0;
    double seconds = (level < burst ? (burst - level) / rate : 0) +
                     owed / (rate > old_rate ? rate : old_rate);
    double ns = seconds * (double)NSEC_PER_SEC;
    return ns < (double)(UINT64_MAX / 2 - now) ? now + (uint64_t)ns : UINT64_MAX / 2;
}

void
peers_set(struct peers *p, uint64_t rate, uint64_t burst, nsec_t now)
{
    must(rate <= PEERS_RATE_MAX && burst <= PEERS_BURST_MAX);
    if (burst == 0) {
        burst = limit_default_burst(rate);
    }
    if (atomic_load_explicit(&p->rate, memory_order_relaxed) == rate &&
        atomic_load_explicit(&p->burst, memory_order_relaxed) == burst) {
        return;
    }
    for (unsigned i = 0; i < PEERS_ENTRIES; i++) {
        uint64_t tat = atomic_load_explicit(&p->entries[i].tat, memory_order_relaxed);
        bool is_full = tat <= now || rate == 0;
        atomic_store_explicit(
            &p->entries[i].tat,
            is_full ? 0 : tat_convert(tat - now, p, (double)rate, (double)burst, now),
            memory_order_relaxed);
    }
    atomic_store_explicit(&p->burst, burst, memory_order_relaxed);
    atomic_store_explicit(&p->rate, rate, memory_order_relaxed);
}

static struct peers_entry *
set_of(struct peers *p, uint64_t key)
{
    return &p->entries[(key % SETS) * PEERS_WAYS];
}

static struct peers_entry *
find(struct peers *p, uint64_t key)
{
    struct peers_entry *set = set_of(p, key);
    for (unsigned i = 0; i < PEERS_WAYS; i++) {
        if (atomic_load_explicit(&set[i].key, memory_order_relaxed) == key) {
            return &set[i];
        }
    }
    return NULL;
}

/* The entry of this key. One with a full bucket says nothing, so it may change hands; two
 * workers that do so at once at worst charge one entry for both keys. */
static struct peers_entry *
find_or_claim(struct peers *p, uint64_t key, nsec_t now)
{
    struct peers_entry *entry = find(p, key);
    if (entry != NULL) {
        return entry;
    }
    struct peers_entry *set = set_of(p, key);
    for (unsigned i = 0; i < PEERS_WAYS; i++) {
        uint64_t old = atomic_load_explicit(&set[i].key, memory_order_relaxed);
        if (atomic_load_explicit(&set[i].tat, memory_order_relaxed) <= now &&
            atomic_compare_exchange_strong_explicit(
                &set[i].key, &old, key, memory_order_relaxed, memory_order_relaxed)) {
            return &set[i];
        }
    }
    atomic_fetch_add_explicit(&p->shared, 1, memory_order_relaxed);
    return &set[(key >> 32) % PEERS_WAYS];
}

/* What n tokens cost, rounded up: at the highest rate a token lasts 100 ns. */
static uint64_t
price(uint64_t rate, uint64_t n)
{
    return (n * NSEC_PER_SEC + rate - 1) / rate;
}

static void
move(struct peers_entry *entry, uint64_t n_ns, nsec_t now)
{
    uint64_t tat = atomic_load_explicit(&entry->tat, memory_order_relaxed);
    uint64_t start;
    do {
        start = tat > now ? tat : now;
    } while (start <= UINT64_MAX - n_ns &&
             !atomic_compare_exchange_weak_explicit(&entry->tat, &tat, start + n_ns,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed));
}

bool
peers_take(struct peers *p, uint64_t key, uint32_t n, nsec_t now, nsec_t *retry_at)
{
    must(key != 0 && n > 0);
    uint64_t rate = atomic_load_explicit(&p->rate, memory_order_relaxed);
    uint64_t burst = atomic_load_explicit(&p->burst, memory_order_relaxed);
    if (rate == 0) {
        return true;
    }
    struct peers_entry *entry = find_or_claim(p, key, now);
    uint64_t full = price(rate, burst);
    uint64_t needed = price(rate, n < burst ? n : burst);
    uint64_t tat = atomic_load_explicit(&entry->tat, memory_order_relaxed);
    uint64_t start;
    do {
        start = tat > now ? tat : now;
        if (start > UINT64_MAX - full - price(rate, n)) {
            *retry_at = UINT64_MAX;
            return false;
        }
        if (start + needed > now + full) {
            *retry_at = start + needed - full;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &entry->tat, &tat, start + price(rate, n), memory_order_relaxed,
        memory_order_relaxed));
    return true;
}

void
peers_refund(struct peers *p, uint64_t key, uint32_t n)
{
    uint64_t rate = atomic_load_explicit(&p->rate, memory_order_relaxed);
    struct peers_entry *entry = find(p, key);
    if (rate == 0 || entry == NULL) {
        return;
    }
    uint64_t back = price(rate, n);
    uint64_t tat = atomic_load_explicit(&entry->tat, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &entry->tat, &tat, tat > back ? tat - back : 0, memory_order_relaxed,
        memory_order_relaxed)) {
    }
}

void
peers_owe(struct peers *p, uint64_t key, uint64_t n, nsec_t now)
{
    uint64_t rate = atomic_load_explicit(&p->rate, memory_order_relaxed);
    if (rate != 0 && key != 0 && n > 0) {
        move(find_or_claim(p, key, now), price(rate, n), now);
    }
}
