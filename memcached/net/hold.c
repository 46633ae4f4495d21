/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/hold.h"

#include "net/conn.h"
#include "net/worker.h"

/* Turns a pass, so that they do not become a long one: most are sent with the next read. */
#define SERVED_MOST 4

void
hold_note(struct conn *c, size_t before, enum req_class class)
{
    if (c->hold.bytes == before) {
        c->hold.bytes = c->out.bytes;
        c->hold.class = class;
    }
}

static void
append(struct conn *c)
{
    struct hold_list *list = &c->worker->hold;
    c->hold.is_held = true;
    c->hold.since = c->worker->now;
    c->hold.next = NULL;
    c->hold.prev = list->last;
    if (list->last != NULL) {
        list->last->hold.next = c;
    } else {
        list->first = c;
    }
    list->last = c;
}

static bool
is_over(const struct conn *c)
{
    const struct worker *w = c->worker;
    return w->now - c->hold.since >= slo_hold_ns(&w->slo, c->hold.class);
}

/* After a hang-up the end of the stream may be next, and what is held would be lost with it. */
bool
hold_keeps(struct conn *c)
{
    const struct worker *w = c->worker;
    if (likely(c->hold.bytes != c->out.bytes) || c->tls != NULL || c->edge.is_blocked ||
        c->edge.has_hangup || w->is_draining || w->budget.bytes != 0) {
        return false;
    }
    if (c->hold.is_held && is_over(c)) {
        return false;
    }
    if (!c->hold.is_held) {
        append(c);
    }
    ctr_add(&c->worker->hold.kept, 1);
    return true;
}

void
hold_forget(struct conn *c)
{
    struct hold *h = &c->hold;
    struct hold_list *list = &c->worker->hold;
    if (!h->is_held) {
        return;
    }
    if (h->prev != NULL) {
        h->prev->hold.next = h->next;
    } else {
        list->first = h->next;
    }
    if (h->next != NULL) {
        h->next->hold.prev = h->prev;
    } else {
        list->last = h->prev;
    }
    h->is_held = false;
}

void
hold_serve(struct worker *w, bool is_idle)
{
    struct conn *c;
    bool serves_all = is_idle || w->is_draining;
    unsigned served = 0;
    while ((c = w->hold.first) != NULL &&
           (serves_all || (served++ < SERVED_MOST && is_over(c)))) {
        hold_forget(c);
        if (c->out.bytes > 0 && !task_is_queued(&c->task) && !c->edge.is_blocked) {
            c->hold.bytes = 0; /* no longer to be held */
            struct turn turn = worker_inline_turn(w);
            conn_turn(c, &turn);
        }
    }
}
