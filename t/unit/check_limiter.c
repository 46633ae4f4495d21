/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The limits together, on fake time: rates and fairness with several workers, the order of
 * limits, clients that leave, actions, changes at run time, and clocks that jump.
 */
#include "qos/limiter.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/rng.h"
#include "qos/limit_text.h"
#include "check_main.h"

#define START (UINT64_C(1234567) * NSEC_PER_SEC)
#define WORKERS_MAX 8
#define CLIENTS_MAX 4000

/* ---- a server in small ---------------------------------------------------------------- */

/* Clients that ask, wait, are served for `think_ns` and ask again; each belongs to a worker,
 * which wakes up when its limiter says, or a little later. */
struct client {
    struct waitq_node node;
    struct limiter_request request;
    unsigned worker;
    nsec_t asks_at; /* UINT64_MAX: it waits */
    uint64_t admitted, refused;
};

struct server {
    struct limiter limiter;
    struct limiter_worker limiters[WORKERS_MAX];
    nsec_t wakes_at[WORKERS_MAX];
    unsigned workers;
    struct client clients[CLIENTS_MAX];
    unsigned count;
    nsec_t think_ns, slack_ns, now;
    struct rng rng;
};

static struct server server;

static void
server_start(const struct limiter_conf *conf, unsigned workers)
{
    server = (struct server){.workers = workers,
                             .now = START,
                             .think_ns = 10 * NSEC_PER_USEC,
                             .slack_ns = 60 * NSEC_PER_USEC};
    rng_init(&server.rng, 7, workers);
    limiter_init(&server.limiter, conf, workers, START);
    for (unsigned i = 0; i < workers; i++) {
        limiter_worker_init(&server.limiters[i], &server.limiter);
        server.wakes_at[i] = UINT64_MAX;
    }
}

static void
server_end(void)
{
    limiter_fini(&server.limiter);
}

static struct client *
add_client(unsigned worker, enum req_class class, uint64_t peer)
{
    must(server.count < CLIENTS_MAX);
    struct client *c = &server.clients[server.count++];
    c->request = (struct limiter_request){.class = class, .peer = peer, .keys = 1};
    c->worker = worker;
    c->asks_at = server.now;
    return c;
}

/* In turn to each worker, with no address. */
static void
add_clients(unsigned count, enum req_class class)
{
    for (unsigned i = 0; i < count; i++) {
        add_client(i % server.workers, class, 0);
    }
}

static void
arm(unsigned worker)
{
    nsec_t due = limiter_due(&server.limiters[worker], server.now);
    nsec_t least = server.now + limiter_sleep_least(&server.limiter);
    nsec_t at = (due > least ? due : least);
    at += rng_below(&server.rng, server.slack_ns);
    server.wakes_at[worker] =
        due == UINT64_MAX ? UINT64_MAX
        : server.wakes_at[worker] > server.now && server.wakes_at[worker] < at
            ? server.wakes_at[worker]
            : at;
}

/* It asks until it has to wait or has thinking to do; a connection takes -R in a row. */
static void
ask(struct client *c, bool has_waited)
{
    switch (limiter_ask(&server.limiters[c->worker], &c->node, &c->request, has_waited,
                        server.now)) {
    case VERDICT_ADMIT:
        c->admitted++;
        c->asks_at = server.now + server.think_ns;
        break;
    case VERDICT_REFUSE:
        c->refused++;
        c->asks_at = server.now + server.think_ns;
        break;
    case VERDICT_WAIT:
        c->asks_at = UINT64_MAX;
        arm(c->worker);
        break;
    }
}

static void
wake(unsigned worker)
{
    enum limiter_verdict verdict;
    struct waitq_node *n;
    server.wakes_at[worker] = UINT64_MAX;
    while ((n = limiter_next(&server.limiters[worker], false, server.now, &verdict)) !=
           NULL) {
        struct client *c = (struct client *)(void *)n;
        c->admitted += verdict == VERDICT_ADMIT;
        c->refused += verdict == VERDICT_REFUSE;
        c->asks_at = server.now + server.think_ns;
    }
    if (server.limiters[worker].waiting > 0) {
        arm(worker);
    }
}

static void
run(nsec_t until)
{
    while (true) {
        nsec_t next = UINT64_MAX;
        struct client *asks = NULL;
        unsigned wakes = WORKERS_MAX;
        for (unsigned i = 0; i < server.count; i++) {
            if (server.clients[i].asks_at < next) {
                next = server.clients[i].asks_at;
                asks = &server.clients[i];
            }
        }
        for (unsigned i = 0; i < server.workers; i++) {
            if (server.wakes_at[i] < next) {
                next = server.wakes_at[i];
                wakes = i;
            }
        }
        if (next >= until) {
            server.now = until;
            return;
        }
        server.now = next > server.now ? next : server.now;
        if (wakes < WORKERS_MAX) {
            wake(wakes);
        } else {
            ask(asks, false);
        }
    }
}

static uint64_t
admitted(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < server.count; i++) {
        sum += server.clients[i].admitted;
    }
    return sum;
}

FIXTURE(NULL, server_end);

/* ---- rates ---------------------------------------------------------------------------- */

static const uint64_t rates[] = {100, 101, 997, 7777, 50000};
static const unsigned workers_of[] = {1, 2, 3, 8};
#define RATE_CASES 20

TEST_LOOP(every_second_has_its_requests, RATE_CASES)
{
    uint64_t rate = rates[_i / 4];
    unsigned workers = workers_of[_i % 4];
    struct limiter_conf conf = {.total = {.rate = rate}};
    server_start(&conf, workers);
    add_clients(24, CLASS_SMALL);
    run(START + NSEC_PER_SEC); /* the burst, and that all wait */
    for (unsigned second = 2; second < 6; second++) {
        uint64_t before = admitted();
        run(START + second * NSEC_PER_SEC);
        uint64_t got = admitted() - before;
        expect_between(got, rate - rate / 100 - 1, rate + rate / 100 + 1);
    }
}

/* One client of one worker, seven of the other: each gets its eighth, and waits as long. */
TEST(workers_share_by_arrival)
{
    struct limiter_conf conf = {.total = {.rate = 100, .burst = 1}};
    server_start(&conf, 2);
    for (unsigned i = 0; i < 8; i++) {
        add_client(i == 0, CLASS_SMALL, 0);
    }
    run(START + 20 * NSEC_PER_SEC);
    for (unsigned i = 0; i < server.count; i++) {
        expect_between(server.clients[i].admitted, 245, 255);
    }
}

TEST(a_class_has_its_own_rate)
{
    struct limiter_conf conf = {.total = {.rate = 1000}};
    conf.by_class[CLASS_BULK].rate = 100;
    server_start(&conf, 2);
    add_clients(100, CLASS_BULK);
    add_clients(10, CLASS_SMALL);
    run(START + 10 * NSEC_PER_SEC);
    uint64_t bulk = 0;
    for (unsigned i = 0; i < 100; i++) {
        bulk += server.clients[i].admitted;
    }
    /* The hundred that wait for bulk tokens hold none of the others'. */
    expect_between(bulk, 990, 1030);
    expect_between(admitted(), 9980, 10040);
}

TEST(an_address_has_its_own_rate)
{
    struct limiter_conf conf = {.peer = {.rate = 200}};
    server_start(&conf, 3);
    for (unsigned i = 0; i < 60; i++) {
        add_client(i % 3, CLASS_SMALL, i < 30 ? 0x123456789 : 0x987654321 + i % 2);
    }
    add_client(0, CLASS_SMALL, 0)->asks_at += NSEC_PER_SEC;
    run(START + 10 * NSEC_PER_SEC);
    uint64_t first = 0, others = 0;
    for (unsigned i = 0; i < 60; i++) {
        *(i < 30 ? &first : &others) += server.clients[i].admitted;
    }
    expect_between(first, 1980, 2036);
    expect_between(others, 3960, 4072);
    ck_assert_uint_gt(server.clients[60].admitted, 100000); /* has no address: no limit */
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_uint_ge(server.clients[i].admitted, 33); /* nobody starves */
    }
}

/* However many wait: their list is looked through before the bucket is full, and tokens are lost. */
TEST(an_address_with_many_connections_has_its_rate)
{
    struct limiter_conf conf = {.peer = {.rate = 10000}};
    server_start(&conf, 1);
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        add_client(0, CLASS_SMALL, 7);
    }
    run(START + NSEC_PER_SEC);
    expect_between(admitted(), 9500, 10100);
}

/* Or where a bucket holds one token. */
TEST(an_address_with_a_small_burst_has_its_rate)
{
    struct limiter_conf conf = {.peer = {.rate = 100000, .burst = 1}};
    server_start(&conf, 1);
    server.slack_ns = 1;
    server.think_ns = 7 * NSEC_PER_USEC;
    for (unsigned i = 0; i < 10; i++) {
        add_client(0, CLASS_SMALL, 7);
    }
    run(START + NSEC_PER_SEC / 10);
    expect_between(admitted(), 9000, 10100);
}

/* Others of its addresses' hashes may wait: 65 had to wait with 1. */
TEST(an_address_does_not_wait_for_another)
{
    struct limiter_conf conf = {.peer = {.rate = 1000, .burst = 10}};
    server_start(&conf, 1);
    for (unsigned i = 0; i < 200; i++) {
        add_client(0, CLASS_SMALL, 1);
    }
    run(START + NSEC_PER_MSEC);
    ck_assert_uint_gt(server.limiters[0].peers_length, 150);
    struct client *other = add_client(0, CLASS_SMALL, 65);
    run(START + NSEC_PER_MSEC + 1);
    ck_assert_uint_eq(other->admitted, 1);
}

/* The 64 first have slots, and who comes behind more than that is told how long that takes: it is
 * refused at once when that is longer than requests may wait. */
TEST(a_long_queue_is_known_to_be_long)
{
    struct limiter_conf conf = {.total = {.rate = 1000, .burst = 1},
                                .max_delay = 100 * NSEC_PER_MSEC};
    server_start(&conf, 1);
    add_clients(400, CLASS_SMALL);
    run(START + NSEC_PER_MSEC);
    expect_between(server.limiters[0].waiting, 98, 103);
}

/* One that owes much is not what the others of the worker wait for, even if it leaves. */
TEST(a_debtor_keeps_nobody)
{
    struct limiter_conf conf = {.peer = {.rate = 100}, .counts_keys = true};
    server_start(&conf, 1);
    struct client *debtor = add_client(0, CLASS_SMALL, 0x123456789);
    debtor->request.keys = 5000;
    run(START + NSEC_PER_SEC);
    ck_assert_uint_eq(debtor->admitted, 1); /* and now it waits for 50 s */
    struct client *other = add_client(0, CLASS_SMALL, 0x987654321);
    struct client *same_slot =
        add_client(0, CLASS_SMALL, 0x123456789 + LIMITER_PEER_HASHES);
    run(START + 11 * NSEC_PER_SEC);
    expect_between(other->admitted, 990, 1036);
    expect_between(same_slot->admitted, 990, 1036);
    limiter_leave(&server.limiters[0], &debtor->node);
    run(START + 21 * NSEC_PER_SEC);
    expect_between(other->admitted, 1980, 2036);
}

/* A client that does not wait any more has used no tokens of the limits that it had passed. */
TEST(tokens_of_one_that_leaves_are_given_back)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1},
                                .peer = {.rate = 10, .burst = 10}};
    conf.by_class[CLASS_SMALL] = (struct limiter_rule){.rate = 10, .burst = 10};
    server_start(&conf, 1);
    struct client *c = add_client(0, CLASS_SMALL, 77);
    struct limiter_worker *d = &server.limiters[0];
    ask(c, false);
    ck_assert_uint_eq(c->admitted, 1);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(limiter_ask(d, &c->node, &c->request, false, server.now),
                         VERDICT_WAIT);
        expect(d->peers_length == 0 && d->by_class[CLASS_SMALL].waiting.length == 0);
        limiter_leave(d, &c->node);
        expect(d->waiting == 0);
    }
}

TEST(keys_are_what_is_counted)
{
    struct limiter_conf conf = {.total = {.rate = 1000, .burst = 20},
                                .counts_keys = true};
    server_start(&conf, 2);
    for (unsigned i = 0; i < 20; i++) {
        add_client(i % 2, CLASS_SMALL, 0)->request.keys = i % 2 == 0 ? 4 : 100;
    }
    run(START + 20 * NSEC_PER_SEC);
    uint64_t keys = 0;
    for (unsigned i = 0; i < 20; i++) {
        keys += server.clients[i].admitted * (i % 2 == 0 ? 4 : 100);
    }
    expect_between(keys, 19700, 20300);
    ck_assert_uint_eq(
        limiter_tokens(&server.limiters[0]) + limiter_tokens(&server.limiters[1]), keys);
}

TEST(more_keys_are_owed)
{
    struct limiter_conf conf = {.total = {.rate = 1000, .burst = 10},
                                .counts_keys = true};
    server_start(&conf, 1);
    struct client *c = add_client(0, CLASS_SMALL, 77);
    struct limiter_request more = c->request;
    ask(c, false);
    more.keys = 1000;
    limiter_owe(&server.limiters[0], &more, server.now);
    ck_assert_uint_eq(limiter_tokens(&server.limiters[0]), 1001);
    ask(c, false);
    ck_assert(waitq_is_waiting(&c->node));
    run(START + 985 * NSEC_PER_MSEC);
    ck_assert_uint_eq(c->admitted, 1);
    run(START + 995 * NSEC_PER_MSEC);
    ck_assert_uint_ge(c->admitted, 2);
}

/* ---- actions -------------------------------------------------------------------------- */

TEST(errors_are_for_what_is_above)
{
    struct limiter_conf conf = {.total = {.rate = 1000}, .action = ACTION_ERROR};
    server_start(&conf, 2);
    add_clients(4, CLASS_SMALL);
    server.think_ns = NSEC_PER_MSEC; /* four times the rate */
    run(START + 10 * NSEC_PER_SEC);
    uint64_t refused = 0;
    for (unsigned i = 0; i < 4; i++) {
        refused += server.clients[i].refused;
    }
    expect_between(admitted(), 9900, 10020);
    ck_assert_uint_eq(admitted() + refused, 40000);
    ck_assert_uint_eq(ctr_get(&server.limiters[0].ctr[CLASS_SMALL].rejected) +
                          ctr_get(&server.limiters[1].ctr[CLASS_SMALL].rejected),
                      refused);
    ck_assert_uint_eq(server.limiters[0].waiting, 0);
}

/* A refused request takes nothing, also not of the limits that it has passed. */
TEST(who_is_refused_pays_nothing)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1},
                                .peer = {.rate = 1, .burst = 5},
                                .action = ACTION_ERROR};
    conf.by_class[CLASS_SMALL] = (struct limiter_rule){.rate = 1, .burst = 5};
    server_start(&conf, 1);
    struct client *c = add_client(0, CLASS_SMALL, 99);
    for (unsigned i = 0; i < 100; i++) {
        ask(c, false);
    }
    ck_assert_uint_eq(c->admitted, 1);
    limiter_set_total(&server.limiter, (struct limiter_rule){0}, server.now);
    for (unsigned i = 0; i < 100; i++) {
        ask(c, false);
    }
    ck_assert_uint_eq(c->admitted, 5);
}

TEST(a_long_wait_is_an_error)
{
    struct limiter_conf conf = {.total = {.rate = 100, .burst = 1},
                                .max_delay = 50 * NSEC_PER_MSEC};
    server_start(&conf, 2);
    add_clients(20, CLASS_SMALL);
    run(START + 1);
    uint64_t refused = 0;
    unsigned waiting = 0;
    for (unsigned i = 0; i < 20; i++) {
        refused += server.clients[i].refused;
        waiting += waitq_is_waiting(&server.clients[i].node);
    }
    /* One at once, five within 50 ms; the others need not wait for it. */
    ck_assert_uint_eq(admitted(), 1);
    ck_assert_uint_eq(waiting, 5);
    ck_assert_uint_eq(refused, 14);
}

/* Also for those whose turn can not be foreseen, as behind an address. */
TEST(patience_ends)
{
    struct limiter_conf conf = {.peer = {.rate = 1, .burst = 1},
                                .max_delay = 50 * NSEC_PER_MSEC};
    server_start(&conf, 1);
    for (unsigned i = 0; i < 3; i++) {
        add_client(0, CLASS_SMALL, 5);
    }
    server.think_ns = NSEC_PER_SEC / 2;
    run(START + 49 * NSEC_PER_MSEC);
    ck_assert_uint_eq(server.limiters[0].waiting, 2);
    run(START + 51 * NSEC_PER_MSEC);
    ck_assert_uint_eq(server.limiters[0].waiting, 0);
    ck_assert_uint_eq(server.clients[1].refused + server.clients[2].refused, 2);
}

TEST(a_dry_run_only_counts)
{
    struct limiter_conf conf = {.total = {.rate = 100, .burst = 10}, .is_dry = true};
    server_start(&conf, 1);
    struct client *c = add_client(0, CLASS_BULK, 0);
    for (unsigned i = 0; i < 1000; i++) {
        ask(c, false);
    }
    ck_assert_uint_eq(c->admitted, 1000);
    ck_assert_uint_eq(ctr_get(&server.limiters[0].ctr[CLASS_BULK].would_limit), 990);
    ck_assert_uint_eq(ctr_get(&server.limiters[0].ctr[CLASS_BULK].admitted), 1000);
}

/* ---- changes -------------------------------------------------------------------------- */

TEST(off_lets_everybody_go)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1},
                                .peer = {.rate = 1, .burst = 1}};
    conf.by_class[CLASS_BULK].rate = 1;
    server_start(&conf, 1);
    for (unsigned i = 0; i < 300; i++) {
        add_client(0, i % 3 == 0 ? CLASS_BULK : CLASS_SMALL, i % 2);
    }
    run(START + NSEC_PER_SEC / 2);
    ck_assert_uint_ge(server.limiters[0].waiting, 290);
    limiter_set_total(&server.limiter, (struct limiter_rule){0}, server.now);
    limiter_set_peer(&server.limiter, (struct limiter_rule){0}, server.now);
    limiter_set_class(&server.limiter, CLASS_BULK, (struct limiter_rule){0}, server.now);
    limiter_look_again(&server.limiters[0]);
    wake(0);
    ck_assert_uint_eq(server.limiters[0].waiting, 0);
    ck_assert(!atomic_load(&server.limiter.is_on));
}

/* The rate in force counts, whatever was reserved under another. */
TEST(a_new_rate_holds_at_once)
{
    struct limiter_conf conf = {.total = {.rate = 10, .burst = 1}};
    server_start(&conf, 2);
    add_clients(200, CLASS_SMALL);
    run(START + NSEC_PER_SEC);
    for (unsigned i = 1; i < 20; i++) {
        uint64_t rate = i % 2 == 0 ? 100 : 5000;
        limiter_set_total(&server.limiter, (struct limiter_rule){rate, 1}, server.now);
        wake(0);
        wake(1);
        uint64_t before = admitted();
        run(server.now + NSEC_PER_SEC);
        expect_between(admitted() - before, rate - rate / 50 - 2, rate + rate / 50 + 2);
    }
}

/* Changes that come faster than tokens take nothing from those who wait: what has arrived of
 * the next token stays, whatever was reserved behind it. Units are requests and more. */
TEST_LOOP(changes_all_the_time_starve_nobody, 4)
{
    struct limiter_conf conf = {
        .total = {.rate = 100, .burst = 1 + 15 * (unsigned)(_i % 2)},
        .counts_keys = _i >= 2};
    server_start(&conf, 2);
    for (unsigned i = 0; i < 200; i++) {
        add_client(i % 2, CLASS_SMALL, 0)->request.keys = 2;
    }
    run(START + NSEC_PER_SEC);
    uint64_t before = admitted();
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t burst = conf.total.burst;
        limiter_set_total(&server.limiter, (struct limiter_rule){100 + i % 2, burst},
                          server.now);
        wake(0);
        wake(1);
        run(server.now + NSEC_PER_MSEC);
    }
    uint64_t due = conf.counts_keys ? 500 : 1000;
    expect_between(admitted() - before, due - due / 10, due + due / 50);
}

/* A burst without a rate is none of the ceiling's. */
TEST(a_ceiling_has_a_burst_of_its_own)
{
    struct limiter_conf conf = {.total = {.rate = 1000}};
    server_start(&conf, 1);
    limiter_set_total(&server.limiter, (struct limiter_rule){0, 5}, START);
    limiter_set_ceiling(&server.limiter, 50000, START);
    ck_assert_uint_eq(limit_burst_time(&server.limiter.total),
                      limit_default_burst(50000) * NSEC_PER_SEC / 50000);
}

TEST(a_ceiling_leaves_what_was_set)
{
    struct limiter_conf conf = {.total = {.rate = 1000}};
    server_start(&conf, 1);
    limiter_set_ceiling(&server.limiter, 300, START);
    ck_assert_uint_eq(atomic_load(&server.limiter.total.rate), 300);
    limiter_set_ceiling(&server.limiter, 3000, START);
    ck_assert_uint_eq(atomic_load(&server.limiter.total.rate), 1000);
    limiter_set_total(&server.limiter, (struct limiter_rule){0}, START);
    ck_assert_uint_eq(atomic_load(&server.limiter.total.rate), 3000);
    ck_assert_uint_eq(limiter_total(&server.limiter).rate, 0);
    limiter_set_ceiling(&server.limiter, 0, START);
    ck_assert(!atomic_load(&server.limiter.is_on));
}

/* ---- those who leave ------------------------------------------------------------------ */

/* The places of those who leave fall to those behind them. */
TEST(the_dead_take_no_tokens)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1}};
    server_start(&conf, 1);
    add_clients(200, CLASS_SMALL);
    run(START + NSEC_PER_MSEC);
    struct client *last = &server.clients[199];
    for (unsigned i = 0; i < 199; i++) {
        limiter_leave(&server.limiters[0], &server.clients[i].node);
        server.clients[i].asks_at = UINT64_MAX;
    }
    ck_assert_uint_eq(server.limiters[0].waiting, 1);
    run(START + NSEC_PER_SEC + NSEC_PER_MSEC);
    ck_assert_uint_eq(last->admitted, 1);
}

TEST(tokens_that_are_given_back_go_to_the_next)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1}};
    server_start(&conf, 1);
    enum limiter_verdict verdict;
    add_clients(100, CLASS_SMALL);
    run(START + 1);
    nsec_t now = START + NSEC_PER_SEC;
    for (unsigned i = 1; i < 99; i++) {
        struct waitq_node *n = limiter_next(&server.limiters[0], false, now, &verdict);
        ck_assert_ptr_nonnull(n);
        limiter_give_back(&server.limiters[0], n, now);
    }
    ck_assert_ptr_nonnull(limiter_next(&server.limiters[0], false, now, &verdict));
    ck_assert_ptr_null(limiter_next(&server.limiters[0], false, now, &verdict));
}

/* What a limit holds for those who wait is what their rooms have reserved. */
static void
check_reserved(void)
{
    int64_t reserved = 0;
    for (unsigned i = 0; i < server.workers; i++) {
        const struct waitq *g = &server.limiters[i].total;
        for (unsigned k = 0; g->epoch == limit_epoch(g->limit) && k < g->slots; k++) {
            reserved += g->ring[(g->first + k) % WAITQ_SLOTS].cost;
        }
    }
    ck_assert_int_eq(atomic_load(&server.limiter.total.reserved), reserved);
}

/* Anything in any order, with clocks that jump: nobody is lost, and it ends. */
TEST_LOOP(any_order_of_events, 8)
{
    struct limiter_conf conf = {.total = {.rate = 5000, .burst = 10},
                                .peer = {.rate = 1000}};
    conf.by_class[CLASS_BULK].rate = 700;
    server_start(&conf, 3);
    rng_init(&server.rng, 11, (uint64_t)_i);
    for (unsigned i = 0; i < 150; i++) {
        add_client(i % 3, i % 4 == 0 ? CLASS_BULK : CLASS_SMALL, i % 5);
    }
    for (unsigned i = 0; i < 60000; i++) {
        struct client *c = &server.clients[rng_below(&server.rng, server.count)];
        struct limiter_worker *d = &server.limiters[c->worker];
        uint64_t what = rng_below(&server.rng, 100);
        c->request.keys = 1 + (uint32_t)rng_below(&server.rng, 30);
        if (what < 50 && !waitq_is_waiting(&c->node)) {
            ask(c, what % 2 == 0);
        } else if (what < 80) {
            wake(c->worker);
        } else if (what < 90) {
            limiter_leave(d, &c->node);
        } else if (what == 90) {
            limiter_rest(d, server.now);
        } else if (what == 91) {
            uint64_t rate = rng_below(&server.rng, 4) * 3000;
            limiter_set_total(&server.limiter, (struct limiter_rule){rate, 0},
                              server.now);
        } else if (what == 92) {
            limiter_set_class(&server.limiter, CLASS_BULK,
                              (struct limiter_rule){rng_below(&server.rng, 2) * 500, 0},
                              server.now);
        } else if (what == 93) {
            limiter_set_action(&server.limiter,
                               (enum limiter_action)rng_below(&server.rng, 3),
                               rng_below(&server.rng, 2) * 20 * NSEC_PER_MSEC);
        } else if (what == 94) {
            limiter_set_unit(&server.limiter, rng_below(&server.rng, 2) == 0);
        } else if (what == 95 && _i % 2 == 1) {
            server.now -= rng_below(&server.rng, NSEC_PER_SEC);
        } else if (what == 96 && _i % 2 == 1) {
            server.now += rng_below(&server.rng, 3 * NSEC_PER_SEC);
        } else {
            server.now += rng_below(&server.rng, NSEC_PER_MSEC);
        }
        unsigned waiting = 0;
        for (unsigned k = 0; i % 97 == 0 && k < server.count; k++) {
            waiting += waitq_is_waiting(&server.clients[k].node);
        }
        if (i % 97 == 0) {
            ck_assert_uint_eq(waiting, server.limiters[0].waiting +
                                           server.limiters[1].waiting +
                                           server.limiters[2].waiting);
        }
        check_reserved();
    }
    for (unsigned i = 0; i < server.workers; i++) {
        enum limiter_verdict verdict;
        while (limiter_next(&server.limiters[i], true, server.now, &verdict) != NULL) {
            ck_assert(verdict == VERDICT_ADMIT);
        }
        ck_assert_uint_eq(server.limiters[i].waiting, 0);
        ck_assert_uint_eq(limiter_due(&server.limiters[i], server.now), UINT64_MAX);
    }
}

/* ---- many addresses ------------------------------------------------------------------- */

static struct peers peers;
static nsec_t retry_at;

static void
peers_start(void)
{
    peers_init(&peers);
}

FIXTURE(peers_start, NULL);

TEST(addresses_that_rest_leave_their_entries)
{
    peers_set(&peers, 10, 2, START);
    /* A hundred thousand in turn, each with its full bucket. */
    for (uint64_t i = 1; i <= 100000; i++) {
        nsec_t now = START + i * NSEC_PER_MSEC;
        uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15);
        ck_assert(peers_take(&peers, key, 1, now, &retry_at));
        ck_assert(peers_take(&peers, key, 1, now, &retry_at));
        ck_assert(!peers_take(&peers, key, 1, now, &retry_at));
        ck_assert_uint_eq(retry_at, now + NSEC_PER_SEC / 10);
    }
    ck_assert_uint_eq(atomic_load(&peers.shared), 0);
}

TEST(too_many_busy_addresses_share)
{
    uint64_t given = 0;
    peers_set(&peers, 10, 1, START);
    for (uint64_t i = 1; i <= 20000; i++) {
        given +=
            peers_take(&peers, i * UINT64_C(0x9e3779b97f4a7c15), 1, START, &retry_at);
    }
    expect_between(given, PEERS_ENTRIES * 9 / 10, PEERS_ENTRIES);
    ck_assert_uint_gt(atomic_load(&peers.shared), 0);
}

/* Setting it again and again is worth no tokens, nor does it take any. */
TEST(changes_give_no_address_a_burst)
{
    nsec_t now = START;
    unsigned given = 0;
    for (unsigned i = 0; i < 10000; i++) {
        peers_set(&peers, 100 + i / 10 % 2, 16, now);
        given += peers_take(&peers, 9, 1, now, &retry_at);
        now += NSEC_PER_MSEC;
    }
    expect_between(given, 990, 16 + 1010);
    peers_set(&peers, 0, 0, now);
    peers_set(&peers, 1, 4, now);
    for (given = 0; peers_take(&peers, 9, 1, now, &retry_at); given++) {
    }
    ck_assert_uint_eq(given, 4);
    peers_set(&peers, PEERS_RATE_MAX, PEERS_BURST_MAX, now);
    ck_assert(!peers_take(&peers, 9, 1, now, &retry_at));
    ck_assert_uint_lt(retry_at, now + NSEC_PER_USEC);
}

TEST(an_address_may_ask_at_any_time)
{
    peers_set(&peers, 1, 1, START);
    ck_assert(peers_take(&peers, 9, UINT32_MAX, START, &retry_at));
    ck_assert(!peers_take(&peers, 9, 1, START, &retry_at));
    ck_assert(!peers_take(&peers, 9, 1, 0, &retry_at));
    ck_assert(!peers_take(&peers, 9, 1, UINT64_MAX, &retry_at));
    peers_owe(&peers, 9, UINT32_MAX, UINT64_MAX);
    peers_refund(&peers, 9, 1);
    peers_set(&peers, PEERS_RATE_MAX, PEERS_BURST_MAX, START);
    ck_assert(!peers_take(&peers, 9, 1, START, &retry_at));
    peers_set(&peers, 0, 0, START);
    peers_set(&peers, PEERS_RATE_MAX, PEERS_BURST_MAX, START);
    ck_assert(peers_take(&peers, 9, 1, START, &retry_at));
}

/* ---- words ---------------------------------------------------------------------------- */

static const char *
rules(const char *text, struct limiter_conf *conf)
{
    *conf = (struct limiter_conf){0};
    return limit_text_rules(text, strlen(text), conf);
}

FIXTURE(NULL, NULL);

TEST(rules_are_read)
{
    struct limiter_conf conf;
    ck_assert_ptr_null(rules("80k", &conf));
    ck_assert_uint_eq(conf.total.rate, 80000);
    ck_assert_ptr_null(rules("total=80k,burst=7,bulk=2k,burst=3,small=10m", &conf));
    ck_assert_uint_eq(conf.total.rate, 80000);
    ck_assert_uint_eq(conf.total.burst, 7);
    ck_assert_uint_eq(conf.by_class[CLASS_BULK].rate, 2000);
    ck_assert_uint_eq(conf.by_class[CLASS_BULK].burst, 3);
    ck_assert_uint_eq(conf.by_class[CLASS_SMALL].rate, 10000000);
    ck_assert_ptr_null(rules("bulk=off", &conf));
    static const char *const wrong[] = {
        "",         "0",         "-1",         "x",
        "total=",   "total=0",   "burst=",     "burst=5",
        "5,burst=", "5,burst=0", "5,burst=2m", "control=5",
        "5,",       "fooble=5",  "1001m",      "99999999999999999999",
        "bulk",     "5,,6",      "total=5=6",  "bulk=5,x",
        ",",        "=5",        "5,6",        "bulk=5,bulk=5",
        "5,total=5"};
    expect_each(word, wrong, rules(word, &conf) != NULL);
}

#define MOST 16

/* Asks once and lets as many pass as may; how many that were, 0: it has to wait. */
static unsigned
ask_and_pass(struct waitq_node *node, nsec_t now)
{
    struct limiter_worker *d = &server.limiters[0];
    struct limiter_request small = {.class = CLASS_SMALL, .keys = 1};
    if (limiter_ask(d, node, &small, false, now) != VERDICT_ADMIT) {
        return 0;
    }
    unsigned count = limiter_unasked(d, MOST, now);
    ck_assert_uint_le(count, MOST);
    limiter_pass(d, CLASS_WRITE, count);
    return 1 + count;
}

FIXTURE(NULL, server_end);

TEST(what_passes_unasked_takes_tokens)
{
    struct limiter_conf conf = {.total = {1000000, 500}};
    server_start(&conf, 1);
    struct waitq_node node = {.cost = 0};
    uint64_t admitted = 0;
    unsigned batches = 0;
    for (unsigned count; (count = ask_and_pass(&node, START)) > 0; batches++) {
        admitted += count;
    }
    expect_between(admitted, 499, 501);
    ck_assert_uint_lt(batches, admitted / 4);
    ck_assert_uint_eq(ctr_get(&server.limiters[0].ctr[CLASS_SMALL].admitted) +
                          ctr_get(&server.limiters[0].ctr[CLASS_WRITE].admitted),
                      admitted);
    /* One waits: none passes it. */
    ck_assert(waitq_is_waiting(&node));
    ck_assert_uint_eq(limiter_unasked(&server.limiters[0], MOST, START), 0);
    limiter_leave(&server.limiters[0], &node);
}

TEST(tokens_that_are_gone_are_not_taken)
{
    struct limiter_conf conf = {.total = {1000000, 500}};
    server_start(&conf, 1);
    struct limiter_worker *d = &server.limiters[0];
    struct limiter_request small = {.class = CLASS_SMALL, .keys = 1};
    struct waitq_node node = {.cost = 0};
    for (unsigned i = 0; i < 300; i++) { /* more than half of what there is */
        ck_assert_int_eq(limiter_ask(d, &node, &small, false, START), VERDICT_ADMIT);
    }
    ck_assert_uint_gt(limiter_unasked(d, MOST, START), 0);
    limiter_rest(d, START);
    ck_assert_uint_eq(d->total.lease.tokens, 0);
    limiter_pass(d, CLASS_SMALL, 1); /* it had been told before */
    ck_assert_uint_eq(d->total.lease.tokens, 0);
    ck_assert_uint_gt(limiter_unasked(d, MOST, START), 0); /* leases again */
    /* A setting that asks for more than one token of all: each asks for itself. */
    limiter_set_unit(&server.limiter, true);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), 0);
    limiter_set_unit(&server.limiter, false);
    ck_assert_uint_gt(limiter_unasked(d, MOST, START), 0);
    limiter_set_class(&server.limiter, CLASS_BULK, (struct limiter_rule){10, 0}, START);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), 0);
    limiter_set_class(&server.limiter, CLASS_BULK, (struct limiter_rule){0, 0}, START);
    uint64_t epoch = d->total.lease.epoch;
    limiter_set_total(&server.limiter, (struct limiter_rule){1000, 1}, START);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START),
                      1); /* the lease is void: another one */
    ck_assert_uint_ne(d->total.lease.epoch, epoch);
    limiter_pass(d, CLASS_SMALL, 1);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), 0); /* there are no more */
    limiter_set_total(&server.limiter, (struct limiter_rule){0, 0}, START);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), MOST);
}

FIXTURE(NULL, NULL);

TEST(actions_are_read_and_written)
{
    static const char *const right[] = {"delay",
                                        "error",
                                        "miss",
                                        "delay:50ms+error",
                                        "delay:300us+error",
                                        "delay:1500ns+error"};
    static const char *const wrong[] = {"",
                                        "delays",
                                        "delay:",
                                        "delay:50ms",
                                        "delay:50+error",
                                        "error:5ms",
                                        "delay:0ms+error",
                                        "delay:5ms+miss",
                                        "delay:99999999999999s+error"};
    enum limiter_action action;
    nsec_t ns;
    char text[LIMIT_TEXT_ACTION_MAX];
    for (unsigned i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_ptr_null(limit_text_action(right[i], strlen(right[i]), &action, &ns));
        limit_text_describe(action, ns, text);
        ck_assert_str_eq(text, right[i]);
    }
    expect_each(word, wrong, limit_text_action(word, strlen(word), &action, &ns) != NULL);
}
