/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Single-writer counters: the owning thread adds without a locked instruction, any thread
 * reads. Relaxed: a counter orders nothing; a reader sees each value whole and a little late.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t ctr_t;

static inline void
ctr_add(ctr_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* For the few counters that several threads write, none of them often. */
static inline void
ctr_add_shared(ctr_t *c, uint64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t
ctr_get(const ctr_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}
