/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When a run knows enough: its percentiles' 95 % intervals are no wider than shares of the
 * percentiles, and so many requests have been answered. Pure.
 */
#pragma once

#include "base/must.h"
#include "loadgen/measure/series.h"

#define UNTIL_MAX 8

struct until {
    struct {
        double q;     /* share, below 1 */
        double width; /* share of the percentile */
    } wants[UNTIL_MAX];
    unsigned count;
    uint64_t answers; /* or errors; 0: however many */
};

/* "p99:2%", "p50:1%,p99.9:0.05", "n:1000". NULL, or a sentence saying what is wrong. */
must_check const char *until_parse(void *until, const char *text);
/* 95th and 99th percentile within 5 %: what --time=auto stands for. */
void until_auto(struct until *u);

/* Whether anything is wanted; else a run ends with its time. */
bool until_is_given(const struct until *u);

/* The interval's width over the percentile; infinite as long as it is not known, or lies among
 * requests never answered. */
double until_width(const struct series *s, double q);
/* Requests that were answered, or failed. */
uint64_t until_answers(const struct series *s);
/* Whether all that is wanted is there. */
bool until_is_met(const struct until *u, const struct series *s);
