/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/stamps.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_BYTES 512
#define CARD_STAMP 2 /* of the three of a struct scm_timestamping; 0 is the kernel's */

bool
stamps_begin(struct stamps *s, int fd, enum stamps_by by)
{
    unsigned flags = SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
    flags |= by == STAMPS_CARD
                 ? SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
                       SOF_TIMESTAMPING_RAW_HARDWARE
                 : SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
                       SOF_TIMESTAMPING_SOFTWARE;
    s->by = by;
    s->first = s->count = 0;
    s->received_at = 0;
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
}

static nsec_t
ns_of(const struct stamps *s, const struct cmsghdr *c)
{
    struct scm_timestamping three;
    memcpy(&three, CMSG_DATA(c), sizeof three);
    const struct timespec *ts = &three.ts[s->by == STAMPS_CARD ? CARD_STAMP : 0];
    return (nsec_t)ts->tv_sec * NSEC_PER_SEC + (nsec_t)ts->tv_nsec;
}

static void
keep(struct stamps *s, uint32_t last_byte, nsec_t at)
{
    if (s->count == STAMPS_KEPT) {
        s->first++;
        s->count--;
    }
    uint32_t i = (s->first + s->count++) % STAMPS_KEPT;
    s->sent[i].last_byte = last_byte;
    s->sent[i].at = at;
}

static bool
is_error_of(const struct cmsghdr *c)
{
    return (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
           (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR);
}

static void
take_sent(struct stamps *s, struct msghdr *m)
{
    nsec_t at = 0;
    struct sock_extended_err e = {.ee_origin = SO_EE_ORIGIN_NONE};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
            at = ns_of(s, c);
        } else if (is_error_of(c)) {
            memcpy(&e, CMSG_DATA(c), sizeof e);
        }
    }
    if (at != 0 && e.ee_origin == SO_EE_ORIGIN_TIMESTAMPING) {
        keep(s, e.ee_data, at);
    }
}

void
stamps_collect(struct stamps *s, int fd)
{
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
    for (;;) {
        struct msghdr m = {.msg_control = control, .msg_controllen = sizeof control};
        ssize_t n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR) {
            return;
        }
        if (n >= 0) {
            take_sent(s, &m);
        }
    }
}

long
stamps_receive(struct stamps *s, int fd, char *to, size_t room)
{
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
    struct iovec v = {to, room};
    struct msghdr m;
    ssize_t n;
    do {
        m = (struct msghdr){.msg_iov = &v,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
        n = recvmsg(fd, &m, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    s->received_at = 0;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    for (; c != NULL; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
            s->received_at = ns_of(s, c);
        }
    }
    return n;
}

bool
stamps_between(struct stamps *s, uint64_t begin, nsec_t *between)
{
    /* Requests are answered in their order, sends that end before this one are over. */
    while (s->count > 0 &&
           (int32_t)(s->sent[s->first % STAMPS_KEPT].last_byte - (uint32_t)begin) < 0) {
        s->first++;
        s->count--;
    }
    nsec_t at = s->count > 0 ? s->sent[s->first % STAMPS_KEPT].at : 0;
    if (at == 0 || s->received_at < at) {
        return false;
    }
    *between = s->received_at - at;
    return true;
}

const char *
stamps_card(const char *interface)
{
    struct hwtstamp_config config = {.tx_type = HWTSTAMP_TX_ON,
                                     .rx_filter = HWTSTAMP_FILTER_ALL};
    struct ifreq request = {.ifr_data = (char *)&config};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd == -1) {
        return strerror(errno);
    }
    memcpy(request.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
    const char *why = ioctl(fd, SIOCSHWTSTAMP, &request) == 0 ? NULL : strerror(errno);
    close(fd);
    return why;
}
