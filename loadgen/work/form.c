/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/form.h"

#include <float.h>
#include <math.h>

#include "base/num.h"
#include "base/part.h"

#define ABOVE_0 DBL_TRUE_MIN
#define BELOW_1 (1 - DBL_EPSILON / 2)

static const struct {
    double least, most;
} bounds[] = {
    [FORM_ANY] = {-INFINITY, INFINITY},
    [FORM_FROM_0] = {0, INFINITY},
    [FORM_ABOVE_0] = {ABOVE_0, INFINITY},
    [FORM_SHARE] = {0, 1},
    [FORM_SHARE_ABOVE] = {ABOVE_0, 1},
    [FORM_SHARE_WITHIN] = {ABOVE_0, BELOW_1},
    [FORM_EXPONENT] = {0, FORM_EXPONENT_MAX},
    [FORM_CV] = {0, FORM_CV_MAX},
    [FORM_SHAPE] = {1e-3, 1e6},
    [FORM_SHAPE_TENTH] = {0.1, 1e6},
    [FORM_SCV] = {1, 1e6},
    [FORM_RATE] = {0, FORM_RATE_MAX},
    [FORM_TIME] = {1e-6, FORM_TIME_MAX_S},
};

static bool
take_rate(const char *p, size_t len, double *rate, bool *is_share)
{
    static const char units[] = "kKmM%";
    static const double scales[] = {1e3, 1e3, 1e6, 1e6, 0.01};
    const char *unit = len > 0 ? memchr(units, p[len - 1], sizeof units - 1) : NULL;
    *is_share = unit != NULL && *unit == '%';
    if (!num_double(p, len - (unit != NULL ? 1 : 0), rate)) {
        return false;
    }
    *rate *= unit != NULL ? scales[unit - units] : 1;
    return true;
}

static bool
take_arg(enum form_type type, const char *p, size_t len, struct form_args *a)
{
    double *value = &a->value[a->count];
    return type == FORM_RATE   ? take_rate(p, len, value, &a->is_share[a->count])
           : type == FORM_TIME ? duration_parse(p, len, value)
                               : num_double(p, len, value);
}

static const char *
parse_args(const struct form_table *t, const struct form *f, void *into, const char *text,
           const char *end)
{
    struct form_args a = {.form = f};
    const char *usage = f->usage != NULL ? f->usage : t->unknown;
    for (const char *p = text; p != NULL;) {
        const char *stop = memchr(p, t->separator, (size_t)(end - p));
        size_t len = (size_t)((stop != NULL ? stop : end) - p);
        enum form_type type = a.count < FORM_ARGS_MAX ? f->args[a.count] : FORM_NONE;
        if (type == FORM_NONE || !take_arg(type, p, len, &a) ||
            !(a.value[a.count] >= bounds[type].least) ||
            a.value[a.count] > bounds[type].most) {
            return usage;
        }
        a.count++;
        p = stop != NULL ? stop + 1 : NULL;
    }
    return a.count >= f->least ? f->make(into, &a) : usage;
}

const char *
form_parse(const struct form_table *t, void *into, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t name = colon != NULL ? (size_t)(colon - text) : len;
    const struct form *f = part_row(t->rows, t->count, sizeof *f, text, name);
    return f == NULL
               ? t->unknown
               : parse_args(t, f, into, colon != NULL ? colon + 1 : NULL, text + len);
}

bool
form_take(const char **text, size_t *len, const char *prefix)
{
    size_t n = strlen(prefix);
    if (*len < n || memcmp(*text, prefix, n) != 0) {
        return false;
    }
    *text += n;
    *len -= n;
    return true;
}

/* ---- duration ---------------------------------------------------------------------- */

bool
duration_parse(const char *text, size_t len, double *seconds)
{
    static const struct num_unit units[] = {{"", 1},  {"us", 1e-6}, {"ms", 1e-3},
                                            {"s", 1}, {"m", 60},    {"h", 3600}};
    double value;
    if (!num_with_unit(text, len, units, sizeof units / sizeof units[0], &value) ||
        value < 0) {
        return false;
    }
    *seconds = value;
    return true;
}
