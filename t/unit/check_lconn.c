/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A load generator's connection: requests byte for byte, replies matched to them however
 * they are cut, and what must not pass for an answer. The other end is a socket pair.
 */
#include "loadgen/wire/lconn.h"
#include "check_main.h"

#include "base/rng.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH 4

static struct workload workload;
#define PLAIN CODEC_GET, THEN_NOTHING, false
#define HIT(n) "VALUE k000" n " 0 4\r\nabcd\r\nEND\r\n"
#define STEM "k0000000000000000000000000000" /* of a key of 30 bytes, but for the last */

static struct target target;
static struct lconn conn;
static struct codec_stencil stencil;
static int peer;

/* Keys of one length are written from a prepared one. */
static void
set_up_keys(const char *size, const struct codec_stencil *prepared)
{
    struct workload_conf conf = {
        .records = 1000, .getcount = dist_fixed(3), .key_prefix = "k"};
    ck_assert_ptr_null(mix_parse(&conf.mix, "get:1,cas:1,rmw:1"));
    int pair[2];
    ck_assert_ptr_null(dist_parse(&conf.key_size, size));
    ck_assert_ptr_null(dist_parse(&conf.value_size, "4"));
    ck_assert_ptr_null(popularity_parse(&conf.popularity, "uniform"));
    ck_assert_ptr_null(dist_parse(&conf.expiry, "0"));
    ck_assert_ptr_null(workload_init(&workload, &conf));
    workload_open(&workload);
    char like[WORKLOAD_KEY_MAX];
    codec_stencil_init(&stencil, &codec_ascii, like,
                       workload_put_key(&workload, 0, like));
    struct lconn_conf lc = {&codec_ascii, &target,  0,    DEPTH,
                            &workload,    prepared, NULL, false};
    lconn_init(&conn, &lc);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    conn.link.fd = pair[0];
    conn.state = LCONN_UP;
    peer = pair[1];
}

static void
set_up(void)
{
    set_up_keys("5", &stencil);
}

static void
tear_down(void)
{
    lconn_fini(&conn);
    workload_close(&workload);
    close(peer);
}

static void
push_get(uint64_t a, uint64_t b, uint64_t c, nsec_t intended)
{
    uint64_t keys[] = {a, b, c};
    struct request request = {.op = {.verb = CODEC_GET, .keys = 3, .intended = intended},
                              .keys = keys};
    lconn_push(&conn, &workload, &request);
}

/* A request of one key. */
static void
push_one(enum codec_verb verb, uint64_t key, enum request_then then, bool is_verified)
{
    struct request request = {
        .op = {.verb = verb, .then = then, .keys = 1, .is_verified = is_verified},
        .keys = &key,
        .cas = 99};
    lconn_push(&conn, &workload, &request);
}

/* What lset does, without the waiting. */
static enum link_io
try_flush(nsec_t now, size_t *sent)
{
    const char *bytes;
    size_t len, n;
    enum link_io io = LINK_OK;
    *sent = 0;
    lconn_begin_flush(&conn);
    while (io == LINK_OK && (len = lconn_output(&conn, &bytes)) > 0) {
        io = link_send(&conn.link, bytes, len, &n);
        lconn_sent(&conn, n);
        *sent += n;
    }
    lconn_end_flush(&conn, io == LINK_AGAIN ? now : 0);
    lconn_stamp(&conn, now);
    return io;
}

static void
flush(nsec_t now)
{
    size_t sent;
    ck_assert_int_eq(try_flush(now, &sent), LINK_OK);
}

/* Feeds the bytes in two parts; the last outcome that was not MORE. */
static struct reply_done
feed(const char *bytes, size_t cut)
{
    struct reply_done last = {.outcome = REPLY_MORE}, done;
    size_t len = strlen(bytes);
    const char *parts[] = {bytes, bytes + cut};
    size_t lens[] = {cut, len - cut};
    for (int i = 0; i < 2; i++) {
        size_t at = 0;
        do {
            lconn_parse(&conn, &workload, parts[i] + at, lens[i] - at, &done);
            at += done.taken;
            if (done.outcome != REPLY_MORE) {
                last = done;
            }
        } while (done.outcome != REPLY_MORE && done.outcome != REPLY_BROKEN);
        if (done.outcome == REPLY_BROKEN) {
            break;
        }
    }
    return last;
}

FIXTURE(set_up, tear_down);

TEST(test_requests_on_the_wire)
{
    char got[256];
    push_get(0, 77, 999, 0);
    push_one(CODEC_SET, 5, THEN_NOTHING, false);
    flush(1);
    char expected[256];
    int len = snprintf(expected, sizeof expected,
                       "get k0000 k0077 k0999\r\nset k0005 0 0 4\r\n%.4s\r\n",
                       workload_value(&workload, 5));
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), len);
    ck_assert_mem_eq(got, expected, (size_t)len);
}

/* What is asked at once and answered alike is taken at once. */
static const struct {
    const char *what;
    const char
        *bytes;    /* to requests of keys 1, 2, 3, sent at once, and of 4, sent later */
    unsigned hits; /* that count as the first does */
    enum reply_outcome next;
    enum codec_verb verb; /* of those behind the first */
    enum request_then then;
    bool is_verified;
} together[] = {
    {"all of one time", HIT("1") HIT("2") HIT("3") HIT("4"), 3, REPLY_GOOD, PLAIN},
    {"to the miss", HIT("1") HIT("2") "END\r\n", 2, REPLY_GOOD, PLAIN},
    {"none behind a miss", "END\r\n" HIT("2") HIT("3"), 0, REPLY_GOOD, PLAIN},
    {"to another length", HIT("1") "VALUE k0002 0 1\r\na\r\nEND\r\n", 1, REPLY_GOOD,
     PLAIN},
    {"with other flags", HIT("1") "VALUE k0002 7 4\r\nabcd\r\nEND\r\n", 2, REPLY_MORE,
     PLAIN},
    {"to an error", HIT("1") "SERVER_ERROR busy\r\n", 1, REPLY_BAD, PLAIN},
    {"to another key", HIT("1") HIT("2") HIT("5"), 2, REPLY_BROKEN, PLAIN},
    {"to the end", HIT("1") HIT("2") "VALUE k0003 0 4\r\nabcd\r\nEND\r", 2, REPLY_MORE,
     PLAIN},
    {"to another verb", HIT("1") HIT("2"), 1, REPLY_GOOD, CODEC_GETS, THEN_NOTHING,
     false},
    {"to what is followed", HIT("1") HIT("2"), 1, REPLY_GOOD, CODEC_GET, THEN_SET, false},
    {"to what is compared", HIT("1") HIT("2"), 1, REPLY_WRONG, CODEC_GET, THEN_NOTHING,
     true},
};

/* The same bytes with keys of 30. */
static char *
with_stems(const char *bytes, char *to)
{
    char *end = to;
    for (const char *at; (at = strstr(bytes, "k000")) != NULL; bytes = at + 4) {
        end = stpcpy(mempcpy(end, bytes, (size_t)(at - bytes)), STEM);
    }
    strcpy(end, bytes);
    return to;
}

static void
check_together(size_t i, const char *bytes, unsigned most)
{
    struct reply_done done;
    size_t len = strlen(bytes), taken = 0;
    unsigned n = 0, more;
    push_one(CODEC_GET, 1, THEN_NOTHING, false);
    for (uint64_t key = 2; key <= 4; key++) {
        push_one(together[i].verb, key, together[i].then, together[i].is_verified);
        flush(key <= 3 ? 1 : 2);
    }
    do {
        more = lconn_take_hits(&conn, &workload, bytes, len, &taken, most, &done);
        ck_assert(more == 0 || (done.outcome == REPLY_GOOD && done.hits == 1 &&
                                done.value_bytes == 4 && done.op.issued == 1));
        n += more;
    } while (most == 1 && more > 0 && n < together[i].hits);
    ck_assert_msg(n == together[i].hits, "%s: %u", together[i].what, n);
    ck_assert_uint_eq(conn.count, 4 - n);
    /* It goes on where it was, with what comes next. */
    lconn_parse(&conn, &workload, bytes + taken, len - taken, &done);
    ck_assert_msg(done.outcome == together[i].next, "%s: then %d", together[i].what,
                  done.outcome);
    struct request_op op;
    while (lconn_take_op(&conn, &op)) {
    }
    reply_reset(&conn.reply);
    followups_reset(&conn.followups);
}

TEST(test_replies_together)
{
    char text[1024];
    for (size_t i = 0; i < sizeof together / sizeof together[0]; i++) {
        check_together(i, together[i].bytes, UINT_MAX);
        check_together(i, together[i].bytes, 1);
    }
    tear_down();
    set_up_keys("30", &stencil);
    for (size_t i = 0; i < sizeof together / sizeof together[0]; i++) {
        check_together(i, with_stems(together[i].bytes, text), UINT_MAX);
    }
}

TEST(test_stamps)
{
    push_get(1, 2, 3, 100);
    push_get(4, 5, 6, 110);
    ck_assert_uint_eq(conn.fresh, 2);
    ck_assert_uint_eq(lconn_oldest(&conn)->issued, 0);
    flush(150);
    ck_assert_uint_eq(conn.fresh, 0);
    ck_assert_uint_eq(conn.issued, 2);
    ck_assert_uint_eq(lconn_issued_op(&conn, 1)->intended, 110);
    push_get(7, 8, 9, 160);
    ck_assert_uint_eq(conn.fresh, 1);
    flush(170);
    struct reply_done done = feed("END\r\n", 0);
    ck_assert_int_eq(done.outcome, REPLY_GOOD);
    ck_assert_uint_eq(done.op.intended, 100);
    ck_assert_uint_eq(done.op.issued, 150);
    feed("END\r\n", 0);
    done = feed("END\r\n", 0);
    ck_assert_uint_eq(done.op.issued, 170);
    ck_assert_ptr_null(lconn_oldest(&conn));
}

TEST(test_room)
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
            ck_assert_int_eq(feed("END\r\n", 2).outcome, REPLY_GOOD);
        }
    }
    lconn_down(&conn);
    ck_assert(!lconn_has_room(&conn, DEPTH));
}

/* Hits are values of keys asked for, in order, misses left out. */
static const struct {
    const char *bytes;
    enum reply_outcome outcome;
    unsigned hits;
} replies[] = {
    {"END\r\n", REPLY_GOOD, 0},
    {"VALUE k0001 0 4\r\nvvvv\r\nEND\r\n", REPLY_GOOD, 1},
    {"VALUE k0003 0 4\r\nvvvv\r\nEND\r\n", REPLY_GOOD, 1},
    {"VALUE k0001 0 1\r\nx\r\nVALUE k0002 0 0\r\n\r\nVALUE k0003 0 4\r\nEND\r\r\nEND\r\n",
     REPLY_GOOD, 3},
    {"VALUE k0002 0 1\r\nx\r\nVALUE k0001 0 1\r\nx\r\nEND\r\n", REPLY_BROKEN, 0},
    {"VALUE k0001 0 1\r\nx\r\nVALUE k0001 0 1\r\nx\r\nEND\r\n", REPLY_BROKEN, 0},
    {"VALUE k0004 0 1\r\nx\r\nEND\r\n", REPLY_BROKEN, 0},
    {"VALUE k001 0 1\r\nx\r\nEND\r\n", REPLY_BROKEN, 0},
    {"STORED\r\n", REPLY_UNEXPECTED, 0},
    {"NOT_FOUND\r\n", REPLY_UNEXPECTED, 0},
    {"12\r\n", REPLY_UNEXPECTED, 0},
    {"ERROR\r\n", REPLY_BAD, 0},
    {"SERVER_ERROR out of memory\r\n", REPLY_BAD, 0},
    {"VALUE k0001 0 1\r\nx\r\nSERVER_ERROR out of memory\r\n", REPLY_BAD, 1},
    {"hello\r\n", REPLY_BROKEN, 0},
};

TEST_LOOP(test_replies_to_get, (int)(sizeof replies / sizeof replies[0]))
{
    size_t len = strlen(replies[_i].bytes);
    for (size_t cut = 0; cut <= len; cut++) {
        push_get(1, 2, 3, 0);
        flush(1);
        struct reply_done done = feed(replies[_i].bytes, cut);
        ck_assert_int_eq(done.outcome, replies[_i].outcome);
        if (done.outcome == REPLY_BROKEN) {
            struct request_op op;
            ck_assert(lconn_take_op(&conn, &op)); /* still there to be counted as lost */
            codec_parser_init(&conn.reply.parser);
        } else {
            ck_assert_uint_eq(done.hits, replies[_i].hits);
        }
        ck_assert_uint_eq(conn.count, 0);
    }
}

/* The first key of that length, from this one on. */
static uint64_t
key_of(uint64_t key, size_t len)
{
    char text[WORKLOAD_KEY_MAX];
    while (workload_put_key(&workload, key, text) != len) {
        ck_assert_uint_lt(++key, workload.conf.records);
    }
    return key;
}

/* The line of a hit is compared where that of the one before stood: another value's may be there. */
TEST(test_lines_at_the_place_of_the_last)
{
    char text[WORKLOAD_KEY_MAX], reply[1024];
    tear_down();
    set_up_keys("uniform:6,60", NULL);
    uint64_t a = key_of(0, 9), b = key_of(a + 1, 9);
    uint64_t c = key_of(0, 9 + strlen(" 0 4\r\nabcd\r\nVALUE ") + 9);
    const uint64_t order[] = {c, a, b, a, b, c};
    size_t len = 0;
    for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
        size_t n = workload_put_key(&workload, order[i], text);
        len += (size_t)snprintf(reply + len, sizeof reply - len,
                                "VALUE %.*s 0 4\r\nabcd\r\n%s", (int)n, text,
                                i % 3 == 2 ? "END\r\n" : "");
    }
    for (size_t cut = 0; cut <= len; cut++) {
        push_get(c, a, b, 0);
        push_get(a, b, c, 0);
        flush(1);
        struct reply_done done = feed(reply, cut);
        ck_assert_int_eq(done.outcome, REPLY_GOOD);
        ck_assert_uint_eq(done.hits, 3);
        ck_assert_uint_eq(conn.count, 0);
    }
}

/* ---- any reply, cut anywhere ------------------------------------------------------------- */

/* What a reply comes to, with what follows from it. */
struct sum {
    struct reply_done done;
    struct followup next[DEPTH * 3];
    unsigned count;
};

static struct sum
read_in_parts(const char *bytes, size_t len, size_t part, enum request_then then)
{
    const struct request request = {.op = {.verb = CODEC_GET, .then = then, .keys = 3},
                                    .keys = (uint64_t[]){1, 2, 3}};
    struct sum sum = {.done = {.outcome = REPLY_MORE}};
    char copy[256]; /* of each part, so that what lies behind it is not read */
    lconn_push(&conn, &workload, &request);
    flush(1);
    ck_assert_int_gt(recv(peer, copy, sizeof copy, MSG_DONTWAIT), 0);
    for (size_t at = 0; at < len && sum.done.outcome == REPLY_MORE; at += part) {
        size_t n = len - at < part ? len - at : part;
        lconn_parse(&conn, &workload, memcpy(copy + sizeof copy - n, bytes + at, n), n,
                    &sum.done);
    }
    while (conn.followups.count > 0) {
        sum.next[sum.count++] = conn.followups.ring[conn.followups.head];
        followups_pop(&conn.followups);
    }
    struct request_op op;
    if (sum.done.outcome == REPLY_MORE || sum.done.outcome == REPLY_BROKEN) {
        ck_assert(lconn_take_op(&conn, &op));
        sum.done = (struct reply_done){.outcome = sum.done.outcome};
    }
    reply_reset(&conn.reply);
    return sum;
}

/* Values and ends, in any order, now and then with a byte that does not belong there. */
static size_t
draw_reply(struct rng *rng, char *reply)
{
    static const char *const parts[] = {
        "VALUE k0001 0 4\r\nVALU\r\n",    "VALUE k0002 0 4\r\nabcd\r\n",
        "VALUE k0003 0 4\r\nEND\r\r\n",   "VALUE k0003 7 12\r\nVALUE k0003 \r\n",
        "VALUE k0001 0 0\r\n\r\n",        "VALUE k0002 0 1 99\r\nx\r\n",
        "SERVER_ERROR out of memory\r\n", "END\r\n"};
    size_t len = 0;
    for (uint64_t i = rng_below(rng, 5); i > 0; i--) {
        uint64_t part = rng_below(rng, sizeof parts / sizeof parts[0] - 1);
        len = (size_t)(stpcpy(reply + len, parts[part]) - reply);
    }
    len = (size_t)(stpcpy(reply + len, "END\r\n") - reply);
    if (rng_below(rng, 4) == 0) {
        static const char bytes[] = "\r\n 0VEk";
        uint64_t at = rng_below(rng, len);
        reply[at] = bytes[rng_below(rng, sizeof bytes - 1)];
    }
    return len;
}

static bool
is_same_sum(const struct sum *a, const struct sum *b)
{
    const struct reply_done *c = &a->done, *d = &b->done;
    bool is_same = c->outcome == d->outcome && c->hits == d->hits && a->count == b->count;
    for (unsigned i = 0; is_same && i < a->count; i++) {
        is_same = a->next[i].key == b->next[i].key && a->next[i].verb == b->next[i].verb;
    }
    return is_same && c->value_bytes == d->value_bytes;
}

TEST(test_any_reply_cut_anywhere)
{
    struct rng rng;
    char reply[256];
    rng_init(&rng, 1, 0);
    for (unsigned i = 0; i < 20000; i++) {
        enum request_then then = i % 2 == 0 ? THEN_NOTHING : THEN_SET;
        workload.conf.fills = i % 4 < 2;
        size_t len = draw_reply(&rng, reply);
        struct sum by_bytes = read_in_parts(reply, len, 1, then);
        struct sum whole = read_in_parts(reply, len, len, then);
        struct sum cut = read_in_parts(reply, len, 1 + rng_below(&rng, len), then);
        const struct sum *others[] = {&whole, &cut};
        for (unsigned k = 0; k < 2; k++) {
            ck_assert_msg(is_same_sum(&by_bytes, others[k]), "%u, %u: %.*s", i, k,
                          (int)len, reply);
        }
    }
}

/* Bytes of the values that came, however they came; not those of the reply before. */
TEST(test_value_bytes)
{
    static const char two[] = "VALUE k0001 0 4\r\nabcd\r\nVALUE k0003 0 7\r\nabcdefg\r\n"
                              "END\r\n";
    static const char one[] = "VALUE k0005 0 9\r\nabcdefghi\r\nEND\r\n";
    for (size_t cut = 0; cut < sizeof two; cut++) {
        push_get(1, 2, 3, 0);
        flush(1);
        ck_assert_uint_eq(feed(two, cut).value_bytes, 11);
        push_one(CODEC_GET, 5, THEN_NOTHING, false);
        flush(1);
        ck_assert_uint_eq(feed(one, cut < sizeof one ? cut : 0).value_bytes, 9);
        push_one(CODEC_GET, 5, THEN_NOTHING, false);
        flush(1);
        struct reply_done done = feed("END\r\n", 0);
        ck_assert_int_eq(done.outcome, REPLY_GOOD);
        ck_assert_uint_eq(done.value_bytes, 0);
    }
}

TEST(test_replies_to_set)
{
    static const struct {
        const char *bytes;
        enum reply_outcome outcome;
    } rows[] = {
        {"STORED\r\n", REPLY_GOOD},
        {"END\r\n", REPLY_UNEXPECTED},
        {"NOT_STORED\r\n", REPLY_UNEXPECTED},
        {"CLIENT_ERROR bad data chunk\r\n", REPLY_BAD},
        {"VALUE k0005 0 1\r\nx\r\n", REPLY_BROKEN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        push_one(CODEC_SET, 5, THEN_NOTHING, false);
        flush(1);
        ck_assert_int_eq(feed(rows[i].bytes, 3).outcome, rows[i].outcome);
    }
}

/* The other verbs: on the wire, and the answers that are theirs. */
static const struct {
    enum codec_verb verb;
    const char *wire;
    const char *reply;
    enum reply_outcome outcome;
    bool has_effect;
} orders[] = {
    {CODEC_DELETE, "delete k0005\r\n", "DELETED\r\n", REPLY_GOOD, true},
    {CODEC_DELETE, "delete k0005\r\n", "NOT_FOUND\r\n", REPLY_GOOD, false},
    {CODEC_DELETE, "delete k0005\r\n", "STORED\r\n", REPLY_UNEXPECTED, false},
    {CODEC_TOUCH, "touch k0005 0\r\n", "TOUCHED\r\n", REPLY_GOOD, true},
    {CODEC_TOUCH, "touch k0005 0\r\n", "NOT_FOUND\r\n", REPLY_GOOD, false},
    {CODEC_INCR, "incr k0005 1\r\n", "17\r\n", REPLY_GOOD, true},
    {CODEC_INCR, "incr k0005 1\r\n", "NOT_FOUND\r\n", REPLY_GOOD, false},
    {CODEC_INCR, "incr k0005 1\r\n", "CLIENT_ERROR x\r\n", REPLY_BAD, false},
    {CODEC_ADD, "add k0005 0 0 4\r\n%.4s\r\n", "STORED\r\n", REPLY_GOOD, true},
    {CODEC_ADD, "add k0005 0 0 4\r\n%.4s\r\n", "NOT_STORED\r\n", REPLY_GOOD, false},
    {CODEC_CAS, "cas k0005 0 0 4 99\r\n%.4s\r\n", "STORED\r\n", REPLY_GOOD, true},
    {CODEC_CAS, "cas k0005 0 0 4 99\r\n%.4s\r\n", "EXISTS\r\n", REPLY_GOOD, false},
    {CODEC_CAS, "cas k0005 0 0 4 99\r\n%.4s\r\n", "NOT_FOUND\r\n", REPLY_GOOD, false},
    {CODEC_GETS, "gets k0005\r\n", "END\r\n", REPLY_GOOD, true},
};

TEST_LOOP(test_orders, ROWS(orders))
{
    char got[256], expected[256];
    push_one(orders[_i].verb, 5, THEN_NOTHING, false);
    flush(1);
    const char *sep = strstr(orders[_i].wire, "%.4s");
    size_t head = sep != NULL ? (size_t)(sep - orders[_i].wire) : strlen(orders[_i].wire);
    int len = snprintf(expected, sizeof expected, "%.*s%.4s%s", (int)head,
                       orders[_i].wire, sep != NULL ? workload_value(&workload, 5) : "",
                       sep != NULL ? sep + 4 : "");
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), len);
    ck_assert_mem_eq(got, expected, (size_t)len);
    struct reply_done done = feed(orders[_i].reply, 4);
    ck_assert_int_eq(done.outcome, orders[_i].outcome);
    if (done.outcome == REPLY_GOOD) {
        ck_assert_int_eq(done.has_effect, orders[_i].has_effect);
    }
    ck_assert_uint_eq(conn.followups.count, 0);
}

/* A cas follows a gets that hit, with its number; a set follows the get of an rmw. */
TEST(test_followups)
{
    char got[256], expected[256];
    push_one(CODEC_GETS, 7, THEN_CAS, false);
    push_one(CODEC_GETS, 8, THEN_CAS, false);
    push_one(CODEC_GET, 9, THEN_SET, false);
    flush(1);
    ck_assert_int_gt(recv(peer, got, sizeof got, MSG_DONTWAIT), 0);
    conn.read_at = 5;
    feed("VALUE k0007 0 4 1234\r\nabcd\r\nEND\r\n", 30);
    conn.read_at = 6;
    feed("END\r\nEND\r\n", 3);
    ck_assert_uint_eq(conn.followups.count, 2);
    ck_assert_uint_eq(lconn_push_followup(&conn, &workload)->intended, 5);
    ck_assert_uint_eq(lconn_push_followup(&conn, &workload)->intended, 6);
    ck_assert_ptr_null(lconn_push_followup(&conn, &workload));
    flush(8);
    int len = snprintf(expected, sizeof expected,
                       "cas k0007 0 0 4 1234\r\n%.4s\r\nset k0009 0 0 4\r\n%.4s\r\n",
                       workload_value(&workload, 7), workload_value(&workload, 9));
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), len);
    ck_assert_mem_eq(got, expected, (size_t)len);
    ck_assert_int_eq(feed("STORED\r\nSTORED\r\n", 3).outcome, REPLY_GOOD);
}

/* Read-through: a set for each key missed, wherever in the get it stood; lost with the
 * connection. Never more than there is room for. */
TEST(test_fills)
{
    workload.conf.fills = true;
    push_get(1, 2, 3, 0);
    push_get(4, 5, 6, 0);
    push_get(7, 8, 9, 0);
    flush(1);
    feed("VALUE k0002 0 1\r\nx\r\nEND\r\nEND\r\nEND\r\n", 9);
    ck_assert_uint_eq(conn.followups.count, 8);
    for (unsigned i = 0; i < 8; i++) {
        static const uint64_t keys[] = {1, 3, 4, 5, 6, 7, 8, 9};
        ck_assert_uint_eq(
            conn.followups.ring[conn.followups.head % conn.followups.cap].key, keys[i]);
        ck_assert_ptr_nonnull(lconn_push_followup(&conn, &workload));
        flush(1);
        ck_assert_int_eq(feed("STORED\r\n", 1).outcome, REPLY_GOOD);
    }
    push_get(1, 2, 3, 0);
    flush(1);
    feed("END\r\n", 1);
    ck_assert_uint_eq(conn.followups.count, 3);
    lconn_down(&conn);
    ck_assert_uint_eq(conn.followups.count, 0);
}

/* ---- what is left to the caller ------------------------------------------------------- */

static void
make_deferring(bool leases)
{
    lconn_fini(&conn);
    workload.conf.fills = workload.conf.defers = true;
    workload.conf.leases = leases;
    struct lconn_conf lc = {leases ? &codec_meta : &codec_ascii,
                            &target,
                            0,
                            DEPTH,
                            &workload,
                            NULL,
                            NULL,
                            false};
    int pair[2];
    close(peer);
    lconn_init(&conn, &lc);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    conn.link.fd = pair[0];
    conn.state = LCONN_UP;
    peer = pair[1];
}

static void
is_missed(unsigned i, uint64_t key, enum missed_need need, uint64_t cas, unsigned tries)
{
    ck_assert_uint_eq(conn.followups.missed[i].key, key);
    ck_assert_int_eq(conn.followups.missed[i].need, need);
    ck_assert_uint_eq(conn.followups.missed[i].cas, cas);
    ck_assert_uint_eq(conn.followups.missed[i].tries, tries);
}

TEST(test_deferred)
{
    make_deferring(false);
    push_get(1, 2, 3, 0);
    push_one(CODEC_GET, 4, THEN_SET, false);
    flush(1);
    ck_assert_int_eq(feed("VALUE k0002 0 4\r\nabcd\r\nEND\r\n", 12).hits, 1);
    ck_assert_uint_eq(conn.followups.count, 0);
    ck_assert_uint_eq(conn.followups.missed_count, 2);
    is_missed(0, 1, NEED_SET, 0, 0);
    is_missed(1, 3, NEED_SET, 0, 0);
    conn.followups.missed_count = 0;
    /* Room for all that may come back at once, beside what follows from answers. */
    for (unsigned i = 0; i < DEPTH * conn.keys_max; i++) {
        struct followup todo = {7, i, 0, CODEC_SET, true, 0};
        ck_assert(followups_have_room(&conn.followups));
        followups_add(&conn.followups, &workload, todo);
    }
    ck_assert(!followups_have_room(&conn.followups));
    feed("VALUE k0004 0 4\r\nabcd\r\nEND\r\n", 3);
    const struct request_op *op = lconn_push_followup(&conn, &workload);
    ck_assert(op->is_fill);
    ck_assert_uint_eq(op->intended, 7);
    lconn_down(&conn);
    ck_assert_uint_eq(conn.followups.count, 0);
}

TEST(test_leased)
{
    char got[128];
    static const char expected[] = "mg k0001 k f v c q N10\r\nmg k0002 k f v c q N10\r\n"
                                   "mg k0003 k f v c q N10\r\nmn\r\n";
    make_deferring(true);
    push_get(1, 2, 3, 0);
    flush(1);
    ssize_t n = recv(peer, got, sizeof got, MSG_DONTWAIT);
    ck_assert_int_eq(n, (ssize_t)strlen(expected));
    ck_assert_mem_eq(got, expected, (size_t)n);
    struct reply_done done = feed("VA 0 kk0001 f0 c8 W\r\n\r\nVA 0 kk0002 f0 c9 Z\r\n\r\n"
                                  "VA 4 kk0003 f0 c7\r\nabcd\r\nMN\r\n",
                                  30);
    ck_assert_int_eq(done.outcome, REPLY_GOOD);
    ck_assert_uint_eq(done.hits, 1);
    ck_assert_uint_eq(conn.followups.missed_count, 2);
    is_missed(0, 1, NEED_CAS, 8, 0);
    is_missed(1, 2, NEED_GET, 0, 0);
    ck_assert_uint_eq(conn.followups.stale, 0);
    conn.followups.missed_count = 0;
    /* Asked for again; what is stale is a hit, and one is to store it. */
    struct followup todo = {7, 2, 0, CODEC_GET, false, 3};
    followups_add(&conn.followups, &workload, todo);
    ck_assert_uint_eq(lconn_push_followup(&conn, &workload)->tries, 3);
    push_one(CODEC_GET, 5, THEN_NOTHING, true);
    flush(2);
    feed("VA 0 kk0002 f0 c9 Z\r\n\r\n", 3);
    is_missed(0, 2, NEED_GET, 0, 3);
    conn.followups.missed_count = 0;
    char stale[64];
    snprintf(stale, sizeof stale, "VA 4 kk0005 f0 c6 W X\r\n%.4s\r\n",
             workload_value(&workload, 5));
    done = feed(stale, 5);
    ck_assert_int_eq(done.outcome, REPLY_GOOD);
    ck_assert_uint_eq(done.hits, 1);
    ck_assert_uint_eq(conn.followups.stale, 1);
    ck_assert_uint_eq(conn.followups.missed_count, 1);
    is_missed(0, 5, NEED_CAS, 6, 0);
    conn.followups.missed_count = 0;
    /* An empty one that is verified is no value. */
    push_one(CODEC_GET, 5, THEN_NOTHING, true);
    flush(3);
    done = feed("VA 0 kk0005 f0 c6 W\r\n\r\n", 5);
    ck_assert_int_eq(done.outcome, REPLY_GOOD);
    ck_assert_uint_eq(done.hits, 0);
}

/* Values are compared with what their keys have: length and content, however cut. */
TEST(test_verified)
{
    char good[128], wrong[128], brief[128];
    const char *v = workload_value(&workload, 5);
    snprintf(good, sizeof good, "VALUE k0005 0 4\r\n%.4s\r\nEND\r\n", v);
    snprintf(wrong, sizeof wrong, "VALUE k0005 0 4\r\n%.3sX\r\nEND\r\n", v);
    snprintf(brief, sizeof brief, "VALUE k0005 0 3\r\n%.3s\r\nEND\r\n", v);
    const struct {
        const char *reply;
        bool is_verified;
        enum reply_outcome outcome;
    } rows[] = {
        {good, true, REPLY_GOOD},       {wrong, true, REPLY_WRONG},
        {brief, true, REPLY_WRONG},     {wrong, false, REPLY_GOOD},
        {brief, false, REPLY_GOOD},     {"END\r\n", true, REPLY_GOOD},
        {"ERROR\r\n", true, REPLY_BAD},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t cut = 0; cut < strlen(rows[r].reply); cut++) {
            push_one(CODEC_GET, 5, THEN_NOTHING, rows[r].is_verified);
            flush(1);
            ck_assert_int_eq(feed(rows[r].reply, cut).outcome, rows[r].outcome);
        }
    }
}

/* Of a value in chunks the length is known at its end only. */
TEST(test_verified_chunks)
{
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    char good[128], brief[128], lengthy[128], request[128];
    const char *v = workload_value(&workload, 5);
    snprintf(good, sizeof good, CHUNKED "3\r\n%.3s\r\n1\r\n%.1s\r\n0\r\n\r\n", v, v + 3);
    snprintf(brief, sizeof brief, CHUNKED "3\r\n%.3s\r\n0\r\n\r\n", v);
    snprintf(lengthy, sizeof lengthy, CHUNKED "5\r\n%.5s\r\n0\r\n\r\n", v);
    const struct {
        const char *reply;
        enum reply_outcome outcome;
    } rows[] = {
        {good, REPLY_GOOD},
        {brief, REPLY_WRONG},
        {CHUNKED "0\r\n\r\n", REPLY_WRONG},
        {lengthy, REPLY_WRONG},
        {"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n", REPLY_GOOD},
    };
    conn.style.codec = &codec_http;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t cut = 0; cut < strlen(rows[r].reply); cut++) {
            push_one(CODEC_GET, 5, THEN_NOTHING, true);
            flush(1);
            ck_assert_int_gt(recv(peer, request, sizeof request, MSG_DONTWAIT), 0);
            ck_assert_int_eq(feed(rows[r].reply, cut).outcome, rows[r].outcome);
        }
    }
}

/* What comes without or before a request is no answer to one. */
TEST(test_reply_to_nothing)
{
    ck_assert_int_eq(feed("END\r\n", 0).outcome, REPLY_BROKEN);
    push_get(1, 2, 3, 0);
    ck_assert_int_eq(feed("END\r\n", 0).outcome, REPLY_BROKEN);
    ck_assert_int_eq(feed("VALUE k0001 0 1\r\nx\r\nEND\r\n", 0).outcome, REPLY_BROKEN);
    flush(1);
    codec_parser_init(&conn.reply.parser);
    ck_assert_int_eq(feed("END\r\nEND\r\n", 5).outcome, REPLY_BROKEN);
}

/* What a connection begins with: its reply is nobody's outcome, unless it is a refusal. */
TEST(test_greeting)
{
    static const struct lconn_auth auth = {"set auth 0 0 3\r\nu p\r\n", 21};
    struct request_op op;
    char got[64];
    conn.auth = &auth;
    for (size_t cut = 0; cut <= strlen("STORED\r\nEND\r\n"); cut++) {
        lconn_greet(&conn);
        flush(1);
        ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), 21);
        ck_assert_mem_eq(got, auth.bytes, 21);
        push_get(1, 2, 3, 0);
        flush(2);
        ck_assert_int_gt(recv(peer, got, sizeof got, MSG_DONTWAIT), 0);
        struct reply_done done = feed("STORED\r\nEND\r\n", cut);
        ck_assert_int_eq(done.outcome, REPLY_GOOD);
        ck_assert_int_eq(done.op.verb, CODEC_GET);
        ck_assert_uint_eq(conn.count, 0);
    }
    lconn_greet(&conn);
    flush(1);
    ck_assert_int_eq(feed("STORED\r\n", 3).outcome, REPLY_MORE);
    lconn_greet(&conn);
    flush(1);
    ck_assert_int_eq(feed("CLIENT_ERROR no\r\n", 0).outcome, REPLY_BAD);
    lconn_greet(&conn);
    flush(1);
    ck_assert_int_eq(feed("STORED\r\nEND\r\n", 0).outcome, REPLY_BROKEN);
    ck_assert(!lconn_take_op(&conn, &op));
}

TEST(test_peer_gone)
{
    size_t sent;
    close(peer);
    peer = -1;
    push_get(1, 2, 3, 0);
    ck_assert_int_eq(try_flush(1, &sent), LINK_LOST);
}

/* A full socket: the rest is kept in order and goes out later. */
TEST(test_full_socket)
{
    int small = 1;
    size_t sent, total = 0, got = 0, pushed = 0;
    char buf[65536], expected[64];
    snprintf(expected, sizeof expected, "set k0005 0 0 4\r\n%.4s\r\n",
             workload_value(&workload, 5));
    ck_assert_int_eq(
        setsockopt(conn.link.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    enum link_io io = LINK_OK;
    for (int i = 0; i < 100000 && io == LINK_OK; i++) {
        struct request_op op;
        push_one(CODEC_SET, 5, THEN_NOTHING, false);
        pushed += strlen(expected);
        io = try_flush(1, &sent);
        total += sent;
        ck_assert(lconn_take_op(&conn, &op));
    }
    ck_assert_int_eq(io, LINK_AGAIN);
    while (got < pushed) {
        ssize_t n = recv(peer, buf, sizeof buf, MSG_DONTWAIT);
        for (ssize_t i = 0; i < n; i++) {
            ck_assert_int_eq(buf[i], expected[(got + (size_t)i) % strlen(expected)]);
        }
        got += n > 0 ? (size_t)n : 0;
        ck_assert_int_ne(try_flush(2, &sent), LINK_LOST);
        total += sent;
    }
    ck_assert_uint_eq(total, pushed);
    ck_assert_uint_eq(got, pushed);
}

/* A request is issued when its last byte has gone, not before; an error may come earlier. */
TEST(test_issued_when_sent)
{
    int small = 1;
    size_t sent;
    char buf[65536];
    ck_assert_int_eq(
        setsockopt(conn.link.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    enum link_io io = LINK_OK;
    nsec_t now = 1;
    for (; io == LINK_OK; now++) {
        struct request_op op;
        while (lconn_take_op(&conn, &op)) {
            ck_assert_uint_eq(op.issued, now - 1);
        }
        push_one(CODEC_SET, 5, THEN_NOTHING, false);
        push_one(CODEC_SET, 6, THEN_NOTHING, false);
        io = try_flush(now, &sent);
    }
    ck_assert_int_eq(io, LINK_AGAIN);
    ck_assert_uint_gt(conn.fresh, 0);
    ck_assert_uint_eq(conn.fresh + conn.issued, conn.count);
    if (conn.blocked_at == 0) {
        ck_assert_int_eq(try_flush(now, &sent), LINK_AGAIN);
    }
    ck_assert_uint_ne(conn.blocked_at, 0);
    unsigned waiting = conn.fresh;
    while (io == LINK_AGAIN) {
        ck_assert_int_gt(recv(peer, buf, sizeof buf, MSG_DONTWAIT), 0);
        io = try_flush(1000000, &sent);
    }
    ck_assert_uint_eq(conn.issued, waiting);
    ck_assert_uint_eq(lconn_issued_op(&conn, 0)->issued, 1000000);
    ck_assert_uint_eq(conn.blocked_at, 0);
    push_one(CODEC_SET, 5, THEN_NOTHING, false);
    ck_assert_uint_eq(conn.issued, waiting);
}
