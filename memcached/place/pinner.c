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
know_topology(struct pinner *p, const struct cpumask *allowed, char *err, size_t err_len)
{
    for (unsigned i = 0, missing = cpumask_count(allowed); i < p->all.count; i++) {
        missing -= cpumask_has(allowed, (unsigned)p->all.cpus[i].place.cpu);
        if (missing == 0) {
            return true;
        }
    }
    topo_fini(&p->all);
    if (pin_needs_topology(p->spec)) {
        return topo_discover(&p->all, NULL, err, err_len);
    }
    return topo_from_mask(&p->all, allowed) || topo_fail(err, err_len, "out of memory");
}

/* Replaces the plan. Without one, nobody is pinned; false: there is no memory even for that,
 * and the old plan stays. */
static bool
make_plan(struct pinner *p, const struct cpumask *allowed)
{
    struct pin_plan plan;
    struct topo plain = {0};
    struct pin_spec none = {.policy = PIN_NONE};
    char err[PIN_LIST_LEN];
    p->why[0] = '\0';
    bool has_plan =
        know_topology(p, allowed, p->why, sizeof p->why) &&
        pin_plan_on(p->spec, p->count, &p->all, allowed, &plan, p->why, sizeof p->why);
    bool is_made = has_plan || (topo_from_mask(&plain, allowed) &&
                                pin_plan_on(&none, p->count, &plain, allowed, &plan, err,
                                            sizeof err));
    topo_fini(&plain);
    if (is_made) {
        pin_plan_fini(&p->plan);
        p->plan = plan;
        p->has_plan = has_plan;
        p->allowed = *allowed;
    }
    for (unsigned i = 0; i < p->count && is_made; i++) {
        atomic_store_explicit(&p->workers[i].cpu, plan.places[i].cpu,
                              memory_order_relaxed);
    }
    return is_made;
}

/* The cpuset, cut to the mask that was given; that mask alone when nothing of it is left. */
static struct cpumask
allowed_now(const struct pinner *p)
{
    struct cpumask common = cpumask_common(&p->cpuset, &p->operator_mask);
    return cpumask_count(&common) > 0 ? common : p->cpuset;
}

/* Who has the whole cpuset has not been restricted by hand, and gets more when it grows. */
static void
set_operator_mask(struct pinner *p, const struct cpumask *mask)
{
    p->operator_mask = *mask;
    if (cpumask_equals(mask, &p->cpuset)) {
        memset(&p->operator_mask, 0xff, sizeof p->operator_mask);
    }
}

bool
pinner_init(struct pinner *p, const struct pin_spec *spec, unsigned workers,
            const pthread_mutexattr_t *lock_attr)
{
    *p = (struct pinner){.spec = spec, .count = workers};
    PTHREAD_OK(pthread_mutex_init(&p->lock, lock_attr));
    p->workers = calloc(workers, sizeof p->workers[0]);
    int error = p->workers != NULL ? cpumask_read(0, &p->operator_mask) : ENOMEM;
    if (error != 0) {
        errno = error;
        return false;
    }
    struct cpumask allowed = p->main_set = p->operator_mask;
    if (spec->policy != PIN_NONE) {
        if (cpuset_read(&p->sleeper, &p->cpuset) != 0) {
            p->cpuset = allowed; /* what is known of it */
        }
        set_operator_mask(p, &allowed);
        allowed = allowed_now(p);
    }
    errno = ENOMEM;
    return make_plan(p, &allowed);
}

void
pinner_fini(struct pinner *p)
{
    cpuset_close(&p->sleeper);
    pin_plan_fini(&p->plan);
    topo_fini(&p->all);
    free(p->workers);
    PTHREAD_OK(pthread_mutex_destroy(&p->lock));
}

const char *
pinner_why(const struct pinner *p)
{
    return p->why;
}

/* ---- binding -------------------------------------------------------------------------- */

/* Where worker i belongs: its CPU, or all that are allowed. */
static struct cpumask
seat_of(const struct pinner *p, unsigned i)
{
    struct cpumask one = {0};
    if (p->plan.places[i].cpu < 0) {
        return p->allowed;
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
    p->background_errors = 0;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        if (!num_u32(entry->d_name, strlen(entry->d_name), &tid) ||
            is_worker(p, (pid_t)tid)) {
            continue;
        }
        int error = place_other(p, (pid_t)tid);
        p->background_errors += error != 0 && error != ESRCH;
    }
    if (tasks == NULL) {
        p->background_errors++;
    } else {
        closedir(tasks);
    }
    if (cpumask_read(getpid(), &p->main_set) != 0) {
        p->main_set = p->plan.background;
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

/* ---- watching ------------------------------------------------------------------------- */

/* The main thread's mask is the operator's word, unless the kernel has changed it: with the
 * cpuset it cuts the mask, or when nothing is left, or in older versions in any case, replaces
 * it by the whole cpuset. */
static void
hear_operator(struct pinner *p, bool has_cpuset_changed)
{
    struct cpumask now;
    struct cpumask cut = cpumask_common(&p->main_set, &p->cpuset);
    if (cpumask_read(getpid(), &now) != 0 || cpumask_equals(&now, &p->main_set)) {
        return;
    }
    if (has_cpuset_changed &&
        (cpumask_equals(&now, &cut) || cpumask_equals(&now, &p->cpuset))) {
        return;
    }
    set_operator_mask(p, &now);
}

/* The allowed CPUs as they are now. */
static struct cpumask
look_around(struct pinner *p)
{
    struct cpumask cpuset;
    bool has_changed = false;
    if (cpuset_read(&p->sleeper, &cpuset) == 0) {
        has_changed = !cpumask_equals(&cpuset, &p->cpuset);
        p->cpuset = cpuset;
    }
    hear_operator(p, has_changed);
    return allowed_now(p);
}

/* How many workers are elsewhere. */
static unsigned
count_drifts(struct pinner *p)
{
    unsigned drifted = 0;
    for (unsigned i = 0; i < p->count; i++) {
        struct cpumask now, seat = seat_of(p, i);
        pid_t tid = p->workers[i].tid;
        if (tid != 0 && p->workers[i].error == 0 && cpumask_read(tid, &now) == 0 &&
            !cpumask_equals(&now, &seat)) {
            p->workers[i].drifts++;
            drifted++;
        }
    }
    return drifted;
}

/* False: there is no memory for another plan, and the old one stays. */
static bool
replan(struct pinner *p, const struct cpumask *allowed)
{
    if (!make_plan(p, allowed)) {
        return false;
    }
    p->replans++;
    place_workers(p);
    place_others(p);
    return true;
}

bool
pinner_settle(struct pinner *p)
{
    bool is_whole = true;
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    if (p->spec->policy != PIN_NONE) {
        is_whole = cpuset_open(&p->sleeper);
        struct cpumask allowed =
            look_around(p); /* it may have taken a while to get here */
        if (!cpumask_equals(&allowed, &p->allowed)) {
            (void)replan(p, &allowed);
        } else if (p->has_plan) {
            place_others(p);
        }
    }
    p->has_settled = true;
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
    return is_whole;
}

bool
pinner_check(struct pinner *p, char *line, size_t line_len)
{
    if (p->spec->policy == PIN_NONE) {
        return false;
    }
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    bool has_acted = false;
    if (p->has_settled) {
        struct cpumask allowed = look_around(p);
        unsigned drifted = count_drifts(p);
        has_acted = (drifted > 0 || !cpumask_equals(&allowed, &p->allowed)) &&
                    replan(p, &allowed);
        if (has_acted) {
            snprintf(line, line_len,
                     "pinned again: %u workers had moved; CPUs allowed now: %s%s%s",
                     drifted, p->plan.allowed_list,
                     p->has_plan ? "" : "; not pinned: ", p->why);
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
    return has_acted;
}

void
pinner_repin(struct pinner *p)
{
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    if (p->spec->policy != PIN_NONE) {
        (void)count_drifts(p);
        struct cpumask allowed = look_around(p);
        (void)replan(p, &allowed);
    }
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
}

/* ---- telling -------------------------------------------------------------------------- */

void
pinner_summary(struct pinner *p, struct pinner_summary *s)
{
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    *s = (struct pinner_summary){
        .policy = p->plan.policy,
        .is_oversubscribed = p->plan.is_oversubscribed,
        .allowed = p->plan.allowed,
        .replans = p->replans,
        .errors = p->background_errors + !p->has_plan,
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
