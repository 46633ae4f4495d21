/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "control/balancer.h"

#include <event2/event.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "net/migrate.h"
#include "net/worker.h"
#include "place/cpustat.h"
#include "place/pinner.h"
#include "place/threadstat.h"

#define CPUS_TEXT_MAX (128 * 1024) /* lines of a thousand CPUs */

static void
take_samples(struct balancer *b)
{
    for (unsigned i = 0; i < b->policy.count; i++) {
        const struct worker *w = &b->shared->workers[i];
        struct threadstat times;
        threadstat_reread_times(b->schedstats[i], &times);
        b->samples[i] = (struct balance_sample){
            .busy_ns = b->has_run_times ? times.run_ns : ctr_get(&w->core.ctr.busy_ns),
            .wait_ns = times.wait_ns,
            .run_ns = times.run_ns,
            .cpu = pinner_cpu(b->shared->pinner, i),
            .given = ctr_get(&w->migrate.given),
            .delay_ns = ctr_get(&w->core.latency.delay_ns),
            .delays = ctr_get(&w->core.latency.delays),
            .conns = atomic_load_explicit(&b->shared->loads[i], memory_order_relaxed),
        };
    }
}

/* What the CPUs have done; a file that is long on a large machine, so only when it counts. */
static void
sample_cpus(struct balancer *b)
{
    size_t len = 0;
    ssize_t n;
    if (b->cpustat < 0 || !crowd_wants_used(&b->policy.crowd)) {
        return;
    }
    while ((n = pread(b->cpustat, b->text + len, CPUS_TEXT_MAX - 1 - len, (off_t)len)) >
           0) {
        len += (size_t)n;
    }
    b->text[len] = '\0';
    for (unsigned i = 0; i < b->policy.count; i++) {
        struct cpustat stat;
        if (b->samples[i].cpu >= 0 && cpustat_parse(b->text, b->samples[i].cpu, &stat)) {
            b->samples[i].used_ns = (stat.busy + stat.stolen) * b->tick_ns;
        }
    }
}

/* New connections and an operator should know. */
static void
publish_crowded(const struct balancer *b)
{
    for (unsigned i = 0; i < b->policy.count; i++) {
        const struct crowd_worker *c = &b->policy.crowd.workers[i];
        if (!c->has_changed) {
            continue;
        }
        steer_map_exclude(&b->shared->steer, i, c->is_crowded);
        log_write(LOG_WARNING,
                  "balance: CPU %d of worker %u is %s (others use %.0f %% of it)",
                  b->samples[i].cpu, i, c->is_crowded ? "crowded" : "free again",
                  100 * c->others);
    }
}

static void
publish_loads(const struct balancer *b)
{
    for (unsigned i = 0; i < b->policy.count; i++) {
        uint32_t milli = (uint32_t)(balance_load(&b->policy, i) * 1000);
        atomic_store_explicit(&b->shared->workers[i].migrate.load_milli, milli,
                              memory_order_relaxed);
    }
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct balancer *b = arg;
    struct balance_move move;
    take_samples(b);
    sample_cpus(b);
    enum balance_advice advice = balance_step(&b->policy, b->samples, clock_now(), &move);
    publish_loads(b);
    publish_crowded(b);
    if (advice == BALANCE_WATCH) {
        worker_order(&b->shared->workers[move.from], ORDER_WATCH);
    } else if (advice == BALANCE_MOVE) {
        migrate_order(b->shared, &move);
    } else if (b->shared->calls_home) {
        net_shared_map(b->shared); /* also without new connections */
        workers_order(b->shared->workers, b->policy.count, ORDER_HOME);
    }
}

bool
balancer_start(struct balancer *b, struct net_shared *shared, struct event_base *base)
{
    unsigned count = shared->worker_count;
    b->samples = calloc(count, sizeof b->samples[0]);
    b->schedstats = calloc(count, sizeof b->schedstats[0]);
    b->text = malloc(CPUS_TEXT_MAX);
    if (b->samples == NULL || b->schedstats == NULL || b->text == NULL ||
        !balance_init(&b->policy, count)) {
        free(b->samples);
        free(b->schedstats);
        free(b->text);
        return false;
    }
    b->cpustat = open(CPUSTAT_PATH, O_RDONLY | O_CLOEXEC);
    b->tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
    b->has_run_times = shared->busy_poll.usecs == 0;
    for (unsigned i = 0; i < count; i++) {
        struct threadstat times;
        b->schedstats[i] = threadstat_open_times(atomic_load(&shared->workers[i].tid));
        threadstat_reread_times(b->schedstats[i], &times);
        b->has_run_times &= times.run_ns > 0;
    }
    b->shared = shared;
    if (!b->has_run_times) {
        atomic_store_explicit(&shared->core.times_passes, true, memory_order_relaxed);
    }
    struct timeval window = {.tv_usec = BALANCE_WINDOW_NS / NSEC_PER_USEC};
    must(event_assign(&b->tick, base, -1, EV_PERSIST, on_tick, b) == 0);
    if (event_add(&b->tick, &window) != 0) {
        balancer_stop(b);
        return false;
    }
    return true;
}

void
balancer_stop(struct balancer *b)
{
    if (b->shared == NULL) {
        return;
    }
    event_del(&b->tick);
    for (unsigned i = 0; i < b->policy.count; i++) {
        if (b->schedstats[i] >= 0) {
            close(b->schedstats[i]);
        }
    }
    if (b->cpustat >= 0) {
        close(b->cpustat);
    }
    free(b->samples);
    free(b->schedstats);
    free(b->text);
    balance_fini(&b->policy);
    b->shared = NULL;
}

void
balancer_rebalance(struct net_shared *shared)
{
    unsigned count = shared->worker_count;
    double *loads = calloc(count, sizeof *loads);
    unsigned *conns = calloc(count, sizeof *conns);
    struct balance_move move;
    for (unsigned i = 0; i < count && loads != NULL && conns != NULL; i++) {
        loads[i] = (double)atomic_load_explicit(&shared->workers[i].migrate.load_milli,
                                                memory_order_relaxed) /
                   1000;
        conns[i] = atomic_load_explicit(&shared->loads[i], memory_order_relaxed);
    }
    if (loads != NULL && conns != NULL && balance_force(loads, conns, count, &move)) {
        migrate_order(shared, &move);
    }
    free(loads);
    free(conns);
}
