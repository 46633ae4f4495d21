/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/campaign/runner.h"

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
