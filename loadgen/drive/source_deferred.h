/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an application does meanwhile about keys that it missed: those that it fetches from a
 * backend, which takes a time that is drawn, and stores then; and those that somebody else
 * is to store (leases), which it asks for again after a pause. Either waits for its time
 * here and holds up nothing. Its thread only; no allocation after fetch_init.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/drive/alarms.h"
#include "loadgen/wire/lconn.h"

/* Keys that wait, of each thread: others are not stored, and counted. */
#define FETCH_MAX 65536
/* Pauses before a key that somebody else is to store is asked for again: the first, each twice
 * the one before, and the longest; after so many the application goes without. */
#define FETCH_PAUSE NSEC_PER_MSEC
#define FETCH_PAUSE_MAX (100 * NSEC_PER_MSEC)
#define FETCH_TRIES 10

struct drive;

struct fetch_entry {
    nsec_t due;
    struct missed what;
    unsigned losses; /* its connection's, when it was missed */
    uint32_t next;   /* due after it on its connection */
};

/* Of a connection: what was due when it had no room, in order. */
struct fetch_queue {
    uint32_t first, last;
    unsigned count;
    unsigned losses; /* of the connection: who asked before one is gone */
};

struct fetch {
    struct alarms alarms;       /* who: connection; value: entry */
    struct fetch_queue *queues; /* one each connection of the set */
    unsigned queued;            /* in all of them */
    struct fetch_entry *entries;
    uint32_t *blank; /* entries without use */
    unsigned blank_count;
};

/* False when memory is short; a workload that defers nothing needs none. */
must_check bool fetch_init(struct drive *d);
void fetch_fini(struct drive *d);

/* Takes what an answer on c has left to be done (c->followups.missed). */
void fetch_take(struct drive *d, struct lconn *c, nsec_t now);
/* What is due goes out, on the connection where it was missed, or waits for room on it. */
void fetch_send_due(struct drive *d, nsec_t now);
/* c, which is up, has done something of what was to follow: what waited for room has it. */
void fetch_refill(struct drive *d, struct lconn *c);
/* c was lost: what was missed on it is left out. */
void fetch_lose(struct drive *d, const struct lconn *c, nsec_t now);

/* How many keys wait, for their time or for room. */
static inline unsigned
fetch_waiting(const struct fetch *f)
{
    return f->alarms.count + f->queued;
}

/* The pause before a key is asked for again that was so often. */
nsec_t fetch_pause(unsigned tries);
