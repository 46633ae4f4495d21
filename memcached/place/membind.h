/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * On which memory nodes the store's pages lie. All workers read all of them, so the pages
 * are spread over the nodes unless an option says otherwise. What fails is counted, never
 * fatal.
 *
 * Main opens; any thread binds.
 */
#pragma once

#include <stdatomic.h>

#include "base/must.h"

enum membind_policy {
    MEMBIND_DEFAULT, /* interleave when workers are pinned on more than one node */
    MEMBIND_NONE,    /* as the system does it */
    MEMBIND_INTERLEAVE,
    MEMBIND_LOCAL, /* the node of the thread that touches a page first */
    MEMBIND_NODE,  /* one node */
};

struct membind_spec {
    enum membind_policy policy;
    unsigned node; /* OS number, MEMBIND_NODE */
};

#define MEMBIND_NODES 1024 /* the most that a kernel is built for */
#define MEMBIND_WORDS (MEMBIND_NODES / (8 * sizeof(unsigned long)))

struct membind {
    struct membind_spec spec; /* in force: MEMBIND_NONE when `why` is not empty */
    unsigned long nodes[MEMBIND_WORDS]; /* it is to use these */
    char why[128];                      /* why the policy is not in force */
    _Atomic unsigned long areas, errors;
};

/* Parses "interleave", "local", "node:K", "none". NULL, or what is wrong. */
must_check const char *membind_parse(void *to, const char *text);
/* "node:3"; the text lives until the thread's next call. */
const char *membind_name(const struct membind_spec *spec);

void membind_open(struct membind *m, const struct membind_spec *spec, bool is_pinned);
/* ctx is the struct membind; binds memory that was not touched yet. */
void membind_area(void *ctx, void *area, size_t bytes);
