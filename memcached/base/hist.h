/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Log-linear histogram of unsigned values (the layout of HdrHistogram, G. Tene): each power
 * of two is cut into 2^sub_bits equal buckets, so a bucket is at most 2^-sub_bits of its
 * value wide; values below 2^(sub_bits+1) are exact.
 *
 * One thread records; any thread may read or merge from it meanwhile (counters are relaxed
 * atomics, so a reader sees each count whole, not all of one instant).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hist;

#define HIST_SUB_BITS_MIN 1
#define HIST_SUB_BITS_MAX 14
#define HIST_VALUE_MAX INT64_MAX /* of max_value */

/* Values above max_value are counted as max_value and in hist_overflow. NULL when memory is
 * short. */
struct hist *hist_create(unsigned sub_bits, uint64_t max_value);
void hist_destroy(struct hist **h);

void hist_record(struct hist *h, uint64_t value);
void hist_record_n(struct hist *h, uint64_t value, uint64_t n);
/* The same into each of two of the same sub_bits and max_value. */
void hist_record_both(struct hist *a, struct hist *b, uint64_t value, uint64_t n);
/* n values, each 1 above the one before. */
void hist_record_row(struct hist *h, uint64_t first, uint64_t n);
/* Owner's thread only. */
void hist_reset(struct hist *h);

/* Adds src to dst (dst's owner calls). Both must have the same sub_bits and max_value. */
void hist_merge(struct hist *dst, const struct hist *src);
/* The same for a dst of at most src's sub_bits; mean and deviation then are those of the
 * middles of src's buckets. */
void hist_merge_coarse(struct hist *dst, const struct hist *src);
/* Sets dst to what came to `now` since `before`; all of one shape, and `before` an earlier
 * copy of `now`. Its smallest and largest are those of the buckets' bounds. */
void hist_since(struct hist *dst, const struct hist *now, const struct hist *before);

uint64_t hist_count(const struct hist *h);
uint64_t hist_overflow(const struct hist *h);
/* Records above the bucket that holds `value`. */
uint64_t hist_above(const struct hist *h, uint64_t value);
/* Exact; 0 when empty. */
uint64_t hist_min(const struct hist *h);
uint64_t hist_max(const struct hist *h);
double hist_mean(const struct hist *h);
double hist_stddev(const struct hist *h);
double hist_sum(const struct hist *h);
double hist_sum_squares(const struct hist *h);

/* After buckets were filled from a copy (hist_record_n with a value of each): what else the
 * copy knew of its records. Owner's thread only. */
void hist_restore(struct hist *h, uint64_t min, uint64_t max, double sum,
                  double sum_squares, uint64_t overflow);

/* The value at or below which the share q (0..1) of the records lies: the middle of the
 * bucket holding record number ceil(q * count), clamped to [min, max]; 0 when empty. */
uint64_t hist_quantile(const struct hist *h, double q);

/* Walks the non-empty buckets upwards; *cursor starts at 0. False at the end. Bucket bounds
 * are inclusive. */
bool hist_next(const struct hist *h, uint32_t *cursor, uint64_t *low, uint64_t *high,
               uint64_t *count);

/* What a histogram knows besides its buckets. */
struct hist_moments {
    uint64_t overflow, min, max; /* min is UINT64_MAX when empty */
    double sum, sum_squares;
};

/* For sending a histogram elsewhere: the buckets by number, of two histograms of the same
 * make the same values, and the rest. */
uint32_t hist_buckets(const struct hist *h);
uint64_t hist_bucket(const struct hist *h, uint32_t i);
void hist_bucket_add(struct hist *h, uint32_t i, uint64_t n);
struct hist_moments hist_moments(const struct hist *h);
void hist_set_moments(struct hist *h, const struct hist_moments *m);
