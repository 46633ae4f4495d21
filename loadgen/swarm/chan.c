/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/chan.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define READ_BYTES 65536u

static bool
give_up(struct chan *c, const char *why)
{
    c->error = c->error != NULL ? c->error : why;
    return false;
}

void
chan_init(struct chan *c, int fd, enum seal_side side)
{
    *c = (struct chan){.fd = fd, .side = side, .max = FRAME_MAX};
}

void
chan_fini(struct chan *c)
{
    if (c->fd != -1) {
        close(c->fd);
    }
    frame_out_fini(&c->making);
    free(c->in);
    free(c->out);
    seal_forget(&c->seal, sizeof c->seal);
    *c = (struct chan){.fd = -1};
}

/* Room for `len` more bytes behind what is there, which moves to the front. */
static void
make_room(uint8_t **p, size_t *at, size_t *used, size_t *cap, size_t len)
{
    if (*at > 0) {
        memmove(*p, *p + *at, *used - *at);
        *used -= *at;
        *at = 0;
    }
    if (*cap - *used < len) {
        *cap = *cap * 2 > *used + len ? *cap * 2 : *used + len;
        *p = alloc_more(*p, *cap, 1);
    }
}

/* ---- sending ------------------------------------------------------------------------ */

struct frame_out *
chan_begin(struct chan *c, uint16_t type)
{
    frame_begin(&c->making, type, c->session, c->sent);
    return &c->making;
}

static bool
seal_frame(struct chan *c)
{
    struct frame_out *o = &c->making;
    size_t mac_len = c->seal.is_on ? FRAME_MAC : 0;
    if (!frame_end(o, mac_len)) {
        return false;
    }
    return mac_len == 0 || seal_ops->mac(&c->seal, c->side, o->p, o->len - mac_len,
                                         o->p + o->len - mac_len);
}

bool
chan_send(struct chan *c)
{
    if (c->error != NULL) {
        return false;
    }
    if (!seal_frame(c) || c->out_len - c->out_at + c->making.len > CHAN_OUT_MAX) {
        return give_up(c, "too much to send");
    }
    make_room(&c->out, &c->out_at, &c->out_len, &c->out_cap, c->making.len);
    memcpy(c->out + c->out_len, c->making.p, c->making.len);
    c->out_len += c->making.len;
    c->sent++;
    return chan_flush(c);
}

bool
chan_flush(struct chan *c)
{
    while (c->error == NULL && c->out_at < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return give_up(c, strerror(errno));
        }
        c->out_at += n > 0 ? (size_t)n : 0;
    }
    return c->error == NULL;
}

short
chan_events(const struct chan *c)
{
    return POLLIN | (c->out_at < c->out_len ? POLLOUT : 0);
}

/* ---- receiving ---------------------------------------------------------------------- */

bool
chan_fill(struct chan *c)
{
    if (c->error != NULL) {
        return false;
    }
    /* Never more than one whole frame and a piece: chan_next is called in between. */
    make_room(&c->in, &c->in_at, &c->in_len, &c->in_cap, READ_BYTES);
    ssize_t n = recv(c->fd, c->in + c->in_len, READ_BYTES, 0);
    if (n > 0) {
        c->in_len += (size_t)n;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return true;
    }
    return give_up(c, n == 0 ? "closed the connection" : strerror(errno));
}

static const char *
wrong_with(const struct chan *c, const struct frame *f)
{
    uint8_t mac[FRAME_MAC];
    enum seal_side other = c->side == SEAL_LEADER ? SEAL_AGENT : SEAL_LEADER;
    if (c->seal.is_on && (!seal_ops->mac(&c->seal, other, f->whole, f->whole_len, mac) ||
                          !seal_equals(mac, f->mac, sizeof mac))) {
        return "sent a frame with a wrong seal";
    }
    if (f->sequence != c->received) {
        return "sent a frame out of its turn";
    }
    return f->session != c->session ? "sent a frame of another session" : NULL;
}

enum chan_next
chan_next(struct chan *c, struct frame *f)
{
    size_t taken = 0;
    /* What came before the end is still worth reading, what follows a bad frame is not. */
    if (c->max == 0) {
        return CHAN_LOST;
    }
    enum frame_status status = FRAME_MORE;
    if (c->in_len > c->in_at) {
        status = frame_parse(c->in + c->in_at, c->in_len - c->in_at, c->max,
                             c->seal.is_on ? FRAME_MAC : 0, f, &taken);
    }
    if (status == FRAME_MORE) {
        return c->error != NULL ? CHAN_LOST : CHAN_NONE;
    }
    const char *wrong =
        status == FRAME_BAD ? "sent something that is no frame" : wrong_with(c, f);
    if (wrong != NULL) {
        c->max = 0;
        c->error = wrong;
        return CHAN_LOST;
    }
    c->received++;
    c->in_at += taken;
    return CHAN_FRAME;
}

static bool
wait_for(struct chan *c, nsec_t until)
{
    struct pollfd p = {.fd = c->fd, .events = chan_events(c)};
    nsec_t now = clock_now();
    if (now >= until) {
        return false;
    }
    int rc = poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1);
    return rc > 0 || (rc < 0 && errno == EINTR);
}

enum chan_next
chan_await(struct chan *c, nsec_t until, struct frame *f)
{
    for (;;) {
        enum chan_next next = chan_next(c, f);
        if (next != CHAN_NONE) {
            return next;
        }
        if (!wait_for(c, until)) {
            return CHAN_NONE;
        }
        /* Failures show in the next round, after what came before them. */
        (void)(chan_flush(c) && chan_fill(c));
    }
}

void
chan_drain(struct chan *c, nsec_t until)
{
    while (c->error == NULL && c->out_at < c->out_len) {
        struct pollfd p = {.fd = c->fd, .events = POLLOUT};
        nsec_t now = clock_now();
        if (now >= until || poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1) == 0 ||
            !chan_flush(c)) {
            return;
        }
    }
}
