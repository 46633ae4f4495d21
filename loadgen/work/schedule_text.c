/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Schedules from their texts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "loadgen/work/duration.h"
#include "loadgen/work/numfile.h"
#include "loadgen/work/schedule.h"

#define WORDS_MAX 4
#define SINE_LINES 720
#define TIME_MIN_S 1e-6
#define TIME_MAX_S 1e9
#define HOURS 24
#define NO_MEMORY "out of memory for the schedule"

struct word {
    const char *text;
    size_t len;
};

struct rate {
    double value;
    bool is_share;
};

/* ---- words ----------------------------------------------------------------------------- */

/* A number and what stands behind it. */
static bool
split_unit(struct word w, const char *units, double *value, struct word *unit)
{
    size_t len = w.len;
    while (len > 0 && strchr(units, w.text[len - 1]) != NULL) {
        len--;
    }
    *unit = (struct word){w.text + len, w.len - len};
    return num_double(w.text, len, value);
}

static bool
is_word(struct word w, const char *text)
{
    return strlen(text) == w.len && memcmp(text, w.text, w.len) == 0;
}

static bool
parse_rate(struct word w, struct rate *rate)
{
    struct word unit;
    double value;
    if (!split_unit(w, "kKmM%", &value, &unit) || value < 0) {
        return false;
    }
    rate->is_share = is_word(unit, "%");
    double scale = rate->is_share                             ? 0.01
                   : is_word(unit, "k") || is_word(unit, "K") ? 1e3
                   : is_word(unit, "m") || is_word(unit, "M") ? 1e6
                                                              : 1;
    rate->value = value * scale;
    return (unit.len == 0 || scale != 1) && rate->value <= SCHEDULE_RATE_MAX;
}

static bool
parse_time(struct word w, double *time_s)
{
    return duration_parse(w.text, w.len, time_s) && *time_s >= TIME_MIN_S &&
           *time_s <= TIME_MAX_S;
}

/* ---- points ---------------------------------------------------------------------------- */

static bool
alloc_points(struct schedule *s, unsigned count)
{
    s->points = calloc(count, sizeof *s->points);
    return s->points != NULL;
}

static void
add_point(struct schedule *s, double at_s, struct rate rate)
{
    s->points[s->count++] = (struct schedule_point){
        .at_s = at_s, .rate = rate.value, .is_share = rate.is_share};
}

/* Both rates must be of one kind where a line or a row of steps joins them; 0 is of both. */
static bool
parse_pair(const struct word *w, struct rate pair[2])
{
    if (!parse_rate(w[0], &pair[0]) || !parse_rate(w[1], &pair[1])) {
        return false;
    }
    if (pair[0].value == 0) {
        pair[0].is_share = pair[1].is_share;
    } else if (pair[1].value == 0) {
        pair[1].is_share = pair[0].is_share;
    }
    return pair[0].is_share == pair[1].is_share;
}

/* ---- schedules ------------------------------------------------------------------------- */

static const char *
build_const(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate;
    if (count == 0) {
        return NULL;
    }
    if (count != 1 || !parse_rate(w[0], &rate)) {
        return "const takes RATE or nothing";
    }
    if (!alloc_points(s, 1)) {
        return NO_MEMORY;
    }
    add_point(s, 0, rate);
    return NULL;
}

static const char *
build_ramp(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate[2];
    double time_s;
    if (count != 3 || !parse_pair(w, rate) || !parse_time(w[2], &time_s)) {
        return "ramp takes FROM:TO:TIME";
    }
    if (!alloc_points(s, 2)) {
        return NO_MEMORY;
    }
    add_point(s, 0, rate[0]);
    add_point(s, time_s, rate[1]);
    return NULL;
}

/* Steps from one rate towards another; returns how many, 0: too many. */
static unsigned
count_steps(const struct rate rate[2], double step)
{
    double n =
        step > 0 ? floor(fabs(rate[1].value - rate[0].value) / step * (1 + 1e-9)) : 0;
    return step > 0 && n < SCHEDULE_POINTS_MAX / 4 ? (unsigned)n + 1 : 0;
}

/* A level for so long; the step after it is a jump. */
static double
add_level(struct schedule *s, double at_s, struct rate rate, double time_s)
{
    add_point(s, at_s, rate);
    add_point(s, at_s + time_s, rate);
    return at_s + time_s;
}

static const char *
build_steps(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate[2], step;
    double time_s, at_s = 0;
    unsigned steps = 0;
    if (count == 4 && parse_pair(w, rate) && parse_rate(w[2], &step) &&
        step.is_share == rate[0].is_share && parse_time(w[3], &time_s)) {
        steps = count_steps(rate, step.value);
    }
    if (steps == 0) {
        return "steps takes FROM:TO:STEP:TIME, a step above 0, at most 50000 of them";
    }
    if (!alloc_points(s, 2 * steps)) {
        return NO_MEMORY;
    }
    for (unsigned i = 0; i < steps; i++) {
        double up = rate[1].value >= rate[0].value ? step.value : -step.value;
        struct rate now = {rate[0].value + i * up, step.is_share};
        at_s = add_level(s, at_s, now, time_s);
    }
    return NULL;
}

static const char *
build_square(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate[2];
    double period_s, duty;
    if (count != 4 || !parse_rate(w[0], &rate[0]) || !parse_rate(w[1], &rate[1]) ||
        !parse_time(w[2], &period_s) || !num_double(w[3].text, w[3].len, &duty) ||
        duty <= 0 || duty >= 1) {
        return "square takes LOW:HIGH:PERIOD:DUTY, a duty between 0 and 1";
    }
    if (!alloc_points(s, 4)) {
        return NO_MEMORY;
    }
    s->is_periodic = true;
    double at_s = add_level(s, 0, rate[1], period_s * duty);
    add_level(s, at_s, rate[0], period_s - at_s);
    return NULL;
}

static const char *
build_triangle(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate[2];
    double period_s;
    if (count != 3 || !parse_pair(w, rate) || !parse_time(w[2], &period_s)) {
        return "triangle takes LOW:HIGH:PERIOD";
    }
    if (!alloc_points(s, 3)) {
        return NO_MEMORY;
    }
    s->is_periodic = true;
    add_point(s, 0, rate[0]);
    add_point(s, period_s / 2, rate[1]);
    add_point(s, period_s, rate[0]);
    return NULL;
}

/* Up and down in steps, the top and the bottom once each. */
static const char *
build_qtriangle(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate[2], step;
    double period_s, at_s = 0;
    unsigned steps = 0;
    if (count == 4 && parse_pair(w, rate) && parse_time(w[2], &period_s) &&
        parse_rate(w[3], &step) && step.is_share == rate[0].is_share) {
        steps = count_steps(rate, step.value);
    }
    if (steps == 0) {
        return "qtriangle takes LOW:HIGH:PERIOD:STEP, a step above 0";
    }
    unsigned levels = steps > 1 ? 2 * (steps - 1) : 1;
    if (!alloc_points(s, 2 * levels)) {
        return NO_MEMORY;
    }
    s->is_periodic = true;
    for (unsigned i = 0; i < levels; i++) {
        double up = rate[1].value >= rate[0].value ? step.value : -step.value;
        unsigned level = i < steps ? i : levels - i;
        struct rate now = {rate[0].value + level * up, step.is_share};
        at_s = add_level(s, at_s, now, period_s / levels);
    }
    return NULL;
}

static const char *
build_sine(struct schedule *s, const struct word *w, unsigned count)
{
    struct rate rate[2];
    double period_s;
    if (count != 3 || !parse_pair(w, rate) || !parse_time(w[2], &period_s)) {
        return "sine takes LOW:HIGH:PERIOD";
    }
    if (!alloc_points(s, SINE_LINES + 1)) {
        return NO_MEMORY;
    }
    s->is_periodic = true;
    for (unsigned i = 0; i <= SINE_LINES; i++) {
        double part = (double)i / SINE_LINES;
        double up = (1 - cos(2 * M_PI * part)) / 2;
        struct rate now = {rate[0].value + (rate[1].value - rate[0].value) * up,
                           rate[0].is_share};
        add_point(s, part * period_s, now);
    }
    return NULL;
}

/* Requests a second of a server of the ETC pool, by the hour: (1 - shape) / scale of its gaps
 * (B. Atikoglu et al., SIGMETRICS 2012; parameters as published with fbworkload). */
static const char *
build_etc_day(struct schedule *s, const struct word *w, unsigned count)
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
    double day_s = 1, sum = 0;
    if (count > 1 || (count == 1 && !parse_time(w[0], &day_s))) {
        return "etc-day takes how long a day is, or nothing";
    }
    if (!alloc_points(s, HOURS + 1)) {
        return NO_MEMORY;
    }
    s->is_periodic = true;
    s->is_stretched = count == 0;
    for (unsigned i = 0; i < HOURS; i++) {
        sum += (1 - gaps[i].shape) / gaps[i].scale;
    }
    for (unsigned i = 0; i <= HOURS; i++) {
        double rate = (1 - gaps[i % HOURS].shape) / gaps[i % HOURS].scale;
        add_point(s, i * day_s / HOURS, (struct rate){rate / sum * HOURS, true});
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
        if (row[0] < 0 || row[0] > TIME_MAX_S || (i > 0 && row[0] <= row[-2])) {
            return "the times of a schedule begin at 0 or later and grow";
        }
        if (row[1] < 0 || row[1] > SCHEDULE_RATE_MAX) {
            return "the rates of a schedule are between 0 and 100 million";
        }
    }
    return NULL;
}

/* Before the first time the first rate holds. */
static const char *
build_file(struct schedule *s, const char *path)
{
    struct numfile f;
    const char *wrong = numfile_read(&f, path);
    if (wrong != NULL) {
        return wrong;
    }
    wrong = check_rows(&f);
    if (wrong == NULL && !alloc_points(s, 2 * (unsigned)f.rows)) {
        wrong = NO_MEMORY;
    }
    for (size_t i = 0; wrong == NULL && i < f.rows; i++) {
        struct rate rate = {f.values[2 * i + 1], false};
        add_point(s, i == 0 ? 0 : f.values[2 * i], rate);
        if (i + 1 < f.rows) {
            add_point(s, f.values[2 * i + 2], rate);
        }
    }
    numfile_fini(&f);
    return wrong;
}

static const struct {
    const char *name;
    const char *(*build)(struct schedule *s, const struct word *w, unsigned count);
} kinds[] = {
    {"const", build_const},       {"ramp", build_ramp},
    {"steps", build_steps},       {"square", build_square},
    {"triangle", build_triangle}, {"qtriangle", build_qtriangle},
    {"sine", build_sine},         {"etc-day", build_etc_day},
};

/* The words between colons, the name first. 0: too many. */
static unsigned
split_words(const char *text, struct word words[WORDS_MAX + 1])
{
    unsigned count = 0;
    for (const char *p = text; p != NULL;) {
        if (count == WORDS_MAX + 1) {
            return 0;
        }
        const char *colon = strchr(p, ':');
        size_t len = colon != NULL ? (size_t)(colon - p) : strlen(p);
        words[count++] = (struct word){p, len};
        p = colon != NULL ? colon + 1 : NULL;
    }
    return count;
}

const char *
schedule_parse(struct schedule *s, const char *text)
{
    static const char file[] = "file:";
    struct word words[WORDS_MAX + 1];
    *s = (struct schedule){.count = 0};
    if (strncmp(text, file, sizeof file - 1) == 0) {
        return build_file(s, text + sizeof file - 1);
    }
    unsigned count = split_words(text, words);
    for (size_t i = 0; count > 0 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (is_word(words[0], kinds[i].name)) {
            return kinds[i].build(s, words + 1, count - 1);
        }
    }
    return "schedules are const ramp steps square triangle qtriangle sine etc-day file";
}
