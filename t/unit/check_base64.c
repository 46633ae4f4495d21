/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Base64 against the examples of RFC 4648, every malformed group, and there and back at every
 * length. Source and destination are blocks of exactly the promised size.
 */
#include "base/base64.h"

#include "base/rng.h"
#include "check_main.h"

#define LEN_MAX 260

static const struct {
    const char *plain;
    const char *encoded;
} pairs[] = {
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/"},
    {"\xff\xff\xff", "////"},
    {"light work.", "bGlnaHQgd29yay4="},
};

static const char *const malformed[] = {
    "",      "Z",      "Zg",       "Zg=",   "Zm8",  "=",    "==",       "===",
    "====",  "Z===",   "=Zg=",     "Z=g=",  "Zg=x", "Zm=v", "Zg==Zg==", "Zm8=Zm9v",
    "Zm9v=", "Zm9v==", "Zm9v====", "Zm9vZ", "Zm-_", "Zm9 ", "Zm\t9",    "Zm9\x80",
    "Zm9.",  "Zm,v",   "Zm9\n",    "@m9v",  "[m9v", "`m9v", "{m9v",     ":m9v"};

TEST_ROWS(test_pair, pairs, row->plain)
{
    size_t n = strlen(row->plain), m = strlen(row->encoded), len = 0;
    FREED char *plain = exact_copy(row->plain, n), *encoded = malloc(BASE64_ENCODED(n));
    ck_assert_uint_eq(base64_encode(encoded, plain, n), m);
    ck_assert_mem_eq(encoded, row->encoded, m);
    FREED char *back = malloc(BASE64_DECODED_MAX(m));
    ck_assert(base64_decode(back, encoded, m, &len));
    ck_assert_uint_eq(len, n);
    ck_assert_mem_eq(back, row->plain, n);
}

TEST_ROWS(test_malformed, malformed, *row)
{
    size_t n = strlen(*row), len;
    FREED char *encoded = exact_copy(*row, n);
    FREED char *plain = malloc(BASE64_DECODED_MAX(n) + 1);
    ck_assert(!base64_decode(plain, encoded, n, &len));
}

/* Bits beyond the last byte do not count. */
TEST(test_left_over_bits)
{
    char plain[3];
    size_t len;
    ck_assert(base64_decode(plain, "Zh==", 4, &len));
    ck_assert(len == 1 && plain[0] == 'f');
    ck_assert(base64_decode(plain, "Zm9=", 4, &len));
    ck_assert(len == 2 && plain[1] == 'o');
}

TEST(test_there_and_back)
{
    struct rng rng = rng_of(64, 0);
    for (size_t n = 1; n <= LEN_MAX; n++) {
        FREED char *plain = malloc(n), *encoded = malloc(BASE64_ENCODED(n));
        for (size_t i = 0; i < n; i++) {
            plain[i] = (char)rng_below(&rng, 256);
        }
        size_t m = base64_encode(encoded, plain, n), len = 0;
        expect(m == BASE64_ENCODED(n));
        FREED char *back = malloc(BASE64_DECODED_MAX(m));
        expect(base64_decode(back, encoded, m, &len));
        expect(len == n && memcmp(back, plain, n) == 0);
    }
    ck_assert_uint_eq(base64_encode(NULL, NULL, 0), 0);
}
