/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into the server, has the kernel refuse chosen system calls, as a sandbox does: a
 * seccomp filter, so that calls of all threads and those beneath the C library are met.
 * $REFUSE is a list such as "sched_setaffinity=1,setsockopt:2:49=92": the call, if wanted the
 * number of an argument and its value (the lower 32 bits), and the errno.
 *
 * Ends the process with status 77 where there is no seccomp.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEPS_MAX 256
#define NO_SECCOMP 77

static const struct {
    const char *name;
    long number;
} calls[] = {
    {"capset", SYS_capset},
    {"clone", SYS_clone3}, /* of a thread */
    {"ioctl", SYS_ioctl},
    {"mbind", SYS_mbind},
    {"mlockall", SYS_mlockall},
    {"prctl", SYS_prctl},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"sched_getattr", SYS_sched_getattr},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"sched_setattr", SYS_sched_setattr},
    {"sched_setscheduler", SYS_sched_setscheduler},
    {"set_mempolicy", SYS_set_mempolicy},
    {"setgid", SYS_setgid},
    {"setgroups", SYS_setgroups},
    {"setpriority", SYS_setpriority},
    {"setrlimit", SYS_prlimit64},
    {"setsockopt", SYS_setsockopt},
    {"setuid", SYS_setuid},
};

static struct sock_filter steps[STEPS_MAX];
static unsigned short count;

static void
add(struct sock_filter step)
{
    if (count == STEPS_MAX) {
        abort();
    }
    steps[count++] = step;
}

static void
load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void
add_rule(const char *rule)
{
    char name[32];
    unsigned argument, value, error;
    int has_argument =
        sscanf(rule, "%31[a-z_]:%u:%u=%u", name, &argument, &value, &error) == 4;
    if (!has_argument && sscanf(rule, "%31[a-z_]=%u", name, &error) != 2) {
        abort();
    }
    size_t i = 0;
    while (strcmp(calls[i].name, name) != 0) {
        if (++i == sizeof calls / sizeof calls[0]) {
            abort();
        }
    }
    load(offsetof(struct seccomp_data, nr));
    uint8_t rest = has_argument ? 3 : 1;
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number,
                                     0, rest));
    if (has_argument) {
        load(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    }
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

__attribute__((constructor)) static void
begin(void)
{
    const char *rules = getenv("REFUSE");
    if (rules == NULL) {
        return;
    }
    char *list = strdup(rules);
    char *rest = list;
    for (char *rule; list != NULL && (rule = strsep(&rest, ",")) != NULL;) {
        add_rule(rule);
    }
    free(list);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {.len = count, .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(NO_SECCOMP);
    }
}
