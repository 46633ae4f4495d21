/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Zipf: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
 * monotone discrete distributions", ACM TOMACS 6(3), 1996. With H the integral of
 * x^-exponent, u is drawn uniformly between H(1.5) - 1 and H(n + 0.5) and inverted; the
 * nearest whole number is accepted when u falls into the part of its cell that the true
 * probability fills. No table, any exponent.
 */
#include "loadgen/popularity.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

/* Fixed, not the run's seed: clients with different seeds must agree on the hot keys. */
#define SCATTER_SEED UINT64_C(0x6d636c6f61642d31)
#define SCATTER_ROUNDS 4

/* (exp(t) - 1) / t and log(1 + t) / t, also at 0. */
static double
expm1_over(double t)
{
    return fabs(t) > 1e-8 ? expm1(t) / t : 1 + t / 2;
}

static double
log1p_over(double t)
{
    return fabs(t) > 1e-8 ? log1p(t) / t : 1 - t / 2;
}

/* (x^(1-e) - 1) / (1-e), which is log(x) for e = 1. */
static double
h_integral(double exponent, double x)
{
    double log_x = log(x);
    return expm1_over((1 - exponent) * log_x) * log_x;
}

static double
h_inverse(double exponent, double y)
{
    double t = y * (1 - exponent);
    if (t < -1) {
        t = -1; /* rounding, at the far end of large exponents */
    }
    return exp(log1p_over(t) * y);
}

static double
h_density(double exponent, double x)
{
    return exp(-exponent * log(x));
}

const char *
popularity_parse(struct popularity *p, const char *text)
{
    static const char zipf[] = "zipf:";
    *p = (struct popularity){.law = POPULARITY_UNIFORM};
    if (strcmp(text, "uniform") == 0) {
        return NULL;
    }
    size_t n = sizeof zipf - 1;
    if (strncmp(text, zipf, n) != 0) {
        return "popularity is uniform or zipf:EXPONENT";
    }
    p->law = POPULARITY_ZIPF;
    if (!num_double(text + n, strlen(text + n), &p->exponent) || p->exponent < 0 ||
        p->exponent > ZIPF_EXPONENT_MAX) {
        return "the exponent of zipf must be between 0 and 20";
    }
    return NULL;
}

void
popularity_init(struct popularity *p, uint64_t keys)
{
    must(keys > 0);
    double e = p->exponent;
    p->keys = keys;
    p->h_first = h_integral(e, 1.5) - 1;
    p->h_last = h_integral(e, (double)keys + 0.5);
    p->shortcut = 2 - h_inverse(e, h_integral(e, 2.5) - h_density(e, 2));
    p->half_bits = 1;
    while (p->half_bits < 32 && UINT64_C(1) << (2 * p->half_bits) < keys) {
        p->half_bits++;
    }
}

static uint64_t
zipf_rank(const struct popularity *p, struct rng *rng)
{
    for (;;) {
        double u = p->h_last + rng_unit(rng) * (p->h_first - p->h_last);
        double x = h_inverse(p->exponent, u);
        double k = fmin(fmax(round(x), 1), (double)p->keys);
        if (k - x <= p->shortcut ||
            u >= h_integral(p->exponent, k + 0.5) - h_density(p->exponent, k)) {
            return (uint64_t)k;
        }
    }
}

uint64_t
popularity_rank(const struct popularity *p, struct rng *rng)
{
    return p->law == POPULARITY_ZIPF ? zipf_rank(p, rng) : 1 + rng_below(rng, p->keys);
}

/* A balanced Feistel network: a bijection of [0, 2^(2 * half_bits)). */
static uint64_t
feistel(unsigned half_bits, uint64_t value)
{
    uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;
    for (unsigned round = 0; round < SCATTER_ROUNDS; round++) {
        uint64_t next = left ^ (rng_mix(SCATTER_SEED, right, round) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* Results beyond the keys are fed back until one lies within (cycle walking): still a
 * bijection, and on average fewer than four steps. */
uint64_t
popularity_scatter(const struct popularity *p, uint64_t rank0)
{
    must(rank0 < p->keys);
    uint64_t key = rank0;
    do {
        key = feistel(p->half_bits, key);
    } while (key >= p->keys);
    return key;
}

uint64_t
popularity_key(const struct popularity *p, struct rng *rng)
{
    if (p->law == POPULARITY_UNIFORM) {
        return rng_below(rng, p->keys);
    }
    return popularity_scatter(p, zipf_rank(p, rng) - 1);
}
