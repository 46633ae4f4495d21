/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/pages.h"

#include <unistd.h>

#define HUGE_PAGE_BYTES ((uintptr_t)2 * STORE_PAGE_BYTES)

void
pages_init(struct pages *p, const struct store_conf *conf, struct mem *mem)
{
    *p = (struct pages){
        .mem = mem,
        .on_map = conf->on_map,
        .map_ctx = conf->map_ctx,
        .limit_bytes = conf->limit_bytes,
        .malloced_bytes = conf->initial_malloced,
        .can_trim = conf->can_reassign,
    };
}

static void
unmap(void *list)
{
    while (list != NULL) {
        void *next = *(void **)list;

        mem_unmap(list, STORE_PAGE_BYTES);
        list = next;
    }
}

void
pages_fini(struct pages *p)
{
    if (p->arena == NULL) {
        unmap(p->pool);
        unmap(p->shelf);
    }
    if (p->arena_bytes > 0) {
        mem_unmap(p->arena, p->arena_bytes);
    }
}

static void *
map_area(struct pages *p, size_t bytes)
{
    void *area = mem_map(p->mem, bytes);

    if (area != NULL && p->on_map != NULL) {
        p->on_map(p->map_ctx, area, bytes);
    }
    return area;
}

static bool
map_arena(struct pages *p, uint64_t pages)
{
    p->arena_bytes = (size_t)(pages * STORE_PAGE_BYTES + HUGE_PAGE_BYTES);
    p->arena = map_area(p, p->arena_bytes);
    if (p->arena == NULL) {
        return false;
    }
    uintptr_t start =
        ((uintptr_t)p->arena + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
    /* A wish: without large pages it works as well, a little slower. */
    (void)madvise((void *)start, (size_t)(pages * STORE_PAGE_BYTES), MADV_HUGEPAGE);
    p->arena_next = (char *)start;
    return true;
}

bool
pages_preallocate(struct pages *p, void *memory)
{
    uint64_t pages = p->limit_bytes / STORE_PAGE_BYTES;

    if (memory != NULL) {
        p->arena = memory;
        p->arena_next = memory;
    } else if (!map_arena(p, pages)) {
        return false;
    }
    p->arena_left = pages;
    return true;
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

static void *
map_page(struct pages *p)
{
    void *page = NULL;

    if (p->arena == NULL) {
        page = pop(&p->shelf);
        return page != NULL ? page : map_area(p, STORE_PAGE_BYTES);
    }
    if (p->arena_left > 0) {
        page = p->arena_next;
        p->arena_next += STORE_PAGE_BYTES;
        p->arena_left--;
    }
    return page;
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
    must(p->arena_bytes == 0 && p->arena_left > 0);
    p->malloced_bytes += charge;
    p->arena_next += STORE_PAGE_BYTES;
    p->arena_left--;
    return (char *)p->arena + (size_t)index * STORE_PAGE_BYTES;
}

void *
pages_trim(struct pages *p)
{
    void *list = NULL;

    while (p->can_trim && p->arena == NULL && p->pool != NULL &&
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
    return p->arena != NULL ? p->arena_left == 0 : !has_room(p, STORE_PAGE_BYTES);
}
