/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Fills the timeline of the live page with what the workers count. The HTTP server's thread;
 * nothing in it waits for a worker.
 */
#pragma once

#include "admin/timeline.h"
#include "front/stats.h"

struct recorder {
    struct stats *stats;
    struct timeline timeline;
};

/* The workers have started. NULL: no memory. */
must_check struct recorder *recorder_create(struct stats *st);
void recorder_destroy(struct recorder **s);
/* To be called once a second. */
void recorder_second(struct recorder *s);

/* Adds what all workers have counted since the start. */
void recorder_count(const struct stats *st, struct timeline_counts *counts);
