/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/reuseport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpumask.h"
#include "base/log.h"

#define TRIAL_CPUS 8 /* that are tried, of the workers' */
#define TRIAL_TRIES 2
#define TRIAL_WAIT_MS 100
#define PROGRAM_MAX 4096
#define LINES_PER_WORKER 2

static const char *const kind_names[] = {
    [REUSEPORT_NONE] = "none",
    [REUSEPORT_CPU] = "incoming_cpu",
    [REUSEPORT_TABLE] = "cbpf",
    [REUSEPORT_HASH] = "hash",
};

const char *
reuseport_kind_name(enum reuseport_kind kind)
{
    must((unsigned)kind < sizeof kind_names / sizeof kind_names[0]);
    return kind_names[kind];
}

static int
cpu_of(const _Atomic int *cpus, unsigned worker)
{
    return atomic_load_explicit(&cpus[worker], memory_order_relaxed);
}

/* ---- the table ------------------------------------------------------------------------ */

/* For each CPU with workers: jump on if it is another; a random number below the number of
 * its workers; the worker of that number. At the end the CPU's number modulo all. */
static unsigned
write_program(const _Atomic int *cpus, unsigned count, struct sock_filter *program)
{
    unsigned n = 0;
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                (uint32_t)(SKF_AD_OFF + SKF_AD_CPU));
    for (unsigned first = 0; first < count; first++) {
        int cpu = cpu_of(cpus, first);
        unsigned same[UINT8_MAX / LINES_PER_WORKER - 1], sharers = 0;
        bool is_done = cpu < 0;
        for (unsigned i = 0; i < count && sharers < sizeof same / sizeof same[0]; i++) {
            if (cpu_of(cpus, i) == cpu) {
                same[sharers++] = i;
            }
            is_done |= i < first && cpu_of(cpus, i) == cpu;
        }
        if (is_done || n + (sharers + 2) * LINES_PER_WORKER > PROGRAM_MAX) {
            continue;
        }
        program[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)cpu, 0,
                                         (uint8_t)(LINES_PER_WORKER * (sharers + 1) - 1));
        program[n++] = (struct sock_filter)BPF_STMT(
            BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM));
        program[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, sharers);
        for (unsigned i = 0; i + 1 < sharers; i++) {
            program[n++] =
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, i, 0, 1);
            program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, same[i]);
        }
        program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, same[sharers - 1]);
    }
    program[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
    return n;
}

/* Makes the kernel choose among the listeners of fd's group, which were bound in the order of
 * the workers, by a table of the workers' CPUs. False with errno. */
static bool
attach_table(int fd, const _Atomic int *cpus, unsigned count)
{
    struct sock_filter *program = calloc(PROGRAM_MAX, sizeof *program);
    if (program == NULL) {
        errno = ENOMEM;
        return false;
    }
    struct sock_fprog all = {.len = (uint16_t)write_program(cpus, count, program),
                             .filter = program};
    int rc = setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &all, sizeof all);
    int error = errno;
    free(program);
    errno = error;
    return rc == 0;
}

/* ---- groups --------------------------------------------------------------------------- */

static bool
tie_to_cpu(int fd, int cpu)
{
    return setsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof cpu) == 0;
}

bool
reuseport_join(int fd, enum reuseport_kind kind, int cpu)
{
    int one = 1;
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0 &&
           (kind != REUSEPORT_CPU || cpu < 0 || tie_to_cpu(fd, cpu));
}

bool
reuseport_seal(int fd, enum reuseport_kind kind, const _Atomic int *cpus, unsigned count)
{
    return kind != REUSEPORT_TABLE || attach_table(fd, cpus, count);
}

bool
reuseport_move(int fd, enum reuseport_kind kind, const _Atomic int *cpus, unsigned count,
               unsigned worker)
{
    must(worker < count);
    return kind == REUSEPORT_CPU ? tie_to_cpu(fd, cpu_of(cpus, worker))
                                 : reuseport_seal(fd, kind, cpus, count);
}

/* ---- trying it out -------------------------------------------------------------------- */

/* A group on the loopback address, a listener for each of a few CPUs. */
struct trial {
    _Atomic int cpus[TRIAL_CPUS];
    unsigned count;
    int fds[TRIAL_CPUS];
    struct sockaddr_in addr;
};

static void
close_trial(struct trial *t)
{
    for (unsigned i = 0; i < TRIAL_CPUS; i++) {
        if (t->fds[i] >= 0) {
            close(t->fds[i]);
        }
    }
}

static bool
open_trial(struct trial *t, enum reuseport_kind kind)
{
    int one = 1;
    socklen_t len = sizeof t->addr;
    t->addr = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (unsigned i = 0; i < TRIAL_CPUS; i++) {
        t->fds[i] = -1;
    }
    for (unsigned i = 0; i < t->count; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        t->fds[i] = fd;
        if (fd < 0 ||
            (i > 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) ||
            bind(fd, (struct sockaddr *)&t->addr, sizeof t->addr) != 0 ||
            getsockname(fd, (struct sockaddr *)&t->addr, &len) != 0 ||
            !reuseport_join(fd, kind, cpu_of(t->cpus, i)) ||
            listen(fd, TRIAL_TRIES) != 0) {
            return false;
        }
    }
    return reuseport_seal(t->fds[0], kind, t->cpus, t->count);
}

/* A connection from this CPU: did listener `wanted` get it? */
static bool
connects_to(const struct trial *t, unsigned wanted)
{
    struct pollfd pollfds[TRIAL_CPUS];
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client < 0) {
        return false;
    }
    /* To oneself this is done at once, by this CPU; EINPROGRESS is seen to below. */
    (void)!connect(client, (const struct sockaddr *)&t->addr, sizeof t->addr);
    for (unsigned i = 0; i < t->count; i++) {
        pollfds[i] = (struct pollfd){.fd = t->fds[i], .events = POLLIN};
    }
    bool is_right = false;
    if (poll(pollfds, t->count, TRIAL_WAIT_MS) > 0) {
        is_right = pollfds[wanted].revents != 0;
        for (unsigned i = 0; i < t->count; i++) {
            int fd = pollfds[i].revents != 0 ? accept(t->fds[i], NULL, NULL) : -1;
            if (fd >= 0) {
                close(fd);
            }
        }
    }
    close(client);
    return is_right;
}

/* A CPU that this thread may not go to is passed over. */
static bool
passes(const struct trial *t)
{
    struct cpumask before;
    if (cpumask_read(0, &before) != 0) {
        return false;
    }
    bool is_good = true;
    for (unsigned i = 0; is_good && i < t->count; i++) {
        struct cpumask one = {0};
        cpumask_add(&one, (unsigned)cpu_of(t->cpus, i));
        int error = cpumask_bind(0, &one);
        bool is_there = error == 0 || error == ENOTSUP; /* it may be there by chance */
        for (unsigned try = 0; is_there && is_good && try < TRIAL_TRIES; try++) {
            is_good = connects_to(t, i);
        }
    }
    if (cpumask_bind(0, &before) != 0) {
        log_write(LOG_WARNING, "memcached: warning: the main thread stays on one CPU");
    }
    return is_good;
}

bool
reuseport_works(const _Atomic int *cpus, unsigned count, enum reuseport_kind kind)
{
    struct trial t = {.count = 0};
    for (unsigned i = 0; i < count && t.count < TRIAL_CPUS; i++) {
        int cpu = cpu_of(cpus, i);
        bool is_new = cpu >= 0;
        for (unsigned j = 0; j < t.count; j++) {
            is_new &= cpu_of(t.cpus, j) != cpu;
        }
        if (is_new) {
            atomic_init(&t.cpus[t.count++], cpu);
        }
    }
    bool is_good = open_trial(&t, kind) && passes(&t);
    close_trial(&t);
    return is_good;
}

static bool
is_any_pinned(const _Atomic int *cpus, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (cpu_of(cpus, i) >= 0) {
            return true;
        }
    }
    return false;
}

enum reuseport_kind
reuseport_choose(const _Atomic int *cpus, unsigned count)
{
    if (!is_any_pinned(cpus, count)) {
        log_write(LOG_WARNING, "memcached: warning: --steer=reuseport without --pin: the "
                               "kernel deals connections out by their hash");
        return REUSEPORT_HASH;
    }
    if (reuseport_works(cpus, count, REUSEPORT_CPU)) {
        return REUSEPORT_CPU;
    }
    if (reuseport_works(cpus, count, REUSEPORT_TABLE)) {
        log_write(LOG_WARNING, "memcached: this kernel does not keep to the CPU of a "
                               "listener (SO_INCOMING_CPU); a program does it (cbpf)");
        return REUSEPORT_TABLE;
    }
    log_write(LOG_WARNING,
              "memcached: warning: this kernel does not steer connections to "
              "the listeners of a CPU; --steer=cpu instead");
    return REUSEPORT_NONE;
}
