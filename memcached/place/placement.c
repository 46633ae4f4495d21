/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/placement.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "place/cgroup.h"

#define LINE_LEN 640
#define MEGABYTE (UINT64_C(1) << 20)

static void
warn_about_quota(unsigned threads, unsigned cpus)
{
    unsigned quota = cgroup_quota_milli("", CGROUP_SELF, NULL);
    /* More workers than CPUs use no more time than the CPUs have. */
    bool may_use_it_up = cpus == 0 || quota < cpus * 1000;
    if (quota > 0 && threads > (quota + 999) / 1000 && may_use_it_up) {
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
    uint64_t limit = cgroup_memory_bytes("", CGROUP_SELF, NULL);
    if (limit > 0 && items_mb >= limit / MEGABYTE) {
        log_write(LOG_WARNING,
                  "memcached: warning: -m %" PRIu64 " does not fit into the control "
                  "group's memory limit of %" PRIu64 " megabytes: the kernel kills the "
                  "server when that is used up; give a smaller -m or raise the limit",
                  items_mb, limit / MEGABYTE);
    }
}

void
placement_init(struct placement *p, const struct placement_conf *conf)
{
    *p = (struct placement){.conf = *conf};
    PTHREAD_OK(pthread_mutexattr_init(&p->lock_attr));
    if (prio_is_realtime(&conf->sched)) {
        PTHREAD_OK(pthread_mutexattr_setprotocol(&p->lock_attr, PTHREAD_PRIO_INHERIT));
    }
    scheduling_init(&p->schedule, &conf->sched);
    resctrl_open(&p->resctrl, &conf->resctrl);
}

bool
placement_reduce(struct placement *p)
{
    if (scheduling_reduce(&p->schedule)) {
        return true;
    }
    fprintf(stderr, "memcached: failed to give up the rights of root: %s\n",
            strerror(errno));
    return false;
}

const pthread_mutexattr_t *
placement_locks(const struct placement *p)
{
    return prio_is_realtime(&p->conf.sched) ? &p->lock_attr : NULL;
}

static bool
plan_threads(struct placement *p)
{
    unsigned workers = p->conf.workers;
    if (!pinner_init(&p->pinner, &p->conf.pin, workers, placement_locks(p))) {
        fprintf(stderr, "memcached: cannot plan the workers' CPUs: %s\n",
                strerror(errno));
        return false;
    }
    if (p->pinner.why[0] != '\0') {
        log_write(LOG_WARNING, "memcached: warning: workers are not pinned: %s",
                  p->pinner.why);
    } else if (p->pinner.plan.is_oversubscribed) {
        log_write(LOG_WARNING,
                  "memcached: warning: %u workers are more than the CPUs to pin them to; "
                  "fewer threads (-t) have a better tail",
                  workers);
    }
    warn_about_quota(workers, p->pinner.plan.allowed);
    return true;
}

bool
placement_plan(struct placement *p)
{
    const struct placement_conf *conf = &p->conf;
    if (!plan_threads(p)) {
        return false;
    }
    membind_open(&p->membind, &conf->membind, p->pinner.plan.policy != PIN_NONE);
    if (p->membind.why[0] != '\0') {
        log_write(LOG_WARNING, "memcached: warning: --membind: %s", p->membind.why);
    }
    warn_about_memory(conf->items_mb);
    int error = prio_lift_autogroup(&conf->sched);
    if (error != 0) {
        log_write(LOG_WARNING,
                  "memcached: warning: the nice value counts within the session only: "
                  "/proc/self/autogroup: %s",
                  strerror(error));
    }
    if (conf->sched.policy == PRIO_BATCH) {
        log_write(
            LOG_WARNING,
            "memcached: warning: --sched=batch: workers preempt nothing when a "
            "request arrives; it waits until what runs on the CPU has had its slice");
    }
    if (!scheduling_lend(&p->schedule)) {
        log_write(LOG_WARNING, "memcached: warning: no memory to raise priorities");
    }
    return true;
}

void
placement_schedule(struct placement *p)
{
    pid_t *tids = calloc(p->conf.workers, sizeof *tids);
    unsigned count = 0;
    for (unsigned i = 0; tids != NULL && i < p->conf.workers; i++) {
        struct pinner_seat seat;
        pinner_seat(&p->pinner, i, &seat);
        if (seat.tid != 0) {
            tids[count++] = seat.tid;
            resctrl_join(&p->resctrl, seat.tid);
        }
    }
    scheduling_workers(&p->schedule, tids, count);
    free(tids);
    resctrl_close(&p->resctrl);
    if (p->schedule.errors > 0) {
        char line[LINE_LEN];
        prio_explain(&p->conf.sched, p->schedule.error, "", line, sizeof line);
        log_write(LOG_WARNING, "memcached: warning: %s", line);
    } else if (tids == NULL || p->schedule.error != 0) {
        log_write(LOG_WARNING, "memcached: warning: no memory to schedule the workers");
    }
    if (p->resctrl.errors > 0) {
        log_write(LOG_WARNING, "memcached: warning: --resctrl: %s", p->resctrl.why);
    }
}

void
placement_fini(struct placement *p)
{
    scheduling_fini(&p->schedule);
    resctrl_close(&p->resctrl);
    pinner_fini(&p->pinner);
    PTHREAD_OK(pthread_mutexattr_destroy(&p->lock_attr));
}

/* What befalls one worker mostly befalls them all: it is said once. */
void
placement_settle(struct placement *p)
{
    unsigned unbound = 0;
    int error = 0;
    for (unsigned i = 0; i < p->conf.workers; i++) {
        struct pinner_seat seat;
        pinner_seat(&p->pinner, i, &seat);
        unbound += seat.error != 0;
        error = seat.error != 0 ? seat.error : error;
    }
    if (unbound > 0) {
        log_write(LOG_WARNING,
                  "memcached: warning: %u of %u workers could not be pinned: %s", unbound,
                  p->conf.workers, strerror(error));
    }
    pinner_settle(&p->pinner);
}

void
placement_second(struct placement *p)
{
    char line[LINE_LEN];
    if (pinner_check(&p->pinner, line, sizeof line)) {
        log_write(LOG_WARNING, "memcached: %s", line);
    }
    scheduling_second(&p->schedule);
}

int
placement_print(const struct placement_conf *conf)
{
    struct placement p;
    struct placement_conf looks = *conf; /* and changes nothing */
    looks.sched = (struct prio_spec){.policy = PRIO_LEAVE};
    looks.resctrl = (struct resctrl_conf){.group = NULL};
    placement_init(&p, &looks);
    bool has_plan = plan_threads(&p) && p.pinner.why[0] == '\0';
    unsigned quota = cgroup_quota_milli("", CGROUP_SELF, NULL);
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
