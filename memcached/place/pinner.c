/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/pinner.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "base/num.h"
#include "place/threadstat.h"

/* ---- planning ------------------------------------------------------------------------- */

/* Reads the topology when it is not known, or when it lacks a CPU: one has come on line. */
static bool
know_topology(struct pinner *p, const struct cpumask *cpus, char *err, size_t err_len)
{
    for (unsigned i = 0, missing = cpumask_count(cpus); i < p->all.count; i++) {
        missing -= cpumask_has(cpus, (unsigned)p->all.cpus[i].place.cpu);
        if (missing == 0) {
            return true;
        }
    }
    topo_fini(&p->all);
    return pin_topology(p->spec, cpus, &p->all, err, err_len);
}

/* Replaces the plan. Without one, no worker is pinned; false: there is no memory even for that,
 * and the old plan stays. */
static bool
make_plan(struct pinner *p, const struct cpumask *cpus)
{
    static const struct pin_spec none = {.policy = PIN_NONE};
    struct pin_plan plan;
    char err[PIN_LIST_LEN];
    p->why[0] = '\0';
    bool is_made =
        (know_topology(p, cpus, p->why, sizeof p->why) &&
         pin_plan_on(p->spec, p->count, &p->all, cpus, &plan, p->why, sizeof p->why)) ||
        pin_plan_within(&none, p->count, cpus, &plan, err, sizeof err);
    if (!is_made) {
        return false;
    }
    pin_plan_fini(&p->plan);
    p->plan = plan;
    p->planned = *cpus;
    for (unsigned i = 0; i < p->count; i++) {
        atomic_store_explicit(&p->workers[i].cpu, plan.places[i].cpu,
                              memory_order_relaxed);
    }
    return true;
}

bool
pinner_init(struct pinner *p, const struct pin_spec *spec, unsigned workers,
            const pthread_mutexattr_t *lock_attr)
{
    struct cpumask mask, cpuset;
    *p = (struct pinner){.spec = spec, .count = workers};
    PTHREAD_OK(pthread_mutex_init(&p->lock, lock_attr));
    p->workers = calloc(workers, sizeof p->workers[0]);
    errno = p->workers != NULL ? cpumask_read(0, &mask) : ENOMEM;
    if (errno != 0) {
        return false;
    }
    if (spec->policy == PIN_NONE || cpumask_read_cpuset(&cpuset) != 0) {
        cpuset = mask; /* what is known of it */
    }
    allowed_init(&p->allowed, &cpuset, &mask);
    struct cpumask cpus = allowed_cpus(&p->allowed);
    errno = ENOMEM;
    return make_plan(p, &cpus);
}

void
pinner_fini(struct pinner *p)
{
    pin_plan_fini(&p->plan);
    topo_fini(&p->all);
    free(p->workers);
    PTHREAD_OK(pthread_mutex_destroy(&p->lock));
}

/* ---- binding -------------------------------------------------------------------------- */

/* Where worker i belongs: its CPU, or all that are allowed. */
static struct cpumask
seat_of(const struct pinner *p, unsigned i)
{
    struct cpumask one = {0};
    if (p->plan.places[i].cpu < 0) {
        return p->planned;
    }
    cpumask_add(&one, (unsigned)p->plan.places[i].cpu);
    return one;
}

static bool
is_worker(const struct pinner *p, pid_t tid)
{
    for (unsigned i = 0; i < p->count; i++) {
        if (p->workers[i].tid == tid) {
            return true;
        }
    }
    return false;
}

/* When nothing is left over, the other threads run anywhere, but do not preempt a worker that
 * is running. Never SCHED_IDLE: they hold locks that workers wait for. */
static int
place_other(const struct pinner *p, pid_t tid)
{
    int wanted =
        p->plan.policy == PIN_NONE || p->plan.has_background ? SCHED_OTHER : SCHED_BATCH;
    int now = sched_getscheduler(tid);
    struct sched_param none = {0};
    if (now != wanted && (now == SCHED_OTHER || now == SCHED_BATCH)) {
        (void)sched_setscheduler(tid, wanted, &none);
    }
    return cpumask_bind(tid, &p->plan.background);
}

static void
place_others(struct pinner *p)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    uint32_t tid;
    p->background_errors = tasks == NULL;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        if (num_u32(entry->d_name, strlen(entry->d_name), &tid) &&
            !is_worker(p, (pid_t)tid)) {
            int error = place_other(p, (pid_t)tid);
            p->background_errors += error != 0 && error != ESRCH;
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    if (cpumask_read(getpid(), &p->allowed.bound) != 0) {
        p->allowed.bound = p->plan.background;
    }
}

static void
place_workers(struct pinner *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        struct cpumask seat = seat_of(p, i);
        if (p->workers[i].tid != 0) {
            p->workers[i].error = cpumask_bind(p->workers[i].tid, &seat);
        }
    }
}

int
pinner_join(struct pinner *p, unsigned i)
{
    struct pinner_worker *w = &p->workers[i];
    struct threadstat stat;
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    w->tid = gettid();
    w->error = pin_apply(&p->plan, i);
    threadstat_read(w->tid, &stat);
    w->migrations_before = stat.migrations;
    int error = w->error;
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
    return error;
}

void
pinner_settle(struct pinner *p)
{
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    if (p->plan.policy != PIN_NONE) {
        place_others(p);
    }
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
}

/* ---- watching ------------------------------------------------------------------------- */

/* How many workers are elsewhere. */
static unsigned
count_drifts(struct pinner *p)
{
    unsigned drifted = 0;
    for (unsigned i = 0; i < p->count; i++) {
        struct cpumask now, seat = seat_of(p, i);
        struct pinner_worker *w = &p->workers[i];
        bool has_drifted = w->tid != 0 && w->error == 0 &&
                           cpumask_read(w->tid, &now) == 0 &&
                           !cpumask_equals(&now, &seat);
        w->drifts += has_drifted;
        drifted += has_drifted;
    }
    return drifted;
}

/* Looks, and when it is forced to, or something is not as it was, plans and binds again: true.
 * Without memory for another plan the old one stays. */
static bool
watch(struct pinner *p, bool is_forced, unsigned *drifted)
{
    struct cpumask cpuset, mask;
    if (cpumask_read_cpuset(&cpuset) == 0 && cpumask_read(getpid(), &mask) == 0) {
        allowed_look(&p->allowed, &cpuset, &mask);
    }
    struct cpumask cpus = allowed_cpus(&p->allowed);
    *drifted = count_drifts(p);
    if ((!is_forced && *drifted == 0 && cpumask_equals(&cpus, &p->planned)) ||
        !make_plan(p, &cpus)) {
        return false;
    }
    p->replans++;
    place_workers(p);
    place_others(p);
    return true;
}

bool
pinner_check(struct pinner *p, char *line, size_t line_len)
{
    unsigned drifted;
    if (p->spec->policy == PIN_NONE) {
        return false;
    }
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    bool has_acted = watch(p, false, &drifted);
    if (has_acted) {
        snprintf(line, line_len,
                 "pinned again: %u workers had moved; CPUs allowed now: %s%s%s", drifted,
                 p->plan.allowed_list, p->why[0] == '\0' ? "" : "; not pinned: ", p->why);
    }
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
    return has_acted;
}

void
pinner_repin(struct pinner *p)
{
    unsigned drifted;
    if (p->spec->policy != PIN_NONE) {
        PTHREAD_OK(pthread_mutex_lock(&p->lock));
        (void)watch(p, true, &drifted);
        PTHREAD_OK(pthread_mutex_unlock(&p->lock));
    }
}

/* ---- reading -------------------------------------------------------------------------- */

void
pinner_summary(struct pinner *p, struct pinner_summary *s)
{
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    *s = (struct pinner_summary){
        .policy = p->plan.policy,
        .is_oversubscribed = p->plan.is_oversubscribed,
        .allowed = p->plan.allowed,
        .replans = p->replans,
        .errors = p->background_errors + (p->why[0] != '\0'),
    };
    memcpy(s->layout, p->plan.layout, sizeof s->layout);
    memcpy(s->allowed_list, p->plan.allowed_list, sizeof s->allowed_list);
    memcpy(s->background_list, p->plan.background_list, sizeof s->background_list);
    for (unsigned i = 0; i < p->count; i++) {
        s->errors += p->workers[i].error != 0;
    }
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
}

void
pinner_seat(struct pinner *p, unsigned i, struct pinner_seat *seat)
{
    must(i < p->count);
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    const struct pinner_worker *w = &p->workers[i];
    *seat = (struct pinner_seat){.place = p->plan.places[i],
                                 .tid = w->tid,
                                 .error = w->error,
                                 .drifts = w->drifts,
                                 .migrations_before = w->migrations_before};
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
}
