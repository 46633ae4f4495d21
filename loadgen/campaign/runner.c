/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/campaign/runner.h"

#include <math.h>

#include "loadgen/measure/steady.h"
#include "loadgen/run/stats_poll.h"
#include "loadgen/swarm/leader/leader.h"

enum exit_status
runner_open(struct runner *r, const struct run_conf *conf, int argc, char **argv)
{
    *r = (struct runner){.conf = conf};
    return conf->options->agents_len > 0 ? leader_open(&r->leader, conf, argc, argv)
                                         : run_open(&r->run, conf);
}

enum exit_status
runner_once(struct runner *r, const struct run_spec *spec, struct result *result)
{
    enum exit_status status = r->leader != NULL ? leader_once(r->leader, spec, result)
                                                : run_once(r->run, spec, result);
    if (status == EXIT_VALID && result->server_stats != NULL) {
        result->evictions = server_stats_evictions(result->server_stats);
    } else if (status == EXIT_VALID && result_misses_records(result)) {
        result->evictions = stats_poll_evictions(r->conf->options, r->conf->targets);
    }
    return status;
}

uint64_t
runner_loaded(const struct runner *r)
{
    return r->leader != NULL ? leader_loaded(r->leader) : run_loaded(r->run);
}

void
runner_close(struct runner *r)
{
    leader_close(&r->leader);
    run_close(&r->run);
}

/* ---- warmup ------------------------------------------------------------------------ */

#define PIECES_MAX 10
#define PIECE_MAX_S 30   /* a run may be given long to become sure */
#define PIECE_MIN_S 0.25 /* long enough for STEADY_BATCHES_MIN */

/* Of all pieces so far. */
struct log {
    double values[PIECES_MAX * SERIES_PIECES];
    unsigned count;
};

static void
log_add(struct log *log, const struct series *s, enum series_what what)
{
    log->count += s != NULL ? series_values(s, what, log->values + log->count) : 0;
}

/* The share to be cut off, above 1/2 when it has not settled. Without requests, or gets,
 * there is nothing to settle. */
static double
log_cut(const struct log *log)
{
    return log->count > 0 ? (double)steady_cut(log->values, log->count) / log->count : 0;
}

enum exit_status
warmup_run(struct runner *runner, const double *rates, struct result_warmup *result)
{
    struct log latency = {.count = 0}, hits = {.count = 0};
    struct run_spec spec = {
        .rates = rates,
        .time_s = fmax(fmin(runner->conf->options->time_s / 2, PIECE_MAX_S), PIECE_MIN_S),
        .warmup_s = -1,
        .is_probe = true,
    };
    *result = (struct result_warmup){.was_made = true};
    for (unsigned i = 0; i < PIECES_MAX && !result->has_settled; i++) {
        struct result r;
        enum exit_status status = runner_once(runner, &spec, &r);
        if (status != EXIT_VALID) {
            return status;
        }
        log_add(&latency, r.series, SERIES_LATENCY);
        log_add(&hits, r.series, SERIES_HIT_RATIO);
        result->seconds += r.elapsed_s;
        bool was_interrupted = r.was_interrupted;
        result_fini(&r);
        if (was_interrupted) {
            return options_fail(runner->conf->err, EXIT_INVALID,
                                "interrupted while warming up");
        }
        double cut = fmax(log_cut(&latency), log_cut(&hits));
        result->cut_s = cut * result->seconds;
        result->has_settled = cut <= 0.5;
    }
    return EXIT_VALID;
}
