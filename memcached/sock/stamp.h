/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Receiving with the kernel's timestamps, which the listeners turn on. The worker's thread.
 */
#pragma once

#include <stdalign.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "base/sojourn.h"

/* Where the kernel puts the stamp of a message. */
struct stamp_room {
    alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(struct timespec)) + 64];
};

/* Before a message is received: asks for its stamp, if there is room, and looks at the clocks. */
void stamp_prepare(struct stamp_room *room, struct msghdr *msg,
                   struct sojourn_times *times);
/* When it has been received. */
void stamp_take(struct msghdr *msg, struct sojourn_times *times);

/* As recv. Fills in all of *times but when the socket was reported ready. is_stamped: not of a UNIX
 * socket, which has no stamps: descriptors that a client passes would come in their place, and stay
 * open. */
ssize_t stamp_recv(int fd, bool is_stamped, void *to, size_t room,
                   struct sojourn_times *times);
/* The same of what is next in the socket; nothing is taken from it. */
void stamp_peek(int fd, bool is_stamped, struct sojourn_times *times);
