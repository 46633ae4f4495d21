/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/must.h"

#define REGION_BLOCKS (POOL_REGION_BYTES / POOL_BLOCK_BYTES)
#define ALL_BLOCKS (UINT64_MAX & ~UINT64_C(1)) /* of a region: bit 0 is the header */

/* At the beginning of a mapping that is aligned to its size. Bit n is block n. */
struct pool_region {
    struct pool_region *next;
    /* Release and acquire: what is set has been given back. */
    _Atomic uint64_t cold;
    /* The thread in the background's, within a call. */
    uint64_t leaving;
    struct pool_region *next_leaving;
};

_Static_assert(REGION_BLOCKS == 64, "a bit for each block");
_Static_assert(sizeof(struct pool_region) <= POOL_BLOCK_BYTES, "the header is a block");

void
pool_init(struct pool *p)
{
    *p = (struct pool){.spare = NULL};
}

static void
free_list(void *block)
{
    while (block != NULL) {
        void *next = *(void **)block;
        free(block);
        block = next;
    }
}

void
pool_fini(struct pool *p)
{
    must(ctr_get(&p->used) == 0);
    if (POOL_USES_MALLOC) {
        free_list(p->spare);
    }
    while (p->regions != NULL) {
        struct pool_region *region = p->regions;
        p->regions = region->next;
        must(munmap(region, POOL_REGION_BYTES) == 0);
    }
    /* The counters go on being read. */
    p->spare = NULL;
    ctr_add(&p->spare_count, -ctr_get(&p->spare_count));
    atomic_store_explicit(&p->warm, NULL, memory_order_relaxed);
    atomic_store_explicit(&p->idle, NULL, memory_order_relaxed);
    atomic_store_explicit(&p->cold_count, 0, memory_order_relaxed);
    p->scan = NULL;
}

/* ---- regions; the worker -------------------------------------------------------------- */

static char *
block_of(struct pool_region *region, unsigned n)
{
    return (char *)region + (size_t)n * POOL_BLOCK_BYTES;
}

/* All its blocks are cold. False: no memory. */
static bool
add_region(struct pool *p)
{
    size_t mapped = 2 * (size_t)POOL_REGION_BYTES;
    char *at =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    size_t before = (size_t)(-(uintptr_t)at % POOL_REGION_BYTES);
    size_t behind = mapped - before - POOL_REGION_BYTES;
    must(before == 0 || munmap(at, before) == 0);
    must(behind == 0 || munmap(at + before + POOL_REGION_BYTES, behind) == 0);
    /* A huge page would be resident as a whole for one block; a kernel without has none. */
    (void)!madvise(at + before, POOL_REGION_BYTES, MADV_NOHUGEPAGE);
    struct pool_region *region = (struct pool_region *)(void *)(at + before);
    region->next = p->regions;
    atomic_init(&region->cold, ALL_BLOCKS);
    atomic_fetch_add_explicit(&p->cold_count, REGION_BLOCKS - 1, memory_order_relaxed);
    p->regions = region;
    p->scan = region;
    return true;
}

static void *
take_cold_of(struct pool_region *region)
{
    uint64_t cold = atomic_load_explicit(&region->cold, memory_order_acquire);
    if (cold == 0) {
        return NULL;
    }
    unsigned n = (unsigned)__builtin_ctzll(cold);
    atomic_fetch_and_explicit(&region->cold, ~(UINT64_C(1) << n), memory_order_relaxed);
    return block_of(region, n);
}

/* The regions are gone through from where the last one was found. */
static void *
take_cold(struct pool *p)
{
    if (atomic_load_explicit(&p->cold_count, memory_order_acquire) == 0 &&
        !add_region(p)) {
        return NULL;
    }
    struct pool_region *first = p->scan;
    void *block = take_cold_of(p->scan);
    while (block == NULL) {
        p->scan = p->scan->next != NULL ? p->scan->next : p->regions;
        must(p->scan != first); /* what is counted is there */
        block = take_cold_of(p->scan);
    }
    atomic_fetch_sub_explicit(&p->cold_count, 1, memory_order_relaxed);
    return block;
}

/* ---- lists; the worker ---------------------------------------------------------------- */

static void *
pop(_Atomic(void *) *list)
{
    void *block = atomic_load_explicit(list, memory_order_acquire);
    while (block != NULL && !atomic_compare_exchange_weak_explicit(
                                list, &block, *(void **)block, memory_order_acquire,
                                memory_order_acquire)) {
    }
    return block;
}

static void
push(_Atomic(void *) *list, void *block)
{
    void *head = atomic_load_explicit(list, memory_order_relaxed);
    do {
        *(void **)block = head;
    } while (!atomic_compare_exchange_weak_explicit(
        list, &head, block, memory_order_release, memory_order_relaxed));
}

void *
pool_get_other(struct pool *p)
{
    if (POOL_USES_MALLOC) {
        return malloc(POOL_BLOCK_BYTES);
    }
    void *block = pop(&p->warm);
    if (block == NULL) {
        block = pop(&p->idle);
    }
    return block != NULL ? block : take_cold(p);
}

static void
give_other(struct pool *p, void *block)
{
    if (POOL_USES_MALLOC) {
        free(block);
    } else {
        push(&p->warm, block);
    }
}

void
pool_put(struct pool *p, void *block)
{
    ctr_add(&p->used, (uint64_t)-1);
    if (ctr_get(&p->spare_count) >= POOL_SPARE_MAX) {
        give_other(p, block);
        return;
    }
    *(void **)block = p->spare;
    p->spare = block;
    ctr_add(&p->spare_count, 1);
}

/* ---- the thread in the background ----------------------------------------------------- */

/* Marks the blocks of the list in their regions, which become a list. */
static struct pool_region *
find_leaving(void *block)
{
    struct pool_region *found = NULL;
    while (block != NULL) {
        void *next = *(void **)block;
        size_t at = (uintptr_t)block % POOL_REGION_BYTES;
        struct pool_region *region = (struct pool_region *)(void *)((char *)block - at);
        if (region->leaving == 0) {
            region->next_leaving = found;
            found = region;
        }
        region->leaving |= UINT64_C(1) << at / POOL_BLOCK_BYTES;
        block = next;
    }
    return found;
}

/* Neighbours at once: each call interrupts the CPUs of the other threads. Of blocks that are parts of a
 * larger page (64 KiB on some ARM and POWER kernels) nothing is given back: the kernel takes whole pages,
 * with what else is in them. */
static size_t
give_back(struct pool_region *region)
{
    size_t count = 0;
    bool is_whole = getpagesize() <= POOL_BLOCK_BYTES;
    for (unsigned first = 1; first < REGION_BLOCKS;) {
        unsigned n = 0;
        while (first + n < REGION_BLOCKS && (region->leaving >> (first + n) & 1) != 0) {
            n++;
        }
        if (n > 0 && is_whole) {
            /* Fails where memory is locked (-k): then it stays. */
            (void)!madvise(block_of(region, first), (size_t)n * POOL_BLOCK_BYTES,
                           MADV_DONTNEED);
        }
        count += n;
        first += n + 1;
    }
    return count;
}

void
pool_trim(struct pool *p)
{
    void *idle = atomic_exchange_explicit(&p->idle, NULL, memory_order_acquire);
    void *warm = atomic_exchange_explicit(&p->warm, NULL, memory_order_acquire);
    atomic_store_explicit(&p->idle, warm, memory_order_release);
    struct pool_region *region = find_leaving(idle);
    while (region != NULL) {
        struct pool_region *next = region->next_leaving;
        size_t count = give_back(region);
        atomic_fetch_or_explicit(&region->cold, region->leaving, memory_order_release);
        atomic_fetch_add_explicit(&p->cold_count, count, memory_order_release);
        region->leaving = 0;
        region = next;
    }
}
