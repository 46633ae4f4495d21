/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the crawler should visit a class again of its own accord. A crawl counts the times to
 * live of what it leaves, by minutes; when more than one in a hundred of those that expire at
 * all would have expired before the next visit, that comes a minute sooner, else later. Pure.
 *
 * The lists of a class share one plan: they are walked together.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define CRAWLPLAN_MINUTES 60
#define CRAWLPLAN_WAIT_MIN 5    /* seconds */
#define CRAWLPLAN_WAIT_MAX 3600 /* likewise */

struct crawlplan_class {
    uint64_t minutes[CRAWLPLAN_MINUTES]; /* items by whole minutes left */
    uint64_t later;                      /* more than an hour */
    uint32_t wait;                       /* 0: never visited */
    uint32_t next;                       /* relative clock */
};

struct crawlplan {
    struct crawlplan_class classes[STORE_CLASSES];
};

/* All zero is a plan that visits everything after the shortest wait. */

/* An item that a crawl has left in the class. exptime as the store has it. */
void crawlplan_note(struct crawlplan *p, unsigned class_id, uint32_t exptime,
                    uint32_t now);
/* A crawl of these classes is over: sets their next visits and forgets the counts. */
void crawlplan_end(struct crawlplan *p, uint64_t classes, uint32_t now);
/* The classes whose time has come, a bit per id. */
uint64_t crawlplan_due(struct crawlplan *p, uint32_t now);
