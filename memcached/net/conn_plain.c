/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_plain.h"

#include "net/conn_io.h"
#include "net/worker.h"

bool
conn_is_at_rest(const struct conn *c)
{
    return c->tls == NULL && !c->edge.has_hangup && !c->edge.is_blocked &&
           c->leaving == CLOSE_NONE && !conn_is_leaving_worker(c) &&
           pump_is_at_rest(&c->pump);
}

__attribute__((flatten)) bool
conn_is_plain(const struct conn *c, struct turn *turn)
{
    return c->edge.is_readable && c->worker->rx.reads_to_check > 1 &&
           pump_is_plain(&c->pump, turn);
}

/* What the socket did not take, and what is not plain, is the connection's from here on. False:
 * no memory. */
static __attribute__((noinline)) bool
keep_rest(struct pump *p, const char *out, size_t unsent, const char *in, size_t unread)
{
    struct core *k = p->core;
    char *space;
    size_t room;
    if (unsent > 0 && !chain_copy(&p->out, &k->env.chain, out, unsent)) {
        return false;
    }
    if (unread > 0) {
        if (!buf_open(&p->in, &k->pool, &space, &room)) {
            return false;
        }
        must(unread <= room);
        memcpy(space, in, unread);
        buf_fill(&p->in, unread);
    }
    return true;
}

typedef struct plain_served plain_serve_fn(struct pump *p, struct pump_space *space,
                                           size_t len, struct turn *turn);

static inline bool
serve(struct conn *c, struct turn *turn, plain_serve_fn *serve_plain)
{
    struct worker *w = c->worker;
    struct pump *p = &c->pump;
    struct pump_space *space = w->space;
    size_t got, sent = 0;
    w->rx.reads_to_check--;
    turn->reads = 1;
    if (conn_receive(c, space->in, sizeof space->in - ASCII_CUT_SLACK, &got) != IO_OK) {
        conn_set_state(c, REGISTRY_READ); /* nothing came, or it is closed */
        return true;
    }
    if (unlikely(!turn->is_unbound) && got > 0 && core_has_slo(&w->core)) {
        admission_skip_delay(&w->core);
        arrival_note_unmeasured(&p->arrival, &w->core.pass, c->edge.is_readable);
    }
    w->core.env.client_fd = c->source.fd;
    conn_set_state(c, REGISTRY_PARSE);
    struct plain_served served = serve_plain(p, space, got, turn);
    conn_set_state(c, REGISTRY_READ);
    if (served.made > 0 && !served.is_open &&
        conn_send(c, space->out, served.made, &sent) == IO_CLOSED) {
        return true;
    }
    atomic_store_explicit(&c->entry.last_cmd, w->core.env.now, memory_order_relaxed);
    bool is_over = sent == served.made && served.consumed == got;
    if (likely(is_over && !c->edge.is_readable && !c->edge.must_probe)) {
        return true;
    }
    if (!keep_rest(p, space->out + sent, served.made - sent, space->in + served.consumed,
                   got - served.consumed) ||
        (served.is_open && !session_open_get(&p->session, &p->core->env))) {
        conn_close(c, CLOSE_NO_MEMORY);
        return true;
    }
    c->is_at_rest = false;
    p->session.follows = served.made > 0 && served.consumed < got;
    if (served.is_late && served.consumed < got) {
        conn_set_state(c, REGISTRY_PARSE);
        queue_put(p->core, &p->work, pump_lane(p));
        return true;
    }
    return false;
}

/* From here down to the store it becomes one function, but for what is seldom: calls, and results
 * handed from one to the other, would take a tenth of a get's instructions. */
__attribute__((flatten)) bool
conn_serve_plain(struct conn *c, struct turn *turn)
{
    return serve(c, turn, pump_serve_plain);
}

__attribute__((noinline)) bool
conn_serve_lines(struct conn *c, struct turn *turn)
{
    return serve(c, turn, pump_serve_lines);
}
