/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/crawlplan.h"

#include <string.h>

#define SECONDS_PER_MINUTE 60u
#define PER_CENT 100u

void
crawlplan_note(struct crawlplan *p, unsigned class_id, uint32_t exptime, uint32_t now)
{
    struct crawlplan_class *c = &p->classes[class_id];
    uint32_t left;

    if (exptime == STORE_NEVER) {
        return;
    }
    left = exptime > now ? (exptime - now) / SECONDS_PER_MINUTE : 0;
    if (left < CRAWLPLAN_MINUTES) {
        c->minutes[left]++;
    } else {
        c->later++;
    }
}

/* True when it is worth while to come again after `wait` seconds. */
static bool
is_worth(const struct crawlplan_class *c, uint32_t wait)
{
    uint64_t gone = 0;
    uint64_t all = c->later;

    for (uint32_t i = 0; i < CRAWLPLAN_MINUTES; i++) {
        all += c->minutes[i];
        gone += i * SECONDS_PER_MINUTE < wait ? c->minutes[i] : 0;
    }
    return gone * PER_CENT > all;
}

static void
plan_next(struct crawlplan_class *c, uint32_t now)
{
    uint32_t wait = c->wait;

    if (is_worth(c, wait)) {
        wait = wait > SECONDS_PER_MINUTE + CRAWLPLAN_WAIT_MIN ? wait - SECONDS_PER_MINUTE
                                                              : CRAWLPLAN_WAIT_MIN;
    } else {
        wait += SECONDS_PER_MINUTE;
    }
    if (wait > CRAWLPLAN_WAIT_MAX) {
        wait = CRAWLPLAN_WAIT_MAX;
    }
    memset(c, 0, sizeof(*c));
    c->wait = wait;
    c->next = now + wait;
}

void
crawlplan_end(struct crawlplan *p, uint64_t classes, uint32_t now)
{
    for (unsigned id = 0; id < STORE_CLASSES; id++) {
        if (classes >> id & 1) {
            plan_next(&p->classes[id], now);
        }
    }
}

uint64_t
crawlplan_due(struct crawlplan *p, uint32_t now)
{
    uint64_t due = 0;

    for (unsigned id = 1; id < STORE_CLASSES; id++) {
        struct crawlplan_class *c = &p->classes[id];

        if (c->wait == 0) {
            c->wait = CRAWLPLAN_WAIT_MIN;
            c->next = now + c->wait;
        }
        due |= (uint64_t)(now >= c->next) << id;
    }
    return due;
}
