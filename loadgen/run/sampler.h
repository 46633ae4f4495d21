/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Looks at the counters of a run under way at equal distances, a series for each class and
 * one for all. The thread that runs the run.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/drive/drive.h"
#include "loadgen/measure/result.h"
#include "loadgen/measure/series.h"
#include "loadgen/options/options.h"

/* ---- sampler ----------------------------------------------------------------------- */

#define SAMPLER_LENGTH_MAX NSEC_PER_SEC

struct sampler {
    const struct counters **counters; /* of all threads, those of a class in a row */
    unsigned counters_len;
    unsigned *first; /* of each class, and their number */
    unsigned classes;
    struct series **series;          /* one a class, then that of all */
    nsec_t row_length, length, next; /* when the next look is wanted */
    struct drive_window window;
};

/* Room for `classes` classes with `threads` threads in all. */
void sampler_init(struct sampler *o, unsigned classes, unsigned threads);
void sampler_fini(struct sampler *o);
/* One for each thread, class after class; they live longer than o. */
void sampler_add(struct sampler *o, unsigned class_index,
                 const struct counters *counters);

/* Before a run, and before its time is fixed, for this takes milliseconds; a row for the
 * report each row_length, with its latencies when it `keeps` them. */
void sampler_prepare(struct sampler *o, nsec_t row_length, bool keeps);
/* The run is this one; its end may come sooner: looks are no further apart than `longest`. */
void sampler_start(struct sampler *o, const struct drive_window *window, nsec_t longest);
/* Looks if it is time. */
void sampler_look(struct sampler *o, nsec_t now);
/* When all threads have ended: of each class, and (with their number) of all, whose window ended
 * then. */
void sampler_end(struct sampler *o, unsigned index, nsec_t end);

/* Of a class, or (with their number) of all; the caller owns it then, and there is another
 * after the next sampler_prepare. */
struct series *sampler_take(struct sampler *o, unsigned index);

/* ---- stopping ---------------------------------------------------------------------- */

/* Whether a run with --until knows enough to end. Its thread only. */
#define STOPPING_LOOK (50 * NSEC_PER_MSEC) /* between looks, for such a run */

struct stopping {
    nsec_t asked; /* the look that is next after the one it was asked for last */
    bool was_sure;
};

/* After each look; all zero at the begin. Sure twice in a row: one look may be lucky. */
bool stopping_is_reached(struct stopping *s, const struct options *o,
                         const struct sampler *w);
/* Of all that was measured, the last replies too; r->until is not NULL. */
bool stopping_is_met(const struct result *r);
