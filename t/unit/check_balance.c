/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Balance: quiet when there is nothing to do, quick when there is, no ping-pong; which
 * connections go. A little machine plays the workers: connections have rates, a worker's busy
 * time is the sum of its connections' rates times the time of a request, up to all of it.
 */
#include "qos/balance.h"

#include "base/rng.h"
#include "check_main.h"

#define WORKERS 4
#define CONNS_MAX 1000

struct model_conn {
    double rate; /* shares of a worker's time */
    unsigned worker;
    nsec_t moved_at;
    unsigned moves;
};

struct model {
    struct balance policy;
    unsigned workers, count;
    struct model_conn conns[CONNS_MAX];
    double antagonist[WORKERS]; /* share of the time that somebody else has the CPU */
    double
        stall; /* worker 0 waits for its CPU so long as long as it has requests at all */
    double
        batch[WORKERS]; /* share of its CPU that a batch job has; a worker that wants it
                              waits now and then */
    bool is_stuck;      /* no connection is ever between two requests */
    double noise;
    double
        delay; /* ns that requests wait for a worker that is wanted all the time; as much
                     more as it is wanted more */
    struct rng rng;
    struct balance_sample samples[WORKERS];
    uint64_t used_ns[WORKERS];
    nsec_t now;
    unsigned moves;
    enum balance_reason reason;
};

static struct model m;

static void
start(unsigned workers)
{
    balance_fini(&m.policy);
    m = (struct model){.workers = workers, .now = NSEC_PER_SEC};
    rng_init(&m.rng, 7, 7);
    ck_assert(balance_init(&m.policy, workers));
    struct balance_move move;
    ck_assert_uint_eq(balance_step(&m.policy, m.samples, m.now, &move), BALANCE_QUIET);
}

static void
add(unsigned number, unsigned worker, double rate)
{
    for (unsigned i = 0; i < number; i++) {
        m.conns[m.count++] = (struct model_conn){.rate = rate, .worker = worker};
        m.samples[worker].conns++;
    }
}

static double
demand(unsigned worker)
{
    double sum = 0;
    for (unsigned i = 0; i < m.count; i++) {
        sum += m.conns[i].worker == worker ? m.conns[i].rate : 0;
    }
    return sum;
}

static void
obey(const struct balance_move *move)
{
    static struct balance_choice choices[CONNS_MAX];
    size_t count = 0;
    double total = demand(move->from), gone = 0;
    for (unsigned i = 0; i < m.count; i++) {
        struct model_conn *c = &m.conns[i];
        if (c->worker == move->from &&
            (c->moved_at == 0 || m.now - c->moved_at >= BALANCE_COOL_NS)) {
            choices[count++] = (struct balance_choice){c->rate, c};
        }
    }
    unsigned chosen = balance_choose(choices, count, total, move->share, move->conns);
    if (move->share >= 1) {
        chosen = (unsigned)(count < move->conns ? count : move->conns);
    }
    if (m.is_stuck) {
        return;
    }
    for (unsigned i = 0; i < chosen; i++) {
        struct model_conn *c = choices[i].what;
        gone += c->rate;
        c->worker = move->to;
        c->moved_at = m.now;
        c->moves++;
        m.moves++;
        m.reason = move->reason;
        m.samples[move->from].conns--;
        m.samples[move->to].conns++;
    }
    m.samples[move->from].given +=
        total > 0 ? (uint64_t)(gone / total * BALANCE_SHARES) : 0;
}

/* A window passes. */
static enum balance_advice
window(void)
{
    struct balance_move move;
    m.now += BALANCE_WINDOW_NS;
    for (unsigned i = 0; i < m.workers; i++) {
        double wanted = demand(i) * (1 + m.noise * (2 * rng_unit(&m.rng) - 1));
        double left = 1 - m.antagonist[i];
        /* Who wants more than is left waits; who wants less waits for its turn. */
        double wait = m.antagonist[i] * (wanted < 1 ? wanted : 1);
        double busy = wanted / left < 1 ? wanted / left : 1;
        wait += i == 0 && wanted > 0 ? m.stall : 0;
        wait += m.batch[i] * wanted / 2;
        m.samples[i].cpu = (int)i;
        m.samples[i].run_ns += (uint64_t)(busy * BALANCE_WINDOW_NS);
        m.used_ns[i] += (uint64_t)((busy + m.batch[i]) * BALANCE_WINDOW_NS);
        m.samples[i].used_ns = crowd_wants_used(&m.policy.crowd) ? m.used_ns[i] : 0;
        m.samples[i].busy_ns += (uint64_t)(busy * BALANCE_WINDOW_NS);
        m.samples[i].wait_ns += (uint64_t)(wait * BALANCE_WINDOW_NS);
        m.samples[i].delay_ns += (uint64_t)(10 * m.delay * wanted);
        m.samples[i].delays += 10;
    }
    enum balance_advice advice = balance_step(&m.policy, m.samples, m.now, &move);
    if (advice != BALANCE_QUIET) {
        ck_assert_uint_ne(move.from, move.to);
        ck_assert_uint_ge(move.conns, 1);
        unsigned most = m.count * BALANCE_CONNS_PCT / 100 + 1;
        if (move.reason == BALANCE_CROWDED_CPU) {
            most += m.samples[move.from].conns / BALANCE_CROWDED_PART;
        }
        ck_assert_uint_le(move.conns, most);
        ck_assert(move.share > 0 && move.share <= 1);
        ck_assert(move.reason == BALANCE_WAIT || move.reason == BALANCE_CROWDED_CPU ||
                  move.share <= 0.5);
    }
    if (advice == BALANCE_MOVE) {
        obey(&move);
    }
    return advice;
}

static void
windows(unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        window();
    }
}

static double
gap(void)
{
    double high = 0, low = 1000;
    for (unsigned i = 0; i < m.workers; i++) {
        high = demand(i) > high ? demand(i) : high;
        low = demand(i) < low ? demand(i) : low;
    }
    return high - low;
}

static unsigned
most_moves(void)
{
    unsigned most = 0;
    for (unsigned i = 0; i < m.count; i++) {
        most = m.conns[i].moves > most ? m.conns[i].moves : most;
    }
    return most;
}

TEST(quiet_when_balanced)
{
    start(4);
    for (unsigned i = 0; i < 4; i++) {
        add(20, i, 0.03);
    }
    m.noise = 0.1;
    windows(1000);
    ck_assert_uint_eq(m.moves, 0);
    /* Also close below the border. */
    start(2);
    add(20, 0, 0.03);
    add(20, 1, 0.021);
    windows(1000);
    ck_assert_uint_eq(m.moves, 0);
}

TEST(quiet_when_idle)
{
    start(2);
    add(500, 0, 0);
    windows(100);
    ck_assert_uint_eq(m.moves, 0);
}

/* A gap must last for three windows. */
TEST(a_spike_is_let_pass)
{
    start(2);
    add(20, 0, 0.02);
    add(20, 1, 0.02);
    for (unsigned i = 0; i < 50; i++) {
        for (unsigned c = 0; c < 20; c++) {
            m.conns[c].rate = i % 5 == 0 ? 0.04 : 0.02;
        }
        window();
    }
    ck_assert_uint_eq(m.moves, 0);
}

/* Everything is on one worker: within 2 seconds it is not, and then it stays so. */
TEST_LOOP(converges_and_stays, 6)
{
    static const struct {
        unsigned workers, conns;
        double load, noise;
    } cases[] = {{2, 20, 0.9, 0},   {2, 40, 0.8, 0.05}, {2, 100, 0.9, 0.05},
                 {2, 1000, 0.7, 0}, {4, 64, 0.9, 0.03}, {3, 30, 0.6, 0}};
    start(cases[_i].workers);
    add(cases[_i].conns, 0, cases[_i].load / cases[_i].conns);
    m.noise = cases[_i].noise;
    windows(20);
    double limit = cases[_i].workers == 2 ? BALANCE_START : 2 * BALANCE_START;
    ck_assert_msg(gap() < limit, "case %d: gap %.2f after 2 s", _i, gap());
    windows(20);
    ck_assert_msg(gap() < BALANCE_START, "case %d: gap %.2f after 4 s", _i, gap());
    unsigned moves = m.moves;
    windows(300);
    ck_assert_msg(m.moves <= moves + m.count / 20, "case %d: %u more", _i,
                  m.moves - moves);
    ck_assert_uint_le(most_moves(), 2);
    ck_assert_uint_le(m.moves, m.count);
    ck_assert_uint_eq(m.reason, BALANCE_BUSY);
}

/* Connections of any rates: it never gets worse, and nobody is sent to and fro. */
TEST_LOOP(random_loads_settle, 20)
{
    start(4);
    struct rng rng;
    rng_init(&rng, 99, (uint64_t)_i);
    double sum = 0;
    for (unsigned i = 0; i < 100; i++) {
        double rate = rng_unit(&rng) < 0.1 ? rng_unit(&rng) : rng_unit(&rng) / 10;
        add(1, (unsigned)rng_below(&rng, 4), rate);
        sum += rate;
    }
    for (unsigned i = 0; i < m.count; i++) {
        m.conns[i].rate *= 2.4 / sum; /* 60 % on each, were it even */
    }
    m.noise = 0.05;
    double before = gap();
    windows(60);
    ck_assert(gap() <= before + 0.01);
    unsigned moves = m.moves;
    windows(400);
    ck_assert_uint_le(m.moves - moves, 8);
    ck_assert_uint_le(most_moves(), 4);
}

/* One connection makes all the load: there is no better place for it. */
TEST(one_hot_connection_stays)
{
    start(2);
    add(1, 0, 0.9);
    add(50, 1, 0.001);
    windows(200);
    ck_assert_uint_eq(m.conns[0].moves, 0);
    /* With others beside it, those go. */
    start(2);
    add(1, 0, 0.5);
    add(20, 0, 0.02);
    windows(40);
    ck_assert_uint_eq(m.conns[0].moves, 0);
    ck_assert_double_lt(gap(), 0.25);
}

/* When nothing can be moved it asks less and less often. */
TEST(futile_orders_become_rare)
{
    start(2);
    add(1, 0, 0.9);
    unsigned orders = 0;
    for (unsigned i = 0; i < 1000; i++) {
        orders += window() == BALANCE_MOVE;
    }
    ck_assert_uint_eq(m.moves, 0);
    expect_between(orders, 5, 50);
    /* And is there again when things change. */
    add(20, 0, 0.02);
    windows(60);
    ck_assert_uint_gt(m.moves, 0);
}

/* Requests are even, but a neighbour takes half of one worker's CPU. */
TEST(a_neighbour_counts)
{
    start(2);
    add(30, 0, 0.01);
    add(30, 1, 0.01);
    m.antagonist[0] = 0.5;
    windows(20);
    ck_assert_uint_gt(m.moves, 3);
    ck_assert_double_lt(demand(0), demand(1));
    double there = demand(0);
    windows(200);
    ck_assert_double_lt(there - demand(0), 0.1);
    /* It leaves. */
    m.antagonist[0] = 0;
    windows(60);
    ck_assert_double_lt(gap(), BALANCE_START);
}

/* A neighbour that leaves a worker hardly any time drives everybody away, also the last. */
TEST(a_loud_neighbour_gets_the_cpu)
{
    start(2);
    add(16, 0, 0.003);
    add(16, 1, 0.003);
    m.stall = 0.8;
    windows(24);
    ck_assert_double_eq(demand(0), 0);
    ck_assert_uint_eq(m.moves, 16);
    ck_assert_uint_eq(m.reason, BALANCE_WAIT);
    windows(200);
    ck_assert_uint_eq(m.moves, 16);
}

/* A batch job on a worker's CPU: there is hardly any wait, but who has one has a long one. All
 * leave, the idle too; nobody else moves; and they come home when it has gone. */
TEST(a_crowded_cpu_is_left)
{
    start(3);
    add(20, 0, 0.004);
    add(20, 1, 0.004);
    add(20, 2, 0.004);
    add(10, 0, 0);
    windows(20);
    ck_assert_uint_eq(m.moves, 0);
    m.batch[0] = 0.9;
    windows(20);
    ck_assert_uint_eq(m.samples[0].conns, 0);
    ck_assert_uint_eq(m.moves, 30);
    ck_assert_uint_eq(m.reason, BALANCE_CROWDED_CPU);
    ck_assert(balance_is_crowded(&m.policy, 0));
    ck_assert_double_eq(balance_load(&m.policy, 0), BALANCE_CROWDED);
    windows(100);
    ck_assert_uint_eq(m.moves, 30);
    ck_assert_double_lt(demand(1) - demand(2), 0.05);
    ck_assert_double_lt(demand(2) - demand(1), 0.05);
    m.batch[0] = 0;
    windows(CROWD_FREE_WINDOWS + 5);
    ck_assert(!balance_is_crowded(&m.policy, 0));
    windows(BALANCE_RETURN);
    ck_assert_uint_eq(m.reason, BALANCE_FREE_CPU);
    expect_between(demand(0), 0.05, 0.11);
    unsigned moves = m.moves;
    windows(300);
    ck_assert_uint_eq(m.moves, moves);
}

/* The others are filled up to a little below what counts for the crowded worker, not above. */
TEST(a_crowded_cpu_is_used_when_needed)
{
    start(2);
    add(40, 0, 0.01);
    add(40, 1, 0.012);
    m.batch[0] = 0.5;
    windows(60);
    expect_between(demand(1), 0.5, BALANCE_CROWDED);
    ck_assert_double_gt(demand(0), 0.15);
    unsigned moves = m.moves;
    windows(300);
    ck_assert_uint_le(m.moves - moves, 4);
    /* More than one worker can do: the crowded one has to help. */
    add(30, 1, 0.02);
    windows(100);
    ck_assert_double_gt(demand(0), 0.3);
}

/* One that cannot be emptied does not hold up the others. */
TEST(a_crowd_that_stays_is_let_be)
{
    start(3);
    add(5, 0, 0.01);
    add(40, 1, 0.02);
    m.batch[0] = 0.9;
    m.is_stuck = true;
    windows(30);
    ck_assert_uint_eq(m.moves, 0);
    m.is_stuck = false;
    for (unsigned i = 0; i < 5; i++) {
        m.conns[i].moved_at = UINT64_MAX / 2; /* they never cool */
    }
    windows(60);
    ck_assert_double_lt(demand(1) - demand(2), BALANCE_START);
}

TEST(reasons_tell_apart)
{
    start(2);
    add(20, 0, 0.02);
    add(20, 1, 0.02);
    m.antagonist[1] = 0.7;
    windows(6);
    ck_assert_uint_gt(m.moves, 0);
    struct balance_sample samples[2] = {{.conns = 10}, {.conns = 10}};
    struct balance b;
    struct balance_move move;
    ck_assert(balance_init(&b, 2));
    for (unsigned i = 0; i <= 3; i++) {
        samples[1].wait_ns = i * BALANCE_WINDOW_NS / 2;
        enum balance_advice advice =
            balance_step(&b, samples, NSEC_PER_SEC + i * BALANCE_WINDOW_NS, &move);
        ck_assert_uint_eq(advice, i == 0  ? BALANCE_QUIET
                                  : i < 3 ? BALANCE_WATCH
                                          : BALANCE_MOVE);
    }
    ck_assert_uint_eq(move.from, 1);
    ck_assert_uint_eq(move.to, 0);
    ck_assert_uint_eq(move.reason, BALANCE_WAIT);
    ck_assert_str_eq(balance_reason_name(move.reason), "wait");
    balance_fini(&b);
}

/* All are busy all the time: who has the longer queue gives some away, at any scale of delays,
 * until they are not far apart. */
TEST_LOOP(a_backlog_is_shared, 4)
{
    static const struct {
        unsigned workers, first, others;
        double rate, delay, noise;
    } cases[] = {
        {2, 60, 15, 0.08, 400e3, 0},
        {2, 60, 15, 0.08, 100e6, 0.1},
        {2, 200, 40, 0.05, 1e6, 0.05},
        {4, 100, 20, 0.06, 2e6, 0.05},
    };
    start(cases[_i].workers);
    m.delay = cases[_i].delay;
    m.noise = cases[_i].noise;
    for (unsigned i = 0; i < m.workers; i++) {
        add(i == 0 ? cases[_i].first : cases[_i].others, i, cases[_i].rate);
    }
    windows(40);
    double high = 0, low = 1000;
    for (unsigned i = 0; i < m.workers; i++) {
        high = demand(i) > high ? demand(i) : high;
        low = demand(i) < low ? demand(i) : low;
    }
    ck_assert_msg(high < 2.5 * low, "case %d: %.2f beside %.2f", _i, high, low);
    ck_assert_uint_eq(m.reason, BALANCE_BACKLOG);
    unsigned moves = m.moves;
    windows(300);
    ck_assert_uint_le(m.moves, moves + 3 + m.count / 20);
    ck_assert_uint_le(most_moves(), 2);
}

/* Queues that are alike, or short, or of workers that have time, are left alone. */
TEST_LOOP(small_backlogs_stay, 4)
{
    static const struct {
        unsigned first, second;
        double rate, delay;
    } cases[] = {
        {40, 30, 0.05, 1e6}, {40, 15, 0.07, 5e3}, {40, 32, 0.012, 100e6}, {0, 0, 0, 1e6}};
    start(2);
    m.delay = cases[_i].delay;
    m.noise = 0.1;
    add(cases[_i].first, 0, cases[_i].rate);
    add(cases[_i].second, 1, cases[_i].rate);
    windows(500);
    ck_assert_uint_eq(m.moves, 0);
}

/* Without samples a saturated worker keeps its delay, an idle one loses it. */
TEST(delays_without_samples)
{
    struct balance_sample samples[2] = {{0}, {0}};
    struct balance_move move;
    start(2);
    nsec_t now = m.now;
    for (unsigned i = 0; i < 20; i++) {
        now += BALANCE_WINDOW_NS;
        for (unsigned w = 0; w < 2; w++) {
            samples[w].busy_ns += BALANCE_WINDOW_NS;
            samples[w].delay_ns += i < 10 ? (w == 0 ? 9000000 : 1000000) : 0;
            samples[w].delays += i < 10;
        }
        balance_step(&m.policy, samples, now, &move);
    }
    ck_assert_double_gt(balance_load(&m.policy, 0), balance_load(&m.policy, 1) + 0.2);
    for (unsigned i = 0; i < 20; i++) {
        now += BALANCE_WINDOW_NS;
        balance_step(&m.policy, samples, now, &move);
    }
    ck_assert_double_lt(m.policy.workers[0].delay, 1000);
}

/* A clock that stands still, samples that go back: nothing happens. */
TEST(odd_samples_are_harmless)
{
    struct balance_sample samples[2] = {{.busy_ns = UINT64_MAX, .conns = 3},
                                        {.conns = 3}};
    struct balance b;
    struct balance_move move;
    ck_assert(balance_init(&b, 2));
    for (unsigned i = 0; i < 10; i++) {
        samples[0].busy_ns -= 12345678901;
        ck_assert_uint_eq(balance_step(&b, samples, 1, &move), BALANCE_QUIET);
    }
    for (unsigned i = 0; i < 10; i++) {
        samples[0].busy_ns -= 12345678901;
        ck_assert_uint_eq(balance_step(&b, samples, 2 + i, &move), BALANCE_QUIET);
    }
    balance_fini(&b);
    ck_assert(balance_init(&b, 1));
    for (unsigned i = 1; i < 10; i++) {
        samples[0].busy_ns = i * BALANCE_WINDOW_NS;
        ck_assert_uint_eq(balance_step(&b, samples, i * BALANCE_WINDOW_NS, &move),
                          BALANCE_QUIET);
    }
    balance_fini(&b);
}

TEST_LOOP(choice_fills_the_share, 8)
{
    static const struct {
        double rates[6];
        double share;
        unsigned most, count;
        double first;
    } cases[] = {
        {{10, 20, 30, 40}, 0.5, 9, 2, 40}, /* 40 and 10 make half of 100 */
        {{10, 20, 30, 40}, 0.5, 1, 1, 40}, /* no more than `most` */
        {{100, 1, 1}, 0.5, 9, 2, 1},       /* what is too large stays */
        {{52, 48}, 0.5, 9, 1, 52},         /* a tenth above is measuring */
        {{56, 44}, 0.5, 9, 1, 44},         /* more is not */
        {{0, 0, 0}, 0.5, 9, 0, 0},         /* the idle stay */
        {{5}, 0.4, 9, 0, 0},               /* one alone stays */
        {{25, 25, 25, 25}, 0.25, 9, 1, 25},
    };
    struct balance_choice choices[6];
    double total = 0;
    size_t count = 0;
    for (; count < 6 && (cases[_i].rates[count] > 0 || _i == 5); count++) {
        choices[count] = (struct balance_choice){cases[_i].rates[count],
                                                 (void *)&cases[_i].rates[count]};
        total += cases[_i].rates[count];
    }
    unsigned chosen =
        balance_choose(choices, count, total, cases[_i].share, cases[_i].most);
    ck_assert_uint_eq(chosen, cases[_i].count);
    if (chosen > 0) {
        ck_assert_double_eq(choices[0].rate, cases[_i].first);
    }
    /* Nobody is lost. */
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_double_eq(*(const double *)choices[i].what, choices[i].rate);
        sum += choices[i].rate;
    }
    ck_assert_double_eq_tol(sum, total, 1e-9);
}

TEST_LOOP(orders_find_somebody, 5)
{
    static const struct {
        double loads[3];
        unsigned conns[3];
        bool is_possible;
        unsigned from, to, moves;
    } cases[] = {
        {{0.9, 0.1, 0.5}, {10, 10, 10}, true, 0, 1, 1},
        {{0, 0, 0}, {2, 9, 4}, true, 1, 0, 3},
        {{0, 0, 0}, {5, 5, 5}, true, 0, 2, 1},
        {{0.5, 0.5, 0.45}, {1, 1, 1}, true, 0, 2, 1},
        {{0, 0, 0}, {0, 0, 0}, false, 0, 0, 0},
    };
    struct balance_move move;
    bool is_possible = balance_force(cases[_i].loads, cases[_i].conns, 3, &move);
    ck_assert_int_eq(is_possible, cases[_i].is_possible);
    if (is_possible) {
        ck_assert_uint_eq(move.from, cases[_i].from);
        ck_assert_uint_eq(move.to, cases[_i].to);
        ck_assert_uint_eq(move.conns, cases[_i].moves);
        ck_assert_uint_eq(move.reason, BALANCE_ORDER);
    }
    ck_assert(!balance_force(cases[_i].loads, cases[_i].conns, 1, &move));
}
