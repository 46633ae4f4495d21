/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A load generator's connection: requests byte for byte, replies matched to them however
 * they are cut, and what must not pass for an answer. The other end is a socket pair.
 */
#include "loadgen/lconn.h"
#include "check_unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH 3

static struct workload workload;
static struct target target;
static struct lconn conn;
static int peer;
static char filler[64];

static void
set_up(void)
{
    struct workload_conf conf = {.records = 1000, .getcount = 3, .key_prefix = "k"};
    int pair[2];
    ck_assert_ptr_null(dist_parse_size(&conf.key_size, "5"));
    ck_assert_ptr_null(dist_parse_size(&conf.value_size, "4"));
    ck_assert_ptr_null(popularity_parse(&conf.popularity, "uniform"));
    ck_assert_ptr_null(workload_init(&workload, &conf));
    struct lconn_conf lc = {&codec_ascii, &target, 0, DEPTH, &workload};
    ck_assert(lconn_init(&conn, &lc));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    conn.fd = pair[0];
    conn.state = LCONN_UP;
    peer = pair[1];
    memset(filler, 'v', sizeof filler);
}

static void
tear_down(void)
{
    lconn_fini(&conn);
    close(peer);
}

static void
push_get(uint64_t a, uint64_t b, uint64_t c, nsec_t intended)
{
    uint64_t keys[] = {a, b, c};
    lconn_push_get(&conn, &workload, keys, 3, intended);
}

static void
flush(nsec_t now)
{
    size_t sent;
    ck_assert_int_eq(lconn_flush(&conn, now, &sent), LCONN_IO_OK);
}

/* Feeds the bytes in two parts; the last outcome that was not MORE. */
static struct lconn_done
feed(const char *bytes, size_t cut)
{
    struct lconn_done last = {.outcome = LCONN_MORE}, done;
    size_t len = strlen(bytes);
    const char *parts[] = {bytes, bytes + cut};
    size_t lens[] = {cut, len - cut};
    for (int i = 0; i < 2; i++) {
        size_t at = 0;
        do {
            lconn_parse(&conn, &workload, parts[i] + at, lens[i] - at, &done);
            at += done.taken;
            if (done.outcome != LCONN_MORE) {
                last = done;
            }
        } while (done.outcome != LCONN_MORE && done.outcome != LCONN_BROKEN);
        if (done.outcome == LCONN_BROKEN) {
            break;
        }
    }
    return last;
}

START_TEST(test_requests_on_the_wire)
{
    char got[256];
    push_get(0, 77, 999, 0);
    lconn_push_set(&conn, &workload, 5, filler, 0);
    flush(1);
    static const char expected[] = "get k0000 k0077 k0999\r\nset k0005 0 0 4\r\nvvvv\r\n";
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), sizeof expected - 1);
    ck_assert_mem_eq(got, expected, sizeof expected - 1);
}
END_TEST

START_TEST(test_stamps)
{
    push_get(1, 2, 3, 100);
    push_get(4, 5, 6, 110);
    ck_assert_uint_eq(conn.fresh, 2);
    ck_assert_uint_eq(lconn_fresh_op(&conn, 1)->intended, 110);
    ck_assert_uint_eq(lconn_oldest(&conn)->issued, 0);
    flush(150);
    ck_assert_uint_eq(conn.fresh, 0);
    push_get(7, 8, 9, 160);
    ck_assert_uint_eq(conn.fresh, 1);
    flush(170);
    struct lconn_done done = feed("END\r\n", 0);
    ck_assert_int_eq(done.outcome, LCONN_GOOD);
    ck_assert_uint_eq(done.op.intended, 100);
    ck_assert_uint_eq(done.op.issued, 150);
    feed("END\r\n", 0);
    done = feed("END\r\n", 0);
    ck_assert_uint_eq(done.op.issued, 170);
    ck_assert_ptr_null(lconn_oldest(&conn));
}
END_TEST

START_TEST(test_room)
{
    ck_assert(lconn_has_room(&conn, DEPTH));
    for (int turn = 0; turn < 10; turn++) { /* around the ring */
        for (int i = 0; i < DEPTH; i++) {
            ck_assert(lconn_has_room(&conn, DEPTH));
            push_get(1, 2, 3, 0);
        }
        ck_assert(!lconn_has_room(&conn, DEPTH));
        ck_assert(lconn_has_room(&conn, DEPTH + 1));
        flush(1);
        for (int i = 0; i < DEPTH; i++) {
            ck_assert_int_eq(feed("END\r\n", 2).outcome, LCONN_GOOD);
        }
    }
    lconn_down(&conn);
    ck_assert(!lconn_has_room(&conn, DEPTH));
}
END_TEST

/* Hits are values of keys asked for, in order, misses left out. */
static const struct {
    const char *bytes;
    enum lconn_outcome outcome;
    unsigned hits;
} replies[] = {
    {"END\r\n", LCONN_GOOD, 0},
    {"VALUE k0001 0 4\r\nvvvv\r\nEND\r\n", LCONN_GOOD, 1},
    {"VALUE k0003 0 4\r\nvvvv\r\nEND\r\n", LCONN_GOOD, 1},
    {"VALUE k0001 0 1\r\nx\r\nVALUE k0002 0 0\r\n\r\nVALUE k0003 0 4\r\nEND\r\r\nEND\r\n",
     LCONN_GOOD, 3},
    {"VALUE k0002 0 1\r\nx\r\nVALUE k0001 0 1\r\nx\r\nEND\r\n", LCONN_BROKEN, 0},
    {"VALUE k0001 0 1\r\nx\r\nVALUE k0001 0 1\r\nx\r\nEND\r\n", LCONN_BROKEN, 0},
    {"VALUE k0004 0 1\r\nx\r\nEND\r\n", LCONN_BROKEN, 0},
    {"VALUE k001 0 1\r\nx\r\nEND\r\n", LCONN_BROKEN, 0},
    {"STORED\r\n", LCONN_UNEXPECTED, 0},
    {"NOT_FOUND\r\n", LCONN_UNEXPECTED, 0},
    {"12\r\n", LCONN_UNEXPECTED, 0},
    {"ERROR\r\n", LCONN_BAD, 0},
    {"SERVER_ERROR out of memory\r\n", LCONN_BAD, 0},
    {"VALUE k0001 0 1\r\nx\r\nSERVER_ERROR out of memory\r\n", LCONN_BAD, 1},
    {"hello\r\n", LCONN_BROKEN, 0},
};

START_TEST(test_replies_to_get)
{
    size_t len = strlen(replies[_i].bytes);
    for (size_t cut = 0; cut <= len; cut++) {
        push_get(1, 2, 3, 0);
        flush(1);
        struct lconn_done done = feed(replies[_i].bytes, cut);
        ck_assert_int_eq(done.outcome, replies[_i].outcome);
        if (done.outcome == LCONN_BROKEN) {
            struct lconn_op op;
            ck_assert(lconn_take_op(&conn, &op)); /* still there to be counted as lost */
            codec_parser_init(&conn.parser);
        } else {
            ck_assert_uint_eq(done.hits, replies[_i].hits);
        }
        ck_assert_uint_eq(conn.count, 0);
    }
}
END_TEST

START_TEST(test_replies_to_set)
{
    static const struct {
        const char *bytes;
        enum lconn_outcome outcome;
    } rows[] = {
        {"STORED\r\n", LCONN_GOOD},
        {"END\r\n", LCONN_UNEXPECTED},
        {"NOT_STORED\r\n", LCONN_UNEXPECTED},
        {"CLIENT_ERROR bad data chunk\r\n", LCONN_BAD},
        {"VALUE k0005 0 1\r\nx\r\n", LCONN_BROKEN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lconn_push_set(&conn, &workload, 5, filler, 0);
        flush(1);
        ck_assert_int_eq(feed(rows[i].bytes, 3).outcome, rows[i].outcome);
    }
}
END_TEST

/* What comes without or before a request is no answer to one. */
START_TEST(test_reply_to_nothing)
{
    ck_assert_int_eq(feed("END\r\n", 0).outcome, LCONN_BROKEN);
    push_get(1, 2, 3, 0);
    ck_assert_int_eq(feed("END\r\n", 0).outcome, LCONN_BROKEN);
    ck_assert_int_eq(feed("VALUE k0001 0 1\r\nx\r\nEND\r\n", 0).outcome, LCONN_BROKEN);
    flush(1);
    codec_parser_init(&conn.parser);
    ck_assert_int_eq(feed("END\r\nEND\r\n", 5).outcome, LCONN_BROKEN);
}
END_TEST

START_TEST(test_peer_gone)
{
    size_t sent;
    close(peer);
    peer = -1;
    push_get(1, 2, 3, 0);
    ck_assert_int_eq(lconn_flush(&conn, 1, &sent), LCONN_IO_LOST);
}
END_TEST

/* A full socket: the rest is kept in order and goes out later. */
START_TEST(test_full_socket)
{
    int small = 1;
    size_t sent, total = 0, got = 0, pushed = 0;
    char buf[65536];
    ck_assert_int_eq(setsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    enum lconn_io io = LCONN_IO_OK;
    for (int i = 0; i < 100000 && io == LCONN_IO_OK; i++) {
        struct lconn_op op;
        lconn_push_set(&conn, &workload, 5, filler, 0);
        pushed += strlen("set k0005 0 0 4\r\nvvvv\r\n");
        io = lconn_flush(&conn, 1, &sent);
        total += sent;
        ck_assert(lconn_take_op(&conn, &op));
    }
    ck_assert_int_eq(io, LCONN_IO_AGAIN);
    while (got < pushed) {
        ssize_t n = recv(peer, buf, sizeof buf, MSG_DONTWAIT);
        for (ssize_t i = 0; i < n; i++) {
            ck_assert_int_eq(buf[i],
                             "set k0005 0 0 4\r\nvvvv\r\n"[(got + (size_t)i) % 23]);
        }
        got += n > 0 ? (size_t)n : 0;
        ck_assert_int_ne(lconn_flush(&conn, 2, &sent), LCONN_IO_LOST);
        total += sent;
    }
    ck_assert_uint_eq(total, pushed);
    ck_assert_uint_eq(got, pushed);
}
END_TEST

START_TEST(test_targets)
{
    static const char *const good[] = {"127.0.0.1", "127.0.0.1:11211", "unix:/tmp/x"};
    static const char *const bad[] = {
        "",     ":1",   "127.0.0.1:", "unix:",
        "[::1", "[]:1", "[::1]x",     "127.0.0.1:nosuchservice"};
    struct target t;
    char err[256];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(target_resolve(&t, good[i], err, sizeof err), "%s: %s", good[i],
                      err);
        ck_assert(t.is_local);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!target_resolve(&t, bad[i], err, sizeof err), "%s", bad[i]);
        ck_assert_int_ne(err[0], '\0');
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("lconn");
    TCase *tc = tcase_create("lconn");
    tcase_set_timeout(tc, 60); /* sanitizers on a busy machine */
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, test_requests_on_the_wire);
    tcase_add_test(tc, test_stamps);
    tcase_add_test(tc, test_room);
    tcase_add_loop_test(tc, test_replies_to_get, 0,
                        (int)(sizeof replies / sizeof replies[0]));
    tcase_add_test(tc, test_replies_to_set);
    tcase_add_test(tc, test_reply_to_nothing);
    tcase_add_test(tc, test_peer_gone);
    tcase_add_test(tc, test_full_socket);
    tcase_add_test(tc, test_targets);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
