/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Schedules from their texts.
 */
#include "loadgen/work/schedule.h"

#include <math.h>

#include "base/alloc.h"
#include "loadgen/work/form.h"

#define SINE_LINES 720
#define HOURS 24
#define STEPS_PERIODIC 1

static void
alloc_points(struct schedule *s, unsigned count, bool is_periodic)
{
    s->points = alloc_zeroed(count, sizeof *s->points);
    s->is_periodic = is_periodic;
}

static void
add_point(struct schedule *s, double at_s, double rate, bool is_share)
{
    s->points[s->count++] =
        (struct schedule_point){.at_s = at_s, .rate = rate, .is_share = is_share};
}

/* A level for this long; the step after it is a jump. */
static double
add_level(struct schedule *s, double at_s, double rate, bool is_share, double time_s)
{
    add_point(s, at_s, rate, is_share);
    add_point(s, at_s + time_s, rate, is_share);
    return at_s + time_s;
}

/* The first two rates must be of one kind where a line or a row of steps joins them; 0 is of
 * both. */
static bool
is_pair(const struct form_args *a, bool *is_share)
{
    *is_share = a->value[0] == 0 ? a->is_share[1] : a->is_share[0];
    return a->value[1] == 0 || a->is_share[1] == *is_share;
}

static const char *
make_const(void *into, const struct form_args *a)
{
    if (a->count > 0) {
        alloc_points(into, 1, false);
        add_point(into, 0, a->value[0], a->is_share[0]);
    }
    return NULL;
}

static const char *
make_ramp(void *into, const struct form_args *a)
{
    bool is_share;
    if (!is_pair(a, &is_share)) {
        return a->form->usage;
    }
    alloc_points(into, 2, false);
    add_point(into, 0, a->value[0], is_share);
    add_point(into, a->value[2], a->value[1], is_share);
    return NULL;
}

/* Steps from one rate towards another, each for the time that is told; or up and down again, the top and
 * the bottom once each, in that time. */
static const char *
make_steps(void *s, const struct form_args *a)
{
    bool is_periodic = a->form->kind == STEPS_PERIODIC;
    unsigned at = is_periodic ? 3 : 2;
    double time_s = a->value[is_periodic ? 2 : 3];
    double low = a->value[0], up = a->value[at], at_s = 0;
    double n = up > 0 ? floor(fabs(a->value[1] - low) / up * (1 + 1e-9)) : 0;
    bool is_share;
    if (!is_pair(a, &is_share) || a->is_share[at] != is_share || !(up > 0) ||
        n >= SCHEDULE_POINTS_MAX / 4) {
        return a->form->usage;
    }
    unsigned steps = (unsigned)n + 1;
    unsigned levels = !is_periodic ? steps : steps > 1 ? 2 * (steps - 1) : 1;
    alloc_points(s, 2 * levels, is_periodic);
    up = a->value[1] >= low ? up : -up;
    for (unsigned i = 0; i < levels; i++) {
        unsigned level = i < steps ? i : levels - i;
        at_s = add_level(s, at_s, low + level * up, is_share,
                         is_periodic ? time_s / levels : time_s);
    }
    return NULL;
}

static const char *
make_square(void *into, const struct form_args *a)
{
    alloc_points(into, 4, true);
    double period_s = a->value[2], duty = a->value[3];
    double at_s = add_level(into, 0, a->value[1], a->is_share[1], period_s * duty);
    add_level(into, at_s, a->value[0], a->is_share[0], period_s - at_s);
    return NULL;
}

/* Up by half a cosine and down again, in so many lines; in two a triangle. */
static const char *
make_wave(void *into, const struct form_args *a)
{
    unsigned lines = (unsigned)a->form->kind;
    bool is_share;
    if (!is_pair(a, &is_share)) {
        return a->form->usage;
    }
    alloc_points(into, lines + 1, true);
    for (unsigned i = 0; i <= lines; i++) {
        double part = (double)i / lines, up = (1 - cos(2 * M_PI * part)) / 2;
        add_point(into, part * a->value[2], a->value[0] * (1 - up) + a->value[1] * up,
                  is_share);
    }
    return NULL;
}

/* Requests a second of a server of the ETC pool, by the hour: (1 - shape) / scale of its gaps
 * (B. Atikoglu et al., SIGMETRICS 2012; parameters as published with fbworkload). */
static const char *
make_etc_day(void *into, const struct form_args *a)
{
    static const struct {
        double scale, shape;
    } gaps[HOURS] = {
        {16.2868, .155280}, {15.8937, .141368}, {15.6345, .137579}, {15.7003, .142382},
        {16.3231, .160706}, {17.5157, .181278}, {18.6748, .196885}, {19.5114, .202396},
        {20.2050, .201637}, {20.2915, .193764}, {19.5577, .178386}, {18.2294, .161636},
        {17.1879, .140461}, {16.2159, .119242}, {15.6716, .104535}, {15.2904, .094286},
        {15.2033, .096963}, {14.9533, .098510}, {15.1381, .096155}, {15.3210, .094156},
        {15.3848, .100365}, {15.7502, .111921}, {16.0205, .131946}, {16.3238, .147258},
    };
    struct schedule *s = into;
    double day_s = a->count > 0 ? a->value[0] : 1, sum = 0;
    alloc_points(s, HOURS + 1, true);
    s->is_stretched = a->count == 0;
    for (unsigned i = 0; i < HOURS; i++) {
        sum += (1 - gaps[i].shape) / gaps[i].scale;
    }
    for (unsigned i = 0; i <= HOURS; i++) {
        double rate = (1 - gaps[i % HOURS].shape) / gaps[i % HOURS].scale;
        add_point(s, i * day_s / HOURS, rate / sum * HOURS, true);
    }
    return NULL;
}

static const char *
check_rows(const struct numfile *f)
{
    if (f->columns != 2 || f->rows > SCHEDULE_POINTS_MAX / 2) {
        return "a schedule has lines of a time and a rate, at most 100000 of them";
    }
    for (size_t i = 0; i < f->rows; i++) {
        const double *row = &f->values[2 * i];
        if (row[0] < 0 || row[0] > FORM_TIME_MAX_S || (i > 0 && row[0] <= row[-2])) {
            return "the times of a schedule begin at 0 or later and grow";
        }
        if (row[1] < 0 || row[1] > FORM_RATE_MAX) {
            return "the rates of a schedule are between 0 and 100 million";
        }
    }
    return NULL;
}

/* Before the first time the first rate holds. */
static const char *
parse_file(struct schedule *s, const char *path)
{
    struct numfile f;
    const char *wrong = numfile_read(&f, path);
    if (wrong != NULL) {
        return wrong;
    }
    wrong = check_rows(&f);
    if (wrong == NULL) {
        alloc_points(s, 2 * (unsigned)f.rows, false);
    }
    for (size_t i = 0; wrong == NULL && i < f.rows; i++) {
        double rate = f.values[2 * i + 1];
        add_point(s, i == 0 ? 0 : f.values[2 * i], rate, false);
        if (i + 1 < f.rows) {
            add_point(s, f.values[2 * i + 2], rate, false);
        }
    }
    numfile_fini(&f);
    return wrong;
}

/* clang-format off */
static const struct form forms[] = {
    {"const", 0, {FORM_RATE}, make_const, 0, "const takes RATE or nothing"},
    {"ramp", 3, {FORM_RATE, FORM_RATE, FORM_TIME}, make_ramp, 0, "ramp takes FROM:TO:TIME"},
    {"steps", 4, {FORM_RATE, FORM_RATE, FORM_RATE, FORM_TIME}, make_steps, 0,
     "steps takes FROM:TO:STEP:TIME, a step above 0, at most 50000 of them"},
    {"square", 4, {FORM_RATE, FORM_RATE, FORM_TIME, FORM_SHARE_WITHIN}, make_square, 0,
     "square takes LOW:HIGH:PERIOD:DUTY, a duty between 0 and 1"},
    {"triangle", 3, {FORM_RATE, FORM_RATE, FORM_TIME}, make_wave, 2,
     "triangle takes LOW:HIGH:PERIOD"},
    {"qtriangle", 4, {FORM_RATE, FORM_RATE, FORM_TIME, FORM_RATE}, make_steps,
     STEPS_PERIODIC,
     "qtriangle takes LOW:HIGH:PERIOD:STEP, a step above 0"},
    {"sine", 3, {FORM_RATE, FORM_RATE, FORM_TIME}, make_wave, SINE_LINES,
     "sine takes LOW:HIGH:PERIOD"},
    {"etc-day", 0, {FORM_TIME}, make_etc_day, 0,
     "etc-day takes how long a day is, or nothing"},
};
/* clang-format on */
static const struct form_table shapes = FORM_TABLE(
    forms, ':',
    "schedules are const ramp steps square triangle qtriangle sine etc-day file");

const char *
schedule_parse(void *schedule, const char *text)
{
    struct schedule *s = schedule;
    size_t len = strlen(text);
    *s = (struct schedule){.count = 0};
    return form_take(&text, &len, "file:") ? parse_file(s, text)
                                           : form_parse(&shapes, s, text, len);
}
