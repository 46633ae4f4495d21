/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/flow.h"

#include "net/admit.h"
#include "net/classify.h"
#include "net/worker.h"
#include "proto/ascii.h"
#include "qos/class.h"
#include "sock/addr.h"

#define KEYS_PER_RUN 16 /* looked up between two looks at the clock */

/* A datagram that waits for those before it. */
struct flow_waiting {
    struct flow_waiting *next;
    nsec_t received_at;
    size_t len;
    char bytes[];
};

struct flow *
flow_of_task(struct task *t)
{
    return (struct flow *)(void *)((char *)t - offsetof(struct flow, task));
}

/* ---- life ----------------------------------------------------------------------------- */

struct flow *
flow_create(struct outbox *outbox, enum req_class declared)
{
    struct flow *f = calloc(1, sizeof *f);
    if (f != NULL) {
        f->task.is_udp = true;
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
    session_fini(&f->session, &w->env);
    buf_fini(&f->in, &w->pool);
    free(f->own);
    f->own = NULL;
    f->left = 0; /* nobody will read it */
    f->is_open = false;
    f->task.is_admitted = false;
}

void
flow_destroy(struct flow *f)
{
    struct worker *w = f->outbox->worker;
    worker_unqueue(w, &f->task);
    latency_forget(&w->latency, f);
    chain_clear(&f->out, &w->env.chain);
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
        latency_forget(&f->outbox->worker->latency, f);
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
    return !f->is_guarded || guard_admits(w->guard, f->ip, w->now);
}

void
flow_open(struct flow *f, const struct flow_datagram *d)
{
    struct worker *w = f->outbox->worker;
    must(f->out.bytes == 0); /* what one client asked for is not for the next */
    if (!frame_decode(d->bytes, d->len, &f->frame) || f->frame.total != 1 ||
        frame_is_reply(d->bytes + FRAME_HEADER_BYTES, d->len - FRAME_HEADER_BYTES)) {
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
    f->p = d->bytes + FRAME_HEADER_BYTES;
    f->left = d->len - FRAME_HEADER_BYTES;
    f->credit = GUARD_FREE_FACTOR * d->len;
    f->requests = w->shared->requests_per_event;
    f->class = CLASS_SMALL;
    f->is_open = true;
    session_init(&f->session);
    f->session.is_datagram = true;
    f->session.declared = classify_place(&w->shared->class_rules, &peer, f->declared);
    f->peer_key = peer.key;
}

static void
drop_reply(struct flow *f)
{
    chain_clear(&f->out, &f->outbox->worker->env.chain);
    close_datagram(f);
}

static size_t
reply_max(const struct flow *f)
{
    return f->is_guarded ? (size_t)GUARD_REPLY_DATAGRAMS * FRAME_PAYLOAD_MAX
                         : FRAME_REPLY_MAX;
}

/* More than one client may get; or, beyond what each may have, than all that wait for a turn of
 * their own may have collected together. */
static bool
has_too_much(const struct flow *f)
{
    size_t others = f->outbox->collected - f->counted;
    return f->out.bytes > reply_max(f) ||
           (f->out.bytes > FLOW_SHARE_BYTES && others + f->out.bytes > FRAME_REPLY_MAX);
}

/* The reply in `out` is complete: it becomes a message. */
static void
begin_reply(struct flow *f)
{
    size_t bytes = f->out.bytes;
    f->frame.sequence = 0;
    f->frame.total = frame_total(bytes);
    f->is_replying = true;
    if (unlikely(f->outbox->worker->latency.who == f)) {
        f->outbox->has_followed = true;
        f->outbox->followed_class = f->class;
    }
    if (f->is_guarded) {
        uint64_t sent = bytes + (uint64_t)f->frame.total * FRAME_HEADER_BYTES;
        uint64_t free = sent < f->credit ? sent : f->credit;
        f->credit -= free;
        guard_charge(f->outbox->worker->guard, f->ip, sent - free,
                     f->outbox->worker->now);
    }
}

/* Answers the request with an error instead, and forgets the rest of the datagram. */
static void
refuse(struct flow *f, enum reply reply)
{
    struct worker *w = f->outbox->worker;
    bool is_text = f->session.req.protocol != PROTOCOL_BINARY;
    bool is_noreply = f->session.req.is_noreply;
    ctr_add(&w->udp_ctr.refused, 1);
    drop_reply(f);
    if (is_text && !is_noreply && ascii_put_reply(&f->out, &w->env.chain, reply)) {
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
    return turn->has_run && worker_is_turn_over(f->outbox->worker, turn);
}

static enum flow_step
step_reply(struct flow *f, struct turn *turn)
{
    while (f->out.bytes > 0) {
        if (outbox_is_full(f->outbox)) {
            if (!outbox_flush(f->outbox)) {
                return FLOW_WAIT;
            }
            turn->has_run = true;
            if (turn->is_inline || flow_is_turn_over(f, turn)) {
                return FLOW_DEFER;
            }
        }
        outbox_put(f->outbox, &f->frame, &f->out, f->from, f->from_len);
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
                !session_is_quiescent(&f->session, &f->in));
        drop_reply(f); /* an unfinished line of keys may have begun one */
        return FLOW_ON;
    }
    if (next == SESSION_WANT) {
        room = session_want(&f->session, &to);
    } else if (!buf_open(&f->in, &f->outbox->worker->pool, &to, &room)) {
        drop_reply(f);
        return FLOW_ON;
    }
    must(room > 0);
    size_t part = f->left < room ? f->left : room;
    memcpy(to, f->p, part);
    f->p += part;
    f->left -= part;
    if (next == SESSION_WANT) {
        session_got(&f->session, part);
    } else {
        buf_fill(&f->in, part);
    }
    return FLOW_ON;
}

/* The request at the head is finished. */
static void
finish_request(struct flow *f)
{
    if (f->session.is_open) {
        return; /* the line goes on: still one request */
    }
    f->task.is_admitted = false;
    f->requests--;
    if (f->out.bytes > 0) {
        begin_reply(f);
    }
}

/* The request was hostile: it is answered, what follows it is not. */
static void
finish_datagram(struct flow *f)
{
    close_datagram(f);
    if (f->out.bytes > 0) {
        begin_reply(f);
    }
}

static enum flow_step
after_run(struct flow *f, struct turn *turn, enum session_ran ran)
{
    if (has_too_much(f)) {
        refuse(f, REPLY_UDP_TOO_LARGE);
        return FLOW_ON;
    }
    switch (ran) {
    case RAN_DONE:
        finish_request(f);
        return FLOW_ON;
    case RAN_BODY:
        return FLOW_ON;
    case RAN_LATE:
        f->class = CLASS_BULK;
        return FLOW_DEFER;
    case RAN_AGAIN:
        return worker_ends_piece(f->outbox->worker, turn) ? FLOW_DEFER : FLOW_ON;
    case RAN_LONG:
        return worker_admits_long(f->outbox->worker, turn) ? FLOW_ON : FLOW_DEFER;
    case RAN_CLOSE:
        finish_datagram(f);
        return FLOW_ON;
    case RAN_QUIT:
    case RAN_WATCH:
    case RAN_NO_MEMORY:
        drop_reply(f);
        return FLOW_ON;
    }
    unreachable();
}

/* Answers the request at the head without running it. */
static enum flow_step
refuse_request(struct flow *f, struct turn *turn, enum req_class class)
{
    struct admit_owner owner = {f, f->outbox->fd, &f->session, &f->in, &f->out};
    enum flow_step step =
        after_run(f, turn, admit_refuse(f->outbox->worker, &owner, turn, class));
    return step == FLOW_ON ? FLOW_NEXT : step;
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

/* A new request is at the head: is it this socket's turn, and is there a token? */
static enum flow_step
admit(struct flow *f, struct turn *turn, enum req_class class)
{
    if (f->requests == 0 || flow_is_turn_over(f, turn)) {
        f->requests = f->outbox->worker->shared->requests_per_event;
        return FLOW_DEFER;
    }
    /* After -R requests it is at the end of the line again, whoever has sent them. */
    bool is_served = turn->is_served && turn->requests > 0;
    if (class_is_limited(class)) {
        struct limiter_request asked =
            admit_request(&f->session, class, f->peer_key, waits_since(f));
        enum limiter_verdict verdict =
            limited_ask(f->outbox->worker, &f->task, &asked, is_served);
        if (unlikely(verdict != VERDICT_ADMIT)) {
            return verdict == VERDICT_WAIT ? FLOW_QUEUED : refuse_request(f, turn, class);
        }
    }
    turn->requests -= turn->requests > 0;
    f->task.is_admitted = true;
    return FLOW_ON;
}

static enum flow_step
step_run(struct flow *f, struct turn *turn)
{
    if (!f->task.is_admitted) {
        f->class =
            classify_request(f->outbox->worker->shared, &f->session, &f->is_class_told);
    }
    enum req_class class = f->class;
    if (!f->task.is_admitted) {
        bool is_bad = f->session.error != REPLY_NONE;
        /* Of two servers each would answer the other's error with one, for ever, once a
         * forged datagram has begun it. */
        if (is_bad ? f->is_guarded : is_for_streams(&f->session.req)) {
            ctr_add(&f->outbox->worker->udp_ctr.refused, 1);
            drop_reply(f);
            return FLOW_ON;
        }
        if (f->is_guarded && !is_harmless(&f->session.req)) {
            refuse(f, REPLY_UDP_REFUSED);
            return FLOW_ON;
        }
        enum flow_step admitted = admit(f, turn, class);
        if (admitted != FLOW_ON) {
            return admitted == FLOW_NEXT ? FLOW_ON : admitted;
        }
    } else {
        turn->has_long |= f->session.is_long;
    }
    if (unlikely(class > turn->lane) && flow_lane(f) > turn->lane) {
        return FLOW_DEFER;
    }
    struct worker *w = f->outbox->worker;
    bool may_be_late = class_is_inline(turn->lane) && !f->is_class_told;
    turn->has_run = true;
    struct session_limits limits = {.keys = KEYS_PER_RUN,
                                    .out_bytes = reply_max(f) + 1,
                                    .late_bytes =
                                        may_be_late ? w->shared->classes.late_bytes : 0};
    size_t bytes = f->out.bytes;
    enum session_ran ran = session_run(&f->session, &w->env, &f->in, &f->out, &limits);
    f->class = classify_account(w, &f->session, class, f->is_class_told, ran,
                                f->out.bytes - bytes);
    ctr_add(&w->classes[f->class].served_udp, ran == RAN_DONE && !f->session.is_open);
    return after_run(f, turn, ran);
}

static enum flow_step
step_datagram(struct flow *f, struct turn *turn)
{
    struct worker *w = f->outbox->worker;
    w->env.client_fd = f->outbox->fd;
    enum session_next next = session_peek(&f->session, &w->env, &f->in);
    switch (next) {
    case SESSION_READY:
        return step_run(f, turn);
    case SESSION_MORE:
    case SESSION_WANT:
        return step_feed(f, next);
    case SESSION_CLOSE:
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
        f->resumed_at = f->outbox->worker->now;
    }
    enum flow_step step = f->is_replying ? step_reply(f, turn) : step_datagram(f, turn);
    f->outbox->collected += f->out.bytes - f->counted; /* modulo: it may be less */
    f->counted = f->out.bytes;
    return step;
}
