/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Plain requests, served from a worker's space: what they take and leave, and that neither replies
 * nor counters differ from those of the same requests step by step.
 */
#include "check_main.h"
#include "check_core.h"

#include "base/changes.h"
#include "base/log.h"
#include "base/rng.h"
#include "serve/watch.h"

#define SCRIPTS 3000
#define LINES_MOST 40

static struct sim sim;
static struct client c;
static struct pump_space space;

static void
store(struct client *by, const char *key, size_t bytes)
{
    char line[64];
    snprintf(line, sizeof line, "set %s 7 0 %zu\r\n{%zuv}", key, bytes, bytes);
    text_expand(&by->input, line);
    client_says(by, "\r\n");
    client_ready(by);
    sim_settle(&sim);
}

static void
begin(void)
{
    sim_open(&sim, NULL, true);
    sim_tick = NSEC_PER_USEC; /* turns end */
    client_open(&c, &sim, 0);
    store(&c, "late", 200000);
    client_says(&c, "set gone 0 -1 2\r\nhi\r\n"); /* until it is looked up */
    client_ready(&c);
    sim_settle(&sim);
    store(&c, "lent", GETS_COPY_MAX + 1);
    store(&c, "copied", GETS_COPY_MAX);
    store(&c, "b", 200);
    store(&c, "a", 1);
    text_free(&c.sent);
    buf_park(&c.pump.in, &sim.core.pool); /* as a connection at rest does */
}

static void
end(void)
{
    client_close(&c);
    sim_close(&sim);
}

static unsigned
requests_of(const struct plain_served *served)
{
    return served->gets.requests + served->sets.requests;
}

/* In such a turn, as settings are by now. */
static bool
is_plain_in(struct turn *turn)
{
    core_read_clock(&sim.core);
    return pump_is_at_rest(&c.pump) && pump_is_plain(&c.pump, turn);
}

/* Where requests are read. */
static bool
is_plain(void)
{
    struct turn turn = {.lane = CLASS_SMALL};
    return is_plain_in(&turn);
}

/* In a turn of its own, when nothing else is ready. */
static struct plain_served
serve_in(struct turn *turn, const char *text, size_t len)
{
    ck_assert(is_plain_in(turn));
    memcpy(space.in, text, len);
    struct plain_served served = pump_serve_plain(&c.pump, &space, len, turn);
    ck_assert_uint_eq(turn->requests + requests_of(&served), 20);
    ck_assert_uint_le(served.consumed, len);
    text_add(&c.sent, space.out, served.made);
    return served;
}

static struct turn
turn_alone(void)
{
    core_wake(&sim.core);
    struct turn turn = core_inline_turn(&sim.core);
    turn.is_alone = true;
    return turn;
}

/* Plain requests first; the rest as ever. */
static struct plain_served
serve_plainly(const char *text, size_t len)
{
    struct turn turn = turn_alone();
    return serve_in(&turn, text, len);
}

static void
serve(const char *text, size_t len, bool is_plain)
{
    size_t at = is_plain ? serve_plainly(text, len).consumed : 0;
    text_add(&c.input, text + at, len - at);
    client_ready(&c);
    sim_settle(&sim);
}

/* ---- what is taken --------------------------------------------------------------------- */

static const struct {
    const char *text;
    unsigned requests;
    const char *left, *made;
} rows[] = {
    {"get a\r\n", 1, "", "VALUE a 7 1\r\nv\r\nEND\r\n"},
    {"get a\n", 1, "", "VALUE a 7 1\r\nv\r\nEND\r\n"},
    {"get x\r\nget a x a\r\n", 2, "",
     "END\r\nVALUE a 7 1\r\nv\r\nVALUE a 7 1\r\nv\r\nEND\r\n"},
    {"get x\r\nversion\r\n", 1, "version\r\n", "END\r\n"},
    {"get x\r\nget a", 1, "get a", "END\r\n"},
    {"get x\r\nget a\r", 1, "get a\r", "END\r\n"},
    {"get x\r\nge", 1, "ge", "END\r\n"},
    {"get x\r\nget  a\r\n", 1, "get  a\r\n", "END\r\n"},
    {"get x\r\nget a \r\n", 1, "get a \r\n", "END\r\n"},
    {"get x\r\nget a\tb\r\n", 1, "get a\tb\r\n", "END\r\n"},
    {"get x\r\nget a\rb\r\n", 1, "get a\rb\r\n", "END\r\n"},
    {"get x\r\nget \r\n", 1, "get \r\n", "END\r\n"},
    {"get x\r\nget\r\n", 1, "get\r\n", "END\r\n"},
    {"get x\r\ngets a\r\n", 1, "gets a\r\n", "END\r\n"},
    {"get x\r\nGET a\r\n", 1, "GET a\r\n", "END\r\n"},
    {"get {250k}\r\nget {251k}\r\n", 1, "get {251k}\r\n", "END\r\n"},
    {"get {16x} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\r\nget x\r\n", 2, "",
     "END\r\nEND\r\n"},
    {"get x\r\nget 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\r\n", 1,
     "get 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\r\n", "END\r\n"},
    /* not counted, nor used, before it is answered in whole */
    {"get x\r\nget a lent\r\n", 1, "get a lent\r\n", "END\r\n"},
    {"get x\r\nget late\r\n", 1, "get late\r\n", "END\r\n"},
    /* all together more than a small request answers */
    {"get x\r\nget copied copied copied\r\n", 1, "get copied copied copied\r\n",
     "END\r\n"},
    {"\xff\xfe\r\n", 0, "\xff\xfe\r\n", ""},
    {"get \xc3\xa4\r\n", 1, "", "END\r\n"},
    {"set n 5 0 2\r\nhi\r\n", 1, "", "STORED\r\n"},
    {"set n 5 0 2\nhi\r\nget n\r\n", 2, "", "STORED\r\nVALUE n 5 2\r\nhi\r\nEND\r\n"},
    {"get a\r\nset a 5 0 0\r\n\r\nget a\r\n", 3, "",
     "VALUE a 7 1\r\nv\r\nEND\r\nSTORED\r\nVALUE a 5 0\r\n\r\nEND\r\n"},
    {"set n 0 0 2 noreply\r\nhi\r\nget n\r\n", 2, "", "VALUE n 0 2\r\nhi\r\nEND\r\n"},
    {"set n 0 1 2\r\nhi\r\n", 1, "", "STORED\r\n"},
    {"get x\r\nset n 0 0 2\r\nhi\r", 1, "set n 0 0 2\r\nhi\r", "END\r\n"},
    {"get x\r\nset n 0 0 2\r\nhi", 1, "set n 0 0 2\r\nhi", "END\r\n"},
    {"get x\r\nset n 0 0 2\r\n", 1, "set n 0 0 2\r\n", "END\r\n"},
    {"get x\r\nset n 0 0 2", 1, "set n 0 0 2", "END\r\n"},
    {"get x\r\nset n 0 0 2\r\nhi\n\n", 1, "set n 0 0 2\r\nhi\n\n", "END\r\n"},
    {"get x\r\nset n 0 0 2\r\nhigh\r\n", 1, "set n 0 0 2\r\nhigh\r\n", "END\r\n"},
    {"get x\r\nset n 0 -1 2\r\nhi\r\n", 1, "set n 0 -1 2\r\nhi\r\n", "END\r\n"},
    {"get x\r\nset {251k} 0 0 2\r\nhi\r\n", 1, "set {251k} 0 0 2\r\nhi\r\n", "END\r\n"},
    {"get x\r\nset n 0 0 5000\r\n{5000v}\r\n", 1, "set n 0 0 5000\r\n{5000v}\r\n",
     "END\r\n"},
    {"get x\r\nadd n 0 0 2\r\nhi\r\n", 1, "add n 0 0 2\r\nhi\r\n", "END\r\n"},
};

FIXTURE(begin, end);

TEST_LOOP(what_is_taken, ROWS(rows))
{
    struct text text = {0}, left = {0};
    text_expand(&text, rows[_i].text);
    text_expand(&left, rows[_i].left);
    struct plain_served served = serve_plainly(text.p, text.len);
    ck_assert_uint_eq(requests_of(&served), rows[_i].requests);
    ck_assert_uint_eq(served.consumed, text.len - left.len);
    expect(sent_is(&c, rows[_i].made));
    text_free(&text);
    text_free(&left);
}

/* As many in a row as -R says. */
TEST(no_more_than_allowed)
{
    struct text text = {0};
    for (unsigned i = 0; i < 30; i++) {
        text_add(&text, "get a\r\n", 7);
    }
    struct plain_served served = serve_plainly(text.p, text.len);
    ck_assert_uint_eq(requests_of(&served), 20);
    ck_assert_uint_eq(served.consumed, 20 * 7);
    text_free(&text);
}

/* A set waits in its queue when something else is ready, or waits already; and there it is served
 * like this, too. */
TEST(sets_are_served_when_they_are_next)
{
    static const char text[] = "get a\r\nset n 0 0 2\r\nhi\r\n";
    const size_t len = sizeof text - 1, get = strlen("get a\r\n");
    struct client other;
    struct turn turn = turn_alone();
    turn.is_alone = false;
    ck_assert_uint_eq(serve_in(&turn, text, len).consumed, get);

    client_open(&other, &sim, 0);
    queue_put(&sim.core, &other.pump.work, CLASS_WRITE);
    turn = turn_alone();
    ck_assert_uint_eq(serve_in(&turn, text, len).consumed, get);
    turn = (struct turn){.lane = CLASS_WRITE, .requests = 20};
    ck_assert_uint_eq(serve_in(&turn, text, len).consumed, len);
    queue_leave(&sim.core, &other.pump.work);
    client_close(&other);

    turn = turn_alone();
    ck_assert_uint_eq(serve_in(&turn, text, len).consumed, len);
    ck_assert_uint_eq(ctr_get(&sim.core.classes[CLASS_WRITE].served), 5 + 2);
    ck_assert_uint_eq(ctr_get(&sim.core.classes[CLASS_SMALL].served), 4);
}

/* One that is alone may go on to be read at once; one whose sets had to wait is queued unread. */
TEST(served_at_once_is_not_deferred)
{
    static const char text[] = "set n 0 0 2\r\nhi\r\n";
    struct turn turn = {.lane = CLASS_WRITE};
    for (unsigned i = 0; i < 16; i++) {
        turn.requests = 20;
        (void)serve_in(&turn, text, sizeof text - 1);
    }
    ck_assert_int_eq(history_lane(&c.pump.history, c.pump.served), CLASS_WRITE);
    (void)serve_plainly(text, sizeof text - 1);
    ck_assert_int_eq(history_lane(&c.pump.history, c.pump.served), CLASS_NONE);
}

static enum pump_end
run(struct turn *turn, const char *line)
{
    char *to;
    size_t room;
    ck_assert(buf_open(&c.pump.in, &sim.core.pool, &to, &room));
    memcpy(to, line, strlen(line));
    buf_fill(&c.pump.in, strlen(line));
    ck_assert_int_eq(session_peek(&c.pump.session, &sim.core.env, &c.pump.in),
                     SESSION_READY);
    pump_begin_turn(&c.pump, turn);
    return pump_run(&c.pump, turn);
}

/* Likewise whatever else is to be queued, but for what is known to be much. */
TEST(a_lone_request_runs_where_it_was_read)
{
    struct turn turn = turn_alone();
    ck_assert_int_eq(run(&turn, "delete b\r\n"), PUMP_DONE);
    ck_assert(!turn.has_guest);
    ck_assert_int_eq(run(&turn, "delete a\r\n"), PUMP_DEFER); /* the second one */
    turn = turn_alone();
    ck_assert_int_eq(pump_run(&c.pump, &turn), PUMP_DONE);
    turn.is_alone = false;
    ck_assert_int_eq(run(&turn, "delete b\r\n"), PUMP_DEFER);
    turn.lane = CLASS_WRITE;
    ck_assert_int_eq(pump_run(&c.pump, &turn), PUMP_DONE);
    turn = turn_alone();
    ck_assert_int_eq(run(&turn, "get 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7\r\n"), PUMP_DEFER);
}

TEST(a_lone_large_value_goes_where_it_was_found)
{
    struct turn turn = turn_alone();
    turn.is_alone = false;
    ck_assert_int_eq(run(&turn, "get late\r\n"), PUMP_DEFER);
    turn.lane = CLASS_BULK;
    ck_assert_int_eq(pump_run(&c.pump, &turn), PUMP_DONE);
    pump_sent(&c.pump, c.pump.out.bytes);

    turn = turn_alone();
    ck_assert_int_eq(run(&turn, "get late\r\n"), PUMP_DONE);
    ck_assert_uint_gt(c.pump.out.bytes, 200000);
    ck_assert_uint_eq(c.pump.history.class, CLASS_BULK);
    ck_assert(!turn.has_guest);
    ck_assert(!pump_ends_here(&c.pump, &turn));
    pump_sent(&c.pump, c.pump.out.bytes - PACE_PIECE_MIN);
    ck_assert(pump_ends_here(&c.pump, &turn));
    turn.is_alone = false;
    ck_assert(!pump_ends_here(&c.pump, &turn));
}

/* The turns of others are made short for small requests only. */
TEST(a_set_is_no_guest)
{
    static const char text[] = "set n 0 0 2\r\nhi\r\nget n\r\n";
    struct turn turn = turn_alone();
    (void)serve_in(&turn, text, sizeof text - 1 - strlen("get n\r\n"));
    ck_assert(turn.has_run && !turn.has_guest);
    turn = turn_alone();
    (void)serve_in(&turn, text, sizeof text - 1);
    ck_assert(turn.has_guest);
}

/* The space for replies ends before the requests do. */
TEST(space_has_an_end)
{
    struct text text = {0};
    for (unsigned i = 0; i < 10; i++) {
        text_add(&text, "get copied\r\n", 12);
    }
    struct plain_served served = serve_plainly(text.p, text.len);
    ck_assert_uint_eq(requests_of(&served), sizeof space.out / GETS_COPY_MAX);
    ck_assert_uint_eq(served.consumed, requests_of(&served) * 12);
    ck_assert_uint_le(served.made, sizeof space.out);
    text_free(&text);
}

/* The space for input is full to its last byte: with a whole line at its end, and with one that lacks
 * a byte. */
TEST(input_fills_the_space)
{
    struct text text = {0};
    size_t most = sizeof space.in - ASCII_CUT_SLACK;
    for (unsigned missing = 0; missing < 2; missing++) {
        text.len = 0;
        while (text.len < most - 300) {
            text_expand(&text, "get {250k}\r\n");
        }
        size_t begin = text.len, key = most + missing - begin - strlen("get \r\n");
        char line[32];
        snprintf(line, sizeof line, "get {%zuz}\r\n", key < 250 ? key : 250);
        text_expand(&text, line);
        while (text.len < most + missing) {
            text_add(&text, "\n", 1);
        }
        core_wake(&sim.core);
        struct turn turn = core_inline_turn(&sim.core);
        turn.requests = 1000;
        memcpy(space.in, text.p, most);
        struct plain_served served = pump_serve_plain(&c.pump, &space, most, &turn);
        ck_assert_uint_le(served.consumed, most);
        ck_assert_uint_ge(served.consumed, begin);
        ck_assert_uint_eq(served.made, requests_of(&served) * strlen("END\r\n"));
    }
    text_free(&text);
}

/* ---- who may --------------------------------------------------------------------------- */

TEST(half_a_request_is_not_plain)
{
    ck_assert(is_plain());
    client_says(&c, "get");
    client_ready(&c);
    ck_assert(!is_plain());
    client_says(&c, " a\r\n");
    client_ready(&c);
    ck_assert(!is_plain()); /* its buffer is still there */
    buf_park(&c.pump.in, &sim.core.pool);
    ck_assert(is_plain());
}

/* "get b" so often. */
static unsigned
serve_gets(unsigned n)
{
    struct text text = {.p = NULL};
    for (unsigned i = 0; i < n; i++) {
        text_add(&text, "get b\r\n", 7);
    }
    struct turn turn = turn_alone();
    struct plain_served served = serve_in(&turn, text.p, text.len);
    ck_assert_uint_eq(served.consumed, 7 * served.gets.requests);
    text_free(&text);
    return served.gets.requests;
}

TEST(tokens_of_the_lease_are_taken)
{
    struct limiter_worker *limits = &sim.core.admission.limits;
    limiter_set_total(&sim.shared.limiter, (struct limiter_rule){1000000, 1000}, sim_now);
    ck_assert(is_plain()); /* and has a lease for it */
    uint64_t leased = limits->total.lease.tokens;
    uint64_t admitted = limits->ctr[CLASS_SMALL].admitted;
    ck_assert_uint_gt(leased, 20);
    ck_assert_uint_eq(serve_gets(5), 5);
    ck_assert_uint_eq(limits->total.lease.tokens, leased - 5);
    limits->total.lease.tokens = 3;
    ck_assert_uint_eq(serve_gets(5), 3);
    ck_assert_uint_eq(limits->total.lease.tokens, 0);
    ck_assert_uint_eq(limits->ctr[CLASS_SMALL].admitted, admitted + 8);
    ck_assert_uint_eq(serve_gets(5), 5); /* of the next lease */
}

TEST(without_tokens_each_asks)
{
    struct limiter_worker *limits = &sim.core.admission.limits;
    limiter_set_total(&sim.shared.limiter, (struct limiter_rule){1000000, 1000}, sim_now);
    ck_assert(is_plain());
    limits->waiting = 1; /* others come first */
    ck_assert(!is_plain());
    limits->waiting = 0;
    limiter_set_class(&sim.shared.limiter, CLASS_SMALL,
                      (struct limiter_rule){1000000, 100}, sim_now);
    ck_assert(!is_plain()); /* two limits are to be asked */
    limiter_set_class(&sim.shared.limiter, CLASS_SMALL, (struct limiter_rule){0, 0},
                      sim_now);
    ck_assert(is_plain());
    limiter_set_total(&sim.shared.limiter, (struct limiter_rule){1, 1}, sim_now);
    ck_assert_uint_eq(serve_gets(5), 1);
    ck_assert(!is_plain()); /* the next token is a second away */
}

TEST(an_slo_counts_and_measures)
{
    struct slo_watch *slo = &sim.core.admission.slo;
    struct slo_target target = {.percentile = 990, .ns = 10 * NSEC_PER_SEC};
    slo_set(&sim.shared.slo, SLO_TOTAL, target);
    serve("get b\r\n", 7, false);
    core_wake(&sim.core);
    ck_assert(admission_wants_delay(&sim.core)); /* the first is measured */
    buf_park(&c.pump.in, &sim.core.pool);
    ck_assert(is_plain());
    uint64_t asked = slo->asked[CLASS_SMALL];
    ck_assert_uint_eq(serve_gets(5), 5);
    ck_assert_uint_eq(slo->asked[CLASS_SMALL], asked + 5);
    slo->skipped = SLO_SAMPLE_EVERY - 1;
    ck_assert(!is_plain()); /* the next read is measured */
    slo->skipped = 0;
    slo->is_neutral = false;
    ck_assert(!is_plain());
}

/* Each change is seen at the next look at the clock, and so is its end. */
static void
expect_change(bool is_plain_then)
{
    struct turn turn = {.lane = CLASS_SMALL};
    ck_assert_uint_ne(changes_count(), sim.core.view.changes);
    core_read_clock(&sim.core);
    ck_assert_uint_eq(changes_count(), sim.core.view.changes);
    ck_assert(pump_is_plain(&c.pump, &turn) == is_plain_then);
}

TEST(policies_want_to_see_all)
{
    struct core *k = &sim.core;
    limiter_set_peer(&sim.shared.limiter, (struct limiter_rule){1000, 10}, sim_now);
    expect_change(false);
    limiter_set_peer(&sim.shared.limiter, (struct limiter_rule){0, 0}, sim_now);
    expect_change(true);
    slo_set(&sim.shared.slo, SLO_TOTAL, (struct slo_target){NSEC_PER_MSEC, 990});
    k->admission.slo.is_neutral = false;
    expect_change(false);
    k->admission.slo.is_neutral = true;
    slo_set(&sim.shared.slo, SLO_TOTAL, (struct slo_target){0, 0});
    expect_change(true);
    log_set_level(LOG_DEBUG);
    expect_change(false);
    ck_assert(k->env.looks_closer);
    log_set_level(LOG_INFO);
    expect_change(true);
    tenants_set(&sim.shared, FAIR_PREFIX);
    expect_change(false);
    tenants_set(&sim.shared, FAIR_OFF);
    expect_change(true);
    k->budget.bytes = 1; /* it does not change while the server runs */
    changes_note();
    expect_change(false);
    k->budget.bytes = 0;
    changes_note();
    expect_change(true);
    k->latency.followed = &c.pump;
    ck_assert(!is_plain());
    k->latency.followed = NULL;
    c.pump.session.declared = 1;
    ck_assert(!is_plain());
    c.pump.session.declared = 0;
    c.pump.work.ticket.is_refused = true;
    ck_assert(!is_plain());
    c.pump.work.ticket.is_refused = false;
    ck_assert(is_plain());
    core_drain(k);
    ck_assert(k->is_draining && k->view.sees_each);
    ck_assert(!is_plain());
}

TEST(watchers_want_to_see_all)
{
    struct watch watch;
    struct watch_conf conf = {.threads = 1, .ring_bytes = 4096, .outbox_bytes = 4096};
    expect(watch_init(&watch, &conf));
    core_stop(&sim.core);
    core_start(&sim.core, watch_ring(&watch));
    ck_assert(is_plain());
    watch_set_types(&watch, WATCH_FETCHERS);
    expect_change(false);
    watch_set_types(&watch, WATCH_MUTATIONS);
    expect_change(true);
    watch_set_prefixes(&watch, true);
    expect_change(false);
    watch_set_prefixes(&watch, false);
    expect_change(true);
    sim.core.env.log = NULL;
    watch_fini(&watch);
}

/* The relative clock of requests goes on with the second, and with a shift at once. */
TEST(time_of_requests)
{
    struct core *k = &sim.core;
    nsec_t since;
    sim_now = clock_now() + NSEC_PER_SEC; /* behind the start of the relative clock */
    core_read_clock(k);
    uint32_t rel = clock_rel_since(k->now, &since);
    ck_assert_uint_eq(k->env.now, rel);
    sim_now = since + NSEC_PER_SEC - 1 - sim_tick;
    core_read_clock(k);
    ck_assert_uint_eq(k->env.now, rel);
    core_read_clock(k);
    ck_assert_uint_eq(k->env.now, rel + 1);
    clock_shift(100);
    core_read_clock(k);
    ck_assert_uint_eq(k->env.now, rel + 101);
    clock_pause();
    core_read_clock(k);
    uint32_t paused = k->env.now;
    ck_assert_uint_eq(paused, clock_rel(k->now));
    sim_now += 10 * NSEC_PER_SEC;
    core_read_clock(k);
    ck_assert_uint_eq(k->env.now, paused);
    clock_resume();
    core_read_clock(k);
    ck_assert_uint_eq(k->env.now, clock_rel(k->now));
    clock_shift(-100);
    core_read_clock(k);
    ck_assert_uint_eq(k->env.now, clock_rel(k->now));
}

/* ---- gets of many keys ----------------------------------------------------------------- */

/* In a turn of bulk work that has so much time left. */
static struct plain_served
serve_in_bulk(const char *text, size_t len, nsec_t ns)
{
    core_read_clock(&sim.core);
    struct turn turn = {.lane = CLASS_BULK, .requests = 20, .deadline = sim_now + ns};
    ck_assert(pump_is_at_rest(&c.pump) && pump_is_plain(&c.pump, &turn));
    memcpy(space.in, text, len);
    struct plain_served served = pump_serve_lines(&c.pump, &space, len, &turn);
    ck_assert_uint_eq(turn.requests + requests_of(&served) + served.is_open, 20);
    ck_assert_int_eq(c.pump.work.ticket.is_admitted, served.is_open);
    text_add(&c.sent, space.out, served.made);
    return served;
}

/* And what is left of it in the next ones. */
static void
serve_bulk(const char *text, size_t len, nsec_t ns)
{
    struct plain_served served = serve_in_bulk(text, len, ns);
    ck_assert(!served.is_open || session_open_get(&c.pump.session, &sim.core.env));
    text_add(&c.input, text + served.consumed, len - served.consumed);
    queue_put(&sim.core, &c.pump.work, CLASS_BULK);
    sim_settle(&sim);
}

/* "get word word ...\r\n" */
static void
add_line(struct text *text, const char *word, unsigned n)
{
    text_add(text, "get", 3);
    while (n-- > 0) {
        text_add(text, " ", 1);
        text_add(text, word, strlen(word));
    }
    text_add(text, "\r\n", 2);
}

/* A line of so many words, one of another kind in the place of its 20th, and something behind it. */
static const struct {
    const char *word;
    unsigned words;
    const char *other, *behind;
    unsigned requests, keys; /* answered, the latter of a line that is open */
} bulk_rows[] = {
    {"x", GETS_KEYS + 1, "", "", 1, 0},
    {"x", GETS_KEYS, "", "", 0, 0},
    {"x", GETS_LINE_KEYS, "", "", 1, 0},
    {"x", GETS_LINE_KEYS + 1, "", "", 0, 0},
    {"a", 40, "b", "get a\r\n", 1, 0},
    {"x", 40, "", "set n 0 0 1\r\nx\r\n", 1, 0},
    {"x", 40, "", "get a", 1, 0},
    {"x", 40, "lent", "get a\r\n", 0, 19},
    {"lent", 40, "x", "", 0, 0},
    {"x", 40, "late", "", 0, 19},
    {"copied", 40, "copied", "", 0, sizeof space.out / GETS_COPY_MAX},
    {"x", 40, "a\tb", "", 0, 0},
    {"x", 40, "a\rb", "", 0, 0},
    {"x", 40, "a  b", "", 0, 0},
    {"x", 40, "a ", "", 0, 0},
    {"x", 40, "{250k}", "", 1, 0},
    {"x", 40, "{251k}", "", 0, 0},
};

TEST_LOOP(what_is_taken_in_bulk, ROWS(bulk_rows))
{
    struct text text = {0};
    unsigned words = bulk_rows[_i].words;
    bool has_other = *bulk_rows[_i].other != '\0';
    size_t word = 1 + strlen(bulk_rows[_i].word);
    add_line(&text, bulk_rows[_i].word, has_other ? 19 : words);
    if (has_other) {
        text.len -= 2;
        text_add(&text, " ", 1);
        text_expand(&text, bulk_rows[_i].other);
        for (unsigned i = 20; i < words; i++) {
            text_add(&text, " ", 1);
            text_add(&text, bulk_rows[_i].word, word - 1);
        }
        text_add(&text, "\r\n", 2);
    }
    size_t line = text.len;
    text_add(&text, bulk_rows[_i].behind, strlen(bulk_rows[_i].behind));
    struct plain_served served = serve_in_bulk(text.p, text.len, NSEC_PER_SEC);
    unsigned keys = bulk_rows[_i].keys;
    ck_assert_uint_eq(requests_of(&served), bulk_rows[_i].requests);
    ck_assert_uint_eq(served.consumed, bulk_rows[_i].requests > 0 ? line
                                       : keys > 0                 ? 3 + keys * word
                                                                  : 0);
    ck_assert_int_eq(served.is_open, keys > 0);
    ck_assert(!served.is_late);
    ck_assert_uint_eq(ctr_get(&sim.core.classes[CLASS_BULK].served),
                      1 + bulk_rows[_i].requests);
    text_free(&text);
}

/* When time is up the rest waits, of a line or of what came with it. */
TEST(long_lines_end_with_the_turn)
{
    struct text text = {0};
    add_line(&text, "x", 40);
    add_line(&text, "x", 40);
    struct plain_served served = serve_in_bulk(text.p, text.len, 0);
    ck_assert(served.is_open && served.is_late);
    ck_assert_uint_eq(served.consumed, 3 + GETS_KEYS * 2);
    ck_assert_uint_eq(served.made, 0);
    ck_assert(session_open_get(&c.pump.session, &sim.core.env));
    text_add(&c.input, text.p + served.consumed, text.len - served.consumed);
    queue_put(&sim.core, &c.pump.work, CLASS_BULK);
    sim_settle(&sim);
    expect(sent_is(&c, "END\r\nEND\r\n"));
    ck_assert_uint_eq(ctr_get(&sim.core.classes[CLASS_BULK].served), 1 + 2);
    buf_park(&c.pump.in, &sim.core.pool);

    served = serve_in_bulk(text.p, text.len, 4 * NSEC_PER_USEC);
    ck_assert(!served.is_open && served.is_late);
    ck_assert_uint_eq(served.consumed, text.len / 2);
    text_free(&text);
}

/* One that is open is among those that -R allows, whoever serves the rest of it. */
TEST(no_more_than_allowed_behind_an_open_line)
{
    struct text text = {0};
    for (unsigned i = 0; i < 50; i++) {
        add_line(&text, "x", 20);
        if (i == 19) {
            text.len -= strlen("\r\n");
            text_add(&text, " lent\r\n", 7);
        }
    }
    core_read_clock(&sim.core);
    struct turn turn = {.lane = CLASS_BULK, .requests = 20, .deadline = TURN_ENDLESS};
    uint32_t before = c.pump.served;
    memcpy(space.in, text.p, text.len);
    struct plain_served served = pump_serve_lines(&c.pump, &space, text.len, &turn);
    ck_assert_uint_eq(requests_of(&served), 19);
    ck_assert(served.is_open && session_open_get(&c.pump.session, &sim.core.env));
    ck_assert_uint_eq(turn.requests, 0); /* 20 have begun */
    text_add(&c.input, text.p + served.consumed, text.len - served.consumed);
    client_turn(&c.pump.work, &turn);
    ck_assert_int_eq(c.end, PUMP_DEFER);
    ck_assert_uint_eq(c.pump.served - before, 20);
    sim_settle(&sim);
    ck_assert_uint_eq(c.pump.served - before, 50);
    text_free(&text);
}

/* ---- the same as step by step ---------------------------------------------------------- */

static const char *const lines[] = {
    "get a\r\n",
    "get a\r\n",
    "get b\r\n",
    "get missing\r\n",
    "get a b missing a\r\n",
    "get copied\r\n",
    "get copied copied copied a\r\n",
    "get lent\r\n",
    "get a lent b\r\n",
    "get late\r\n",
    "get b late a\r\n",
    "gets missing\r\n",
    "get a  b\r\n",
    "get a\n",
    "get\r\n",
    "bogus\r\n",
    "get 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 a 17 18 b\r\n",
    "get a 2 3 4 5 6 7 8 9 10 11 12 13 14 15 a\r\n",
    "mn\r\n",
    "get gone lent\r\n",
    "get copied gone copied\r\n",
    "set new 0 0 3\r\nabc\r\n",
    "set new 0 0 4 noreply\r\nabcd\r\n",
    "set new 3 100 3\r\nabcd\r\n",
    "set a 1 0 10\r\n0123456789\r\n",
    "set a 1 -1 1\r\n0\r\n",
    "append a 0 0 1\r\n+\r\n",
    "get new\r\n",
    "delete new\r\n",
};

struct outcome {
    struct text sent;
    struct serve_ctr ctr;
    uint64_t served,
        bytes; /* of all classes: of which one a request is, its turn decides */
};

/* How a script is served: in a turn of bulk work that has so many nanoseconds left, or */
enum { STEP_BY_STEP = INT32_MAX - 1, WHERE_IT_IS_READ };

static struct outcome
outcome_of(const struct text *script, nsec_t how)
{
    struct outcome o;
    begin();
    if (how == STEP_BY_STEP) {
        serve("get a\r\n", 7, false);
        buf_park(&c.pump.in, &sim.core.pool);
    } else {
        (void)serve_plainly("get a\r\n", 7); /* nothing is left from there */
    }
    if (how < STEP_BY_STEP) {
        serve_bulk(script->p, script->len, how);
    } else {
        serve(script->p, script->len, how == WHERE_IT_IS_READ);
    }
    o.sent = c.sent;
    c.sent = (struct text){0};
    o.ctr = sim.ctr;
    o.served = 0;
    o.bytes = 0;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        o.served += ctr_get(&sim.core.classes[i].served);
        o.bytes += ctr_get(&sim.core.classes[i].bytes);
    }
    end();
    return o;
}

static void
expect_same(struct outcome *plain, struct outcome *steps)
{
    expect(plain->sent.len == steps->sent.len &&
           memcmp(plain->sent.p, steps->sent.p, steps->sent.len) == 0);
    expect(memcmp(&plain->ctr, &steps->ctr, sizeof plain->ctr) == 0);
    ck_assert_uint_eq(plain->served, steps->served);
    ck_assert_uint_eq(plain->bytes, steps->bytes);
    text_free(&plain->sent);
    text_free(&steps->sent);
}

FIXTURE(NULL, NULL);

TEST_LOOP(same_as_step_by_step, 10)
{
    struct rng rng;
    rng_init(&rng, 42, (uint64_t)_i);
    for (unsigned n = 0; n < SCRIPTS / 10; n++) {
        struct text script = {0};
        for (uint64_t left = 1 + rng_below(&rng, LINES_MOST); left > 0; left--) {
            const char *line = lines[rng_below(&rng, ROWS(lines))];
            text_add(&script, line, strlen(line));
        }
        struct outcome plain = outcome_of(&script, WHERE_IT_IS_READ);
        struct outcome steps = outcome_of(&script, STEP_BY_STEP);
        expect_same(&plain, &steps);
        text_free(&script);
    }
}

/* Whatever the line holds, and whenever its turn ends. */
TEST_LOOP(long_lines_as_step_by_step, 10)
{
    static const char *const words[] = {"a",    "b",    "missing", "copied", "a", "b",
                                        "lent", "gone", "late",    "a  b",   "a", "b",
                                        "a\rb", "b",    "a",       "x\ty"};
    struct rng rng;
    rng_init(&rng, 43, (uint64_t)_i);
    for (unsigned n = 0; n < SCRIPTS / 10; n++) {
        struct text script = {0};
        uint64_t kinds = 4 + rng_below(&rng, ROWS(words) - 3);
        for (uint64_t left = 1 + rng_below(&rng, 4); left > 0; left--) {
            text_add(&script, "get", 3);
            for (uint64_t keys = 10 + rng_below(&rng, 90); keys > 0; keys--) {
                const char *word = words[rng_below(&rng, kinds)];
                text_add(&script, " ", 1);
                text_add(&script, word, strlen(word));
            }
            text_add(&script, "\r\n", 2);
        }
        struct outcome plain = outcome_of(&script, rng_below(&rng, 20) * NSEC_PER_USEC);
        struct outcome steps = outcome_of(&script, STEP_BY_STEP);
        expect_same(&plain, &steps);
        text_free(&script);
    }
}

/* Wherever a read ends. */
TEST(long_lines_cut_at_every_byte)
{
    struct text script = {0};
    add_line(&script, "a", 20);
    add_line(&script, "b", 70);
    add_line(&script, "missing", 17);
    begin();
    serve(script.p, script.len, false);
    struct text whole = c.sent;
    c.sent = (struct text){0};
    end();
    for (size_t cut = 1; cut < script.len; cut++) {
        begin();
        serve_bulk(script.p, cut, cut % 8 * NSEC_PER_USEC);
        buf_park(&c.pump.in, &sim.core.pool);
        serve(script.p + cut, script.len - cut, false);
        expect(c.sent.len == whole.len && memcmp(c.sent.p, whole.p, whole.len) == 0);
        end();
    }
    text_free(&whole);
    text_free(&script);
}

/* Wherever a read ends. */
TEST(cut_at_every_byte)
{
    static const char script[] =
        "get a\r\nget a b missing\r\nget lent\r\nset n 0 0 2\r\nhi\r\n"
        "get n a\r\nbogus\r\nget copied\r\nget late\r\nget a\n";
    begin();
    serve(script, sizeof script - 1, false);
    struct text whole = c.sent;
    c.sent = (struct text){0};
    end();
    for (size_t cut = 1; cut < sizeof script - 1; cut++) {
        begin();
        serve(script, cut, true);
        buf_park(&c.pump.in, &sim.core.pool);
        serve(script + cut, sizeof script - 1 - cut, is_plain());
        expect(c.sent.len == whole.len && memcmp(c.sent.p, whole.p, whole.len) == 0);
        end();
    }
    text_free(&whole);
}
