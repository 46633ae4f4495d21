/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Numbers to and from text at every edge. Each word lies in a block that ends where it ends.
 */
#include "base/num.h"

#include <inttypes.h>

#include "base/rng.h"
#include "check_main.h"

#define UNTOUCHED 77

/* An exact copy of a word, in which '@' stands for a NUL byte. */
static char *
word_of(const char *text, size_t *n)
{
    *n = strlen(text);
    char *p = exact_copy(text, *n);
    for (char *at = p; (at = memchr(at, '@', *n - (size_t)(at - p))) != NULL;) {
        *at = '\0';
    }
    return p;
}

static const struct {
    const char *text;
    uint64_t value;
} unsigned_rows[] = {
    {"0", 0},
    {"9", 9},
    {"00", 0},
    {"0000000000000000000000000000001", 1},
    {"2147483647", INT32_MAX},
    {"4294967295", UINT32_MAX},
    {"4294967296", UINT64_C(4294967296)},
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775808", UINT64_C(9223372036854775808)},
    {"18446744073709551609", UINT64_MAX - 6},
    {"18446744073709551615", UINT64_MAX},
    {"00018446744073709551615", UINT64_MAX},
};

static const char *const not_unsigned[] = {
    "-", ":",  " 1", "1\n", "0x10", "18446744073709551616", "99999999999999999999",
    "+", "-1", "1 ", "1@2", "\xb1", "18446744073709551620", "100000000000000000000",
    "@", "-0", "1@", "1.0", "\xff", "18446744073709551625", "184467440737095516150",
    "/", "+1", "1a", "1e3"};

TEST_ROWS(test_unsigned, unsigned_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    uint64_t wide = UNTOUCHED;
    uint32_t narrow = UNTOUCHED;
    ck_assert(num_u64(p, n, &wide));
    ck_assert_uint_eq(wide, row->value);
    bool is_narrow = row->value <= UINT32_MAX;
    ck_assert_int_eq(num_u32(p, n, &narrow), is_narrow);
    ck_assert_uint_eq(narrow, is_narrow ? row->value : UNTOUCHED);
}

TEST_ROWS(test_not_unsigned, not_unsigned, *row)
{
    size_t n;
    FREED char *p = word_of(*row, &n);
    uint64_t wide = UNTOUCHED;
    uint32_t narrow = UNTOUCHED;
    ck_assert(!num_u64(p, n, &wide) && wide == UNTOUCHED);
    ck_assert(!num_u32(p, n, &narrow) && narrow == UNTOUCHED);
}

static const struct {
    const char *text;
    int64_t value;
} signed_rows[] = {{"0", 0},
                   {"-0", 0},
                   {"-1", -1},
                   {"-0001", -1},
                   {"2147483647", INT32_MAX},
                   {"2147483648", INT64_C(2147483648)},
                   {"-2147483648", INT32_MIN},
                   {"-2147483649", INT64_C(-2147483649)},
                   {"9223372036854775807", INT64_MAX},
                   {"-9223372036854775808", INT64_MIN}};

static const char *const not_signed[] = {
    "-",  "--1", "- 1", "9223372036854775808",  "18446744073709551615",
    "+1", "-+1", "-1x", "-9223372036854775809", "-18446744073709551616",
    "1-"};

TEST_ROWS(test_signed, signed_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    int64_t wide = UNTOUCHED;
    int32_t narrow = UNTOUCHED;
    ck_assert(num_i64(p, n, &wide));
    ck_assert_int_eq(wide, row->value);
    bool is_narrow = row->value >= INT32_MIN && row->value <= INT32_MAX;
    ck_assert_int_eq(num_i32(p, n, &narrow), is_narrow);
    ck_assert_int_eq(narrow, is_narrow ? row->value : UNTOUCHED);
}

TEST_ROWS(test_not_signed, not_signed, *row)
{
    size_t n;
    FREED char *p = word_of(*row, &n);
    int64_t wide = UNTOUCHED;
    int32_t narrow = UNTOUCHED;
    ck_assert(!num_i64(p, n, &wide) && wide == UNTOUCHED);
    ck_assert(!num_i32(p, n, &narrow) && narrow == UNTOUCHED);
}

static const struct loose_row {
    const char *text;
    int64_t value; /* a negative one is no unsigned number */
} loose_rows[] = {{"0", 0},
                  {"12", 12},
                  {"+5", 5},
                  {"-5", -5},
                  {"-0", 0},
                  {"+0", 0},
                  {"0000000000000000000000000", 0},
                  {"-00000000000000000000000007", -7},
                  {" 12", 12},
                  {"\t\n\v\f\r +5", 5},
                  {"12 34", 12},
                  {"12\t", 12},
                  {"12\n", 12},
                  {"12\vx", 12},
                  {"12\fx", 12},
                  {"12\r", 12},
                  {"12@", 12},
                  {"12@x", 12},
                  {"9223372036854775807", INT64_MAX},
                  {"-9223372036854775808", INT64_MIN}};

static const char *const not_loose[] = {"-9223372036854775809",
                                        "18446744073709551616",
                                        "-18446744073709551615",
                                        "",
                                        " ",
                                        "+",
                                        "-",
                                        "+ 5",
                                        "+-5",
                                        "--5",
                                        "@",
                                        "@5",
                                        "5-",
                                        "5x",
                                        "5\x85",
                                        "\0345",
                                        "\b5",
                                        "5\b",
                                        "5\x0e",
                                        "0x10",
                                        "1e3"};

TEST_ROWS(test_loose, loose_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    int64_t with_sign = UNTOUCHED;
    uint64_t without = UNTOUCHED;
    ck_assert(num_i64_loose(p, n, &with_sign));
    ck_assert_int_eq(with_sign, row->value);
    bool is_unsigned = row->value >= 0;
    ck_assert_int_eq(num_u64_loose(p, n, &without), is_unsigned);
    ck_assert_uint_eq(without, is_unsigned ? (uint64_t)row->value : UNTOUCHED);
}

TEST_ROWS(test_not_loose, not_loose, *row)
{
    size_t n;
    FREED char *p = word_of(*row, &n);
    int64_t with_sign = UNTOUCHED;
    uint64_t without = UNTOUCHED;
    ck_assert(!num_i64_loose(p, n, &with_sign) && with_sign == UNTOUCHED);
    ck_assert(!num_u64_loose(p, n, &without) && without == UNTOUCHED);
}

TEST(test_loose_largest)
{
    int64_t with_sign = UNTOUCHED;
    uint64_t without = UNTOUCHED;
    ck_assert(num_u64_loose("+18446744073709551615", 21, &without));
    ck_assert_uint_eq(without, UINT64_MAX);
    ck_assert(!num_i64_loose("9223372036854775808", 19, &with_sign));
    ck_assert_int_eq(with_sign, UNTOUCHED);
}

TEST(test_empty_word)
{
    /* One byte that must not be read. */
    FREED char *p = exact_copy("5", 1);
    const char *volatile end = p + 1; /* behind it; the compiler must not know */
    uint64_t u64 = UNTOUCHED;
    uint32_t u32 = UNTOUCHED;
    int64_t i64 = UNTOUCHED;
    int32_t i32 = UNTOUCHED;
    double d = UNTOUCHED;
    ck_assert(!num_u64(end, 0, &u64) && u64 == UNTOUCHED);
    ck_assert(!num_u32(end, 0, &u32) && u32 == UNTOUCHED);
    ck_assert(!num_i64(end, 0, &i64) && i64 == UNTOUCHED);
    ck_assert(!num_i32(end, 0, &i32) && i32 == UNTOUCHED);
    ck_assert(!num_scaled(end, 0, 1024, &u64) && u64 == UNTOUCHED);
    ck_assert(!num_double(end, 0, &d) && d == UNTOUCHED);
    ck_assert(!num_u64("5", 0, &u64) && u64 == UNTOUCHED);
}

static const struct {
    const char *text;
    uint64_t unit;
    uint64_t value;
} scaled_rows[] = {
    {"0", 1024, 0},
    {"0g", 1024, 0},
    {"7", 1024, 7},
    {"1k", 1024, 1024},
    {"1K", 1000, 1000},
    {"3m", 1024, 3145728},
    {"3M", 1000, 3000000},
    {"2g", 1024, UINT64_C(2147483648)},
    {"2G", 1000, UINT64_C(2000000000)},
    {"18446744073709551615", 1024, UINT64_MAX},
    {"18014398509481983k", 1024, UINT64_C(18446744073709550592)},
    {"17592186044415m", 1024, UINT64_C(18446744073708503040)},
    {"17179869183g", 1024, UINT64_C(18446744072635809792)},
    {"18446744073g", 1000, UINT64_C(18446744073000000000)},
};

static const char *const not_scaled[] = {
    "k", "1t", "1kk", "1 k", "+1k",  "17179869184g",    "18014398509481984k",
    "g", "k1", "1kb", "-1k", "1.5k", "17592186044416m", "18446744073709551616"};

TEST_ROWS(test_scaled, scaled_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    uint64_t value = UNTOUCHED;
    ck_assert(num_scaled(p, n, row->unit, &value));
    ck_assert_uint_eq(value, row->value);
}

static const char *const not_scaled_by_1000[] = {"18446744074g", "18446744073709551615k"};

static void
check_not_scaled(const char *text, uint64_t unit)
{
    size_t n;
    FREED char *p = word_of(text, &n);
    uint64_t value = UNTOUCHED;
    ck_assert(!num_scaled(p, n, unit, &value));
}

TEST_ROWS(test_not_scaled, not_scaled, *row)
{
    check_not_scaled(*row, 1024);
}

TEST_ROWS(test_not_scaled_by_1000, not_scaled_by_1000, *row)
{
    check_not_scaled(*row, 1000);
}

static const struct {
    const char *text;
    double value;
} double_rows[] = {
    {"0", 0},
    {"1.25", 1.25},
    {"-1.25", -1.25},
    {".5", 0.5},
    {"-.5", -0.5},
    {"5.", 5},
    {"0.000000000000000001", 1e-18},
    {"999999999999999999", 999999999999999999.0},
    {"0.999999999999999999", 1.0},
    {"007.50", 7.5},
};

static const char *const not_double[] = {"",      ".",    "-",    "-.",   "--1", "+1",
                                         "1.2.3", "1..2", "1,25", "1.-5", "1e5", "inf",
                                         "nan",   "0x1",  " 1",   "1 ",   "1.5x"};

TEST_ROWS(test_double, double_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    double value = UNTOUCHED;
    ck_assert(num_double(p, n, &value));
    ck_assert_double_eq_tol(value, row->value, 1e-15);
}

TEST_ROWS(test_not_double, not_double, *row)
{
    size_t n;
    FREED char *p = word_of(*row, &n);
    double value = UNTOUCHED;
    ck_assert(!num_double(p, n, &value) && value == UNTOUCHED);
}

static const struct {
    const char *text;
    double value;
} time_rows[] = {
    {"5", 5e3},    {"5ns", 5},    {"5us", 5e3}, {"1.5ms", 1.5e6},
    {".5s", .5e9}, {"-1s", -1e9}, {"0s", 0},    {"5.ms", 5e6},
};

static const char *const not_time[] = {"",   "us",  "5x", "5 us",   "5us ", "5s5",
                                       "5m", "5e3", "-",  "1.2.3s", "5%",   "ns5"};

TEST_ROWS(test_time, time_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    double value = UNTOUCHED;
    ck_assert(num_with_unit(p, n, num_times, NUM_TIMES, &value));
    ck_assert_double_eq_tol(value, row->value, 1e-6);
}

TEST_ROWS(test_not_time, not_time, *row)
{
    size_t n;
    FREED char *p = word_of(*row, &n);
    double value = UNTOUCHED;
    ck_assert(!num_with_unit(p, n, num_times, NUM_TIMES, &value) && value == UNTOUCHED);
}

static const struct {
    const char *text;
    double value;
    bool is_percent;
} share_rows[] = {
    {"2%", .02, true},   {"0.5", .5, false}, {"100%", 1, true},
    {"-1%", -.01, true}, {"7", 7, false},
};

static const char *const not_share[] = {"", "%", "2%%", "2 %", "x%", "%2"};

TEST_ROWS(test_share, share_rows, row->text)
{
    size_t n;
    FREED char *p = word_of(row->text, &n);
    double value = UNTOUCHED;
    bool is_percent = !row->is_percent;
    ck_assert(num_share(p, n, &value, NULL));
    ck_assert(num_share(p, n, &value, &is_percent));
    ck_assert(is_percent == row->is_percent);
    ck_assert_double_eq_tol(value, row->value, 1e-15);
}

TEST_ROWS(test_not_share, not_share, *row)
{
    size_t n;
    FREED char *p = word_of(*row, &n);
    double value = UNTOUCHED;
    ck_assert(!num_share(p, n, &value, NULL) && value == UNTOUCHED);
}

TEST(test_double_never_overflows)
{
    char digits[400];
    memset(digits, '9', sizeof digits);
    for (size_t n = 1; n <= sizeof digits; n++) {
        double value = 0;
        FREED char *p = exact_copy(digits, n);
        if (num_double(p, n, &value)) {
            ck_assert_double_finite(value);
            ck_assert_double_gt(value, 8);
        }
        p[0] = '.';
        if (num_double(p, n, &value)) {
            expect_between(value, 0, 1);
        }
    }
}

static void
check_padded(uint64_t value)
{
    char expected[32];
    size_t n =
        (size_t)snprintf(expected, sizeof expected, "%0*" PRIu64, NUM_PADDED, value);
    if (n > NUM_PADDED) {
        return;
    }
    FREED char *dst = exact_copy(expected, n);
    memset(dst, '?', n);
    num_put_padded(dst, value);
    expect(memcmp(dst, expected, n) == 0);
}

/* In space of NUM_U64_DIGITS bytes, and none behind them. */
static void
check_freely(uint64_t value, const char *expected, size_t n)
{
    char space[NUM_U64_DIGITS + 1];
    memset(space, '?', sizeof space);
    expect(num_put_freely(space, value) == n);
    expect(memcmp(space, expected, n) == 0);
    expect(space[NUM_U64_DIGITS] == '?');
}

static void
check_round_trip(uint64_t value)
{
    char expected[32];
    size_t n = (size_t)snprintf(expected, sizeof expected, "%" PRIu64, value);
    expect(n <= NUM_U64_DIGITS);
    check_freely(value, expected, n);
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

TEST(test_ports)
{
    static const char *const good[] = {"1", "65535", "00080", "http", "80x", "-1"};
    static const char *const bad[] = {"", "0", "65536", "99999",
                                      "99999999999999999999999"};
    expect_each(word, good, num_may_be_port(word, strlen(word)));
    expect_each(word, bad, !num_may_be_port(word, strlen(word)));
}

TEST(test_put_at_boundaries)
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

TEST(test_put_random)
{
    struct rng rng = rng_of(1, 0);
    for (int i = 0; i < 20000; i++) {
        check_round_trip(rng_u64(&rng) >> rng_below(&rng, 64));
    }
}

/* Any bytes: the answer is that of a plain reading with a wider type. */
TEST(test_random_words)
{
    static const char alphabet[] = "0123456789019-+ k";
    struct rng rng = rng_of(2, 0);
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
        FREED char *p = exact_copy(word, n);
        expect(num_u64(p, n, &value) == is_number);
        expect(value == (is_number ? (uint64_t)wide : UNTOUCHED));
    }
}
