/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What of saved.h needs no reader.
 */
#include "loadgen/tools/saved.h"

#include <assert.h>
#include <stdlib.h>

static const struct {
    const char *name;
    double share;
} points[] = {
    [SAVED_P50] = {"p50", .5},
    [SAVED_P95] = {"p95", .95},
    [SAVED_P99] = {"p99", .99},
    [SAVED_P999] = {"p99.9", .999},
};
static_assert(sizeof points / sizeof points[0] == SAVED_AT, "one row each");

const char *
saved_at_name(enum saved_at at)
{
    must((unsigned)at < SAVED_AT);
    return points[at].name;
}

double
saved_at_share(enum saved_at at)
{
    must((unsigned)at < SAVED_AT);
    return points[at].share;
}

void
saved_fini(struct saved *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        free(s->runs[i].name);
        free(s->runs[i].rows);
        hist_destroy(&s->runs[i].latency);
    }
    free(s->runs);
    *s = (struct saved){.runs = NULL};
}
