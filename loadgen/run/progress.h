/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The progress line: what was done since the one before. Reads counters while their threads write;
 * main thread only.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/measure/counters.h"

struct progress {
    /* Latencies so far, and at the line before; and what came between. */
    struct hist *now, *before, *between;
    uint64_t answered;
    nsec_t at;
};

/* When requests begin, when they are measured, until when they are meant to go on. */
struct progress_span {
    nsec_t begin, start, end;
};

void progress_init(struct progress *p);
/* Another run: the first line is of what comes from this moment on. */
void progress_reset(struct progress *p, nsec_t since);
void progress_fini(struct progress *p);
/* `records`: of so many; 0: unknown. */
void progress_load(const struct counters *const *all, unsigned count, uint64_t records,
                   FILE *out);
/* A line of the time alone. */
void progress_time(const struct progress_span *span, nsec_t now, FILE *out);
/* `now`: what the counters are of. `lost`: agents. */
void progress_run(struct progress *p, const struct counters *const *all, unsigned count,
                  const struct progress_span *span, unsigned lost, nsec_t now, FILE *out);
/* What is printed next has the line to itself. */
void progress_end(FILE *out);
