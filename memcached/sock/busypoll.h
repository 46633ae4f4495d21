/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Busy polling (--busy-poll): a worker that has nothing to do asks the network card for a
 * while before it sleeps. The kernel keeps the setting with the epoll descriptor.
 *
 * Suspended interrupts (--irq-suspend): the worker prefers to poll, and as long as it finds
 * work at each poll the card's interrupts stay off. For how long they may is a setting of the
 * card's queues, which is the administrator's.
 */
#pragma once

#include "base/must.h"

struct busypoll {
    uint32_t usecs;  /* 0: off */
    uint16_t budget; /* packets at a time; 0: the kernel's own */
    bool prefers;    /* interrupts may be suspended */
};

#define BUSYPOLL_SUSPEND_BUDGET 64 /* the most that needs no privilege */

/* Parses "50", "50:64". NULL, or what is wrong. */
must_check const char *busypoll_parse(void *to, const char *text);

/* Sets it on an epoll descriptor, and reads it back. 0, or the errno; ENOTTY: a kernel before
 * 6.9. */
must_check int busypoll_apply(const struct busypoll *b, int epoll_fd);

/* What of suspended interrupts is the administrator's to do is written to the log, or that the
 * kernel has none. */
void busypoll_advise(const struct busypoll *b);

/* Does a kernel of this release, as uname tells it, suspend interrupts? 6.13 or later. */
must_check bool busypoll_can_suspend(const char *release);
