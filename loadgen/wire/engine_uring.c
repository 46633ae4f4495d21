/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One io_uring a thread. Each connection has one receive request that goes on for ever
 * ("multishot", Linux 6.0) and puts what comes into buffers that all share, so that a batch
 * of replies costs one system call; work is done by the kernel only when the thread waits
 * ("deferred task work", Linux 6.1).
 */
#include "loadgen/wire/engine.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "loadgen/wire/lset.h"

#define ENTRIES 256
#define COMPLETIONS 4096
#define EVENTS_MAX 256
#define BUFFERS 256 /* a power of two */
#define BUFFER_BYTES 16384
#define BUFFER_GROUP 0
#define NO_BUFFER UINT16_MAX

/* What a completion belongs to: connection, its generation, and: */
enum kind {
    KIND_RECEIVE,
    KIND_POLL, /* for writability */
    KIND_FORGET,
};

struct event {
    struct lconn *conn;
    uint32_t generation;
    int result; /* of a receive: bytes, 0 at the end, or a negative errno */
    uint16_t buffer;
    bool is_receive;
};

/* A connection's requests. A new generation begins when its socket is closed: what completes
 * later is dropped. */
struct watched {
    uint32_t generation;
    bool receives, polls;
};

struct waiter {
    struct io_uring ring;
    bool has_ring;
    struct io_uring_buf_ring *free_buffers; /* what the kernel may fill */
    char *buffers;
    struct watched *watched; /* one a connection */
    nsec_t wake_at;          /* 0: nothing */
    struct event events[EVENTS_MAX];
    unsigned events_len;
    const struct event *current;
};

static uint64_t
tag_of(const struct lset *s, const struct lconn *c, enum kind kind)
{
    uint64_t index = (uint64_t)(c - s->conns);
    return (uint64_t)s->waiter->watched[index].generation << 32 | index << 2 | kind;
}

/* ---- setting up -------------------------------------------------------------------- */

static const char *
uring_open(struct lset *s)
{
    struct waiter *w = s->waiter = alloc_zeroed(1, sizeof *w);
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    size_t ring_bytes = BUFFERS * sizeof(struct io_uring_buf);
    w->watched = alloc_zeroed(s->room, sizeof *w->watched);
    w->buffers = alloc_bytes((size_t)BUFFERS * BUFFER_BYTES);
    /* The kernel wants it at the begin of a page; ring_bytes are a whole one. */
    w->free_buffers = alloc_checked(aligned_alloc(4096, ring_bytes));
    int rc = io_uring_queue_init_params(ENTRIES, &w->ring, &params);
    if (rc != 0) {
        return rc == -EINVAL ? "this kernel's io_uring is too old (Linux 6.1 is needed)"
                             : strerror(-rc);
    }
    w->has_ring = true;
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)w->free_buffers,
        .ring_entries = BUFFERS,
        .bgid = BUFFER_GROUP,
    };
    rc = io_uring_register_buf_ring(&w->ring, &reg, 0);
    if (rc != 0) {
        return strerror(-rc);
    }
    io_uring_buf_ring_init(w->free_buffers);
    for (unsigned i = 0; i < BUFFERS; i++) {
        io_uring_buf_ring_add(w->free_buffers, w->buffers + (size_t)i * BUFFER_BYTES,
                              BUFFER_BYTES, (unsigned short)i, BUFFERS - 1, (int)i);
    }
    io_uring_buf_ring_advance(w->free_buffers, BUFFERS);
    return NULL;
}

static void
uring_close(struct lset *s)
{
    struct waiter *w = s->waiter;
    if (w == NULL) {
        return;
    }
    if (w->has_ring) {
        io_uring_queue_exit(&w->ring);
    }
    free(w->free_buffers);
    free(w->buffers);
    free(w->watched);
    free(w);
    s->waiter = NULL;
}

/* ---- requests ---------------------------------------------------------------------- */

static bool
is_passing(int rc)
{
    return rc >= 0 || rc == -EINTR || rc == -ETIME || rc == -EAGAIN || rc == -EBUSY;
}

static struct io_uring_sqe *
next_request(struct waiter *w)
{
    struct io_uring_sqe *sqe;
    while ((sqe = io_uring_get_sqe(&w->ring)) == NULL) {
        must(is_passing(io_uring_submit(&w->ring)));
    }
    return sqe;
}

static struct watched *
watched_of(struct lset *s, const struct lconn *c)
{
    return &s->waiter->watched[c - s->conns];
}

static void
start_receiving(struct lset *s, struct lconn *c)
{
    struct io_uring_sqe *sqe = next_request(s->waiter);
    io_uring_prep_recv_multishot(sqe, c->link.fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    io_uring_sqe_set_data64(sqe, tag_of(s, c, KIND_RECEIVE));
    watched_of(s, c)->receives = true;
}

static bool
uring_watch(struct lset *s, struct lconn *c, bool for_send)
{
    struct watched *of = watched_of(s, c);
    if (c->state == LCONN_UP && !of->receives) {
        start_receiving(s, c);
    }
    /* Once asked for it stays: an event too many does no harm. */
    if (for_send && !of->polls) {
        struct io_uring_sqe *sqe = next_request(s->waiter);
        io_uring_prep_poll_add(sqe, c->link.fd, POLLOUT);
        io_uring_sqe_set_data64(sqe, tag_of(s, c, KIND_POLL));
        of->polls = true;
    }
    return true;
}

/* Requests hold the socket: it is not closed before they have ended. */
static void
uring_forget(struct lset *s, struct lconn *c)
{
    struct watched *of = watched_of(s, c);
    if (of->receives || of->polls) {
        struct io_uring_sqe *sqe = next_request(s->waiter);
        io_uring_prep_cancel_fd(sqe, c->link.fd, IORING_ASYNC_CANCEL_ALL);
        io_uring_sqe_set_data64(sqe, tag_of(s, c, KIND_FORGET));
        must(is_passing(io_uring_submit_and_get_events(&s->waiter->ring)));
    }
    *of = (struct watched){.generation = of->generation + 1};
}

/* ---- waiting ----------------------------------------------------------------------- */

static void
give_buffer_back(struct waiter *w, uint16_t buffer, int offset)
{
    io_uring_buf_ring_add(w->free_buffers, w->buffers + (size_t)buffer * BUFFER_BYTES,
                          BUFFER_BYTES, buffer, BUFFERS - 1, offset);
}

static void
give_buffers_back(struct waiter *w)
{
    int count = 0;
    for (unsigned i = 0; i < w->events_len; i++) {
        if (w->events[i].buffer != NO_BUFFER) {
            give_buffer_back(w, w->events[i].buffer, count++);
        }
    }
    io_uring_buf_ring_advance(w->free_buffers, count);
    w->events_len = 0;
}

/* Whether the kernel has something to do for this ring, or to say. */
static bool
has_work(const struct waiter *w)
{
    unsigned flags = atomic_load_explicit((const _Atomic unsigned *)w->ring.sq.kflags,
                                          memory_order_acquire);
    return io_uring_sq_ready(&w->ring) > 0 ||
           (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/* Submits what was asked for and waits until something has completed. A poll in vain is no
 * system call. */
static void
submit_and_wait(struct waiter *w, int timeout_ms)
{
    nsec_t wait = (nsec_t)timeout_ms * NSEC_PER_MSEC;
    if (w->wake_at != 0 && timeout_ms > 0) {
        nsec_t now = clock_now();
        nsec_t until = w->wake_at > now ? w->wake_at - now : 0;
        wait = until < wait ? until : wait;
    }
    int rc = 0;
    if (wait == 0) {
        rc = has_work(w) ? io_uring_submit_and_get_events(&w->ring) : 0;
    } else {
        struct io_uring_cqe *cqe;
        struct __kernel_timespec ts = {(int64_t)(wait / NSEC_PER_SEC),
                                       (long long)(wait % NSEC_PER_SEC)};
        rc = io_uring_submit_and_wait_timeout(&w->ring, &cqe, 1, &ts, NULL);
    }
    must(is_passing(rc));
}

/* A completion becomes an event, unless it belongs to a socket closed since. */
static void
note(struct lset *s, const struct io_uring_cqe *cqe)
{
    struct waiter *w = s->waiter;
    uint64_t tag = io_uring_cqe_get_data64(cqe);
    enum kind kind = tag & 3;
    struct lconn *c = &s->conns[(tag & UINT32_MAX) >> 2];
    struct watched *of = watched_of(s, c);
    bool has_buffer = (cqe->flags & IORING_CQE_F_BUFFER) != 0;
    struct event e = {
        .conn = c,
        .generation = (uint32_t)(tag >> 32),
        .result = cqe->res,
        .buffer =
            has_buffer ? (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT) : NO_BUFFER,
        .is_receive = kind == KIND_RECEIVE,
    };
    bool is_current = e.generation == of->generation && kind != KIND_FORGET;
    if (is_current && kind == KIND_POLL) {
        of->polls = false;
    }
    if (is_current && kind == KIND_RECEIVE && (cqe->flags & IORING_CQE_F_MORE) == 0) {
        of->receives = false;
        if (cqe->res > 0 || cqe->res == -ENOBUFS) {
            start_receiving(s, c);
        }
    }
    /* A buffer is given back with its event, also when it is dropped. */
    if ((is_current && cqe->res != -ENOBUFS) || has_buffer) {
        w->events[w->events_len++] = e;
    }
}

static unsigned
uring_await(struct lset *s, int timeout_ms)
{
    struct waiter *w = s->waiter;
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    give_buffers_back(w);
    w->current = NULL;
    if (io_uring_cq_ready(&w->ring) == 0) {
        submit_and_wait(w, timeout_ms);
    }
    io_uring_for_each_cqe(&w->ring, head, cqe)
    {
        if (w->events_len == EVENTS_MAX) {
            break;
        }
        note(s, cqe);
        seen++;
    }
    io_uring_cq_advance(&w->ring, seen);
    return w->events_len;
}

static struct lconn *
uring_event(struct lset *s, unsigned i, unsigned *can)
{
    const struct event *e = &s->waiter->events[i];
    s->waiter->current = e;
    *can = e->is_receive ? LSET_CAN_RECEIVE : LSET_CAN_SEND;
    return e->generation == watched_of(s, e->conn)->generation ? e->conn : NULL;
}

static void
uring_wake_at(struct lset *s, nsec_t when)
{
    s->waiter->wake_at = when;
}

static enum lset_input
uring_receive(struct lset *s, struct lconn *c, struct lset_bytes *in)
{
    struct waiter *w = s->waiter;
    must(w->current != NULL && w->current->conn == c && w->current->is_receive);
    if (w->current->result <= 0) {
        return LSET_LOST;
    }
    *in = (struct lset_bytes){
        w->buffers + (size_t)w->current->buffer * BUFFER_BYTES,
        (size_t)w->current->result,
    };
    return LSET_DATA;
}

const struct engine engine_uring = {
    .name = "io_uring",
    .is_plain = true,
    .open = uring_open,
    .close = uring_close,
    .watch = uring_watch,
    .forget = uring_forget,
    .wait = uring_await,
    .event = uring_event,
    .wake_at = uring_wake_at,
    .receive = uring_receive,
    ENGINE_OF_SOCKETS,
};
