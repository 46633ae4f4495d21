/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/local.h"

#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

void
local_init(struct local *l, const struct options *o, const struct member *self,
           unsigned load_classes)
{
    *l = (struct local){.options = *o};
    l->options.wait_s = 0; /* all wait, by when they are told to begin */
    l->options.classes = &o->classes[self->first_class];
    l->options.classes_len =
        self->role == ROLE_LOAD ? load_classes : o->classes_len - load_classes;
    if (options_agents_in(o, ROLE_OBSERVE) > 0) {
        l->options.server_stats_s = 0;
    }
}

enum exit_status
local_open(struct local *l, const struct run_conf *conf)
{
    struct run_conf c = *conf;
    c.options = &l->options;
    l->reported = delta_counters_create(l->options.classes_len);
    counters_init(&l->look);
    return run_open(&l->run, &c);
}

void
local_fini(struct local *l)
{
    run_close(&l->run);
    delta_counters_destroy(&l->reported, l->options.classes_len);
    counters_fini(&l->look);
}

/* It goes the way of what agents report. */
static void
tell(struct local *l, const struct member *self, unsigned class, uint64_t interval,
     struct counters *now)
{
    struct frame_out o = {.p = NULL};
    struct frame f;
    size_t taken;
    frame_begin(&o, MESSAGE_DELTA, 0, 0);
    delta_put_next(&o, now, &l->reported[class]);
    bool is_good =
        frame_end(&o, 0) &&
        frame_parse(o.p, o.len, FRAME_MAX, 0, &f, &taken) == FRAME_DONE &&
        ledger_add(self->run->ledger, 0, self->first_class + class, interval, &f);
    must(is_good);
    frame_out_fini(&o);
}

struct run_spec
local_begin(struct local *l, struct member *self, const struct run_spec *spec)
{
    struct run_spec own = *spec;
    own.begin = self->run->begin;
    own.is_fresh = false; /* run_renew has been asked for it */
    own.tick_length = self->run->length;
    own.rates = l->rates;
    own.slice = self->slice;
    member_set_own(self, NULL);
    for (unsigned i = 0; i < self->classes; i++) {
        l->rates[i] = (double)self->rates[i];
        counters_reset(&l->reported[i]);
    }
    l->reported_interval = 0;
    return own;
}

void
local_tell(struct local *l, const struct member *self, const struct run *run, nsec_t now)
{
    const struct swarm_run *swarm = self->run;
    if (now < run_window(run)->start) {
        return;
    }
    uint64_t interval =
        interval_number(now - run_window(run)->start, swarm->time, swarm->length);
    if (interval <= l->reported_interval) {
        return;
    }
    for (unsigned i = 0; i < self->classes; i++) {
        counters_reset(&l->look);
        run_sum(run, i, &l->look);
        tell(l, self, i, interval, &l->look);
    }
    l->reported_interval = interval;
}

void
local_end(struct local *l, struct member *self, const struct result *result)
{
    const struct swarm_run *swarm = self->run;
    bool is_whole = result->elapsed_s * 1e9 + 1e6 > (double)swarm->time;
    uint64_t last = interval_last(swarm->time, swarm->length);
    for (unsigned i = 0; i < result->classes_len; i++) {
        tell(l, self, i, is_whole ? last : l->reported_interval + 1,
             &result->classes[i].total);
    }
    ledger_done(swarm->ledger, 0);
    member_set_own(self, result);
    self->start_error = run_window(l->run)->begin - swarm->begin;
}
