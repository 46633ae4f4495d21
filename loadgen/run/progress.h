/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The progress line: once a second, what the threads did in it. Reads their counters while
 * they write; main thread only.
 */
#pragma once

#include "loadgen/drive/lthread.h"

struct progress {
    /* Latencies of all threads so far, and a second ago; and what came between. */
    struct hist *now, *before, *between;
    uint64_t answered;
    nsec_t at;
};

void progress_init(struct progress *p);
/* Another run begins. */
void progress_reset(struct progress *p);
void progress_fini(struct progress *p);
/* `records`: of so many; 0: unknown. */
void progress_load(const struct lthread *threads, unsigned count, uint64_t records,
                   FILE *out);
void progress_run(struct progress *p, const struct lthread *threads, unsigned count,
                  const struct drive_window *window, nsec_t now, FILE *out);
void progress_end(FILE *out);
