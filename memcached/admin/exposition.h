/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Writes metrics in the text format of Prometheus, version 0.0.4, or in that of OpenMetrics,
 * version 1.0: families, labels, escapes, and the names that each wants. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metric_label {
    const char *name, *value;
};

#define METRIC_LABELS_MAX 4

struct exposition {
    FILE *out;
    enum exposition_format format;
    const char *family; /* of the samples that follow; NULL: none yet */
};

/* By the header Accept of a request; NULL: it has none. */
enum exposition_format exposition_choose(const char *accept);
/* For the header Content-Type. */
const char *exposition_type(enum exposition_format format);

/* A family begins; nothing happens when it goes on. A counter's name ends in "_total". The name
 * is the caller's until the next family begins. */
void exposition_family(struct exposition *e, const char *name, enum metric_type type,
                       const char *help);
/* A sample of the family, named NAME and suffix. value: a number as text. */
void exposition_sample(struct exposition *e, const char *suffix,
                       const struct metric_label *labels, unsigned count,
                       const char *value);
void exposition_end(struct exposition *e);
