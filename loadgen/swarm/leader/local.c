/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/local.h"

#include <stdlib.h>

#include "loadgen/swarm/delta.h"
#include "loadgen/options/swarm_start.h"

void
local_init(struct local *own, const struct options *o, unsigned load_classes)
{
    bool measures =
        load_classes < o->classes_len && options_agents_in(o, ROLE_MEASURE) == 0;
    *own = (struct local){
        .options = *o,
        .first = measures ? load_classes : 0,
        .is_there = o->weight > 0,
    };
    own->options.wait_s = 0; /* all wait, by when they are told to begin */
    own->options.classes = &o->classes[own->first];
    own->options.classes_len = measures ? 1 : load_classes;
    if (options_agents_in(o, ROLE_OBSERVE) > 0) {
        own->options.server_stats_s = 0;
    }
}

static bool
make_told(struct local *own)
{
    bool is_good = tally_init(&own->look);
    own->told = calloc(own->options.classes_len, sizeof *own->told);
    for (unsigned i = 0; is_good && own->told != NULL && i < own->options.classes_len;
         i++) {
        is_good = tally_init(&own->told[i]);
    }
    return is_good && own->told != NULL;
}

enum exit_status
local_open(struct local *own, const struct run_conf *conf, unsigned agents)
{
    struct run_conf c = *conf;
    if (!own->is_there) {
        return EXIT_VALID;
    }
    c.options = &own->options;
    c.agent = 0;
    c.agents = agents + 1;
    c.sender = 0;
    c.senders = options_agents_in(&own->options, local_role(own)) + 1;
    if (!make_told(own)) {
        return swarm_fail("out of memory");
    }
    return run_open(&own->run, &c);
}

void
local_fini(struct local *own)
{
    run_close(&own->run);
    for (unsigned i = 0; own->told != NULL && i < own->options.classes_len; i++) {
        tally_fini(&own->told[i]);
    }
    free(own->told);
    tally_fini(&own->look);
}

/* It goes the way of what agents report. */
static void
tell(struct local *own, const struct swarm_run *swarm, unsigned class, uint64_t interval,
     struct tally *now)
{
    struct frame_out o = {.p = NULL};
    struct frame f;
    size_t taken;
    frame_begin(&o, MESSAGE_DELTA, 0, 0);
    delta_put(&o, now, &own->told[class]);
    bool is_good = frame_end(&o, 0) &&
                   frame_parse(o.p, o.len, FRAME_MAX, 0, &f, &taken) == FRAME_DONE &&
                   ledger_add(swarm->ledger, 0, own->first + class, interval, &f);
    must(is_good);
    frame_out_fini(&o);
    tally_reset(&own->told[class]);
    tally_merge(&own->told[class], now);
}

void
local_begin(struct local *own)
{
    for (unsigned i = 0; own->run != NULL && i < own->options.classes_len; i++) {
        tally_reset(&own->told[i]);
    }
    own->told_interval = 0;
}

void
local_tell(struct local *own, const struct swarm_run *swarm, const struct run *run,
           nsec_t now)
{
    uint64_t interval =
        ledger_number(now - run_window(run)->start, swarm->time, swarm->length);
    if (interval <= own->told_interval) {
        return;
    }
    for (unsigned i = 0; i < own->options.classes_len; i++) {
        tally_reset(&own->look);
        run_sum(run, i, &own->look);
        tell(own, swarm, i, interval, &own->look);
    }
    own->told_interval = interval;
}

void
local_end(struct local *own, const struct swarm_run *swarm, const struct result *result)
{
    bool is_whole = result->elapsed_s * 1e9 + 1e6 > (double)swarm->time;
    uint64_t last = ledger_last(swarm->time, swarm->length);
    for (unsigned i = 0; i < result->classes_len; i++) {
        tell(own, swarm, i, is_whole ? last : own->told_interval + 1,
             &result->classes[i].total);
    }
    ledger_done(swarm->ledger, 0);
}
