/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/flow.h"

#include "net/worker.h"
#include "proto/ascii.h"
#include "sock/addr.h"

/* A datagram that waits for those before it. */
struct flow_waiting {
    struct flow_waiting *next;
    nsec_t received_at;
    size_t len;
    char bytes[];
};

/* ---- life ----------------------------------------------------------------------------- */

struct flow *
flow_create(struct outbox *outbox, const struct work_type *type, enum req_class declared)
{
    struct flow *f = calloc(1, sizeof *f);
    if (f != NULL) {
        pump_init(&f->pump, &outbox->worker->core, type, 0);
        f->pump.has_budget = false; /* what it may have is bounded here */
        f->outbox = outbox;
        f->declared = declared;
    }
    return f;
}

/* Forgets the datagram with everything that it has not said to the end. */
static void
close_datagram(struct flow *f)
{
    struct worker *w = f->outbox->worker;
    session_fini(&f->pump.session, &w->core.env);
    buf_fini(&f->pump.in, &w->core.pool);
    free(f->own);
    f->own = NULL;
    f->left = 0; /* it is not read any more */
    f->is_open = false;
    f->pump.work.ticket.is_admitted = false;
}

void
flow_destroy(struct flow *f)
{
    struct worker *w = f->outbox->worker;
    queue_leave(&w->core, &f->pump.work);
    latency_forget(&w->core.latency, &f->pump);
    chain_clear(&f->pump.out, &w->core.env.chain);
    if (f->is_open) {
        close_datagram(f);
    }
    while (f->first != NULL) {
        struct flow_waiting *k = f->first;
        f->first = k->next;
        free(k);
    }
    free(f);
}

/* ---- set aside ------------------------------------------------------------------------ */

bool
flow_settle(struct flow *f)
{
    if (f->left > 0) {
        f->own = malloc(f->left);
        if (f->own == NULL) {
            return false;
        }
        memcpy(f->own, f->p, f->left);
        f->p = f->own;
    }
    memcpy(&f->source, f->from, f->from_len);
    f->from = &f->source;
    return true;
}

bool
flow_is_from(const struct flow *f, const struct flow_datagram *d)
{
    return f->from_len == d->from_len && memcmp(f->from, d->from, d->from_len) == 0;
}

bool
flow_keep(struct flow *f, const struct flow_datagram *d)
{
    if (f->waiting == FLOW_WAITING_MAX ||
        f->waiting_bytes + d->len > FLOW_WAITING_BYTES) {
        return false;
    }
    struct flow_waiting *k = malloc(sizeof *k + d->len);
    if (k == NULL) {
        return false;
    }
    *k = (struct flow_waiting){.received_at = d->received_at, .len = d->len};
    memcpy(k->bytes, d->bytes, d->len);
    *(f->first != NULL ? &f->last->next : &f->first) = k;
    f->last = k;
    f->waiting++;
    f->waiting_bytes += d->len;
    return true;
}

bool
flow_open_kept(struct flow *f)
{
    struct flow_waiting *k = f->first;
    if (k == NULL) {
        return false;
    }
    if (!f->outbox->has_followed) { /* what is followed has got no reply */
        latency_forget(&f->outbox->worker->core.latency, &f->pump);
    }
    f->first = k->next;
    f->waiting--;
    f->waiting_bytes -= k->len;
    struct flow_datagram d = {.bytes = k->bytes,
                              .len = k->len,
                              .from = &f->source,
                              .from_len = f->from_len,
                              .received_at = k->received_at};
    flow_open(f, &d);
    if (f->is_open) {
        f->own = k;
    } else {
        free(k);
    }
    return true;
}

/* ---- a datagram ----------------------------------------------------------------------- */

/* Whether the source has to pay, and still can. */
static bool
pass_guard(struct flow *f, const struct peer *from)
{
    struct worker *w = f->outbox->worker;
    f->is_guarded = false;
    if (w->guard == NULL) {
        return true;
    }
    must(addr_ip(from, f->ip));
    f->is_guarded = !guard_is_trusted(&w->shared->udp.conf.guard, f->ip);
    return !f->is_guarded || guard_admits(w->guard, f->ip, w->core.now);
}

static size_t
reply_max(const struct flow *f)
{
    return f->is_guarded ? (size_t)GUARD_REPLY_DATAGRAMS * UDP_FRAME_PAYLOAD_MAX
                         : UDP_FRAME_REPLY_MAX;
}

void
flow_open(struct flow *f, const struct flow_datagram *d)
{
    struct worker *w = f->outbox->worker;
    must(f->pump.out.bytes == 0); /* what one client asked for is not for the next */
    if (!udp_frame_decode(d->bytes, d->len, &f->frame) || f->frame.total != 1 ||
        udp_frame_is_reply(d->bytes + UDP_FRAME_HEADER_BYTES,
                           d->len - UDP_FRAME_HEADER_BYTES)) {
        ctr_add(&w->udp_ctr.dropped, 1);
        return;
    }
    struct peer peer =
        addr_peer((const struct sockaddr *)d->from, d->from_len, w->shared->peer_seed);
    if (!pass_guard(f, &peer)) {
        ctr_add(&w->udp_ctr.guarded, 1);
        return;
    }
    f->from = d->from;
    f->from_len = d->from_len;
    f->received_at = d->received_at;
    f->p = d->bytes + UDP_FRAME_HEADER_BYTES;
    f->left = d->len - UDP_FRAME_HEADER_BYTES;
    f->credit = GUARD_FREE_FACTOR * d->len;
    f->is_open = true;
    struct pump *p = &f->pump;
    p->requests = w->shared->core.requests_per_event;
    p->history.class = CLASS_SMALL;
    p->work.peer = peer.key;
    p->out_most = reply_max(f) + 1;
    session_init(&p->session);
    p->session.is_datagram = true;
    p->session.declared = net_shared_declared(w->shared, &peer, f->declared);
}

static void
drop_reply(struct flow *f)
{
    chain_clear(&f->pump.out, &f->outbox->worker->core.env.chain);
    close_datagram(f);
}

/* More than one client may get; or, beyond what each may have, than all that wait for a turn of
 * their own may have collected together. */
static bool
has_too_much(const struct flow *f)
{
    size_t others = f->outbox->collected - f->counted;
    return f->pump.out.bytes > reply_max(f) ||
           (f->pump.out.bytes > FLOW_SHARE_BYTES &&
            others + f->pump.out.bytes > UDP_FRAME_REPLY_MAX);
}

/* The reply in `out` is complete: it becomes a message. */
static void
begin_reply(struct flow *f)
{
    size_t bytes = f->pump.out.bytes;
    f->frame.sequence = 0;
    f->frame.total = udp_frame_total(bytes);
    f->is_replying = true;
    f->outbox->has_followed |=
        latency_is_answered(&f->outbox->worker->core.latency, &f->pump);
    if (f->is_guarded) {
        uint64_t sent = bytes + (uint64_t)f->frame.total * UDP_FRAME_HEADER_BYTES;
        uint64_t free = sent < f->credit ? sent : f->credit;
        f->credit -= free;
        guard_charge(f->outbox->worker->guard, f->ip, sent - free,
                     f->outbox->worker->core.now);
    }
}

/* Answers the request with an error instead, and forgets the rest of the datagram. */
static void
refuse(struct flow *f, enum reply reply)
{
    struct worker *w = f->outbox->worker;
    const struct session *s = &f->pump.session;
    bool is_text = s->protocol != PROTOCOL_BINARY;
    bool is_noreply = s->req != NULL && s->req->is_noreply;
    ctr_add(&w->udp_ctr.refused, 1);
    drop_reply(f);
    if (is_text && !is_noreply &&
        ascii_put_reply(&f->pump.out, &w->core.env.chain, reply)) {
        begin_reply(f);
    }
}

/* ---- what is served ------------------------------------------------------------------- */

/* Requests that are about the connection, which there is none of, or that have no end. */
static bool
is_for_streams(const struct req *req)
{
    bool is_dump =
        req->verb == VERB_LRU_CRAWLER && req->words > 1 &&
        (req_word_is(req->word[1], "metadump") || req_word_is(req->word[1], "mgdump"));
    return is_dump || req->verb == VERB_QUIT || req->verb == VERB_WATCH;
}

/* What a source that may be forged may ask for: nothing that shows the server's state or
 * changes much. */
static bool
is_harmless(const struct req *req)
{
    switch (req->family) {
    case FAMILY_RETRIEVE:
    case FAMILY_TOUCH:
    case FAMILY_ARITH:
        return true;
    default:
        return req->verb == VERB_VERSION || req->verb == VERB_MG || req->verb == VERB_MN;
    }
}

bool
flow_is_turn_over(const struct flow *f, const struct turn *turn)
{
    return turn->has_run && queue_is_turn_over(f->pump.core, turn);
}

static enum flow_step
step_reply(struct flow *f, struct turn *turn)
{
    while (f->pump.out.bytes > 0) {
        if (outbox_is_full(f->outbox)) {
            if (!outbox_flush(f->outbox)) {
                return FLOW_WAIT;
            }
            turn->has_run = true;
            if (turn->is_inline || flow_is_turn_over(f, turn)) {
                return FLOW_DEFER;
            }
        }
        outbox_put(f->outbox, &f->frame, &f->pump.out, f->from, f->from_len);
    }
    f->is_replying = false;
    return FLOW_ON;
}

/* Hands the session more of the datagram. */
static enum flow_step
step_feed(struct flow *f, enum session_next next)
{
    char *to;
    size_t room;
    if (f->left == 0) {
        ctr_add(&f->outbox->worker->udp_ctr.dropped,
                !session_is_quiescent(&f->pump.session, &f->pump.in));
        drop_reply(f); /* an unfinished line of keys may have begun one */
        return FLOW_ON;
    }
    if (next == SESSION_WANT) {
        room = session_want(&f->pump.session, &to);
    } else if (!buf_open(&f->pump.in, &f->outbox->worker->core.pool, &to, &room)) {
        drop_reply(f);
        return FLOW_ON;
    }
    must(room > 0);
    size_t part = f->left < room ? f->left : room;
    memcpy(to, f->p, part);
    f->p += part;
    f->left -= part;
    if (next == SESSION_WANT) {
        session_got(&f->pump.session, part);
    } else {
        buf_fill(&f->pump.in, part);
    }
    return FLOW_ON;
}

/* A request is finished: each has a message of its own. */
static enum flow_step
finish_request(struct flow *f)
{
    if (f->pump.out.bytes > 0) {
        begin_reply(f);
    }
    return FLOW_ON;
}

/* Since when the datagram at hand has waited, but for what was wanted; 0: not measured. */
static nsec_t
waits_since(const struct flow *f)
{
    if (likely(f->received_at == 0)) {
        return 0;
    }
    nsec_t held = f->outbox->held_until;
    nsec_t wanted = f->resumed_at > held ? f->resumed_at : held;
    return f->received_at > wanted ? f->received_at : wanted;
}

/* Is the request one that UDP does not serve, or not for this source? It is dropped, or refused,
 * then. */
static bool
turns_down(struct flow *f)
{
    const struct session *s = &f->pump.session;
    bool is_bad = s->error != REPLY_NONE;
    /* Of two servers each would answer the other's error with one, for ever, once a forged
     * datagram has begun it. */
    if (is_bad ? f->is_guarded : is_for_streams(s->req)) {
        ctr_add(&f->outbox->worker->udp_ctr.refused, 1);
        drop_reply(f);
        return true;
    }
    if (f->is_guarded && !is_harmless(s->req)) {
        refuse(f, REPLY_UDP_REFUSED);
        return true;
    }
    return false;
}

static enum flow_step
step_run(struct flow *f, struct turn *turn)
{
    struct pump *p = &f->pump;
    if (!p->work.ticket.is_admitted && turns_down(f)) {
        return FLOW_ON;
    }
    p->arrival.since = waits_since(f);
    enum pump_end end = pump_run(p, turn);
    if (has_too_much(f)) {
        refuse(f, REPLY_UDP_TOO_LARGE);
        return FLOW_ON;
    }
    switch (end) {
    case PUMP_ON:
    case PUMP_FLUSH:
        return FLOW_ON;
    case PUMP_DONE:
        ctr_add(&p->core->classes[p->history.class].served_udp, 1);
        return finish_request(f);
    case PUMP_REFUSED:
        return finish_request(f);
    case PUMP_DEFER:
        if (p->requests == 0) { /* it has had as many in a row as it may */
            p->requests = p->core->shared->requests_per_event;
        }
        return FLOW_DEFER;
    case PUMP_WAIT:
        return FLOW_QUEUED;
    case PUMP_CLOSE:
        close_datagram(f); /* it was hostile: it is answered, what follows it is not */
        return finish_request(f);
    case PUMP_PARKED: /* no request that datagrams may make is */
    case PUMP_OVER:
    case PUMP_WATCH:
    case PUMP_QUIT:
    case PUMP_ABORT:
        drop_reply(f);
        return FLOW_ON;
    }
    unreachable();
}

static enum flow_step
step_datagram(struct flow *f, struct turn *turn)
{
    struct worker *w = f->outbox->worker;
    w->core.env.client_fd = f->outbox->fd;
    w->core.env.back.message = NULL;
    enum session_next next = session_peek(&f->pump.session, &w->core.env, &f->pump.in);
    switch (next) {
    case SESSION_READY:
        return step_run(f, turn);
    case SESSION_MORE:
    case SESSION_WANT:
        return step_feed(f, next);
    case SESSION_CLOSE:
    case SESSION_NO_MEMORY:
        ctr_add(&w->udp_ctr.dropped, 1);
        drop_reply(f);
        return FLOW_ON;
    }
    unreachable();
}

enum flow_step
flow_step(struct flow *f, struct turn *turn)
{
    if (turn->is_served) {
        f->resumed_at = f->outbox->worker->core.now;
    }
    enum flow_step step = f->is_replying ? step_reply(f, turn) : step_datagram(f, turn);
    f->outbox->collected += f->pump.out.bytes - f->counted; /* modulo: it may be less */
    f->counted = f->pump.out.bytes;
    return step;
}
