/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Pacing: rates that are kept, what is made up for, what happens to late requests; alarms in
 * order whatever order they came in; traffic settled for a run.
 */
#include "loadgen/drive/pacing.h"
#include "check_main.h"

#include <math.h>

#include "base/rng.h"
#include "loadgen/drive/alarms.h"
#include "loadgen/drive/source.h"
#include "loadgen/drive/traffic.h"

#define BEGIN (UINT64_C(1000) * NSEC_PER_SEC)

/* Never more than the rate's share of any time, and a short burst. */
TEST_LOOP(test_rate, 5)
{
    static const double rates[] = {1, 333, 1e4, 1e6, 7e8};
    struct pacer p;
    struct rng rng;
    double rate = rates[_i], done = 0;
    nsec_t now = BEGIN;
    pacer_init(&p, rate);
    rng_init(&rng, 1, (uint64_t)_i);
    for (int i = 0; i < 100000; i++) {
        now += rng_below(&rng, (uint64_t)(3e9 / rate) + 2);
        if (pacer_next(&p) <= now) {
            pacer_take(&p, now);
            done++;
        }
        double most = (double)(now - BEGIN + PACING_BURST) / floor(1e9 / rate) + 2;
        expect(done <= most);
    }
    ck_assert_double_gt(done, 0.4 * (double)(now - BEGIN) / 1e9 * rate);
}

TEST(test_reserve)
{
    struct pacer p;
    pacer_init(&p, 0);
    ck_assert_uint_eq(pacer_reserve(&p, BEGIN), BEGIN);
    ck_assert_uint_eq(pacer_reserve(&p, BEGIN), BEGIN);
    pacer_init(&p, 10);
    nsec_t last = pacer_reserve(&p, BEGIN);
    ck_assert_uint_eq(last, BEGIN);
    for (int i = 0; i < 10; i++) {
        nsec_t next = pacer_reserve(&p, BEGIN);
        ck_assert_uint_ge(next + PACING_BURST, last + NSEC_PER_SEC / 10);
        last = next;
    }
}

/* A thread that polls as long as it may leaves enough of each second; one that sleeps that much
 * by itself may poll whenever it wants to. */
TEST_LOOP(test_give_way, 2)
{
    bool sleeps_anyhow = _i == 1;
    const nsec_t pass = 20 * NSEC_PER_USEC, least = 55 * NSEC_PER_MSEC;
    struct give_way g = {.at = BEGIN};
    nsec_t cpu = 0, slept = 0, slept_before = 0;
    for (nsec_t now = BEGIN; now < BEGIN + 10 * NSEC_PER_SEC; now += pass) {
        if (now - g.at >= GIVE_WAY_LOOK) {
            give_way_look(&g, cpu, now);
        }
        bool wants = sleeps_anyhow && now / pass % 10 == 0;
        ck_assert(!sleeps_anyhow || !give_way_is_owed(&g));
        slept += wants || give_way_is_owed(&g) ? pass : 0;
        cpu += wants || give_way_is_owed(&g) ? 0 : pass;
        if ((now - BEGIN) % NSEC_PER_SEC == NSEC_PER_SEC - pass) {
            ck_assert_uint_ge(slept - slept_before, least);
            ck_assert_uint_le(slept - slept_before, 2 * least);
            slept_before = slept;
        }
    }
}

/* One that always has something to send sleeps all the same, never for long. */
TEST(test_give_way_naps)
{
    const nsec_t pass = 20 * NSEC_PER_USEC, least = 55 * NSEC_PER_MSEC;
    struct give_way g = {.at = BEGIN};
    nsec_t now = BEGIN, cpu = 0;
    for (int second = 0; second < 10; second++) {
        nsec_t slept = 0, end = BEGIN + (nsec_t)(second + 1) * NSEC_PER_SEC;
        while (now < end) {
            now += pass;
            cpu += pass;
            if (now - g.at >= GIVE_WAY_LOOK) {
                give_way_look(&g, cpu, now);
                nsec_t nap = give_way_nap(&g);
                ck_assert_uint_le(nap, GIVE_WAY_NAP);
                slept += nap;
                now += nap;
            }
        }
        ck_assert_uint_ge(slept, least);
        ck_assert_uint_le(slept, 2 * least);
    }
}

/* What pauses between requests can still pay for is not slept at once. */
TEST(test_give_way_credit)
{
    struct give_way g = {.owed = GIVE_WAY_CREDIT};
    ck_assert_uint_eq(give_way_nap(&g), 0);
    g.owed++;
    ck_assert_uint_eq(give_way_nap(&g), 1);
    g.owed += GIVE_WAY_NAP;
    ck_assert_uint_eq(give_way_nap(&g), GIVE_WAY_NAP);
}

TEST(test_late)
{
    struct pacing p = {.late = LATE_SEND};
    nsec_t late = BEGIN - PACING_LATE - 1;
    ck_assert_int_eq(pacing_judge(&p, late, BEGIN), PACING_SEND);
    p.late = LATE_DROP;
    ck_assert_int_eq(pacing_judge(&p, late, BEGIN), PACING_DROP);
    ck_assert_int_eq(pacing_judge(&p, late + 1, BEGIN), PACING_SEND);
    p.late = LATE_CAP;
    pacer_init(&p.cap, 100);
    ck_assert_int_eq(pacing_judge(&p, late, BEGIN), PACING_SEND);
    pacer_take(&p.cap, BEGIN);
    ck_assert_int_eq(pacing_judge(&p, late, BEGIN), PACING_WAIT);
    ck_assert_int_eq(pacing_judge(&p, late + 1, BEGIN), PACING_SEND); /* not late */
    nsec_t next = pacer_next(&p.cap);
    ck_assert_int_eq(pacing_judge(&p, late, next - 1), PACING_WAIT);
    ck_assert_int_eq(pacing_judge(&p, late, next), PACING_SEND);
}

TEST(test_alarms)
{
    enum { MANY = 1000 };
    struct alarms a;
    struct rng rng;
    rng_init(&rng, 1, 0);
    alarms_init(&a, MANY);
    ck_assert_uint_eq(alarms_next(&a), ALARMS_NEVER);
    nsec_t now = 0;
    unsigned pushed = 0;
    uint64_t sum = 0;
    for (int turn = 0; turn < 20000; turn++) {
        if (a.count < MANY && rng_below(&rng, 2) == 0) {
            alarms_push(&a, (struct alarm_entry){now + rng_below(&rng, 50), pushed, 7});
            sum += pushed++;
        } else if (a.count > 0) {
            nsec_t when = alarms_next(&a);
            struct alarm_entry e = alarms_pop(&a);
            expect(e.when == when && e.when >= now && e.value == 7);
            expect(a.count == 0 || alarms_next(&a) >= e.when);
            now = e.when;
            sum -= e.who;
        }
    }
    while (a.count > 0) {
        sum -= alarms_pop(&a).who;
    }
    ck_assert_uint_eq(sum, 0);
    alarms_fini(&a);
    alarms_init(&a, 0);
    alarms_fini(&a);
}

static struct traffic
settled(enum traffic_mode mode, const char *schedule, double rate, double quiet_s,
        bool is_peak)
{
    struct traffic from = {.mode = mode}, out;
    struct schedule_run run = {rate, 1, quiet_s, 2, 0};
    ck_assert_ptr_null(schedule_parse(&from.schedule, schedule));
    ck_assert_ptr_null(traffic_settle(&out, &from, &run, is_peak));
    schedule_fini(&from.schedule);
    return out;
}

TEST_LOOP(test_settle, 8)
{
    static const struct {
        enum traffic_mode mode;
        const char *schedule;
        double rate, quiet_s;
        bool is_peak;
        enum traffic_mode becomes;
        double mean;
        bool varies;
    } rows[] = {
        {TRAFFIC_OPEN, "const", 100, 0, false, TRAFFIC_OPEN, 100, false},
        {TRAFFIC_OPEN, "const", 100, 0.5, false, TRAFFIC_OPEN, 100, true},
        {TRAFFIC_OPEN, "const", 0, 0, false, TRAFFIC_CLOSED, 0, false},
        {TRAFFIC_CLOSED, "const", 100, 0, false, TRAFFIC_OPEN, 100, false},
        {TRAFFIC_PARTLY, "ramp:0:200%:2", 100, 0, false, TRAFFIC_PARTLY, 100, true},
        {TRAFFIC_OPEN, "ramp:0:10:2", 0, 0, false, TRAFFIC_OPEN, 5, true},
        {TRAFFIC_OPEN, "ramp:0:10:2", 0, 0, true, TRAFFIC_CLOSED, 0, false},
        {TRAFFIC_PARTLY, "ramp:0:10%:2", 0, 0, false, TRAFFIC_CLOSED, 0, false},
    };
    struct traffic t = settled(rows[_i].mode, rows[_i].schedule, rows[_i].rate,
                               rows[_i].quiet_s, rows[_i].is_peak);
    ck_assert_int_eq(t.mode, rows[_i].becomes);
    ck_assert_double_eq_tol(t.rate, rows[_i].mean, 1e-9);
    ck_assert_int_eq(schedule_varies(&t.schedule), rows[_i].varies);
    schedule_fini(&t.schedule);
}

TEST(test_sessions)
{
    struct traffic t = {.mode = TRAFFIC_OPEN};
    ck_assert_double_eq(traffic_session_mean(&t), 1);
    t.mode = TRAFFIC_PARTLY;
    ck_assert_ptr_null(dist_parse(&t.session, "uniform:0.5,9.5"));
    ck_assert_double_eq_tol(traffic_session_mean(&t), 5, 0.01);
    dist_fini(&t.session);
    ck_assert_ptr_null(dist_parse(&t.session, "0"));
    ck_assert_double_eq(traffic_session_mean(&t), 1);
}

/* Who waits for another asks again after pauses that grow, and not for ever. */
TEST(test_pauses)
{
    nsec_t sum = 0;
    ck_assert_uint_eq(source_pause(0), NSEC_PER_MSEC);
    for (unsigned tries = 0; tries < SOURCE_TRIES; tries++) {
        nsec_t pause = source_pause(tries);
        ck_assert(pause == NSEC_PER_MSEC << tries || pause == SOURCE_PAUSE_MAX);
        sum += pause;
    }
    ck_assert_uint_eq(sum, 427 * NSEC_PER_MSEC);
    ck_assert_uint_eq(source_pause(UINT32_MAX), SOURCE_PAUSE_MAX);
}
