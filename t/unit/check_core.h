/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A worker without sockets, on fake time: clients whose input is a string and whose output is
 * another, passes of the loop, and a clock that moves by `tick` with each look at it.
 */
#pragma once

#include "core/core.h"
#include "core/pump.h"

#include "check_unit.h"
#include "qos/class_rules.h"

#define MIB (1024u * 1024u)
#define START (100 * NSEC_PER_SEC)

struct sim {
    struct store *store;
    struct serve_conf conf;
    struct serve_hooks hooks;
    struct serve_ctr ctr;
    struct core_shared shared;
    struct core core;
};

/* What ended the last step of a client's turn, besides the ends of a pump. */
enum { END_INPUT = PUMP_ABORT + 1, END_BODY, END_HOSTILE };

struct client {
    struct pump pump; /* first */
    struct text input;
    size_t fed;     /* of it, into the pump */
    size_t cut;     /* bytes that a read brings at most; 0: all */
    bool is_gone;   /* the client has closed its side */
    int end;        /* of its last turn */
    unsigned turns; /* that it had */
    nsec_t since;   /* its input has waited since then; 0: not known */
    struct text sent;
};

static nsec_t sim_now, sim_tick;

static inline nsec_t
sim_clock(void)
{
    return sim_now += sim_tick;
}

/* ---- a worker -------------------------------------------------------------------------- */

static inline void
sim_open(struct sim *s, const struct limiter_conf *limits, bool has_classes)
{
    static const struct store_conf store_conf = {
        .limit_bytes = 64 * MIB,
        .growth_factor = 1.25,
        .min_space = 48,
        .item_max = MIB,
        .chunk_max = MIB / 2,
        .hash_power = 12,
        .threads = 1,
        .hash_seed = 42,
        .use_cas = true,
        .can_evict = true,
    };
    static const struct limiter_conf none;
    char err[128] = "";
    sim_now = START;
    sim_tick = 0;
    memset(s, 0, sizeof *s);
    clock_init();
    s->store = store_create(&store_conf, err, sizeof err);
    expect(s->store != NULL);
    s->conf = (struct serve_conf){.rules = rules_of(PROFILE_16),
                                  .version = "1.2.3",
                                  .use_cas = true,
                                  .allows_flush = true};
    s->shared.classes = class_conf_make(has_classes, CLASS_BULK_KEYS, CLASS_BULK_BYTES);
    class_shares_init(&s->shared.class_shares);
    s->shared.class_max_wait = SCHED_MAX_WAIT_NS;
    s->shared.requests_per_event = 20;
    limiter_init(&s->shared.limiter, limits != NULL ? limits : &none, 1, START);
    slo_init(&s->shared.slo);
    struct env env = {
        .store = s->store, .conf = &s->conf, .hooks = &s->hooks, .ctr = &s->ctr};
    expect(core_init(&s->core, &s->shared, sim_clock, &env, 0));
    core_start(&s->core, NULL);
}

static inline void
sim_close(struct sim *s)
{
    core_stop(&s->core);
    core_fini(&s->core);
    limiter_fini(&s->shared.limiter);
    store_destroy(&s->store);
}

/* ---- a client -------------------------------------------------------------------------- */

static inline void
client_send(struct client *c)
{
    struct pump *p = &c->pump;
    while (p->out.bytes > 0) {
        struct iovec iov[8];
        unsigned runs = chain_iov(&p->out, iov, 8, p->out.bytes);
        pump_sent(p, text_add_runs(&c->sent, iov, runs));
    }
}

/* A read brings what it may; false: there is nothing. */
static inline bool
client_read(struct client *c, enum session_next next)
{
    struct pump *p = &c->pump;
    char *to;
    size_t room;
    if (next == SESSION_WANT) {
        room = session_want(&p->session, &to);
    } else {
        expect(buf_open(&p->in, &p->core->pool, &to, &room));
    }
    size_t n = c->input.len - c->fed;
    n = n < room ? n : room;
    n = c->cut > 0 && n > c->cut ? c->cut : n;
    if (n == 0) {
        return false;
    }
    memcpy(to, c->input.p + c->fed, n);
    c->fed += n;
    p->arrival.since = c->since;
    if (next == SESSION_WANT) {
        session_got(&p->session, n);
    } else {
        buf_fill(&p->in, n);
    }
    return true;
}

static inline int
client_step(struct client *c, struct turn *turn)
{
    struct pump *p = &c->pump;
    enum session_next next = session_peek(&p->session, &p->core->env, &p->in);
    switch (next) {
    case SESSION_READY:
        return pump_run(p, turn);
    case SESSION_MORE:
    case SESSION_WANT:
        if (client_read(c, next)) {
            return PUMP_ON;
        }
        return next == SESSION_WANT ? END_BODY : END_INPUT;
    case SESSION_CLOSE:
    case SESSION_NO_MEMORY:
        return END_HOSTILE;
    }
    unreachable();
}

/* As a connection does it: until it has to wait, or the turn is over. */
static inline void
client_turn(struct work *work, struct turn *turn)
{
    struct client *c = (struct client *)(void *)work;
    struct pump *p = &c->pump;
    c->turns++;
    if (turn->is_served) {
        p->arrival.since = p->core->now;
    }
    pump_begin_turn(p, turn);
    unsigned allowed = p->requests;
    do {
        c->end = client_step(c, turn);
        if (c->end == PUMP_FLUSH) {
            client_send(c);
        }
        if (c->end == PUMP_OVER) {
            expect(pump_take_back(p));
            c->end = PUMP_ON;
        }
    } while (c->end <= PUMP_FLUSH);
    pump_end_turn(p, allowed, c->end == END_INPUT || c->end == END_BODY);
    admission_end_turn(p->core, turn);
    client_send(c);
    if (c->end == PUMP_DEFER) {
        queue_put(p->core, &p->work, pump_lane(p));
    }
}

static inline bool
client_ends_if_gone(struct work *work)
{
    return ((struct client *)(void *)work)->is_gone;
}

static const struct work_type client_work = {.turn = client_turn,
                                             .ends_if_gone = client_ends_if_gone};

static inline void
client_open(struct client *c, struct sim *s, uint64_t peer)
{
    memset(c, 0, sizeof *c);
    pump_init(&c->pump, &s->core, &client_work, peer);
    c->pump.answers_together = true;
}

static inline void
client_close(struct client *c)
{
    struct core *k = c->pump.core;
    queue_leave(k, &c->pump.work);
    coalesce_forget(&c->pump);
    session_fini(&c->pump.session, &k->env);
    pump_drop(&c->pump);
    text_free(&c->input);
    text_free(&c->sent);
}

static inline void
client_says(struct client *c, const char *text)
{
    text_add(&c->input, text, strlen(text));
}

/* A hook for `qos`: another thread answers. ctx: struct parked. */
static inline enum reply
answer_when_back(void *ctx, struct serve_qos *q)
{
    q->parked = q->parked == NULL ? ctx : NULL;
    return q->parked != NULL ? REPLY_NONE : REPLY_OK;
}

/* The event loop reports the client's input. */
static inline void
client_ready(struct client *c)
{
    struct core *k = c->pump.core;
    core_wake(k);
    if (work_is_queued(&c->pump.work) || pump_defers_read(&c->pump)) {
        return;
    }
    struct turn turn = core_inline_turn(k);
    client_turn(&c->pump.work, &turn);
    (void)!queue_end_inline(k, &turn);
}

/* One pass of the loop, in which the clients that are given are ready. */
static inline void
sim_pass(struct sim *s, struct client *ready, unsigned count)
{
    (void)!core_begin_pass(&s->core);
    for (unsigned i = 0; i < count; i++) {
        client_ready(&ready[i]);
    }
    core_serve(&s->core);
    core_end_pass(&s->core);
}

/* Passes until nothing is deferred. */
static inline void
sim_settle(struct sim *s)
{
    for (unsigned i = 0; core_begin_pass(&s->core); i++) {
        expect(i < 100000);
        core_wake(&s->core);
        core_serve(&s->core);
        core_end_pass(&s->core);
    }
}

/* Time passes until the worker is woken for those that wait. */
static inline void
sim_sleep(struct sim *s)
{
    expect(s->core.admission.is_armed);
    sim_now = s->core.admission.wake_at > sim_now ? s->core.admission.wake_at : sim_now;
    admission_wake(&s->core);
    sim_pass(s, NULL, 0);
}

static inline bool
sent_is(const struct client *c, const char *want)
{
    bool is = c->sent.len == strlen(want) &&
              (c->sent.len == 0 || memcmp(c->sent.p, want, c->sent.len) == 0);
    if (!is) {
        fprintf(stderr, "# sent: %.*s\n# want: %s\n", (int)c->sent.len, c->sent.p, want);
    }
    return is;
}
