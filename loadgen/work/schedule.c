/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/schedule.h"

#include <math.h>

#include "base/alloc.h"
#include "loadgen/work/form.h"

#define LEAD_POINTS 4

bool
schedule_varies(const struct schedule *s)
{
    return s->count > 0;
}

bool
schedule_has_shares(const struct schedule *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (s->points[i].is_share) {
            return true;
        }
    }
    return false;
}

double
schedule_peak(const struct schedule *s, double rate)
{
    double peak = s->count > 0 ? 0 : rate;
    for (unsigned i = 0; i < s->count; i++) {
        const struct schedule_point *p = &s->points[i];
        peak = fmax(peak, p->is_share ? p->rate * rate : p->rate);
    }
    return peak;
}

void
schedule_fini(struct schedule *s)
{
    free(s->points);
    *s = (struct schedule){.count = 0};
}

static struct schedule_point
settle_point(const struct schedule *from, unsigned i, const struct schedule_run *run)
{
    const struct schedule_point *p = &from->points[i];
    return (struct schedule_point){
        .at_s = run->lead_s + p->at_s * (from->is_stretched ? run->time_s : 1),
        .rate = p->rate * (p->is_share ? run->rate : 1),
    };
}

/* The warm-up comes before the points, when there is one. */
static void
put_points(struct schedule *s, const struct schedule *from,
           const struct schedule_run *run)
{
    double rate = run->lead_rate > 0 ? run->lead_rate : settle_point(from, 0, run).rate;
    double still_s = run->lead_s - run->quiet_s;
    if (run->lead_s > 0) {
        const struct schedule_point lead[LEAD_POINTS] = {
            {.at_s = 0, .rate = rate},
            {.at_s = still_s, .rate = rate},
            {.at_s = still_s, .rate = 0},
            {.at_s = run->lead_s, .rate = 0},
        };
        memcpy(s->points, lead, sizeof lead);
        s->repeat = s->count = LEAD_POINTS;
    }
    for (unsigned i = 0; i < from->count; i++) {
        s->points[s->count++] = settle_point(from, i, run);
    }
}

static const char *
sum_up(struct schedule *s, const struct schedule_run *run)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (!(s->points[i].rate <= FORM_RATE_MAX)) {
            return "the schedule's rate is too high";
        }
    }
    for (unsigned i = 1; i < s->count; i++) {
        struct schedule_point *p = &s->points[i];
        double rate = (p[-1].rate + p->rate) / 2;
        p->sum = p[-1].sum + rate * (p->at_s - p[-1].at_s);
    }
    const struct schedule_point *last = &s->points[s->count - 1];
    if (last->sum - s->points[s->repeat].sum <= 0 &&
        (s->is_periodic || last->rate <= 0)) {
        return "the schedule has no requests";
    }
    double end = schedule_sum(s, run->lead_s + run->time_s);
    s->mean = (end - schedule_sum(s, run->lead_s)) / run->time_s;
    return s->mean > 0 ? NULL : "the schedule has no requests within the run";
}

const char *
schedule_settle(struct schedule *s, const struct schedule *from,
                const struct schedule_run *run)
{
    must(from->count > 0 && run->quiet_s <= run->lead_s && run->time_s > 0);
    *s = (struct schedule){.is_periodic = from->is_periodic};
    s->points = alloc_zeroed(from->count + LEAD_POINTS, sizeof *s->points);
    put_points(s, from, run);
    const char *wrong = sum_up(s, run);
    if (wrong != NULL) {
        schedule_fini(s);
    }
    return wrong;
}

/* Of one period; both 0 when nothing repeats. */
static void
period_of(const struct schedule *s, double *time_s, double *sum)
{
    const struct schedule_point *first = &s->points[s->repeat];
    const struct schedule_point *last = &s->points[s->count - 1];
    *time_s = s->is_periodic ? last->at_s - first->at_s : 0;
    *sum = s->is_periodic ? last->sum - first->sum : 0;
}

/* Time that the piece after p takes to bring `sum` requests: of r t + a t^2 / 2 = sum, in a
 * form in which nothing cancels. */
static double
time_within(const struct schedule_point *p, double sum)
{
    double slope = (p[1].rate - p->rate) / (p[1].at_s - p->at_s);
    double end = sqrt(fmax(0, p->rate * p->rate + 2 * slope * sum));
    return sum <= 0 ? 0 : fmin(2 * sum / (p->rate + end), p[1].at_s - p->at_s);
}

double
schedule_time(const struct schedule *s, struct schedule_cursor *c, double sum)
{
    double period_s, period_sum;
    period_of(s, &period_s, &period_sum);
    for (;;) {
        const struct schedule_point *p = &s->points[c->at];
        double rest = sum - (double)c->turns * period_sum;
        if (c->at + 1 < s->count) {
            if (rest < p[1].sum) {
                return (double)c->turns * period_s + p->at_s +
                       time_within(p, rest - p->sum);
            }
            c->at++;
        } else if (s->is_periodic) {
            /* The next period, or one much later: rates may be low. */
            double turns = floor((sum - s->points[s->repeat].sum) / period_sum);
            c->turns = fmax(turns, (double)c->turns + 1) < 0x1p63
                           ? (uint64_t)fmax(turns, (double)c->turns + 1)
                           : UINT64_C(1) << 63;
            c->at = s->repeat;
        } else {
            return p->rate > 0 ? p->at_s + (rest - p->sum) / p->rate : INFINITY;
        }
    }
}

/* The last point not after the time; *time_s becomes the time within the first period. */
static const struct schedule_point *
point_before(const struct schedule *s, double *time_s, double *turns)
{
    double period_s, period_sum;
    period_of(s, &period_s, &period_sum);
    double begin = s->points[s->repeat].at_s;
    *turns = period_s > 0 && *time_s > begin ? floor((*time_s - begin) / period_s) : 0;
    *time_s -= *turns * period_s;
    unsigned low = 0, high = s->count;
    while (high - low > 1) {
        unsigned middle = low + (high - low) / 2;
        if (s->points[middle].at_s <= *time_s) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &s->points[low];
}

static double
rate_after(const struct schedule *s, const struct schedule_point *p, double time_s)
{
    if (p + 1 == s->points + s->count) {
        return s->is_periodic ? s->points[s->repeat].rate : p->rate;
    }
    return p->rate + (p[1].rate - p->rate) * (time_s - p->at_s) / (p[1].at_s - p->at_s);
}

double
schedule_rate(const struct schedule *s, double time_s)
{
    double turns;
    const struct schedule_point *p = point_before(s, &time_s, &turns);
    return rate_after(s, p, time_s);
}

double
schedule_sum(const struct schedule *s, double time_s)
{
    double turns, period_s, period_sum;
    period_of(s, &period_s, &period_sum);
    const struct schedule_point *p = point_before(s, &time_s, &turns);
    double rate = (p->rate + rate_after(s, p, time_s)) / 2;
    return turns * period_sum + p->sum + rate * (time_s - p->at_s);
}
