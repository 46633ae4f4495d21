/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Laws of gaps from their texts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/work/arrival.h"
#include "base/num.h"
#include "loadgen/work/dist_text.h"
#include "loadgen/work/numfile.h"

#define NORMAL_CV 0.1
#define LOGNORMAL_CV 1
#define CV_MAX 10
#define SHAPE_MIN 1e-3
/* Below it all of the mean lies in gaps too rare to be drawn: the others are 0. */
#define WEIBULL_SHAPE_MIN 0.1
#define SHAPE_MAX 1e6
#define SCV_MAX 1e6
#define LEAVE_MAX 1e5 /* a second: so many steps a second a schedule can cost */
#define BURST_MAX 1e6 /* ratio of two rates, and of how long they last */

/* Shape of the gaps of the ETC pool, all day and in each hour (B. Atikoglu et al., "Workload
 * analysis of a large-scale key-value store", SIGMETRICS 2012). The scale follows from the
 * rate. */
#define FB_IA_SHAPE 0.154971
static const double fb_ia_shapes[] = {
    .155280, .141368, .137579, .142382, .160706, .181278, .196885, .202396,
    .201637, .193764, .178386, .161636, .140461, .119242, .104535, .094286,
    .096963, .098510, .096155, .094156, .100365, .111921, .131946, .147258,
};
#define HOURS (sizeof fb_ia_shapes / sizeof fb_ia_shapes[0])

/* Ten times the rate for 10 ms, 9 times a second. */
static const double bursty[] = {10, 1, 100, 10};

static const char *
renewal(struct arrival_law *law, struct dist gap)
{
    law->kind = ARRIVAL_RENEWAL;
    law->gap = gap;
    law->mean = dist_mean(&gap);
    return isfinite(law->mean) && law->mean > 0 ? NULL : "such gaps have no mean";
}

static const char *
build_fixed(struct arrival_law *law, const struct dist_params *p)
{
    (void)p; /* the rate replaces it */
    return renewal(law, dist_fixed(1));
}

static const char *
build_uniform(struct arrival_law *law, const struct dist_params *p)
{
    double low = p->count == 2 ? p->value[0] : 0;
    double high = p->count == 2 ? p->value[1] : p->count == 1 ? p->value[0] : 1;
    if (p->count > 2 || low < 0 || high <= low) {
        return "uniform takes MAX or MIN,MAX";
    }
    return renewal(law, (struct dist){DIST_UNIFORM, low, high, 0, NULL});
}

static const char *
build_exponential(struct arrival_law *law, const struct dist_params *p)
{
    (void)p;
    return renewal(law, (struct dist){DIST_EXPONENTIAL, 1, 0, 0, NULL});
}

static const char *
build_normal(struct arrival_law *law, const struct dist_params *p)
{
    double cv = NORMAL_CV;
    if (p->count == 1) {
        cv = p->value[0];
    } else if (p->count == 2 && p->value[0] > 0) {
        cv = p->value[1] / p->value[0];
    } else if (p->count != 0) {
        return "normal takes CV, the ratio of deviation to mean, or MEAN,SD";
    }
    if (cv < 0 || cv > CV_MAX) {
        return "the ratio of deviation to mean must be between 0 and 10";
    }
    return renewal(law, (struct dist){DIST_NORMAL, 1, cv, 0, NULL});
}

static const char *
build_lognormal(struct arrival_law *law, const struct dist_params *p)
{
    double cv = p->count == 0 ? LOGNORMAL_CV : p->value[0];
    if (p->count > 1 || cv < 0 || cv > CV_MAX) {
        return "lognormal takes CV, the ratio of deviation to mean, 0 to 10";
    }
    return renewal(law, (struct dist){DIST_LOGNORMAL, 0, sqrt(log1p(cv * cv)), 0, NULL});
}

static bool
is_shape(const struct dist_params *p)
{
    return p->count == 1 && p->value[0] >= SHAPE_MIN && p->value[0] <= SHAPE_MAX;
}

static const char *
build_weibull(struct arrival_law *law, const struct dist_params *p)
{
    if (!is_shape(p) || p->value[0] < WEIBULL_SHAPE_MIN) {
        return "weibull takes SHAPE, 0.1 or more";
    }
    return renewal(law, (struct dist){DIST_WEIBULL, 1, p->value[0], 0, NULL});
}

static const char *
build_pareto(struct arrival_law *law, const struct dist_params *p)
{
    if (p->count == 3 && p->value[0] >= 0 && p->value[1] > 0) {
        return renewal(
            law, (struct dist){DIST_PARETO, p->value[0], p->value[1], p->value[2], NULL});
    }
    if (p->count > 1) {
        return "pareto takes SHAPE or LOCATION,SCALE,SHAPE";
    }
    double shape = p->count == 0 ? FB_IA_SHAPE : p->value[0];
    return renewal(law, (struct dist){DIST_PARETO, 0, 1, shape, NULL});
}

static const char *
build_gev(struct arrival_law *law, const struct dist_params *p)
{
    if (p->count != 3 || p->value[1] <= 0) {
        return "gev takes LOCATION,SCALE,SHAPE";
    }
    return renewal(law,
                   (struct dist){DIST_GEV, p->value[0], p->value[1], p->value[2], NULL});
}

static const char *
build_fb_ia(struct arrival_law *law, const struct dist_params *p)
{
    double shape = FB_IA_SHAPE;
    if (p->count > 1 || (p->count == 1 && (p->value[0] < 0 || p->value[0] >= HOURS ||
                                           p->value[0] != floor(p->value[0])))) {
        return "fb_ia takes an hour of the day, 0 to 23, or nothing";
    }
    if (p->count == 1) {
        shape = fb_ia_shapes[(size_t)p->value[0]];
    }
    return renewal(law, (struct dist){DIST_PARETO, 0, 1, shape, NULL});
}

static const char *
build_gamma(struct arrival_law *law, const struct dist_params *p)
{
    if (!is_shape(p)) {
        return "gamma takes SHAPE (1 is exponential, more is smoother)";
    }
    law->kind = ARRIVAL_GAMMA;
    law->shape = p->value[0];
    return NULL;
}

/* Balanced means: both rates bring half of the time. */
static const char *
build_h2(struct arrival_law *law, const struct dist_params *p)
{
    if (p->count != 1 || p->value[0] < 1 || p->value[0] > SCV_MAX) {
        return "h2 takes SCV, the squared ratio of deviation to mean, 1 or more";
    }
    law->kind = ARRIVAL_H2;
    law->share = (1 + sqrt((p->value[0] - 1) / (p->value[0] + 1))) / 2;
    law->rate[0] = 2 * law->share;
    law->rate[1] = 2 * (1 - law->share);
    return NULL;
}

/* Beyond it the rarer of two is never seen in a run, and their mean is not either. */
static bool
is_sane_ratio(double a, double b)
{
    double low = fmin(a, b), high = fmax(a, b);
    return low == 0 ? high <= BURST_MAX * BURST_MAX : high / BURST_MAX <= low;
}

static const char *
make_mmpp(struct arrival_law *law, const double v[])
{
    if (v[0] < 0 || v[1] < 0 || v[0] + v[1] <= 0 || v[2] <= 0 || v[3] <= 0 ||
        v[2] > LEAVE_MAX || v[3] > LEAVE_MAX || !is_sane_ratio(v[0], v[1]) ||
        !is_sane_ratio(v[2], v[3])) {
        return "mmpp takes RATE,RATE,LEAVE,LEAVE: rates of a ratio up to a million (one "
               "may "
               "be 0), and how often each ends a second, at most 100000";
    }
    /* Each rate lasts in proportion to how often the other one ends. */
    double mean = (v[0] * v[3] + v[1] * v[2]) / (v[2] + v[3]);
    law->kind = ARRIVAL_MMPP;
    for (unsigned i = 0; i < 2; i++) {
        law->rate[i] = v[i] / mean;
        law->leave[i] = v[i + 2];
    }
    return NULL;
}

static const char *
build_mmpp(struct arrival_law *law, const struct dist_params *p)
{
    return make_mmpp(law, p->count == 4 ? p->value : (const double[4]){0});
}

static const char *
build_bursty(struct arrival_law *law, const struct dist_params *p)
{
    return p->count == 0 ? make_mmpp(law, bursty) : "bursty takes no parameter";
}

static const struct {
    const char *name;
    const char *(*build)(struct arrival_law *law, const struct dist_params *p);
} laws[] = {
    {"exponential", build_exponential},
    {"fixed", build_fixed},
    {"uniform", build_uniform},
    {"normal", build_normal},
    {"lognormal", build_lognormal},
    {"weibull", build_weibull},
    {"pareto", build_pareto},
    {"gev", build_gev},
    {"fb_ia", build_fb_ia},
    {"gamma", build_gamma},
    {"h2", build_h2},
    {"mmpp", build_mmpp},
    {"bursty", build_bursty},
};

/* Time stamps become the gaps between them. The way from the last back to the first is not
 * in the trace: it takes a gap of the mean. */
static const char *
gaps_between(struct numfile *f)
{
    if (f->rows < 2) {
        return "a trace needs two time stamps";
    }
    double mean = (f->values[f->rows - 1] - f->values[0]) / (double)(f->rows - 1);
    for (size_t i = 0; i + 1 < f->rows; i++) {
        f->values[i] = f->values[i + 1] - f->values[i];
    }
    f->values[f->rows - 1] = mean;
    return NULL;
}

static const char *
parse_trace(struct arrival_law *law, const char *path, bool has_times)
{
    struct numfile f;
    double sum = 0;
    const char *wrong = numfile_read(&f, path);
    if (wrong != NULL) {
        return wrong;
    }
    if (f.columns != 1) {
        wrong = "a trace has one number in each line";
    } else if (has_times) {
        wrong = gaps_between(&f);
    }
    for (size_t i = 0; wrong == NULL && i < f.rows; i++) {
        sum += f.values[i];
        wrong = f.values[i] < 0 ? "the gaps of a trace cannot be below 0" : NULL;
    }
    if (wrong == NULL && !(sum > 0)) {
        wrong = "all gaps of the trace are 0";
    } else if (wrong == NULL && !isfinite(sum)) {
        wrong = "the gaps of the trace are too long";
    }
    if (wrong != NULL) {
        numfile_fini(&f);
        return wrong;
    }
    for (size_t i = 0; i < f.rows; i++) {
        f.values[i] = f.values[i] / sum * (double)f.rows;
    }
    law->kind = ARRIVAL_TRACE;
    law->trace = f.values; /* taken over */
    law->trace_len = f.rows;
    return NULL;
}

const char *
arrival_parse(struct arrival_law *law, const char *text)
{
    static const char gaps[] = "gaps:", times[] = "times:";
    struct dist_params params;
    size_t name_len;
    double gap;
    *law = (struct arrival_law){.kind = ARRIVAL_RENEWAL, .gap = dist_fixed(1), .mean = 1};
    if (strncmp(text, gaps, sizeof gaps - 1) == 0) {
        return parse_trace(law, text + sizeof gaps - 1, false);
    }
    if (strncmp(text, times, sizeof times - 1) == 0) {
        return parse_trace(law, text + sizeof times - 1, true);
    }
    if (num_double(text, strlen(text), &gap)) {
        return gap >= 0 ? NULL : "a gap is at least 0"; /* all are equal, as with fixed */
    }
    if (!dist_split(text, strlen(text), &name_len, &params)) {
        return "a parameter of the gaps is not a number";
    }
    for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++) {
        if (dist_is_name(text, name_len, laws[i].name)) {
            return laws[i].build(law, &params);
        }
    }
    return "unknown law of gaps";
}

void
arrival_law_fini(struct arrival_law *law)
{
    free(law->trace);
    *law = (struct arrival_law){.kind = ARRIVAL_RENEWAL, .gap = dist_fixed(1), .mean = 1};
}
