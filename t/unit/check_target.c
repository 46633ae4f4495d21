/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How servers are named: what names mean, which are none, and ranges of ports.
 */
#include "loadgen/wire/target.h"
#include "check_main.h"

TEST(test_ranges)
{
    static const struct {
        const char *text;
        unsigned ports, first;
        size_t at;
    } ranges[] = {
        {"h", 1, 0, 0},
        {"h:1", 1, 0, 0},
        {"my-host", 1, 0, 0},
        {"udp://my-host", 1, 0, 0},
        {"unix:/a:1-2", 1, 0, 0},
        {"h:5-5", 1, 5, 2},
        {"h:11211-11214", 4, 11211, 2},
        {"tls://[::1]:65534-65535", 2, 65534, 12},
        {"h:2-1", 0, 0, 0},
        {"h:0-1", 0, 0, 0},
        {"h:1-65536", 0, 0, 0},
        {"h:1-", 0, 0, 0},
        {"h:-1", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        size_t at = 0;
        unsigned first = 0;
        ck_assert_uint_eq(target_ports(ranges[i].text, &at, &first), ranges[i].ports);
        ck_assert_uint_eq(at, ranges[i].at);
        ck_assert_uint_eq(first, ranges[i].first);
    }
}

TEST(test_transports)
{
    static const struct {
        const char *text, *host;
        unsigned port;
        enum transport transport;
        const char *place;
    } others[] = {
        {"udp://127.0.0.1:7", "127.0.0.1", 7, TRANSPORT_UDP, "udp://127.0.0.1:7"},
        {"tls://[::1]:8", "::1", 8, TRANSPORT_TLS, "tls://[::1]:8"},
        {"tcp://127.0.0.1", "127.0.0.1", 11211, TRANSPORT_TCP, "127.0.0.1:11211"},
        {"::1", "::1", 11211, TRANSPORT_TCP, "[::1]:11211"},
        {"unix:///tmp/x", "/tmp/x", 0, TRANSPORT_UNIX, "unix:///tmp/x"},
    };
    struct target t;
    char err[256], place[TARGET_PLACE_MAX];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert(target_resolve(&t, others[i].text, TRANSPORT_TCP, err, sizeof err));
        ck_assert_str_eq(t.host, others[i].host);
        ck_assert_uint_eq(t.port, others[i].port);
        ck_assert_int_eq(t.transport, others[i].transport);
        ck_assert_str_eq(target_place(&t, place), others[i].place);
    }
}

TEST(test_good_and_bad)
{
    static const char *const good[] = {"127.0.0.1", "127.0.0.1:11211", "unix:/tmp/x"};
    static const char *const bad[] = {
        "",     ":1",   "127.0.0.1:", "unix:",
        "[::1", "[]:1", "[::1]x",     "127.0.0.1:nosuchservice"};
    struct target t;
    char err[256];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(target_resolve(&t, good[i], TRANSPORT_TCP, err, sizeof err),
                      "%s: %s", good[i], err);
        ck_assert(t.is_local);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!target_resolve(&t, bad[i], TRANSPORT_TCP, err, sizeof err), "%s",
                      bad[i]);
        ck_assert_int_ne(err[0], '\0');
    }
}
