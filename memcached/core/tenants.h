/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whose a request is, and whether it waits for the sake of other tenants (--fair, qos/fair.h).
 *
 * Small requests are served where they are read, in the order in which their connections become
 * ready: a tenant with a hundred times the connections would have a hundred times the service. So
 * while requests of several tenants come, a pass serves the first TENANTS_INLINE connections
 * where they are read. The next ones wait, unread, in the queue of small requests, and so does
 * every one until that queue is empty: there each tenant has its share. With one tenant nothing
 * waits.
 *
 * The worker's thread; any thread reads the counters and, by fair_report_of, the table.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"
#include "qos/fair.h"

#define TENANTS_INLINE 8
/* Several tenants are there while the next one's request comes within this time. */
#define TENANTS_RECENT_NS (10 * NSEC_PER_MSEC)

struct core;
struct core_shared;
struct session;
struct work;

struct tenants {
    bool is_on;
    enum fair_by by;
    uint32_t last;      /* whose connection was ready last, */
    nsec_t last_at;     /* and when; 0: none was */
    nsec_t mixed_at;    /* when it was another's than the one before; 0: never */
    nsec_t pass;        /* the pass of which is counted: */
    unsigned is_inline; /* connections that were read where they were ready */
    ctr_t deferred;     /* times that one was not, for others' sake */
    _Atomic(struct fair_table *) table; /* NULL until it is first on */
};

/* Any thread; workers take it up by tenants_apply. */
void tenants_set(struct core_shared *shared, enum fair_by by);

void tenants_apply(struct core *k);
void tenants_fini(struct core *k);

/* The key of the tenant that the work's request belongs to, as one of this class; 0: none. */
uint32_t tenants_of(const struct core *k, const struct work *work, enum req_class class);
/* A request is at the head whose key makes it a tenant's. */
void tenants_note_key(struct core *k, struct work *work, const struct session *s);
/* The work has been queued: its tenant has a name from here on. */
void tenants_name(struct core *k, const struct work *work, const struct fair_node *n);
/* A connection is ready. True: it is to be queued unread. */
must_check bool tenants_defer(struct core *k, const struct work *work);
/* A deferred turn of the tenant at this place is over. */
void tenants_count(struct core *k, uint8_t place, unsigned requests, nsec_t used);
/* A request that has waited for tokens has them. */
void tenants_count_tokens(struct core *k, struct work *work);
