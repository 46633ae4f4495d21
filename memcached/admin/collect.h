/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The lines of "stats", as names and values: read as a worker reads them for a client, without
 * one. The HTTP server's thread.
 */
#pragma once

#include "base/must.h"

struct stats;

struct collected {
    struct collected_line {
        const char *name, *value;
    } * lines;
    size_t count;
    char *text; /* of the names and values */
};

/* The lines of a group; "" is plain "stats". False: no memory. */
must_check bool collect_group(struct stats *st, const char *group, struct collected *c);
void collect_free(struct collected *c);
