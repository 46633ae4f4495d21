/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Workloads: keys and sizes are functions of the key number, the mix is as asked for, and
 * the same seed gives the same requests.
 */
#include "loadgen/work/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/drive/load.h"
#include "check_main.h"

static struct workload w;

static struct workload_conf
conf_of(uint64_t records, const char *key_size, const char *value_size)
{
    struct workload_conf conf = {
        .records = records, .getcount = dist_fixed(1), .key_prefix = ""};
    ck_assert_ptr_null(dist_parse(&conf.key_size, key_size));
    ck_assert_ptr_null(dist_parse(&conf.value_size, value_size));
    ck_assert_ptr_null(dist_parse(&conf.expiry, "0"));
    ck_assert_ptr_null(popularity_parse(&conf.popularity, "uniform"));
    mix_of_update(&conf.mix, 0);
    return conf;
}

static void
must_init(const struct workload_conf *conf)
{
    ck_assert_ptr_null(workload_init(&w, conf));
}

static struct workload_conf
use(uint64_t records, const char *key_size, const char *value_size)
{
    struct workload_conf conf = conf_of(records, key_size, value_size);
    must_init(&conf);
    return conf;
}

static char *
key_text(uint64_t key)
{
    static char text[WORKLOAD_KEY_MAX + 1];
    text[workload_put_key(&w, key, text)] = '\0';
    return text;
}

TEST(test_keys)
{
    struct workload_conf conf = use(10000, "30", "200");
    ck_assert_str_eq(key_text(0), "000000000000000000000000000000");
    ck_assert_str_eq(key_text(1234), "000000000000000000000000001234");
    ck_assert_uint_eq(workload_key_len_max(&w), 30);
    ck_assert_uint_eq(workload_value_len(&w, 5), 200);
    ck_assert_uint_eq(workload_value_len_max(&w), 200);

    conf.key_prefix = "app:";
    must_init(&conf);
    ck_assert_str_eq(key_text(42), "app:00000000000000000000000042");

    /* A key is never too short for its number. */
    conf = use(10000, "1", "0");
    ck_assert_str_eq(key_text(7), "0007");
    ck_assert_str_eq(key_text(9999), "9999");
    ck_assert_uint_eq(workload_value_len(&w, 5), 0);
}

/* Only a 0 that is asked for is none: what is shorter than half a second lives for one. */
TEST(test_expiry)
{
    static const struct {
        const char *law;
        int32_t least;
        double endless; /* of 1 */
    } rows[] = {
        {"0", 0, 1},
        {"7", 7, 0},
        {"0.2", 1, 0},
        {"exponential:1", 1, 0},
        {"normal:2,1", 1, 0},
        {"uniform:0,3", 1, 0},
        {"mix:1*0+3*5", 0, 0.25},
        {"mix:1*normal:2,1+1*5", 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct workload_conf conf = conf_of(10000, "30", "10");
        ck_assert_ptr_null(dist_parse(&conf.expiry, rows[i].law));
        must_init(&conf);
        int32_t least = INT32_MAX;
        double endless = 0;
        for (uint64_t key = 0; key < 10000; key++) {
            int32_t life = workload_expiry(&w, key);
            least = life < least ? life : least;
            endless += life == 0 ? 1e-4 : 0;
        }
        ck_assert_msg(least == rows[i].least, "%s: %d", rows[i].law, least);
        ck_assert_msg(fabs(endless - rows[i].endless) < 0.02, "%s: %g", rows[i].law,
                      endless);
        dist_fini(&conf.expiry);
    }
}

TEST(test_key_formats)
{
    char key[WORKLOAD_KEY_MAX];
    struct workload_conf conf = conf_of(1000, "8", "10");
    conf.key_prefix = "k:";
    conf.key_format = KEY_HEX;
    must_init(&conf);
    ck_assert_str_eq(key_text(0), "k:000000");
    ck_assert_str_eq(key_text(255), "k:0000ff");
    ck_assert_str_eq(key_text(999), "k:0003e7");

    conf.key_format = KEY_BINARY;
    must_init(&conf);
    ck_assert_uint_eq(workload_put_key(&w, 999, key), 8);
    ck_assert_mem_eq(key, "k:\0\0\0\0\3\347", 8);
    ck_assert(workload_is_key(&w, 999, key, 8));
    ck_assert(!workload_is_key(&w, 998, key, 8));

    /* As long as the largest number needs. */
    conf = conf_of(UINT64_C(1) << 33, "1", "0");
    conf.key_format = KEY_HEX;
    must_init(&conf);
    ck_assert_str_eq(key_text(16), "000000010");
    conf.key_format = KEY_BINARY;
    must_init(&conf);
    ck_assert_uint_eq(workload_key_len_max(&w), 5);
    ck_assert_uint_eq(workload_put_key(&w, UINT64_C(1) << 32, key), 5);
    ck_assert_mem_eq(key, "\1\0\0\0\0", 5);
}

/* Of every length, with and without a prefix: the digits with zeros before them, and told from
 * whatever differs in a byte. */
TEST(test_keys_of_one_length)
{
    static const uint64_t numbers[] = {0,         9,         10,          99999999,
                                       100000000, 123456789, 987654321098};
    for (unsigned len = 12; len <= 40; len++) {
        for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            char size[8], expected[64];
            snprintf(size, sizeof size, "%u", len);
            struct workload_conf conf = conf_of(numbers[i] + 2, size, "200");
            conf.key_prefix = len % 2 == 0 ? "" : "a-p";
            must_init(&conf);
            int digits = (int)(len < w.key_min ? w.key_min : len) - (int)w.prefix_len;
            snprintf(expected, sizeof expected, "%s%0*ju", conf.key_prefix, digits,
                     (uintmax_t)numbers[i]);
            char *text = key_text(numbers[i]);
            ck_assert_str_eq(text, expected);
            size_t n = strlen(text);
            ck_assert(workload_is_key(&w, numbers[i], text, n));
            ck_assert(!workload_is_key(&w, numbers[i], text, n - 1));
            ck_assert(!workload_is_key(&w, numbers[i] + 1, text, n));
            for (size_t at = 0; at < n; at++) {
                text[at] ^= 1;
                ck_assert(!workload_is_key(&w, numbers[i], text, n));
                text[at] ^= 1;
            }
        }
    }
}

TEST(test_keys_differ)
{
    struct workload_conf conf = use(1000, "fb_key", "fb_value");
    char a[WORKLOAD_KEY_MAX], b[WORKLOAD_KEY_MAX];
    size_t shortest = WORKLOAD_KEY_MAX, longest = 0;
    for (uint64_t key = 0; key < 1000; key++) {
        size_t len = workload_put_key(&w, key, a);
        shortest = len < shortest ? len : shortest;
        longest = len > longest ? len : longest;
        ck_assert_uint_le(len, workload_key_len_max(&w));
        ck_assert_uint_le(workload_value_len(&w, key), workload_value_len_max(&w));
        /* The same again, and told from its neighbours. */
        ck_assert_uint_eq(workload_put_key(&w, key, b), len);
        ck_assert_mem_eq(a, b, len);
        ck_assert(workload_is_key(&w, key, a, len));
        ck_assert(!workload_is_key(&w, key, a, len - 1));
        ck_assert(!workload_is_key(&w, (key + 1) % 1000, a, len));
        for (size_t i = 0; i < len; i++) {
            a[i] ^= 1;
            ck_assert(!workload_is_key(&w, key, a, len));
            a[i] ^= 1;
        }
    }
    ck_assert_uint_lt(shortest, 25);
    ck_assert_uint_gt(longest, 50);
    dist_fini(&conf.value_size);
}

TEST_LOOP(test_mix, 4)
{
    static const double shares[] = {0, 0.1, 0.5, 1};
    struct workload_conf conf = conf_of(1000, "30", "200");
    int sets = 0;
    mix_of_update(&conf.mix, shares[_i]);
    struct rng rng = rng_of(1, 1);
    must_init(&conf);
    for (int i = 0; i < 100000; i++) {
        sets += mix_draw(&w.conf.mix, rng_unit(&rng)) == MIX_SET;
    }
    bool is_exact = shares[_i] == 0 || shares[_i] == 1;
    double tolerance = is_exact ? 1e-9 : 0.006;
    ck_assert_double_eq_tol(sets / 1e5, shares[_i], tolerance);
}

TEST(test_same_seed_same_requests)
{
    struct workload_conf conf = conf_of(100000, "30", "200");
    struct rng a, b, c;
    int same = 0;
    mix_of_update(&conf.mix, 0.3);
    ck_assert_ptr_null(popularity_parse(&conf.popularity, "zipf:0.99"));
    must_init(&conf);
    rng_init(&a, 1, 0);
    rng_init(&b, 1, 0);
    rng_init(&c, 2, 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t rank = popularity_rank(&w.conf.popularity, &a);
        ck_assert_uint_eq(rank, popularity_rank(&w.conf.popularity, &b));
        same += rank == popularity_rank(&w.conf.popularity, &c);
    }
    ck_assert_int_lt(same, 1000);
}

TEST(test_caps)
{
    use(1000, "uniform:500", "exponential:0.0000001");
    ck_assert_uint_eq(workload_key_len_max(&w), WORKLOAD_KEY_MAX);
    ck_assert_uint_eq(workload_value_len_max(&w), WORKLOAD_VALUE_CAP);
    for (uint64_t key = 0; key < 1000; key++) {
        ck_assert_uint_le(strlen(key_text(key)), WORKLOAD_KEY_MAX);
        ck_assert_uint_le(workload_value_len(&w, key), WORKLOAD_VALUE_CAP);
    }
    /* A size given outright is taken as it is. */
    use(1000, "30", "5000000");
    ck_assert_uint_eq(workload_value_len(&w, 3), 5000000);
}

/* Weights become shares; every verb comes as often as it should. */
TEST(test_mix_of_verbs)
{
    static const struct {
        enum mix_verb verb;
        double share;
    } rows[] = {{MIX_GET, .5},   {MIX_DELETE, .25},  {MIX_TOUCH, .1}, {MIX_CAS, .05},
                {MIX_INCR, .05}, {MIX_INSERT, .025}, {MIX_RMW, .025}};
    struct mix m;
    int seen[MIX_VERBS] = {0};
    ck_assert_ptr_null(
        mix_parse(&m, "touch:20,get:100,cas:10,incr:10,delete:50,insert:5,rmw:5,set:0"));
    ck_assert_uint_eq(m.count, ROWS(rows));
    ck_assert_int_eq(m.rows[0].verb, MIX_GET);
    struct rng rng = rng_of(5, 5);
    for (int i = 0; i < 100000; i++) {
        seen[mix_draw(&m, rng_unit(&rng))]++;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double sd = sqrt(1e5 * rows[i].share * (1 - rows[i].share));
        ck_assert_double_eq_tol(mix_share(&m, rows[i].verb), rows[i].share, 1e-9);
        ck_assert_double_eq_tol(seen[rows[i].verb], 1e5 * rows[i].share, 4 * sd);
    }
    ck_assert_double_eq_tol(mix_share_of_updates(&m), 0.5 / 1.075, 1e-9);
    ck_assert_int_eq(seen[MIX_SET] + seen[MIX_ADD], 0);
    static const char *const bad[] = {"",       "get",        "get:",  "get:x",
                                      "get:-1", "get:0",      "put:1", "get:1,",
                                      ",get:1", "get:1;set:1"};
    expect_each(word, bad, mix_parse(&m, word) != NULL);
}

/* A value's bytes are its key's alone, and any piece of it can be checked. */
TEST(test_values)
{
    struct workload other;
    struct workload_conf conf = use(1000, "30", "fb_value");
    size_t differ = 0, long_ones = 0;
    conf.mix.rows[0].verb = MIX_SET;
    ck_assert_ptr_null(workload_init(&other, &conf));
    workload_open(&w);
    workload_open(&other);
    for (uint64_t key = 0; key < 1000; key++) {
        size_t len = workload_value_len(&w, key);
        const char *v = workload_value(&w, key);
        ck_assert_mem_eq(v, workload_value(&other, key), len);
        ck_assert(workload_is_value(&w, key, 0, v, len));
        ck_assert(workload_is_value(&w, key, len / 2, v + len / 2, len - len / 2));
        ck_assert(!workload_is_value(&w, key, 1, v, len));
        if (len > 8) {
            long_ones++;
            differ += memcmp(v, workload_value(&w, (key + 1) % 1000), 8) != 0;
        }
    }
    ck_assert_uint_ge(differ + 2, long_ones);
    workload_close(&w);
    workload_close(&other);
    dist_fini(&conf.value_size);
}

/* With incr in the mix some keys hold digits; incr finds them from any key. */
TEST(test_counters)
{
    struct workload_conf conf = conf_of(1000, "30", "4");
    int counters = 0;
    ck_assert_ptr_null(mix_parse(&conf.mix, "get:3,incr:1"));
    must_init(&conf);
    workload_open(&w);
    for (uint64_t key = 0; key < 1000; key++) {
        uint64_t counter = workload_counter_of(&w, key);
        ck_assert_uint_lt(counter, 1000);
        ck_assert(workload_is_counter(&w, counter));
        counters += workload_is_counter(&w, key);
        ck_assert_uint_eq(workload_value_len(&w, key),
                          workload_is_counter(&w, key) ? WORKLOAD_COUNTER_LEN : 4);
    }
    ck_assert_int_eq(counters, 250);
    ck_assert_uint_eq(workload_value_len_max(&w), WORKLOAD_COUNTER_LEN);
    ck_assert_uint_eq(strspn(workload_value(&w, 0), "0123456789"), WORKLOAD_COUNTER_LEN);
    ck_assert(workload_is_value(&w, 0, 0, "1000000017", 10));
    ck_assert(!workload_is_value(&w, 0, 0, "10000000x7", 10));
    ck_assert(!workload_is_value(&w, 0, 0, "10000000001", 11));
    /* of any length up to its own, and a record of its own alone */
    for (uint64_t len = 0; len < 12; len++) {
        ck_assert_int_eq(workload_is_value_len(&w, 0, len), len >= 1 && len <= 10);
        ck_assert_int_eq(workload_is_value_len(&w, 1, len), len == 4);
    }
    workload_close(&w);
}

TEST(test_refused)
{
    struct workload_conf conf = conf_of(1000, "251", "200");
    ck_assert_ptr_nonnull(workload_init(&w, &conf));
    conf = conf_of(1000, "30", "2000000000");
    ck_assert_ptr_nonnull(workload_init(&w, &conf));
    conf = conf_of(1000, "30", "200");
    conf.key_prefix = "a b";
    ck_assert_ptr_nonnull(workload_init(&w, &conf));
    conf.key_prefix = "a\n";
    ck_assert_ptr_nonnull(workload_init(&w, &conf));
    char prefix[WORKLOAD_PREFIX_MAX + 2];
    memset(prefix, 'p', sizeof prefix);
    prefix[WORKLOAD_PREFIX_MAX + 1] = '\0';
    conf.key_prefix = prefix;
    ck_assert_ptr_nonnull(workload_init(&w, &conf));
    prefix[WORKLOAD_PREFIX_MAX] = '\0';
    must_init(&conf);
}

/* The threads' slices are the records, each once. */
TEST(test_load_slices)
{
    for (uint64_t records = 1; records < 40; records++) {
        for (unsigned threads = 1; threads < 10; threads++) {
            uint64_t next = 0;
            for (unsigned i = 0; i < threads; i++) {
                struct load_slice slice = load_slice_of(records, i, threads);
                ck_assert_uint_eq(slice.first, next);
                ck_assert_uint_ge(slice.end, slice.first);
                ck_assert_uint_le(slice.end - slice.first, records / threads + 1);
                next = slice.end;
            }
            ck_assert_uint_eq(next, records);
        }
    }
}

/* So many keys leave as time goes on and as many come; the others keep their places. */
TEST(test_drift)
{
    struct workload_conf conf = conf_of(10, "30", "200");
    conf.churn = 1000;
    must_init(&conf);
    ck_assert_uint_eq(workload_drift(&w, 0), 0);
    ck_assert_uint_eq(workload_drift(&w, 2500000), 2);
    ck_assert_uint_eq(workload_drift(&w, UINT64_MAX), WORKLOAD_KEYS_END - 10);
    for (uint64_t drift = 0; drift < 35; drift++) {
        unsigned moved = 0;
        bool seen[10] = {false};
        for (uint64_t key = 0; key < 10; key++) {
            uint64_t now = workload_slide(&w, key, drift);
            ck_assert_uint_eq(now % 10, key);
            ck_assert(now >= drift && now < drift + 10 && !seen[now - drift]);
            seen[now - drift] = true;
            moved += now != workload_slide(&w, key, drift + 1);
        }
        ck_assert_uint_eq(moved, 1);
    }
}

TEST(test_sizes_per_set)
{
    struct workload_conf conf = use(10, "30", "uniform:100,200");
    ck_assert_uint_eq(workload_set_len(&w, 3, 1), workload_value_len(&w, 3));
    conf.sizes_per_set = true;
    must_init(&conf);
    double sum = 0;
    for (uint64_t salt = 0; salt < 10000; salt++) {
        size_t len = workload_set_len(&w, 3, salt);
        ck_assert(len >= 100 && len <= 200);
        sum += (double)len;
    }
    ck_assert_double_eq_tol(sum / 10000, 150, 5 * 29 / 100.0);
}
