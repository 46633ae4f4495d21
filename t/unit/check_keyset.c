/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Keys that have been met are known, as many as are allowed, however the table grows.
 */
#include "loadgen/work/keyset.h"
#include "check_main.h"

#include "base/rng.h"

#define MANY 200000

static struct keyset set;

static void
tear_down(void)
{
    keyset_fini(&set);
}

static uint64_t
hash_of(uint64_t key)
{
    return rng_mix(1, key, 2);
}

FIXTURE(NULL, tear_down);

TEST(test_once)
{
    keyset_init(&set, UINT64_MAX);
    for (uint64_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(keyset_add(&set, hash_of(i)), KEYSET_NEW);
        ck_assert_int_eq(keyset_add(&set, hash_of(i / 2)), KEYSET_KNOWN);
    }
    ck_assert_uint_eq(set.count, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(keyset_add(&set, hash_of(i)), KEYSET_KNOWN);
    }
    expect(set.size * sizeof *set.places <= 22 * set.count);
}

/* One more is refused as often as it comes; those before are still known. */
TEST_LOOP(test_full, 4)
{
    static const uint64_t most[] = {0, 1, 768, 1000};
    keyset_init(&set, most[_i]);
    for (uint64_t i = 0; i < most[_i]; i++) {
        ck_assert_int_eq(keyset_add(&set, hash_of(i)), KEYSET_NEW);
    }
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(keyset_add(&set, hash_of(most[_i])), KEYSET_FULL);
        for (uint64_t i = 0; i < most[_i]; i++) {
            ck_assert_int_eq(keyset_add(&set, hash_of(i)), KEYSET_KNOWN);
        }
    }
    ck_assert_uint_eq(set.count, most[_i]);
}

/* The number that stands for a free place, and such that share one. */
TEST(test_places)
{
    static const uint64_t hashes[] = {0, 2048, 4096, 1023, 2047, 3071, UINT64_MAX};
    keyset_init(&set, ROWS(hashes));
    for (size_t i = 0; i < ROWS(hashes); i++) {
        ck_assert_int_eq(keyset_add(&set, hashes[i]), KEYSET_NEW);
    }
    for (size_t i = 0; i < ROWS(hashes); i++) {
        ck_assert_int_eq(keyset_add(&set, hashes[i]), KEYSET_KNOWN);
    }
}
