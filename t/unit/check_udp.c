/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Headers of datagrams, and what a UDP source is allowed.
 */
#include "sock/udp_frame.h"
#include "sock/guard.h"

#include "check_main.h"

#define SECOND NSEC_PER_SEC

/* ---- frames --------------------------------------------------------------------------- */

TEST(header_is_big_endian)
{
    struct udp_frame frame;
    char *p = exact_copy("\x12\x34\xab\xcd\x00\x01\xff\xffx", 9);
    ck_assert(udp_frame_decode(p, 9, &frame));
    ck_assert_uint_eq(frame.id, 0x1234);
    ck_assert_uint_eq(frame.sequence, 0xabcd);
    ck_assert_uint_eq(frame.total, 1);
    free(p);
}

/* A header alone asks for nothing, and less is not one. */
TEST_LOOP(short_datagrams_are_no_frames, UDP_FRAME_HEADER_BYTES + 1)
{
    struct udp_frame frame;
    char *p = exact_copy("\0\0\0\0\0\1\0\0", (size_t)_i);
    ck_assert(!udp_frame_decode(p, (size_t)_i, &frame));
    free(p);
}

TEST(written_header_is_read_back)
{
    static const uint16_t values[] = {0, 1, 255, 256, 0x7fff, 0x8000, 65535};
    for (int i = 0; i < ROWS(values); i++) {
        for (int j = 0; j < ROWS(values); j++) {
            struct udp_frame out = {values[i], values[j], values[ROWS(values) - 1 - i]};
            struct udp_frame in;
            char bytes[UDP_FRAME_HEADER_BYTES + 1] = "????????x";
            udp_frame_encode(&out, bytes);
            expect(bytes[6] == 0 && bytes[7] == 0 && bytes[8] == 'x');
            expect(udp_frame_decode(bytes, sizeof bytes, &in));
            expect(in.id == out.id && in.sequence == out.sequence &&
                   in.total == out.total);
        }
    }
}

static const struct {
    size_t bytes;
    uint16_t total;
} totals[] = {
    {1, 1},
    {1391, 1},
    {1392, 1},
    {1393, 2},
    {2784, 2},
    {2785, 3},
    {20030, 15},
    {(size_t)65535 * 1392, 65535},
    {(size_t)65535 * 1392 - 1392, 65534},
};

TEST_LOOP(reply_is_cut_into_full_datagrams, ROWS(totals))
{
    ck_assert_uint_eq(udp_frame_total(totals[_i].bytes), totals[_i].total);
}

TEST_ABORTS(reply_that_cannot_be_counted_is_a_bug)
{
    (void)udp_frame_total(UDP_FRAME_REPLY_MAX + 1);
}

/* ---- the guard ------------------------------------------------------------------------ */

struct ip {
    uint8_t bytes[GUARD_IP_BYTES];
};

static struct ip
v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (struct ip){{[10] = 0xff, 0xff, a, b, c, d}};
}

static struct guard_conf conf;
static struct guard guard;

static void
set_up(void)
{
    conf = (struct guard_conf){.is_on = true};
    guard_init(&guard, 1, 1);
}

static bool
trust(const char *text)
{
    char *p = exact_copy(text, strlen(text));
    bool is_good = guard_trust(&conf, p, strlen(text));
    free(p);
    return is_good;
}

FIXTURE(set_up, NULL);

static const char *const bad_nets[] = {
    "",
    "/",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0",
    "10.0.0.0/8x",
    "fd00::/129",
    "fd00::/8/8",
    "localhost",
    "1.2.3.4.5",
    " 1.2.3.4",
    "10.0.0.0 /8",
    "::1::",
    "1.2.3.4/999999999999",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000001",
};

TEST_LOOP(what_is_no_network_is_refused, ROWS(bad_nets))
{
    ck_assert_msg(!trust(bad_nets[_i]), "%s", bad_nets[_i]);
    ck_assert_uint_eq(conf.trusted_count, 0);
}

TEST(loopback_is_trusted)
{
    struct ip loopback6 = {{[15] = 1}};
    struct ip other6 = {{[15] = 2}};
    struct ip any = {{0}};
    ck_assert(guard_is_trusted(&conf, v4(127, 0, 0, 1).bytes));
    ck_assert(guard_is_trusted(&conf, v4(127, 255, 255, 255).bytes));
    ck_assert(guard_is_trusted(&conf, loopback6.bytes));
    ck_assert(!guard_is_trusted(&conf, v4(128, 0, 0, 1).bytes));
    ck_assert(!guard_is_trusted(&conf, v4(126, 255, 255, 255).bytes));
    ck_assert(!guard_is_trusted(&conf, other6.bytes));
    ck_assert(!guard_is_trusted(&conf, any.bytes));
}

TEST(networks_are_trusted_to_the_bit)
{
    struct ip in6 = {{0x20, 0x01, 0x0d, 0xb8, 0x7f}};
    struct ip out6 = {{0x20, 0x01, 0x0d, 0xb8, 0x80}};
    ck_assert(trust("10.1.2.0/23"));
    ck_assert(trust("192.0.2.7"));
    ck_assert(trust("2001:db8::/33"));
    ck_assert(guard_is_trusted(&conf, v4(10, 1, 2, 0).bytes));
    ck_assert(guard_is_trusted(&conf, v4(10, 1, 3, 255).bytes));
    ck_assert(!guard_is_trusted(&conf, v4(10, 1, 4, 0).bytes));
    ck_assert(!guard_is_trusted(&conf, v4(10, 1, 1, 255).bytes));
    ck_assert(guard_is_trusted(&conf, v4(192, 0, 2, 7).bytes));
    ck_assert(!guard_is_trusted(&conf, v4(192, 0, 2, 6).bytes));
    ck_assert(guard_is_trusted(&conf, in6.bytes));
    ck_assert(!guard_is_trusted(&conf, out6.bytes));
    ck_assert(trust("0.0.0.0/0"));
    ck_assert(guard_is_trusted(&conf, v4(1, 2, 3, 4).bytes));
    ck_assert(!guard_is_trusted(&conf, out6.bytes));
    while (conf.trusted_count < GUARD_NETS_MAX) {
        ck_assert(trust("::/0"));
    }
    ck_assert(guard_is_trusted(&conf, out6.bytes));
    ck_assert(!trust("::/0"));
}

TEST(whoever_pays_nothing_over_is_always_admitted)
{
    struct ip a = v4(1, 2, 3, 4);
    for (int i = 0; i < 100000; i++) {
        expect(guard_admits(&guard, a.bytes, SECOND));
        guard_charge(&guard, a.bytes, 0, SECOND);
    }
}

/* In any interval of T seconds: burst + rate x T, and the one reply that overdraws. */
TEST(allowance_is_bounded)
{
    struct ip a = v4(1, 2, 3, 4);
    uint64_t sent = 0;
    nsec_t start = 5 * SECOND;
    for (nsec_t now = start; now < start + 10 * SECOND; now += SECOND / 1000) {
        while (guard_admits(&guard, a.bytes, now)) {
            guard_charge(&guard, a.bytes, 1400, now);
            sent += 1400;
        }
    }
    uint64_t least = 10 * GUARD_RATE_BYTES;
    expect_between(sent, least, least + GUARD_BURST_BYTES + 20 * 1400);
}

TEST(sources_have_an_allowance_each)
{
    struct ip a = v4(1, 2, 3, 4);
    guard_charge(&guard, a.bytes, 10 * GUARD_BURST_BYTES, SECOND);
    ck_assert(!guard_admits(&guard, a.bytes, SECOND));
    unsigned others = 0;
    for (unsigned i = 0; i < 200; i++) {
        others += guard_admits(&guard, v4(5, 6, 7, (uint8_t)i).bytes, SECOND);
    }
    ck_assert_uint_ge(others, 195); /* some may collide */
    ck_assert(guard_admits(&guard, a.bytes, 20 * SECOND));
}

/* A /64 is one source: its owner can send from any address in it. */
TEST(v6_network_is_one_source)
{
    struct ip a = {{0x20, 0x01, [15] = 1}};
    struct ip b = {{0x20, 0x01, [15] = 99}};
    guard_charge(&guard, a.bytes, 10 * GUARD_BURST_BYTES, SECOND);
    ck_assert(!guard_admits(&guard, b.bytes, SECOND));
}
