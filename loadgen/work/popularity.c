/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Zipf: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
 * monotone discrete distributions", ACM TOMACS 6(3), 1996. With H the integral of
 * x^-exponent, u is drawn uniformly between H(1.5) - 1 and H(n + 0.5) and inverted; the
 * nearest whole number is accepted when u falls into the part of its cell that the true
 * probability fills. No table, any exponent.
 */
#include "loadgen/work/popularity.h"

#include <math.h>

#include "loadgen/work/dist.h"
#include "loadgen/work/form.h"

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

static void
zipf_init(struct zipf *z, uint64_t n)
{
    double e = z->exponent;
    z->n = n;
    z->h_first = h_integral(e, 1.5) - 1;
    z->h_last = h_integral(e, (double)n + 0.5);
    z->shortcut = 2 - h_inverse(e, h_integral(e, 2.5) - h_density(e, 2));
}

static uint64_t
zipf_rank(const struct zipf *z, struct rng *rng)
{
    for (;;) {
        double u = z->h_last + rng_unit(rng) * (z->h_first - z->h_last);
        double x = h_inverse(z->exponent, u);
        double k = fmin(fmax(round(x), 1), (double)z->n);
        if (k - x <= z->shortcut ||
            u >= h_integral(z->exponent, k + 0.5) - h_density(z->exponent, k)) {
            return (uint64_t)k;
        }
    }
}

/* ---- texts ---------------------------------------------------------------------------- */

#define LATEST_EXPONENT 0.99
#define NORMAL_SD 0.1

static const char *
make_plain(void *into, const struct form_args *a)
{
    struct popularity *p = into;
    p->law = (enum popularity_law)a->form->kind;
    p->is_ordered = true;
    return NULL;
}

/* Of "zipf" keys of neighbouring ranks lie apart. */
static const char *
make_zipf(void *into, const struct form_args *a)
{
    struct popularity *p = into;
    p->law = (enum popularity_law)a->form->kind;
    p->is_ordered = strcmp(a->form->name, "zipf") != 0;
    p->zipf.exponent = a->count > 0 ? a->value[0] : LATEST_EXPONENT;
    return NULL;
}

static const char *
make_hotset(void *into, const struct form_args *a)
{
    struct popularity *p = into;
    if (a->value[0] >= 1 && a->value[1] < 1) {
        return "all keys are hot, so all requests are theirs: hotset:1:1, or a share of "
               "keys below 1";
    }
    p->law = POPULARITY_HOTSET;
    p->points[0] = (struct popularity_point){a->value[0], a->value[1]};
    p->points[1] = (struct popularity_point){1, 1};
    p->points_len = 2;
    return NULL;
}

static const char *
make_normal(void *into, const struct form_args *a)
{
    struct popularity *p = into;
    p->law = POPULARITY_NORMAL;
    p->sd = a->count > 0 ? a->value[0] : NORMAL_SD;
    return NULL;
}

static const char *
parse_points(struct popularity *p, const char *path)
{
    struct numfile f;
    const char *wrong = numfile_read(&f, path);
    if (wrong != NULL) {
        return wrong;
    }
    struct popularity_point last = {0, 0};
    p->law = POPULARITY_POINTS;
    if (f.columns != 2 || f.rows > POPULARITY_POINTS_MAX) {
        wrong =
            "a popularity is up to 64 lines of a share of keys and a share of requests";
    }
    for (size_t i = 0; wrong == NULL && i < f.rows; i++) {
        struct popularity_point point = {f.values[2 * i], f.values[2 * i + 1]};
        if (point.keys <= last.keys || point.requests < last.requests || point.keys > 1 ||
            point.requests > 1) {
            wrong = "the shares of a popularity must rise, up to 1";
        }
        p->points[p->points_len++] = last = point;
    }
    if (wrong == NULL && (last.keys < 1 || last.requests < 1)) {
        wrong = "the last line of a popularity must be 1 1";
    }
    numfile_fini(&f);
    return wrong;
}

/* The ETC pool (B. Atikoglu et al., SIGMETRICS 2012): a hundredth of the keys gets 55 % of
 * the requests, a tenth 90 %, half of them 99 %. No law of Zipf goes through these points; the
 * exponent is the one that has the first of them among a million keys. */
static const char *
make_etc(void *into, const struct form_args *a)
{
    static const struct popularity_point points[] = {
        {.01, .55}, {.10, .90}, {.50, .99}, {1, 1}};
    struct popularity *p = into;
    (void)a;
    p->law = POPULARITY_POINTS;
    memcpy(p->points, points, sizeof points);
    p->points_len = sizeof points / sizeof points[0];
    p->zipf.exponent = 0.92;
    return NULL;
}

#define EXPONENT_USAGE "the exponent must be between 0 and 20"

/* clang-format off */
static const struct form forms[] = {
    {"uniform", 0, {FORM_NONE}, make_plain, POPULARITY_UNIFORM, NULL},
    {"seq", 0, {FORM_NONE}, make_plain, POPULARITY_SEQ, NULL},
    {"zipf", 1, {FORM_EXPONENT}, make_zipf, POPULARITY_ZIPF, EXPONENT_USAGE},
    {"zipf-ordered", 1, {FORM_EXPONENT}, make_zipf, POPULARITY_ZIPF, EXPONENT_USAGE},
    {"latest", 0, {FORM_EXPONENT}, make_zipf, POPULARITY_LATEST, EXPONENT_USAGE},
    {"hotset", 2, {FORM_SHARE_ABOVE, FORM_SHARE_ABOVE}, make_hotset, 0,
     "hotset takes KEYS:REQUESTS, shares above 0 and up to 1"},
    {"normal", 0, {FORM_SHARE_ABOVE}, make_normal, 0,
     "the deviation is a share of the keys, above 0 and up to 1"},
    {"etc", 0, {FORM_NONE}, make_etc, 0, NULL},
};
/* clang-format on */
static const struct form_table laws =
    FORM_TABLE(forms, ':',
               "popularity is uniform, zipf:EXPONENT, zipf-ordered:EXPONENT, latest, "
               "hotset:KEYS:REQUESTS, normal, seq, etc or cdf:FILE");

const char *
popularity_parse(void *popularity, const char *text)
{
    struct popularity *p = popularity;
    size_t len = strlen(text);
    *p = (struct popularity){.law = POPULARITY_UNIFORM};
    return form_take(&text, &len, "cdf:") ? parse_points(p, text)
                                          : form_parse(&laws, p, text, len);
}

/* ---- ranks ---------------------------------------------------------------------------- */

/* How many of the keys belong to the first `share` of them. */
static uint64_t
keys_of(const struct popularity *p, double share)
{
    uint64_t n = (uint64_t)(share * (double)p->keys + 0.5);
    return n < p->keys ? n : p->keys;
}

void
popularity_init(struct popularity *p, uint64_t keys)
{
    must(keys > 0 && keys <= POPULARITY_KEYS_MAX);
    p->keys = keys;
    uint64_t n = p->law == POPULARITY_POINTS ? keys_of(p, p->points[0].keys) : keys;
    zipf_init(&p->zipf, n > 0 ? n : 1);
    p->half_bits = 1;
    while (p->half_bits < 32 && UINT64_C(1) << (2 * p->half_bits) < keys) {
        p->half_bits++;
    }
}

static uint64_t
points_rank(const struct popularity *p, struct rng *rng)
{
    double u = rng_unit(rng);
    unsigned i = 0;
    while (i + 1 < p->points_len && u >= p->points[i].requests) {
        i++;
    }
    uint64_t begin = i > 0 ? keys_of(p, p->points[i - 1].keys) : 0;
    uint64_t end = keys_of(p, p->points[i].keys);
    if (end == begin) { /* so few keys that the part has none: its neighbour */
        return end < p->keys ? end + 1 : p->keys;
    }
    if (i == 0 && p->zipf.exponent > 0) {
        return zipf_rank(&p->zipf, rng);
    }
    return begin + 1 + rng_below(rng, end - begin);
}

static uint64_t
normal_rank(const struct popularity *p, struct rng *rng)
{
    /* The part of the half law that lies within the keys. */
    double within = erf(1 / (p->sd * M_SQRT2));
    double z = dist_normal_quantile(0.5 + rng_unit(rng) * within / 2);
    uint64_t rank = 1 + (uint64_t)(z * p->sd * (double)p->keys);
    return rank < p->keys ? rank : p->keys;
}

uint64_t
popularity_rank(const struct popularity *p, struct rng *rng)
{
    switch (p->law) {
    case POPULARITY_UNIFORM:
    case POPULARITY_SEQ:
        return 1 + rng_below(rng, p->keys);
    case POPULARITY_ZIPF:
    case POPULARITY_LATEST:
        return zipf_rank(&p->zipf, rng);
    case POPULARITY_HOTSET:
    case POPULARITY_POINTS:
        return points_rank(p, rng);
    case POPULARITY_NORMAL:
        return normal_rank(p, rng);
    }
    unreachable();
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
popularity_key_of(const struct popularity *p, uint64_t rank)
{
    must(rank >= 1 && rank <= p->keys);
    if (p->law == POPULARITY_LATEST) {
        return p->keys - rank;
    }
    /* Where all are alike it does not matter which is which. */
    bool is_scattered = !p->is_ordered && p->law != POPULARITY_UNIFORM;
    return is_scattered ? popularity_scatter(p, rank - 1) : rank - 1;
}
