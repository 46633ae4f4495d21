/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/stint.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "place/threadstat.h"

/* At a time, so that a look stays short: workers, and files of the kernel, of 5 us each. */
#define ASKED_MOST 16
#define READ_MOST 2

struct stint *
stints_create(unsigned count)
{
    struct stint *all = aligned_alloc(_Alignof(struct stint), count * sizeof *all);
    for (unsigned i = 0; all != NULL && i < count; i++) {
        all[i] = (struct stint){.poll_fd = -1};
    }
    return all;
}

void
stint_start(struct stint *s, int poll_fd)
{
    /* The kernel lets a sleep last 50 us longer by default, for the sake of others. */
    (void)!prctl(PR_SET_TIMERSLACK, 1UL);
    atomic_store(&s->tid, gettid());
    atomic_store(&s->poll_fd, poll_fd);
}

void
stint_stop(struct stint *s)
{
    atomic_store(&s->poll_fd, -1);
}

/* Has not come to its work, if it has any, for as long as a long stint. */
static bool
is_late(struct stint *s, nsec_t now)
{
    return atomic_load_explicit(&s->last, memory_order_relaxed) + STINT_LONG_NS <= now;
}

/* Where there are many it begins with another one each time. */
static bool
is_waited_for(struct stint *stints, unsigned count, unsigned self, nsec_t now)
{
    struct pollfd asked[ASKED_MOST] = {{.fd = -1}};
    pid_t tids[ASKED_MOST];
    nfds_t n = 0;
    for (unsigned i = 0; i < count && n < ASKED_MOST; i++) {
        struct stint *other = &stints[(now / STINT_LONG_NS + i) % count];
        if (other != &stints[self] && is_late(other, now)) {
            int fd = atomic_load_explicit(&other->poll_fd, memory_order_relaxed);
            asked[n] = (struct pollfd){.fd = fd, .events = POLLIN};
            tids[n++] = atomic_load_explicit(&other->tid, memory_order_relaxed);
        }
    }
    int left = n > 0 ? poll(asked, n, 0) : 0;
    left = left < READ_MOST ? left : READ_MOST;
    for (nfds_t i = 0; left > 0 && i < n; i++) {
        if ((asked[i].revents & POLLIN) != 0) {
            if (threadstat_waits_for(tids[i], sched_getcpu())) {
                return true;
            }
            left--;
        }
    }
    return false;
}

bool
stint_end(struct stint *stints, unsigned count, unsigned self)
{
    struct stint *s = &stints[self];
    s->since = atomic_load_explicit(&s->last, memory_order_relaxed);
    if (!is_waited_for(stints, count, self, s->since)) {
        return false;
    }
    const struct timespec nap = {.tv_nsec = STINT_NAP_NS};
    ctr_add(&s->gave_way, 1);
    (void)!clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL); /* a signal may end it */
    return true;
}
