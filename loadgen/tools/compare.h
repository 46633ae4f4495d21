/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether two results differ by more than their confidence. Pure.
 */
#pragma once

#include "loadgen/tools/saved.h"

enum compare_verdict {
    COMPARE_UNKNOWN, /* one has no interval */
    COMPARE_SAME,    /* no difference shown: the intervals overlap */
    COMPARE_LOWER,   /* the second is lower */
    COMPARE_HIGHER,
};

/* What a group of runs says of one number. */
struct estimate {
    bool is_known;
    double value, low, high;
};

/* Of one run its own interval. Of several, Student's interval of their mean, which tells how
 * much runs differ between each other; joined with the widest of their own. */
struct estimate compare_estimate(const struct saved *group, enum saved_at at);
enum compare_verdict compare_two(struct estimate a, struct estimate b);

/* A table of both, with a sentence for each line. */
void compare_print(const struct saved *a, const struct saved *b, FILE *out);
