/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What each thread of a run has to do: which servers, connections and records are its own,
 * and how it sends. The thread of run_open.
 */
#pragma once

#include "loadgen/run/run_state.h"

/* Of what all processes together store, the part of one of the class's threads. */
struct load_slice assignment_slice(const struct run *r, const struct run_class *c,
                                   unsigned thread);
/* The same of a trace: of all its keys, those of this process. */
void assignment_stock(const struct run *r, const struct run_class *c,
                      struct reader_stock *stock, struct reader_slice *slice);
/* What may be another in each run. */
struct drive_conf assignment_drive(const struct run *r, const struct run_class *c,
                                   unsigned thread);
/* What the thread starts with; takes local ports when they are chosen. */
struct lthread_conf assignment_thread(struct run *r, const struct run_class *c,
                                      unsigned thread);
