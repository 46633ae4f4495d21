/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Bucket index, with b = sub_bits and S = 2^b:
 *
 *     value:   0 .. 2S-1       2S .. 4S-1      4S .. 8S-1     ...
 *     width:   1               2               4
 *     index:   0 .. 2S-1       2S .. 3S-1      3S .. 4S-1     ...
 *
 * A value of at least 2S is shifted right until b+1 bits remain (S .. 2S-1 is then its
 * place in the row), and every shift moves it one row of S buckets up.
 */
#include "base/hist.h"

#include <math.h>
#include <stdatomic.h>

#include "base/ctr.h"
#include "base/must.h"

struct hist {
    unsigned sub_bits;
    uint32_t buckets;
    uint64_t max_value;
    uint64_t exact; /* values up to it have a bucket each */
    /* Buckets before first, and from end on, have not been used: most of a histogram is
     * empty, and readers leave that out. Nothing used: end is 0. */
    _Atomic uint32_t first, end;
    ctr_t count;
    ctr_t overflow;
    _Atomic uint64_t min; /* UINT64_MAX when empty */
    _Atomic uint64_t max;
    _Atomic double sum;
    _Atomic double sum_squares;
    ctr_t bucket[];
};

static uint32_t
bucket_of(const struct hist *h, uint64_t value)
{
    /* The highest bit, but not below that of the exact ones. */
    unsigned bit = 63 - (unsigned)__builtin_clzll(value | h->exact);
    unsigned shift = bit - h->sub_bits;
    return (uint32_t)(((uint64_t)shift << h->sub_bits) + (value >> shift));
}

static void
bucket_bounds(const struct hist *h, uint32_t index, uint64_t *low, uint64_t *high)
{
    uint32_t row = index >> h->sub_bits;
    unsigned shift = row > 1 ? row - 1 : 0;
    uint64_t place = index - ((uint64_t)shift << h->sub_bits);
    *low = place << shift;
    *high = *low + ((UINT64_C(1) << shift) - 1);
}

static double
get_double(const _Atomic double *d)
{
    return atomic_load_explicit(d, memory_order_relaxed);
}

static void
add_double(_Atomic double *d, double n)
{
    atomic_store_explicit(d, get_double(d) + n, memory_order_relaxed);
}

static uint32_t
first_of(const struct hist *h)
{
    return atomic_load_explicit(&h->first, memory_order_relaxed);
}

static uint32_t
end_of(const struct hist *h)
{
    return atomic_load_explicit(&h->end, memory_order_relaxed);
}

static void
use(struct hist *h, uint32_t first, uint32_t end)
{
    if (first < first_of(h)) {
        atomic_store_explicit(&h->first, first, memory_order_relaxed);
    }
    if (end > end_of(h)) {
        atomic_store_explicit(&h->end, end, memory_order_relaxed);
    }
}

static void
widen(struct hist *h, uint64_t min, uint64_t max)
{
    if (min < ctr_get(&h->min)) {
        atomic_store_explicit(&h->min, min, memory_order_relaxed);
    }
    if (max > ctr_get(&h->max)) {
        atomic_store_explicit(&h->max, max, memory_order_relaxed);
    }
}

static void
clear(struct hist *h)
{
    atomic_store_explicit(&h->first, UINT32_MAX, memory_order_relaxed);
    atomic_store_explicit(&h->end, 0, memory_order_relaxed);
    atomic_store_explicit(&h->count, 0, memory_order_relaxed);
    atomic_store_explicit(&h->overflow, 0, memory_order_relaxed);
    atomic_store_explicit(&h->min, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&h->max, 0, memory_order_relaxed);
    atomic_store_explicit(&h->sum, 0, memory_order_relaxed);
    atomic_store_explicit(&h->sum_squares, 0, memory_order_relaxed);
}

struct hist *
hist_create(unsigned sub_bits, uint64_t max_value)
{
    must(sub_bits >= HIST_SUB_BITS_MIN && sub_bits <= HIST_SUB_BITS_MAX);
    must(max_value <= HIST_VALUE_MAX);
    struct hist shape = {.sub_bits = sub_bits, .exact = (UINT64_C(2) << sub_bits) - 1};
    uint32_t buckets = bucket_of(&shape, max_value) + 1;
    struct hist *h = calloc(1, sizeof *h + buckets * sizeof h->bucket[0]);
    if (h == NULL) {
        return NULL;
    }
    *h = shape;
    h->max_value = max_value;
    h->buckets = buckets;
    clear(h); /* the buckets are 0 already, and most stay untouched for ever */
    return h;
}

void
hist_destroy(struct hist **h)
{
    free(*h);
    *h = NULL;
}

/* The value, n times, into its bucket. */
static inline __attribute__((always_inline)) void
put(struct hist *h, uint32_t at, uint64_t value, uint64_t n)
{
    double v = (double)(int64_t)value, sum = v * (double)n; /* signed is the quick way */
    ctr_add(&h->bucket[at], n);
    ctr_add(&h->count, n);
    add_double(&h->sum, sum);
    add_double(&h->sum_squares, v * sum);
    /* What widens the buckets in use widens this, too. */
    if (unlikely(value < ctr_get(&h->min) || value > ctr_get(&h->max))) {
        widen(h, value, value);
        use(h, at, at + 1);
    }
}

/* Of n values at once, or of one: then the n is gone when this is compiled. */
static inline __attribute__((always_inline)) void
record(struct hist *h, uint64_t value, uint64_t n)
{
    if (unlikely(value > h->max_value)) {
        value = h->max_value;
        ctr_add(&h->overflow, n);
    }
    put(h, bucket_of(h, value), value, n);
}

void
hist_record(struct hist *h, uint64_t value)
{
    record(h, value, 1);
}

void
hist_record_both(struct hist *a, struct hist *b, uint64_t value, uint64_t n)
{
    must(a->sub_bits == b->sub_bits && a->max_value == b->max_value);
    if (unlikely(value > a->max_value || n == 0)) {
        hist_record_n(a, value, n);
        hist_record_n(b, value, n);
        return;
    }
    uint32_t at = bucket_of(a, value);
    put(a, at, value, n);
    put(b, at, value, n);
}

/* Of values that are their buckets' numbers. */
void
hist_record_row(struct hist *h, uint64_t first, uint64_t n)
{
    uint64_t last = first + n - 1;
    if (n < 2 || last > h->exact || last > h->max_value) {
        for (; n > 0; n--) {
            hist_record(h, first++);
        }
        return;
    }
    double sum = (double)(first + last) * (double)n / 2, squares = 0;
    for (uint64_t v = first; v <= last; v++) {
        ctr_add(&h->bucket[v], 1);
        squares += (double)(v * v);
    }
    ctr_add(&h->count, n);
    add_double(&h->sum, sum);
    add_double(&h->sum_squares, squares);
    widen(h, first, last);
    use(h, (uint32_t)first, (uint32_t)last + 1);
}

void
hist_record_n(struct hist *h, uint64_t value, uint64_t n)
{
    if (n > 0) {
        record(h, value, n);
    }
}

void
hist_reset(struct hist *h)
{
    for (uint32_t i = first_of(h); i < end_of(h); i++) {
        atomic_store_explicit(&h->bucket[i], 0, memory_order_relaxed);
    }
    clear(h);
}

void
hist_merge(struct hist *dst, const struct hist *src)
{
    must(dst->sub_bits == src->sub_bits && dst->max_value == src->max_value);
    /* The count is summed from the buckets, so that dst agrees with itself even while src
     * is being recorded to. */
    uint64_t count = 0;
    uint32_t first = first_of(src), end = end_of(src);
    for (uint32_t i = first; i < end; i++) {
        uint64_t n = ctr_get(&src->bucket[i]);
        if (n > 0) {
            ctr_add(&dst->bucket[i], n);
            count += n;
        }
    }
    ctr_add(&dst->count, count);
    ctr_add(&dst->overflow, ctr_get(&src->overflow));
    add_double(&dst->sum, get_double(&src->sum));
    add_double(&dst->sum_squares, get_double(&src->sum_squares));
    use(dst, first, end);
    uint64_t min = ctr_get(&src->min), max = ctr_get(&src->max);
    if (min <= max && max <= dst->max_value) {
        use(dst, bucket_of(dst, min), bucket_of(dst, max) + 1); /* src may have grown */
    }
    widen(dst, min, max);
}

void
hist_merge_coarse(struct hist *dst, const struct hist *src)
{
    must(dst->sub_bits <= src->sub_bits);
    uint32_t at = 0;
    uint64_t low, high, count;
    while (hist_next(src, &at, &low, &high, &count)) {
        hist_record_n(dst, low + (high - low) / 2, count);
    }
}

void
hist_since(struct hist *dst, const struct hist *now, const struct hist *before)
{
    must(dst->buckets == now->buckets && dst->buckets == before->buckets);
    hist_reset(dst);
    uint64_t count = 0;
    for (uint32_t i = first_of(now); i < end_of(now); i++) {
        uint64_t n = ctr_get(&now->bucket[i]) - ctr_get(&before->bucket[i]);
        if (n > 0) {
            uint64_t low, high;
            bucket_bounds(dst, i, &low, &high);
            ctr_add(&dst->bucket[i], n);
            widen(dst, low, high);
            use(dst, i, i + 1);
            count += n;
        }
    }
    ctr_add(&dst->count, count);
    ctr_add(&dst->overflow, ctr_get(&now->overflow) - ctr_get(&before->overflow));
    add_double(&dst->sum, get_double(&now->sum) - get_double(&before->sum));
    add_double(&dst->sum_squares,
               get_double(&now->sum_squares) - get_double(&before->sum_squares));
}

uint64_t
hist_count(const struct hist *h)
{
    return ctr_get(&h->count);
}

uint64_t
hist_overflow(const struct hist *h)
{
    return ctr_get(&h->overflow);
}

uint64_t
hist_above(const struct hist *h, uint64_t value)
{
    uint64_t above = 0;
    if (value < h->max_value) {
        for (uint32_t i = bucket_of(h, value) + 1; i < end_of(h); i++) {
            above += ctr_get(&h->bucket[i]);
        }
    }
    return above;
}

uint64_t
hist_min(const struct hist *h)
{
    uint64_t min = ctr_get(&h->min);
    return min == UINT64_MAX && hist_count(h) == 0 ? 0 : min;
}

uint64_t
hist_max(const struct hist *h)
{
    return ctr_get(&h->max);
}

double
hist_mean(const struct hist *h)
{
    uint64_t n = hist_count(h);
    return n == 0 ? 0 : get_double(&h->sum) / (double)n;
}

double
hist_stddev(const struct hist *h)
{
    uint64_t n = hist_count(h);
    if (n == 0) {
        return 0;
    }
    double mean = hist_mean(h);
    double variance = get_double(&h->sum_squares) / (double)n - mean * mean;
    return variance > 0 ? sqrt(variance) : 0; /* rounding can leave it just below */
}

double
hist_sum(const struct hist *h)
{
    return get_double(&h->sum);
}

double
hist_sum_squares(const struct hist *h)
{
    return get_double(&h->sum_squares);
}

/* They come from elsewhere and may be anything, so they say nothing about the buckets. */
static void
set_bounds(struct hist *h, uint64_t min, uint64_t max)
{
    atomic_store_explicit(&h->min, min, memory_order_relaxed);
    atomic_store_explicit(&h->max, max, memory_order_relaxed);
    use(h, 0, h->buckets);
}

void
hist_restore(struct hist *h, uint64_t min, uint64_t max, double sum, double sum_squares,
             uint64_t overflow)
{
    if (hist_count(h) > 0) {
        set_bounds(h, min, max);
        atomic_store_explicit(&h->sum, sum, memory_order_relaxed);
        atomic_store_explicit(&h->sum_squares, sum_squares, memory_order_relaxed);
        atomic_store_explicit(&h->overflow, overflow, memory_order_relaxed);
    }
}

static uint64_t
clamp(uint64_t v, uint64_t low, uint64_t high)
{
    return v < low ? low : v > high ? high : v;
}

uint64_t
hist_quantile(const struct hist *h, double q)
{
    must(q >= 0 && q <= 1);
    uint64_t n = hist_count(h);
    if (n == 0) {
        return 0;
    }
    uint64_t rank = (uint64_t)ceil(q * (double)n);
    rank = clamp(rank, 1, n);
    uint64_t seen = 0;
    for (uint32_t i = first_of(h); i < end_of(h); i++) {
        seen += ctr_get(&h->bucket[i]);
        if (seen >= rank) {
            uint64_t low, high;
            bucket_bounds(h, i, &low, &high);
            return clamp(low + (high - low) / 2, hist_min(h), hist_max(h));
        }
    }
    return hist_max(h);
}

bool
hist_next(const struct hist *h, uint32_t *cursor, uint64_t *low, uint64_t *high,
          uint64_t *count)
{
    uint32_t first = first_of(h);
    for (uint32_t i = *cursor > first ? *cursor : first; i < end_of(h); i++) {
        uint64_t n = ctr_get(&h->bucket[i]);
        if (n > 0) {
            bucket_bounds(h, i, low, high);
            *count = n;
            *cursor = i + 1;
            return true;
        }
    }
    *cursor = h->buckets;
    return false;
}

uint32_t
hist_buckets(const struct hist *h)
{
    return h->buckets;
}

uint64_t
hist_bucket(const struct hist *h, uint32_t i)
{
    must(i < h->buckets);
    return ctr_get(&h->bucket[i]);
}

void
hist_bucket_add(struct hist *h, uint32_t i, uint64_t n)
{
    must(i < h->buckets);
    ctr_add(&h->bucket[i], n);
    ctr_add(&h->count, n);
    use(h, i, i + 1);
}

struct hist_moments
hist_moments(const struct hist *h)
{
    return (struct hist_moments){
        .overflow = ctr_get(&h->overflow),
        .min = ctr_get(&h->min),
        .max = ctr_get(&h->max),
        .sum = get_double(&h->sum),
        .sum_squares = get_double(&h->sum_squares),
    };
}

void
hist_set_moments(struct hist *h, const struct hist_moments *m)
{
    atomic_store_explicit(&h->overflow, m->overflow, memory_order_relaxed);
    set_bounds(h, m->min, m->max);
    atomic_store_explicit(&h->sum, m->sum, memory_order_relaxed);
    atomic_store_explicit(&h->sum_squares, m->sum_squares, memory_order_relaxed);
}
