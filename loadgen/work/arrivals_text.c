/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Laws of gaps from their texts.
 */
#include "loadgen/work/arrivals.h"

#include <math.h>

#include "base/num.h"
#include "loadgen/work/form.h"

#define NORMAL_CV 0.1
#define LOGNORMAL_CV 1
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

static const char *
renewal(struct arrivals_law *law, enum dist_kind kind, double a, double b, double c)
{
    law->gap = (struct dist){kind, a, b, c, NULL};
    law->mean = dist_mean(&law->gap);
    return isfinite(law->mean) && law->mean > 0 ? NULL : "such gaps have no mean";
}

/* Parameters of these say nothing: the rate replaces them. */
static const char *
make_fixed(void *into, const struct form_args *a)
{
    (void)a;
    return renewal(into, (enum dist_kind)a->form->kind, 1, 0, 0);
}

static const char *
make_uniform(void *into, const struct form_args *a)
{
    double low = a->count == 2 ? a->value[0] : 0;
    double high = a->count > 0 ? a->value[a->count - 1] : 1;
    return high > low ? renewal(into, DIST_UNIFORM, low, high, 0) : a->form->usage;
}

static const char *
make_normal(void *into, const struct form_args *a)
{
    double cv = a->count > 0 ? a->value[0] : NORMAL_CV;
    if (a->count == 2 && cv <= 0) {
        return a->form->usage;
    }
    cv = a->count == 2 ? a->value[1] / cv : cv;
    return cv >= 0 && cv <= FORM_CV_MAX
               ? renewal(into, DIST_NORMAL, 1, cv, 0)
               : "the ratio of deviation to mean must be between 0 and 10";
}

static const char *
make_lognormal(void *into, const struct form_args *a)
{
    double cv = a->count == 0 ? LOGNORMAL_CV : a->value[0];
    return renewal(into, DIST_LOGNORMAL, 0, sqrt(log1p(cv * cv)), 0);
}

static const char *
make_weibull(void *into, const struct form_args *a)
{
    return renewal(into, DIST_WEIBULL, 1, a->value[0], 0);
}

/* Generalized Pareto and extreme value: LOCATION,SCALE,SHAPE, or of the first SHAPE alone. */
static const char *
make_extreme(void *into, const struct form_args *a)
{
    const double *v = a->value;
    if (a->count == 3) {
        bool is_good = v[1] > 0 && (a->form->kind == DIST_GEV || v[0] >= 0);
        return is_good ? renewal(into, (enum dist_kind)a->form->kind, v[0], v[1], v[2])
                       : a->form->usage;
    }
    return a->count < 2
               ? renewal(into, DIST_PARETO, 0, 1, a->count == 0 ? FB_IA_SHAPE : v[0])
               : a->form->usage;
}

static const char *
make_fb_ia(void *into, const struct form_args *a)
{
    double hour = a->value[0];
    if (hour >= HOURS || hour != floor(hour)) {
        return a->form->usage;
    }
    return renewal(into, DIST_PARETO, 0, 1,
                   a->count == 0 ? FB_IA_SHAPE : fb_ia_shapes[(size_t)hour]);
}

static const char *
make_gamma(void *into, const struct form_args *a)
{
    struct arrivals_law *law = into;
    law->kind = ARRIVAL_GAMMA;
    law->shape = a->value[0];
    return NULL;
}

/* Balanced means: both rates bring half of the time. */
static const char *
make_h2(void *into, const struct form_args *a)
{
    struct arrivals_law *law = into;
    law->kind = ARRIVAL_H2;
    law->share = (1 + sqrt((a->value[0] - 1) / (a->value[0] + 1))) / 2;
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

/* Without arguments ("bursty") ten times the rate for 10 ms, 9 times a second. */
static const char *
make_mmpp(void *into, const struct form_args *a)
{
    static const double bursty[] = {10, 1, 100, 10};
    const double *v = a->count > 0 ? a->value : bursty;
    struct arrivals_law *law = into;
    if (v[0] + v[1] <= 0 || v[2] > LEAVE_MAX || v[3] > LEAVE_MAX ||
        !is_sane_ratio(v[0], v[1]) || !is_sane_ratio(v[2], v[3])) {
        return a->form->usage;
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

#define NO_NUMBER "a parameter of the gaps is not a number"
#define ANY3 FORM_ANY, FORM_ANY, FORM_ANY

/* clang-format off */
static const struct form forms[] = {
    {"exponential", 0, {ANY3, FORM_ANY}, make_fixed, DIST_EXPONENTIAL, NO_NUMBER},
    {"fixed", 0, {ANY3, FORM_ANY}, make_fixed, DIST_FIXED, NO_NUMBER},
    {"uniform", 0, {FORM_FROM_0, FORM_FROM_0}, make_uniform, 0,
     "uniform takes MAX or MIN,MAX"},
    {"normal", 0, {FORM_ANY, FORM_ANY}, make_normal, 0,
     "normal takes CV, the ratio of deviation to mean, or MEAN,SD"},
    {"lognormal", 0, {FORM_CV}, make_lognormal, 0,
     "lognormal takes CV, the ratio of deviation to mean, 0 to 10"},
    /* Below it all of the mean lies in gaps too rare to be drawn: the others are 0. */
    {"weibull", 1, {FORM_SHAPE_TENTH}, make_weibull, 0,
     "weibull takes SHAPE, 0.1 or more"},
    {"pareto", 0, {ANY3}, make_extreme, DIST_PARETO,
     "pareto takes SHAPE or LOCATION,SCALE,SHAPE"},
    {"gev", 3, {ANY3}, make_extreme, DIST_GEV, "gev takes LOCATION,SCALE,SHAPE"},
    {"fb_ia", 0, {FORM_FROM_0}, make_fb_ia, 0,
     "fb_ia takes an hour of the day, 0 to 23, or nothing"},
    {"gamma", 1, {FORM_SHAPE}, make_gamma, 0,
     "gamma takes SHAPE (1 is exponential, more is smoother)"},
    {"h2", 1, {FORM_SCV}, make_h2, 0,
     "h2 takes SCV, the squared ratio of deviation to mean, 1 or more"},
    {"mmpp", 4, {FORM_FROM_0, FORM_FROM_0, FORM_ABOVE_0, FORM_ABOVE_0}, make_mmpp, 0,
     "mmpp takes RATE,RATE,LEAVE,LEAVE: rates of a ratio up to a million (one may be 0), "
     "and how often each ends a second, at most 100000"},
    {"bursty", 0, {FORM_NONE}, make_mmpp, 0, "bursty takes no parameter"},
};
/* clang-format on */
static const struct form_table laws =
    FORM_TABLE(forms, ',',
               "gaps are exponential, fixed, uniform, normal, lognormal, weibull, "
               "pareto, gev, fb_ia, gamma, "
               "h2, mmpp, bursty, gaps:FILE or times:FILE");

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
take_trace(struct arrivals_law *law, struct numfile *f, bool has_times)
{
    const char *wrong = NULL;
    double sum = 0;
    if (f->columns != 1) {
        return "a trace has one number in each line";
    }
    if (has_times && (wrong = gaps_between(f)) != NULL) {
        return wrong;
    }
    for (size_t i = 0; i < f->rows; i++) {
        if (f->values[i] < 0) {
            return "the gaps of a trace cannot be below 0";
        }
        sum += f->values[i];
    }
    if (!(sum > 0) || !isfinite(sum)) {
        return isfinite(sum) ? "all gaps of the trace are 0"
                             : "the gaps of the trace are too long";
    }
    for (size_t i = 0; i < f->rows; i++) {
        f->values[i] = f->values[i] / sum * (double)f->rows;
    }
    law->kind = ARRIVAL_TRACE;
    law->trace = f->values; /* taken over */
    law->trace_len = f->rows;
    return NULL;
}

static const char *
parse_trace(struct arrivals_law *law, const char *path, bool has_times)
{
    struct numfile f;
    const char *wrong = numfile_read(&f, path);
    if (wrong == NULL && (wrong = take_trace(law, &f, has_times)) != NULL) {
        numfile_fini(&f);
    }
    return wrong;
}

const char *
arrivals_parse(struct arrivals_law *law, const char *text)
{
    size_t len = strlen(text);
    double gap;
    *law =
        (struct arrivals_law){.kind = ARRIVAL_RENEWAL, .gap = dist_fixed(1), .mean = 1};
    if (num_double(text, len, &gap)) {
        return gap >= 0 ? NULL : "a gap is at least 0"; /* all are equal, as with fixed */
    }
    if (form_take(&text, &len, "gaps:")) {
        return parse_trace(law, text, false);
    }
    return form_take(&text, &len, "times:") ? parse_trace(law, text, true)
                                            : form_parse(&laws, law, text, len);
}

void
arrivals_law_fini(struct arrivals_law *law)
{
    free(law->trace);
    *law =
        (struct arrivals_law){.kind = ARRIVAL_RENEWAL, .gap = dist_fixed(1), .mean = 1};
}
