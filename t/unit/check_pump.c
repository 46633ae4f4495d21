/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A client's requests within a turn: cut at every byte they get the same replies, and each way
 * in which a step may end.
 */
#include "check_main.h"
#include "check_core.h"

static struct sim sim;
static struct client c, other;

static void
set_up(void)
{
    sim_open(&sim, NULL, true);
    client_open(&c, &sim, 0);
    client_open(&other, &sim, 0);
}

static void
tear_down(void)
{
    client_close(&c);
    client_close(&other);
    sim_close(&sim);
}

/* ---- cuts ------------------------------------------------------------------------------ */

static const char script[] =
    "set a 1 0 3\r\nabc\r\nget a\r\nget a b a\r\nadd a 0 0 1\r\nx\r\n"
    "bogus\r\nset b 0 0 2 noreply\r\nhi\r\nget b\r\nmg a v\r\n"
    "incr a 1\r\nset n 0 0 1\r\n7\r\nincr n 5\r\ndelete a\r\nget a\r\n"
    "gets b\r\nset z 0 0 3\r\nlonger\r\nversion\r\nmn\r\n";

static char *
replies_to(size_t cut, bool is_inline)
{
    struct client one;
    client_open(&one, &sim, 0);
    one.cut = cut;
    client_says(&one, "flush_all\r\n");
    client_says(&one, script);
    if (is_inline) {
        client_ready(&one);
    } else {
        queue_put(&sim.core, &one.pump.work, CLASS_BULK);
    }
    sim_settle(&sim);
    ck_assert_int_eq(one.end, END_INPUT);
    ck_assert_uint_eq(one.fed, one.input.len);
    text_add(&one.sent, "", 1);
    char *replies = strdup(one.sent.p);
    client_close(&one);
    return replies;
}

/* CAS numbers grow from run to run: what stands behind the bytes of a "gets". */
static void
mask_cas(char *text)
{
    char *p = strstr(text, "VALUE b 0 2 ");
    for (p += strlen("VALUE b 0 2 "); *p != '\r'; p++) {
        memmove(p, p + 1, strlen(p));
        p--;
    }
}

FIXTURE(set_up, tear_down);

TEST(cuts_change_nothing)
{
    char *whole = replies_to(0, true);
    mask_cas(whole);
    expect(strstr(whole, "VALUE a 1 3\r\nabc\r\nEND\r\nVALUE a 1 3") != NULL);
    expect(strstr(whole, "\r\nNOT_STORED\r\nERROR\r\nVALUE b 0 2\r\nhi\r\nEND\r\n") !=
           NULL);
    for (size_t cut = 1; cut < sizeof script; cut++) {
        char *parts = replies_to(cut, cut % 2 == 0);
        mask_cas(parts);
        ck_assert_str_eq(parts, whole);
        free(parts);
    }
    free(whole);
}

/* ---- ends ------------------------------------------------------------------------------ */

/* What a client says, how its first turn ends, and what it has been sent when all is done. */
static const struct {
    const char *says;
    int end;
    const char *sent;
} ends[] = {
    {"", END_INPUT, ""},
    {"get a", END_INPUT, ""},
    {"get a\r\n", END_INPUT, "END\r\n"},
    {"set a 0 0 5\r\nab", PUMP_DEFER, ""},
    {"get a\r\nquit\r\nget b\r\n", PUMP_QUIT, "END\r\n"},
    {"get 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\r\n", PUMP_DEFER, "END\r\n"},
    {"set a 0 0 1\r\nx\r\n", PUMP_DEFER, "STORED\r\n"},
    {"get a\r\nset a 0 0 1\r\nx\r\nget a\r\n", PUMP_DEFER,
     "END\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"},
    {"set a 0 0 -1\r\n", END_INPUT, "CLIENT_ERROR bad command line format\r\n"},
};

TEST_LOOP(ends_as_told, ROWS(ends))
{
    client_says(&c, ends[_i].says);
    client_ready(&c);
    ck_assert_int_eq(c.end, ends[_i].end);
    sim_settle(&sim);
    expect(sent_is(&c, ends[_i].sent));
}

/* So that one that waits for long can be told of before it is answered. */
TEST(what_waits_in_a_queue_has_its_class)
{
    struct latency *l = &sim.core.latency;
    latency_begin(l, &c.pump, 1);
    ck_assert_int_eq(l->class, CLASS_NONE);
    client_says(&c, "get 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\r\n");
    client_ready(&c);
    ck_assert_int_eq(c.end, PUMP_DEFER);
    ck_assert_int_eq(l->class, CLASS_BULK);
    expect(!l->is_over);
    sim_settle(&sim);
    expect(l->is_over);
    latency_forget(l, &c.pump);
}

TEST(hostile_input_ends_it)
{
    char line[70000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    client_says(&c, line);
    client_ready(&c);
    sim_settle(&sim);
    expect(c.end == END_HOSTILE || c.end == PUMP_CLOSE);
}

/* -R requests in a row, then the client waits for its next turn behind others. */
TEST(so_many_in_a_row)
{
    for (unsigned i = 0; i < 45; i++) {
        client_says(&c, "get a\r\n");
    }
    client_says(&other, "get b\r\n");
    client_ready(&c);
    ck_assert_int_eq(c.end, PUMP_DEFER);
    ck_assert_uint_eq(c.sent.len, 20 * strlen("END\r\n"));
    client_ready(&other);
    expect(sent_is(&other, "END\r\n"));
    sim_settle(&sim);
    ck_assert_uint_eq(c.sent.len, 45 * strlen("END\r\n"));
    ck_assert_uint_eq(c.turns, 3);
    ck_assert_uint_eq(c.pump.served, 45);
}

/* Commands about the server have a turn each, behind what is small; what is quick runs at once. */
TEST(long_ones_wait_in_the_queue)
{
    client_says(&c, "verbosity 0\r\nverbosity 0\r\nversion\r\n");
    client_says(&other, "get b\r\nversion\r\n");
    client_ready(&c);
    ck_assert_int_eq(c.end, PUMP_DEFER);
    ck_assert_int_eq(pump_lane(&c.pump), CLASS_CONTROL);
    ck_assert_uint_eq(c.sent.len, 0);
    client_ready(&other);
    expect(sent_is(&other, "END\r\nVERSION 1.2.3\r\n"));
    sim_settle(&sim);
    expect(sent_is(&c, "OK\r\nOK\r\nVERSION 1.2.3\r\n"));
    ck_assert_uint_eq(c.turns, 3);
}

/* Found to be large, a get goes on in the queue of bulk work; declared ones do not. */
TEST(a_parked_one_waits_alone)
{
    struct parked parked = {.discard = NULL};
    sim.hooks = (struct serve_hooks){.qos = answer_when_back, .ctx = &parked};
    client_says(&c, "mn\r\nqos save\r\nmn\r\n");
    client_ready(&c);
    sim_settle(&sim);
    ck_assert_int_eq(c.end, PUMP_PARKED);
    expect(!work_is_queued(&c.pump.work) && c.pump.work.ticket.is_admitted);
    expect(sent_is(&c, "MN\r\n"));
    client_says(&other, "mn\r\n");
    client_ready(&other);
    expect(sent_is(&other, "MN\r\n"));
    queue_put(&sim.core, &c.pump.work, pump_lane(&c.pump));
    sim_settle(&sim);
    ck_assert_int_eq(c.end, END_INPUT);
    expect(sent_is(&c, "MN\r\nOK\r\nMN\r\n"));
}

TEST_LOOP(large_values_are_late, 2)
{
    static char value[20001];
    memset(value, 'v', sizeof value - 1);
    client_says(&other, "set big 0 0 20000\r\n");
    client_says(&other, value);
    client_says(&other, "\r\n");
    client_ready(&other);
    sim_settle(&sim);
    if (_i == 1) {
        c.pump.session.declared = 1 + CLASS_SMALL;
    }
    const struct core_class *class =
        &sim.core.classes[_i == 1 ? CLASS_SMALL : CLASS_BULK];
    uint64_t before = ctr_get(&class->served);
    client_says(&c, "get big\r\n");
    client_ready(&c);
    ck_assert_int_eq(c.end, _i == 1 ? END_INPUT : PUMP_DEFER);
    ck_assert_int_eq(pump_lane(&c.pump), _i == 1 ? CLASS_SMALL : CLASS_BULK);
    sim_settle(&sim);
    ck_assert_uint_eq(c.sent.len, strlen("VALUE big 0 20000\r\n\r\nEND\r\n") + 20000);
    ck_assert_uint_eq(ctr_get(&class->served), before + 1);
}

/* ---- a budget of replies --------------------------------------------------------------- */

/* Too many replies: a get whose reply is still here in whole is answered with an error. */
TEST(over_budget_a_get_is_taken_back)
{
    struct text line = {.p = NULL};
    sim.core.budget.bytes = 4 * POOL_BLOCK_BYTES;
    pump_join(&c.pump, &sim.core);
    text_add(&line, "get", 3);
    for (unsigned i = 0; i < 100; i++) {
        text_add(&line, " key", 4);
    }
    text_add(&line, "\r\nget a\r\n", 9);
    text_add(&c.input, line.p, line.len);
    text_free(&line);
    client_ready(&c);
    sim_settle(&sim);
    expect(sent_is(&c, "SERVER_ERROR out of memory writing get response\r\nEND\r\n"));
    ck_assert_uint_eq(ctr_get(&sim.core.budget.replies), 0);
    ck_assert_uint_eq(ctr_get(&sim.core.budget.reply_oom), 1);
}

/* Output that waits goes before a get begins, so that it is alone there. */
TEST(under_budget_gets_are_alone)
{
    sim.core.budget.bytes = 64 * POOL_BLOCK_BYTES;
    pump_join(&c.pump, &sim.core);
    client_says(&c, "version\r\nget a\r\n");
    struct turn turn = core_inline_turn(&sim.core);
    int end;
    pump_begin_turn(&c.pump, &turn);
    while ((end = client_step(&c, &turn)) < PUMP_FLUSH) {
    }
    ck_assert_int_eq(end, PUMP_FLUSH);
    ck_assert_uint_eq(c.pump.out.bytes, strlen("VERSION 1.2.3\r\n"));
    /* nothing could be sent */
    ck_assert_int_eq(client_step(&c, &turn), PUMP_FLUSH);
    client_send(&c);
    ck_assert_int_eq(client_step(&c, &turn), PUMP_DONE);
    client_send(&c);
    expect(sent_is(&c, "VERSION 1.2.3\r\nEND\r\n"));
}

/* ---- reads that complete nothing ------------------------------------------------------- */

/* A client that sends its requests byte by byte is read behind all others, and no longer when it
 * sends them in whole. */
TEST(trickling_is_charged)
{
    unsigned inline_reads = 0;
    c.cut = 1;
    for (unsigned i = 0; i < 40; i++) {
        char byte[2] = {"get a\r\n"[i % 7], '\0'};
        client_says(&c, byte);
        (void)!core_begin_pass(&sim.core);
        core_wake(&sim.core);
        bool is_deferred = pump_defers_read(&c.pump);
        inline_reads += !is_deferred;
        if (!is_deferred) {
            struct turn turn = core_inline_turn(&sim.core);
            client_turn(&c.pump.work, &turn);
            if (!turn.has_run) {
                pump_charge_read(&c.pump);
            }
        }
        core_serve(&sim.core);
        core_end_pass(&sim.core);
    }
    ck_assert_uint_lt(inline_reads, 20);
    ck_assert_uint_gt(ctr_get(&sim.core.ctr.trickled), 8);
    ck_assert_uint_eq(ctr_get(&sim.core.ctr.trickle_waits), 40 - inline_reads);
}
