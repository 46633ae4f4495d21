/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/reuseport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define TRIAL_CPUS 8 /* that are tried, of the workers' */
#define TRIAL_TRIES 2
#define TRIAL_WAIT_MS 100

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

bool
reuseport_join(int fd, enum reuseport_kind kind, const struct steer_map *map,
               unsigned worker)
{
    int one = 1;
    int cpu = atomic_load_explicit(&map->cpus[worker], memory_order_relaxed);
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0 &&
           (kind != REUSEPORT_CPU || cpu < 0 || steer_listener(fd, cpu));
}

bool
reuseport_seal(int fd, enum reuseport_kind kind, const struct steer_map *map)
{
    return kind != REUSEPORT_TABLE || steer_attach(fd, map);
}

bool
reuseport_move(int fd, enum reuseport_kind kind, const struct steer_map *map,
               unsigned worker)
{
    if (kind == REUSEPORT_CPU) {
        return steer_listener(
            fd, atomic_load_explicit(&map->cpus[worker], memory_order_relaxed));
    }
    return reuseport_seal(fd, kind, map);
}

/* ---- trying it out -------------------------------------------------------------------- */

/* A group on the loopback address, a listener for each of a few CPUs. */
struct trial {
    struct steer_map map;
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
    for (unsigned i = 0; i < t->map.count; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        t->fds[i] = fd;
        if (fd < 0 ||
            (i > 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) ||
            bind(fd, (struct sockaddr *)&t->addr, sizeof t->addr) != 0 ||
            getsockname(fd, (struct sockaddr *)&t->addr, &len) != 0 ||
            !reuseport_join(fd, kind, &t->map, i) || listen(fd, TRIAL_TRIES) != 0) {
            return false;
        }
    }
    return reuseport_seal(t->fds[0], kind, &t->map);
}

static bool
move_to(int cpu, cpu_set_t *set, size_t size)
{
    CPU_ZERO_S(size, set);
    CPU_SET_S((unsigned)cpu, size, set);
    return sched_setaffinity(0, size, set) == 0;
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
    for (unsigned i = 0; i < t->map.count; i++) {
        pollfds[i] = (struct pollfd){.fd = t->fds[i], .events = POLLIN};
    }
    bool is_right = false;
    if (poll(pollfds, t->map.count, TRIAL_WAIT_MS) > 0) {
        is_right = pollfds[wanted].revents != 0;
        for (unsigned i = 0; i < t->map.count; i++) {
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
    cpu_set_t *old = CPU_ALLOC(PIN_CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(PIN_CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(PIN_CPUS_MAX);
    bool is_good = old != NULL && set != NULL && sched_getaffinity(0, size, old) == 0;
    bool is_moved = is_good;
    for (unsigned i = 0; is_good && i < t->map.count; i++) {
        if (!move_to(t->map.cpus[i], set, size)) {
            continue;
        }
        for (unsigned try = 0; is_good && try < TRIAL_TRIES; try++) {
            is_good = connects_to(t, i);
        }
    }
    if (is_moved && sched_setaffinity(0, size, old) != 0) {
        log_write(LOG_WARNING, "memcached: warning: the main thread stays on one CPU");
    }
    CPU_FREE(old);
    CPU_FREE(set);
    return is_good;
}

bool
reuseport_works(const struct steer_map *map, enum reuseport_kind kind)
{
    struct pin_place places[TRIAL_CPUS];
    unsigned count = 0;
    struct trial t;
    for (unsigned i = 0; i < map->count && count < TRIAL_CPUS; i++) {
        bool is_new = map->cpus[i] >= 0;
        for (unsigned j = 0; j < count; j++) {
            is_new &= places[j].cpu != map->cpus[i];
        }
        if (is_new) {
            places[count++] = (struct pin_place){.cpu = map->cpus[i]};
        }
    }
    if (!steer_map_init(&t.map, places, count, NULL, 0)) {
        return false;
    }
    bool is_good = open_trial(&t, kind) && passes(&t);
    close_trial(&t);
    steer_map_fini(&t.map);
    return is_good;
}

enum reuseport_kind
reuseport_choose(const struct steer_map *map)
{
    if (!steer_map_is_pinned(map)) {
        log_write(LOG_WARNING, "memcached: warning: --steer=reuseport without --pin: the "
                               "kernel deals connections out by their hash");
        return REUSEPORT_HASH;
    }
    if (reuseport_works(map, REUSEPORT_CPU)) {
        return REUSEPORT_CPU;
    }
    if (reuseport_works(map, REUSEPORT_TABLE)) {
        log_write(LOG_WARNING, "memcached: this kernel does not keep to the CPU of a "
                               "listener (SO_INCOMING_CPU); a program does it (cbpf)");
        return REUSEPORT_TABLE;
    }
    log_write(LOG_WARNING,
              "memcached: warning: this kernel does not steer connections to "
              "the listeners of a CPU; --steer=cpu instead");
    return REUSEPORT_NONE;
}
