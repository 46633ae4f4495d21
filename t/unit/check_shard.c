/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which server a key belongs to. What is expected of modulo and the two ketamas was asked of
 * libmemcached 1.1.4 (memcached_generate_hash) for the same servers in the same order.
 */
#include "loadgen/wire/shard.h"
#include "check_main.h"

#include <stdio.h>
#include <string.h>

#define SERVERS 5
#define KEYS 10000
#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct target targets[SERVERS] = {
    {.host = "127.0.0.1", .port = 11211},
    {.host = "127.0.0.1", .port = 11212},
    {.host = "10.0.0.3", .port = 11213},
    {.host = "cache-d", .port = 11211},
    {.host = "/tmp/mc.sock", .transport = TRANSPORT_UNIX},
};

static const enum shard_law laws[] = {SHARD_MODULO, SHARD_KETAMA, SHARD_KETAMA_WEIGHTED};
#define LAWS (sizeof laws / sizeof laws[0])

static const struct {
    const char *key;
    unsigned owner[LAWS];
} owners[] = {
    {"a", {2, 1, 1}},
    {"foo", {0, 4, 0}},
    {"key:1", {4, 4, 4}},
    {"key:2", {1, 4, 3}},
    {"user:12345:profile", {4, 2, 4}},
    {"000000000000000000000000000000", {4, 0, 1}},
    {X50 X50 X50 X50 X50, {3, 4, 2}},
    {"\xc3\xa9t\xc3\xa9", {3, 0, 4}},
    {"k:777", {3, 2, 1}},
    {"k:778", {3, 3, 3}},
    {"k:779", {4, 1, 1}},
    {"k:780", {1, 4, 4}},
    {"k:781", {3, 2, 4}},
    {"k:782", {2, 0, 1}},
    {"k:783", {2, 3, 4}},
    {"k:784", {1, 2, 1}},
};

/* Of key:0 to key:9999: how many belong to each, and 31 x + owner over all. */
static const struct {
    unsigned count[SERVERS];
    uint32_t sum;
} totals[LAWS] = {
    {{2024, 2036, 1889, 2019, 2032}, UINT32_C(4138124277)},
    {{2313, 2122, 1802, 1704, 2059}, UINT32_C(915828130)},
    {{1949, 1926, 1801, 1911, 2413}, UINT32_C(1746968511)},
};

TEST_LOOP(test_as_libmemcached, (int)LAWS)
{
    struct shard s;
    unsigned count[SERVERS] = {0};
    uint32_t sum = 0;
    char key[32];
    shard_init(&s, laws[_i], targets, SERVERS);
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        ck_assert_uint_eq(shard_of(&s, owners[i].key, strlen(owners[i].key)),
                          owners[i].owner[_i]);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        int len = snprintf(key, sizeof key, "key:%u", i);
        unsigned owner = shard_of(&s, key, (size_t)len);
        ck_assert_uint_lt(owner, SERVERS);
        count[owner]++;
        sum = sum * 31 + owner;
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        ck_assert_uint_eq(count[i], totals[_i].count[i]);
    }
    ck_assert_uint_eq(sum, totals[_i].sum);
    shard_fini(&s);
}

/* Published values of the function, and what it is for: a server more takes its share from
 * all others, and nothing else moves. */
TEST(test_jump)
{
    ck_assert_uint_eq(shard_jump(1, 1), 0);
    ck_assert_uint_eq(shard_jump(42, 57), 43);
    ck_assert_uint_eq(shard_jump(0xDEAD10CC, 1), 0);
    ck_assert_uint_eq(shard_jump(0xDEAD10CC, 666), 361);
    ck_assert_uint_eq(shard_jump(256, 1024), 520);
    struct shard four, five;
    unsigned moved = 0, count[SERVERS] = {0};
    char key[32];
    shard_init(&four, SHARD_JUMP, targets, SERVERS - 1);
    shard_init(&five, SHARD_JUMP, targets, SERVERS);
    for (unsigned i = 0; i < KEYS; i++) {
        int len = snprintf(key, sizeof key, "key:%u", i);
        unsigned before = shard_of(&four, key, (size_t)len);
        unsigned after = shard_of(&five, key, (size_t)len);
        ck_assert(before == after || after == SERVERS - 1);
        moved += before != after;
        count[after]++;
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        ck_assert_uint_gt(count[i], KEYS / SERVERS * 9 / 10);
    }
    ck_assert_uint_gt(moved, KEYS / SERVERS * 9 / 10);
    ck_assert_uint_lt(moved, KEYS / SERVERS * 11 / 10);
    shard_fini(&four);
    shard_fini(&five);
}

TEST(test_one_server)
{
    struct shard s;
    for (enum shard_law law = SHARD_MODULO; law < SHARD_LAWS; law++) {
        shard_init(&s, law, targets, 1);
        ck_assert(shard_of(&s, "key", 3) == 0);
        shard_fini(&s);
    }
}

/* RFC 1321, A.5. */
TEST(test_md5)
{
    static const struct {
        const char *text, *sum;
    } rows[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"1234567890123456789012345678901234567890"
         "1234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t sum[4];
        char text[33];
        md5_sum(rows[i].text, strlen(rows[i].text), sum);
        for (unsigned b = 0; b < 16; b++) {
            snprintf(text + 2 * b, 3, "%02x", sum[b / 4] >> (8 * (b % 4)) & 0xff);
        }
        ck_assert_str_eq(text, rows[i].sum);
    }
}
