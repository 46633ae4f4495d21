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
#define CLIENTS_MAX 400

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

static struct server *
server_start(const struct limiter_conf *conf, unsigned workers)
{
    struct server *sv = &server;
    memset(sv, 0, sizeof *sv);
    sv->workers = workers;
    sv->now = START;
    sv->think_ns = 10 * NSEC_PER_USEC;
    sv->slack_ns = 60 * NSEC_PER_USEC;
    rng_init(&sv->rng, 7, workers);
    limiter_init(&sv->limiter, conf, workers, START);
    for (unsigned i = 0; i < workers; i++) {
        limiter_worker_init(&sv->limiters[i], &sv->limiter);
        sv->wakes_at[i] = UINT64_MAX;
    }
    return sv;
}

static void
server_end(struct server *sv)
{
    limiter_fini(&sv->limiter);
}

static struct client *
add_client(struct server *sv, unsigned worker, enum req_class class, uint64_t peer)
{
    must(sv->count < CLIENTS_MAX);
    struct client *c = &sv->clients[sv->count++];
    c->request = (struct limiter_request){.class = class, .peer = peer, .keys = 1};
    c->worker = worker;
    c->asks_at = sv->now;
    return c;
}

static void
arm(struct server *sv, unsigned worker)
{
    nsec_t due = limiter_due(&sv->limiters[worker], sv->now);
    nsec_t least = sv->now + limiter_sleep_least(&sv->limiter);
    nsec_t at = (due > least ? due : least);
    at += rng_below(&sv->rng, sv->slack_ns);
    sv->wakes_at[worker] = due == UINT64_MAX ? UINT64_MAX
                           : sv->wakes_at[worker] > sv->now && sv->wakes_at[worker] < at
                               ? sv->wakes_at[worker]
                               : at;
}

/* It asks until it has to wait or has thinking to do; a connection takes -R in a row. */
static void
ask(struct server *sv, struct client *c, bool has_waited)
{
    switch (limiter_ask(&sv->limiters[c->worker], &c->node, &c->request, has_waited,
                        sv->now)) {
    case VERDICT_ADMIT:
        c->admitted++;
        c->asks_at = sv->now + sv->think_ns;
        break;
    case VERDICT_REFUSE:
        c->refused++;
        c->asks_at = sv->now + sv->think_ns;
        break;
    case VERDICT_WAIT:
        c->asks_at = UINT64_MAX;
        arm(sv, c->worker);
        break;
    }
}

static void
wake(struct server *sv, unsigned worker)
{
    enum limiter_verdict verdict;
    struct waitq_node *n;
    sv->wakes_at[worker] = UINT64_MAX;
    while ((n = limiter_next(&sv->limiters[worker], false, sv->now, &verdict)) != NULL) {
        struct client *c = (struct client *)(void *)n;
        c->admitted += verdict == VERDICT_ADMIT;
        c->refused += verdict == VERDICT_REFUSE;
        c->asks_at = sv->now + sv->think_ns;
    }
    if (sv->limiters[worker].waiting > 0) {
        arm(sv, worker);
    }
}

static void
run(struct server *sv, nsec_t until)
{
    while (true) {
        nsec_t next = UINT64_MAX;
        struct client *asks = NULL;
        unsigned wakes = WORKERS_MAX;
        for (unsigned i = 0; i < sv->count; i++) {
            if (sv->clients[i].asks_at < next) {
                next = sv->clients[i].asks_at;
                asks = &sv->clients[i];
            }
        }
        for (unsigned i = 0; i < sv->workers; i++) {
            if (sv->wakes_at[i] < next) {
                next = sv->wakes_at[i];
                wakes = i;
            }
        }
        if (next >= until) {
            sv->now = until;
            return;
        }
        sv->now = next > sv->now ? next : sv->now;
        if (wakes < WORKERS_MAX) {
            wake(sv, wakes);
        } else {
            ask(sv, asks, false);
        }
    }
}

static uint64_t
admitted(const struct server *sv)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sv->count; i++) {
        sum += sv->clients[i].admitted;
    }
    return sum;
}

/* ---- rates ---------------------------------------------------------------------------- */

static const uint64_t rates[] = {100, 101, 997, 7777, 50000};
static const unsigned workers_of[] = {1, 2, 3, 8};
#define RATE_CASES 20

TEST_LOOP(every_second_has_its_requests, RATE_CASES)
{
    uint64_t rate = rates[_i / 4];
    unsigned workers = workers_of[_i % 4];
    struct limiter_conf conf = {.total = {.rate = rate}};
    struct server *sv = server_start(&conf, workers);
    for (unsigned i = 0; i < 24; i++) {
        add_client(sv, i % workers, CLASS_SMALL, 0);
    }
    run(sv, START + NSEC_PER_SEC); /* the burst, and that all wait */
    for (unsigned second = 2; second < 6; second++) {
        uint64_t before = admitted(sv);
        run(sv, START + second * NSEC_PER_SEC);
        uint64_t got = admitted(sv) - before;
        ck_assert_uint_le(got, rate + rate / 100 + 1);
        ck_assert_uint_ge(got, rate - rate / 100 - 1);
    }
    server_end(sv);
}

/* One client of one worker, seven of the other: each gets its eighth, and waits as long. */
TEST(workers_share_by_arrival)
{
    struct limiter_conf conf = {.total = {.rate = 100, .burst = 1}};
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 8; i++) {
        add_client(sv, i == 0, CLASS_SMALL, 0);
    }
    run(sv, START + 20 * NSEC_PER_SEC);
    for (unsigned i = 0; i < sv->count; i++) {
        ck_assert_uint_ge(sv->clients[i].admitted, 245);
        ck_assert_uint_le(sv->clients[i].admitted, 255);
    }
    server_end(sv);
}

TEST(a_class_has_its_own_rate)
{
    struct limiter_conf conf = {.total = {.rate = 1000}};
    conf.by_class[CLASS_BULK].rate = 100;
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 100; i++) {
        add_client(sv, i % 2, CLASS_BULK, 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        add_client(sv, i % 2, CLASS_SMALL, 0);
    }
    run(sv, START + 10 * NSEC_PER_SEC);
    uint64_t bulk = 0;
    for (unsigned i = 0; i < 100; i++) {
        bulk += sv->clients[i].admitted;
    }
    /* The hundred that wait for bulk tokens hold none of the others'. */
    ck_assert_uint_ge(bulk, 990);
    ck_assert_uint_le(bulk, 1030);
    ck_assert_uint_ge(admitted(sv), 9980);
    ck_assert_uint_le(admitted(sv), 10040);
    server_end(sv);
}

TEST(an_address_has_its_own_rate)
{
    struct limiter_conf conf = {.peer = {.rate = 200}};
    struct server *sv = server_start(&conf, 3);
    for (unsigned i = 0; i < 60; i++) {
        add_client(sv, i % 3, CLASS_SMALL, i < 30 ? 0x123456789 : 0x987654321 + i % 2);
    }
    add_client(sv, 0, CLASS_SMALL, 0)->asks_at += NSEC_PER_SEC;
    run(sv, START + 10 * NSEC_PER_SEC);
    uint64_t first = 0, others = 0;
    for (unsigned i = 0; i < 60; i++) {
        *(i < 30 ? &first : &others) += sv->clients[i].admitted;
    }
    ck_assert_uint_ge(first, 1980);
    ck_assert_uint_le(first, 2036);
    ck_assert_uint_ge(others, 3960);
    ck_assert_uint_le(others, 4072);
    ck_assert_uint_gt(sv->clients[60].admitted, 100000); /* has no address: no limit */
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_uint_ge(sv->clients[i].admitted, 33); /* nobody starves */
    }
    server_end(sv);
}

TEST(keys_are_what_is_counted)
{
    struct limiter_conf conf = {.total = {.rate = 1000, .burst = 20},
                                .counts_keys = true};
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 20; i++) {
        add_client(sv, i % 2, CLASS_SMALL, 0)->request.keys = i % 2 == 0 ? 4 : 100;
    }
    run(sv, START + 20 * NSEC_PER_SEC);
    uint64_t keys = 0;
    for (unsigned i = 0; i < 20; i++) {
        keys += sv->clients[i].admitted * (i % 2 == 0 ? 4 : 100);
    }
    ck_assert_uint_ge(keys, 19700);
    ck_assert_uint_le(keys, 20300);
    server_end(sv);
}

TEST(more_keys_are_owed)
{
    struct limiter_conf conf = {.total = {.rate = 1000, .burst = 10},
                                .counts_keys = true};
    struct server *sv = server_start(&conf, 1);
    struct client *c = add_client(sv, 0, CLASS_SMALL, 77);
    struct limiter_request more = c->request;
    ask(sv, c, false);
    more.keys = 1000;
    limiter_owe(&sv->limiters[0], &more, sv->now);
    ask(sv, c, false);
    ck_assert(waitq_is_waiting(&c->node));
    run(sv, START + 985 * NSEC_PER_MSEC);
    ck_assert_uint_eq(c->admitted, 1);
    run(sv, START + 995 * NSEC_PER_MSEC);
    ck_assert_uint_ge(c->admitted, 2);
    server_end(sv);
}

/* ---- actions -------------------------------------------------------------------------- */

TEST(errors_are_for_what_is_above)
{
    struct limiter_conf conf = {.total = {.rate = 1000}, .action = ACTION_ERROR};
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 4; i++) {
        add_client(sv, i % 2, CLASS_SMALL, 0);
    }
    sv->think_ns = NSEC_PER_MSEC; /* four times the rate */
    run(sv, START + 10 * NSEC_PER_SEC);
    uint64_t refused = 0;
    for (unsigned i = 0; i < 4; i++) {
        refused += sv->clients[i].refused;
    }
    ck_assert_uint_ge(admitted(sv), 9900);
    ck_assert_uint_le(admitted(sv), 10020);
    ck_assert_uint_eq(admitted(sv) + refused, 40000);
    ck_assert_uint_eq(ctr_get(&sv->limiters[0].ctr[CLASS_SMALL].rejected) +
                          ctr_get(&sv->limiters[1].ctr[CLASS_SMALL].rejected),
                      refused);
    ck_assert_uint_eq(sv->limiters[0].waiting, 0);
    server_end(sv);
}

/* A refused request takes nothing, also not of the limits that it has passed. */
TEST(who_is_refused_pays_nothing)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1},
                                .peer = {.rate = 1, .burst = 5},
                                .action = ACTION_ERROR};
    conf.by_class[CLASS_SMALL] = (struct limiter_rule){.rate = 1, .burst = 5};
    struct server *sv = server_start(&conf, 1);
    struct client *c = add_client(sv, 0, CLASS_SMALL, 99);
    for (unsigned i = 0; i < 100; i++) {
        ask(sv, c, false);
    }
    ck_assert_uint_eq(c->admitted, 1);
    limiter_set_total(&sv->limiter, (struct limiter_rule){0}, sv->now);
    for (unsigned i = 0; i < 100; i++) {
        ask(sv, c, false);
    }
    ck_assert_uint_eq(c->admitted, 5);
    server_end(sv);
}

TEST(a_long_wait_is_an_error)
{
    struct limiter_conf conf = {.total = {.rate = 100, .burst = 1},
                                .max_delay = 50 * NSEC_PER_MSEC};
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 20; i++) {
        add_client(sv, i % 2, CLASS_SMALL, 0);
    }
    run(sv, START + 1);
    uint64_t refused = 0;
    unsigned waiting = 0;
    for (unsigned i = 0; i < 20; i++) {
        refused += sv->clients[i].refused;
        waiting += waitq_is_waiting(&sv->clients[i].node);
    }
    /* One at once, five within 50 ms; the others need not wait for it. */
    ck_assert_uint_eq(admitted(sv), 1);
    ck_assert_uint_eq(waiting, 5);
    ck_assert_uint_eq(refused, 14);
    server_end(sv);
}

/* Also for those whose turn can not be foreseen, as behind an address. */
TEST(patience_ends)
{
    struct limiter_conf conf = {.peer = {.rate = 1, .burst = 1},
                                .max_delay = 50 * NSEC_PER_MSEC};
    struct server *sv = server_start(&conf, 1);
    for (unsigned i = 0; i < 3; i++) {
        add_client(sv, 0, CLASS_SMALL, 5);
    }
    sv->think_ns = NSEC_PER_SEC / 2;
    run(sv, START + 49 * NSEC_PER_MSEC);
    ck_assert_uint_eq(sv->limiters[0].waiting, 2);
    run(sv, START + 51 * NSEC_PER_MSEC);
    ck_assert_uint_eq(sv->limiters[0].waiting, 0);
    ck_assert_uint_eq(sv->clients[1].refused + sv->clients[2].refused, 2);
    server_end(sv);
}

TEST(a_dry_run_only_counts)
{
    struct limiter_conf conf = {.total = {.rate = 100, .burst = 10}, .is_dry = true};
    struct server *sv = server_start(&conf, 1);
    struct client *c = add_client(sv, 0, CLASS_BULK, 0);
    for (unsigned i = 0; i < 1000; i++) {
        ask(sv, c, false);
    }
    ck_assert_uint_eq(c->admitted, 1000);
    ck_assert_uint_eq(ctr_get(&sv->limiters[0].ctr[CLASS_BULK].would_limit), 990);
    ck_assert_uint_eq(ctr_get(&sv->limiters[0].ctr[CLASS_BULK].admitted), 1000);
    server_end(sv);
}

/* ---- changes -------------------------------------------------------------------------- */

TEST(off_lets_everybody_go)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1},
                                .peer = {.rate = 1, .burst = 1}};
    conf.by_class[CLASS_BULK].rate = 1;
    struct server *sv = server_start(&conf, 1);
    for (unsigned i = 0; i < 300; i++) {
        add_client(sv, 0, i % 3 == 0 ? CLASS_BULK : CLASS_SMALL, i % 2);
    }
    run(sv, START + NSEC_PER_SEC / 2);
    ck_assert_uint_ge(sv->limiters[0].waiting, 290);
    limiter_set_total(&sv->limiter, (struct limiter_rule){0}, sv->now);
    limiter_set_peer(&sv->limiter, (struct limiter_rule){0}, sv->now);
    limiter_set_class(&sv->limiter, CLASS_BULK, (struct limiter_rule){0}, sv->now);
    limiter_look_again(&sv->limiters[0]);
    wake(sv, 0);
    ck_assert_uint_eq(sv->limiters[0].waiting, 0);
    ck_assert(!atomic_load(&sv->limiter.is_on));
    server_end(sv);
}

/* The rate in force counts, whatever was reserved under another. */
TEST(a_new_rate_holds_at_once)
{
    struct limiter_conf conf = {.total = {.rate = 10, .burst = 1}};
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 200; i++) {
        add_client(sv, i % 2, CLASS_SMALL, 0);
    }
    run(sv, START + NSEC_PER_SEC);
    for (unsigned i = 1; i < 20; i++) {
        uint64_t rate = i % 2 == 0 ? 100 : 5000;
        limiter_set_total(&sv->limiter, (struct limiter_rule){rate, 1}, sv->now);
        wake(sv, 0);
        wake(sv, 1);
        uint64_t before = admitted(sv);
        run(sv, sv->now + NSEC_PER_SEC);
        ck_assert_uint_le(admitted(sv) - before, rate + rate / 50 + 2);
        ck_assert_uint_ge(admitted(sv) - before, rate - rate / 50 - 2);
    }
    server_end(sv);
}

/* Changes that come faster than tokens take nothing from those who wait: what has arrived of
 * the next token stays, whatever was reserved behind it. Units are requests and more. */
TEST_LOOP(changes_all_the_time_starve_nobody, 4)
{
    struct limiter_conf conf = {
        .total = {.rate = 100, .burst = 1 + 15 * (unsigned)(_i % 2)},
        .counts_keys = _i >= 2};
    struct server *sv = server_start(&conf, 2);
    for (unsigned i = 0; i < 200; i++) {
        add_client(sv, i % 2, CLASS_SMALL, 0)->request.keys = 2;
    }
    run(sv, START + NSEC_PER_SEC);
    uint64_t before = admitted(sv);
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t burst = conf.total.burst;
        limiter_set_total(&sv->limiter, (struct limiter_rule){100 + i % 2, burst},
                          sv->now);
        wake(sv, 0);
        wake(sv, 1);
        run(sv, sv->now + NSEC_PER_MSEC);
    }
    uint64_t due = conf.counts_keys ? 500 : 1000;
    ck_assert_uint_le(admitted(sv) - before, due + due / 50);
    ck_assert_uint_ge(admitted(sv) - before, due - due / 10);
    server_end(sv);
}

TEST(a_ceiling_leaves_what_was_set)
{
    struct limiter_conf conf = {.total = {.rate = 1000}};
    struct server *sv = server_start(&conf, 1);
    limiter_set_ceiling(&sv->limiter, 300, START);
    ck_assert_uint_eq(atomic_load(&sv->limiter.total.rate), 300);
    limiter_set_ceiling(&sv->limiter, 3000, START);
    ck_assert_uint_eq(atomic_load(&sv->limiter.total.rate), 1000);
    limiter_set_total(&sv->limiter, (struct limiter_rule){0}, START);
    ck_assert_uint_eq(atomic_load(&sv->limiter.total.rate), 3000);
    ck_assert_uint_eq(limiter_total(&sv->limiter).rate, 0);
    limiter_set_ceiling(&sv->limiter, 0, START);
    ck_assert(!atomic_load(&sv->limiter.is_on));
    server_end(sv);
}

/* ---- those who leave ------------------------------------------------------------------ */

/* The places of those who leave fall to those behind them. */
TEST(the_dead_take_no_tokens)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1}};
    struct server *sv = server_start(&conf, 1);
    for (unsigned i = 0; i < 200; i++) {
        add_client(sv, 0, CLASS_SMALL, 0);
    }
    run(sv, START + NSEC_PER_MSEC);
    struct client *last = &sv->clients[199];
    for (unsigned i = 0; i < 199; i++) {
        limiter_leave(&sv->limiters[0], &sv->clients[i].node);
        sv->clients[i].asks_at = UINT64_MAX;
    }
    ck_assert_uint_eq(sv->limiters[0].waiting, 1);
    run(sv, START + NSEC_PER_SEC + NSEC_PER_MSEC);
    ck_assert_uint_eq(last->admitted, 1);
    server_end(sv);
}

TEST(tokens_that_are_given_back_go_to_the_next)
{
    struct limiter_conf conf = {.total = {.rate = 1, .burst = 1}};
    struct server *sv = server_start(&conf, 1);
    enum limiter_verdict verdict;
    for (unsigned i = 0; i < 100; i++) {
        add_client(sv, 0, CLASS_SMALL, 0);
    }
    run(sv, START + 1);
    nsec_t now = START + NSEC_PER_SEC;
    for (unsigned i = 1; i < 99; i++) {
        struct waitq_node *n = limiter_next(&sv->limiters[0], false, now, &verdict);
        ck_assert_ptr_nonnull(n);
        limiter_give_back(&sv->limiters[0], n, now);
    }
    ck_assert_ptr_nonnull(limiter_next(&sv->limiters[0], false, now, &verdict));
    ck_assert_ptr_null(limiter_next(&sv->limiters[0], false, now, &verdict));
    server_end(sv);
}

/* What a limit holds for those who wait is what their rooms have reserved. */
static void
check_reserved(const struct server *sv)
{
    int64_t reserved = 0;
    for (unsigned i = 0; i < sv->workers; i++) {
        const struct waitq *g = &sv->limiters[i].total;
        for (unsigned k = 0; g->epoch == limit_epoch(g->limit) && k < g->slots; k++) {
            reserved += g->ring[(g->first + k) % WAITQ_SLOTS].cost;
        }
    }
    ck_assert_int_eq(atomic_load(&sv->limiter.total.reserved), reserved);
}

/* Anything in any order, with clocks that jump: nobody is lost, and it ends. */
TEST_LOOP(any_order_of_events, 8)
{
    struct limiter_conf conf = {.total = {.rate = 5000, .burst = 10},
                                .peer = {.rate = 1000}};
    conf.by_class[CLASS_BULK].rate = 700;
    struct server *sv = server_start(&conf, 3);
    rng_init(&sv->rng, 11, (uint64_t)_i);
    for (unsigned i = 0; i < 150; i++) {
        add_client(sv, i % 3, i % 4 == 0 ? CLASS_BULK : CLASS_SMALL, i % 5);
    }
    for (unsigned i = 0; i < 60000; i++) {
        struct client *c = &sv->clients[rng_below(&sv->rng, sv->count)];
        struct limiter_worker *d = &sv->limiters[c->worker];
        uint64_t what = rng_below(&sv->rng, 100);
        c->request.keys = 1 + (uint32_t)rng_below(&sv->rng, 30);
        if (what < 50 && !waitq_is_waiting(&c->node)) {
            ask(sv, c, what % 2 == 0);
        } else if (what < 80) {
            wake(sv, c->worker);
        } else if (what < 90) {
            limiter_leave(d, &c->node);
        } else if (what == 90) {
            limiter_rest(d, sv->now);
        } else if (what == 91) {
            uint64_t rate = rng_below(&sv->rng, 4) * 3000;
            limiter_set_total(&sv->limiter, (struct limiter_rule){rate, 0}, sv->now);
        } else if (what == 92) {
            limiter_set_class(&sv->limiter, CLASS_BULK,
                              (struct limiter_rule){rng_below(&sv->rng, 2) * 500, 0},
                              sv->now);
        } else if (what == 93) {
            limiter_set_action(&sv->limiter, (enum limiter_action)rng_below(&sv->rng, 3),
                               rng_below(&sv->rng, 2) * 20 * NSEC_PER_MSEC);
        } else if (what == 94) {
            limiter_set_unit(&sv->limiter, rng_below(&sv->rng, 2) == 0);
        } else if (what == 95 && _i % 2 == 1) {
            sv->now -= rng_below(&sv->rng, NSEC_PER_SEC);
        } else if (what == 96 && _i % 2 == 1) {
            sv->now += rng_below(&sv->rng, 3 * NSEC_PER_SEC);
        } else {
            sv->now += rng_below(&sv->rng, NSEC_PER_MSEC);
        }
        unsigned waiting = 0;
        for (unsigned k = 0; i % 97 == 0 && k < sv->count; k++) {
            waiting += waitq_is_waiting(&sv->clients[k].node);
        }
        if (i % 97 == 0) {
            ck_assert_uint_eq(waiting, sv->limiters[0].waiting + sv->limiters[1].waiting +
                                           sv->limiters[2].waiting);
        }
        check_reserved(sv);
    }
    for (unsigned i = 0; i < sv->workers; i++) {
        enum limiter_verdict verdict;
        while (limiter_next(&sv->limiters[i], true, sv->now, &verdict) != NULL) {
            ck_assert(verdict == VERDICT_ADMIT);
        }
        ck_assert_uint_eq(sv->limiters[i].waiting, 0);
        ck_assert_uint_eq(limiter_due(&sv->limiters[i], sv->now), UINT64_MAX);
    }
    server_end(sv);
}

/* ---- many addresses ------------------------------------------------------------------- */

TEST(addresses_that_rest_leave_their_entries)
{
    static struct peers p;
    nsec_t retry_at;
    peers_init(&p);
    peers_set(&p, 10, 2, START);
    /* A hundred thousand in turn, each with its full bucket. */
    for (uint64_t i = 1; i <= 100000; i++) {
        nsec_t now = START + i * NSEC_PER_MSEC;
        uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15);
        ck_assert(peers_take(&p, key, 1, now, &retry_at));
        ck_assert(peers_take(&p, key, 1, now, &retry_at));
        ck_assert(!peers_take(&p, key, 1, now, &retry_at));
        ck_assert_uint_eq(retry_at, now + NSEC_PER_SEC / 10);
    }
    ck_assert_uint_eq(atomic_load(&p.shared), 0);
}

TEST(too_many_busy_addresses_share)
{
    static struct peers p;
    nsec_t retry_at;
    uint64_t given = 0;
    peers_init(&p);
    peers_set(&p, 10, 1, START);
    for (uint64_t i = 1; i <= 20000; i++) {
        given += peers_take(&p, i * UINT64_C(0x9e3779b97f4a7c15), 1, START, &retry_at);
    }
    ck_assert_uint_le(given, PEERS_ENTRIES);
    ck_assert_uint_ge(given, PEERS_ENTRIES * 9 / 10);
    ck_assert_uint_gt(atomic_load(&p.shared), 0);
}

/* Setting it again and again is worth no tokens, nor does it take any. */
TEST(changes_give_no_address_a_burst)
{
    static struct peers p;
    nsec_t retry_at, now = START;
    unsigned given = 0;
    peers_init(&p);
    for (unsigned i = 0; i < 10000; i++) {
        peers_set(&p, 100 + i / 10 % 2, 16, now);
        given += peers_take(&p, 9, 1, now, &retry_at);
        now += NSEC_PER_MSEC;
    }
    ck_assert_uint_le(given, 16 + 1010);
    ck_assert_uint_ge(given, 990);
    peers_set(&p, 0, 0, now);
    peers_set(&p, 1, 4, now);
    for (given = 0; peers_take(&p, 9, 1, now, &retry_at); given++) {
    }
    ck_assert_uint_eq(given, 4);
    peers_set(&p, PEERS_RATE_MAX, PEERS_BURST_MAX, now);
    ck_assert(!peers_take(&p, 9, 1, now, &retry_at));
    ck_assert_uint_lt(retry_at, now + NSEC_PER_USEC);
}

TEST(an_address_may_ask_at_any_time)
{
    static struct peers p;
    nsec_t retry_at;
    peers_init(&p);
    peers_set(&p, 1, 1, START);
    ck_assert(peers_take(&p, 9, UINT32_MAX, START, &retry_at));
    ck_assert(!peers_take(&p, 9, 1, START, &retry_at));
    ck_assert(!peers_take(&p, 9, 1, 0, &retry_at));
    ck_assert(!peers_take(&p, 9, 1, UINT64_MAX, &retry_at));
    peers_owe(&p, 9, UINT32_MAX, UINT64_MAX);
    peers_refund(&p, 9, 1);
    peers_set(&p, PEERS_RATE_MAX, PEERS_BURST_MAX, START);
    ck_assert(!peers_take(&p, 9, 1, START, &retry_at));
    peers_set(&p, 0, 0, START);
    peers_set(&p, PEERS_RATE_MAX, PEERS_BURST_MAX, START);
    ck_assert(peers_take(&p, 9, 1, START, &retry_at));
}

/* ---- words ---------------------------------------------------------------------------- */

static const char *
rules(const char *text, struct limiter_conf *conf)
{
    *conf = (struct limiter_conf){0};
    return limit_text_rules(text, strlen(text), conf);
}

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
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(rules(wrong[i], &conf) != NULL, "'%s'", wrong[i]);
    }
}

#define MOST 16

/* Asks once and lets as many pass as may; how many that were, 0: it has to wait. */
static unsigned
ask_and_pass(struct server *sv, struct waitq_node *node, nsec_t now)
{
    struct limiter_worker *d = &sv->limiters[0];
    struct limiter_request small = {.class = CLASS_SMALL, .keys = 1};
    if (limiter_ask(d, node, &small, false, now) != VERDICT_ADMIT) {
        return 0;
    }
    unsigned count = limiter_unasked(d, MOST, now);
    ck_assert_uint_le(count, MOST);
    limiter_pass(d, CLASS_WRITE, count);
    return 1 + count;
}

TEST(what_passes_unasked_takes_tokens)
{
    struct limiter_conf conf = {.total = {1000000, 500}};
    struct server *sv = server_start(&conf, 1);
    struct waitq_node node = {.cost = 0};
    uint64_t admitted = 0;
    unsigned batches = 0;
    for (unsigned count; (count = ask_and_pass(sv, &node, START)) > 0; batches++) {
        admitted += count;
    }
    ck_assert_uint_ge(admitted, 499);
    ck_assert_uint_le(admitted, 501);
    ck_assert_uint_lt(batches, admitted / 4);
    ck_assert_uint_eq(ctr_get(&sv->limiters[0].ctr[CLASS_SMALL].admitted) +
                          ctr_get(&sv->limiters[0].ctr[CLASS_WRITE].admitted),
                      admitted);
    /* One waits: none passes it. */
    ck_assert(waitq_is_waiting(&node));
    ck_assert_uint_eq(limiter_unasked(&sv->limiters[0], MOST, START), 0);
    limiter_leave(&sv->limiters[0], &node);
    server_end(sv);
}

TEST(tokens_that_are_gone_are_not_taken)
{
    struct limiter_conf conf = {.total = {1000000, 500}};
    struct server *sv = server_start(&conf, 1);
    struct limiter_worker *d = &sv->limiters[0];
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
    limiter_set_unit(&sv->limiter, true);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), 0);
    limiter_set_unit(&sv->limiter, false);
    ck_assert_uint_gt(limiter_unasked(d, MOST, START), 0);
    limiter_set_class(&sv->limiter, CLASS_BULK, (struct limiter_rule){10, 0}, START);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), 0);
    limiter_set_class(&sv->limiter, CLASS_BULK, (struct limiter_rule){0, 0}, START);
    uint64_t epoch = d->total.lease.epoch;
    limiter_set_total(&sv->limiter, (struct limiter_rule){1000, 1}, START);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START),
                      1); /* the lease is void: another one */
    ck_assert_uint_ne(d->total.lease.epoch, epoch);
    limiter_pass(d, CLASS_SMALL, 1);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), 0); /* there are no more */
    limiter_set_total(&sv->limiter, (struct limiter_rule){0, 0}, START);
    ck_assert_uint_eq(limiter_unasked(d, MOST, START), MOST);
    server_end(sv);
}

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
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(limit_text_action(wrong[i], strlen(wrong[i]), &action, &ns) != NULL,
                      "'%s'", wrong[i]);
    }
}
