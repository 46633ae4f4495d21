/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A server, the network and the clock, simulated behind an engine (wire/engine.h): text
 * requests come in and are noted with their times, replies go out when the test wants them.
 * Time passes only while the loop waits, so each run is the same.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "check_unit.h"
#include "loadgen/wire/lset.h"

#define SIM_BEGIN (UINT64_C(1000) * NSEC_PER_SEC)
#define SIM_NEVER UINT64_MAX
#define SIM_CONNS 16
#define SIM_LOG 65536
#define SIM_WAITING 1024       /* replies, each connection */
#define SIM_POLL NSEC_PER_USEC /* that a look without waiting takes */
#define MS(n) ((n)*NSEC_PER_MSEC)

struct sim_request {
    nsec_t at;
    unsigned conn;
    char line[64]; /* without its end; of a set the first */
};

struct sim_conn {
    char in[4096];
    size_t in_len, skip;         /* bytes of a value to come */
    nsec_t replies[SIM_WAITING]; /* due, in order */
    char texts[SIM_WAITING];     /* which reply */
    unsigned head, count, most;  /* most: on their way at once */
    nsec_t hang_up_at, up_at;
};

static struct sim {
    nsec_t now, wake_at;
    struct lset *set;
    struct sim_conn conns[SIM_CONNS];
    struct sim_request log[SIM_LOG];
    unsigned log_len;
    nsec_t dials[1024]; /* when connections were made, or refused */
    unsigned dials_len;
    unsigned ready[SIM_CONNS], ready_len;
    char input[65536];
    /* The test's. */
    nsec_t delay;                                   /* of a reply; SIM_NEVER: none */
    nsec_t (*delay_of)(const struct sim_request *); /* the same for each */
    bool refuses;                                   /* no connection can be made */
    nsec_t queue_full_until;                        /* of the listener */
    nsec_t dial_time;                               /* until that is known; 0: at once */
    size_t takes_bytes;                             /* of one send; 0: all */
    nsec_t full_at, full_until;                     /* it takes none */
    void (*on_wait)(void);                          /* each time; NULL: nothing */
    nsec_t lost;                                    /* passes behind the next wait */
} sim;

static bool
sim_is_full(void)
{
    return sim.now >= sim.full_at && sim.now < sim.full_until;
}

static unsigned
sim_index(const struct link *l)
{
    const struct lconn *c =
        (const struct lconn *)((const char *)l - offsetof(struct lconn, link));
    return (unsigned)(c - sim.set->conns);
}

static void
sim_answer(unsigned conn, char text)
{
    struct sim_conn *c = &sim.conns[conn];
    const struct sim_request *r = &sim.log[sim.log_len - 1];
    nsec_t delay = sim.delay_of != NULL ? sim.delay_of(r) : sim.delay;
    unsigned at = (c->head + c->count++) % SIM_WAITING;
    expect(c->count <= SIM_WAITING);
    c->replies[at] = delay == SIM_NEVER ? SIM_NEVER : sim.now + delay;
    c->texts[at] = text;
    c->most = c->count > c->most ? c->count : c->most;
}

static void
sim_take_line(unsigned conn, const char *line, size_t len)
{
    struct sim_request *r = &sim.log[sim.log_len++];
    expect(sim.log_len <= SIM_LOG);
    *r = (struct sim_request){.at = sim.now, .conn = conn};
    memcpy(r->line, line, len < sizeof r->line ? len : sizeof r->line - 1);
    bool is_set = strncmp(line, "set ", 4) == 0;
    if (is_set) {
        const char *number = line + len;
        while (number[-1] != ' ') {
            number--;
        }
        sim.conns[conn].skip = strtoul(number, NULL, 10) + 2;
    }
    sim_answer(conn, is_set ? 'S' : 'E');
}

static enum link_io
sim_send(struct link *l, const char *bytes, size_t len, size_t *sent)
{
    unsigned conn = sim_index(l);
    struct sim_conn *c = &sim.conns[conn];
    *sent = sim.takes_bytes > 0 && len > sim.takes_bytes ? sim.takes_bytes : len;
    *sent = sim_is_full() ? 0 : *sent;
    for (size_t i = 0; i < *sent; i++) {
        if (c->skip > 0) {
            c->skip--;
            continue;
        }
        expect(c->in_len < sizeof c->in);
        c->in[c->in_len++] = bytes[i];
        if (bytes[i] == '\n') {
            sim_take_line(conn, c->in, c->in_len - 2);
            c->in_len = 0;
        }
    }
    l->wants_write = *sent < len;
    return *sent < len ? LINK_AGAIN : LINK_OK;
}

static enum link_io
sim_dial(struct link *l, const struct link_conf *conf, const char **why)
{
    (void)conf;
    expect(sim.dials_len < sizeof sim.dials / sizeof sim.dials[0]);
    sim.dials[sim.dials_len++] = sim.now;
    if (sim.now < sim.queue_full_until) {
        return LINK_AGAIN;
    }
    if (sim.refuses && sim.dial_time == 0) {
        *why = "refused";
        return LINK_LOST;
    }
    sim.conns[sim_index(l)] = (struct sim_conn){
        .hang_up_at = SIM_NEVER,
        .up_at = sim.now + sim.dial_time,
    };
    *l = (struct link){.fd = open("/dev/null", O_RDWR | O_CLOEXEC)};
    ck_assert_int_ge(l->fd, 0);
    return LINK_OK;
}

static enum link_io
sim_dial_on(struct link *l, const struct link_conf *conf, const char **why)
{
    (void)conf;
    if (sim.now < sim.conns[sim_index(l)].up_at) {
        return LINK_AGAIN;
    }
    l->is_connected = !sim.refuses;
    *why = "refused";
    return sim.refuses ? LINK_LOST : LINK_OK;
}

static nsec_t
sim_now(void)
{
    return sim.now;
}

static const char *
sim_open(struct lset *s)
{
    sim.set = s;
    return NULL;
}

static void
sim_close(struct lset *s)
{
    (void)s;
}

static bool
sim_watch(struct lset *s, struct lconn *c, bool for_send)
{
    (void)s;
    c->is_watched_for_send = for_send;
    return true;
}

static void
sim_forget(struct lset *s, struct lconn *c)
{
    (void)s;
    c->is_watched_for_send = false;
}

static void
sim_wake_at(struct lset *s, nsec_t when)
{
    (void)s;
    sim.wake_at = when;
}

/* When the connection has something to tell. */
static nsec_t
sim_due(unsigned conn)
{
    const struct sim_conn *c = &sim.conns[conn];
    const struct lconn *lc = &sim.set->conns[conn];
    nsec_t due = c->count > 0 ? c->replies[c->head] : SIM_NEVER;
    nsec_t room_at = sim_is_full() ? sim.full_until : sim.now;
    due = lc->is_watched_for_send && room_at < due ? room_at : due;
    due = c->hang_up_at < due ? c->hang_up_at : due;
    return lc->state == LCONN_UP           ? due
           : lc->state == LCONN_CONNECTING ? c->up_at
                                           : SIM_NEVER;
}

static unsigned
sim_wait(struct lset *s, int timeout_ms)
{
    nsec_t until = timeout_ms > 0 ? sim.now + MS((nsec_t)timeout_ms) : sim.now + SIM_POLL;
    if (sim.on_wait != NULL) {
        sim.on_wait();
    }
    if (timeout_ms > 0 && sim.wake_at != 0) {
        until = sim.wake_at < until ? sim.wake_at : until;
    }
    for (unsigned i = 0; i < s->count && timeout_ms > 0; i++) {
        until = sim_due(i) < until ? sim_due(i) : until;
    }
    sim.now = until > sim.now ? until : sim.now;
    sim.ready_len = 0;
    for (unsigned i = 0; i < s->count; i++) {
        if (sim_due(i) <= sim.now) {
            sim.ready[sim.ready_len++] = i;
        }
    }
    sim.now += sim.lost;
    sim.lost = 0;
    return sim.ready_len;
}

static struct lconn *
sim_event(struct lset *s, unsigned i, unsigned *can)
{
    struct lconn *c = &s->conns[sim.ready[i]];
    *can = c->is_watched_for_send ? LSET_CAN_SEND | LSET_CAN_RECEIVE : LSET_CAN_RECEIVE;
    return c;
}

static enum lset_input
sim_receive(struct lset *s, struct lconn *lc, struct lset_bytes *in)
{
    struct sim_conn *c = &sim.conns[lc - s->conns];
    if (c->hang_up_at <= sim.now) {
        return LSET_LOST;
    }
    *in = (struct lset_bytes){sim.input, 0};
    while (c->count > 0 && c->replies[c->head] <= sim.now) {
        const char *text = c->texts[c->head] == 'S' ? "STORED\r\n" : "END\r\n";
        memcpy(sim.input + in->len, text, strlen(text));
        in->len += strlen(text);
        c->head = (c->head + 1) % SIM_WAITING;
        c->count--;
    }
    return in->len > 0 ? LSET_DATA : LSET_NOTHING;
}

static const struct engine sim_engine = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .watch = sim_watch,
    .forget = sim_forget,
    .wait = sim_wait,
    .event = sim_event,
    .wake_at = sim_wake_at,
    .receive = sim_receive,
    .dial = sim_dial,
    .dial_on = sim_dial_on,
    .send = sim_send,
    .now = sim_now,
};

/* Requests noted from `from` to below `to` after the begin. */
static inline unsigned
sim_count(nsec_t from, nsec_t to)
{
    unsigned n = 0;
    for (unsigned i = 0; i < sim.log_len; i++) {
        nsec_t at = sim.log[i].at - SIM_BEGIN;
        n += at >= from && at < to ? 1 : 0;
    }
    return n;
}
