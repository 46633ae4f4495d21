/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/udp.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/probe.h"
#include "base/rng.h"
#include "net/addr.h"
#include "net/admit.h"
#include "net/classify.h"
#include "net/frame.h"
#include "net/stamp.h"
#include "net/worker.h"
#include "proto/ascii.h"
#include "qos/class.h"
#include "serve/session.h"

#define BATCH 16             /* datagrams read at once, and at most in an inline turn */
#define DATAGRAM_BYTES 65536 /* longer ones do not exist */
#define REPLIES 32           /* datagrams written at once */
#define RUNS_MAX 8           /* of a reply, looked at at once */
#define KEYS_PER_RUN 16      /* looked up between two looks at the clock */

/* Datagrams received, in the order in which they came. */
struct inbox {
    char *bytes; /* BATCH x DATAGRAM_BYTES; pages of it are touched as datagrams need */
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    struct sockaddr_storage from[BATCH];
    unsigned count, next;
};

/* Datagrams to be sent. */
struct outbox {
    char bytes[REPLIES][FRAME_DATAGRAM_MAX];
    struct mmsghdr msgs[REPLIES];
    struct iovec iov[REPLIES];
    struct sockaddr_storage to[REPLIES];
    unsigned count, sent;
};

struct udp {
    struct task task; /* first: the worker's queues hold it by this */
    struct worker *worker;
    struct udp *next; /* the worker's list */
    int fd;
    enum req_class declared; /* of all that it receives, or CLASS_NONE */
    bool is_readable;        /* an edge was seen that no short batch has used up */
    bool is_blocked;    /* the socket took less than it was given: an edge will come */
    struct event event; /* edge-triggered */
    struct registry_entry entry;
    struct inbox inbox;
    struct outbox outbox;
    /* The datagram at hand. */
    bool is_open;
    bool is_guarded;
    uint8_t ip[GUARD_IP_BYTES]; /* where it came from, when guarded */
    const struct msghdr *source;
    uint64_t peer_key;  /* struct peer's */
    nsec_t received_at; /* the pass of the loop began in which the batch was */
    const char *p;      /* what the session has not taken yet */
    size_t left;
    uint64_t credit;      /* bytes of reply that it has paid for */
    unsigned requests;    /* still allowed in a row */
    enum req_class class; /* of the request at the head, or the last one */
    bool is_class_told;   /* it was declared, not judged */
    enum req_class
        followed_class; /* of what the first datagram of the batch asked last */
    struct frame frame;
    struct session session;
    struct buf in;
    /* The message being sent. */
    bool is_replying;
    struct chain out;
};

struct udp *
udp_of_task(struct task *t)
{
    return (struct udp *)(void *)((char *)t - offsetof(struct udp, task));
}

/* ---- sending and receiving ------------------------------------------------------------ */

/* Sends what is in the outbox; false when the socket is full. What the kernel refuses for
 * another reason is lost, as datagrams may be. */
static bool
send_all(struct udp *u)
{
    struct outbox *o = &u->outbox;
    struct worker *w = u->worker;
    while (o->sent < o->count) {
        int n = sendmmsg(u->fd, o->msgs + o->sent, o->count - o->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            u->is_blocked = true;
            return false;
        }
        if (n < 0 && errno != EINTR) {
            o->sent++;
            ctr_add(&w->udp_ctr.unsent, 1);
        }
        for (int i = 0; i < n; i++) {
            ctr_add(&w->ctr.bytes_written, o->msgs[o->sent++].msg_len);
            ctr_add(&w->udp_ctr.sent, 1);
        }
    }
    o->count = o->sent = 0;
    return true;
}

/* The same, and notes how long it takes when the reply to what is followed is there. */
static bool
flush(struct udp *u)
{
    struct outbox *o = &u->outbox;
    struct worker *w = u->worker;
    bool is_followed = w->latency.who == u && o->sent < o->count;
    nsec_t begin = unlikely(is_followed) ? clock_now() : 0;
    bool is_sent = send_all(u);
    if (unlikely(is_followed)) {
        latency_end(&w->latency, u->followed_class, begin, clock_now());
    }
    return is_sent;
}

/* Every 64th read of a worker is followed, that is, the first datagram that it brings. */
static bool
follow(struct udp *u, const struct turn *turn)
{
    struct worker *w = u->worker;
    if (likely(--w->reads_to_check > 0)) {
        return false;
    }
    worker_check_rx(w, u->fd);
    if (w->latency.who != NULL) {
        return false;
    }
    latency_begin(&w->latency, u, turn->ready_at);
    return true;
}

/* Takes a batch of datagrams from the socket. */
static void
receive(struct udp *u, const struct turn *turn)
{
    struct inbox *in = &u->inbox;
    struct stamp_room room;
    struct sojourn_times times = {0};
    bool is_followed = follow(u, turn);
    for (unsigned i = 0; i < BATCH; i++) {
        in->iov[i] = (struct iovec){.iov_base = in->bytes + (size_t)i * DATAGRAM_BYTES,
                                    .iov_len = DATAGRAM_BYTES};
        in->msgs[i].msg_hdr = (struct msghdr){.msg_name = &in->from[i],
                                              .msg_namelen = sizeof in->from[i],
                                              .msg_iov = &in->iov[i],
                                              .msg_iovlen = 1};
    }
    if (unlikely(is_followed)) {
        stamp_prepare(&room, &in->msgs[0].msg_hdr, &times);
    }
    int n = recvmmsg(u->fd, in->msgs, BATCH, MSG_DONTWAIT, NULL);
    if (unlikely(is_followed) && n > 0) {
        stamp_take(&in->msgs[0].msg_hdr, &times);
        latency_read(&u->worker->latency, &times);
    }
    u->received_at = u->worker->woke_at;
    in->count = n > 0 ? (unsigned)n : 0;
    in->next = 0;
    /* A short batch has emptied the socket; the next datagram raises a new edge. */
    u->is_readable = n == BATCH || (n < 0 && errno == EINTR);
    for (unsigned i = 0; i < in->count; i++) {
        ctr_add(&u->worker->ctr.bytes_read, in->msgs[i].msg_len);
    }
    ctr_add(&u->worker->udp_ctr.received, in->count);
}

/* ---- a datagram ----------------------------------------------------------------------- */

/* Whether the source has to pay, and still can. */
static bool
pass_guard(struct udp *u, const struct peer *from)
{
    struct worker *w = u->worker;
    u->is_guarded = false;
    if (w->guard == NULL) {
        return true;
    }
    must(addr_ip(from, u->ip));
    u->is_guarded = !guard_is_trusted(&w->shared->udp.conf.guard, u->ip);
    return !u->is_guarded || guard_admits(w->guard, u->ip, w->now);
}

static void
open_datagram(struct udp *u)
{
    struct worker *w = u->worker;
    unsigned i = u->inbox.next++;
    if (i > 0 && u->outbox.count == 0) {
        latency_forget(&w->latency, u); /* the first one got no reply */
    }
    must(u->out.bytes == 0); /* what one client asked for is not for the next */
    const char *p = u->inbox.iov[i].iov_base;
    size_t len = u->inbox.msgs[i].msg_len;
    if (!frame_decode(p, len, &u->frame) || u->frame.total != 1 ||
        frame_is_reply(p + FRAME_HEADER_BYTES, len - FRAME_HEADER_BYTES)) {
        ctr_add(&w->udp_ctr.dropped, 1);
        return;
    }
    u->source = &u->inbox.msgs[i].msg_hdr;
    struct peer peer =
        addr_peer(u->source->msg_name, u->source->msg_namelen, w->shared->peer_seed);
    if (!pass_guard(u, &peer)) {
        ctr_add(&w->udp_ctr.guarded, 1);
        return;
    }
    u->p = p + FRAME_HEADER_BYTES;
    u->left = len - FRAME_HEADER_BYTES;
    u->credit = GUARD_FREE_FACTOR * len;
    u->requests = w->shared->requests_per_event;
    u->is_open = true;
    session_init(&u->session);
    u->session.is_datagram = true;
    u->session.declared = classify_place(&w->shared->class_rules, &peer, u->declared);
    u->peer_key = peer.key;
}

/* Forgets the datagram with everything that it has not said to the end. */
static void
close_datagram(struct udp *u)
{
    session_fini(&u->session, &u->worker->env);
    buf_fini(&u->in, &u->worker->pool);
    u->is_open = false;
    u->task.is_admitted = false;
}

static void
drop_reply(struct udp *u)
{
    chain_clear(&u->out, &u->worker->env.chain);
    close_datagram(u);
}

static size_t
reply_max(const struct udp *u)
{
    return u->is_guarded ? (size_t)GUARD_REPLY_DATAGRAMS * FRAME_PAYLOAD_MAX
                         : FRAME_REPLY_MAX;
}

/* The reply in `out` is complete: it becomes a message. */
static void
begin_reply(struct udp *u)
{
    size_t bytes = u->out.bytes;
    u->frame.sequence = 0;
    u->frame.total = frame_total(bytes);
    u->is_replying = true;
    if (u->inbox.next == 1) {
        u->followed_class = u->class;
    }
    if (u->is_guarded) {
        uint64_t sent = bytes + (uint64_t)u->frame.total * FRAME_HEADER_BYTES;
        uint64_t free = sent < u->credit ? sent : u->credit;
        u->credit -= free;
        guard_charge(u->worker->guard, u->ip, sent - free, u->worker->now);
    }
}

/* Answers the request with an error instead, and forgets the rest of the datagram. */
static void
refuse(struct udp *u, enum reply reply)
{
    struct worker *w = u->worker;
    bool is_text = u->session.req.protocol != PROTOCOL_BINARY;
    bool is_noreply = u->session.req.is_noreply;
    ctr_add(&w->udp_ctr.refused, 1);
    drop_reply(u);
    if (is_text && !is_noreply && ascii_put_reply(&u->out, &w->env.chain, reply)) {
        begin_reply(u);
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

/* ---- a turn --------------------------------------------------------------------------- */

/* How a turn, or a step of it, ended. */
enum step {
    STEP_ON,     /* go on */
    STEP_NEXT,   /* with the next request: this one is answered */
    STEP_WAIT,   /* for an event */
    STEP_DEFER,  /* queue for a deferred turn */
    STEP_QUEUED, /* waits for a token, queued already */
};

static bool
is_turn_over(const struct udp *u, const struct turn *turn)
{
    return turn->has_run && worker_is_turn_over(u->worker, turn);
}

/* Cuts the next datagram off the reply. */
static void
put_datagram(struct udp *u)
{
    struct outbox *o = &u->outbox;
    unsigned i = o->count++;
    char *to = o->bytes[i];
    size_t len = FRAME_HEADER_BYTES;
    frame_encode(&u->frame, to);
    u->frame.sequence++;
    while (u->out.bytes > 0 && len < FRAME_DATAGRAM_MAX) {
        struct iovec iov[RUNS_MAX];
        unsigned runs = chain_iov(&u->out, iov, RUNS_MAX, FRAME_DATAGRAM_MAX - len);
        size_t before = len;
        for (unsigned r = 0; r < runs; r++) {
            memcpy(to + len, iov[r].iov_base, iov[r].iov_len);
            len += iov[r].iov_len;
        }
        chain_consume(&u->out, &u->worker->env.chain, len - before);
    }
    memcpy(&o->to[i], u->source->msg_name, u->source->msg_namelen);
    o->iov[i] = (struct iovec){.iov_base = to, .iov_len = len};
    o->msgs[i].msg_hdr = (struct msghdr){.msg_name = &o->to[i],
                                         .msg_namelen = u->source->msg_namelen,
                                         .msg_iov = &o->iov[i],
                                         .msg_iovlen = 1};
}

static enum step
step_reply(struct udp *u, struct turn *turn)
{
    while (u->out.bytes > 0) {
        if (u->outbox.count == REPLIES) {
            if (!flush(u)) {
                return STEP_WAIT;
            }
            turn->has_run = true;
            if (turn->is_inline || is_turn_over(u, turn)) {
                return STEP_DEFER;
            }
        }
        put_datagram(u);
    }
    u->is_replying = false;
    return STEP_ON;
}

/* Hands the session more of the datagram. */
static enum step
step_feed(struct udp *u, enum session_next next)
{
    char *to;
    size_t room;
    if (u->left == 0) {
        ctr_add(&u->worker->udp_ctr.dropped, !session_is_quiescent(&u->session, &u->in));
        drop_reply(u); /* an unfinished line of keys may have begun one */
        return STEP_ON;
    }
    if (next == SESSION_WANT) {
        room = session_want(&u->session, &to);
    } else if (!buf_open(&u->in, &u->worker->pool, &to, &room)) {
        drop_reply(u);
        return STEP_ON;
    }
    must(room > 0);
    size_t part = u->left < room ? u->left : room;
    memcpy(to, u->p, part);
    u->p += part;
    u->left -= part;
    if (next == SESSION_WANT) {
        session_got(&u->session, part);
    } else {
        buf_fill(&u->in, part);
    }
    return STEP_ON;
}

/* The request at the head is finished. */
static void
finish_request(struct udp *u)
{
    if (u->session.is_open) {
        return; /* the line goes on: still one request */
    }
    u->task.is_admitted = false;
    u->requests--;
    if (u->out.bytes > 0) {
        begin_reply(u);
    }
}

/* The request was hostile: it is answered, what follows it is not. */
static void
finish_datagram(struct udp *u)
{
    close_datagram(u);
    if (u->out.bytes > 0) {
        begin_reply(u);
    }
}

static enum step
after_run(struct udp *u, struct turn *turn, enum session_ran ran)
{
    if (u->out.bytes > reply_max(u)) {
        refuse(u, REPLY_UDP_TOO_LARGE);
        return STEP_ON;
    }
    switch (ran) {
    case RAN_DONE:
        finish_request(u);
        return STEP_ON;
    case RAN_BODY:
        return STEP_ON;
    case RAN_LATE:
        u->class = CLASS_BULK;
        return STEP_DEFER;
    case RAN_AGAIN:
        return turn->is_inline || is_turn_over(u, turn) ? STEP_DEFER : STEP_ON;
    case RAN_CLOSE:
        finish_datagram(u);
        return STEP_ON;
    case RAN_QUIT:
    case RAN_WATCH:
    case RAN_NO_MEMORY:
        drop_reply(u);
        return STEP_ON;
    }
    unreachable();
}

/* Answers the request at the head without running it. */
static enum step
refuse_request(struct udp *u, struct turn *turn, enum req_class class)
{
    bool is_first = u->inbox.next == 1; /* of the batch: the one that is followed */
    struct admit_owner owner = {is_first ? u : NULL, u->fd, &u->session, &u->in, &u->out};
    enum step step = after_run(u, turn, admit_refuse(u->worker, &owner, turn, class));
    return step == STEP_ON ? STEP_NEXT : step;
}

/* A new request is at the head: is it this socket's turn, and is there a token? */
static enum step
admit(struct udp *u, struct turn *turn, enum req_class class)
{
    if (u->requests == 0 || is_turn_over(u, turn)) {
        u->requests = u->worker->shared->requests_per_event;
        return STEP_DEFER;
    }
    /* After -R requests it is at the end of the line again, whoever has sent them. */
    bool is_served = turn->is_served && turn->requests > 0;
    if (class_is_limited(class)) {
        struct limiter_request asked =
            admit_request(&u->session, class, u->peer_key, u->received_at);
        enum limiter_verdict verdict =
            worker_admit(u->worker, &u->task, &asked, is_served);
        if (unlikely(verdict != VERDICT_ADMIT)) {
            return verdict == VERDICT_WAIT ? STEP_QUEUED : refuse_request(u, turn, class);
        }
    }
    turn->requests -= turn->requests > 0;
    u->task.is_admitted = true;
    return STEP_ON;
}

static enum step
step_run(struct udp *u, struct turn *turn)
{
    if (!u->task.is_admitted) {
        u->class = classify_request(u->worker->shared, &u->session, &u->is_class_told);
    }
    enum req_class class = u->class;
    if (!u->task.is_admitted) {
        bool is_bad = u->session.error != REPLY_NONE;
        /* Of two servers each would answer the other's error with one, for ever, once a
         * forged datagram has begun it. */
        if (is_bad ? u->is_guarded : is_for_streams(&u->session.req)) {
            ctr_add(&u->worker->udp_ctr.refused, 1);
            drop_reply(u);
            return STEP_ON;
        }
        if (u->is_guarded && !is_harmless(&u->session.req)) {
            refuse(u, REPLY_UDP_REFUSED);
            return STEP_ON;
        }
        enum step admitted = admit(u, turn, class);
        if (admitted != STEP_ON) {
            return admitted == STEP_NEXT ? STEP_ON : admitted;
        }
    }
    if (class > turn->lane) {
        return STEP_DEFER;
    }
    struct worker *w = u->worker;
    bool may_be_late = class_is_inline(turn->lane) && !u->is_class_told;
    turn->has_run = true;
    w->env.client_fd = u->fd;
    struct session_limits limits = {.keys = KEYS_PER_RUN,
                                    .out_bytes = reply_max(u) + 1,
                                    .late_bytes =
                                        may_be_late ? w->shared->classes.late_bytes : 0};
    size_t bytes = u->out.bytes;
    enum session_ran ran = session_run(&u->session, &w->env, &u->in, &u->out, &limits);
    u->class = classify_account(w, &u->session, class, u->is_class_told, ran,
                                u->out.bytes - bytes);
    ctr_add(&w->classes[u->class].served_udp, ran == RAN_DONE && !u->session.is_open);
    return after_run(u, turn, ran);
}

static enum step
step_datagram(struct udp *u, struct turn *turn)
{
    enum session_next next = session_peek(&u->session, &u->worker->env, &u->in);
    switch (next) {
    case SESSION_READY:
        return step_run(u, turn);
    case SESSION_MORE:
    case SESSION_WANT:
        return step_feed(u, next);
    case SESSION_CLOSE:
        ctr_add(&u->worker->udp_ctr.dropped, 1);
        drop_reply(u);
        return STEP_ON;
    }
    unreachable();
}

/* The batch is used up: the replies go out, and the next one comes in. */
static enum step
step_batch(struct udp *u, struct turn *turn)
{
    if (!flush(u)) {
        return STEP_WAIT;
    }
    if (!u->is_readable) {
        return STEP_WAIT;
    }
    if (turn->reads > 0 && (turn->is_inline || is_turn_over(u, turn))) {
        return STEP_DEFER;
    }
    turn->reads++;
    latency_forget(&u->worker->latency, u); /* it got no reply */
    receive(u, turn);
    return STEP_ON;
}

static enum step
step(struct udp *u, struct turn *turn)
{
    if (u->is_replying) {
        return step_reply(u, turn);
    }
    if (u->is_open) {
        return step_datagram(u, turn);
    }
    if (u->inbox.next == u->inbox.count) {
        return step_batch(u, turn);
    }
    if (is_turn_over(u, turn)) {
        return STEP_DEFER;
    }
    open_datagram(u);
    return STEP_ON;
}

void
udp_turn(struct udp *u, struct turn *turn)
{
    enum step end;
    do {
        end = step(u, turn);
    } while (end == STEP_ON);
    atomic_store_explicit(&u->entry.last_cmd, u->worker->env.now, memory_order_relaxed);
    /* Replies that are complete do not wait for the next turn. */
    if (!flush(u) && end == STEP_DEFER) {
        return; /* the edge goes on */
    }
    if (end == STEP_DEFER) {
        worker_defer(u->worker, &u->task, u->class);
    }
}

/* The one libevent callback of UDP sockets. */
static void
on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct udp *u = arg;
    worker_refresh_now(u->worker);
    u->is_readable |= (what & EV_READ) != 0;
    u->is_blocked &= (what & EV_WRITE) == 0;
    if (task_is_queued(&u->task) || u->is_blocked) {
        return;
    }
    struct turn turn = worker_inline_turn(u->worker);
    turn.requests = 0; /* they are counted over datagrams */
    udp_turn(u, &turn);
    worker_end_inline(u->worker, &turn);
}

/* ---- life ----------------------------------------------------------------------------- */

static void
destroy(struct udp *u)
{
    struct worker *w = u->worker;
    flush(u);
    latency_forget(&w->latency, u);
    chain_clear(&u->out, &w->env.chain);
    if (u->is_open) {
        close_datagram(u);
    }
    worker_unqueue(w, &u->task);
    event_del(&u->event);
    registry_remove(&w->shared->registry, &u->entry);
    free(u->inbox.bytes);
    free(u);
}

static bool
create(struct worker *w, int fd, enum req_class declared)
{
    struct udp *u = calloc(1, sizeof *u);
    char *bytes = malloc((size_t)BATCH * DATAGRAM_BYTES);
    if (u == NULL || bytes == NULL) {
        free(u);
        free(bytes);
        return false;
    }
    u->task.is_udp = true;
    u->worker = w;
    u->fd = fd;
    u->declared = declared;
    u->inbox.bytes = bytes;
    u->entry.fd = fd;
    u->entry.is_udp = true;
    atomic_init(&u->entry.state, REGISTRY_READ);
    atomic_init(&u->entry.last_cmd, w->env.now);
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    addr_format("udp", (struct sockaddr *)&addr, len, u->entry.addr,
                sizeof u->entry.addr);
    short what = EV_READ | EV_WRITE | EV_ET | EV_PERSIST;
    if (!registry_add(&w->shared->registry, &u->entry)) {
        free(u);
        free(bytes);
        return false;
    }
    if (event_assign(&u->event, w->base, fd, what, on_event, u) != 0 ||
        event_add(&u->event, NULL) != 0) {
        registry_remove(&w->shared->registry, &u->entry);
        free(u);
        free(bytes);
        return false;
    }
    u->next = w->udp;
    w->udp = u;
    return true;
}

bool
udp_start(struct worker *w)
{
    const struct udp_sockets *s = &w->shared->udp;
    if (s->addresses > 0 && s->conf.guard.is_on) {
        w->guard = malloc(sizeof *w->guard);
        if (w->guard == NULL) {
            return false;
        }
        guard_init(w->guard, s->workers, rng_seed());
    }
    unsigned count = w->shared->worker_count;
    for (unsigned i = 0; i < s->addresses; i++) {
        unsigned seat = (w->index + count - i % count) % count;
        if (seat < s->workers &&
            !create(w, s->fds[i * s->workers + seat], s->declared[i])) {
            return false;
        }
    }
    return true;
}

void
udp_stop(struct worker *w)
{
    while (w->udp != NULL) {
        struct udp *u = w->udp;
        w->udp = u->next;
        destroy(u);
    }
    free(w->guard);
    w->guard = NULL;
}
