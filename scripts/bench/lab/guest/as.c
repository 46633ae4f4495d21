/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * `as POLICY PROGRAM [ARGUMENT...]` becomes the program, `as POLICY -t TID` changes a thread:
 * default, nice:N, fifo:PRIORITY, slice:US, warp:US (patches/linux-6.1-bvt), or
 * deadline:RUNTIME_US/DEADLINE_US/PERIOD_US, which is a real-time priority with a quota. Ends with status 3 if the kernel took the policy and forgot it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_US 1000
#define IGNORED 3

enum { OTHER = 0, FIFO = 1, DEADLINE = 6 };

/* struct sched_attr of the kernel, first version. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static int
parse(const char *text, struct attr *attr)
{
    unsigned long long runtime, deadline, period;
    *attr = (struct attr){.size = sizeof *attr, .policy = OTHER};
    if (strcmp(text, "default") == 0 || sscanf(text, "nice:%d", &attr->nice) == 1) {
        return 0;
    }
    if (sscanf(text, "fifo:%u", &attr->priority) == 1) {
        attr->policy = FIFO;
        return 0;
    }
    if (sscanf(text, "slice:%llu", &runtime) == 1) {
        attr->runtime = runtime * NS_PER_US;
        return 0;
    }
    if (sscanf(text, "deadline:%llu/%llu/%llu", &runtime, &deadline, &period) == 3) {
        attr->policy = DEADLINE;
        attr->flags = 1; /* SCHED_FLAG_RESET_ON_FORK: it cannot fork else */
        attr->runtime = runtime * NS_PER_US;
        attr->deadline = deadline * NS_PER_US;
        attr->period = period * NS_PER_US;
        return 0;
    }
    return -1;
}

/* False: errno says why not. */
static int
warp(pid_t tid, unsigned long long us)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/sched_warp_ns", tid != 0 ? tid : getpid());
    FILE *file = fopen(path, "w");
    return file != NULL && fprintf(file, "%llu", us * NS_PER_US) > 0 && fclose(file) == 0;
}

int
main(int argc, char **argv)
{
    struct attr attr, seen = {.size = sizeof seen};
    unsigned long long us;
    int is_warp = argc >= 3 && sscanf(argv[1], "warp:%llu", &us) == 1;
    if (argc < 3 || (!is_warp && parse(argv[1], &attr) != 0)) {
        fprintf(stderr, "usage: as default|nice:N|fifo:P|slice:US|warp:US|deadline:R/D/P "
                        "PROGRAM...|-t TID\n");
        return 1;
    }
    pid_t tid = strcmp(argv[2], "-t") == 0 && argc == 4 ? atoi(argv[3]) : 0;
    if (is_warp) {
        attr = (struct attr){.size = sizeof attr};
        if (!warp(tid, us)) {
            fprintf(stderr, "as %s: %s\n", argv[1], strerror(errno));
            return 1;
        }
    } else if (strcmp(argv[1], "default") != 0 &&
               (syscall(SYS_sched_setattr, tid, &attr, 0) != 0 ||
                syscall(SYS_sched_getattr, tid, &seen, sizeof seen, 0) != 0)) {
        fprintf(stderr, "as %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    if (attr.runtime != 0 && seen.runtime != attr.runtime) {
        fprintf(stderr, "as %s: the kernel ignores it\n", argv[1]);
        return IGNORED;
    }
    if (tid != 0) {
        return 0;
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 1;
}
