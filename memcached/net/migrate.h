/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Moving connections between workers. A connection moves as a whole, between two
 * requests: its worker takes it out of its event base, list and queues and pushes it to
 * the other's mailbox; from the push on it is the other's. In between no thread has it.
 * What has happened on the socket meanwhile the other's epoll tells when the socket is
 * added.
 *
 * The workers' threads, except where it says otherwise.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "qos/balance.h"

struct conn;
struct net_shared;
struct worker;

/* An order, small enough to be one atomic. */
struct migrate_ask {
    uint16_t to;
    uint16_t most;
    uint32_t share : 24; /* BALANCE_SHARES */
    uint32_t reason : 8; /* enum balance_reason */
};

/* In each worker. */
struct migrate {
    _Atomic uint64_t ask; /* struct migrate_ask; with ORDER_GIVE. The last one counts */
    _Atomic unsigned arriving;   /* connections that others are about to push */
    _Atomic uint32_t load_milli; /* its load, as the balancer last saw it */
    ctr_t given;                 /* BALANCE_SHARES of its requests that went */
    ctr_t taken;                 /* connections that came */
    nsec_t homed_at;   /* when the last ones left for where their packets arrive */
    ctr_t homed;       /* how many have */
    struct conn *next; /* where the look at connections goes on; NULL: at the first */
};

/* What is known of a connection's requests; its worker's thread. */
struct migrate_rate {
    uint32_t counted; /* requests until `since`; wraps, as pump.served */
    float per_second;
    nsec_t since;
    nsec_t moved_at; /* 0: never */
    bool is_home;    /* ... to where its packets arrive */
};

/* A connection that is to go, but was not between two requests when it was looked at: it goes
 * when it is; its turns are of one request until then. */
struct migrate_wish {
    bool is_set;
    uint8_t reason; /* enum balance_reason */
    uint16_t to;
    uint32_t part; /* of its worker's requests, that are its own: BALANCE_SHARES */
    nsec_t until;  /* then it stays after all: loads have changed */
};

/* ---- any thread ----------------------------------------------------------------------- */

/* Look at how many requests connections have: a rate needs two looks. */
void migrate_watch(struct worker *w);
/* Gives move->from the order. */
void migrate_order(struct net_shared *shared, const struct balance_move *move);
/* No connection is given away from here on; one that is on its way arrives. */
void migrate_stop(struct net_shared *shared);

/* ---- the worker's ---------------------------------------------------------------------- */

/* ORDER_WATCH, ORDER_GIVE, ORDER_HOME. */
void migrate_look(struct worker *w);
void migrate_home(struct worker *w);
void migrate_obey(struct worker *w);
/* A connection with a wish is at the end of its turn. True: it was between two requests, and is
 * another worker's now, with the input that has come. */
bool migrate_fulfil(struct conn *c);
/* A connection has arrived. */
void migrate_take(struct worker *w, struct conn *c);
/* c leaves the worker's list. */
void migrate_forget(struct worker *w, const struct conn *c);
