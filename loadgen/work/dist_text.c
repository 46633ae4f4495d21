/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Laws from their texts.
 */
#include "loadgen/work/dist_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/numfile.h"

#define PIECES_MAX 4096 /* in a text; a file may have more */
#define PERCENT_MAX 100
#define MIX_MAX 8
#define NO_MEMORY "out of memory for a distribution"

/* Generalized extreme value and Pareto parameters of the ETC pool (B. Atikoglu et al.,
 * "Workload analysis of a large-scale key-value store", SIGMETRICS 2012). */
static const struct dist fb_key = {DIST_GEV, 30.7984, 8.20449, 0.078688, NULL};
static const struct dist fb_value_tail = {DIST_PARETO, 15, 214.476, 0.348238, NULL};

static const struct dist fb_ia = {DIST_PARETO, 0, 16.0292, 0.154971, NULL};

/* Shares of the value sizes 0 to 14 bytes; larger ones follow fb_value_tail. */
static const double fb_value_head[] = {
    .00536, .00047, .17820, .09239, .00018, .02740, .00065, .00606,
    .00023, .00837, .00837, .08989, .00092, .00326, .01980,
};
#define FB_VALUE_HEAD_LEN (sizeof fb_value_head / sizeof fb_value_head[0])

bool
dist_split(const char *text, size_t len, size_t *name_len, struct dist_params *params)
{
    const char *end = text + len;
    const char *colon = memchr(text, ':', len);
    params->count = 0;
    *name_len = colon != NULL ? (size_t)(colon - text) : len;
    for (const char *p = colon != NULL ? colon + 1 : NULL; p != NULL;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t n = (size_t)((comma != NULL ? comma : end) - p);
        if (params->count == DIST_PARAMS_MAX ||
            !num_double(p, n, &params->value[params->count++])) {
            return false;
        }
        p = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

bool
dist_is_name(const char *text, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(text, name, len) == 0;
}

/* ---- laws with a few parameters ------------------------------------------------------- */

static const char *
build_fixed(struct dist *d, const struct dist_params *p)
{
    if (p->count != 1 || p->value[0] < 0) {
        return "fixed takes one number";
    }
    *d = dist_fixed(p->value[0]);
    return NULL;
}

static const char *
build_uniform(struct dist *d, const struct dist_params *p)
{
    double low = p->count == 2 ? p->value[0] : 0;
    double high = p->count == 2 ? p->value[1] : p->value[0];
    if (p->count < 1 || p->count > 2 || low < 0 || high < low) {
        return "uniform takes MAX or MIN,MAX";
    }
    *d = (struct dist){DIST_UNIFORM, low, high, 0, NULL};
    return NULL;
}

static const char *
build_exponential(struct dist *d, const struct dist_params *p)
{
    if (p->count != 1 || p->value[0] <= 0) {
        return "exponential takes a rate above 0 (the mean is 1/rate)";
    }
    *d = (struct dist){DIST_EXPONENTIAL, 1 / p->value[0], 0, 0, NULL};
    return NULL;
}

static const char *
build_normal(struct dist *d, const struct dist_params *p)
{
    if (p->count != 2 || p->value[0] < 0 || p->value[1] < 0) {
        return "normal takes MEAN,SD";
    }
    *d = (struct dist){DIST_NORMAL, p->value[0], p->value[1], 0, NULL};
    return NULL;
}

static const char *
build_lognormal(struct dist *d, const struct dist_params *p)
{
    if (p->count != 2 || p->value[1] < 0) {
        return "lognormal takes MU,SIGMA, mean and deviation of the logarithm";
    }
    *d = (struct dist){DIST_LOGNORMAL, p->value[0], p->value[1], 0, NULL};
    return NULL;
}

static const char *
build_lognormal_mean(struct dist *d, const struct dist_params *p)
{
    if (p->count != 2 || p->value[0] <= 0 || p->value[1] < 0) {
        return "lognormal_mean takes MEAN,SIGMA";
    }
    double mu = log(p->value[0]) - p->value[1] * p->value[1] / 2;
    *d = (struct dist){DIST_LOGNORMAL, mu, p->value[1], 0, NULL};
    return NULL;
}

static const char *
build_weibull(struct dist *d, const struct dist_params *p)
{
    if (p->count != 2 || p->value[0] <= 0 || p->value[1] <= 0) {
        return "weibull takes SCALE,SHAPE, both above 0";
    }
    *d = (struct dist){DIST_WEIBULL, p->value[0], p->value[1], 0, NULL};
    return NULL;
}

static const char *
build_pareto(struct dist *d, const struct dist_params *p)
{
    if (p->count != 3 || p->value[0] < 0 || p->value[1] <= 0) {
        return "pareto takes LOCATION,SCALE,SHAPE";
    }
    *d = (struct dist){DIST_PARETO, p->value[0], p->value[1], p->value[2], NULL};
    return NULL;
}

static const char *
build_gev(struct dist *d, const struct dist_params *p)
{
    if (p->count != 3 || p->value[1] <= 0) {
        return "gev takes LOCATION,SCALE,SHAPE";
    }
    *d = (struct dist){DIST_GEV, p->value[0], p->value[1], p->value[2], NULL};
    return NULL;
}

static const char *
build_fb_key(struct dist *d, const struct dist_params *p)
{
    *d = fb_key;
    return p->count == 0 ? NULL : "fb_key takes no parameter";
}

static const char *
build_fb_ia(struct dist *d, const struct dist_params *p)
{
    *d = fb_ia;
    return p->count == 0 ? NULL : "fb_ia takes no parameter";
}

static const char *
build_fb_value(struct dist *d, const struct dist_params *p)
{
    struct dist_piece pieces[FB_VALUE_HEAD_LEN + 1];
    double head = 0;
    if (p->count != 0) {
        return "fb_value takes no parameter";
    }
    for (size_t i = 0; i < FB_VALUE_HEAD_LEN; i++) {
        pieces[i] = (struct dist_piece){fb_value_head[i], dist_fixed((double)i)};
        head += fb_value_head[i];
    }
    pieces[FB_VALUE_HEAD_LEN] = (struct dist_piece){1 - head, fb_value_tail};
    return dist_of_pieces(d, pieces, FB_VALUE_HEAD_LEN + 1) ? NULL : NO_MEMORY;
}

static const char *
build_bimodal(struct dist *d, const struct dist_params *p)
{
    if (p->count != 3 || p->value[0] < 0 || p->value[0] > 1 || p->value[1] < 0 ||
        p->value[2] < 0) {
        return "bimodal takes SHARE,SIZE,SIZE: the share of the first, and both";
    }
    struct dist_piece pieces[] = {{p->value[0], dist_fixed(p->value[1])},
                                  {1 - p->value[0], dist_fixed(p->value[2])}};
    return dist_of_pieces(d, pieces, 2) ? NULL : NO_MEMORY;
}

static const struct {
    const char *name;
    const char *(*build)(struct dist *d, const struct dist_params *p);
} laws[] = {
    {"fixed", build_fixed},     {"uniform", build_uniform},
    {"normal", build_normal},   {"exponential", build_exponential},
    {"gev", build_gev},         {"lognormal", build_lognormal},
    {"pareto", build_pareto},   {"weibull", build_weibull},
    {"fb_key", build_fb_key},   {"fb_value", build_fb_value},
    {"fb_ia", build_fb_ia},     {"lognormal_mean", build_lognormal_mean},
    {"bimodal", build_bimodal},
};

static const char *
parse_simple(struct dist *d, const char *text, size_t len)
{
    struct dist_params params = {.count = 1};
    size_t name_len;
    if (num_double(text, len, &params.value[0])) {
        return build_fixed(d, &params);
    }
    if (!dist_split(text, len, &name_len, &params)) {
        return "a parameter of the distribution is not a number";
    }
    for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++) {
        if (dist_is_name(text, name_len, laws[i].name)) {
            return laws[i].build(d, &params);
        }
    }
    return "unknown distribution";
}

/* ---- tables --------------------------------------------------------------------------- */

struct pairs {
    double *first, *second;
    unsigned count;
};

static const char *
discrete_of(struct dist *d, const struct pairs *t)
{
    double sum = 0;
    struct dist_piece *pieces = calloc(t->count, sizeof *pieces);
    const char *wrong = pieces == NULL ? NO_MEMORY : NULL;
    for (unsigned i = 0; wrong == NULL && i < t->count; i++) {
        if (t->first[i] < 0 || t->second[i] < 0) {
            wrong = "values and their weights cannot be below 0";
        }
        pieces[i] = (struct dist_piece){t->second[i], dist_fixed(t->first[i])};
        sum += t->second[i];
    }
    if (wrong == NULL) {
        wrong = !(sum > 0)                             ? "all weights are 0"
                : !dist_of_pieces(d, pieces, t->count) ? NO_MEMORY
                                                       : NULL;
    }
    free(pieces);
    return wrong;
}

/* Between two points, both above 0, sizes are spread as their logarithms are. */
static struct dist
between(double low, double high)
{
    if (low == high) {
        return dist_fixed(low);
    }
    return (struct dist){low > 0 ? DIST_LOG_UNIFORM : DIST_UNIFORM, low, high, 0, NULL};
}

/* Points of a distribution function, `last` being all of it. Below the first point and above
 * the last one lie only the values of these points. */
static const char *
curve_of(struct dist *d, const struct pairs *t, double last)
{
    struct dist_piece *pieces = calloc(t->count + 1, sizeof *pieces);
    const char *wrong = pieces == NULL ? NO_MEMORY : NULL;
    double before = 0;
    for (unsigned i = 0; wrong == NULL && i < t->count; i++) {
        double low = i > 0 ? t->second[i - 1] : t->second[i];
        if (t->first[i] < before || t->first[i] > last || t->second[i] < low || low < 0) {
            wrong = "the points of a distribution must rise";
        }
        pieces[i] = (struct dist_piece){t->first[i] - before, between(low, t->second[i])};
        before = t->first[i];
    }
    if (wrong == NULL) {
        pieces[t->count] =
            (struct dist_piece){last - before, dist_fixed(t->second[t->count - 1])};
        wrong = dist_of_pieces(d, pieces, t->count + 1) ? NULL : NO_MEMORY;
    }
    free(pieces);
    return wrong;
}

/* "1=2,3=4" */
static const char *
parse_pairs(struct pairs *t, const char *text, size_t len)
{
    const char *end = text + len;
    for (const char *p = text; p != NULL;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t n = (size_t)((comma != NULL ? comma : end) - p);
        const char *equals = memchr(p, '=', n);
        if (t->count == PIECES_MAX || equals == NULL ||
            !num_double(p, (size_t)(equals - p), &t->first[t->count]) ||
            !num_double(equals + 1, n - (size_t)(equals - p) - 1, &t->second[t->count])) {
            return "a table is NUMBER=NUMBER,NUMBER=NUMBER and so on";
        }
        t->count++;
        p = comma != NULL ? comma + 1 : NULL;
    }
    return NULL;
}

static const char *
parse_table(struct dist *d, const char *text, size_t len, bool is_curve)
{
    struct pairs t = {
        .first = calloc(PIECES_MAX, sizeof(double)),
        .second = calloc(PIECES_MAX, sizeof(double)),
    };
    const char *wrong = NO_MEMORY;
    if (t.first != NULL && t.second != NULL) {
        wrong = parse_pairs(&t, text, len);
    }
    if (wrong == NULL) {
        wrong = is_curve ? curve_of(d, &t, PERCENT_MAX) : discrete_of(d, &t);
    }
    free(t.first);
    free(t.second);
    return wrong;
}

/* ---- files ---------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* A sample: each value as often as it was seen. */
static const char *
sample_of(struct dist *d, struct numfile *f)
{
    double *weights = calloc(f->rows, sizeof *weights);
    if (weights == NULL) {
        return NO_MEMORY;
    }
    struct pairs t = {f->values, weights, 0};
    qsort(f->values, f->rows, sizeof *f->values, compare);
    for (size_t i = 0; i < f->rows; i++) {
        if (t.count == 0 || f->values[i] != t.first[t.count - 1]) {
            t.first[t.count++] = f->values[i];
        }
        weights[t.count - 1]++;
    }
    const char *wrong = discrete_of(d, &t);
    free(weights);
    return wrong;
}

/* Lines of a value and the share of all that are not above it. */
static const char *
cdf_of(struct dist *d, const struct numfile *f)
{
    struct pairs t = {
        .first = calloc(f->rows, sizeof(double)),
        .second = calloc(f->rows, sizeof(double)),
        .count = (unsigned)f->rows,
    };
    const char *wrong = NO_MEMORY;
    if (t.first != NULL && t.second != NULL) {
        for (size_t i = 0; i < f->rows; i++) {
            t.second[i] = f->values[2 * i];
            t.first[i] = f->values[2 * i + 1];
        }
        wrong = curve_of(d, &t, 1);
    }
    free(t.first);
    free(t.second);
    return wrong;
}

static const char *
parse_file(struct dist *d, const char *path, size_t len)
{
    struct numfile f;
    char *name = strndup(path, len);
    if (name == NULL) {
        return NO_MEMORY;
    }
    const char *wrong = numfile_read(&f, name);
    free(name);
    if (wrong == NULL) {
        wrong = f.columns == 1 ? sample_of(d, &f) : cdf_of(d, &f);
        numfile_fini(&f);
    }
    return wrong;
}

/* ---- all ------------------------------------------------------------------------------ */

static bool
take_prefix(const char **text, size_t *len, const char *prefix)
{
    size_t n = strlen(prefix);
    if (*len < n || memcmp(*text, prefix, n) != 0) {
        return false;
    }
    *text += n;
    *len -= n;
    return true;
}

static const char *
parse_part(struct dist *d, const char *text, size_t len)
{
    if (take_prefix(&text, &len, "discrete:")) {
        return parse_table(d, text, len, false);
    }
    if (take_prefix(&text, &len, "percentiles:")) {
        return parse_table(d, text, len, true);
    }
    if (take_prefix(&text, &len, "file:")) {
        return parse_file(d, text, len);
    }
    return parse_simple(d, text, len);
}

static const char *
parse_mix(struct dist *d, const char *text)
{
    struct dist_piece pieces[MIX_MAX] = {{.upto = 0}};
    unsigned count = 0;
    const char *wrong = NULL;
    for (const char *p = text; wrong == NULL && p != NULL;) {
        const char *end = p + strcspn(p, "+");
        const char *star = memchr(p, '*', (size_t)(end - p));
        if (count == MIX_MAX || star == NULL ||
            !num_double(p, (size_t)(star - p), &pieces[count].upto) ||
            pieces[count].upto <= 0) {
            wrong = "mix takes up to 8 parts, WEIGHT*LAW+WEIGHT*LAW";
            break;
        }
        wrong = parse_part(&pieces[count].law, star + 1, (size_t)(end - star) - 1);
        count += wrong == NULL ? 1 : 0;
        p = *end == '+' ? end + 1 : NULL;
    }
    if (wrong == NULL) {
        wrong = dist_of_pieces(d, pieces, count) ? NULL : NO_MEMORY;
    }
    for (unsigned i = 0; wrong != NULL && i < count; i++) {
        dist_fini(&pieces[i].law);
    }
    return wrong;
}

const char *
dist_parse(struct dist *d, const char *text)
{
    size_t len = strlen(text);
    *d = dist_fixed(0); /* nothing to free after an error */
    if (take_prefix(&text, &len, "mix:")) {
        return parse_mix(d, text);
    }
    return parse_part(d, text, len);
}
