/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/share_out.h"

#include <math.h>
#include <stdio.h>

#include "loadgen/swarm/leader/split.h"

#define SENDERS_MAX (MESSAGE_AGENTS_MAX + 1)

double
share_out_rate(const struct options *o, const struct run_spec *spec, unsigned class)
{
    return spec->rates != NULL ? spec->rates[class] : (double)o->classes[class].qps;
}

bool
share_out_has_capacity(const struct options *o, unsigned class)
{
    const struct lclass *c = &o->classes[class];
    return o->splits_by_capacity && !c->is_measuring && !c->traffic.is_timed;
}

/* Who sends a class, and how much of it: this process, then the agents. Returns the sum. */
static double
weigh(const struct share_out_parts *p, unsigned class, double weights[SENDERS_MAX])
{
    const struct followers *k = p->followers;
    double sum = 0;
    weights[0] = local_has(p->own, class) ? (double)p->options->weight : 0;
    for (unsigned i = 0; i < k->count; i++) {
        bool has_it = !k->all[i].is_out && follower_has(&k->all[i], class);
        weights[i + 1] = has_it ? (double)k->all[i].weight : 0;
    }
    capacity_weigh(p->capacity, class, weights);
    for (unsigned i = 0; i <= k->count; i++) {
        sum += weights[i];
    }
    return sum;
}

bool
share_out_learn(const struct share_out_parts *p, const struct run_spec *spec,
                const struct result *own)
{
    const struct followers *k = p->followers;
    double qps[SENDERS_MAX];
    for (unsigned class = 0; class < p->options->classes_len; class ++) {
        if (!share_out_has_capacity(p->options, class) ||
            share_out_rate(p->options, spec, class) > 0) {
            continue;
        }
        for (unsigned i = 0; i <= k->count; i++) {
            const struct follower *f = i > 0 ? &k->all[i - 1] : NULL;
            bool takes_part = f != NULL ? follower_has(f, class) && !f->is_out &&
                                              f->state == FOLLOWER_DONE
                                        : local_has(p->own, class);
            double good = (double)ctr_get(&ledger_sum(k->run.ledger, i, class)->good);
            double seconds = f != NULL ? f->elapsed_s : own->elapsed_s;
            qps[i] = takes_part ? result_ratio(good, seconds) : 0;
            if (takes_part && !(qps[i] > 0)) {
                fprintf(stderr,
                        "mcload: %s has had no answer: its capacity is not known\n",
                        f != NULL ? f->at.name : "the leader");
                return false;
            }
        }
        capacity_learn(p->capacity, class, qps);
    }
    return true;
}

/* The rate of a class. EXIT_INVALID: there is nobody who would send it; EXIT_USAGE: somebody
 * would get none. */
static enum exit_status
split_rate(const struct share_out_parts *p, unsigned class, double rate,
           struct share_out *own)
{
    struct followers *k = p->followers;
    double weights[SENDERS_MAX];
    uint64_t shares[SENDERS_MAX];
    bool is_good = true;
    if (weigh(p, class, weights) == 0) {
        return EXIT_INVALID;
    }
    split_by_weight((uint64_t)llround(rate), weights, k->count + 1, shares);
    for (unsigned i = 0; i <= k->count; i++) {
        is_good = is_good && (rate == 0 || weights[i] == 0 || shares[i] > 0);
    }
    for (unsigned i = 0; i < k->count; i++) {
        if (follower_has(&k->all[i], class)) {
            k->all[i].rates[class - k->all[i].first_class] = shares[i + 1];
        }
    }
    if (local_has(p->own, class)) {
        own->rates[class - p->own->first] = (double)shares[0];
    }
    return is_good ? EXIT_VALID : EXIT_USAGE;
}

/* Slices of traces, one behind the other, for all that send a class. */
static void
split_traces(const struct share_out_parts *p, unsigned class, struct share_out *own)
{
    struct followers *k = p->followers;
    double weights[SENDERS_MAX];
    uint64_t shares[SENDERS_MAX], at = 0;
    if (weigh(p, class, weights) == 0) {
        return;
    }
    split_by_weight(READER_ROUTES, weights, k->count + 1, shares);
    for (unsigned i = 0; i <= k->count; i++) {
        if (weights[i] > 0) {
            struct reader_slice *slice = i == 0 ? &own->slice : &k->all[i - 1].slice;
            *slice = (struct reader_slice){at, at + shares[i]};
        }
        at += shares[i];
    }
}

enum exit_status
share_out(const struct share_out_parts *p, const struct run_spec *spec,
          struct share_out *own)
{
    struct followers *k = p->followers;
    enum exit_status status = EXIT_VALID;
    for (unsigned i = 0; i < k->count; i++) {
        k->all[i].is_out = k->all[i].state == FOLLOWER_LOST;
        k->all[i].slice = (struct reader_slice){0, READER_ROUTES};
    }
    own->slice = spec->slice;
    for (unsigned i = 0; status == EXIT_VALID && i < p->options->classes_len; i++) {
        status = split_rate(p, i, share_out_rate(p->options, spec, i), own);
        split_traces(p, i, own);
    }
    if (status == EXIT_INVALID) {
        fputs("mcload: no agent is left\n", stderr);
    } else if (status == EXIT_USAGE) {
        fputs("mcload: the rate is too low to be shared out\n", stderr);
    }
    return status;
}
