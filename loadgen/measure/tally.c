/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/tally.h"

#include <string.h>

#include "base/must.h"

bool
tally_init(struct tally *t)
{
    memset(t, 0, sizeof *t);
    for (unsigned i = 0; i < TALLY_HISTS; i++) {
        t->hists[i] = hist_create(TALLY_SUB_BITS, TALLY_MAX_NS);
        if (t->hists[i] == NULL) {
            tally_fini(t);
            return false;
        }
    }
    return true;
}

void
tally_fini(struct tally *t)
{
    for (unsigned i = 0; i < TALLY_HISTS; i++) {
        hist_destroy(&t->hists[i]);
    }
}

void
tally_merge(struct tally *dst, const struct tally *src)
{
    for (unsigned i = 0; i < TALLY_COUNTERS; i++) {
        ctr_add(&dst->counters[i], ctr_get(&src->counters[i]));
    }
    for (unsigned i = 0; i < TALLY_HISTS; i++) {
        hist_merge(dst->hists[i], src->hists[i]);
    }
}

void
tally_reset(struct tally *t)
{
    for (unsigned i = 0; i < TALLY_COUNTERS; i++) {
        atomic_store_explicit(&t->counters[i], 0, memory_order_relaxed);
    }
    for (unsigned i = 0; i < TALLY_HISTS; i++) {
        hist_reset(t->hists[i]);
    }
}

void
tally_sent(struct tally *t, nsec_t lag, unsigned n)
{
    ctr_add(&t->sent, n);
    hist_record_n(t->lag, lag, n);
    if (likely(lag <= NSEC_PER_MSEC)) {
        ctr_add(&t->within[WITHIN_1MS], n);
        if (lag <= 50 * NSEC_PER_USEC) {
            ctr_add(&t->within[WITHIN_50US], n);
        }
        if (lag <= 5 * NSEC_PER_USEC) {
            ctr_add(&t->within[WITHIN_5US], n);
        }
    }
}

void
tally_good(struct tally *t, enum tally_verb verb, nsec_t from_intended, nsec_t from_issue)
{
    ctr_add(&t->good, 1);
    struct hist *intended = t->latency[FROM_INTENDED][verb];
    struct hist *issue = t->latency[FROM_ISSUE][verb];
    if (from_intended == from_issue) { /* as in every closed loop */
        hist_record_both(intended, issue, from_issue);
    } else {
        hist_record(intended, from_intended);
        hist_record(issue, from_issue);
    }
}

void
tally_sized(struct tally *t, uint64_t bytes, nsec_t from_intended)
{
    hist_record(t->sizes[size_class_of(bytes)], from_intended);
}

void
tally_censored(struct tally *t, ctr_t *which, nsec_t waited)
{
    ctr_add(which, 1);
    hist_record(t->waits, waited);
}

uint64_t
tally_error_sum(const struct tally *t)
{
    uint64_t sum = 0;
    for (unsigned e = 0; e < TALLY_ERRORS; e++) {
        sum += ctr_get(&t->errors[e]);
    }
    return sum;
}

const char *const tally_error_names[TALLY_ERRORS] = {
    [TALLY_ERROR] = "error",
    [TALLY_CLIENT_ERROR] = "client_error",
    [TALLY_SERVER_ERROR] = "server_error",
    [TALLY_UNEXPECTED] = "unexpected",
    [TALLY_WRONG] = "wrong_value",
    [TALLY_DESYNC] = "desync",
    [TALLY_DISCONNECT] = "disconnect",
    [TALLY_TIMEOUT] = "timeout",
    [TALLY_CONNECT] = "connect",
    [TALLY_LATE] = "late",
    [TALLY_DUPLICATE] = "duplicate",
};
