/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is declared for a client: its address goes before its listener.
 */
#include "core/classify.h"

#include <arpa/inet.h>

#include "check_main.h"

static struct class_rules rules;

/* 16 bytes; NULL: not an address. */
static const uint8_t *
bytes_of(const char *ip)
{
    static uint8_t bytes[16];
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(bytes, mapped, sizeof mapped);
    return inet_pton(AF_INET, ip, bytes + sizeof mapped) == 1 ||
                   inet_pton(AF_INET6, ip, bytes) == 1
               ? bytes
               : NULL;
}

static const struct {
    const char *ip;
    enum req_class listener, want;
} places[] = {
    {"10.0.0.1", CLASS_NONE, CLASS_BULK},   {"10.0.0.1", CLASS_WRITE, CLASS_BULK},
    {"10.1.2.3", CLASS_WRITE, CLASS_SMALL}, {"fd00::7", CLASS_BULK, CLASS_BACKGROUND},
    {"192.0.2.1", CLASS_BULK, CLASS_BULK},  {"192.0.2.1", CLASS_NONE, CLASS_NONE},
    {"", CLASS_BULK, CLASS_BULK}, /* a UNIX socket */
    {"", CLASS_NONE, CLASS_NONE},
};

TEST_LOOP(address_before_listener, ROWS(places))
{
    static const char *const texts[] = {"peer:10.0.0.0/24=bulk", "peer:10.0.0.0/8=small",
                                        "peer:fd00::/8=background"};
    rules = (struct class_rules){.peer_count = 0};
    expect_each(word, texts, class_rules_add(&rules, word) == NULL);
    enum req_class want = places[_i].want;
    ck_assert_uint_eq(
        classify_place(&rules, bytes_of(places[_i].ip), places[_i].listener),
        want == CLASS_NONE ? 0 : 1 + want);
}

TEST(no_rules_cost_no_look)
{
    const uint8_t *ip = bytes_of("10.0.0.1");
    rules = (struct class_rules){.peer_count = 0};
    ck_assert_uint_eq(classify_place(&rules, ip, CLASS_NONE), 0);
    ck_assert_uint_eq(classify_place(&rules, ip, CLASS_BULK), 1 + CLASS_BULK);
}
