/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Counts of a histogram in few bytes: each byte of known ones, and all of them read back.
 */
#include "loadgen/measure/series.h"

#include "base/rng.h"
#include "check_main.h"

#define MOST UINT64_C(100000000000)

static struct hist *
make(void)
{
    struct hist *h = hist_create(PACKED_SUB_BITS, MOST);
    ck_assert_ptr_nonnull(h);
    return h;
}

static void
check_bytes(const struct hist *h, const uint8_t *bytes, size_t len)
{
    struct packed p;
    packed_make(&p, h);
    ck_assert_uint_eq(p.len, len);
    ck_assert_mem_eq(p.bytes, bytes, len);
    packed_fini(&p);
    ck_assert_ptr_null(p.bytes);
}

TEST(test_bytes)
{
    SCOPED(hist_destroy) struct hist *h = make();
    check_bytes(h, (const uint8_t[]){0}, 1); /* nothing: one empty bucket */
    hist_record(h, 0);
    check_bytes(h, (const uint8_t[]){2}, 1);
    hist_record_n(h, 2, 64); /* one empty bucket is a 0, 64 need two bytes */
    check_bytes(h, (const uint8_t[]){2, 0, 0x80, 1}, 4);
    hist_record_n(h, 5, 63); /* two are minus two */
    check_bytes(h, (const uint8_t[]){2, 0, 0x80, 1, 3, 126}, 6);
    hist_record(h,
                2048); /* buckets of width 2 begin: number 2048, 2042 behind the last */
    check_bytes(h, (const uint8_t[]){2, 0, 0x80, 1, 3, 126, 0xf3, 0x1f, 2}, 9);
}

/* The ninth byte has eight bits. */
TEST(test_largest)
{
    SCOPED(hist_destroy) struct hist *h = make();
    hist_record_n(h, 0, INT64_MAX);
    check_bytes(
        h, (const uint8_t[]){0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9);
}

static uint64_t
take(const struct packed *p, size_t *at)
{
    uint64_t n = 0;
    for (unsigned bits = 0; *at < p->len; bits += 7) {
        uint8_t byte = p->bytes[(*at)++];
        n |= (uint64_t)(bits == 56 ? byte : byte & 0x7f) << bits;
        if (byte < 0x80 || bits == 56) {
            break;
        }
    }
    return n;
}

TEST(test_all_come_back)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        SCOPED(hist_destroy) struct hist *h = make();
        SCOPED(packed_fini) struct packed p;
        struct rng rng = rng_of(seed, 0);
        for (unsigned i = 0; i < 2000; i++) {
            uint64_t value = rng_u64(&rng) >> (27 + rng_u64(&rng) % 37);
            hist_record_n(h, value, 1 + (rng_u64(&rng) >> (20 + rng_u64(&rng) % 44)));
        }
        packed_make(&p, h);
        uint32_t bucket = 0;
        for (size_t at = 0; at < p.len;) {
            uint64_t n = take(&p, &at);
            for (uint64_t empty = (n + 1) / 2; n % 2 == 1 && empty > 0; empty--) {
                ck_assert_uint_eq(hist_bucket(h, bucket++), 0);
            }
            if (n % 2 == 0) {
                ck_assert_uint_eq(hist_bucket(h, bucket++), n / 2);
            }
        }
        for (; bucket < hist_buckets(h); bucket++) {
            ck_assert_uint_eq(hist_bucket(h, bucket), 0);
        }
    }
}
