/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Times at which something is to be done, the next one first: a heap of fixed size. Its
 * thread only; no allocation after alarms_init.
 */
#pragma once

#include "base/clock.h"

#define ALARMS_NEVER UINT64_MAX

struct alarm_entry {
    nsec_t when;
    uint32_t who;   /* the caller's */
    uint32_t value; /* the caller's */
};

struct alarms {
    struct alarm_entry *heap;
    unsigned count, capacity;
};

void alarms_init(struct alarms *a, unsigned capacity);
void alarms_fini(struct alarms *a);

/* Needs room: count < capacity. */
void alarms_push(struct alarms *a, struct alarm_entry entry);

/* When the next one is due, ALARMS_NEVER when there is none. */
static inline nsec_t
alarms_next(const struct alarms *a)
{
    return a->count > 0 ? a->heap[0].when : ALARMS_NEVER;
}

/* Removes the next one; there must be one. */
struct alarm_entry alarms_pop(struct alarms *a);
