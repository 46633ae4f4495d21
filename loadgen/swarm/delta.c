/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/delta.h"

#include <math.h>

#include "base/alloc.h"
#include "base/be.h"
#include "base/rng.h"
#include "loadgen/swarm/message.h"

#define MOMENTS 5
#define MOMENT_BYTES 8
/* No counter of a run comes near it; sums of them stay far from wrapping. */
#define COUNT_MAX (UINT64_C(1) << 56)
#define SUM_MAX ((double)COUNT_MAX * (double)COUNTERS_MAX_NS)

static uint64_t
bits_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static double
double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static bool
has_grown(const struct hist *now, const struct hist *before)
{
    struct hist_moments a = hist_moments(now), b = hist_moments(before);
    /* A record is seen before it is in the sums, which may follow an interval later; the very
     * first is in the sums before its bounds are, and without bounds there is no telling. */
    return hist_count(now) > 0 &&
           (hist_count(now) != hist_count(before) || a.overflow != b.overflow ||
            a.min != b.min || a.max != b.max || a.sum != b.sum ||
            a.sum_squares != b.sum_squares);
}

/* The histogram's number, its moments, then pairs: buckets passed over, records. */
static void
put_hist(struct frame_out *o, unsigned number, const struct hist *now,
         const struct hist *before)
{
    struct hist_moments m = hist_moments(now);
    const uint64_t values[MOMENTS] = {m.overflow, m.min, m.max, bits_of(m.sum),
                                      bits_of(m.sum_squares)};
    uint32_t next = 0;
    size_t place = frame_open(o, FIELD_HIST);
    frame_add_varint(o, number);
    for (unsigned i = 0; i < MOMENTS; i++) {
        frame_add_u64(o, values[i]);
    }
    for (uint32_t i = 0; i < hist_buckets(now); i++) {
        uint64_t n = hist_bucket(now, i) - hist_bucket(before, i);
        if (n > 0) {
            frame_add_varint(o, i - next);
            frame_add_varint(o, n);
            next = i + 1;
        }
    }
    frame_close(o, place);
}

void
delta_put(struct frame_out *o, struct counters *now, struct counters *before)
{
    size_t place = frame_open(o, FIELD_COUNTERS);
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        frame_add_varint(o, ctr_get(&now->all[i]) - ctr_get(&before->all[i]));
    }
    frame_close(o, place);
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        if (has_grown(now->hists[i], before->hists[i])) {
            put_hist(o, i, now->hists[i], before->hists[i]);
        }
    }
}

void
delta_put_next(struct frame_out *o, struct counters *now, struct counters *before)
{
    delta_put(o, now, before);
    counters_reset(before);
    counters_merge(before, now);
}

/* ---- adding up ---------------------------------------------------------------------- */

/* With `applies` false these only look, so that a bad frame changes nothing. */

static bool
add_counters(struct counters *sum, const struct frame_field *field, bool applies)
{
    size_t at = 0;
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        uint64_t n;
        if (!frame_varint(field->p, field->len, &at, &n) || n > COUNT_MAX) {
            return false;
        }
        if (applies) {
            ctr_add(&sum->all[i], n);
        }
    }
    return at == field->len;
}

static bool
add_buckets(struct hist *h, const struct frame_field *field, size_t at, bool applies)
{
    uint64_t next = 0;
    while (at < field->len) {
        uint64_t gap, n;
        if (!frame_varint(field->p, field->len, &at, &gap) ||
            !frame_varint(field->p, field->len, &at, &n) || n == 0 || n > COUNT_MAX ||
            next >= hist_buckets(h) || gap >= hist_buckets(h) - next) {
            return false;
        }
        if (applies) {
            hist_bucket_add(h, (uint32_t)(next + gap), n);
        }
        next += gap + 1;
    }
    return true;
}

static bool
add_hist(struct counters *sum, const struct frame_field *field, uint64_t *seen,
         bool applies)
{
    uint64_t number, values[MOMENTS];
    size_t at = 0;
    if (!frame_varint(field->p, field->len, &at, &number) || number >= COUNTERS_HISTS ||
        (*seen >> number & 1) != 0 || field->len - at < sizeof values) {
        return false;
    }
    *seen |= UINT64_C(1) << number;
    for (unsigned i = 0; i < MOMENTS; i++, at += MOMENT_BYTES) {
        values[i] = be_get(field->p + at, FRAME_NUMBER_BYTES);
    }
    struct hist_moments m = {values[0], values[1], values[2], double_of(values[3]),
                             double_of(values[4])};
    bool is_good = m.overflow <= COUNT_MAX && m.min <= m.max && m.sum >= 0 &&
                   m.sum <= SUM_MAX && m.sum_squares >= 0 &&
                   m.sum_squares <= SUM_MAX * (double)COUNTERS_MAX_NS;
    struct hist *h = sum->hists[number];
    if (!is_good || !add_buckets(h, field, at, applies)) {
        return false;
    }
    if (applies) {
        hist_set_moments(h, &m);
    }
    return true;
}

static bool
add_all(struct counters *sum, const struct frame *f, bool applies)
{
    struct frame_field field;
    uint64_t seen = 0;
    size_t cursor = 0;
    must(COUNTERS_HISTS <= 64); /* a bit for each */
    if (!frame_bytes(f, FIELD_COUNTERS, 1, FRAME_MAX, &field) ||
        !add_counters(sum, &field, applies)) {
        return false;
    }
    while (frame_next(f, &cursor, &field)) {
        if (field.tag == FIELD_HIST && !add_hist(sum, &field, &seen, applies)) {
            return false;
        }
    }
    return true;
}

bool
delta_is_good(struct counters *sum, const struct frame *f)
{
    return add_all(sum, f, false);
}

bool
delta_add(struct counters *sum, const struct frame *f)
{
    return delta_is_good(sum, f) && add_all(sum, f, true);
}

uint64_t
delta_digest(struct counters *t)
{
    uint64_t digest = COUNTERS_LEN;
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        digest = rng_mix(digest, i, ctr_get(&t->all[i]));
    }
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        const struct hist *h = t->hists[i];
        struct hist_moments m = hist_moments(h);
        digest = rng_mix(digest, m.overflow, m.min);
        digest = rng_mix(digest, m.max, bits_of(m.sum));
        digest = rng_mix(digest, bits_of(m.sum_squares), hist_count(h));
        for (uint32_t b = 0; b < hist_buckets(h); b++) {
            if (hist_bucket(h, b) > 0) {
                digest = rng_mix(digest, b, hist_bucket(h, b));
            }
        }
    }
    return digest;
}

uint64_t
delta_shape(void)
{
    uint64_t shape = rng_mix(COUNTERS_LEN, COUNTERS_HISTS, COUNTERS_ERRORS);
    shape = rng_mix(shape, CODEC_VERBS, COUNTERS_BOUNDS);
    return rng_mix(shape, COUNTERS_SUB_BITS, COUNTERS_MAX_NS);
}

struct counters *
delta_counters_create(unsigned count)
{
    struct counters *counters = alloc_zeroed(count, sizeof *counters);
    for (unsigned i = 0; i < count; i++) {
        counters_init(&counters[i]);
    }
    return counters;
}

void
delta_counters_destroy(struct counters **counters, unsigned count)
{
    for (unsigned i = 0; *counters != NULL && i < count; i++) {
        counters_fini(&(*counters)[i]);
    }
    free(*counters);
    *counters = NULL;
}
