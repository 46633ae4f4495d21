/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the crawler should visit a list again of its own accord. A crawl counts the times to
 * live of what it leaves, by minutes; when more than one in a hundred of those that expire at
 * all would have expired before the next visit, that comes a minute sooner, else later. Pure.
 *
 * Lists are walked one after the other, so there is one set of counts.
 */
#pragma once

#include "store/store.h"

#define CRAWLPLAN_MINUTES 60
#define CRAWLPLAN_WAIT_MIN 5    /* seconds */
#define CRAWLPLAN_WAIT_MAX 3600 /* likewise */

struct crawlplan_list {
    uint32_t wait;  /* 0: never visited */
    uint32_t next;  /* relative clock */
    uint32_t ended; /* the last visit; 0: there was none */
};

struct crawlplan {
    struct crawlplan_list lists[STORE_CLASSES][STORE_LISTS];
    uint64_t minutes[CRAWLPLAN_MINUTES]; /* items by whole minutes left */
    uint64_t later;                      /* more than an hour */
};

/* All zero is a plan that visits everything after the shortest wait. */

/* A list is begun: nothing is counted. */
void crawlplan_begin(struct crawlplan *p);
/* An item that the crawl has left in the list. exptime as the store has it. */
void crawlplan_note(struct crawlplan *p, uint32_t exptime, uint32_t now);
/* The list has been seen to its end: sets its next visit. Fills the schedule's fields of
 * *crawl. */
void crawlplan_end(struct crawlplan *p, unsigned class_id, enum store_list list,
                   uint32_t now, struct store_crawl *crawl);
/* True when the list's time has come. */
bool crawlplan_is_due(struct crawlplan *p, unsigned class_id, enum store_list list,
                      uint32_t now);
