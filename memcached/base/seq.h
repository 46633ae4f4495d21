/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A sequence number, by which readers without a lock notice that a writer was there:
 *
 *     writer, holds a lock                reader
 *     seq_write_begin: odd from here      seq_read_begin: false when it is odd
 *     changes                             looks
 *     seq_write_end: even again           seq_read_holds: no writer came in between
 *
 * Until seq_read_holds has said yes, what a reader looked at may be garbage: it is not used, and
 * above all no pointer is followed. Fences order the looks; C11 calls them races all the same,
 * because writers need not store by atomics. So builds for the thread sanitizer have none: there
 * seq_read_begin always says no, and readers take the lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define SEQ_IS_OFF
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define SEQ_IS_OFF
#endif

#ifdef SEQ_IS_OFF
#define SEQ_FENCE(order) ((void)0) /* the sanitizer does not know fences */
#define SEQ_MAY_READ false
#else
#define SEQ_FENCE(order) atomic_thread_fence(order)
#define SEQ_MAY_READ true
#endif

struct seq {
    _Atomic uint64_t number;
};

static inline void
seq_write_begin(struct seq *seq)
{
    uint64_t number = atomic_load_explicit(&seq->number, memory_order_relaxed);

    atomic_store_explicit(&seq->number, number + 1, memory_order_relaxed);
    SEQ_FENCE(memory_order_release); /* odd before any change */
}

static inline void
seq_write_end(struct seq *seq)
{
    uint64_t number = atomic_load_explicit(&seq->number, memory_order_relaxed);

    atomic_store_explicit(&seq->number, number + 1, memory_order_release);
}

static inline bool
seq_read_begin(const struct seq *seq, uint64_t *seen)
{
    *seen = atomic_load_explicit(&seq->number, memory_order_acquire);
    return SEQ_MAY_READ && *seen % 2 == 0;
}

static inline bool
seq_read_holds(const struct seq *seq, uint64_t seen)
{
    SEQ_FENCE(memory_order_acquire); /* all looks before this one */
    return atomic_load_explicit(&seq->number, memory_order_relaxed) == seen;
}
