/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Two threads, each on a CPU of its own, wake each other in turn: an interrupt to reschedule and a
 * choice of the scheduler each time. `pingpong CPU CPU SECONDS`; work: wake-ups. Prints turns=, those of
 * each thread, and switches=, waits in which a thread gave its CPU up.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "antagonist.h"

enum { OVER = 2 };

/* Whose turn it is: 0, 1 or OVER. */
static atomic_int turn;
static int cpus[2];
static uint64_t wakes[2];

static void
futex(int operation, int value)
{
    syscall(SYS_futex, &turn, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void
stay_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        fail("sched_setaffinity");
    }
}

static void *
play(void *arg)
{
    int self = *(int *)arg;
    stay_on(cpus[self]);
    for (;;) {
        int whose = atomic_load(&turn);
        if (whose == OVER) {
            return NULL;
        }
        if (whose != self) {
            futex(FUTEX_WAIT, whose);
            continue;
        }
        atomic_store(&turn, goes_on() ? 1 - self : OVER);
        futex(FUTEX_WAKE, 1);
        wakes[self]++;
    }
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        usage("pingpong CPU CPU SECONDS");
    }
    cpus[0] = atoi(argv[1]);
    cpus[1] = atoi(argv[2]);
    int numbers[2] = {0, 1};
    pthread_t other;
    begin(argv[3]);
    if (pthread_create(&other, NULL, play, &numbers[1]) != 0) {
        fail("pthread_create");
    }
    play(&numbers[0]);
    pthread_join(other, NULL);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    finish(wakes[0] + wakes[1], "turns=%llu/%llu switches=%ld",
           (unsigned long long)wakes[0], (unsigned long long)wakes[1], usage.ru_nvcsw);
    return 0;
}
