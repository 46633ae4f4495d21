/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The checks of a result: their names, and the limits beyond which a run says more about the
 * client than about the server. Pure.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

/* ---- objective --------------------------------------------------------------------- */

/* What a class is to be served like: so many of its requests within so much time. Pure. */
#define OBJECTIVE_TEXT_MAX 64

struct objective {
    double percent; /* 0: none is asked for; else above 0, at most 100 */
    nsec_t limit;   /* requests that take longer do not count as served */
};

/* "p99:500us": any decimal, and ns, us, ms or s; "99:500" is in microseconds, as mutilate
 * writes it. NULL, or a sentence saying what is wrong. */
must_check const char *objective_parse(void *slo, const char *text);
/* "p99:500us". */
void objective_describe(const struct objective *slo, char dst[OBJECTIVE_TEXT_MAX]);

/* ---- check ------------------------------------------------------------------------- */

enum result_check {
#define CHECK(id, ...) CHECK_##id,
#include "loadgen/measure/checks.def"
#undef CHECK
    CHECKS,
};

/* The limit is what the value must not be above, or below; a run that misses a fixed one is
 * worth nothing in any case. */
enum check_sense {
    CHECK_IS_MOST,
    CHECK_IS_LEAST,
    CHECK_IS_FIXED_MOST,
    CHECK_IS_FIXED_LEAST,
};

/* How the verdict shows the numbers. */
enum check_form {
    CHECK_SAYS,   /* not at all */
    CHECK_COUNTS, /* "3 errors" */
    CHECK_SHARES, /* "client CPU 97.00% > 95%" */
    CHECK_TIMES,  /* "1.20 > 1" */
};

struct check_kind {
    const char *name; /* "achieved_rate", for the JSON and --check */
    double limit;
    enum check_sense sense;
    enum check_form form;
    const char *before, *after, *advice;
};
extern const struct check_kind check_kinds[CHECKS];

struct check {
    bool applies; /* rate and the like: only to an open loop */
    bool is_good;
    double value, limit;
};

/* Limits of all checks, for changing: those that none was asked for. */
struct check_limits {
    double limit[CHECKS];
    bool is_off[CHECKS];
};

void check_limits_init(struct check_limits *l);
/* "NAME:LIMIT" or "NAME:off", with commas; limits of checks that tell a share are shares ("0.02",
 * "2%"), of others numbers. NULL, or a sentence saying what is wrong. */
must_check const char *check_limits_parse(void *limits, const char *text);

bool check_is_least(enum result_check check);
/* What a value comes to. */
struct check check_of(const struct check_limits *l, enum result_check check, bool applies,
                      double value);
