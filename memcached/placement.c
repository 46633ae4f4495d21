/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "placement.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/utsname.h>

#include "base/log.h"
#include "place/cgroup.h"

#define LINE_LEN 640
#define MEGABYTE (UINT64_C(1) << 20)

static void
warn_about_quota(unsigned threads)
{
    unsigned quota = cgroup_quota_milli("");
    if (quota > 0 && threads > (quota + 999) / 1000) {
        log_write(LOG_WARNING,
                  "memcached: warning: %u workers share a CPU quota of %u.%02u CPUs and "
                  "stall together when it is used up; -t auto starts as many as it feeds",
                  threads, quota / 1000, quota % 1000 / 10);
    }
}

/* The items alone reach it, and the hash table and connections come beside them. */
static void
warn_about_memory(uint64_t items_mb)
{
    uint64_t limit = cgroup_memory_bytes("");
    if (limit > 0 && items_mb >= limit / MEGABYTE) {
        log_write(LOG_WARNING,
                  "memcached: warning: -m %" PRIu64 " does not fit into the control "
                  "group's memory limit of %" PRIu64 " megabytes: the kernel kills the "
                  "server when that is used up; give a smaller -m or raise the limit",
                  items_mb, limit / MEGABYTE);
    }
}

void
placement_init(struct placement *p, const struct settings *s)
{
    *p = (struct placement){.settings = s};
    PTHREAD_OK(pthread_mutexattr_init(&p->lock_attr));
    if (prio_is_realtime(&s->sched)) {
        PTHREAD_OK(pthread_mutexattr_setprotocol(&p->lock_attr, PTHREAD_PRIO_INHERIT));
    }
    if (prio_needs_right(&s->sched)) {
        rights_keep(&p->rights);
    }
    resctrl_open(&p->resctrl, &s->resctrl);
}

bool
placement_reduce(struct placement *p)
{
    if (!rights_reduce(&p->rights)) {
        fprintf(stderr, "memcached: failed to give up the rights of root: %s\n",
                strerror(errno));
        p->rights.is_kept = false;
        return false;
    }
    return true;
}

const pthread_mutexattr_t *
placement_locks(const struct placement *p)
{
    return prio_is_realtime(&p->settings->sched) ? &p->lock_attr : NULL;
}

static bool
plan_threads(struct placement *p)
{
    const struct settings *s = p->settings;
    unsigned threads = (unsigned)s->threads;
    if (!pinner_init(&p->pinner, &s->pin, threads, placement_locks(p))) {
        fprintf(stderr, "memcached: cannot plan the workers' CPUs: %s\n",
                strerror(errno));
        return false;
    }
    if (pinner_why(&p->pinner)[0] != '\0') {
        log_write(LOG_WARNING, "memcached: warning: workers are not pinned: %s",
                  pinner_why(&p->pinner));
    } else if (p->pinner.plan.is_oversubscribed) {
        log_write(LOG_WARNING,
                  "memcached: warning: %u workers are more than the CPUs to pin them to; "
                  "fewer threads (-t) have a better tail",
                  threads);
    }
    warn_about_quota(threads);
    return true;
}

/* What is the administrator's to do is said, not done. */
static void
tell_suspension(const struct settings *s)
{
    struct utsname name;
    if (!s->busy_poll.prefers) {
        return;
    }
    must(uname(&name) == 0);
    if (!busypoll_can_suspend(name.release)) {
        log_write(
            LOG_WARNING,
            "memcached: warning: --irq-suspend: Linux %s suspends no interrupts, it "
            "takes 6.13",
            name.release);
        return;
    }
    log_write(
        LOG_WARNING,
        "memcached: --irq-suspend: the card's queues need it, too: for each id of "
        "\"ynl --family netdev --dump napi-get\": ynl --family netdev --do napi-set "
        "--json '{\"id\": ID, \"defer-hard-irqs\": 100, \"gro-flush-timeout\": "
        "200000, \"irq-suspend-timeout\": 20000000}'");
}

static void
lift_autogroup(const struct prio_spec *sched)
{
    int error = prio_lift_autogroup(sched);
    if (error != 0) {
        log_write(LOG_WARNING,
                  "memcached: warning: the nice value counts within the session only: "
                  "/proc/self/autogroup: %s",
                  strerror(error));
    }
}

static void
warn_about_batch(const struct prio_spec *sched)
{
    if (sched->policy == PRIO_BATCH) {
        log_write(
            LOG_WARNING,
            "memcached: warning: --sched=batch: workers preempt nothing when a "
            "request arrives; it waits until what runs on the CPU has had its slice");
    }
}

bool
placement_plan(struct placement *p)
{
    const struct settings *s = p->settings;
    if (!plan_threads(p)) {
        return false;
    }
    membind_open(&p->membind, &s->membind, p->pinner.plan.policy != PIN_NONE);
    if (p->membind.why[0] != '\0') {
        log_write(LOG_WARNING, "memcached: warning: --membind: %s", p->membind.why);
    }
    warn_about_memory((uint64_t)s->memory_mb);
    lift_autogroup(&s->sched);
    warn_about_batch(&s->sched);
    tell_suspension(s);
    if (!rights_lend(&p->rights)) {
        log_write(LOG_WARNING, "memcached: warning: no memory to raise priorities");
    }
    return true;
}

static void
schedule_workers(void *ctx)
{
    struct placement *p = ctx;
    const struct prio_spec *sched = &p->settings->sched;
    int error = 0;
    for (unsigned i = 0; i < (unsigned)p->settings->threads; i++) {
        struct pinner_seat seat;
        pinner_seat(&p->pinner, i, &seat);
        int refused = seat.tid != 0 ? prio_apply(sched, seat.tid) : 0;
        p->prio_errors += refused != 0;
        error = refused != 0 ? refused : error;
        if (seat.tid != 0) {
            resctrl_join(&p->resctrl, seat.tid);
        }
    }
    if (error != 0) {
        char line[LINE_LEN];
        prio_explain(sched, error, "", line, sizeof line);
        log_write(LOG_WARNING, "memcached: warning: %s", line);
    } else {
        nudgers_raise(&p->nudgers);
    }
}

void
placement_schedule(struct placement *p)
{
    const struct settings *s = p->settings;
    /* By this thread, which has no rights that they would inherit. */
    if (s->sched.policy == PRIO_SLICE &&
        !nudgers_open(&p->nudgers, &p->pinner, (unsigned)s->threads)) {
        log_write(LOG_WARNING, "memcached: warning: no memory to nudge the kernel");
    }
    rights_use(&p->rights, schedule_workers, p);
    if (p->prio_errors > 0) {
        nudgers_close(&p->nudgers); /* without a slice nudges are of no use */
    }
    resctrl_close(&p->resctrl);
    if (p->resctrl.errors > 0) {
        log_write(LOG_WARNING, "memcached: warning: --resctrl: %s", p->resctrl.why);
    }
}

void
placement_fini(struct placement *p)
{
    rights_use(&p->rights, NULL, NULL);
    resctrl_close(&p->resctrl);
    nudgers_close(&p->nudgers);
    pinner_fini(&p->pinner);
    PTHREAD_OK(pthread_mutexattr_destroy(&p->lock_attr));
}

/* What befalls one worker mostly befalls them all: it is said once. */
static void
warn_about_unbound(struct placement *p)
{
    unsigned threads = (unsigned)p->settings->threads, unbound = 0;
    int error = 0;
    for (unsigned i = 0; i < threads; i++) {
        struct pinner_seat seat;
        pinner_seat(&p->pinner, i, &seat);
        unbound += seat.error != 0;
        error = seat.error != 0 ? seat.error : error;
    }
    if (unbound > 0) {
        log_write(LOG_WARNING,
                  "memcached: warning: %u of %u workers could not be pinned: %s", unbound,
                  threads, strerror(error));
    }
}

void
placement_settle(struct placement *p)
{
    warn_about_unbound(p);
    if (!pinner_settle(&p->pinner)) {
        log_write(LOG_WARNING, "memcached: warning: no thread to watch the cpuset with; "
                               "another one does it");
    }
}

void
placement_second(struct placement *p)
{
    char line[LINE_LEN];
    if (pinner_check(&p->pinner, line, sizeof line)) {
        log_write(LOG_WARNING, "memcached: %s", line);
    }
    nudgers_second(&p->nudgers);
}

int
placement_print(const struct settings *s)
{
    struct placement p;
    placement_init(&p, s);
    bool has_plan = plan_threads(&p) && pinner_why(&p.pinner)[0] == '\0';
    unsigned quota = cgroup_quota_milli("");
    if (has_plan) {
        pin_describe(&p.pinner.plan, stdout);
        if (quota > 0) {
            printf("CPU quota: %u.%02u CPUs\n", quota / 1000, quota % 1000 / 10);
        } else {
            puts("CPU quota: none");
        }
    }
    placement_fini(&p);
    return has_plan ? 0 : 1;
}
