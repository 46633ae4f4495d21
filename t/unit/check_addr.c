/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Who is at the other end: the key of an address.
 */
#include "sock/addr.h"

#include <arpa/inet.h>

#include "check_main.h"

static struct peer
peer_of(const char *text, unsigned port, uint64_t seed)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        return addr_peer((struct sockaddr *)&v4, sizeof v4, seed);
    }
    ck_assert_int_eq(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return addr_peer((struct sockaddr *)&v6, sizeof v6, seed);
}

TEST(key_is_of_the_address_alone)
{
    static const char *const hosts[] = {"10.0.0.1", "10.0.0.2", "::1", "fd00::1"};
    for (int i = 0; i < ROWS(hosts); i++) {
        struct peer a = peer_of(hosts[i], 1, 7);
        struct peer b = peer_of(hosts[i], 65535, 7);
        ck_assert_uint_ne(a.key, 0);
        ck_assert_uint_eq(a.key, b.key);
        ck_assert_uint_ne(a.key, peer_of(hosts[i], 1, 8).key);
        for (int j = 0; j < i; j++) {
            ck_assert_uint_ne(a.key, peer_of(hosts[j], 1, 7).key);
        }
    }
    ck_assert_uint_eq(peer_of("10.0.0.1", 1, 7).key,
                      peer_of("::ffff:10.0.0.1", 1, 7).key);
}

TEST(address_is_kept)
{
    uint8_t ip[ADDR_IP_BYTES];
    char text[128];
    struct peer peer = peer_of("10.1.2.3", 99, 0);
    addr_format("tcp", &peer.addr.any, peer.len, text, sizeof text);
    ck_assert_str_eq(text, "tcp:10.1.2.3:99");
    ck_assert(addr_ip(&peer, ip));
    ck_assert_int_eq(memcmp(ip, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3", sizeof ip), 0);
    peer = peer_of("fe80::1", 99, 0);
    addr_format("tcp", &peer.addr.any, peer.len, text, sizeof text);
    ck_assert_str_eq(text, "tcp6:[fe80::1]:99");
    ck_assert(addr_ip(&peer, ip));
    ck_assert_uint_eq(ip[0], 0xfe);
}

TEST(others_have_no_key)
{
    uint8_t ip[ADDR_IP_BYTES];
    struct sockaddr any = {.sa_family = AF_UNIX};
    struct peer peer = addr_peer(&any, sizeof any.sa_family, 7);
    ck_assert_uint_eq(peer.key, 0);
    ck_assert_int_eq(peer.addr.any.sa_family, AF_UNIX);
    ck_assert(!addr_ip(&peer, ip));
}
