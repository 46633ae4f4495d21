/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/pages.h"

#include <unistd.h>

#define HUGE_PAGE_BYTES ((uintptr_t)2 * STORE_PAGE_BYTES)

/* For classes that get their first page beyond the limit. */
#define SLACK_BYTES ((uint64_t)STORE_CLASSES * STORE_PAGE_BYTES)

/* Addresses that are left to all else, at most, where there are few. */
#define OTHERS_BYTES ((uint64_t)256 << 20)

unsigned
pages_shift(const struct store_conf *conf)
{
    uint64_t most = conf->limit_bytes;

    if (!conf->preallocates && conf->memory == NULL && conf->machine_bytes > 0 &&
        conf->machine_bytes < most) {
        most = conf->machine_bytes;
    }
    return link_shift(most + SLACK_BYTES);
}

void
pages_init(struct pages *p, const struct store_conf *conf, struct mem *mem)
{
    *p = (struct pages){
        .mem = mem,
        .on_map = conf->on_map,
        .map_ctx = conf->map_ctx,
        .limit_bytes = conf->limit_bytes,
        .malloced_bytes = conf->initial_malloced,
        .reserves_least = conf->reserves_least,
        .can_trim = conf->can_reassign,
        .range.shift = pages_shift(conf),
    };
}

void
pages_fini(struct pages *p)
{
    if (p->arena_bytes > 0) {
        mem_unmap(p->arena, p->arena_bytes);
    }
}

/* Bytes of pages that links reach. */
static uint64_t
reach_of(const struct pages *p)
{
    uint64_t bytes = (uint64_t)UINT32_MAX << p->range.shift;

    return bytes - bytes % STORE_PAGE_BYTES;
}

static void
use_arena(struct pages *p, void *first, uint64_t pages)
{
    must(pages <= reach_of(p) / STORE_PAGE_BYTES);
    p->arena_next = first;
    p->arena_left = pages;
    p->range = link_range(first, p->range.shift);
}

static void
reserve(struct pages *p, uint64_t bytes)
{
    p->arena = mem_reserve(p->mem, bytes);
    p->arena_bytes = p->arena != NULL ? bytes : 0;
}

/* Where there are few (ulimit -v) some are left for stacks of threads, buffers and the hash table. */
static void
reserve_beside_others(struct pages *p, uint64_t bytes)
{
    uint64_t others = 3 * bytes < OTHERS_BYTES ? 3 * bytes : OTHERS_BYTES;

    reserve(p, bytes + others);
    if (p->arena != NULL) {
        p->arena_bytes = bytes;
        mem_unmap((char *)p->arena + bytes, others);
    }
}

bool
pages_reserve(struct pages *p)
{
    const uint64_t reach = reach_of(p);
    uint64_t least = p->limit_bytes + SLACK_BYTES;

    least -= least % STORE_PAGE_BYTES;
    least = least < reach ? least : reach;
    reserve(p, p->reserves_least ? least : reach);
    for (uint64_t pages = least / STORE_PAGE_BYTES; p->arena == NULL && pages > 0;
         pages /= 2) {
        reserve_beside_others(p, pages * STORE_PAGE_BYTES);
    }
    if (p->arena == NULL) {
        return false;
    }
    use_arena(p, p->arena, p->arena_bytes / STORE_PAGE_BYTES);
    return true;
}

static void
note_memory(const struct pages *p, void *area, size_t bytes)
{
    if (p->on_map != NULL) {
        p->on_map(p->map_ctx, area, bytes);
    }
}

static bool
map_arena(struct pages *p, uint64_t pages)
{
    size_t bytes = (size_t)(pages * STORE_PAGE_BYTES + HUGE_PAGE_BYTES);

    p->arena = mem_map(p->mem, bytes);
    if (p->arena == NULL) {
        return false;
    }
    p->arena_bytes = bytes;
    note_memory(p, p->arena, bytes);
    uintptr_t start =
        ((uintptr_t)p->arena + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
    /* A wish: without large pages it works as well, a little slower. */
    (void)madvise((void *)start, (size_t)(pages * STORE_PAGE_BYTES), MADV_HUGEPAGE);
    use_arena(p, (void *)start, pages);
    return true;
}

bool
pages_preallocate(struct pages *p, void *memory)
{
    uint64_t pages = p->limit_bytes / STORE_PAGE_BYTES;

    p->is_memory = true;
    if (memory == NULL) {
        return map_arena(p, pages);
    }
    p->arena = memory;
    use_arena(p, memory, pages);
    return true;
}

bool
pages_can_limit(const struct pages *p, uint64_t limit_bytes)
{
    return !p->is_memory && limit_bytes <= p->arena_bytes;
}

static void *
pop(void **list)
{
    void *page = *list;

    if (page != NULL) {
        *list = *(void **)page;
    }
    return page;
}

static void *
pool_pop(struct pages *p)
{
    void *page = pop(&p->pool);

    p->pool_count -= page != NULL;
    return page;
}

/* The next one of the arena, which becomes memory by that. */
static void *
cut_page(struct pages *p)
{
    char *page = p->arena_next;

    if (p->arena_left == 0 ||
        (!p->is_memory && !mem_commit(p->mem, page, STORE_PAGE_BYTES))) {
        return NULL;
    }
    p->arena_next += STORE_PAGE_BYTES;
    p->arena_left--;
    if (!p->is_memory) {
        note_memory(p, page, STORE_PAGE_BYTES);
    }
    return page;
}

static void *
map_page(struct pages *p)
{
    void *page = pop(&p->shelf);

    return page != NULL ? page : cut_page(p);
}

static bool
has_room(const struct pages *p, uint64_t charge)
{
    return p->malloced_bytes + charge <= p->limit_bytes;
}

void *
pages_take(struct pages *p, uint64_t charge, bool is_needed)
{
    void *page = pool_pop(p);

    if (page == NULL) {
        page = is_needed || has_room(p, charge) ? map_page(p) : NULL;
        p->malloced_bytes += page != NULL ? charge : 0;
    }
    return page;
}

void
pages_give(struct pages *p, void *page)
{
    *(void **)page = p->pool;
    p->pool = page;
    p->pool_count++;
}

void *
pages_adopt(struct pages *p, uint32_t index, uint64_t charge)
{
    must(p->is_memory && p->arena_bytes == 0 && p->arena_left > 0);
    p->malloced_bytes += charge;
    p->arena_next += STORE_PAGE_BYTES;
    p->arena_left--;
    return (char *)p->arena + (size_t)index * STORE_PAGE_BYTES;
}

void *
pages_trim(struct pages *p)
{
    void *list = NULL;

    while (p->can_trim && !p->is_memory && p->pool != NULL &&
           p->malloced_bytes > p->limit_bytes) {
        void *page = pool_pop(p);

        p->malloced_bytes -= STORE_PAGE_BYTES;
        *(void **)page = list;
        list = page;
    }
    return list;
}

void
pages_empty(void *list)
{
    size_t kept = (size_t)sysconf(_SC_PAGESIZE); /* with the link of the list */

    for (char *page = list; page != NULL; page = *(void **)page) {
        mem_empty(page + kept, STORE_PAGE_BYTES - kept);
    }
}

void
pages_shelve(struct pages *p, void *list)
{
    for (void *page; (page = pop(&list)) != NULL;) {
        *(void **)page = p->shelf;
        p->shelf = page;
    }
}

bool
pages_are_at_limit(const struct pages *p)
{
    bool has_page = p->arena_left > 0 || p->shelf != NULL;

    return !has_page || (!p->is_memory && !has_room(p, STORE_PAGE_BYTES));
}
