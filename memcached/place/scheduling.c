/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/scheduling.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/await.h"
#include "base/cpumask.h"
#include "place/threadstat.h"

/* ---- rights --------------------------------------------------------------------------- */

/* Of what the calling thread may have, these, as bits of the first word. */
static bool
set_rights(uint32_t wanted)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    data[0].permitted &= wanted;
    data[0].effective = data[0].permitted;
    data[0].inheritable = 0;
    data[1] = (struct __user_cap_data_struct){0};
    return syscall(SYS_capset, &header, data) == 0;
}

void
scheduling_init(struct scheduling *s, const struct prio_spec *spec)
{
    *s = (struct scheduling){.spec = *spec};
    s->is_kept =
        prio_needs_right(spec) && geteuid() == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0;
    must(sem_init(&s->go, 0, 0) == 0 && sem_init(&s->is_known, 0, 0) == 0);
}

bool
scheduling_reduce(struct scheduling *s)
{
    if (!s->is_kept) {
        return true;
    }
    s->is_kept = geteuid() != 0; /* still root: it keeps what it has */
    bool is_reduced = prctl(PR_SET_KEEPCAPS, 0) == 0 &&
                      (!s->is_kept || set_rights(UINT32_C(1) << CAP_SYS_NICE));
    s->is_kept &= is_reduced;
    return is_reduced;
}

/* ---- a nudger's thread ----------------------------------------------------------------- */

static uint64_t
waited(const struct nudger *n)
{
    struct threadstat times;
    threadstat_reread_times(n->schedstat, &times);
    return times.wait_ns;
}

static void
nudge(struct nudger *n)
{
    nsec_t pause;
    nudge_begin(&n->policy, waited(n), clock_now());
    while (!atomic_load_explicit(&n->is_stopping, memory_order_relaxed) &&
           (pause = nudge_step(&n->policy, waited(n), clock_now())) != 0) {
        struct timespec t = {.tv_nsec = (long)pause};
        while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
        }
        ctr_add(&n->nudges, 1);
    }
}

/* Is it the worker's only CPU, and no other worker's? Those that share one wait for each other. */
static bool
has_own_cpu(const struct nudger *n, const struct cpumask *there)
{
    for (unsigned i = 0; i < n->schedule->nudger_count; i++) {
        const struct nudger *other = &n->schedule->nudgers[i];
        struct cpumask mask;
        if (other != n && cpumask_read(other->worker, &mask) == 0) {
            mask = cpumask_common(&mask, there);
            if (cpumask_count(&mask) > 0) {
                return false;
            }
        }
    }
    return cpumask_count(there) == 1;
}

/* On the worker's CPU, and where it was before afterwards. */
static void
nudge_beside(struct nudger *n)
{
    struct cpumask before, there;
    if (cpumask_read(0, &before) == 0 && cpumask_read(n->worker, &there) == 0 &&
        has_own_cpu(n, &there) && cpumask_bind(0, &there) == 0) {
        nudge(n);
        (void)!cpumask_bind(0, &before); /* it only sleeps, wherever that is */
    }
}

/* It takes its priority while it has its creator's right to it, which it then gives up. */
static void *
nudger_main(void *arg)
{
    static const struct prio_spec realtime = {.policy = PRIO_FIFO, .priority = 1};
    struct nudger *n = arg;
    struct scheduling *s = n->schedule;
    char name[16];
    snprintf(name, sizeof name, "mc-nudge %u", (unsigned)(n - s->nudgers) % 1000);
    PTHREAD_OK(pthread_setname_np(pthread_self(), name));
    n->is_refused = prio_apply(&realtime, 0) != 0;
    must(!s->is_lent || set_rights(0));
    must(sem_post(&s->is_known) == 0);
    if (n->is_refused) {
        return NULL;
    }
    await(&n->go);
    while (!atomic_load(&n->is_stopping)) {
        nudge_beside(n);
        atomic_store(&n->is_at_work, false);
        await(&n->go);
    }
    return NULL;
}

/* ---- nudgers --------------------------------------------------------------------------- */

static void
stop_nudger(struct nudger *n)
{
    if (!n->is_refused) {
        atomic_store(&n->is_stopping, true);
        must(sem_post(&n->go) == 0);
        PTHREAD_OK(pthread_join(n->thread, NULL));
    }
    must(sem_destroy(&n->go) == 0);
    if (n->schedstat >= 0) {
        close(n->schedstat);
    }
}

static void
start_nudger(struct scheduling *s, struct nudger *n, pid_t worker)
{
    n->schedule = s;
    n->worker = worker;
    n->schedstat = threadstat_open_times(worker);
    must(sem_init(&n->go, 0, 0) == 0);
    if (pthread_create(&n->thread, NULL, nudger_main, n) != 0) {
        n->is_refused = true;
        return;
    }
    await(&s->is_known);
    if (n->is_refused) {
        PTHREAD_OK(pthread_join(n->thread, NULL));
    }
}

void
scheduling_second(struct scheduling *s)
{
    for (unsigned i = 0; i < s->nudger_count; i++) {
        struct nudger *n = &s->nudgers[i];
        if (!n->is_refused && !atomic_load(&n->is_at_work) &&
            nudge_suspects(&n->policy, waited(n), clock_now())) {
            atomic_store(&n->is_at_work, true);
            must(sem_post(&n->go) == 0);
        }
    }
}

uint64_t
scheduling_nudges(const struct scheduling *s)
{
    uint64_t nudges = 0;
    for (unsigned i = 0; i < s->nudger_count; i++) {
        nudges += ctr_get(&s->nudgers[i].nudges);
    }
    return nudges;
}

unsigned
scheduling_nudgers_refused(const struct scheduling *s)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < s->nudger_count; i++) {
        refused += s->nudgers[i].is_refused;
    }
    return refused;
}

/* ---- the workers ----------------------------------------------------------------------- */

static void
apply(struct scheduling *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        int error = prio_apply(&s->spec, s->tids[i]);
        s->errors += error != 0;
        s->error = error != 0 ? error : s->error;
    }
    /* without a slice nudges are of no use */
    bool is_nudged = s->spec.policy == PRIO_SLICE && s->errors == 0;
    s->nudgers = is_nudged ? calloc(s->count, sizeof s->nudgers[0]) : NULL;
    s->nudger_count = s->nudgers != NULL ? s->count : 0;
    s->error = is_nudged && s->nudgers == NULL ? ENOMEM : s->error;
    for (unsigned i = 0; i < s->nudger_count; i++) {
        start_nudger(s, &s->nudgers[i], s->tids[i]);
    }
}

static void *
wait_for_workers(void *arg)
{
    struct scheduling *s = arg;
    await(&s->go);
    apply(s);
    return NULL;
}

bool
scheduling_lend(struct scheduling *s)
{
    if (!s->is_kept) {
        return true;
    }
    sigset_t all, before; /* signals are the main loop's */
    sigfillset(&all);
    PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &all, &before));
    s->is_lent = pthread_create(&s->thread, NULL, wait_for_workers, s) == 0;
    PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
    must(set_rights(0));
    return s->is_lent;
}

void
scheduling_workers(struct scheduling *s, const pid_t *tids, unsigned count)
{
    s->tids = tids;
    s->count = count;
    if (s->is_lent) {
        must(sem_post(&s->go) == 0);
        PTHREAD_OK(pthread_join(s->thread, NULL));
        s->is_lent = false;
    } else {
        apply(s);
    }
    s->tids = NULL;
    s->count = 0;
}

void
scheduling_fini(struct scheduling *s)
{
    if (s->is_lent) {
        scheduling_workers(s, NULL, 0); /* the thread just ends */
    }
    for (unsigned i = 0; i < s->nudger_count; i++) {
        stop_nudger(&s->nudgers[i]);
    }
    free(s->nudgers);
    must(sem_destroy(&s->go) == 0 && sem_destroy(&s->is_known) == 0);
    *s = (struct scheduling){.count = 0};
}
