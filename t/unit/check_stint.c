/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long a worker works without a rest, on invented time, and what it sees of another one that waits for
 * its CPU: a thread of this test.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "check_main.h"
#include "net/stint.h"
#include "place/threadstat.h"

#define US NSEC_PER_USEC
#define START NSEC_PER_SEC

TEST(stint_begins_after_a_rest)
{
    struct stint s = {.poll_fd = -1};
    ck_assert(!stint_is_long(&s, START, true)); /* its first pass: it has slept */
    for (nsec_t at = 50; at < 500; at += 50) {
        ck_assert(!stint_is_long(&s, START + at * US, true));
    }
    ck_assert(stint_is_long(&s, START + 500 * US, true));
    ck_assert(stint_is_long(&s, START + 600 * US, true));  /* nobody has ended it */
    ck_assert(!stint_is_long(&s, START + 701 * US, true)); /* it slept */
    ck_assert(!stint_is_long(&s, START + 800 * US, true));
    ck_assert(stint_is_long(&s, START + 1201 * US, false));
}

TEST(a_pass_with_work_left_is_no_rest)
{
    struct stint s = {.poll_fd = -1};
    ck_assert(!stint_is_long(&s, START, true));
    ck_assert(!stint_is_long(&s, START + 499 * US, false));
    ck_assert(stint_is_long(&s, START + 998 * US, false));
}

/* ---- another one waits ----------------------------------------------------------------- */

static _Atomic bool is_over;
static _Atomic pid_t tid;

static void *
work(void *unused)
{
    (void)unused;
    atomic_store(&tid, gettid());
    while (!atomic_load(&is_over)) {
    }
    return NULL;
}

static void
stay_on_this_cpu(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    ck_assert_int_eq(sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

#define LATE (START + STINT_LONG_NS)

/* Of two workers the first one has worked until then. */
static bool
ends(struct stint *stints, unsigned count)
{
    atomic_store(&stints[0].last, LATE);
    return stint_end(stints, count, 0);
}

TEST(it_gives_way_to_one_that_waits_for_its_cpu)
{
    pthread_t thread;
    struct stint *stints = stints_create(2);
    ck_assert_ptr_nonnull(stints);
    int fd = eventfd(0, EFD_NONBLOCK);
    stint_start(&stints[0], fd);
    stay_on_this_cpu();
    ck_assert_int_eq(pthread_create(&thread, NULL, work, NULL), 0); /* on the same one */
    while (atomic_load(&tid) == 0) {
        sched_yield();
    }
    stint_start(&stints[1], fd);
    atomic_store(&stints[1].tid, atomic_load(&tid));
    atomic_store(&stints[1].last, START);
    ck_assert(threadstat_waits_for(atomic_load(&tid), sched_getcpu()));
    ck_assert(!ends(stints, 2)); /* that one runs, but has nothing to do for clients */
    ck_assert_int_eq(eventfd_write(fd, 1), 0);
    ck_assert(ends(stints, 2));
    ck_assert_uint_eq(ctr_get(&stints[0].gave_way), 1);
    ck_assert_uint_eq(stints[0].since, LATE);
    atomic_store(&stints[1].last, START + 1); /* it had its CPU a moment ago */
    ck_assert(!ends(stints, 2));
    atomic_store(&stints[1].last, START);
    ck_assert(!ends(stints, 1));
    stint_stop(&stints[1]);
    ck_assert(!ends(stints, 2));
    atomic_store(&stints[1].poll_fd, fd);
    ck_assert(ends(stints, 2));
    atomic_store(&is_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(!ends(stints, 2)); /* it is gone */
    ck_assert_uint_eq(ctr_get(&stints[0].gave_way), 2);
    close(fd);
    free(stints);
}
