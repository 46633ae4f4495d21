/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the store gets its memory from: whole mappings, zeroed lazily by the kernel, and the
 * few small arrays beside them. Each request passes a count-down with which a test makes
 * exactly one of them fail.
 *
 * Any thread. Private to store/.
 */
#pragma once

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/must.h"

struct mem {
    atomic_long fail_in; /* the n-th request from now fails; 0 or less: none does */
    atomic_ulong failures;
};

static inline bool
mem_may(struct mem *m)
{
    /* Relaxed throughout: a counter, nothing is published through it. */
    if (atomic_load_explicit(&m->fail_in, memory_order_relaxed) > 0 &&
        atomic_fetch_sub_explicit(&m->fail_in, 1, memory_order_relaxed) == 1) {
        return false;
    }
    return true;
}

static inline void *
mem_failed(struct mem *m)
{
    atomic_fetch_add_explicit(&m->failures, 1, memory_order_relaxed);
    return NULL;
}

/* Zeroed, page-aligned memory, or NULL. */
static inline void *
mem_map(struct mem *m, size_t bytes)
{
    void *p = MAP_FAILED;

    if (mem_may(m)) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return p == MAP_FAILED ? mem_failed(m) : p;
}

/* Addresses without memory, or NULL. */
static inline void *
mem_reserve(struct mem *m, size_t bytes)
{
    void *p = MAP_FAILED;

    if (mem_may(m)) {
        p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return p == MAP_FAILED ? mem_failed(m) : p;
}

/* Addresses of mem_reserve become zeroed memory. False: there is none, and they stay what they are. */
static inline bool
mem_commit(struct mem *m, void *p, size_t bytes)
{
    if (mem_may(m) && mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0) {
        return true;
    }
    return mem_failed(m) != NULL;
}

/* NULL is fine. */
static inline void
mem_unmap(void *p, size_t bytes)
{
    if (p != NULL) {
        must(munmap(p, bytes) == 0);
    }
}

/* Gives the memory back to the system, but not the addresses: it reads as zeros from here on, and
 * may be written to again. Memory that is locked (-k) stays before Linux 5.18. */
static inline void
mem_empty(void *p, size_t bytes)
{
    enum { DONTNEED_LOCKED = 24 }; /* MADV_DONTNEED_LOCKED, which older headers lack */

    if (madvise(p, bytes, MADV_DONTNEED) != 0) {
        (void)madvise(p, bytes, DONTNEED_LOCKED);
    }
}

/* As realloc; NULL leaves p as it was. */
static inline void *
mem_resize(struct mem *m, void *p, size_t bytes)
{
    void *q = mem_may(m) ? realloc(p, bytes) : NULL;

    return q == NULL ? mem_failed(m) : q;
}
