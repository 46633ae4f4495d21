/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The loop of one sending thread: asks the source what is due, sends it, waits, receives and
 * keeps connections up, from the begin of the window until the last replies have come. Its
 * thread only.
 */
#pragma once

#include "loadgen/drive/drive.h"
#include "loadgen/drive/receiver.h"
#include "loadgen/drive/reconnect.h"
#include "loadgen/drive/sender.h"
#include "loadgen/drive/source.h"
#include "loadgen/measure/cost.h"

struct event_loop {
    struct drive drive;
    struct sender sender;
    struct receiver receiver;
    struct reconnect reconnect;
    struct source *sources; /* a list: deferred keys, when there can be any; and: */
    struct source *source;
    bool has_ended; /* the source, before the window */

    nsec_t next_tick;
    nsec_t heard_at; /* when events came last */
    struct give_way way;
    bool is_timed;
    nsec_t timed_from, idle; /* idle: polled, and nothing came */
    struct cost cost_from;
    struct cost cost;
};

/* The arguments live longer than l. */
void event_loop_init(struct event_loop *l, const struct drive_conf *conf,
                     struct lset *set, const struct drive_into *into);
/* Also of one that is all zero. */
void event_loop_fini(struct event_loop *l);
/* Runs from window->begin to the end and drains; once. */
void event_loop_run(struct event_loop *l, const struct drive_window *window);
