/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What rows of several groups make of their texts. Pure.
 */
#pragma once

#include "base/must.h"

struct dist;

#define VALUE_TIME_MAX_S 1e6

/* The index of the text among the names, `count` when it is none. */
unsigned value_find(const char *text, const char *const *names, unsigned count);

#define VALUE_COUNT(names) (sizeof(names) / sizeof(names)[0])

/* Seconds, or a number with its unit, from `min` to VALUE_TIME_MAX_S. NULL; or `wrong` when it
 * is none of these. */
must_check const char *value_time(const char *text, double min, double *seconds,
                                  const char *wrong);

/* Calls `keep` with each address of a list with commas; an address that is a path may hold
 * commas itself and stands alone. NULL, or what the first that `keep` refuses is told. */
must_check const char *value_addresses(void *conf, const char *text,
                                       const char *(*keep)(void *conf, const char *one));

/* One length of time with its unit, or a law of seconds, in place of the law that was there.
 * NULL, or a sentence. */
must_check const char *value_seconds(struct dist *d, const char *text);
