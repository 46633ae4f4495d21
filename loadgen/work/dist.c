/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/dist.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"

#define SHAPE_TINY 1e-9  /* below it a shape of 0 is meant: the formulae's limit */
#define UNIT_MIN 0x1p-53 /* keeps a stretched number off the ends */
#define SIMPSON_STEPS 2000
/* Beyond the mode of exp(-t) t^power: what lies behind adds nothing. */
#define GEV_T_MAX 100
#define DEVIATIONS_MAX 8 /* of a law's scale: further down there is no probability */

/* The largest coefficient first. */
static double
polynomial(const double *c, unsigned count, double x)
{
    double y = c[0];
    for (unsigned i = 1; i < count; i++) {
        y = y * x + c[i];
    }
    return y;
}

#define RATIO(num, den, x)                                                               \
    (polynomial(num, sizeof(num) / sizeof(num)[0], x) /                                  \
     polynomial(den, sizeof(den) / sizeof(den)[0], x))

bool
dist_is_same(const struct dist *a, const struct dist *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind != DIST_PIECES) {
        return a->a == b->a && a->b == b->b && a->c == b->c;
    }
    bool is_same = a->pieces->count == b->pieces->count;
    for (unsigned i = 0; is_same && i < a->pieces->count; i++) {
        const struct dist_piece *p = &a->pieces->piece[i], *q = &b->pieces->piece[i];
        is_same = p->upto == q->upto && dist_is_same(&p->law, &q->law);
    }
    return is_same;
}

/* M. J. Wichura, "Algorithm AS 241: the percentage points of the normal
 * distribution", Applied Statistics 37(3), 1988. */
double
dist_normal_quantile(double u)
{
    static const double a[] = {2509.0809287301226727, 33430.575583588128105,
                               67265.770927008700853, 45921.953931549871457,
                               13731.693765509461125, 1971.5909503065514427,
                               133.14166789178437745, 3.387132872796366608};
    static const double b[] = {5226.495278852854561,  28729.085735721942674,
                               39307.89580009271061,  21213.794301586595867,
                               5394.1960214247511077, 687.1870074920579083,
                               42.313330701600911252, 1};
    static const double c[] = {7.7454501427834140764e-4, .0227238449892691845833,
                               .24178072517745061177,    1.27045825245236838258,
                               3.64784832476320460504,   5.7694972214606914055,
                               4.6303378461565452959,    1.42343711074968357734};
    static const double d[] = {1.05075007164441684324e-9, 5.475938084995344946e-4,
                               .0151986665636164571966,   .14810397642748007459,
                               .68976733498510000455,     1.6763848301838038494,
                               2.05319162663775882187,    1};
    static const double e[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                               .0012426609473880784386,   .026532189526576123093,
                               .29656057182850489123,     1.7848265399172913358,
                               5.4637849111641143699,     6.6579046435011037772};
    static const double f[] = {2.04426310338993978564e-15, 1.4215117583164458887e-7,
                               1.8463183175100546818e-5,   7.868691311456132591e-4,
                               .0148753612908506148525,    .13692988092273580531,
                               .59983220655588793769,      1};
    double q = u - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * RATIO(a, b, r);
    }
    double r = sqrt(-log(q < 0 ? u : 1 - u));
    double z = r <= 5 ? RATIO(c, d, r - 1.6) : RATIO(e, f, r - 5);
    return q < 0 ? -z : z;
}

static double
pareto_value(const struct dist *d, double u)
{
    if (fabs(d->c) < SHAPE_TINY) {
        return d->a - d->b * log1p(-u);
    }
    return d->a + d->b * (pow(1 - u, -d->c) - 1) / d->c;
}

static double
gev_value(const struct dist *d, double u)
{
    double x = fabs(d->c) < SHAPE_TINY ? -log(-log(u)) : (pow(-log(u), -d->c) - 1) / d->c;
    return fmax(0, d->a + d->b * x);
}

static unsigned
piece_at(const struct dist_pieces *p, double u)
{
    unsigned i = p->guide[(unsigned)(u * DIST_GUIDE)];
    while (i + 1 < p->count && u >= p->piece[i].upto) {
        i++;
    }
    return i;
}

bool
dist_is_fixed_at(const struct dist *d, double u)
{
    const struct dist *law =
        d->kind == DIST_PIECES ? &d->pieces->piece[piece_at(d->pieces, u)].law : d;
    return law->kind == DIST_FIXED;
}

static double
pieces_value(const struct dist_pieces *p, double u)
{
    unsigned i = piece_at(p, u);
    /* Where u lies within the piece is uniform: stretched, it is a fresh number. */
    double low = i > 0 ? p->piece[i - 1].upto : 0;
    double within = (u - low) / (p->piece[i].upto - low);
    return dist_value(&p->piece[i].law, fmin(fmax(within, UNIT_MIN), 1 - UNIT_MIN));
}

double
dist_value(const struct dist *d, double u)
{
    switch (d->kind) {
    case DIST_FIXED:
        return d->a;
    case DIST_UNIFORM:
        return d->a + (d->b - d->a) * u;
    case DIST_LOG_UNIFORM:
        return d->a * pow(d->b / d->a, u);
    case DIST_EXPONENTIAL:
        return -log1p(-u) * d->a;
    case DIST_NORMAL:
        return fmax(0, d->a + d->b * dist_normal_quantile(u));
    case DIST_LOGNORMAL:
        return exp(d->a + d->b * dist_normal_quantile(u));
    case DIST_WEIBULL:
        return d->a * pow(-log1p(-u), 1 / d->b);
    case DIST_PARETO:
        return pareto_value(d, u);
    case DIST_GEV:
        return gev_value(d, u);
    case DIST_PIECES:
        return pieces_value(d->pieces, u);
    }
    unreachable();
}

static double
normal_mean(const struct dist *d)
{
    if (d->b <= 0) {
        return d->a;
    }
    double z = d->a / d->b;
    return d->a * 0.5 * erfc(-z / M_SQRT2) + d->b * exp(-z * z / 2) / sqrt(2 * M_PI);
}

static double
gev_cdf(const struct dist *d, double x)
{
    double z = (x - d->a) / d->b;
    if (fabs(d->c) < SHAPE_TINY) {
        return exp(-exp(-z));
    }
    double t = 1 + d->c * z;
    if (t <= 0) {
        return d->c > 0 ? 0 : 1;
    }
    return exp(-pow(t, -1 / d->c));
}

/* What the law has below 0, taken as 0, adds to the mean: the integral of its distribution
 * function up to 0, by Simpson's rule. */
static double
gev_below_zero(const struct dist *d)
{
    double low = d->a - DEVIATIONS_MAX * d->b;
    if (d->c > SHAPE_TINY) {
        low = fmax(low, d->a - d->b / d->c);
    }
    if (low >= 0) {
        return 0;
    }
    double step = -low / SIMPSON_STEPS, sum = gev_cdf(d, low) + gev_cdf(d, 0);
    for (unsigned i = 1; i < SIMPSON_STEPS; i++) {
        sum += (i % 2 == 1 ? 4 : 2) * gev_cdf(d, low + i * step);
    }
    return sum * step / 3;
}

/* Of a shape of -1 or less, whose tail below 0 is too long for that: the integral of 1 - F from 0 to the
 * largest value, with t = (1 + c (x - a) / b)^(-1/c) that of b (1 - exp(-t)) t^(-c - 1). */
static double
gev_mean_above_zero(const struct dist *d, double last)
{
    double step = last / SIMPSON_STEPS, sum = 0;
    for (unsigned i = 0; i <= SIMPSON_STEPS; i++) {
        double t = i * step;
        double times = i == 0 || i == SIMPSON_STEPS ? 1 : i % 2 == 1 ? 4 : 2;
        sum += times * -expm1(-t) * pow(t, -d->c - 1);
    }
    return d->b * sum * step / 3;
}

static double
gev_mean(const struct dist *d)
{
    if (d->c >= 1) {
        return INFINITY;
    }
    double base = 1 - d->c * d->a / d->b; /* t^-c where x is 0 */
    double last = d->c > -1 ? INFINITY : base > 0 ? pow(base, -1 / d->c) : 0;
    if (last < GEV_T_MAX - 2 * d->c) {
        return gev_mean_above_zero(d, last);
    }
    /* 0.5772... is Euler's constant, the limit for a shape of 0. */
    double mean = d->a + d->b * (fabs(d->c) < SHAPE_TINY ? 0.57721566490153286
                                                         : (tgamma(1 - d->c) - 1) / d->c);
    return d->c > -1 ? mean + gev_below_zero(d) : mean;
}

static double
pieces_mean(const struct dist_pieces *p)
{
    double mean = 0, low = 0;
    for (unsigned i = 0; i < p->count; i++) {
        mean += (p->piece[i].upto - low) * dist_mean(&p->piece[i].law);
        low = p->piece[i].upto;
    }
    return mean;
}

double
dist_mean(const struct dist *d)
{
    switch (d->kind) {
    case DIST_FIXED:
    case DIST_EXPONENTIAL:
        return d->a;
    case DIST_UNIFORM:
        return (d->a + d->b) / 2;
    case DIST_LOG_UNIFORM:
        return d->b > d->a ? (d->b - d->a) / log(d->b / d->a) : d->a;
    case DIST_NORMAL:
        return normal_mean(d);
    case DIST_LOGNORMAL:
        return exp(d->a + d->b * d->b / 2);
    case DIST_WEIBULL:
        return d->a * tgamma(1 + 1 / d->b);
    case DIST_PARETO:
        return d->c < 1 ? d->a + d->b / (1 - d->c) : INFINITY;
    case DIST_GEV:
        return gev_mean(d);
    case DIST_PIECES:
        return pieces_mean(d->pieces);
    }
    unreachable();
}

uint64_t
dist_size(const struct dist *d, double u, uint64_t min, uint64_t max)
{
    bool is_whole = d->kind == DIST_UNIFORM && floor(d->a) == d->a && floor(d->b) == d->b;
    /* Rounded, the first and the last of these would have half of their share. */
    double value = is_whole ? fmin(d->b, floor(d->a + (d->b - d->a + 1) * u))
                            : dist_value(d, u) + 0.5;
    if (!(value >= (double)min + 1)) {
        return min;
    }
    return value >= (double)max ? max : (uint64_t)value;
}

#define HALVINGS 48 /* 1 - 2^-48 is still another number than 1 */
#define QUANTILES 1000

/* The mean of quantiles: 1000 from the lower half, 1000 from the next quarter, and so on, because a heavy
 * tail may be worth as much as everything before it. */
double
dist_size_mean(const struct dist *d, uint64_t min, uint64_t max)
{
    double sum = 0, low = 0, width = 0.5 / QUANTILES;
    if (d->kind == DIST_FIXED) {
        return (double)dist_size(d, 0.5, min, max);
    }
    if (d->kind == DIST_PIECES) {
        for (unsigned i = 0; i < d->pieces->count; i++) {
            const struct dist_piece *p = &d->pieces->piece[i];
            sum += (p->upto - low) * dist_size_mean(&p->law, min, max);
            low = p->upto;
        }
        return sum;
    }
    for (unsigned i = 0; i < HALVINGS; i++, width /= 2) {
        double first = 1 - 2 * QUANTILES * width;
        for (unsigned n = 0; n < QUANTILES; n++) {
            sum += width * (double)dist_size(d, first + (n + 0.5) * width, min, max);
        }
    }
    return sum + 2 * QUANTILES * width * (double)dist_size(d, 1 - DBL_EPSILON, min, max);
}

static double
largest(const struct dist *d)
{
    double value = 0;
    switch (d->kind) {
    case DIST_FIXED:
        return d->a;
    case DIST_UNIFORM:
    case DIST_LOG_UNIFORM:
        return d->b;
    case DIST_PIECES:
        for (unsigned i = 0; i < d->pieces->count; i++) {
            value = fmax(value, largest(&d->pieces->piece[i].law));
        }
        return value;
    default:
        return INFINITY;
    }
}

uint64_t
dist_size_max(const struct dist *d, uint64_t min, uint64_t max)
{
    struct dist top = dist_fixed(largest(d));
    return dist_size(&top, 0.5, min, max);
}

void
dist_of_pieces(struct dist *d, const struct dist_piece *pieces, unsigned count)
{
    double sum = 0, upto = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += pieces[i].upto;
    }
    must(count > 0 && sum > 0);
    struct dist_pieces *p = alloc_zeroed(1, sizeof *p + count * sizeof p->piece[0]);
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].upto > 0) { /* an empty piece would be divided by */
            upto += pieces[i].upto;
            p->piece[p->count].upto = upto / sum;
            p->piece[p->count++].law = pieces[i].law;
        }
    }
    p->piece[p->count - 1].upto = 1;
    for (unsigned part = 0, i = 0; part < DIST_GUIDE; part++) {
        while (i + 1 < p->count && p->piece[i].upto <= (double)part / DIST_GUIDE) {
            i++;
        }
        p->guide[part] = i;
    }
    *d = (struct dist){.kind = DIST_PIECES, .pieces = p};
}

void
dist_fini(struct dist *d)
{
    if (d->kind == DIST_PIECES) {
        struct dist_pieces *p = (struct dist_pieces *)d->pieces;
        for (unsigned i = 0; i < p->count; i++) {
            dist_fini(&p->piece[i].law);
        }
        free(p);
    }
    *d = dist_fixed(0);
}
