/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Numbers to and from text at every edge. Each word lies in a block that ends where it ends.
 */
#include "base/num.h"

#include <inttypes.h>

#include "base/rng.h"
#include "check_unit.h"

#define UNTOUCHED 77

struct unsigned_row {
    const char *text;
    size_t len; /* 0: strlen(text) */
    bool is_number;
    uint64_t value;
};

static const struct unsigned_row unsigned_rows[] = {
    {"0", 0, true, 0},
    {"9", 0, true, 9},
    {"00", 0, true, 0},
    {"0000000000000000000000000000001", 0, true, 1},
    {"2147483647", 0, true, INT32_MAX},
    {"4294967295", 0, true, UINT32_MAX},
    {"4294967296", 0, true, UINT64_C(4294967296)},
    {"9223372036854775807", 0, true, INT64_MAX},
    {"9223372036854775808", 0, true, UINT64_C(9223372036854775808)},
    {"18446744073709551609", 0, true, UINT64_MAX - 6},
    {"18446744073709551615", 0, true, UINT64_MAX},
    {"00018446744073709551615", 0, true, UINT64_MAX},
    {"18446744073709551616", 0, false, 0},
    {"18446744073709551620", 0, false, 0},
    {"18446744073709551625", 0, false, 0},
    {"99999999999999999999", 0, false, 0},
    {"100000000000000000000", 0, false, 0},
    {"184467440737095516150", 0, false, 0},
    {"-1", 0, false, 0},
    {"-0", 0, false, 0},
    {"+1", 0, false, 0},
    {"-", 0, false, 0},
    {"+", 0, false, 0},
    {" 1", 0, false, 0},
    {"1 ", 0, false, 0},
    {"1\n", 0, false, 0},
    {"1\0", 2, false, 0},
    {"\0", 1, false, 0},
    {"1\0002", 3, false, 0},
    {"0x10", 0, false, 0},
    {"1a", 0, false, 0},
    {"/", 0, false, 0}, /* the neighbours of the digits */
    {":", 0, false, 0},
    {"1.0", 0, false, 0},
    {"1e3", 0, false, 0},
    {"\xb1", 0, false, 0}, /* '1' with the top bit */
    {"\xff", 0, false, 0},
};

static size_t
length(const char *text, size_t len)
{
    return len != 0 ? len : strlen(text);
}

START_TEST(test_unsigned)
{
    const struct unsigned_row *row = &unsigned_rows[_i];
    size_t n = length(row->text, row->len);
    char *p = exact_copy(row->text, n);
    uint64_t wide = UNTOUCHED;
    uint32_t narrow = UNTOUCHED;
    ck_assert_int_eq(num_u64(p, n, &wide), row->is_number);
    ck_assert_uint_eq(wide, row->is_number ? row->value : UNTOUCHED);
    bool is_narrow = row->is_number && row->value <= UINT32_MAX;
    ck_assert_int_eq(num_u32(p, n, &narrow), is_narrow);
    ck_assert_uint_eq(narrow, is_narrow ? row->value : UNTOUCHED);
    free(p);
}
END_TEST

struct signed_row {
    const char *text;
    bool is_number;
    int64_t value;
};

static const struct signed_row signed_rows[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"-1", true, -1},
    {"-0001", true, -1},
    {"2147483647", true, INT32_MAX},
    {"2147483648", true, INT64_C(2147483648)},
    {"-2147483648", true, INT32_MIN},
    {"-2147483649", true, INT64_C(-2147483649)},
    {"9223372036854775807", true, INT64_MAX},
    {"9223372036854775808", false, 0},
    {"-9223372036854775808", true, INT64_MIN},
    {"-9223372036854775809", false, 0},
    {"18446744073709551615", false, 0},
    {"-18446744073709551616", false, 0},
    {"-", false, 0},
    {"--1", false, 0},
    {"-+1", false, 0},
    {"+1", false, 0},
    {"- 1", false, 0},
    {"1-", false, 0},
    {"-1x", false, 0},
};

START_TEST(test_signed)
{
    const struct signed_row *row = &signed_rows[_i];
    size_t n = strlen(row->text);
    char *p = exact_copy(row->text, n);
    int64_t wide = UNTOUCHED;
    int32_t narrow = UNTOUCHED;
    ck_assert_int_eq(num_i64(p, n, &wide), row->is_number);
    ck_assert_int_eq(wide, row->is_number ? row->value : UNTOUCHED);
    bool is_narrow = row->is_number && row->value >= INT32_MIN && row->value <= INT32_MAX;
    ck_assert_int_eq(num_i32(p, n, &narrow), is_narrow);
    ck_assert_int_eq(narrow, is_narrow ? row->value : UNTOUCHED);
    free(p);
}
END_TEST

static const struct loose_row {
    const char *text;
    size_t len; /* 0: strlen(text) */
    bool is_number;
    int64_t value; /* a negative one is no unsigned number */
} loose_rows[] = {
    {"0", 0, true, 0},
    {"12", 0, true, 12},
    {"+5", 0, true, 5},
    {"-5", 0, true, -5},
    {"-0", 0, true, 0},
    {"+0", 0, true, 0},
    {"0000000000000000000000000", 0, true, 0},
    {"-00000000000000000000000007", 0, true, -7},
    {" 12", 0, true, 12},
    {"\t\n\v\f\r +5", 0, true, 5},
    {"12 34", 0, true, 12},
    {"12\t", 0, true, 12},
    {"12\n", 0, true, 12},
    {"12\vx", 0, true, 12},
    {"12\fx", 0, true, 12},
    {"12\r", 0, true, 12},
    {"12\0", 3, true, 12},
    {"12\0x", 4, true, 12},
    {"9223372036854775807", 0, true, INT64_MAX},
    {"-9223372036854775808", 0, true, INT64_MIN},
    {"-9223372036854775809", 0, false, 0},
    {"18446744073709551616", 0, false, 0},
    {"-18446744073709551615", 0, false, 0},
    {"", 0, false, 0},
    {" ", 0, false, 0},
    {"+", 0, false, 0},
    {"-", 0, false, 0},
    {"+ 5", 0, false, 0},
    {"+-5", 0, false, 0},
    {"--5", 0, false, 0},
    {"\0", 1, false, 0},
    {"\0005", 2, false, 0},
    {"5-", 0, false, 0},
    {"5x", 0, false, 0},
    {"5\x85", 0, false, 0}, /* white space elsewhere */
    {"\x1c"
     "5",
     0, false, 0},
    {"\b5", 0, false, 0}, /* the neighbours of \t and \r */
    {"5\b", 0, false, 0},
    {"5\x0e", 0, false, 0},
    {"0x10", 0, false, 0},
    {"1e3", 0, false, 0},
};

START_TEST(test_loose)
{
    const struct loose_row *row = &loose_rows[_i];
    size_t n = length(row->text, row->len);
    char *p = exact_copy(row->text, n);
    int64_t with_sign = UNTOUCHED;
    uint64_t without = UNTOUCHED;
    ck_assert_int_eq(num_i64_loose(p, n, &with_sign), row->is_number);
    ck_assert_int_eq(with_sign, row->is_number ? row->value : UNTOUCHED);
    bool is_unsigned = row->is_number && row->value >= 0;
    ck_assert_int_eq(num_u64_loose(p, n, &without), is_unsigned);
    ck_assert_uint_eq(without, is_unsigned ? (uint64_t)row->value : UNTOUCHED);
    free(p);
}
END_TEST

START_TEST(test_loose_largest)
{
    int64_t with_sign = UNTOUCHED;
    uint64_t without = UNTOUCHED;
    ck_assert(num_u64_loose("+18446744073709551615", 21, &without));
    ck_assert_uint_eq(without, UINT64_MAX);
    ck_assert(!num_i64_loose("9223372036854775808", 19, &with_sign));
    ck_assert_int_eq(with_sign, UNTOUCHED);
}
END_TEST

START_TEST(test_empty_word)
{
    /* One byte that must not be read. */
    char *p = exact_copy("5", 1);
    const char *volatile end = p + 1; /* behind it; the compiler must not know */
    uint64_t u64 = UNTOUCHED;
    uint32_t u32 = UNTOUCHED;
    int64_t i64 = UNTOUCHED;
    int32_t i32 = UNTOUCHED;
    double d = UNTOUCHED;
    ck_assert(!num_u64(end, 0, &u64));
    ck_assert(!num_u32(end, 0, &u32));
    ck_assert(!num_i64(end, 0, &i64));
    ck_assert(!num_i32(end, 0, &i32));
    ck_assert(!num_scaled(end, 0, 1024, &u64));
    ck_assert(!num_double(end, 0, &d));
    ck_assert(!num_u64("5", 0, &u64));
    ck_assert_uint_eq(u64, UNTOUCHED);
    ck_assert_uint_eq(u32, UNTOUCHED);
    ck_assert_int_eq(i64, UNTOUCHED);
    ck_assert_int_eq(i32, UNTOUCHED);
    ck_assert_double_eq(d, UNTOUCHED);
    free(p);
}
END_TEST

struct scaled_row {
    const char *text;
    uint64_t unit;
    bool is_number;
    uint64_t value;
};

static const struct scaled_row scaled_rows[] = {
    {"0", 1024, true, 0},
    {"0g", 1024, true, 0},
    {"7", 1024, true, 7},
    {"1k", 1024, true, 1024},
    {"1K", 1000, true, 1000},
    {"3m", 1024, true, 3145728},
    {"3M", 1000, true, 3000000},
    {"2g", 1024, true, UINT64_C(2147483648)},
    {"2G", 1000, true, UINT64_C(2000000000)},
    {"18446744073709551615", 1024, true, UINT64_MAX},
    {"18446744073709551616", 1024, false, 0},
    {"18014398509481983k", 1024, true, UINT64_C(18446744073709550592)},
    {"18014398509481984k", 1024, false, 0},
    {"17592186044415m", 1024, true, UINT64_C(18446744073708503040)},
    {"17592186044416m", 1024, false, 0},
    {"17179869183g", 1024, true, UINT64_C(18446744072635809792)},
    {"17179869184g", 1024, false, 0},
    {"18446744073g", 1000, true, UINT64_C(18446744073000000000)},
    {"18446744074g", 1000, false, 0},
    {"18446744073709551615k", 1000, false, 0},
    {"k", 1024, false, 0},
    {"g", 1024, false, 0},
    {"1kk", 1024, false, 0},
    {"1kb", 1024, false, 0},
    {"1t", 1024, false, 0},
    {"1 k", 1024, false, 0},
    {"k1", 1024, false, 0},
    {"-1k", 1024, false, 0},
    {"+1k", 1024, false, 0},
    {"1.5k", 1024, false, 0},
};

START_TEST(test_scaled)
{
    const struct scaled_row *row = &scaled_rows[_i];
    size_t n = strlen(row->text);
    char *p = exact_copy(row->text, n);
    uint64_t value = UNTOUCHED;
    ck_assert_int_eq(num_scaled(p, n, row->unit, &value), row->is_number);
    if (row->is_number) {
        ck_assert_uint_eq(value, row->value);
    }
    free(p);
}
END_TEST

struct double_row {
    const char *text;
    bool is_number;
    double value;
};

static const struct double_row double_rows[] = {
    {"0", true, 0},
    {"1.25", true, 1.25},
    {"-1.25", true, -1.25},
    {".5", true, 0.5},
    {"-.5", true, -0.5},
    {"5.", true, 5},
    {"0.000000000000000001", true, 1e-18},
    {"999999999999999999", true, 999999999999999999.0},
    {"0.999999999999999999", true, 1.0},
    {"007.50", true, 7.5},
    {"", false, 0},
    {".", false, 0},
    {"-", false, 0},
    {"-.", false, 0},
    {"--1", false, 0},
    {"+1", false, 0},
    {"1.2.3", false, 0},
    {"1..2", false, 0},
    {"1,25", false, 0},
    {"1.-5", false, 0},
    {"1e5", false, 0},
    {"inf", false, 0},
    {"nan", false, 0},
    {"0x1", false, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"1.5x", false, 0},
};

START_TEST(test_double)
{
    const struct double_row *row = &double_rows[_i];
    size_t n = strlen(row->text);
    char *p = exact_copy(row->text, n);
    double value = UNTOUCHED;
    ck_assert_int_eq(num_double(p, n, &value), row->is_number);
    ck_assert_double_eq_tol(value, row->is_number ? row->value : UNTOUCHED, 1e-15);
    free(p);
}
END_TEST

START_TEST(test_double_never_overflows)
{
    char digits[400];
    memset(digits, '9', sizeof digits);
    for (size_t n = 1; n <= sizeof digits; n++) {
        double value = 0;
        char *p = exact_copy(digits, n);
        if (num_double(p, n, &value)) {
            ck_assert_double_finite(value);
            ck_assert_double_gt(value, 8);
        }
        p[0] = '.';
        if (num_double(p, n, &value)) {
            ck_assert_double_ge(value, 0);
            ck_assert_double_le(value, 1);
        }
        free(p);
    }
}
END_TEST

static void
check_padded(uint64_t value)
{
    char expected[32];
    size_t n =
        (size_t)snprintf(expected, sizeof expected, "%0*" PRIu64, NUM_PADDED, value);
    if (n > NUM_PADDED) {
        return;
    }
    char *dst = exact_copy(expected, n);
    memset(dst, '?', n);
    num_put_padded(dst, value);
    expect(memcmp(dst, expected, n) == 0);
    free(dst);
}

static void
check_round_trip(uint64_t value)
{
    char expected[32];
    size_t n = (size_t)snprintf(expected, sizeof expected, "%" PRIu64, value);
    expect(n <= NUM_U64_DIGITS);
    char *dst = exact_copy(expected, n);
    memset(dst, '?', n);
    expect(num_put_u64(dst, value) == n);
    expect(memcmp(dst, expected, n) == 0);
    uint64_t again = ~value;
    expect(num_u64(dst, n, &again));
    expect(again == value);
    int64_t i64 = UNTOUCHED;
    expect(num_i64(dst, n, &i64) == (value <= INT64_MAX));
    uint32_t u32 = UNTOUCHED;
    expect(num_u32(dst, n, &u32) == (value <= UINT32_MAX));
    free(dst);
    check_padded(value);
}

START_TEST(test_ports)
{
    static const char *const good[] = {"1", "65535", "00080", "http", "80x", "-1"};
    static const char *const bad[] = {"", "0", "65536", "99999",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(num_may_be_port(good[i], strlen(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!num_may_be_port(bad[i], strlen(bad[i])), "%s", bad[i]);
    }
}
END_TEST

START_TEST(test_put_at_boundaries)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t power = UINT64_C(1) << bit;
        check_round_trip(power - 1);
        check_round_trip(power);
        check_round_trip(power + 1);
    }
    uint64_t ten = 1;
    for (unsigned digits = 1; digits <= NUM_U64_DIGITS; digits++, ten *= 10) {
        check_round_trip(ten - 1);
        check_round_trip(ten);
        check_round_trip(ten + 1);
    }
    for (uint64_t value = 0; value <= 10100; value++) {
        check_round_trip(value);
        check_round_trip(UINT64_MAX - value);
    }
}
END_TEST

START_TEST(test_put_random)
{
    struct rng rng;
    rng_init(&rng, 1, 0);
    for (int i = 0; i < 20000; i++) {
        check_round_trip(rng_u64(&rng) >> rng_below(&rng, 64));
    }
}
END_TEST

/* Any bytes: the answer is that of a plain reading with a wider type. */
START_TEST(test_random_words)
{
    static const char alphabet[] = "0123456789019-+ k";
    struct rng rng;
    rng_init(&rng, 2, 0);
    for (int i = 0; i < 50000; i++) {
        char word[24];
        size_t n = (size_t)rng_below(&rng, sizeof word + 1);
        bool is_number = n > 0;
        unsigned __int128 wide = 0;
        uint64_t letters = rng_below(&rng, 4) == 0 ? sizeof alphabet - 1 : 12;
        for (size_t at = 0; at < n; at++) {
            word[at] = alphabet[rng_below(&rng, letters)];
            is_number = is_number && word[at] >= '0' && word[at] <= '9';
            wide = wide * 10 + (unsigned)(word[at] - '0');
        }
        is_number = is_number && wide <= UINT64_MAX;
        uint64_t value = UNTOUCHED;
        char *p = exact_copy(word, n);
        expect(num_u64(p, n, &value) == is_number);
        expect(value == (is_number ? (uint64_t)wide : UNTOUCHED));
        free(p);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("num");
    TCase *tc = tcase_create("num");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_loop_test(tc, test_unsigned, 0, ROWS(unsigned_rows));
    tcase_add_loop_test(tc, test_signed, 0, ROWS(signed_rows));
    tcase_add_loop_test(tc, test_loose, 0, ROWS(loose_rows));
    tcase_add_test(tc, test_loose_largest);
    tcase_add_test(tc, test_empty_word);
    tcase_add_loop_test(tc, test_scaled, 0, ROWS(scaled_rows));
    tcase_add_loop_test(tc, test_double, 0, ROWS(double_rows));
    tcase_add_test(tc, test_double_never_overflows);
    tcase_add_test(tc, test_ports);
    tcase_add_test(tc, test_put_at_boundaries);
    tcase_add_test(tc, test_put_random);
    tcase_add_test(tc, test_random_words);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
