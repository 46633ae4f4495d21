/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/counters.h"

#include "base/alloc.h"

struct hist *
counters_hist(unsigned sub_bits)
{
    return alloc_checked(hist_create(sub_bits, COUNTERS_MAX_NS));
}

void
counters_init(struct counters *t)
{
    memset(t, 0, sizeof *t);
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        t->hists[i] = counters_hist(COUNTERS_SUB_BITS);
    }
}

void
counters_fini(struct counters *t)
{
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        hist_destroy(&t->hists[i]);
    }
}

void
counters_merge(struct counters *dst, const struct counters *src)
{
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        ctr_add(&dst->all[i], ctr_get(&src->all[i]));
    }
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        hist_merge(dst->hists[i], src->hists[i]);
    }
}

void
counters_reset(struct counters *t)
{
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        atomic_store_explicit(&t->all[i], 0, memory_order_relaxed);
    }
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        hist_reset(t->hists[i]);
    }
}

void
counters_sent(struct counters *t, nsec_t lag, unsigned n)
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
counters_good(struct counters *t, enum counters_verb verb, nsec_t from_intended,
              nsec_t from_issue, unsigned n)
{
    ctr_add(&t->good, n);
    struct hist *intended = t->latency[FROM_INTENDED][verb];
    struct hist *issue = t->latency[FROM_ISSUE][verb];
    if (from_intended == from_issue) { /* as in every closed loop */
        hist_record_both(intended, issue, from_issue, n);
    } else {
        hist_record_n(intended, from_intended, n);
        hist_record_n(issue, from_issue, n);
    }
}

void
counters_sized(struct counters *t, uint64_t bytes, nsec_t from_intended, unsigned n)
{
    hist_record_n(t->sizes[size_class_of(bytes)], from_intended, n);
}

void
counters_censored(struct counters *t, ctr_t *which, nsec_t waited)
{
    ctr_add(which, 1);
    hist_record(t->waits, waited);
}

uint64_t
counters_error_sum(const struct counters *t)
{
    uint64_t sum = 0;
    for (unsigned e = 0; e < COUNTERS_ERRORS; e++) {
        sum += ctr_get(&t->errors[e]);
    }
    return sum;
}

uint64_t
counters_sum(const ctr_t of[COUNTERS_VERBS])
{
    return ctr_get(&of[COUNTERS_READ]) + ctr_get(&of[COUNTERS_UPDATE]);
}

uint64_t
counters_done(const struct counters *t)
{
    return counters_sum(t->done);
}

const char *const counters_from_names[FROM_COUNT] = {
    [FROM_INTENDED] = "intended", [FROM_ISSUE] = "issue"};

const char *const counters_error_names[COUNTERS_ERRORS] = {
    [COUNTERS_ERROR] = "error",
    [COUNTERS_CLIENT_ERROR] = "client_error",
    [COUNTERS_SERVER_ERROR] = "server_error",
    [COUNTERS_UNEXPECTED] = "unexpected",
    [COUNTERS_WRONG] = "wrong_value",
    [COUNTERS_DESYNC] = "desync",
    [COUNTERS_DISCONNECT] = "disconnect",
    [COUNTERS_TIMEOUT] = "timeout",
    [COUNTERS_CONNECT] = "connect",
    [COUNTERS_LATE] = "late",
    [COUNTERS_DUPLICATE] = "duplicate",
};
