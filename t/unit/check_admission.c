/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Every verdict of admission, the order in which policies are asked, and who is next among those
 * that wait for tokens.
 */
#include "check_main.h"
#include "check_core.h"

#define CLIENTS 4

static struct sim sim;
static struct client clients[CLIENTS];

static void
open_with(struct limiter_conf limits)
{
    sim_open(&sim, &limits, true);
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_open(&clients[i], &sim, 1000 + i);
    }
}

static void
close_all(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_close(&clients[i]);
    }
    sim_close(&sim);
}

static enum limiter_verdict
ask(unsigned client, enum req_class class, nsec_t since, bool is_served)
{
    struct turn turn = core_inline_turn(&sim.core);
    turn.is_served = is_served;
    struct facts facts = {.ask = {.class = class, .keys = 1, .peer = 1000 + client},
                          .since = since};
    return admission_ask(&sim.core, &clients[client].pump.work.ticket, &facts, &turn);
}

static uint64_t admitted(enum req_class class)
{
    return ctr_get(&sim.core.admission.limits.ctr[class].admitted);
}

static void
leave_all(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        admission_leave(&sim.core, &clients[i].pump.work.ticket);
    }
}

/* ---- verdicts -------------------------------------------------------------------------- */

TEST(without_policies_all_pass)
{
    open_with((struct limiter_conf){.counts_keys = false});
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_eq(ask(i % CLIENTS, CLASS_SMALL, 0, false), VERDICT_ADMIT);
    }
    ck_assert_uint_eq(admitted(CLASS_SMALL), 1000);
    close_all();
}

/* What has no token waits, is refused, or is counted only. */
static const struct {
    struct limiter_conf limits;
    enum limiter_verdict second;
} actions[] = {
    {{.total = {1, 1}, .action = ACTION_DELAY}, VERDICT_WAIT},
    {{.total = {1, 1}, .action = ACTION_ERROR}, VERDICT_REFUSE},
    {{.total = {1, 1}, .action = ACTION_MISS}, VERDICT_REFUSE},
    {{.total = {1, 1}, .action = ACTION_ERROR, .is_dry = true}, VERDICT_ADMIT},
};

TEST_LOOP(actions_decide, ROWS(actions))
{
    open_with(actions[_i].limits);
    ck_assert_int_eq(ask(0, CLASS_SMALL, 0, false), VERDICT_ADMIT);
    ck_assert_int_eq(ask(0, CLASS_SMALL, 0, false), actions[_i].second);
    expect(admission_refuses_as_miss(&sim.core) ==
           (actions[_i].limits.action == ACTION_MISS));
    leave_all();
    close_all();
}

/* Control commands are not limited: the pump does not ask for them. */
TEST(control_passes)
{
    open_with((struct limiter_conf){.total = {1, 1}, .action = ACTION_ERROR});
    client_says(&clients[0], "get a\r\nget a\r\nversion\r\n");
    client_ready(&clients[0]);
    expect(sent_is(&clients[0], "END\r\nSERVER_ERROR 307 busy\r\nVERSION 1.2.3\r\n"));
    close_all();
}

/* ---- order ----------------------------------------------------------------------------- */

/* At the end of the process what has come is served, whatever limits and the SLO say. */
TEST(draining_goes_before_limits)
{
    open_with((struct limiter_conf){.total = {1, 1}, .action = ACTION_ERROR});
    (void)ask(0, CLASS_SMALL, 0, false);
    ck_assert_int_eq(ask(0, CLASS_SMALL, 0, false), VERDICT_REFUSE);
    sim.core.is_draining = true;
    ck_assert_int_eq(ask(0, CLASS_SMALL, 0, false), VERDICT_ADMIT);
    close_all();
}

/* A queue stands: late requests are refused, and have taken no token. */
static void
overload(void)
{
    struct slo_target target = {.ns = NSEC_PER_MSEC, .percentile = 990};
    slo_set(&sim.shared.slo, CLASS_SMALL, target);
    for (unsigned i = 0; i < 4000; i++) {
        sim_now += 20 * NSEC_PER_USEC;
        core_read_clock(&sim.core);
        (void)ask(0, CLASS_SMALL, sim_now - 2 * NSEC_PER_MSEC, false);
    }
}

TEST(slo_goes_before_limits)
{
    open_with((struct limiter_conf){.total = {1000000, 1000000}});
    overload();
    uint64_t before = admitted(CLASS_SMALL);
    unsigned refused = 0;
    for (unsigned i = 0; i < 100; i++) {
        bool is_refused =
            ask(0, CLASS_SMALL, sim_now - 2 * NSEC_PER_MSEC, false) == VERDICT_REFUSE;
        expect(is_refused == sim.core.admission.refuses_rest);
        refused += is_refused;
    }
    ck_assert_uint_gt(refused, 50);
    ck_assert_uint_eq(admitted(CLASS_SMALL), before + 100 - refused);
    ck_assert_uint_gt(ctr_get(&sim.core.admission.slo.late), 0);
    close_all();
}

/* What has waited for tokens in vain is refused without being asked for again. */
TEST(waited_in_vain_goes_first)
{
    open_with((struct limiter_conf){.total = {1000, 1}, .max_delay = 5 * NSEC_PER_MSEC});
    clients[0].pump.work.ticket.is_refused = true;
    ck_assert_int_eq(ask(0, CLASS_SMALL, 0, true), VERDICT_REFUSE);
    expect(!sim.core.admission.refuses_rest);
    ck_assert_int_eq(ask(0, CLASS_SMALL, 0, true), VERDICT_ADMIT);
    leave_all();
    close_all();
}

/* ---- waiting --------------------------------------------------------------------------- */

static unsigned
replies_of(const struct client *c)
{
    return (unsigned)(c->sent.len / strlen("END\r\n"));
}

/* First come, first served: each of several clients has its turn. */
TEST(tokens_go_round)
{
    open_with((struct limiter_conf){.total = {1000, 1}});
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (unsigned n = 0; n < 40; n++) {
            client_says(&clients[i], "get a\r\n");
        }
    }
    sim_pass(&sim, clients, CLIENTS);
    for (unsigned round = 0; replies_of(&clients[0]) < 20; round++) {
        expect(round < 10000);
        sim_sleep(&sim);
        for (unsigned i = 1; i < CLIENTS; i++) {
            int apart = (int)replies_of(&clients[i]) - (int)replies_of(&clients[0]);
            ck_assert_int_ge(apart, -17); /* followers of one turn */
            ck_assert_int_le(apart, 17);
        }
    }
    /* A rate of 1000 a second: so much time has passed for what was answered. */
    unsigned answered = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        answered += replies_of(&clients[i]);
    }
    double seconds = (double)(sim_now - START) / (double)NSEC_PER_SEC;
    ck_assert_double_le(answered, 1000 * seconds + 4);
    ck_assert_double_ge(answered, 1000 * seconds * 0.9 - 4);
    close_all();
}

/* A client that has gone loses its place, and its token is the next one's. */
TEST(tokens_of_the_gone_are_others)
{
    open_with((struct limiter_conf){.total = {1000, 1}});
    for (unsigned i = 0; i < 3; i++) {
        client_says(&clients[i], "get a\r\n");
    }
    sim_pass(&sim, clients, 3);
    ck_assert_uint_eq(replies_of(&clients[0]), 1);
    expect(waitq_is_waiting(&clients[1].pump.work.ticket.wait));
    clients[1].is_gone = true;
    uint64_t before = admitted(CLASS_SMALL);
    sim_sleep(&sim);
    sim_pass(&sim, NULL, 0);
    ck_assert_uint_eq(replies_of(&clients[1]), 0);
    ck_assert_uint_eq(replies_of(&clients[2]), 1);
    ck_assert_uint_eq(admitted(CLASS_SMALL), before + 1);
    close_all();
}

/* What cannot have its token in time is refused when its time is over, not before. */
TEST(waiting_ends_in_time)
{
    open_with((struct limiter_conf){.total = {1, 1}, .max_delay = 50 * NSEC_PER_MSEC});
    client_says(&clients[0], "get a\r\nget a\r\n");
    sim_pass(&sim, clients, 1);
    if (replies_of(&clients[0]) == 1 &&
        waitq_is_waiting(&clients[0].pump.work.ticket.wait)) {
        sim_sleep(&sim);
    }
    expect(sent_is(&clients[0], "END\r\nSERVER_ERROR 307 busy\r\n"));
    ck_assert_uint_le(sim_now, START + 60 * NSEC_PER_MSEC);
    close_all();
}

/* Another limit: those that wait are looked at in this pass. */
TEST(a_new_limit_is_looked_at)
{
    open_with((struct limiter_conf){.total = {1, 1}});
    client_says(&clients[0], "get a\r\nget a\r\n");
    sim_pass(&sim, clients, 1);
    ck_assert_uint_eq(replies_of(&clients[0]), 1);
    limiter_set_total(&sim.shared.limiter, (struct limiter_rule){0, 0}, sim_now);
    admission_look_again(&sim.core);
    expect(admission_is_due(&sim.core));
    sim_pass(&sim, NULL, 0);
    ck_assert_uint_eq(replies_of(&clients[0]), 2);
    close_all();
}

/* ---- refusals that are sent together --------------------------------------------------- */

/* What is parked has no turn until it goes on, whatever of its output is kept. */
TEST(none_is_kept_of_what_is_parked)
{
    struct parked parked = {.discard = NULL};
    open_with((struct limiter_conf){.max_delay = 0});
    sim.hooks = (struct serve_hooks){.qos = answer_when_back, .ctx = &parked};
    struct pump *p = &clients[0].pump;
    ck_assert(chain_copy(&p->out, &sim.core.env.chain, "SERVER_ERROR 307 busy\r\n", 23));
    coalesce_note(p, 0, CLASS_SMALL);
    ck_assert(coalesce_keeps(p));
    client_says(&clients[0], "qos save\r\n");
    queue_put(&sim.core, &p->work, CLASS_CONTROL);
    sim_pass(&sim, NULL, 0);
    ck_assert_int_eq(clients[0].end, PUMP_PARKED);
    ck_assert(!p->coalesced.is_held);
    queue_put(&sim.core, &p->work, CLASS_CONTROL);
    sim_pass(&sim, NULL, 0);
    ck_assert_int_eq(clients[0].end, END_INPUT);
    close_all();
}

/* What was kept for long enough is not kept anew because the connection is queued just then. */
TEST(refusals_are_kept_once)
{
    open_with((struct limiter_conf){.max_delay = 0});
    struct pump *p = &clients[0].pump;
    ck_assert(chain_copy(&p->out, &sim.core.env.chain, "SERVER_ERROR 307 busy\r\n", 23));
    coalesce_note(p, 0, CLASS_SMALL);
    ck_assert(coalesce_keeps(p));
    queue_put(&sim.core, &p->work, CLASS_BULK);
    coalesce_serve(&sim.core, false);
    ck_assert(!coalesce_keeps(p));
    close_all();
}
