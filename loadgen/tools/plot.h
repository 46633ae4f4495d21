/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Results as pictures. Pure but for the stream.
 */
#pragma once

#include "loadgen/tools/saved.h"

enum plot_kind {
    PLOT_CDF,  /* latency by percentile */
    PLOT_LOAD, /* latency by rate */
    PLOT_TIME, /* rate and latency by time */
    PLOT_BARS, /* a percentile of each run, side by side in groups */
    PLOT_KINDS,
};

/* Each group is what one word of the command line named. */
struct plot {
    enum plot_kind kind;
    const char *title; /* NULL: what the kind shows */
    enum saved_at at;  /* PLOT_BARS, and PLOT_LOAD of several groups */
    const struct saved *groups;
    unsigned groups_len;
};

extern const char *const plot_kinds[PLOT_KINDS];

/* False, and nothing is written, with what is missing in err (SAVED_ERR_MAX). */
must_check bool plot_draw(const struct plot *p, FILE *out, char *err);
