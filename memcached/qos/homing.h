/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When a connection goes to the worker on the CPU that receives for it: an interrupt has moved,
 * the client has, or there was no room before. Pure; the worker's thread.
 *
 * The law (Affinity-Accept, Pesterev et al. 2012): where one CPU handles all of a connection, no
 * cache line of it travels. That is worth less than an even load, so nothing is done for a stray
 * packet, nor at the cost of balance: a worker is sent none while its load is above by half of
 * the gap at which balancing begins, and neither undoes what the other does.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

#define HOMING_LAST_NS (1 * NSEC_PER_SEC)  /* it is received elsewhere for this long */
#define HOMING_REST_NS (10 * NSEC_PER_SEC) /* after it was moved for its worker's load */
#define HOMING_PAUSE_NS                                                                  \
    (300 * NSEC_PER_MSEC) /* of a worker, so that loads are seen anew */
/* A worker that has so much more load than this one is sent none. */
#define HOMING_LOAD_MILLI 100
#define HOMING_CONNS_PCT 5 /* of the worker's connections, the most that go at once */

/* Of a connection. Zero-initialised. */
struct homing {
    unsigned home; /* 1 + the worker that is nearer; 0: none is */
    uint32_t served;
    nsec_t since; /* it has been that one */
};

/* A look at the connection. home: the worker that is nearer and has room, or -1; served: its
 * requests so far. True: it has been received there for long enough, and still is. A connection
 * that was not used since the last look has nothing new to tell. */
must_check bool homing_note(struct homing *h, int home, uint32_t served, nsec_t now);
/* Loads in thousandths. */
must_check bool homing_suits(uint32_t own_milli, uint32_t home_milli);
/* How many of a worker's connections may go at once. */
unsigned homing_most(unsigned conns);
