/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/outbox.h"

#include <errno.h>

#include "net/worker.h"

#define RUNS_MAX 8 /* of a reply, looked at at once */

void
outbox_put(struct outbox *o, struct udp_frame *frame, struct chain *out,
           const struct sockaddr_storage *to, socklen_t to_len)
{
    must(!outbox_is_full(o));
    unsigned i = o->count++;
    char *bytes = o->bytes[i];
    size_t len = UDP_FRAME_HEADER_BYTES;
    udp_frame_encode(frame, bytes);
    frame->sequence++;
    while (out->bytes > 0 && len < UDP_FRAME_DATAGRAM_MAX) {
        struct iovec iov[RUNS_MAX];
        unsigned runs = chain_iov(out, iov, RUNS_MAX, UDP_FRAME_DATAGRAM_MAX - len);
        size_t before = len;
        for (unsigned r = 0; r < runs; r++) {
            memcpy(bytes + len, iov[r].iov_base, iov[r].iov_len);
            len += iov[r].iov_len;
        }
        chain_consume(out, &o->worker->core.env.chain, len - before);
    }
    memcpy(&o->to[i], to, to_len);
    o->iov[i] = (struct iovec){.iov_base = bytes, .iov_len = len};
    o->msgs[i].msg_hdr = (struct msghdr){.msg_name = &o->to[i],
                                         .msg_namelen = to_len,
                                         .msg_iov = &o->iov[i],
                                         .msg_iovlen = 1};
}

static bool
send_all(struct outbox *o)
{
    struct worker *w = o->worker;
    while (o->sent < o->count) {
        int n = sendmmsg(o->fd, o->msgs + o->sent, o->count - o->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            o->is_blocked = true;
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

bool
outbox_flush(struct outbox *o)
{
    nsec_t begin = unlikely(o->has_followed) ? clock_now() : 0;
    bool is_sent = send_all(o);
    if (unlikely(o->has_followed)) {
        o->has_followed = false;
        latency_end(&o->worker->core.latency, begin, clock_now());
    }
    return is_sent;
}
