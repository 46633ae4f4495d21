/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Tenants that share a queue, on time that the test makes: whatever connections they have and
 * whatever their work costs, each gets the same.
 */
#include "qos/fair.h"

#include "base/rng.h"
#include "check_main.h"
#include "check_unit.h"

#define US NSEC_PER_USEC
#define QUANTUM (10 * US)
#define DEBT_MOST (8 * NSEC_PER_MSEC)
#define CONNS_MAX 1000

/* Tenants' keys, in different sets of the table. */
enum { A = 3, B = 4, C = 5 };

struct sim {
    struct fair_table *table;
    struct fair_queue queue;
    struct fair_node nodes[3][CONNS_MAX];
};

static struct sim sim;

static void
set_up(void)
{
    sim = (struct sim){.table = fair_table_create()};
    ck_assert_ptr_nonnull(sim.table);
    fair_init(&sim.queue, FAIR_QUEUE_CLASS, QUANTUM, DEBT_MOST);
    fair_set_table(&sim.queue, sim.table);
}

static void
tear_down(void)
{
    fair_table_destroy(&sim.table);
}

FIXTURE(set_up, tear_down);

static void
push(unsigned tenant, unsigned i)
{
    struct fair_node *n = &sim.nodes[tenant - A][i];
    n->tenant = tenant;
    fair_push(&sim.queue, n);
}

static void
push_many(unsigned tenant, unsigned conns)
{
    for (unsigned i = 0; i < conns; i++) {
        push(tenant, i);
    }
}

/* One turn: what is next runs for so long, and has a next request. Returns whose it was. */
static uint32_t
turn(const nsec_t cost[3], nsec_t used[3])
{
    struct fair_node *n = fair_pop(&sim.queue);
    ck_assert_ptr_nonnull(n);
    uint8_t place = n->place;
    uint32_t tenant = n->tenant;
    fair_push(&sim.queue, n);
    fair_charge(&sim.queue, place, cost[tenant - A]);
    used[tenant - A] += cost[tenant - A];
    return tenant;
}

static void
check_even(const nsec_t *used, unsigned tenants, double tolerance)
{
    nsec_t sum = 0;
    for (unsigned i = 0; i < tenants; i++) {
        sum += used[i];
    }
    for (unsigned i = 0; i < tenants; i++) {
        double share = (double)used[i] * tenants / (double)sum;
        ck_assert_msg(share > 1 - tolerance && share < 1 + tolerance,
                      "tenant %u has %f of its share", i, share);
    }
}

/* Connections of each, and what a turn of each takes. */
static const struct {
    const char *name;
    unsigned conns[3];
    nsec_t cost[3];
} loads[] = {
    {"a thousand connections beside ten", {1000, 10}, {3 * US, 3 * US}},
    {"one connection beside a thousand", {1, 1000}, {3 * US, 3 * US}},
    {"turns that take a hundred times as long", {10, 10}, {100 * US, US}},
    {"... of one connection beside one", {1, 1}, {100 * US, US}},
    {"... of many beside few", {1000, 10}, {100 * US, US}},
    {"... of few beside many", {10, 1000}, {100 * US, US}},
    {"three of them", {1000, 10, 1}, {2 * US, 50 * US, 7 * US}},
};

TEST_ROWS(shares_are_equal, loads, row->name)
{
    unsigned tenants = row->conns[2] > 0 ? 3 : 2;
    nsec_t used[3] = {0};
    for (unsigned i = 0; i < tenants; i++) {
        push_many(A + i, row->conns[i]);
    }
    while (used[0] + used[1] + used[2] < NSEC_PER_SEC / 10) {
        turn(row->cost, used);
    }
    check_even(used, tenants, .01);
}

TEST(one_tenant_is_served_in_order)
{
    push_many(A, CONNS_MAX);
    for (unsigned i = 0; i < CONNS_MAX; i++) {
        ck_assert_ptr_eq(fair_pop(&sim.queue), &sim.nodes[0][i]);
        fair_charge(&sim.queue, sim.nodes[0][i].place, NSEC_PER_MSEC);
    }
    ck_assert_ptr_null(fair_pop(&sim.queue));
}

TEST(without_a_table_all_are_one)
{
    struct fair_queue q;
    fair_init(&q, FAIR_QUEUE_CLASS, QUANTUM, DEBT_MOST);
    struct fair_node n[3] = {{.tenant = A}, {.tenant = A}, {.tenant = B}};
    for (unsigned i = 0; i < 3; i++) {
        fair_push(&q, &n[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(!fair_is_shared(&q));
        ck_assert_ptr_eq(fair_pop(&q), &n[i]);
        fair_charge(&q, n[i].place, NSEC_PER_MSEC);
    }
}

/* What A used while it was alone was nobody else's. */
TEST(what_was_used_alone_is_not_owed)
{
    const nsec_t cost[3] = {QUANTUM, QUANTUM};
    nsec_t used[3] = {0};
    push_many(A, CONNS_MAX);
    for (unsigned i = 0; i < 10000; i++) {
        ck_assert_uint_eq(turn(cost, used), A);
    }
    push_many(B, 1);
    used[0] = 0;
    for (unsigned i = 0; i < 200; i++) {
        turn(cost, used);
    }
    check_even(used, 2, .02);
}

TEST(a_new_tenant_starts_without_credit)
{
    const nsec_t cost[3] = {QUANTUM, QUANTUM, QUANTUM};
    nsec_t used[3] = {0};
    push_many(A, 10);
    push_many(B, 10);
    for (unsigned i = 0; i < 1000; i++) {
        turn(cost, used);
    }
    memset(used, 0, sizeof used);
    push_many(C, CONNS_MAX);
    for (unsigned i = 0; i < 30; i++) {
        turn(cost, used);
    }
    check_even(used, 3, .11);
}

TEST(idleness_earns_nothing)
{
    const nsec_t cost[3] = {QUANTUM, QUANTUM};
    nsec_t used[3] = {0};
    push_many(A, 10);
    push_many(B, 1);
    turn(cost, used);
    turn(cost, used);
    fair_remove(&sim.queue, &sim.nodes[1][0]);
    for (unsigned i = 0; i < 10000; i++) {
        ck_assert_uint_eq(turn(cost, used), A);
    }
    push_many(B, 10);
    memset(used, 0, sizeof used);
    for (unsigned i = 0; i < 20; i++) {
        turn(cost, used);
    }
    check_even(used, 2, .11);
}

/* A debt is not lost by being away for less than it takes to pay it. */
TEST(debts_are_kept_and_paid)
{
    const nsec_t cost[3] = {100 * QUANTUM, QUANTUM};
    nsec_t used[3] = {0};
    push_many(A, 1);
    push_many(B, 10);
    ck_assert_uint_eq(turn(cost, used), A);
    fair_remove(&sim.queue, &sim.nodes[0][0]);
    for (unsigned i = 0; i < 50; i++) {
        ck_assert_uint_eq(turn(cost, used), B);
    }
    push(A, 0);
    unsigned turns = 0;
    while (turn(cost, used) != A) {
        turns++;
    }
    ck_assert_uint_eq(used[1] / QUANTUM, 50 + turns);
    expect_between(turns + 50, 98, 101);
}

TEST(debts_are_forgiven_when_nothing_waits)
{
    push(A, 0);
    push(B, 0);
    struct fair_node *n = fair_pop(&sim.queue);
    fair_charge(&sim.queue, n->place, DEBT_MOST);
    (void)fair_pop(&sim.queue);
    push(B, 0);
    push(A, 0);
    ck_assert_ptr_eq(fair_pop(&sim.queue), &sim.nodes[1][0]);
    push(B, 0);
    fair_charge(&sim.queue, sim.nodes[1][0].place, QUANTUM);
    ck_assert_ptr_eq(fair_pop(&sim.queue), &sim.nodes[0][0]);
}

/* However much others have waiting: a quantum and a turn of each. */
TEST_LOOP(no_tenant_starves, 20)
{
    struct rng rng;
    nsec_t used[3] = {0}, waits = 0, longest = 0;
    rng_init(&rng, 7, (uint64_t)_i);
    push_many(A, CONNS_MAX);
    push_many(B, 30);
    push_many(C, 1);
    for (unsigned i = 0; i < 20000; i++) {
        nsec_t cost[3] = {1 + rng_below(&rng, 50 * US), 1 + rng_below(&rng, 20 * US), US};
        nsec_t before = used[0] + used[1] + used[2];
        if (turn(cost, used) == C) {
            waits = 0;
        } else {
            waits += used[0] + used[1] + used[2] - before;
            longest = waits > longest ? waits : longest;
        }
    }
    ck_assert_uint_le(longest, 2 * QUANTUM + 70 * US);
}

/* Work that leaves takes its tenant's place in the ring along, and nothing else. */
TEST_LOOP(tenants_leave_while_they_wait, 20)
{
    struct rng rng;
    unsigned queued = 0;
    rng_init(&rng, 8, (uint64_t)_i);
    for (unsigned i = 0; i < 20000; i++) {
        struct fair_node *n = &sim.nodes[rng_below(&rng, 3)][rng_below(&rng, 20)];
        if (rng_below(&rng, 3) == 0) {
            struct fair_node *next = fair_pop(&sim.queue);
            ck_assert_int_eq(next != NULL, queued > 0);
            queued -= next != NULL;
            if (next != NULL) {
                fair_charge(&sim.queue, next->place, rng_below(&rng, 300 * US));
            }
        } else if (fair_is_queued(n)) {
            fair_remove(&sim.queue, n);
            queued--;
        } else {
            n->tenant = A + (uint32_t)(n - sim.nodes[0]) / CONNS_MAX;
            fair_push(&sim.queue, n);
            queued++;
        }
        ck_assert_uint_eq(sim.queue.length, queued);
    }
    while (fair_pop(&sim.queue) != NULL) {
        queued--;
    }
    ck_assert_uint_eq(queued, 0);
    struct fair_report report;
    ck_assert(fair_report_of(sim.table, fair_place(sim.table, A), &report));
    ck_assert_uint_eq(report.waiting, 0);
}

/* ---- the table ------------------------------------------------------------------------- */

/* More than there are places: the rest share one line, and none is lost. */
TEST(a_full_table_has_one_line_for_the_rest)
{
    enum { TENANTS = 2 * FAIR_TENANTS };
    static struct fair_node nodes[TENANTS];
    unsigned placed = 0;
    for (uint32_t i = 0; i < TENANTS; i++) {
        nodes[i] = (struct fair_node){.tenant = i + 1};
        fair_push(&sim.queue, &nodes[i]);
        placed += nodes[i].place != 0;
    }
    ck_assert_uint_eq(placed, FAIR_TENANTS - 1);
    ck_assert_uint_eq(ctr_get(&sim.table->shared), TENANTS - placed);
    unsigned without = 0;
    for (unsigned i = 0; i < FAIR_TENANTS; i++) { /* a round */
        struct fair_node *n = fair_pop(&sim.queue);
        without += n->place == 0;
        fair_charge(&sim.queue, n->place, QUANTUM);
    }
    ck_assert_uint_eq(without, 1);
    for (unsigned i = FAIR_TENANTS; i < TENANTS; i++) {
        ck_assert_ptr_nonnull(fair_pop(&sim.queue));
    }
    ck_assert_ptr_null(fair_pop(&sim.queue));
}

TEST(an_idle_tenants_place_goes_to_another)
{
    const uint32_t step = FAIR_TENANTS / FAIR_WAYS; /* the next key of the same set */
    for (uint32_t i = 0; i < FAIR_WAYS; i++) {
        ck_assert_uint_ne(fair_place(sim.table, A + i * step), 0);
    }
    push(A, 0);
    uint8_t place = fair_place(sim.table, A + 1 * step);
    fair_set_name(sim.table, place, "second", strlen("second"));
    ctr_add(&sim.table->tenants[place].requests, 5);
    for (uint32_t i = 2; i < FAIR_WAYS; i++) {
        (void)fair_place(sim.table, A + i * step);
    }
    struct fair_report report;
    ck_assert(fair_report_of(sim.table, place, &report));
    ck_assert_str_eq(report.name, "second");
    ck_assert_uint_eq(report.requests, 5);
    ck_assert_uint_eq(fair_place(sim.table, A + 9 * step), place); /* idle for longest */
    ck_assert(fair_report_of(sim.table, place, &report));
    ck_assert_uint_eq(report.key, A + 9 * step);
    ck_assert_str_eq(report.name, "");
    ck_assert_uint_eq(report.requests, 0);
    ck_assert(fair_report_of(sim.table, 0, &report));
    ck_assert_uint_eq(report.requests, 5); /* of those without a place */
    ck_assert_ptr_eq(fair_pop(&sim.queue), &sim.nodes[0][0]);
}

TEST(a_table_comes_while_work_waits)
{
    struct fair_queue q;
    struct fair_node n[3] = {{.tenant = A}, {.tenant = A}, {.tenant = B}};
    fair_init(&q, FAIR_QUEUE_TOTAL, QUANTUM, DEBT_MOST);
    fair_push(&q, &n[0]);
    fair_push(&q, &n[1]);
    fair_set_table(&q, sim.table);
    fair_push(&q, &n[2]);
    ck_assert(fair_is_shared(&q));
    fair_remove(&q, &n[0]);
    ck_assert_ptr_eq(fair_pop(&q), &n[1]);
    ck_assert_ptr_eq(fair_pop(&q), &n[2]);
    struct fair_report report;
    ck_assert(fair_report_of(sim.table, 0, &report));
    ck_assert_uint_eq(report.waiting, 0);
}

TEST(names_of_what_makes_a_tenant)
{
    enum fair_by by;
    for (unsigned i = 0; i < FAIR_BYS; i++) {
        const char *name = fair_by_names[i];
        ck_assert(fair_by_parse(name, strlen(name), &by));
        ck_assert_uint_eq(by, i);
    }
    ck_assert(!fair_by_parse("peers", 5, &by));
    ck_assert(!fair_by_parse("", 0, &by));
}
