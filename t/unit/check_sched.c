/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Queues of deferred work: order, membership, and random use against a plain array.
 */
#include "qos/sched.h"

#include "base/rng.h"
#include "check_main.h"

#define pop(s, now) sched_next((s), (now), &(bool){false})

#define NODES 24
#define STEPS 50000

/* With the default shares and wait. */
static void
init(struct sched *s)
{
    struct class_shares shares;
    class_shares_init(&shares);
    sched_init(s, &shares, SCHED_MAX_WAIT_NS);
}

TEST(empty_gives_nothing)
{
    struct sched s;
    init(&s);
    ck_assert_ptr_null(pop(&s, 0));
    ck_assert_uint_eq(s.length, 0);
}

TEST(oldest_comes_first)
{
    struct sched s;
    struct fair_node nodes[3] = {0};
    init(&s);
    for (unsigned i = 0; i < 3; i++) {
        sched_push(&s, &nodes[i], CLASS_BULK, 100 + i);
        ck_assert(fair_is_queued(&nodes[i]));
        ck_assert_uint_eq(nodes[i].since, 100 + i);
        ck_assert_uint_eq(nodes[i].class, CLASS_BULK);
    }
    ck_assert_uint_eq(s.queues[CLASS_BULK].waiting.length, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_eq(pop(&s, 0), &nodes[i]);
        ck_assert(!fair_is_queued(&nodes[i]));
    }
    ck_assert_ptr_null(pop(&s, 0));
}

TEST(remove_is_harmless_outside)
{
    struct sched s;
    struct fair_node n = {0};
    init(&s);
    sched_remove(&s, &n);
    sched_push(&s, &n, CLASS_BULK, 1);
    sched_remove(&s, &n);
    sched_remove(&s, &n);
    ck_assert(!fair_is_queued(&n));
    ck_assert_uint_eq(s.length, 0);
    ck_assert_ptr_null(pop(&s, 0));
}

TEST_ABORTS(pushing_twice_is_a_bug)
{
    struct sched s;
    struct fair_node n = {0};
    init(&s);
    sched_push(&s, &n, CLASS_BULK, 1);
    sched_push(&s, &n, CLASS_BULK, 2);
}

/* The model: queued nodes' numbers, oldest first, of the one class that queues. */
struct model {
    unsigned order[NODES];
    unsigned length;
};

static void
model_drop(struct model *m, unsigned at)
{
    memmove(&m->order[at], &m->order[at + 1], (m->length - at - 1) * sizeof m->order[0]);
    m->length--;
}

static void
check_same(const struct sched *s, const struct fair_node *nodes, const struct model *m)
{
    const struct fair_queue *q = &s->queues[CLASS_BULK].waiting;
    ck_assert_uint_eq(s->length, m->length);
    ck_assert_uint_eq(q->length, m->length);
    const struct fair_node *n = &q->own.head;
    for (unsigned i = 0; i < m->length; i++) {
        ck_assert_ptr_eq(n->next, &nodes[m->order[i]]);
        ck_assert_ptr_eq(n->next->prev, n);
        n = n->next;
    }
    ck_assert_ptr_eq(n->next, &q->own.head);
    ck_assert_ptr_eq(q->own.head.prev, n);
    unsigned queued = 0;
    for (unsigned i = 0; i < NODES; i++) {
        queued += fair_is_queued(&nodes[i]);
    }
    ck_assert_uint_eq(queued, m->length);
}

TEST_LOOP(random_use_matches_the_model, 4)
{
    struct sched s;
    struct fair_node nodes[NODES] = {0};
    struct model m = {0};
    struct rng rng;
    rng_init(&rng, 1, (uint64_t)_i);
    init(&s);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rng_below(&rng, NODES);
        uint64_t what = rng_below(&rng, 3);
        if (what == 0 && !fair_is_queued(&nodes[i])) {
            sched_push(&s, &nodes[i], CLASS_BULK, step);
            m.order[m.length++] = i;
        } else if (what == 1) {
            struct fair_node *n = pop(&s, 0);
            ck_assert_ptr_eq(n, m.length > 0 ? &nodes[m.order[0]] : NULL);
            if (n != NULL) {
                model_drop(&m, 0);
            }
        } else if (what == 2) {
            sched_remove(&s, &nodes[i]);
            for (unsigned at = 0; at < m.length; at++) {
                if (m.order[at] == i) {
                    model_drop(&m, at);
                }
            }
        }
        if (step % 16 == 0) {
            check_same(&s, nodes, &m);
        }
    }
}

/* ---- whose turn it is ----------------------------------------------------------------- */

#define US NSEC_PER_USEC

/* Charges as if each turn took so long; returns the classes in order, as digits. */
static void
check_order(struct sched *s, nsec_t turn, const char *expected)
{
    nsec_t now = 0;
    for (; *expected != '\0'; expected++) {
        bool is_overdue;
        struct fair_node *n = sched_next(s, now, &is_overdue);
        ck_assert_ptr_nonnull(n);
        ck_assert(!is_overdue);
        ck_assert_int_eq('0' + n->class, *expected);
        now += turn;
        sched_charge(s, (enum req_class)n->class, turn);
        sched_push(s, n, (enum req_class)n->class, now);
    }
}

TEST(classes_come_in_order_within_their_shares)
{
    struct sched s;
    struct fair_node nodes[CLASS_COUNT] = {0};
    init(&s);
    for (unsigned c = CLASS_SMALL; c < CLASS_COUNT; c++) {
        sched_push(&s, &nodes[c], (enum req_class)c, 0);
    }
    /* a round of 500 us: 420 for small, 50, 25 and 5; what is too much is paid back */
    check_order(&s, 50 * US, "11111111123411111111211111111");
}

TEST(time_that_nobody_wants_goes_to_who_is_there)
{
    struct sched s;
    struct fair_node n = {0};
    init(&s);
    sched_push(&s, &n, CLASS_BACKGROUND, 0);
    check_order(&s, 50 * US, "4444444444444444444444444444444444");
}

TEST(a_class_is_not_forgotten)
{
    struct sched s;
    struct fair_node nodes[2] = {0};
    bool is_overdue;
    init(&s);
    sched_push(&s, &nodes[0], CLASS_SMALL, 0);
    sched_push(&s, &nodes[1], CLASS_BACKGROUND, 0);
    sched_charge(&s, CLASS_BACKGROUND, NSEC_PER_SEC); /* deep in debt */
    ck_assert_ptr_eq(sched_next(&s, 100, &is_overdue), &nodes[0]);
    sched_push(&s, &nodes[0], CLASS_SMALL, SCHED_MAX_WAIT_NS - 1);
    ck_assert_ptr_eq(sched_next(&s, SCHED_MAX_WAIT_NS - 1, &is_overdue), &nodes[0]);
    ck_assert(!is_overdue);
    sched_push(&s, &nodes[0], CLASS_SMALL, SCHED_MAX_WAIT_NS - 1);
    ck_assert_ptr_eq(sched_next(&s, SCHED_MAX_WAIT_NS, &is_overdue), &nodes[1]);
    ck_assert(is_overdue);
    /* once, not for ever */
    sched_push(&s, &nodes[1], CLASS_BACKGROUND, SCHED_MAX_WAIT_NS);
    ck_assert_ptr_eq(sched_next(&s, SCHED_MAX_WAIT_NS + 1, &is_overdue), &nodes[0]);
    ck_assert(!is_overdue);
}

TEST(clock_that_steps_back_is_survived)
{
    struct sched s;
    struct fair_node n = {0};
    bool is_overdue;
    init(&s);
    sched_push(&s, &n, CLASS_BULK, 1000 * US);
    ck_assert_ptr_eq(sched_next(&s, 10, &is_overdue), &n);
    ck_assert(!is_overdue);
}

TEST(pass_is_bounded)
{
    struct sched s;
    struct class_shares shares;
    nsec_t turn = 50 * US;
    init(&s);
    /* 18 % of a pass is for deferred work */
    ck_assert_uint_eq(sched_inline_ns(&s, turn), turn * 82 / 18);
    ck_assert_uint_eq(sched_deferred_ns(&s, turn, 0), turn);
    ck_assert_uint_eq(sched_deferred_ns(&s, turn, sched_inline_ns(&s, turn)), turn);
    ck_assert_uint_eq(sched_deferred_ns(&s, turn, 820 * US), 180 * US);
    ck_assert_uint_eq(sched_deferred_ns(&s, turn, UINT64_MAX), 5 * turn);
    class_shares_init(&shares);
    ck_assert_ptr_null(class_shares_parse(&shares, "write:80,bulk:5,background:5"));
    sched_init(&s, &shares, SCHED_MAX_WAIT_NS);
    ck_assert_uint_eq(sched_inline_ns(&s, turn), turn);
    ck_assert_uint_eq(sched_deferred_ns(&s, turn, 10 * US), 115 * US);
}

/* ---- no class starves ----------------------------------------------------------------- */

#define LOADED 12 /* connections that always have another turn's work, at most */
#define SIM_NS (2 * NSEC_PER_SEC)

/* The plainest worker that can be: a pass serves small requests, of which there are more than
 * it can serve, for as long as it may, then deferred work for as long as it may. */
struct sim {
    struct sched sched;
    struct rng rng;
    nsec_t turn, now;
    nsec_t used[CLASS_COUNT];
    nsec_t longest_gap[CLASS_COUNT]; /* without a turn, while it had work */
    nsec_t had_turn[CLASS_COUNT];
    nsec_t longest_pass, longest_turn;
};

static nsec_t
turn_length(struct sim *m)
{
    return 1 + rng_below(&m->rng, 2 * m->turn);
}

static void
simulate_pass(struct sim *m)
{
    nsec_t begin = m->now;
    nsec_t inline_ns = sched_inline_ns(&m->sched, m->turn) + rng_below(&m->rng, 60 * US);
    m->now += inline_ns;
    m->used[CLASS_SMALL] += inline_ns;
    sched_charge(&m->sched, CLASS_SMALL, inline_ns);
    nsec_t deadline = m->now + sched_deferred_ns(&m->sched, m->turn, inline_ns);
    do {
        bool is_overdue;
        struct fair_node *n = sched_next(&m->sched, m->now, &is_overdue);
        enum req_class class = (enum req_class)n->class;
        nsec_t gap = m->now - m->had_turn[class];
        nsec_t took = turn_length(m);
        m->longest_gap[class] = gap > m->longest_gap[class] ? gap : m->longest_gap[class];
        m->longest_turn = took > m->longest_turn ? took : m->longest_turn;
        m->now += took;
        m->had_turn[class] = m->now;
        m->used[class] += took;
        deadline += is_overdue ? took : 0;
        sched_charge(&m->sched, class, took);
        sched_push(&m->sched, n, class, m->now);
    } while (m->now < deadline);
    nsec_t pass = m->now - begin;
    m->longest_pass = pass > m->longest_pass ? pass : m->longest_pass;
}

/* Whatever connections each class has, and however long turns are: each class with work gets
 * its share, and a turn at least every max_wait and one pass. */
TEST_LOOP(no_class_starves_under_overload, 60)
{
    struct sim m = {.turn = 50 * US};
    struct fair_node nodes[CLASS_COUNT][LOADED] = {0};
    struct class_shares shares;
    bool is_loaded[CLASS_COUNT] = {false};
    rng_init(&m.rng, 2, (uint64_t)_i);
    class_shares_init(&shares);
    if (_i % 3 == 1) {
        ck_assert_ptr_null(class_shares_parse(&shares, "write:5,bulk:40,background:3"));
    } else if (_i % 3 == 2) {
        ck_assert_ptr_null(class_shares_parse(&shares, "write:1,bulk:1,background:0.1"));
    }
    sched_init(&m.sched, &shares, SCHED_MAX_WAIT_NS);
    for (unsigned c = CLASS_SMALL; c < CLASS_COUNT; c++) {
        uint64_t number = rng_below(&m.rng, LOADED + 1);
        number += c == CLASS_BULK && number == 0;
        for (uint64_t i = 0; i < number; i++) {
            sched_push(&m.sched, &nodes[c][i], (enum req_class)c, 0);
        }
        is_loaded[c] = number > 0;
    }
    while (m.now < SIM_NS) {
        simulate_pass(&m);
    }
    for (unsigned c = CLASS_SMALL + 1; c < CLASS_COUNT; c++) {
        nsec_t share = m.now * shares.per_mille[c] / CLASS_SHARES_TOTAL;
        if (is_loaded[c]) {
            ck_assert_msg(m.used[c] >= share - share / 50, "class %u: %lu of %lu", c,
                          m.used[c], share);
            ck_assert_msg(m.longest_gap[c] <=
                              SCHED_MAX_WAIT_NS + m.longest_pass + 4 * m.longest_turn,
                          "class %u: %lu us", c, m.longest_gap[c] / US);
        }
    }
}
