/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/cpushare.h"

#include "qos/limit.h"

#define GAIN 0.35
#define CHANGE_MOST 2.0  /* in one step, either way */
#define CHANGE_PARTS 200 /* that it moves by at least: half a percent */

void
cpushare_set(struct cpushare *c, unsigned percent)
{
    bool goes_on = c->percent != 0 && percent != 0;
    c->percent = percent;
    if (!goes_on) {
        c->rate = 0;
        c->given = 0;
        c->at = 0;
    }
}

/* The rate that would have used what was to be used. */
static double
rate_for(const struct cpushare *c, double seconds, double cpu_seconds, double requests)
{
    double target = c->percent / 100.0;
    double used = cpu_seconds / seconds;
    double rate = requests / seconds;
    if (used <= 0 || requests < 1) {
        /* Nothing was served: either no request came, or the target leaves no room. */
        return used > target ? CPUSHARE_RATE_LEAST : c->rate;
    }
    return rate * target / used;
}

uint64_t
cpushare_step(struct cpushare *c, nsec_t now, nsec_t cpu_ns, uint64_t requests)
{
    bool is_first = c->at == 0;
    bool is_sane = now > c->at && cpu_ns >= c->cpu_ns && requests >= c->requests;
    double seconds = (double)(now - c->at) / (double)NSEC_PER_SEC;
    double cpu_seconds = (double)(cpu_ns - c->cpu_ns) / (double)NSEC_PER_SEC;
    double served = (double)(requests - c->requests);
    c->at = now;
    c->cpu_ns = cpu_ns;
    c->requests = requests;
    if (c->percent == 0 || is_first || !is_sane) {
        return c->given;
    }
    double wanted = rate_for(c, seconds, cpu_seconds, served);
    if (c->rate == 0) {
        c->rate = wanted;
    } else {
        double most = c->rate * CHANGE_MOST, least = c->rate / CHANGE_MOST;
        wanted = wanted > most ? most : wanted < least ? least : wanted;
        c->rate += GAIN * (wanted - c->rate);
    }
    if (c->rate != 0 && c->rate < CPUSHARE_RATE_LEAST) {
        c->rate = CPUSHARE_RATE_LEAST;
    }
    if (c->rate > (double)LIMIT_RATE_MAX) {
        c->rate = (double)LIMIT_RATE_MAX;
    }
    uint64_t rate = (uint64_t)c->rate;
    uint64_t change = rate > c->given ? rate - c->given : c->given - rate;
    c->given = change > c->given / CHANGE_PARTS ? rate : c->given;
    return c->given;
}
