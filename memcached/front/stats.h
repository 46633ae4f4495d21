/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Collects the modules' counters: the lines of plain "stats", and since when they count.
 * Any worker may call; counters are read while their owners go on.
 */
#pragma once

#include <pthread.h>

#include "front/settings.h"
#include "net/worker.h"
#include "serve/watch.h"

/* Command counters summed over the workers, as plain numbers. */
struct stats_sum {
#define COUNTER(field) uint64_t field;
#define SLAB_COUNTER(field) uint64_t field;
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
};

/* Counters of a slab class that are parts of others. */
struct stats_parts {
    uint64_t hits[STORE_LISTS]; /* of get_hits */
    uint64_t sets;              /* of cmd_set, those that are no cas */
};

/* What a reset sets to 0; nothing but counts. */
struct stats_counts {
    struct stats_sum sum;
    uint64_t conns, rejected, disabled_times, disabled_us;
    uint64_t tls_sessions, tls_handshake_errors, tls_protocol_errors;
    uint64_t steered_unexpected, steered_fallback; /* by receive queues, else zeros */
    uint64_t log_dropped, log_written, log_skipped, log_sent;
};

struct stats {
    const struct settings *settings;
    struct net_shared *shared;
    struct worker *workers;
    unsigned worker_count;
    struct listen *listen;
    const struct watchers *watchers;
    pthread_mutex_t lock; /* the baselines: what had been counted at the last reset */
    struct stats_counts baseline;
    struct stats_sum slab_baseline[STORE_CLASSES];
    struct stats_parts parts_baseline[STORE_CLASSES];
};

/* The fronts end what they have begun. */
void stats_fini(struct stats *st);
/* The workers have started, and have no connections yet. False: no memory. */
must_check bool stats_start(struct stats *st);
/* To be called every second. */
void stats_second(struct stats *st);

/* Plain "stats". */
void stats_show_general(struct stats *st, uint32_t now, struct sink *sink);
void stats_reset(struct stats *st);

/* Of a slab class, from all workers. Without baseline. */
struct stats_sum stats_sum_class(const struct stats *st, unsigned class_id);
/* The same of its parts, since the last reset. */
struct stats_parts stats_parts(struct stats *st, unsigned class_id);
/* Counts in a row, of structs that have nothing else. */
void stats_subtract(uint64_t *counts, const uint64_t *baseline, size_t bytes);

bool stats_refresh_certs(void *ctx, uint32_t now, char *err, size_t err_len);
