/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace_buffer.h"

#include "base/alloc.h"

/* ---- rings: the counts run freely, and wrap with the ring ------------------------------ */

static uint32_t
ring_peek(const struct trace_buffer_ring *r, uint32_t mask)
{
    unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
    return head == atomic_load_explicit(&r->tail, memory_order_acquire)
               ? TRACE_BUFFER_NONE
               : r->places[head & mask];
}

static uint32_t
ring_take(struct trace_buffer_ring *r, uint32_t mask)
{
    uint32_t page = ring_peek(r, mask);
    if (page != TRACE_BUFFER_NONE) {
        unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
        atomic_store_explicit(&r->head, head + 1, memory_order_release);
    }
    return page;
}

/* There is always room: a ring has as many places as the book. */
static void
ring_put(struct trace_buffer_ring *r, uint32_t mask, uint32_t page)
{
    unsigned tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    r->places[tail & mask] = page;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

/* ---- both ---------------------------------------------------------------------------- */

void
trace_buffer_init(struct trace_buffer *b, uint32_t count)
{
    uint32_t size = 1;
    must(count > 0 && count < UINT32_C(1) << 30);
    while (size < count) {
        size *= 2;
    }
    *b = (struct trace_buffer){.count = count, .mask = size - 1};
    b->pages = alloc_zeroed(count, sizeof *b->pages);
    b->full.places = alloc_zeroed(size, sizeof *b->full.places);
    b->empty.places = alloc_zeroed(size, sizeof *b->empty.places);
    trace_buffer_reset(b);
}

void
trace_buffer_fini(struct trace_buffer *b)
{
    free(b->pages);
    free(b->full.places);
    free(b->empty.places);
    b->pages = NULL;
    b->full.places = b->empty.places = NULL;
}

void
trace_buffer_reset(struct trace_buffer *b)
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
trace_buffer_reserve(struct trace_buffer *b)
{
    return ring_take(&b->empty, b->mask);
}

void
trace_buffer_commit(struct trace_buffer *b, uint32_t page)
{
    ring_put(&b->full, b->mask, page);
}

void
trace_buffer_end(struct trace_buffer *b, uint64_t end_ns)
{
    b->end_ns = end_ns;
    atomic_store_explicit(&b->is_over, true, memory_order_release);
}

uint32_t
trace_buffer_peek(const struct trace_buffer *b)
{
    return ring_peek(&b->full, b->mask);
}

uint32_t
trace_buffer_take(struct trace_buffer *b)
{
    uint32_t page = ring_take(&b->full, b->mask);
    if (page != TRACE_BUFFER_NONE) {
        b->pages[page].holds = 1;
    }
    return page;
}

bool
trace_buffer_is_done(const struct trace_buffer *b)
{
    /* In this order: what was put before the end is seen then. */
    return atomic_load_explicit(&b->is_over, memory_order_acquire) &&
           trace_buffer_peek(b) == TRACE_BUFFER_NONE;
}

uint32_t
trace_buffer_used(const struct trace_buffer *b)
{
    unsigned taken = atomic_load_explicit(&b->full.head, memory_order_relaxed);
    unsigned back = atomic_load_explicit(&b->empty.tail, memory_order_relaxed);
    return taken + b->count - back; /* all were given at first */
}

void
trace_buffer_release(struct trace_buffer *b, uint64_t page)
{
    struct trace_buffer_slot *p = trace_buffer_slot(b, page);
    must(p->holds > 0);
    if (--p->holds == 0) {
        ring_put(&b->empty, b->mask, (uint32_t)page);
    }
}
