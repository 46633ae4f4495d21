/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Asks servers for `stats` while a run lasts, each over a connection of its own, and once
 * before it how they are set up. Nothing here waits but opening and the end of a run: a reply
 * is taken when the caller looks again. A server that does not answer is asked no more. The
 * thread that runs the run.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "loadgen/measure/server_stats.h"
#include "loadgen/options/options.h"
#include "loadgen/wire/target.h"

struct stats_poll_conn;

struct stats_poll {
    struct stats_poll_conn *conns; /* one a server; NULL: nothing is asked */
    unsigned len;
    const struct target *targets;
    struct server_stats *stats;        /* of the run under way */
    struct server_settings *settings;  /* NULL: no server was asked */
    struct server_evictions evictions; /* of loading */
    nsec_t start, end, next, length;
    bool asks_settings; /* not for stats, just now */
    FILE *err;          /* NULL: no messages */
};

#define STATS_POLL_NEVER UINT64_MAX

/* As often as --server-stats says; without it nothing is asked. EXIT_VALID, or a line on
 * `err`; stats_poll_fini in any case. The targets live longer. */
must_check enum exit_status stats_poll_open(struct stats_poll *q, const struct options *o,
                                            const struct target *targets, FILE *err);
/* Around the storing of records: what servers evicted meanwhile. They wait for the servers. */
void stats_poll_load_begins(struct stats_poll *q);
void stats_poll_load_ends(struct stats_poll *q);
/* What the servers count, over connections that are closed again; nothing is known unless all
 * answer. */
struct server_evictions stats_poll_evictions(const struct options *o,
                                             const struct target *targets);
/* After stats_poll_open: asks each server once for version and settings, with --server-stats or
 * --env-report, and waits for it; over the connections there are, else over ones that are
 * closed again. A server that does not tell is without them. */
void stats_poll_learn(struct stats_poll *q, const struct options *o);
/* Also of one that is all zero. */
void stats_poll_fini(struct stats_poll *q);

/* All of these: nothing, when nothing is asked. */
void stats_poll_start(struct stats_poll *q, nsec_t start, nsec_t end);
/* When to look next. */
nsec_t stats_poll_next(const struct stats_poll *q);
void stats_poll_look(struct stats_poll *q, nsec_t now);
/* At the end of the window: the last sample, which is waited for. */
void stats_poll_end(struct stats_poll *q);
/* The caller owns it; NULL when nothing is asked. */
struct server_stats *stats_poll_take(struct stats_poll *q);
/* Likewise; the same for each run. */
struct server_settings *stats_poll_settings(const struct stats_poll *q);
