/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "placement.h"

#include "base/log.h"
#include "qos/cgroup.h"

#define LINE_LEN 640

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

bool
placement_init(struct placement *p, const struct settings *s)
{
    unsigned threads = (unsigned)s->threads;
    *p = (struct placement){.settings = s};
    if (!pinner_init(&p->pinner, &s->pin, threads, NULL)) {
        fprintf(stderr, "memcached: no memory for the plan of the workers\n");
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
    membind_open(&p->membind, &s->membind, p->pinner.plan.policy != PIN_NONE);
    if (p->membind.why[0] != '\0') {
        log_write(LOG_WARNING, "memcached: warning: --membind: %s", p->membind.why);
    }
    return true;
}

void
placement_fini(struct placement *p)
{
    membind_close(&p->membind);
    pinner_fini(&p->pinner);
}

void
placement_settle(struct placement *p)
{
    pinner_settle(&p->pinner);
}

void
placement_second(void *ctx)
{
    struct placement *p = ctx;
    char line[LINE_LEN];
    if (pinner_check(&p->pinner, line, sizeof line)) {
        log_write(LOG_WARNING, "memcached: %s", line);
    }
}

int
placement_print(const struct settings *s)
{
    struct placement p;
    bool has_plan = placement_init(&p, s) && pinner_why(&p.pinner)[0] == '\0';
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
