/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/crawlplan.h"

#define SECONDS_PER_MINUTE 60u
#define PER_CENT 100u

void
crawlplan_begin(struct crawlplan *p)
{
    memset(p->minutes, 0, sizeof(p->minutes));
    p->later = 0;
}

void
crawlplan_note(struct crawlplan *p, uint32_t exptime, uint32_t now)
{
    if (exptime == STORE_NEVER) {
        return;
    }
    uint32_t left = exptime > now ? (exptime - now) / SECONDS_PER_MINUTE : 0;
    if (left < CRAWLPLAN_MINUTES) {
        p->minutes[left]++;
    } else {
        p->later++;
    }
}

/* How many of those that were counted will have expired after `wait` seconds, and how many
 * must have so that it is worth while to come again then. */
static void
foresee(const struct crawlplan *p, uint32_t wait, struct store_crawl *crawl)
{
    uint64_t all = p->later;

    crawl->next_reclaims = 0;
    for (uint32_t i = 0; i < CRAWLPLAN_MINUTES; i++) {
        all += p->minutes[i];
        crawl->next_reclaims += i * SECONDS_PER_MINUTE < wait ? p->minutes[i] : 0;
    }
    crawl->low_mark = all / PER_CENT + 1;
}

void
crawlplan_end(struct crawlplan *p, unsigned class_id, enum store_list list, uint32_t now,
              struct store_crawl *crawl)
{
    struct crawlplan_list *l = &p->lists[class_id][list];
    uint32_t wait = l->wait != 0 ? l->wait : CRAWLPLAN_WAIT_MIN;

    foresee(p, wait, crawl);
    if (crawl->next_reclaims >= crawl->low_mark) {
        wait = wait > SECONDS_PER_MINUTE + CRAWLPLAN_WAIT_MIN ? wait - SECONDS_PER_MINUTE
                                                              : CRAWLPLAN_WAIT_MIN;
    } else {
        wait += SECONDS_PER_MINUTE;
    }
    if (wait > CRAWLPLAN_WAIT_MAX) {
        wait = CRAWLPLAN_WAIT_MAX;
    }
    crawl->since_run = l->ended != 0 ? now - l->ended : 0;
    crawl->next_run = wait;
    *l = (struct crawlplan_list){.wait = wait, .next = now + wait, .ended = now};
}

bool
crawlplan_is_due(struct crawlplan *p, unsigned class_id, enum store_list list,
                 uint32_t now)
{
    struct crawlplan_list *l = &p->lists[class_id][list];

    if (l->wait == 0) {
        l->wait = CRAWLPLAN_WAIT_MIN;
        l->next = now + l->wait;
    }
    return now >= l->next;
}
