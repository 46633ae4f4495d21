/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Laws from their texts.
 */
#include "loadgen/work/dist.h"

#include <math.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/part.h"
#include "loadgen/work/form.h"

#define PIECES_MAX 4096 /* in a text; a file may have more */
#define PERCENT_MAX 100
#define MIX_MAX 8

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

/* ---- laws with a few parameters ------------------------------------------------------- */

static const char *
make_plain(void *into, const struct form_args *a)
{
    enum dist_kind kind = (enum dist_kind)a->form->kind;
    *(struct dist *)into =
        (struct dist){kind, a->value[0], a->value[1], a->value[2], NULL};
    return NULL;
}

/* MAX or MIN,MAX. */
static const char *
make_uniform(void *into, const struct form_args *a)
{
    double low = a->count == 2 ? a->value[0] : 0, high = a->value[a->count - 1];
    *(struct dist *)into = (struct dist){DIST_UNIFORM, low, high, 0, NULL};
    return high >= low ? NULL : a->form->usage;
}

static const char *
make_exponential(void *into, const struct form_args *a)
{
    *(struct dist *)into = (struct dist){DIST_EXPONENTIAL, 1 / a->value[0], 0, 0, NULL};
    return NULL;
}

static const char *
make_lognormal_mean(void *into, const struct form_args *a)
{
    double sigma = a->value[1], mu = log(a->value[0]) - sigma * sigma / 2;
    *(struct dist *)into = (struct dist){DIST_LOGNORMAL, mu, sigma, 0, NULL};
    return NULL;
}

static const char *
make_fb(void *into, const struct form_args *a)
{
    (void)a;
    *(struct dist *)into = a->form->kind == DIST_GEV ? fb_key : fb_ia;
    return NULL;
}

static const char *
make_fb_value(void *into, const struct form_args *a)
{
    struct dist_piece pieces[FB_VALUE_HEAD_LEN + 1];
    double head = 0;
    (void)a;
    for (size_t i = 0; i < FB_VALUE_HEAD_LEN; i++) {
        pieces[i] = (struct dist_piece){fb_value_head[i], dist_fixed((double)i)};
        head += fb_value_head[i];
    }
    pieces[FB_VALUE_HEAD_LEN] = (struct dist_piece){1 - head, fb_value_tail};
    dist_of_pieces(into, pieces, FB_VALUE_HEAD_LEN + 1);
    return NULL;
}

static const char *
make_bimodal(void *into, const struct form_args *a)
{
    struct dist_piece pieces[] = {{a->value[0], dist_fixed(a->value[1])},
                                  {1 - a->value[0], dist_fixed(a->value[2])}};
    dist_of_pieces(into, pieces, 2);
    return NULL;
}

/* clang-format off */
static const struct form forms[] = {
    {"fixed", 1, {FORM_FROM_0}, make_plain, DIST_FIXED, "fixed takes one number"},
    {"uniform", 1, {FORM_FROM_0, FORM_FROM_0}, make_uniform, 0,
     "uniform takes MAX or MIN,MAX"},
    {"normal", 2, {FORM_FROM_0, FORM_FROM_0}, make_plain, DIST_NORMAL,
     "normal takes MEAN,SD"},
    {"exponential", 1, {FORM_ABOVE_0}, make_exponential, 0,
     "exponential takes a rate above 0 (the mean is 1/rate)"},
    {"gev", 3, {FORM_ANY, FORM_ABOVE_0, FORM_ANY}, make_plain, DIST_GEV,
     "gev takes LOCATION,SCALE,SHAPE"},
    {"lognormal", 2, {FORM_ANY, FORM_FROM_0}, make_plain, DIST_LOGNORMAL,
     "lognormal takes MU,SIGMA, mean and deviation of the logarithm"},
    {"pareto", 3, {FORM_FROM_0, FORM_ABOVE_0, FORM_ANY}, make_plain, DIST_PARETO,
     "pareto takes LOCATION,SCALE,SHAPE"},
    {"weibull", 2, {FORM_ABOVE_0, FORM_ABOVE_0}, make_plain, DIST_WEIBULL,
     "weibull takes SCALE,SHAPE, both above 0"},
    {"fb_key", 0, {FORM_NONE}, make_fb, DIST_GEV, "fb_key takes no parameter"},
    {"fb_value", 0, {FORM_NONE}, make_fb_value, 0, "fb_value takes no parameter"},
    {"fb_ia", 0, {FORM_NONE}, make_fb, DIST_PARETO, "fb_ia takes no parameter"},
    {"lognormal_mean", 2, {FORM_ABOVE_0, FORM_FROM_0}, make_lognormal_mean, 0,
     "lognormal_mean takes MEAN,SIGMA"},
    {"bimodal", 3, {FORM_SHARE, FORM_FROM_0, FORM_FROM_0}, make_bimodal, 0,
     "bimodal takes SHARE,SIZE,SIZE: the share of the first, and both"},
};
/* clang-format on */
static const struct form_table laws =
    FORM_TABLE(forms, ',',
               "a distribution is a number, fixed, uniform, normal, exponential, "
               "lognormal, lognormal_mean, "
               "pareto, weibull, gev, bimodal, fb_key, fb_value, fb_ia, discrete, "
               "percentiles, mix or file:FILE");

/* ---- tables --------------------------------------------------------------------------- */

struct pairs {
    double *first, *second; /* one block of memory */
    unsigned count;
};

static struct pairs
make_pairs(size_t room)
{
    double *first = alloc_zeroed(2 * room, sizeof *first);
    return (struct pairs){first, first + room, 0};
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

/* Values and their weights; or, with `last`, points of a distribution function, `last` being
 * all of it: below the first point and above the last one lie only the values of these
 * points. */
static const char *
dist_of_pairs(struct dist *d, const struct pairs *t, double last)
{
    struct dist_piece *pieces = alloc_zeroed(t->count + 1, sizeof *pieces);
    const char *wrong = NULL;
    double sum = 0;
    for (unsigned i = 0; wrong == NULL && i < t->count; i++) {
        double x = t->first[i], y = t->second[i], low = i > 0 ? t->second[i - 1] : y;
        if (last > 0 && (x < sum || x > last || y < low || low < 0)) {
            wrong = "the points of a distribution must rise";
        } else if (last > 0) {
            pieces[i] = (struct dist_piece){x - sum, between(low, y)};
            sum = x;
        } else if (x < 0 || y < 0) {
            wrong = "values and their weights cannot be below 0";
        } else {
            pieces[i] = (struct dist_piece){y, dist_fixed(x)};
            sum += y;
        }
    }
    if (wrong == NULL && last > 0) {
        pieces[t->count] =
            (struct dist_piece){last - sum, dist_fixed(t->second[t->count - 1])};
    } else if (wrong == NULL && !(sum > 0)) {
        wrong = "all weights are 0";
    }
    if (wrong == NULL) {
        dist_of_pieces(d, pieces, t->count + (last > 0 ? 1 : 0));
    }
    free(pieces);
    return wrong;
}

/* "1=2" */
static const char *
add_pair(void *pairs, const char *p, size_t len)
{
    struct pairs *t = pairs;
    const char *equals = memchr(p, '=', len);
    if (t->count == PIECES_MAX || equals == NULL ||
        !num_double(p, (size_t)(equals - p), &t->first[t->count]) ||
        !num_double(equals + 1, len - (size_t)(equals - p) - 1, &t->second[t->count])) {
        return "a table is NUMBER=NUMBER,NUMBER=NUMBER and so on";
    }
    t->count++;
    return NULL;
}

static const char *
parse_table(struct dist *d, const char *text, size_t len, double last)
{
    struct pairs t = make_pairs(PIECES_MAX);
    const char *wrong = part_each(text, len, ',', add_pair, &t);
    wrong = wrong != NULL ? wrong : dist_of_pairs(d, &t, last);
    free(t.first);
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
static void
take_sample(struct pairs *t, struct numfile *f)
{
    qsort(f->values, f->rows, sizeof *f->values, compare);
    for (size_t i = 0; i < f->rows; i++) {
        if (t->count == 0 || f->values[i] != t->first[t->count - 1]) {
            t->first[t->count++] = f->values[i];
        }
        t->second[t->count - 1]++;
    }
}

/* Lines of a value and the share of all that are not above it. */
static void
take_cdf(struct pairs *t, const struct numfile *f)
{
    for (; t->count < f->rows; t->count++) {
        t->second[t->count] = f->values[2 * t->count];
        t->first[t->count] = f->values[2 * t->count + 1];
    }
}

static const char *
parse_file(struct dist *d, const char *path, size_t len)
{
    struct numfile f;
    char *name = alloc_checked(strndup(path, len));
    const char *wrong = numfile_read(&f, name);
    free(name);
    if (wrong != NULL) {
        return wrong;
    }
    struct pairs t = make_pairs(f.rows);
    if (f.columns == 1) {
        take_sample(&t, &f);
    } else {
        take_cdf(&t, &f);
    }
    wrong = dist_of_pairs(d, &t, f.columns == 1 ? 0 : 1);
    free(t.first);
    numfile_fini(&f);
    return wrong;
}

/* ---- all ------------------------------------------------------------------------------ */

static const char *
parse_part(struct dist *d, const char *text, size_t len)
{
    double value;
    if (num_double(text, len, &value)) {
        *d = dist_fixed(value);
        return value >= 0 ? NULL : "fixed takes one number";
    }
    if (form_take(&text, &len, "discrete:")) {
        return parse_table(d, text, len, 0);
    }
    if (form_take(&text, &len, "percentiles:")) {
        return parse_table(d, text, len, PERCENT_MAX);
    }
    return form_take(&text, &len, "file:") ? parse_file(d, text, len)
                                           : form_parse(&laws, d, text, len);
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
        dist_of_pieces(d, pieces, count);
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
    return form_take(&text, &len, "mix:") ? parse_mix(d, text) : parse_part(d, text, len);
}
