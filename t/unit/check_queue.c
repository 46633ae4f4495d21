/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Deferred work of a worker: classes have their shares of its time, none starves, and small
 * requests do not wait behind the rest. Each look at the clock takes a microsecond.
 */
#include "check_main.h"
#include "check_core.h"

#define WORKS 6

static struct sim sim;

/* Work that takes a fixed time a piece and never ends. */
struct job {
    struct work work; /* first */
    enum req_class class;
    nsec_t piece;
    unsigned pieces, short_turns;
    nsec_t used, queued_at, longest_wait;
};

static struct job jobs[WORKS];

static void
job_turn(struct work *work, struct turn *turn)
{
    struct job *j = (struct job *)(void *)work;
    nsec_t begin = sim_now;
    nsec_t waited = begin - j->queued_at;
    ck_assert_uint_eq(turn->requests,
                      turn->is_short ? 1 : sim.core.shared->requests_per_event);
    j->short_turns += turn->is_short;
    j->longest_wait = waited > j->longest_wait ? waited : j->longest_wait;
    do {
        sim_now += j->piece;
        j->pieces++;
    } while (!queue_is_turn_over(&sim.core, turn));
    j->used += sim_now - begin;
    j->queued_at = sim_now;
    queue_put(&sim.core, work, j->class);
}

static const struct work_type job_work = {.turn = job_turn};

static void
set_up(void)
{
    sim_open(&sim, NULL, true);
    memset(jobs, 0, sizeof jobs);
}

static void
begin(unsigned i, enum req_class class, nsec_t piece)
{
    jobs[i] = (struct job){
        .work.type = &job_work, .class = class, .piece = piece, .queued_at = sim_now};
    queue_put(&sim.core, &jobs[i].work, class);
}

static void
tear_down(void)
{
    for (unsigned i = 0; i < WORKS; i++) {
        if (jobs[i].work.type != NULL) {
            queue_leave(&sim.core, &jobs[i].work);
        }
    }
    sim_close(&sim);
}

/* Passes for so long, each with `small` of inline work. */
static void
run_for(nsec_t time, nsec_t small)
{
    nsec_t end = sim_now + time;
    sim_tick = 100;
    while (sim_now < end) {
        expect(core_begin_pass(&sim.core));
        core_wake(&sim.core);
        sim_now += small;
        core_serve(&sim.core);
        core_end_pass(&sim.core);
    }
}

FIXTURE(set_up, tear_down);

/* Alone, a class has all of the worker's time, whatever its share. */
TEST(alone_it_has_all)
{
    begin(0, CLASS_BACKGROUND, 2 * NSEC_PER_USEC);
    nsec_t from = sim_now;
    run_for(100 * NSEC_PER_MSEC, 0);
    double share = (double)jobs[0].used / (double)(sim_now - from);
    ck_assert_double_gt(share, 0.9);
}

/* Two classes that always have work divide what small requests leave, by their shares: 10 % for
 * writes, 5 % for bulk. */
TEST(classes_have_their_shares)
{
    begin(0, CLASS_WRITE, NSEC_PER_USEC);
    begin(1, CLASS_BULK, NSEC_PER_USEC);
    run_for(NSEC_PER_SEC / 2, 20 * NSEC_PER_USEC);
    double ratio = (double)jobs[0].used / (double)jobs[1].used;
    ck_assert_double_gt(ratio, 1.6);
    ck_assert_double_lt(ratio, 2.5);
}

/* Within a class each has its turn. */
TEST(within_a_class_each_has_its_turn)
{
    for (unsigned i = 0; i < WORKS; i++) {
        begin(i, CLASS_BULK, 3 * NSEC_PER_USEC);
    }
    run_for(50 * NSEC_PER_MSEC, 0);
    for (unsigned i = 1; i < WORKS; i++) {
        double ratio = (double)jobs[i].used / (double)jobs[0].used;
        ck_assert_double_gt(ratio, 0.8);
        ck_assert_double_lt(ratio, 1.25);
    }
}

/* And none waits longer than class_max_wait and what the turns in front of it take, however little
 * its share is. */
TEST(none_starves)
{
    sim.core.queue.sched.max_wait = NSEC_PER_MSEC;
    begin(0, CLASS_WRITE, 5 * NSEC_PER_USEC);
    begin(1, CLASS_BULK, 5 * NSEC_PER_USEC);
    begin(2, CLASS_BACKGROUND, 5 * NSEC_PER_USEC);
    run_for(NSEC_PER_SEC / 2, 200 * NSEC_PER_USEC);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_gt(jobs[i].pieces, 50);
        ck_assert_uint_lt(jobs[i].longest_wait, 2 * NSEC_PER_MSEC);
    }
    uint64_t overdue = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        overdue += ctr_get(&sim.core.classes[c].overdue);
    }
    ck_assert_uint_gt(overdue, 0);
    /* Such a turn is short, which is not counted as a yield that -R is the reason of. */
    ck_assert_uint_eq(jobs[0].short_turns + jobs[1].short_turns + jobs[2].short_turns,
                      overdue);
}

/* The longest of a thousand passes over deferred work, without what the last piece of each may be
 * over: with small requests that are served before each, or without. */
static nsec_t
longest_pass(bool has_guests)
{
    nsec_t longest = 0;
    sim_tick = 100;
    for (unsigned i = 0; i < 1000; i++) {
        expect(core_begin_pass(&sim.core));
        core_wake(&sim.core);
        struct turn turn = core_inline_turn(&sim.core);
        turn.has_run = turn.has_guest = has_guests;
        (void)!queue_end_inline(&sim.core, &turn);
        nsec_t from = sim_now;
        core_serve(&sim.core);
        core_end_pass(&sim.core);
        longest = sim_now - from > longest ? sim_now - from : longest;
    }
    return longest;
}

/* While small requests come, deferred work keeps to short turns: the sockets are looked at
 * again soon. */
TEST(small_ones_do_not_wait)
{
    begin(0, CLASS_BULK, NSEC_PER_USEC);
    ck_assert_uint_lt(longest_pass(true), 2 * PACE_TURN_MIN_NS);
}

TEST(bulk_alone_is_looked_after_seldom)
{
    begin(0, CLASS_BULK, NSEC_PER_USEC);
    nsec_t longest = longest_pass(false);
    ck_assert_uint_gt(longest, PACE_TURN_MAX_NS * 9 / 10);
    ck_assert_uint_lt(longest, 2 * PACE_TURN_MAX_NS);
}

/* A pass with much inline work and others waiting ends, and what is not yet read is next. */
TEST(inline_work_has_an_end)
{
    begin(0, CLASS_BULK, NSEC_PER_USEC);
    unsigned served = 0;
    sim_tick = 100;
    (void)!core_begin_pass(&sim.core);
    core_wake(&sim.core);
    struct turn turn = core_inline_turn(&sim.core);
    do {
        expect(++served < 10000);
        sim_now += 2 * NSEC_PER_USEC;
    } while (!queue_end_inline(&sim.core, &turn));
    ck_assert_uint_gt(served, 8);
}

/* What comes pipelined at all sockets of a poll does not take the share of others. */
TEST(small_ones_leave_others_their_share)
{
    nsec_t from = sim_now;
    begin(0, CLASS_BULK, NSEC_PER_USEC);
    sim_tick = 100;
    while (sim_now < from + NSEC_PER_SEC / 10) {
        expect(core_begin_pass(&sim.core));
        core_wake(&sim.core);
        struct turn turn = core_inline_turn(&sim.core);
        turn.has_guest = true;
        unsigned sockets = 64;
        do {
            sim_now += 30 * NSEC_PER_USEC;
        } while (!queue_end_inline(&sim.core, &turn) && --sockets > 0);
        core_serve(&sim.core);
        core_end_pass(&sim.core);
    }
    ck_assert_double_gt((double)jobs[0].used / (double)(sim_now - from), 0.05);
}

/* What may take long has no place where requests are read, and one in a deferred turn. */
TEST(long_ones_one_by_one)
{
    struct turn read = core_inline_turn(&sim.core), deferred = {.lane = CLASS_SMALL};
    expect(!queue_admits_long(&read));
    expect(queue_admits_long(&deferred));
    expect(!queue_admits_long(&deferred));
}

/* While the thread let another one run, requests waited; while it slept in its poll, none was there. */
TEST_LOOP(what_arrives_when_it_gives_way_has_waited, 2)
{
    sim_tick = 0;
    atomic_store(&sim.shared.times_passes, _i == 1);
    (void)!core_begin_pass(&sim.core);
    core_wake(&sim.core);
    core_serve(&sim.core);
    core_end_pass(&sim.core);
    nsec_t end = sim_now;
    sim_now += 300 * NSEC_PER_USEC;
    core_gave_way(&sim.core);
    (void)!core_begin_pass(&sim.core);
    core_wake(&sim.core);
    ck_assert_uint_eq(sim.core.pass.heard_at, end);
    core_serve(&sim.core);
    core_end_pass(&sim.core);
    sim_now += 300 * NSEC_PER_USEC;
    (void)!core_begin_pass(&sim.core);
    core_wake(&sim.core);
    ck_assert_uint_eq(sim.core.pass.heard_at, sim_now);
}
