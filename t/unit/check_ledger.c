/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the processes of a swarm report, added up interval by interval: rows of all together,
 * and a headline that ends where the first of them was lost.
 */
#include "loadgen/swarm/leader/ledger.h"

#include "check_main.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

#define MS NSEC_PER_MSEC
#define START (7 * NSEC_PER_SEC)
#define LENGTH (100 * MS)
#define PARTS 3
#define LAST 10

static struct ledger *ledger;
static struct counters now[PARTS], before[PARTS];

static void
begin(nsec_t row_length)
{
    static const struct ledger_part all[PARTS] = {{0, 1}, {0, 1}, {0, 1}};
    struct ledger_run run = {all,    START,      START + LAST * LENGTH,
                             LENGTH, row_length, false};
    ledger = ledger_create(PARTS, 1);
    ledger_start(ledger, &run);
    for (unsigned i = 0; i < PARTS; i++) {
        counters_init(&now[i]);
        counters_init(&before[i]);
    }
}

static void
tear_down(void)
{
    ledger_destroy(&ledger);
    for (unsigned i = 0; i < PARTS; i++) {
        counters_fini(&now[i]);
        counters_fini(&before[i]);
    }
}

/* With so many bytes that nobody asked for. */
static bool
report_padded(unsigned part, unsigned class_index, uint64_t interval, size_t padding)
{
    static const uint8_t nothing[1 << 16];
    struct frame_out o = {.p = NULL};
    struct frame f;
    size_t taken;
    frame_begin(&o, 1, 0, 0);
    delta_put(&o, &now[part], &before[part]);
    for (size_t rest = padding; rest > 0;) {
        size_t len = rest < sizeof nothing ? rest : sizeof nothing;
        frame_put_bytes(&o, UINT16_MAX, nothing, len);
        rest -= len;
    }
    ck_assert(frame_end(&o, 0));
    ck_assert(frame_parse(o.p, o.len, FRAME_MAX, 0, &f, &taken) == FRAME_DONE);
    bool is_good = ledger_add(ledger, part, class_index, interval, &f);
    frame_out_fini(&o);
    counters_reset(&before[part]);
    counters_merge(&before[part], &now[part]);
    return is_good;
}

static bool
report_class(unsigned part, unsigned class_index, uint64_t interval)
{
    return report_padded(part, class_index, interval, 0);
}

static bool
report(unsigned part, uint64_t interval)
{
    return report_class(part, 0, interval);
}

/* Requests of this interval: one for each of `count`, in as many microseconds. */
static void
send(unsigned part, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ctr_add(&now[part].done[COUNTERS_READ], 1);
        ctr_add(&now[part].offered, 1);
        counters_good(&now[part], COUNTERS_READ, count * NSEC_PER_USEC,
                      count * NSEC_PER_USEC, 1);
    }
}

static uint64_t
offered(const struct counters *t)
{
    return ctr_get(&t->offered);
}

/* Intervals of the first so many parts, each with so many requests. */
static void
report_all(unsigned from, unsigned to, unsigned parts, unsigned count)
{
    for (unsigned k = from; k <= to; k++) {
        for (unsigned i = 0; i < parts; i++) {
            send(i, count);
            ck_assert(report(i, k));
        }
    }
}

FIXTURE(NULL, tear_down);

TEST(numbers)
{
    ck_assert_uint_eq(interval_length(5 * NSEC_PER_SEC, NSEC_PER_SEC), 100 * MS);
    ck_assert_uint_eq(interval_length(600 * NSEC_PER_SEC, NSEC_PER_SEC), NSEC_PER_SEC);
    ck_assert_uint_eq(interval_length(600 * NSEC_PER_SEC, 60 * NSEC_PER_SEC),
                      NSEC_PER_SEC);
    ck_assert_uint_eq(interval_length(5 * NSEC_PER_SEC, 250 * MS), 250 * MS / 3);
    ck_assert_uint_eq(interval_length(5 * NSEC_PER_SEC, 50 * MS), 50 * MS);
    ck_assert_uint_eq(interval_length(5 * NSEC_PER_SEC, MS), 10 * MS);
    ck_assert_uint_eq(interval_length(MS, NSEC_PER_SEC), 100 * MS);
    ck_assert_uint_eq(interval_last(NSEC_PER_SEC, 100 * MS), 10);
    ck_assert_uint_eq(interval_last(NSEC_PER_SEC + 1, 100 * MS), 11);
    ck_assert_uint_eq(interval_last(NSEC_PER_SEC - 1, 100 * MS), 10);
    ck_assert_uint_eq(interval_last(MS, 100 * MS), 1);
    ck_assert_uint_eq(interval_number(100 * MS, NSEC_PER_SEC, 100 * MS), 1);
    ck_assert_uint_eq(interval_number(140 * MS, NSEC_PER_SEC, 100 * MS), 1);
    ck_assert_uint_eq(interval_number(860 * MS, NSEC_PER_SEC, 100 * MS), 9);
    ck_assert_uint_eq(interval_number(999 * MS, NSEC_PER_SEC, 100 * MS), 9);
}

TEST(rows_are_of_all)
{
    begin(2 * LENGTH);
    for (unsigned k = 1; k <= LAST; k++) {
        for (unsigned i = 0; i < PARTS; i++) {
            send(i, 10 * k + i);
            ck_assert(report(i, k));
        }
    }
    ledger_finish(ledger, START + LAST * LENGTH);
    struct series *s = ledger_take_series(ledger, 1);
    ck_assert_uint_eq(s->rows_len, LAST / 2);
    for (unsigned r = 0; r < s->rows_len; r++) {
        unsigned k = 2 * r + 1;
        ck_assert_uint_eq(s->rows[r].requests, 30 * k + 3 + 30 * (k + 1) + 3);
        ck_assert_double_eq_tol(s->rows[r].start_s, 0.2 * r, 1e-9);
        ck_assert_double_eq_tol(s->rows[r].length_s, 0.2, 1e-9);
        ck_assert_uint_eq(s->rows[r].lost, 0);
    }
    ck_assert_uint_eq(s->count, LAST);
    series_destroy(&s);
    for (unsigned i = 0; i < PARTS; i++) {
        ck_assert_uint_eq(delta_digest(ledger_sum(ledger, i, 0)), delta_digest(&now[i]));
        ck_assert_ptr_eq(ledger_headline(ledger, i, 0), ledger_sum(ledger, i, 0));
    }
    ck_assert_uint_eq(ledger_cut(ledger), 0);
}

/* What waits in each of them, and may be answered later. */
TEST(backlogs_add_up)
{
    begin(LENGTH);
    for (unsigned k = 1; k <= LAST; k++) {
        for (unsigned i = 0; i < PARTS; i++) {
            ctr_add(&now[i].offered, i);
            send(i, 10);
            ck_assert(report(i, k));
        }
    }
    ledger_finish(ledger, START + LAST * LENGTH);
    SCOPED(series_destroy) struct series *s = ledger_take_series(ledger, 0);
    struct series_growth g = series_growth(s);
    ck_assert_double_eq(g.backlog, 3.0 * LAST / 2);
    ck_assert_double_eq(g.answered, 30.0 * LAST / 2);
    ck_assert_double_eq(g.chance, 0); /* as many each time */
}

/* Part 2 is slower than the others to report, and is lost after its third interval, when
 * they have reported the fifth. */
TEST(the_headline_ends_with_the_loss)
{
    begin(LENGTH);
    ctr_add(&now[0].skipped, 3);
    report_all(1, 5, 2, 100);
    for (unsigned k = 1; k <= 3; k++) {
        send(2, 50);
        ck_assert(report(2, k));
    }
    ledger_lose(ledger, 2);
    ledger_lose(ledger, 2);
    send(2, 50);
    ck_assert(!report(2, 4));
    report_all(6, LAST, 2, 100);
    ledger_finish(ledger, START + LAST * LENGTH);
    ck_assert_uint_eq(ledger_cut(ledger), 3);
    ck_assert(!ledger_is_void(ledger));
    ck_assert_uint_eq(ledger_reported(ledger, 2), 3);
    ck_assert_uint_eq(offered(ledger_headline(ledger, 0, 0)), 300);
    ck_assert_uint_eq(offered(ledger_headline(ledger, 2, 0)), 150);
    ck_assert_uint_eq(offered(ledger_sum(ledger, 1, 0)), 1000);
    ck_assert_uint_eq(offered(ledger_sum(ledger, 2, 0)), 150);
    /* how long those waited that were passed over was not known then */
    ck_assert_uint_eq(hist_count(ledger_headline(ledger, 0, 0)->waits), 3);
    ck_assert_uint_eq(hist_max(ledger_headline(ledger, 0, 0)->waits), 0);
    SCOPED(series_destroy) struct series *s = ledger_take_series(ledger, 0);
    ck_assert_uint_eq(s->rows_len, LAST);
    ck_assert_uint_eq(s->count, 3); /* its confidence is that of the headline */
    for (unsigned r = 0; r < LAST; r++) {
        ck_assert_uint_eq(s->rows[r].requests, r < 3 ? 250 : 200);
        ck_assert_uint_eq(s->rows[r].lost, r < 3 ? 0 : 1);
    }
}

TEST(a_loss_before_all_reports)
{
    begin(LENGTH);
    ck_assert(!ledger_is_void(ledger));
    ledger_lose(ledger, 1);
    ck_assert(ledger_is_void(ledger));
    for (unsigned k = 1; k <= LAST; k++) {
        for (unsigned i = 0; i < PARTS; i += 2) {
            send(i, 10);
            ck_assert(report(i, k));
        }
    }
    ledger_finish(ledger, START + LAST * LENGTH);
    ck_assert_uint_eq(ledger_cut(ledger), 0);
    ck_assert_uint_eq(offered(ledger_headline(ledger, 0, 0)), 100);
    SCOPED(series_destroy) struct series *s = ledger_take_series(ledger, 1);
    ck_assert_uint_eq(s->rows_len, LAST);
    ck_assert_uint_eq(s->rows[0].lost, 1);
}

/* All are told to stop; one has looked less often than the others. */
TEST(a_run_that_is_stopped)
{
    begin(LENGTH);
    for (unsigned k = 1; k <= 4; k++) {
        for (unsigned i = 0; i < PARTS; i++) {
            send(i, 10);
            if (i != 1 || k == 2) {
                ck_assert(report(i, k));
            }
        }
    }
    for (unsigned i = 0; i < PARTS; i++) {
        send(i, 10);
        ck_assert(report(i, i == 1 ? 3 : 5));
    }
    ledger_finish(ledger, START + 4 * LENGTH + LENGTH / 2);
    SCOPED(series_destroy) struct series *s = ledger_take_series(ledger, 1);
    uint64_t requests = 0;
    for (unsigned r = 0; r < s->rows_len; r++) {
        requests += s->rows[r].requests;
    }
    ck_assert_uint_eq(requests, 150);
    ck_assert_double_le(s->rows[s->rows_len - 1].start_s, 0.45);
}

/* One comes to the end of its trace: the others' rows do not wait for it. */
TEST(a_part_that_is_done)
{
    begin(LENGTH);
    for (unsigned k = 1; k <= 4; k++) {
        for (unsigned i = 0; i < PARTS; i++) {
            send(i, 10);
            if (i != 1 || k <= 2) {
                ck_assert(report(i, k));
            }
        }
        if (k == 2) {
            ledger_done(ledger, 1);
            ck_assert(!report(1, 3)); /* that was all */
            ledger_lose(ledger, 1);
        }
    }
    ledger_finish(ledger, START + 4 * LENGTH);
    ck_assert_uint_eq(ledger_cut(ledger), 0); /* nor can it be lost any more */
    SCOPED(series_destroy) struct series *s = ledger_take_series(ledger, 1);
    ck_assert_uint_ge(s->rows_len, 4);
    ck_assert_uint_eq(s->rows[0].requests, 30);
    ck_assert_uint_eq(s->rows[2].requests, 20);
    ck_assert_uint_eq(s->rows[3].requests, 20);
}

TEST(reports_that_make_no_sense)
{
    struct frame empty = {.fields = NULL};
    begin(LENGTH);
    send(0, 10);
    ck_assert(report(0, 2));
    ck_assert(!report(0, 2));
    ck_assert(!report(0, 1));
    ck_assert(!report(0, LAST + 1));
    ck_assert(!ledger_add(ledger, 0, 0, 3, &empty));
    send(1, 10);
    ck_assert(report(1, LAST));
    ledger_finish(ledger, START + LAST * LENGTH);
    ck_assert(!report(2, 5)); /* it is over */
    ck_assert_uint_eq(offered(ledger_sum(ledger, 0, 0)), 10);
}

/* Of a process that is far behind, the others' reports do not pile up. */
TEST(reports_do_not_pile_up)
{
    static const struct ledger_part all[PARTS] = {{0, 1}, {0, 1}, {0, 0}};
    begin(LENGTH);
    struct ledger_run run = {all,    START,       START + 1000 * LENGTH,
                             LENGTH, 10 * LENGTH, false};
    ledger_start(ledger, &run);
    for (unsigned k = 1; k <= 900; k++) {
        send(0, 1);
        ck_assert(report(0, k));
    }
    ck_assert_uint_eq(offered(ledger_sum(ledger, 0, 0)), 900 - LEDGER_WAITING);
    send(1, 1);
    ck_assert(report(1, 1));
    ledger_lose(ledger, 1);
    ledger_finish(ledger, START + 900 * LENGTH);
    ck_assert_uint_eq(offered(ledger_sum(ledger, 0, 0)), 900);
    ck_assert_uint_eq(offered(ledger_sum(ledger, 1, 0)), 1);
}

/* Nor do they when they are few and long; none is longer than it can be. */
TEST(long_reports_do_not_pile_up)
{
    static const struct ledger_part all[PARTS] = {{0, 1}, {0, 1}, {0, 0}};
    const size_t padding = 1 << 20, most = LEDGER_WAITING_BYTES / padding;
    begin(LENGTH);
    struct ledger_run run = {all,    START,       START + 1000 * LENGTH,
                             LENGTH, 10 * LENGTH, false};
    ledger_start(ledger, &run);
    for (unsigned k = 1; k <= 100; k++) {
        send(0, 1);
        ck_assert(report_padded(0, 0, k, padding));
        uint64_t waiting = k - offered(ledger_sum(ledger, 0, 0));
        ck_assert_uint_eq(waiting, k < most ? k : most - 1);
    }
    ck_assert(!report_padded(0, 0, 101, 3 * padding));
    ck_assert_uint_eq(ledger_reported(ledger, 0), 100);
    ledger_lose(ledger, 1);
    ledger_finish(ledger, START + 100 * LENGTH);
    ck_assert_uint_eq(offered(ledger_sum(ledger, 0, 0)), 100);
}

/* Else one that never comes to its last class could fill the memory. */
TEST(classes_come_in_their_order)
{
    static const struct ledger_part all[2] = {{0, 3}, {1, 3}};
    struct ledger_run run = {all, START, START + LAST * LENGTH, LENGTH, LENGTH, false};
    begin(LENGTH);
    ledger_destroy(&ledger);
    ledger = ledger_create(2, 3);
    ledger_start(ledger, &run);
    ck_assert(!report_class(0, 1, 1));
    ck_assert(report_class(0, 0, 1));
    ck_assert(!report_class(0, 0, 1));
    ck_assert(!report_class(0, 0, 2));
    ck_assert(!report_class(0, 2, 1));
    ck_assert(!report_class(0, 1, 2));
    ck_assert(report_class(0, 1, 1));
    ck_assert(report_class(0, 2, 1));
    ck_assert(!report_class(0, 3, 1));
    ck_assert_uint_eq(ledger_reported(ledger, 0), 1);
    ck_assert(!report_class(0, 0, 1));
    ck_assert(report_class(0, 0, 4));
    ck_assert(!report_class(1, 0, 1));
    ck_assert(report_class(1, 1, 1));
    ck_assert(report_class(1, 2, 1));
    ledger_start(ledger, &run); /* from the first class again */
    ck_assert(report_class(0, 0, 1));
    ledger_finish(ledger, START + LAST * LENGTH);
}
