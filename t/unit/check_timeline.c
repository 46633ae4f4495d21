/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The steps behind the live page: when they end, what they tell, how long they are kept.
 */
#include "admin/timeline.h"

#include "check_main.h"

#define START (1000 * NSEC_PER_SEC)
#define WORKERS 2
#define SUB_BITS 4
#define MAX_DELAY (10 * NSEC_PER_SEC)

static struct timeline t;
static const struct timeline_gauges idle = {.headroom_pct = 100};

/* Totals that a server would have. */
static struct timeline_counts totals;
static struct timeline_thread threads[WORKERS];
static struct hist *delays;

static void
mark(void)
{
    struct timeline_mark *m = timeline_mark(&t);
    m->counts = totals;
    memcpy(m->threads, threads, sizeof threads);
    hist_merge(m->delays[CLASS_SMALL], delays);
}

static void
step_at(nsec_t now)
{
    mark();
    timeline_step(&t, now, &idle);
}

static const struct timeline_sample *
newest(void)
{
    return timeline_sample(&t, 0);
}

static void
set_up(void)
{
    totals = (struct timeline_counts){.hits = 1000};
    memset(threads, 0, sizeof threads);
    delays = hist_create(SUB_BITS, MAX_DELAY);
    ck_assert(delays != NULL && timeline_init(&t, WORKERS, SUB_BITS, MAX_DELAY));
    mark();
    timeline_begin(&t, START);
}

static void
tear_down(void)
{
    timeline_fini(&t);
    hist_destroy(&delays);
}

FIXTURE(set_up, tear_down);

TEST(nothing_is_known_before_the_first_step)
{
    ck_assert_uint_eq(timeline_count(&t, START), 0);
    ck_assert_uint_eq(t.due, START + TIMELINE_STEP);
}

TEST(a_step_has_what_came_since_the_one_before)
{
    totals.requests[CLASS_SMALL] = 50;
    totals.refused[CLASS_BULK] = 7;
    totals.hits += 30;
    totals.misses = 20;
    step_at(START + TIMELINE_STEP);
    totals.requests[CLASS_SMALL] += 5;
    step_at(START + 2 * TIMELINE_STEP);
    const struct timeline_sample *first = timeline_sample(&t, 1);
    ck_assert_uint_eq(timeline_count(&t, START + 2 * TIMELINE_STEP), 2);
    ck_assert_uint_eq(first->counts.requests[CLASS_SMALL], 50);
    ck_assert_uint_eq(first->counts.refused[CLASS_BULK], 7);
    ck_assert_uint_eq(first->counts.hits, 30);
    ck_assert_uint_eq(first->counts.misses, 20);
    ck_assert_uint_eq(newest()->counts.requests[CLASS_SMALL], 5);
    ck_assert_uint_eq(newest()->counts.hits, 0);
    ck_assert_uint_eq(newest()->length, TIMELINE_STEP);
}

TEST(quantiles_are_of_the_step_alone)
{
    hist_record_n(delays, 10 * NSEC_PER_MSEC, 1000);
    step_at(START + TIMELINE_STEP);
    hist_record_n(delays, 10 * NSEC_PER_USEC, 98);
    hist_record_n(delays, NSEC_PER_MSEC, 2);
    step_at(START + 2 * TIMELINE_STEP);
    const struct timeline_sample *s = newest();
    ck_assert(s->has_delay[CLASS_SMALL] && !s->has_delay[CLASS_BULK]);
    ck_assert_double_eq_tol((double)s->p50_ns[CLASS_SMALL], 10e3, 0.07 * 10e3);
    ck_assert_double_eq_tol((double)s->p99_ns[CLASS_SMALL], 1e6, 0.07 * 1e6);
    step_at(START + 3 * TIMELINE_STEP);
    ck_assert(!newest()->has_delay[CLASS_SMALL]);
}

TEST(workers_have_shares_of_the_time)
{
    threads[0] = (struct timeline_thread){.run_ns = TIMELINE_STEP};
    threads[1] = (struct timeline_thread){.run_ns = TIMELINE_STEP / 2,
                                          .wait_ns = TIMELINE_STEP / 10};
    step_at(START + TIMELINE_STEP);
    ck_assert_double_eq_tol(newest()->busy.mean, 0.75, 1e-9);
    ck_assert_double_eq_tol(newest()->busy.most, 1, 1e-9);
    ck_assert_double_eq_tol(newest()->wait.mean, 0.05, 1e-9);
    ck_assert_double_eq_tol(newest()->wait.most, 0.1, 1e-9);
    ck_assert_uint_eq(t.last[1].run_ns, TIMELINE_STEP / 2);
    threads[0].run_ns += 2 * TIMELINE_STEP; /* more than there was */
    threads[1].run_ns = 0;                  /* the kernel tells nothing any more */
    step_at(START + 2 * TIMELINE_STEP);
    ck_assert_double_eq_tol(newest()->busy.mean, 0.5, 1e-9);
}

/* Whatever the phase of the looks is, and however they jitter. */
TEST_LOOP(looks_of_a_second_make_steps_of_five, 10)
{
    nsec_t phase = (unsigned)_i * (NSEC_PER_SEC / 10);
    for (unsigned second = 0; second < 100; second++) {
        nsec_t now = START + second * NSEC_PER_SEC + phase + second % 3 * NSEC_PER_MSEC;
        if (timeline_is_due(&t, now)) {
            step_at(now);
            nsec_t off = newest()->length > TIMELINE_STEP
                             ? newest()->length - TIMELINE_STEP
                             : TIMELINE_STEP - newest()->length;
            ck_assert_uint_le(off, timeline_count(&t, now) == 1 ? NSEC_PER_SEC
                                                                : 2 * NSEC_PER_MSEC);
        }
    }
    ck_assert_uint_ge(timeline_count(&t, START + 100 * NSEC_PER_SEC), 19);
}

static const struct {
    const char *name;
    nsec_t at, due;
} late[] = {
    {"a little early", TIMELINE_STEP - NSEC_PER_MSEC, 2 * TIMELINE_STEP},
    {"in time", TIMELINE_STEP, 2 * TIMELINE_STEP},
    {"a little late", TIMELINE_STEP + NSEC_PER_SEC, 2 * TIMELINE_STEP},
    {"more than half a step late", TIMELINE_STEP + 3 * NSEC_PER_SEC, 3 * TIMELINE_STEP},
    {"several steps late", 4 * TIMELINE_STEP + NSEC_PER_SEC, 5 * TIMELINE_STEP},
};

TEST_ROWS(a_late_step_is_longer, late, row->name)
{
    totals.requests[CLASS_SMALL] = 100;
    step_at(START + row->at);
    ck_assert_uint_eq(timeline_count(&t, START + row->at), 1);
    ck_assert_uint_eq(newest()->counts.requests[CLASS_SMALL], 100);
    ck_assert_uint_eq(newest()->length, row->at);
    ck_assert_uint_eq(t.due, START + row->due);
}

TEST(a_quarter_of_an_hour_is_kept)
{
    nsec_t now = START;
    for (unsigned i = 1; i <= 2 * TIMELINE_STEPS; i++) {
        totals.requests[CLASS_SMALL] += i;
        now = t.due;
        step_at(now);
    }
    ck_assert_uint_eq(now, START + 2 * TIMELINE_SPAN);
    ck_assert_uint_eq(timeline_count(&t, now), TIMELINE_STEPS);
    for (unsigned back = 0; back < TIMELINE_STEPS; back++) {
        ck_assert_uint_eq(timeline_sample(&t, back)->counts.requests[CLASS_SMALL],
                          2 * TIMELINE_STEPS - back);
    }
    ck_assert_uint_eq(timeline_count(&t, now + TIMELINE_STEP), TIMELINE_STEPS - 1);
}

TEST(late_steps_are_dropped_by_their_age)
{
    for (unsigned i = 1; i <= 20; i++) {
        step_at(START + i * 60 * NSEC_PER_SEC);
    }
    ck_assert_uint_eq(timeline_count(&t, START + 20 * 60 * NSEC_PER_SEC), 15);
    ck_assert_uint_eq(timeline_count(&t, START + 3600 * NSEC_PER_SEC), 0);
}
