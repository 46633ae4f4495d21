/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sends requests: which connection has room, what is given to it, when that was
 * given to the kernel, and how many are not answered yet. Its thread only.
 */
#pragma once

#include "loadgen/drive/drive.h"
#include "loadgen/measure/gaps.h"
#include "loadgen/measure/little.h"

/* Tags of requests: 0 is one that follows from an answer, and nothing follows from it; else
 * how many are left in its session, itself included. */
#define TAG_NONE 0
#define TAG_ALONE 1

struct sender {
    struct drive *d;
    unsigned outstanding; /* requests given to connections and not answered */
    unsigned deferred;    /* that are to follow from answers at their time */
    unsigned prompt;      /* sent when they were meant to be, and not counted yet */
    unsigned alone;       /* the only ones on their connections when sent, likewise */
    struct gaps issued;
    struct little little;
    struct lconn **dirty; /* with output not flushed */
    unsigned dirty_count;
    uint64_t moved_requests, moved_bytes; /* and not booked yet */
};

void sender_init(struct sender *s, struct drive *d);
void sender_fini(struct sender *s);

/* Whether c may have another request that follows from none. */
static inline bool
sender_has_room(const struct sender *s, const struct lconn *c)
{
    unsigned depth = s->d->conf.depth;
    if (!lconn_has_room(c, depth) || c->followups.count > 0) {
        return false;
    }
    const struct drive_conn *dc = drive_conn_of(s->d, c);
    return dc->left > 0 && c->count + dc->resting < depth;
}

/* How many, of any size: when they turn out smaller there may be room for more. */
static inline uint64_t
sender_room(const struct sender *s, const struct lconn *c)
{
    const struct drive_conn *dc = drive_conn_of(s->d, c);
    unsigned depth = s->d->conf.depth, taken = c->count + dc->resting;
    if (c->state != LCONN_UP || c->followups.count > 0 || taken >= depth) {
        return 0;
    }
    uint64_t n = depth - taken, fit = (c->out_cap - c->out_len) / c->request_max;
    n = n < fit ? n : fit;
    return n < dc->left ? n : dc->left;
}

/* c, which has room, is given one (lconn_push). */
static inline void
sender_count_push(struct sender *s, const struct lconn *c)
{
    struct drive_conn *dc = drive_conn_of(s->d, c);
    dc->left -= dc->left != DRIVE_FOREVER ? 1 : 0;
    s->outstanding++;
}

/* c has been given something: it is flushed with the others that have (dirty). */
static inline void
sender_make_dirty(struct sender *s, struct lconn *c)
{
    if (!c->is_dirty) {
        c->is_dirty = true;
        s->dirty[s->dirty_count++] = c;
    }
}

/* Gives c what follows from its answers, which goes before anything else, as much as it has
 * room for. True when that was something. */
bool sender_push_followups(struct sender *s, struct lconn *c, nsec_t now);

/* Sends the connection's output. False when the connection is lost. */
must_check bool sender_flush(struct sender *s, struct lconn *c);

/* The request is answered before its system call has ended: it counts as sent now. */
void sender_issued(struct sender *s, struct request_op *op, unsigned outstanding,
                   nsec_t now);
/* Counts what many requests have in common: once in a pass of the loop, and at its end. */
void sender_count_alike(struct sender *s);
/* Until now as many were on their way as s->little.count. */
static inline void
sender_pass_time(struct sender *s, nsec_t now)
{
    const struct drive_window *w = &s->d->window;
    struct counters *k = s->d->counters;
    unsigned edges = little_edges(&s->little, w->start, w->end, now);
    if (unlikely(edges > 0)) {
        ctr_add(&k->at_edges, edges);
    }
    ctr_add(&k->on_their_way, little_pass(&s->little, w->start, w->end, now));
}
/* n of them are answered, whatever with, or given up. */
static inline void
sender_answered(struct sender *s, unsigned n, nsec_t now)
{
    s->outstanding -= n;
    sender_pass_time(s, now);
    s->little.count -= n;
}
/* The first request that is on its way on c will not be answered: it is lost with c or, when the run
 * is over, no reply has come. False: there is none left. */
must_check bool sender_forget(struct sender *s, struct lconn *c, bool is_over, nsec_t now,
                              struct request_op *op);
