/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/udp.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/owner_of.h"
#include "base/rng.h"
#include "net/flow.h"
#include "net/outbox.h"
#include "net/worker.h"
#include "sock/addr.h"
#include "sock/stamp.h"

#define BATCH 16             /* datagrams read at once, and at most in an inline turn */
#define READS_MAX 8          /* such batches that any turn takes */
#define DRAIN_READS_MAX 4096 /* such batches that are still taken at the end */
#define DATAGRAM_BYTES 65536 /* longer ones do not exist */
#define ASIDE_MAX 128        /* sources that wait; more of them hold up the socket */

/* Datagrams received, in the order in which they came. */
struct inbox {
    char *bytes; /* BATCH x DATAGRAM_BYTES; pages of it are touched as datagrams need */
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    struct sockaddr_storage from[BATCH];
    unsigned count, next;
    nsec_t received_at; /* of the oldest; as in struct flow_datagram */
};

struct udp {
    struct worker *worker;
    struct udp *next;          /* the worker's list */
    struct poll_source source; /* edge-triggered */
    enum req_class declared;   /* of all that it receives, or CLASS_NONE */
    bool is_readable;          /* an edge was seen that no short batch has used up */
    unsigned drain_reads;      /* done since the worker began to drain */
    struct registry_entry entry;
    char addr[REGISTRY_ADDR_MAX];
    struct flow *front; /* takes what is received; its task is the socket's */
    struct flow *aside; /* those of sources that wait, doubly linked */
    struct flow *spare;
    unsigned aside_count;
    struct inbox inbox;
    struct outbox outbox;
};

/* Of the socket's flows: serves the socket, or what is set aside, until it has to wait. */
static void take_turn(struct work *work, struct turn *turn);
static void describe_peer(const struct work *work, char *to, size_t size);
static const struct work_type udp_work = {.turn = take_turn,
                                          .describe_peer = describe_peer};

/* ---- sources that wait ---------------------------------------------------------------- */

static struct flow *
take_spare(struct udp *u)
{
    struct flow *f = u->spare;
    if (f == NULL) {
        return flow_create(&u->outbox, &udp_work, u->declared);
    }
    u->spare = f->next;
    return f;
}

static void
give_spare(struct udp *u, struct flow *f)
{
    f->next = u->spare;
    u->spare = f;
}

/* What is at hand waits, for its turn or a token: it does so alone, and the socket goes on with
 * what came behind it. False: it holds the socket up, because too many do. */
static bool
set_aside(struct udp *u, enum flow_step end)
{
    struct flow *f = u->front;
    struct flow *next = u->aside_count < ASIDE_MAX ? take_spare(u) : NULL;
    if (next == NULL) {
        return false;
    }
    if (!flow_settle(f)) {
        give_spare(u, next);
        return false;
    }
    f->prev = NULL;
    f->next = u->aside;
    if (u->aside != NULL) {
        u->aside->prev = f;
    }
    u->aside = f;
    u->aside_count++;
    u->front = next;
    ctr_add(&u->worker->udp_ctr.aside, 1);
    if (end == FLOW_DEFER) {
        queue_put(f->pump.core, &f->pump.work, pump_lane(&f->pump));
    }
    return true;
}

/* Nothing of its source waits any more. */
static void
retire(struct udp *u, struct flow *f)
{
    *(f->prev != NULL ? &f->prev->next : &u->aside) = f->next;
    if (f->next != NULL) {
        f->next->prev = f->prev;
    }
    u->aside_count--;
    f->resumed_at = 0;
    give_spare(u, f);
}

static struct flow *
find_aside(const struct udp *u, const struct flow_datagram *d)
{
    struct flow *f = u->aside;
    while (f != NULL && !flow_is_from(f, d)) {
        f = f->next;
    }
    return f;
}

/* The socket takes datagrams again: those that have waited for that go on. */
static void
resume_aside(struct udp *u)
{
    for (struct flow *f = u->aside; f != NULL; f = f->next) {
        if (!work_is_queued(&f->pump.work)) {
            queue_put(f->pump.core, &f->pump.work, pump_lane(&f->pump));
        }
    }
}

/* ---- receiving ------------------------------------------------------------------------ */

/* Every 64th read of a worker is followed, that is, the first datagram that it brings. */
static bool
follow(struct udp *u, const struct turn *turn)
{
    struct worker *w = u->worker;
    if (likely(--w->rx.reads_to_check > 0)) {
        return false;
    }
    worker_check_rx(w, u->source.fd);
    if (!latency_has_room(&w->core.latency, w->core.now)) {
        return false;
    }
    latency_begin(&w->core.latency, &u->front->pump, turn->ready_at);
    return true;
}

/* Notes since when a batch has waited: with the kernel's stamp of its oldest datagram. */
static void
note_arrival(struct udp *u, const struct turn *turn, bool is_followed,
             struct sojourn_times *times)
{
    struct worker *w = u->worker;
    times->ready_mono = turn->ready_at;
    if (is_followed) {
        latency_read(&w->core.latency, times, clock_now());
    }
    if (core_has_slo(&w->core)) {
        core_read_clock(&w->core);
        u->inbox.received_at = arrival_of(times);
    }
}

/* Takes a batch of datagrams from the socket. */
static void
receive(struct udp *u, const struct turn *turn)
{
    struct inbox *in = &u->inbox;
    struct worker *w = u->worker;
    struct stamp_room room;
    struct sojourn_times times = {0};
    bool is_followed = follow(u, turn);
    bool is_timed = is_followed || admission_wants_delay(&w->core);
    for (unsigned i = 0; i < BATCH; i++) {
        in->iov[i] = (struct iovec){.iov_base = in->bytes + (size_t)i * DATAGRAM_BYTES,
                                    .iov_len = DATAGRAM_BYTES};
        in->msgs[i].msg_hdr = (struct msghdr){.msg_name = &in->from[i],
                                              .msg_namelen = sizeof in->from[i],
                                              .msg_iov = &in->iov[i],
                                              .msg_iovlen = 1};
    }
    if (unlikely(is_timed)) {
        stamp_prepare(&room, &in->msgs[0].msg_hdr, &times);
    }
    in->received_at = 0;
    int n = recvmmsg(u->source.fd, in->msgs, BATCH, MSG_DONTWAIT, NULL);
    if (unlikely(is_timed) && n > 0) {
        stamp_take(&in->msgs[0].msg_hdr, &times);
        note_arrival(u, turn, is_followed, &times);
    }
    in->count = n > 0 ? (unsigned)n : 0;
    in->next = 0;
    /* A short batch has emptied the socket; the next datagram raises a new edge. */
    u->is_readable = n == BATCH || (n < 0 && errno == EINTR);
    for (unsigned i = 0; i < in->count; i++) {
        ctr_add(&w->ctr.bytes_read, in->msgs[i].msg_len);
    }
    ctr_add(&w->udp_ctr.received, in->count);
}

/* What is followed has got no reply. */
static void
forget_followed(struct udp *u)
{
    if (!u->outbox.has_followed) {
        latency_forget(&u->worker->core.latency, &u->front->pump);
    }
}

/* The next datagram: behind those of its source that wait, else it is at hand. */
static void
take_datagram(struct udp *u)
{
    unsigned i = u->inbox.next++;
    struct flow_datagram d = {.bytes = u->inbox.iov[i].iov_base,
                              .len = u->inbox.msgs[i].msg_len,
                              .from = &u->inbox.from[i],
                              .from_len = u->inbox.msgs[i].msg_hdr.msg_namelen,
                              .received_at = u->inbox.received_at};
    if (i > 0) {
        forget_followed(u);
    }
    struct flow *f = unlikely(u->aside != NULL) ? find_aside(u, &d) : NULL;
    if (f == NULL) {
        flow_open(u->front, &d);
    } else if (!flow_keep(f, &d)) {
        ctr_add(&u->worker->udp_ctr.overflowed, 1);
    }
}

/* The batch is used up: the replies go out, and the next one comes in. */
static enum flow_step
step_batch(struct udp *u, struct turn *turn)
{
    if (!outbox_flush(&u->outbox) || !u->is_readable) {
        return FLOW_WAIT;
    }
    struct core *k = &u->worker->core;
    if (k->is_draining && u->drain_reads == DRAIN_READS_MAX) {
        return FLOW_WAIT; /* what has arrived before the end is served, not what follows */
    }
    if (turn->reads == READS_MAX ||
        (turn->reads > 0 && (turn->is_inline || queue_is_turn_over(k, turn)))) {
        return FLOW_DEFER;
    }
    turn->reads++;
    u->drain_reads += k->is_draining;
    receive(u, turn);
    return FLOW_ON;
}

static enum flow_step
step_socket(struct udp *u, struct turn *turn)
{
    if (flow_is_busy(u->front)) {
        enum flow_step end = flow_step(u->front, turn);
        bool waits = end == FLOW_QUEUED ||
                     (end == FLOW_DEFER && pump_lane(&u->front->pump) != CLASS_SMALL);
        return waits && set_aside(u, end) ? FLOW_ON : end;
    }
    if (u->inbox.next == u->inbox.count) {
        return step_batch(u, turn);
    }
    if (flow_is_turn_over(u->front, turn)) {
        return FLOW_DEFER;
    }
    take_datagram(u);
    return FLOW_ON;
}

static void
serve_socket(struct udp *u, struct turn *turn)
{
    enum flow_step end;
    do {
        end = step_socket(u, turn);
    } while (end == FLOW_ON);
    /* Replies that are complete do not wait for the next turn. */
    bool is_sent = outbox_flush(&u->outbox);
    if (!flow_is_busy(u->front)) {
        forget_followed(u);
    }
    if (end == FLOW_DEFER && is_sent) { /* else the edge goes on */
        bool is_known = flow_is_busy(u->front);
        queue_put(&u->worker->core, &u->front->pump.work,
                  is_known ? pump_lane(&u->front->pump) : CLASS_SMALL);
    }
}

static enum flow_step
step_aside(struct flow *f, struct turn *turn, unsigned *taken)
{
    if (flow_is_busy(f)) {
        return flow_step(f, turn);
    }
    if (f->first != NULL &&
        (flow_is_turn_over(f, turn) || (turn->is_inline && ++*taken > BATCH))) {
        return FLOW_DEFER;
    }
    return flow_open_kept(f) ? FLOW_ON : FLOW_WAIT;
}

static void
serve_aside(struct udp *u, struct flow *f, struct turn *turn)
{
    enum flow_step end;
    unsigned taken = 0;
    do {
        end = step_aside(f, turn, &taken);
    } while (end == FLOW_ON);
    bool is_sent = outbox_flush(&u->outbox);
    if (end == FLOW_WAIT && !flow_is_busy(f)) {
        latency_forget(&u->worker->core.latency, &f->pump);
        retire(u, f);
    } else if (end == FLOW_DEFER && is_sent) {
        queue_put(f->pump.core, &f->pump.work, pump_lane(&f->pump));
    }
}

static void
take_turn(struct work *work, struct turn *turn)
{
    struct flow *f = OWNER_OF(work, struct flow, pump.work);
    struct udp *u = OWNER_OF(f->outbox, struct udp, outbox);
    if (f == u->front) {
        if (unlikely(turn->is_served)) { /* nothing was read while it waited */
            u->outbox.held_until = u->worker->core.now;
        }
        serve_socket(u, turn);
    } else {
        serve_aside(u, f, turn);
    }
    atomic_store_explicit(&u->entry.last_cmd, u->worker->core.env.now,
                          memory_order_relaxed);
}

static void
describe_peer(const struct work *work, char *to, size_t size)
{
    const struct flow *f = (const struct flow *)(const void *)work;
    char address[NI_MAXHOST];
    if (f->from == NULL) {
        snprintf(to, size, "-");
        return;
    }
    addr_format("udp", (const struct sockaddr *)f->from, f->from_len, address,
                sizeof address);
    addr_put_host(address, to, size);
}

static void
on_ready(struct poll_source *source, unsigned ready)
{
    struct udp *u = OWNER_OF(source, struct udp, source);
    core_wake(&u->worker->core);
    u->is_readable |= (ready & POLLER_READ) != 0;
    if ((ready & POLLER_WRITE) != 0 && u->outbox.is_blocked) {
        u->outbox.is_blocked = false;
        u->outbox.held_until = core_read_clock(&u->worker->core);
        if (outbox_flush(&u->outbox)) { /* the next pass may be late */
            resume_aside(u);
        }
    }
    if (work_is_queued(&u->front->pump.work) || u->outbox.is_blocked) {
        return;
    }
    struct turn turn = core_inline_turn(&u->worker->core);
    turn.requests = 0; /* they are counted over datagrams */
    take_turn(&u->front->pump.work, &turn);
    worker_end_inline(u->worker, &turn);
}

/* ---- life ----------------------------------------------------------------------------- */

static void
destroy_flows(struct flow *f)
{
    while (f != NULL) {
        struct flow *next = f->next;
        flow_destroy(f);
        f = next;
    }
}

static void
destroy(struct udp *u)
{
    outbox_flush(&u->outbox);
    flow_destroy(u->front);
    destroy_flows(u->aside);
    destroy_flows(u->spare);
    poller_remove(&u->worker->poller, &u->source);
    registry_remove(&u->worker->shared->registry, &u->entry);
    free(u->inbox.bytes);
    free(u);
}

/* What can fail. */
static bool
set_up(struct udp *u)
{
    u->inbox.bytes = malloc((size_t)BATCH * DATAGRAM_BYTES);
    u->front = flow_create(&u->outbox, &udp_work, u->declared);
    if (u->inbox.bytes == NULL || u->front == NULL ||
        !registry_add(&u->worker->shared->registry, &u->entry)) {
        return false;
    }
    u->source.on_ready = on_ready;
    if (!poller_add(&u->worker->poller, &u->source,
                    POLLER_READ | POLLER_WRITE | POLLER_EDGE)) {
        registry_remove(&u->worker->shared->registry, &u->entry);
        return false;
    }
    return true;
}

static bool
create(struct worker *w, int fd, enum req_class declared)
{
    struct udp *u = calloc(1, sizeof *u);
    if (u == NULL) {
        return false;
    }
    u->worker = w;
    u->source.fd = fd;
    u->declared = declared;
    u->outbox.worker = w;
    u->outbox.fd = fd;
    u->entry.fd = fd;
    u->entry.is_udp = true;
    atomic_init(&u->entry.state, REGISTRY_READ);
    atomic_init(&u->entry.last_cmd, w->core.env.now);
    addr_format_own("udp", fd, u->addr, sizeof u->addr);
    u->entry.addr = u->addr;
    if (!set_up(u)) {
        free(u->front);
        free(u->inbox.bytes);
        free(u);
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
udp_drain(struct worker *w)
{
    for (struct udp *u = w->udp; u != NULL; u = u->next) {
        u->is_readable = true; /* look once more for requests that have arrived */
        if (!work_is_queued(&u->front->pump.work) && !u->outbox.is_blocked) {
            queue_put(&w->core, &u->front->pump.work, CLASS_SMALL);
        }
    }
}

bool
udp_is_drained(const struct worker *w)
{
    const struct udp *u = w->udp;
    while (u != NULL && u->aside == NULL && !u->outbox.is_blocked &&
           !work_is_queued(&u->front->pump.work)) {
        u = u->next;
    }
    return u == NULL;
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
