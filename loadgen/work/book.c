/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/book.h"

#include "base/alloc.h"

/* ---- rings: the counts run freely, and wrap with the ring ------------------------------ */

static uint32_t
ring_peek(const struct book_ring *r, uint32_t mask)
{
    unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
    return head == atomic_load_explicit(&r->tail, memory_order_acquire)
               ? BOOK_NONE
               : r->places[head & mask];
}

static uint32_t
ring_take(struct book_ring *r, uint32_t mask)
{
    uint32_t page = ring_peek(r, mask);
    if (page != BOOK_NONE) {
        unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
        atomic_store_explicit(&r->head, head + 1, memory_order_release);
    }
    return page;
}

/* There is always room: a ring has as many places as the book. */
static void
ring_put(struct book_ring *r, uint32_t mask, uint32_t page)
{
    unsigned tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    r->places[tail & mask] = page;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

/* ---- both ---------------------------------------------------------------------------- */

void
book_init(struct book *b, uint32_t count)
{
    uint32_t size = 1;
    must(count > 0 && count < UINT32_C(1) << 30);
    while (size < count) {
        size *= 2;
    }
    *b = (struct book){.count = count, .mask = size - 1};
    b->pages = alloc_zeroed(count, sizeof *b->pages);
    b->full.places = alloc_zeroed(size, sizeof *b->full.places);
    b->empty.places = alloc_zeroed(size, sizeof *b->empty.places);
    book_reset(b);
}

void
book_fini(struct book *b)
{
    free(b->pages);
    free(b->full.places);
    free(b->empty.places);
    b->pages = NULL;
    b->full.places = b->empty.places = NULL;
}

void
book_reset(struct book *b)
{
    atomic_store(&b->full.head, 0);
    atomic_store(&b->full.tail, 0);
    atomic_store(&b->empty.head, 0);
    atomic_store(&b->empty.tail, 0);
    atomic_store(&b->is_over, false);
    for (uint32_t i = 0; i < b->count; i++) {
        b->pages[i].holds = 0;
        ring_put(&b->empty, b->mask, i);
    }
}

uint32_t
book_blank(struct book *b)
{
    return ring_take(&b->empty, b->mask);
}

void
book_put(struct book *b, uint32_t page)
{
    ring_put(&b->full, b->mask, page);
}

void
book_end(struct book *b, uint64_t end_ns)
{
    b->end_ns = end_ns;
    atomic_store_explicit(&b->is_over, true, memory_order_release);
}

uint32_t
book_peek(const struct book *b)
{
    return ring_peek(&b->full, b->mask);
}

uint32_t
book_take(struct book *b)
{
    uint32_t page = ring_take(&b->full, b->mask);
    if (page != BOOK_NONE) {
        b->pages[page].holds = 1;
    }
    return page;
}

bool
book_is_done(const struct book *b)
{
    /* In this order: what was put before the end is seen then. */
    return atomic_load_explicit(&b->is_over, memory_order_acquire) &&
           book_peek(b) == BOOK_NONE;
}

uint32_t
book_held(const struct book *b)
{
    unsigned taken = atomic_load_explicit(&b->full.head, memory_order_relaxed);
    unsigned back = atomic_load_explicit(&b->empty.tail, memory_order_relaxed);
    return taken + b->count - back; /* all were given at first */
}

void
book_release(struct book *b, uint64_t page)
{
    struct book_page *p = book_page(b, page);
    must(p->holds > 0);
    if (--p->holds == 0) {
        ring_put(&b->empty, b->mask, (uint32_t)page);
    }
}
