/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How alike servers and connections are served: a server that deals its connections out
 * unevenly among its threads shows here, and looks like noise in the sum. A small histogram
 * each connection, of latencies from issue, which the schedule has no part in.
 *
 * The log belongs to its sending thread until a run is over, then the main thread makes a
 * struct evenness of all of them.
 */
#pragma once

#include "base/hist.h"
#include "base/must.h"

#define EVENNESS_SUB_BITS 5 /* buckets of 3 % */
/* Connections of a thread that are looked at; a histogram takes 8 KiB. */
#define EVENNESS_CONNS_MAX 2048

struct evenness_log {
    struct hist **conns;
    unsigned *server; /* of each */
    unsigned len;
};

/* Servers are filled in by the caller. */
void evenness_log_init(struct evenness_log *l, unsigned conns);
void evenness_log_fini(struct evenness_log *l);
void evenness_log_reset(struct evenness_log *l);

static inline void
evenness_log_record(struct evenness_log *l, unsigned conn, uint64_t ns, unsigned n)
{
    if (likely(conn < l->len)) {
        hist_record_n(l->conns[conn], ns, n);
    }
}

enum evenness_of {
    EVENNESS_REQUESTS,
    EVENNESS_P50,
    EVENNESS_P99,
    EVENNESS_KINDS,
};

struct evenness_conn {
    uint64_t value[EVENNESS_KINDS];
};

struct evenness {
    struct evenness_conn *conns; /* those that had a request */
    unsigned conns_len;
    struct hist **servers;
    unsigned servers_len;
};

/* Smallest, median and largest of the connections. */
struct evenness_range {
    uint64_t min, median, max;
};

struct evenness *evenness_create(unsigned servers);
void evenness_destroy(struct evenness **s);
void evenness_add(struct evenness *s, const struct evenness_log *l);
/* Adds another of as many servers. */
void evenness_merge(struct evenness *s, const struct evenness *from);
/* All zero without connections. */
struct evenness_range evenness_range(const struct evenness *s, enum evenness_of what);
