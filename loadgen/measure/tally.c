/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/tally.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/must.h"

/* The plain counters, for merging: a new one needs a row here. */
static const struct {
    size_t offset;
    unsigned count;
} counters[] = {
    {offsetof(struct tally, loaded), 1},
    {offsetof(struct tally, answered), 1},
    {offsetof(struct tally, errors), TALLY_ERRORS},
    {offsetof(struct tally, opened), 1},
    {offsetof(struct tally, closed), 1},
    {offsetof(struct tally, unserved), 1},
    {offsetof(struct tally, done), TALLY_VERBS},
    {offsetof(struct tally, keys), 1},
    {offsetof(struct tally, hits), 1},
    {offsetof(struct tally, ops), CODEC_VERBS},
    {offsetof(struct tally, no_effect), CODEC_VERBS},
    {offsetof(struct tally, rx_bytes), 1},
    {offsetof(struct tally, tx_bytes), 1},
    {offsetof(struct tally, filled), 1},
    {offsetof(struct tally, unfilled), 1},
    {offsetof(struct tally, won), 1},
    {offsetof(struct tally, waited), 1},
    {offsetof(struct tally, given_up), 1},
    {offsetof(struct tally, stale), 1},
    {offsetof(struct tally, offered), 1},
    {offsetof(struct tally, sent), 1},
    {offsetof(struct tally, good), 1},
    {offsetof(struct tally, skipped), 1},
    {offsetof(struct tally, unsent), 1},
    {offsetof(struct tally, lost), 1},
    {offsetof(struct tally, unanswered), 1},
    {offsetof(struct tally, starved), 1},
    {offsetof(struct tally, within), TALLY_BOUNDS},
    {offsetof(struct tally, on_their_way), 1},
    {offsetof(struct tally, at_edges), 1},
};

#define HISTS_BEFORE_SIZES (FROM_COUNT * TALLY_VERBS + 7)
#define HISTS (HISTS_BEFORE_SIZES + SIZE_CLASSES)

static_assert(sizeof(struct tally) ==
                  offsetof(struct tally, latency) + HISTS * sizeof(struct hist *),
              "histograms stand last");
static_assert(offsetof(struct tally, latency) ==
                  (25 + TALLY_ERRORS + TALLY_VERBS + 2 * CODEC_VERBS + TALLY_BOUNDS) *
                      sizeof(ctr_t),
              "each counter has its row");

static struct hist **
hist_at(struct tally *t, unsigned i)
{
    struct hist **others[] = {&t->waits,      &t->lag,           &t->wire,
                              &t->late,       &t->gaps_intended, &t->gaps_issued,
                              &t->outstanding};
    if (i < FROM_COUNT * TALLY_VERBS) {
        return &t->latency[i / TALLY_VERBS][i % TALLY_VERBS];
    }
    return i < HISTS_BEFORE_SIZES ? others[i - FROM_COUNT * TALLY_VERBS]
                                  : &t->sizes[i - HISTS_BEFORE_SIZES];
}

bool
tally_init(struct tally *t)
{
    memset(t, 0, sizeof *t);
    for (unsigned i = 0; i < HISTS; i++) {
        *hist_at(t, i) = hist_create(TALLY_SUB_BITS, TALLY_MAX_NS);
        if (*hist_at(t, i) == NULL) {
            tally_fini(t);
            return false;
        }
    }
    return true;
}

void
tally_fini(struct tally *t)
{
    for (unsigned i = 0; i < HISTS; i++) {
        hist_destroy(hist_at(t, i));
    }
}

void
tally_merge(struct tally *dst, const struct tally *src)
{
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        ctr_t *to = (ctr_t *)((char *)dst + counters[i].offset);
        const ctr_t *from = (const ctr_t *)((const char *)src + counters[i].offset);
        for (unsigned j = 0; j < counters[i].count; j++) {
            ctr_add(&to[j], ctr_get(&from[j]));
        }
    }
    for (unsigned i = 0; i < HISTS; i++) {
        hist_merge(*hist_at(dst, i), *hist_at((struct tally *)src, i));
    }
}

void
tally_reset(struct tally *t)
{
    for (unsigned i = 0; i < tally_counters(); i++) {
        atomic_store_explicit(tally_counter(t, i), 0, memory_order_relaxed);
    }
    for (unsigned i = 0; i < HISTS; i++) {
        hist_reset(*hist_at(t, i));
    }
}

/* They stand first and alone, as asserted above. */
unsigned
tally_counters(void)
{
    return offsetof(struct tally, latency) / sizeof(ctr_t);
}

ctr_t *
tally_counter(struct tally *t, unsigned i)
{
    must(i < tally_counters());
    return (ctr_t *)t + i;
}

unsigned
tally_hists(void)
{
    return HISTS;
}

struct hist *
tally_hist(struct tally *t, unsigned i)
{
    must(i < HISTS);
    return *hist_at(t, i);
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

static const char *const error_names[] = {
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
static_assert(sizeof error_names / sizeof error_names[0] == TALLY_ERRORS,
              "one name each");

const char *
tally_error_name(enum tally_error e)
{
    must((unsigned)e < TALLY_ERRORS);
    return error_names[e];
}
