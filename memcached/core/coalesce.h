/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Refusals that are sent together. While more comes than can be served, refusing costs what
 * serving lacks, and most of it is the system call that sends a few bytes. So a connection whose
 * waiting output is nothing but refusals of the SLO keeps it, as long as the SLO lets a
 * request wait, and sends those of several reads at once; earlier when anything else is to be
 * sent, and always before the worker sleeps. The worker's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"
#include "qos/class.h"

struct core;
struct pump;

/* A pump's part. */
struct coalesced {
    bool is_held;
    size_t bytes; /* of its output, from the begin, are refusals; all others count as 0 */
    enum req_class class;
    nsec_t since;
    struct pump *next, *prev;
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
