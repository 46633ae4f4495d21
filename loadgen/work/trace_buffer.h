/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Requests of a trace that were read ahead, for one sending thread: as many places as were
 * made at first, each with one request. The reader fills free places and hands them over in
 * the trace's order; the sending thread takes them in that order, keeps them as long as
 * anything needs their key (a place is held several times, by count), and gives them back.
 * Neither ever waits for the other, locks or allocates: two rings of places, one each way.
 */
#pragma once

#include <stdatomic.h>

#include "base/must.h"
#include "loadgen/work/trace.h"

#define TRACE_BUFFER_NONE UINT32_MAX

struct trace_buffer_slot {
    uint64_t at_ns; /* intended start, from the begin of the run; 0: as soon as can be */
    uint64_t hash;  /* of its key */
    uint32_t value_len;
    int32_t ttl;
    uint32_t route; /* what its connection is chosen by */
    uint32_t next;  /* the sending thread's, for lists */
    uint16_t holds;
    uint8_t verb; /* enum trace_verb */
    uint8_t key_len;
    char key[TRACE_KEY_MAX];
};

/* One way: each index is written by one thread and read by the other. They stand apart, so
 * that neither takes the other's cache line with its own. */
struct trace_buffer_ring {
    uint32_t *places;
    char before[64];
    atomic_uint head; /* taken so far: release by the taker */
    char between[64];
    atomic_uint tail; /* handed over so far: release by the giver */
    char behind[64];
};

struct trace_buffer {
    struct trace_buffer_slot *pages;
    uint64_t end_ns;      /* of the trace, from the begin; once it is over */
    uint32_t count, mask; /* of places, and of rings, which have at least as many */
    struct trace_buffer_ring full, empty; /* reader to sender, and back */
    atomic_bool is_over;                  /* nothing more comes: release by the reader */
};

/* 0 < count < 2^30. */
void trace_buffer_init(struct trace_buffer *b, uint32_t count);
void trace_buffer_fini(struct trace_buffer *b);
/* Neither thread is at work: all places are free again. */
void trace_buffer_reset(struct trace_buffer *b);

/* ---- reader -------------------------------------------------------------------------- */

/* A free place, TRACE_BUFFER_NONE when there is none: filled, it is handed over by trace_buffer_commit. */
uint32_t trace_buffer_reserve(struct trace_buffer *b);
void trace_buffer_commit(struct trace_buffer *b, uint32_t page);
/* Nothing more comes; the trace ends so long after the begin of the run. */
void trace_buffer_end(struct trace_buffer *b, uint64_t end_ns);

/* ---- sender -------------------------------------------------------------------------- */

static inline struct trace_buffer_slot *
trace_buffer_slot(const struct trace_buffer *b, uint64_t page)
{
    must(page < b->count);
    return &b->pages[page];
}

/* The next request, held once, TRACE_BUFFER_NONE when none has been read. */
uint32_t trace_buffer_take(struct trace_buffer *b);
/* The same without taking it. */
uint32_t trace_buffer_peek(const struct trace_buffer *b);
/* Whether trace_buffer_take will never find one again. */
bool trace_buffer_is_done(const struct trace_buffer *b);
/* Places that the sender has. */
uint32_t trace_buffer_used(const struct trace_buffer *b);

static inline void
trace_buffer_get(struct trace_buffer *b, uint64_t page)
{
    trace_buffer_slot(b, page)->holds++;
}
/* The last one gives the place back. */
void trace_buffer_release(struct trace_buffer *b, uint64_t page);
