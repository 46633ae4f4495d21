/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/share_out.h"

#include <math.h>

#define SENDERS_MAX (MESSAGE_AGENTS_MAX + 1)

bool
share_out_has_capacity(const struct options *o, unsigned class)
{
    const struct lclass *c = &o->classes[class];
    return o->split == SPLIT_CAPACITY && !c->is_measuring && !c->traffic.is_timed;
}

/* Who sends a class, and how much of it. Returns the sum. */
static double
weigh(const struct members *m, unsigned class, double weights[SENDERS_MAX])
{
    double sum = 0, most = 0; /* of what is known of each */
    for (unsigned i = 0; i < m->count; i++) {
        const struct member *k = &m->all[i];
        weights[i] = member_sends(k, class) ? (double)k->weight : 0;
        most = weights[i] > 0 ? fmax(most, k->capacities[class]) : most;
    }
    for (unsigned i = 0; i < m->count; i++) {
        bool is_known = most > 0 && weights[i] > 0;
        weights[i] = is_known ? m->all[i].capacities[class] / most : weights[i];
        sum += weights[i];
    }
    return sum;
}

bool
share_out_learn(struct members *m, const struct run_spec *spec)
{
    const struct options *o = m->options;
    for (unsigned class = 0; class < o->classes_len; class ++) {
        if (!share_out_has_capacity(o, class) || run_spec_rate(o, spec, class) > 0) {
            continue;
        }
        for (unsigned i = 0; i < m->count; i++) {
            struct member *k = &m->all[i];
            bool takes_part = member_sends(k, class) && k->state == MEMBER_DONE;
            double good = (double)ctr_get(&ledger_sum(m->run.ledger, i, class)->good);
            k->capacities[class] = takes_part ? result_ratio(good, k->elapsed_s) : 0;
            if (takes_part && !(k->capacities[class] > 0)) {
                fprintf(stderr,
                        "mcload: %s%s has had no answer: its capacity is not known\n",
                        i == 0 ? "the " : "", k->at.name);
                return false;
            }
        }
        m->knows_capacity[class] = true;
    }
    return true;
}

/* The rate of a class, and slices of traces, one behind the other. EXIT_INVALID: there is nobody
 * who would send it; EXIT_USAGE: somebody would get none. */
static enum exit_status
share_class(struct members *m, unsigned class, double rate)
{
    double weights[SENDERS_MAX];
    uint64_t shares[SENDERS_MAX], slices[SENDERS_MAX], at = 0;
    bool is_good = true;
    if (weigh(m, class, weights) == 0) {
        return EXIT_INVALID;
    }
    split_by_weight((uint64_t)llround(rate), weights, m->count, shares);
    split_by_weight(READER_ROUTES, weights, m->count, slices);
    for (unsigned i = 0; i < m->count; at += slices[i], i++) {
        struct member *k = &m->all[i];
        is_good = is_good && (rate == 0 || weights[i] == 0 || shares[i] > 0);
        if (member_has(k, class)) {
            k->rates[class - k->first_class] = shares[i];
        }
        if (weights[i] > 0) {
            k->slice = (struct reader_slice){at, at + slices[i]};
        }
    }
    return is_good ? EXIT_VALID : EXIT_USAGE;
}

enum exit_status
share_out(struct members *m, const struct run_spec *spec)
{
    const struct options *o = m->options;
    enum exit_status status = EXIT_VALID;
    for (unsigned i = 0; i < m->count; i++) {
        m->all[i].is_out = m->all[i].state == MEMBER_LOST;
        m->all[i].slice = (struct reader_slice){0, READER_ROUTES};
    }
    for (unsigned i = 0; status == EXIT_VALID && i < o->classes_len; i++) {
        status = share_class(m, i, run_spec_rate(o, spec, i));
    }
    return status == EXIT_INVALID ? options_fail(stderr, status, "no agent is left")
           : status == EXIT_USAGE
               ? options_fail(stderr, status, "the rate is too low to be shared out")
               : status;
}

/* ---- split ------------------------------------------------------------------------- */

/* The part with the largest remainder that has not been given one more yet. */
static unsigned
largest(const double *rest, unsigned parts)
{
    unsigned best = 0;
    for (unsigned i = 1; i < parts; i++) {
        best = rest[i] > rest[best] ? i : best;
    }
    return best;
}

void
split_by_weight(uint64_t total, const double *weights, unsigned parts, uint64_t *shares)
{
    double rest[SPLIT_PARTS_MAX], sum = 0;
    uint64_t given = 0;
    must(parts > 0 && parts <= SPLIT_PARTS_MAX);
    for (unsigned i = 0; i < parts; i++) {
        must(weights[i] >= 0 && weights[i] <= SPLIT_WEIGHT_MAX);
        sum += weights[i];
    }
    must(sum > 0);
    for (unsigned i = 0; i < parts; i++) {
        double share = (double)total * (weights[i] / sum);
        uint64_t whole = (uint64_t)floor(share);
        /* Rounding may take a share beyond what is left. */
        shares[i] = whole < total - given ? whole : total - given;
        rest[i] = weights[i] > 0 ? share - (double)shares[i] : -1;
        given += shares[i];
    }
    /* Less than one for each part is left, unless the total is beyond a double's digits. */
    while (given < total) {
        unsigned i = largest(rest, parts);
        shares[i]++;
        rest[i] -= 1;
        given++;
    }
}
