/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Collects the modules' counters and renders every group of "stats".
 * Any worker may call; counters are read while their owners go on.
 */
#pragma once

#include <pthread.h>

#include "net/listen.h"
#include "net/worker.h"
#include "qos/headroom.h"
#include "serve/watch.h"
#include "front/settings.h"

/* Command counters summed over the workers, as plain numbers. */
struct stats_sum {
#define COUNTER(field) uint64_t field;
#define SLAB_COUNTER(field) uint64_t field;
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
};

struct stats_tls {
    uint64_t new_sessions, handshake_errors, protocol_errors;
};

struct stats {
    const struct settings *settings;
    struct net_shared *shared;
    struct worker *workers;
    unsigned worker_count;
    struct listen *listen;
    const struct watchers *watchers;
    struct headroom_window *windows; /* of the workers; under lock */
    pthread_mutex_t lock; /* and the baselines: what had been counted at the last reset */
    struct stats_sum baseline;
    struct stats_sum slab_baseline[STORE_CLASSES];
    uint64_t hits_baseline[STORE_CLASSES][STORE_LISTS];
    struct watch_totals log_baseline;
    struct stats_tls tls_baseline;
    uint64_t conns_baseline, rejected_baseline, disabled_baseline, disabled_us_baseline;
    struct steer_sum steered_baseline;
};

void stats_init(struct stats *st);
void stats_fini(struct stats *st);
/* The workers have started, and serve nobody yet. False: no memory. */
must_check bool stats_start(struct stats *st);
/* To be called every second. */
void stats_second(struct stats *st);

/* The hook of serve/env.h; ctx is the struct stats. */
enum reply stats_command(void *ctx, const struct slice *words, unsigned count,
                         uint32_t now, struct serve_place *place, struct sink *sink);

bool stats_refresh_certs(void *ctx, uint32_t now, char *err, size_t err_len);

/* The hook of settings_stats; ctx is the struct stats. */
bool stats_changing_setting(void *ctx, const char *name, struct sink *sink);
