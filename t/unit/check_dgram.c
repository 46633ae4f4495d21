/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Replies put together from datagrams: in any order, with some twice, some missing, several
 * replies at once, and parts that contradict each other; and requests that are sent in datagrams.
 */
#include "loadgen/wire/dgram.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "check_main.h"
#include "loadgen/wire/lconn.h"

#define REPLY_MAX 10000
#define REQUESTS 4
#define PARTS_MAX 12 /* of REPLY_MAX: one each 1000 bytes, and two */
#define ROUNDS 500

static struct dgram d;
static const char *reply;
static size_t reply_len;

static void
setup(void)
{
    dgram_init(&d, REPLY_MAX, REQUESTS);
}

static void
teardown(void)
{
    dgram_fini(&d);
}

static void
put_16(char *p, unsigned n)
{
    p[0] = (char)(n >> 8);
    p[1] = (char)(n & 0xff);
}

/* Takes a datagram that is not one byte longer than it says. */
static enum dgram_outcome
take(unsigned id, unsigned number, unsigned total, const char *bytes, size_t len)
{
    static char *datagram; /* a whole reply points into it */
    free(datagram);
    datagram = malloc(DGRAM_HEADER + len);
    ck_assert_ptr_nonnull(datagram);
    put_16(datagram, id);
    put_16(datagram + 2, number);
    put_16(datagram + 4, total);
    put_16(datagram + 6, 0);
    memcpy(datagram + DGRAM_HEADER, bytes, len);
    return dgram_take(&d, datagram, DGRAM_HEADER + len, &reply, &reply_len);
}

static void
expect_reply(const char *bytes, size_t len)
{
    ck_assert_uint_eq(reply_len, len);
    ck_assert_mem_eq(reply, bytes, len);
}

FIXTURE(setup, teardown);

TEST(test_header)
{
    char header[DGRAM_HEADER];
    uint16_t id;
    ck_assert_uint_eq(dgram_put_header(&d, header, 0xfe01), DGRAM_HEADER);
    ck_assert_mem_eq(header, "\xfe\x01\0\0\0\1\0\0", DGRAM_HEADER);
    ck_assert(dgram_id(header, DGRAM_HEADER, &id));
    ck_assert_uint_eq(id, 0xfe01);
    ck_assert(!dgram_id(header, DGRAM_HEADER - 1, &id));
}

/* However many were given up at once: late answers to the first of them are late, no duplicates. */
TEST(test_past)
{
    char header[DGRAM_HEADER];
    ck_assert_uint_eq(dgram_past(&d, 0), DGRAM_UNKNOWN);
    for (unsigned id = 0; id < DGRAM_IDS; id++) {
        dgram_remember(&d, (uint16_t)id,
                       id % 2 == 0 ? DGRAM_WAS_GIVEN_UP : DGRAM_WAS_REFUSED);
    }
    dgram_reset(&d);
    for (unsigned id = 0; id < DGRAM_IDS; id++) {
        ck_assert_uint_eq(dgram_past(&d, (uint16_t)id),
                          id % 2 == 0 ? DGRAM_WAS_GIVEN_UP : DGRAM_WAS_REFUSED);
    }
    dgram_put_header(&d, header, 8); /* another request has that number now */
    ck_assert_uint_eq(dgram_past(&d, 8), DGRAM_UNKNOWN);
    ck_assert_uint_eq(dgram_past(&d, 9), DGRAM_WAS_REFUSED);
    ck_assert_uint_eq(dgram_past(&d, 10), DGRAM_WAS_GIVEN_UP);
}

TEST(test_one_part)
{
    ck_assert_int_eq(take(7, 0, 1, "END\r\n", 5), DGRAM_WHOLE);
    expect_reply("END\r\n", 5);
    ck_assert_int_eq(take(7, 0, 1, "END\r\n", 5),
                     DGRAM_WHOLE); /* the caller knows better */
}

/* Several replies at once, each in parts of odd lengths, all parts shuffled and some twice. */
TEST(test_any_order)
{
    struct part {
        unsigned reply, number, total;
        size_t at, len;
    } parts[REQUESTS * PARTS_MAX];
    static char sent[REQUESTS][REPLY_MAX];
    struct rng rng;
    rng_init(&rng, 1, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n = 0, whole = 0;
        size_t lens[REQUESTS];
        bool has_come[REQUESTS * PARTS_MAX] = {false};
        for (unsigned r = 0; r < REQUESTS; r++) {
            unsigned total = 2 + (unsigned)rng_below(&rng, PARTS_MAX - 1);
            lens[r] = 0;
            for (unsigned i = 0; i < total; i++) {
                size_t len = 1 + rng_below(&rng, REPLY_MAX / PARTS_MAX);
                memset(sent[r] + lens[r], 'a' + (int)rng_below(&rng, 26), len);
                parts[n++] = (struct part){r, i, total, lens[r], len};
                lens[r] += len;
            }
        }
        while (whole < REQUESTS) {
            unsigned i = (unsigned)rng_below(&rng, n);
            struct part *p = &parts[i];
            enum dgram_outcome got = take(round + p->reply, p->number, p->total,
                                          sent[p->reply] + p->at, p->len);
            ck_assert(!has_come[i] || got == DGRAM_DUPLICATE);
            has_come[i] = true;
            if (got != DGRAM_WHOLE) {
                continue;
            }
            expect_reply(sent[p->reply], lens[p->reply]);
            whole++;
            unsigned left = 0, over = p->reply; /* its parts do not come again */
            for (unsigned k = 0; k < n; k++) {
                if (parts[k].reply != over) {
                    has_come[left] = has_come[k];
                    parts[left++] = parts[k];
                } else {
                    ck_assert(has_come[k]);
                }
            }
            n = left;
        }
    }
}

TEST(test_bad)
{
    static char large[DGRAM_PART_MAX];
    size_t most = DGRAM_PART_MAX - DGRAM_HEADER;
    ck_assert_int_eq(take(1, 1, 1, "x", 1), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, 0, "x", 1), DGRAM_BAD);
    ck_assert_int_eq(take(1, 65535, 65535, "x", 1), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, 65535, "x", 1), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, PARTS_MAX + 1, "x", 1), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, 2, "", 0), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, 1, "", 0), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, 2, large, most + 1), DGRAM_BAD);
    ck_assert_int_eq(take(1, 0, 2, large, most), DGRAM_PART);
    ck_assert_int_eq(take(1, PARTS_MAX - 1, PARTS_MAX, "x", 1), DGRAM_BAD); /* or of 2? */
}

/* Parts of a reply that is over are not those of the next with its number. */
TEST(test_forgets)
{
    static const char *const bytes[] = {"12", "34"};
    for (unsigned how = 0; how < 4; how++) {
        ck_assert_int_eq(take(9, 0, 2, "old", 3), DGRAM_PART);
        switch (how) {
        case 0:
            dgram_forget(&d, 9);
            break;
        case 1:
            dgram_reset(&d);
            break;
        case 2:
            ck_assert_int_eq(take(9, 1, 3, "x", 1), DGRAM_BAD);
            break;
        default:
            ck_assert_int_eq(take(9, 0, 1, "ERROR\r\n", 7), DGRAM_WHOLE);
            break;
        }
        dgram_forget(&d, 9); /* of nothing */
        ck_assert_int_eq(take(9, 0, 2, bytes[0], 2), DGRAM_PART);
        ck_assert_int_eq(take(9, 1, 2, bytes[1], 2), DGRAM_WHOLE);
        expect_reply("1234", 4);
    }
}

/* More replies in pieces than there is room for: one is forgotten, the others are not. */
TEST(test_no_room)
{
    for (unsigned id = 0; id <= REQUESTS; id++) {
        ck_assert_int_eq(take(id, 0, 2, "a", 1), DGRAM_PART);
    }
    for (unsigned id = 1; id <= REQUESTS; id++) {
        ck_assert_int_eq(take(id, 1, 2, "b", 1), DGRAM_WHOLE);
        expect_reply("ab", 2);
    }
    ck_assert_int_eq(take(0, 1, 2, "b", 1), DGRAM_PART);
}

/* ---- requests in datagrams --------------------------------------------------------------- */

#define DEPTH 4

static struct workload workload;
static struct target target = {.transport = TRANSPORT_UDP};
static struct lconn conn;

static void
set_up_conn(void)
{
    struct workload_conf conf = {
        .records = 1000, .getcount = dist_fixed(1), .key_prefix = "k"};
    ck_assert_ptr_null(mix_parse(&conf.mix, "get:1,set:1"));
    ck_assert_ptr_null(dist_parse(&conf.key_size, "5"));
    ck_assert_ptr_null(dist_parse(&conf.value_size, "4"));
    ck_assert_ptr_null(popularity_parse(&conf.popularity, "uniform"));
    ck_assert_ptr_null(dist_parse(&conf.expiry, "0"));
    ck_assert_ptr_null(workload_init(&workload, &conf));
    workload_open(&workload);
    struct lconn_conf lc = {&codec_ascii, &target, 0,    DEPTH,
                            &workload,    NULL,    NULL, false};
    lconn_init(&conn, &lc);
    conn.state = LCONN_UP;
}

static void
tear_down_conn(void)
{
    lconn_fini(&conn);
    workload_close(&workload);
}

static uint16_t
send_datagram(nsec_t now)
{
    const char *bytes;
    uint16_t id;
    lconn_begin_flush(&conn);
    size_t len = lconn_output(&conn, &bytes);
    ck_assert(dgram_id(bytes, len, &id));
    lconn_sent(&conn, len);
    lconn_stamp(&conn, now);
    lconn_end_flush(&conn, 0);
    return id;
}

FIXTURE(set_up_conn, tear_down_conn);

/* Ids have 16 bits: those whose requests have no reply yet are not given to others. */
TEST(test_ids_come_again)
{
    struct request_op op;
    uint64_t key = 7;
    struct request set = {.op = {.verb = CODEC_SET, .keys = 1}, .keys = &key};
    uint16_t lost[2];
    for (unsigned i = 0; i < 2; i++) {
        lconn_push(&conn, &workload, &set);
        lost[i] = send_datagram(1000 + i);
    }
    for (unsigned i = 2; i < 3 * 65536; i++) {
        lconn_push(&conn, &workload, &set);
        uint16_t id = send_datagram(1000 + i);
        expect(id != lost[0] && id != lost[1]);
        expect(lconn_choose(&conn, id) && lconn_take_op(&conn, &op));
        expect(op.issued == 1000 + i);
    }
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(lconn_choose(&conn, lost[i]) && lconn_take_op(&conn, &op));
        ck_assert_uint_eq(op.issued, 1000 + i);
    }
}

/* Under the same id, after twice the time each time, and the answer to any answers it. */
TEST(test_asked_again)
{
    const struct lconn_timeout patience = {100, 300};
    static const nsec_t waits[] = {100, 200, 300, 300};
    uint64_t key = 7;
    struct request set = {.op = {.verb = CODEC_SET, .keys = 1}, .keys = &key};
    lconn_push(&conn, &workload, &set);
    ck_assert(!lconn_retransmit(&conn, &workload, &patience, 1000000)); /* not sent yet */
    nsec_t now = 1000;
    uint16_t id = send_datagram(now);
    for (unsigned i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        ck_assert(!lconn_retransmit(&conn, &workload, &patience, now + waits[i]));
        now += waits[i] + 1;
        ck_assert(lconn_retransmit(&conn, &workload, &patience, now));
        ck_assert_uint_eq(send_datagram(now), id);
        ck_assert_uint_eq(conn.count, 1);
    }
    ck_assert(lconn_choose(&conn, id));
    set.keys = &(uint64_t){8};
    lconn_push(&conn, &workload, &set);
    ck_assert_uint_eq(send_datagram(now), id + 1);
}

/* A datagram of no bytes is a stray, not the end of a connection. */
TEST(test_no_bytes)
{
    int pair[2];
    char to[8];
    size_t len = 1;
    bool has_more;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    conn.link.fd = pair[0];
    conn.link.is_datagram = true;
    ck_assert_int_eq(send(pair[1], "", 0, 0), 0);
    ck_assert_int_eq(link_receive(&conn.link, to, sizeof to, &len, &has_more), LINK_OK);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(link_receive(&conn.link, to, sizeof to, &len, &has_more),
                     LINK_AGAIN);
    close(pair[1]);
}
