/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/latency.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

static const char *const names[LATENCY_STAGES] = {[LATENCY_KERNEL] = "kernel",
                                                  [LATENCY_LOOP] = "loop",
                                                  [LATENCY_READ] = "read",
                                                  [LATENCY_EXECUTE] = "execute",
                                                  [LATENCY_WRITE] = "write"};

const char *
latency_stage_name(enum latency_stage stage)
{
    must((unsigned)stage < LATENCY_STAGES);
    return names[stage];
}

bool
latency_init(struct latency *l)
{
    bool is_good = true;
    *l = (struct latency){.conn = NULL};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        for (unsigned s = 0; s < LATENCY_STAGES; s++) {
            l->stages[c][s] = hist_create(LATENCY_SUB_BITS, LATENCY_MAX_NS);
            is_good = is_good && l->stages[c][s] != NULL;
        }
    }
    return is_good;
}

void
latency_fini(struct latency *l)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        for (unsigned s = 0; s < LATENCY_STAGES; s++) {
            hist_destroy(&l->stages[c][s]);
        }
    }
}

void
latency_begin(struct latency *l, const struct conn *c, nsec_t ready_at)
{
    l->conn = c;
    l->ready_at = ready_at;
    l->is_read = false;
}

static nsec_t
ns_of(const struct timespec *t)
{
    return (nsec_t)t->tv_sec * NSEC_PER_SEC + (nsec_t)t->tv_nsec;
}

/* The kernel's stamp; 0: none. The first packets after stamping was turned on have none, and
 * those of UNIX sockets never. */
static nsec_t
stamp_of(struct msghdr *msg)
{
    struct timespec at;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS &&
            c->cmsg_len >= CMSG_LEN(sizeof at)) {
            memcpy(&at, CMSG_DATA(c), sizeof at);
            return ns_of(&at);
        }
    }
    return 0;
}

ssize_t
latency_recv(struct latency *l, int fd, void *to, size_t room)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec)) + 64];
    } control;
    struct iovec iov = {.iov_base = to, .iov_len = room};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    struct timespec wall;
    must(clock_gettime(CLOCK_REALTIME, &wall) == 0);
    nsec_t begin = clock_now();
    ssize_t n = recvmsg(fd, &msg, 0);
    if (n <= 0 || l->is_read) {
        return n;
    }
    struct sojourn_times times = {.rx_wall = stamp_of(&msg),
                                  .read_wall = ns_of(&wall),
                                  .read_mono = begin,
                                  .ready_mono = l->ready_at};
    l->sojourn = sojourn_of(&times);
    l->read_at = clock_now();
    l->read_ns = l->read_at - begin;
    l->is_read = true;
    return n;
}

void
latency_end(struct latency *l, enum req_class class, nsec_t begin, nsec_t now)
{
    struct hist *const *stages = l->stages[class];
    l->conn = NULL;
    if (!l->is_read) {
        return;
    }
    if (l->sojourn.has_kernel) {
        hist_record(stages[LATENCY_KERNEL], l->sojourn.kernel);
    }
    hist_record(stages[LATENCY_LOOP], l->sojourn.loop);
    hist_record(stages[LATENCY_READ], l->read_ns);
    hist_record(stages[LATENCY_EXECUTE], begin > l->read_at ? begin - l->read_at : 0);
    hist_record(stages[LATENCY_WRITE], now > begin ? now - begin : 0);
}
