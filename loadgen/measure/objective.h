/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a class is to be served like: so many of its requests within so much time. Pure.
 */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "base/must.h"

#define OBJECTIVE_TEXT_MAX 64

struct objective {
    double percent; /* 0: none is asked for; else above 0, at most 100 */
    nsec_t limit;   /* requests that take longer do not count as served */
};

/* "p99:500us": any decimal, and ns, us, ms or s; "99:500" is in microseconds, as mutilate
 * writes it. NULL, or a sentence saying what is wrong. */
must_check const char *objective_parse(struct objective *slo, const char *text);
/* "p99:500us". */
void objective_describe(const struct objective *slo, char dst[OBJECTIVE_TEXT_MAX]);
