/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/dist.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/num.h"

#define PARAMS_MAX 3
#define SHAPE_TINY 1e-9 /* below it a shape of 0 is meant: the formulae's limit */

/* Generalized extreme value and Pareto parameters of the ETC pool. */
static const struct dist fb_key = {DIST_GEV, 30.7984, 8.20449, 0.078688};
static const struct dist fb_value_tail = {DIST_PARETO, 15, 214.476, 0.348238};
#define FB_IA_SHAPE 0.154971

/* Shares of the value sizes 0 to 14 bytes; larger ones follow fb_value_tail. */
static const double fb_value_head[] = {
    .00536, .00047, .17820, .09239, .00018, .02740, .00065, .00606,
    .00023, .00837, .00837, .08989, .00092, .00326, .01980,
};
#define FB_VALUE_HEAD_LEN (sizeof fb_value_head / sizeof fb_value_head[0])

struct params {
    double value[PARAMS_MAX];
    unsigned count;
};

/* Splits "name:1,2,3". False when a parameter is not a number or there are too many. */
static bool
split(const char *text, size_t *name_len, struct params *params)
{
    const char *colon = strchr(text, ':');
    params->count = 0;
    *name_len = colon != NULL ? (size_t)(colon - text) : strlen(text);
    for (const char *p = colon != NULL ? colon + 1 : NULL; p != NULL;) {
        const char *comma = strchr(p, ',');
        size_t len = comma != NULL ? (size_t)(comma - p) : strlen(p);
        if (params->count == PARAMS_MAX ||
            !num_double(p, len, &params->value[params->count++])) {
            return false;
        }
        p = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

static bool
is_name(const char *text, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(text, name, len) == 0;
}

static const char *
size_fixed(struct dist *d, const struct params *p)
{
    if (p->count != 1 || p->value[0] < 0) {
        return "fixed takes one size";
    }
    *d = (struct dist){DIST_FIXED, p->value[0], 0, 0};
    return NULL;
}

static const char *
size_uniform(struct dist *d, const struct params *p)
{
    double low = p->count == 2 ? p->value[0] : 0;
    double high = p->count == 2 ? p->value[1] : p->value[0];
    if (p->count < 1 || p->count > 2 || low < 0 || high < low) {
        return "uniform takes MAX or MIN,MAX";
    }
    *d = (struct dist){DIST_UNIFORM, low, high, 0};
    return NULL;
}

static const char *
size_exponential(struct dist *d, const struct params *p)
{
    if (p->count != 1 || p->value[0] <= 0) {
        return "exponential takes a rate above 0 (the mean size is 1/rate)";
    }
    *d = (struct dist){DIST_EXPONENTIAL, 1 / p->value[0], 0, 0};
    return NULL;
}

static const char *
size_normal(struct dist *d, const struct params *p)
{
    if (p->count != 2 || p->value[0] < 0 || p->value[1] < 0) {
        return "normal takes MEAN,SD";
    }
    *d = (struct dist){DIST_NORMAL, p->value[0], p->value[1], 0};
    return NULL;
}

static const char *
size_pareto(struct dist *d, const struct params *p)
{
    if (p->count != 3 || p->value[1] <= 0) {
        return "pareto takes LOCATION,SCALE,SHAPE";
    }
    *d = (struct dist){DIST_PARETO, p->value[0], p->value[1], p->value[2]};
    return NULL;
}

static const char *
size_gev(struct dist *d, const struct params *p)
{
    if (p->count != 3 || p->value[1] <= 0) {
        return "gev takes LOCATION,SCALE,SHAPE";
    }
    *d = (struct dist){DIST_GEV, p->value[0], p->value[1], p->value[2]};
    return NULL;
}

static const char *
size_fb_key(struct dist *d, const struct params *p)
{
    *d = fb_key;
    return p->count == 0 ? NULL : "fb_key takes no parameter";
}

static const char *
size_fb_value(struct dist *d, const struct params *p)
{
    *d = (struct dist){.kind = DIST_FB_VALUE};
    return p->count == 0 ? NULL : "fb_value takes no parameter";
}

static const char *
gap_fixed(struct dist *d, const struct params *p)
{
    (void)p; /* the rate replaces it */
    *d = (struct dist){DIST_FIXED, 1, 0, 0};
    return NULL;
}

static const char *
gap_uniform(struct dist *d, const struct params *p)
{
    (void)p;
    *d = (struct dist){DIST_UNIFORM, 0, 2, 0};
    return NULL;
}

static const char *
gap_exponential(struct dist *d, const struct params *p)
{
    (void)p;
    *d = (struct dist){DIST_EXPONENTIAL, 1, 0, 0};
    return NULL;
}

static const char *
gap_normal(struct dist *d, const struct params *p)
{
    double cv = 0.1;
    if (p->count == 1) {
        cv = p->value[0];
    } else if (p->count == 2 && p->value[0] > 0) {
        cv = p->value[1] / p->value[0];
    } else if (p->count != 0) {
        return "normal takes CV, the ratio of deviation to mean, or MEAN,SD";
    }
    if (cv < 0 || cv > 10) {
        return "the ratio of deviation to mean must be between 0 and 10";
    }
    /* Gaps below 0 become 0, which lengthens the mean; scale so that it stays 1. */
    double mean = 1;
    if (cv > 0) {
        double z = 1 / cv;
        mean = 0.5 * erfc(-z / M_SQRT2) + cv * exp(-z * z / 2) / sqrt(2 * M_PI);
    }
    *d = (struct dist){DIST_NORMAL, 1 / mean, cv / mean, 0};
    return NULL;
}

static const char *
gap_pareto(struct dist *d, const struct params *p)
{
    double shape = p->count == 0 ? FB_IA_SHAPE : p->value[p->count - 1];
    if (p->count != 0 && p->count != 1 && p->count != 3) {
        return "pareto takes SHAPE or LOCATION,SCALE,SHAPE";
    }
    if (shape >= 1) {
        return "a pareto shape of 1 or more has no mean";
    }
    *d = (struct dist){DIST_PARETO, 0, 1 - shape, shape};
    return NULL;
}

static const char *
gap_fb_ia(struct dist *d, const struct params *p)
{
    return p->count == 0 ? gap_pareto(d, p) : "fb_ia takes no parameter";
}

struct dist_name {
    const char *name;
    const char *(*build)(struct dist *d, const struct params *p);
};

static const struct dist_name size_names[] = {
    {"fixed", size_fixed},
    {"uniform", size_uniform},
    {"exponential", size_exponential},
    {"normal", size_normal},
    {"pareto", size_pareto},
    {"gev", size_gev},
    {"fb_key", size_fb_key},
    {"fb_value", size_fb_value},
};

static const struct dist_name gap_names[] = {
    {"fixed", gap_fixed},   {"uniform", gap_uniform}, {"exponential", gap_exponential},
    {"normal", gap_normal}, {"pareto", gap_pareto},   {"fb_ia", gap_fb_ia},
};

static const char *
parse(struct dist *d, const char *text, const struct dist_name *names, size_t count)
{
    struct params params;
    size_t name_len;
    if (!split(text, &name_len, &params)) {
        return "a parameter of the distribution is not a number";
    }
    for (size_t i = 0; i < count; i++) {
        if (is_name(text, name_len, names[i].name)) {
            return names[i].build(d, &params);
        }
    }
    return "unknown distribution";
}

const char *
dist_parse_size(struct dist *d, const char *text)
{
    struct params plain = {.count = 1};
    if (num_double(text, strlen(text), &plain.value[0])) {
        return size_fixed(d, &plain);
    }
    return parse(d, text, size_names, sizeof size_names / sizeof size_names[0]);
}

const char *
dist_parse_gap(struct dist *d, const char *text)
{
    return parse(d, text, gap_names, sizeof gap_names / sizeof gap_names[0]);
}

static double
pareto_value(const struct dist *d, double u)
{
    if (fabs(d->c) < SHAPE_TINY) {
        return d->a - d->b * log(u);
    }
    return d->a + d->b * (pow(u, -d->c) - 1) / d->c;
}

static double
gev_value(const struct dist *d, double u)
{
    if (fabs(d->c) < SHAPE_TINY) {
        return d->a - d->b * log(-log(u));
    }
    return d->a + d->b * (pow(-log(u), -d->c) - 1) / d->c;
}

static double
normal_value(const struct dist *d, double u, double v)
{
    double z = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
    return fmax(0, d->a + d->b * z);
}

static double
fb_value(double u)
{
    double below = 0;
    for (size_t i = 0; i < FB_VALUE_HEAD_LEN; i++) {
        below += fb_value_head[i];
        if (u < below) {
            return (double)i;
        }
    }
    /* What is left of u is uniform on its own range: stretched, it is a fresh one. */
    return pareto_value(&fb_value_tail, (1 - u) / (1 - below));
}

double
dist_value(const struct dist *d, double u, double v)
{
    switch (d->kind) {
    case DIST_FIXED:
        return d->a;
    case DIST_UNIFORM:
        return d->a + (d->b - d->a) * u;
    case DIST_EXPONENTIAL:
        return -log(u) * d->a;
    case DIST_NORMAL:
        return normal_value(d, u, v);
    case DIST_PARETO:
        return pareto_value(d, u);
    case DIST_GEV:
        return gev_value(d, u);
    case DIST_FB_VALUE:
        return fb_value(u);
    }
    unreachable();
}

uint64_t
dist_size(const struct dist *d, double u, double v, uint64_t min, uint64_t max)
{
    double value = dist_value(d, u, v);
    if (!(value > (double)min)) {
        return min;
    }
    return value >= (double)max ? max : (uint64_t)(value + 0.5);
}

uint64_t
dist_size_max(const struct dist *d, uint64_t min, uint64_t max)
{
    switch (d->kind) {
    case DIST_FIXED:
        return dist_size(d, 0.5, 0.5, min, max);
    case DIST_UNIFORM:
        return dist_size(&(struct dist){DIST_FIXED, d->b, 0, 0}, 0.5, 0.5, min, max);
    default:
        return max;
    }
}
