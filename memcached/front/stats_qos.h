/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The groups of statistics that memcached does not have. Private to stats.c.
 */
#pragma once

#include "front/stats.h"

/* What of it plain "stats" tells in the native profile. */
struct stats_qos_summary {
    uint64_t limit; /* requests a second; 0: none */
    uint64_t admitted, delayed;
    uint64_t refused;    /* by limits and targets */
    double level_pct;    /* share of requests that the targets let through now */
    double headroom_pct; /* below 0: not known yet */
};

struct stats_qos_summary stats_sum_qos(struct stats *st);

/* Those that return a reply are told in pieces, as the hooks of serve/env.h are. */
enum reply stats_show_qos(struct stats *st, struct serve_place *place, struct sink *sink);
/* Of it, what is about limits. */
void stats_show_limit(struct stats *st, struct sink *sink);
/* Of the workers, as the kernel tells. */
void stats_show_sched(struct stats *st, struct sink *sink);
/* How much room there was in the last whole second, asking the kernel nothing; below 0: not known
 * yet. */
double stats_headroom_pct(struct stats *st);
/* How much room there is. */
void stats_show_headroom(struct stats *st, struct sink *sink);
/* And about delays. */
void stats_show_slo(struct stats *st, struct sink *sink);
enum reply stats_show_pin(struct stats *st, struct serve_place *place, struct sink *sink);
void stats_show_resctrl(struct stats *st, struct sink *sink);
