/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Moving connections between workers. A connection moves as a whole, between two
 * requests: its worker takes it out of its epoll set, list and queues and pushes it to
 * the other's mailbox; from the push on it is the other's. In between no thread has it.
 * What has happened on the socket meanwhile the other's epoll tells when the socket is
 * added.
 *
 * The workers' threads, except where it says otherwise.
 */
#pragma once

#include "qos/balance.h"

struct conn;
struct net_shared;
struct worker;

/* ---- any thread ----------------------------------------------------------------------- */

/* Gives move->from the order. */
void migrate_order(struct net_shared *shared, const struct balance_move *move);

/* ---- the worker's ---------------------------------------------------------------------- */

/* ORDER_WATCH, ORDER_GIVE, ORDER_HOME. */
void migrate_look(struct worker *w);
void migrate_home(struct worker *w);
void migrate_execute(struct worker *w);
/* A connection with a wish is at the end of its turn. True: it was between two requests, and is
 * another worker's now, with the input that has come. */
bool migrate_complete(struct conn *c);
/* A connection has arrived. */
void migrate_take(struct worker *w, struct conn *c);
