/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/busypoll.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>

#include "base/log.h"
#include "base/num.h"

/* struct epoll_params of linux/eventpoll.h, since 6.9. */
struct params {
    uint32_t usecs;
    uint16_t budget;
    uint8_t prefers;
    uint8_t pad;
};
#define SET_PARAMS _IOW(0x8A, 0x01, struct params)
#define GET_PARAMS _IOR(0x8A, 0x02, struct params)

const char *
busypoll_parse(void *to, const char *text)
{
    struct busypoll *b = to;
    size_t len = strcspn(text, ":");
    uint32_t usecs, budget = 0;
    if (!num_u32(text, len, &usecs) || usecs > INT32_MAX) {
        return "busy-poll must be usecs[:budget], such as 50 or 50:64";
    }
    if (text[len] == ':' && (!num_u32(text + len + 1, strlen(text + len + 1), &budget) ||
                             budget == 0 || budget > UINT16_MAX)) {
        return "busy-poll: the budget is a number of packets from 1 to 65535";
    }
    b->usecs = usecs;
    b->budget = (uint16_t)budget;
    return NULL;
}

int
busypoll_apply(const struct busypoll *b, int epoll_fd)
{
    struct params wanted = {.usecs = b->usecs, .budget = b->budget};
    struct params now = {0};
    if (b->usecs == 0 && !b->prefers) {
        return 0;
    }
    if (b->prefers) {
        wanted.prefers = 1;
        wanted.budget = b->budget != 0 ? b->budget : BUSYPOLL_SUSPEND_BUDGET;
    }
    if (ioctl(epoll_fd, SET_PARAMS, &wanted) != 0 ||
        ioctl(epoll_fd, GET_PARAMS, &now) != 0) {
        return errno;
    }
    bool is_kept = now.usecs == wanted.usecs && now.budget == wanted.budget &&
                   now.prefers == wanted.prefers;
    return is_kept ? 0 : ENOTSUP;
}

bool
busypoll_can_suspend(const char *release)
{
    uint32_t major, minor;
    size_t len = strspn(release, "0123456789");
    if (!num_u32(release, len, &major) || release[len] != '.') {
        return false;
    }
    release += len + 1;
    len = strspn(release, "0123456789");
    return num_u32(release, len, &minor) && (major > 6 || (major == 6 && minor >= 13));
}

void
busypoll_advise(const struct busypoll *b)
{
    struct utsname name;
    if (!b->prefers) {
        return;
    }
    must(uname(&name) == 0);
    if (!busypoll_can_suspend(name.release)) {
        log_write(
            LOG_WARNING,
            "memcached: warning: --irq-suspend: Linux %s suspends no interrupts, it "
            "takes 6.13",
            name.release);
        return;
    }
    log_write(
        LOG_WARNING,
        "memcached: --irq-suspend: the card's queues need it, too: for each id of "
        "\"ynl --family netdev --dump napi-get\": ynl --family netdev --do napi-set "
        "--json '{\"id\": ID, \"defer-hard-irqs\": 100, \"gro-flush-timeout\": "
        "200000, \"irq-suspend-timeout\": 20000000}'");
}
