/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Refusals that are sent together. The worker's thread.
 *
 * The law: under load L, with s the time that a request takes and r that of refusing one, (1 - L
 * r/s) / (1 - r/s) of the capacity is served, and most of r is the system call that sends a few
 * bytes. n refusals in one write divide that part by n. So output that is nothing but refusals of
 * the SLO is kept as long as the SLO lets a request wait; anything else takes it along, and no
 * worker sleeps on it.
 */
#pragma once

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"
#include "qos/class.h"

struct core;
struct pump;

/* A pump's part. */
struct coalesced {
    struct pump *next, *prev;
    nsec_t since;
    uint32_t
        bytes; /* of its output, from the begin, are refusals; all others count as 0 */
    uint8_t class; /* enum req_class */
    bool is_held;
};

/* The worker's: all that hold something, the oldest first. */
struct coalesce {
    struct pump *first, *last;
    ctr_t
        kept; /* times that output was kept which would have been sent; any thread reads */
};

/* Output of p was appended by a refusal; it had `before` bytes. */
void coalesce_note(struct pump *p, size_t before, enum req_class class);
/* May p's output, which is not empty, stay for now? It is held then. */
must_check bool coalesce_keeps(struct pump *p);
/* Leaves the list; its output may stay. */
void coalesce_forget(struct pump *p);
/* Turns for those that have held theirs for long enough; for all when the worker has nothing
 * else to do, or drains. */
void coalesce_serve(struct core *k, bool is_idle);
