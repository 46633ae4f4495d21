/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sessions at their edges: memory that is refused, options that change replies, hostile
 * input, counters, and what a session tells about the request at its head.
 */
#include "fixture_session.h"

#define FORMAT "CLIENT_ERROR bad command line format\r\n"
#define BAD_EXPTIME "CLIENT_ERROR invalid exptime argument\r\n"
#define OUT_OF_MEMORY "SERVER_ERROR out of memory storing object\r\n"

static void
tear_down(void)
{
    client_close(&client);
}

/* With a client of each profile. */
#define TEST_PROFILES(id)                                                                \
    static void id##_with(void);                                                         \
    TEST_LOOP(id, PROFILE_COUNT)                                                         \
    {                                                                                    \
        profile = (enum profile)_i;                                                      \
        open_client();                                                                   \
        id##_with();                                                                     \
    }                                                                                    \
    static void id##_with(void)

static const char *
by_profile(const char *old, const char *now)
{
    return profile == PROFILE_14 ? old : now;
}

/* Both are patterns. */
static void
exchange(const char *pattern, const char *reply)
{
    SCOPED(text_free) struct text want = {.p = NULL};
    text_expand(&want, reply);
    text_add(&want, "", 1);
    const char *got = client_exchange(&client, pattern);
    ck_assert_msg(strcmp(got, want.p) == 0, "%.80s: %.200s instead of %.200s", pattern,
                  got, want.p);
}

static void
reopen_client(void)
{
    client_close(&client);
    open_client();
}

/* ---- refused memory ------------------------------------------------------------------- */

static void
use_little_memory(void)
{
    conf.limit_bytes = MIB;
    conf.can_evict = false;
    reopen_client();
}

/* Stores under prefix 0, 1, ... until the store is full; returns how many were stored. */
static unsigned
fill_keys(char prefix, const char *value, size_t len)
{
    for (unsigned i = 0; i < 100000; i++) {
        char line[100];
        snprintf(line, sizeof line, "set %c%u 0 0 %zu\r\n%s\r\n", prefix, i, len, value);
        const char *reply = client_exchange(&client, line);
        if (strcmp(reply, OUT_OF_MEMORY) == 0) {
            return i;
        }
        expect(strcmp(reply, "STORED\r\n") == 0);
    }
    ck_abort_msg("never full");
    return 0;
}

static unsigned
fill(const char *value, size_t len)
{
    return fill_keys('f', value, len);
}

FIXTURE(set_up_session, tear_down);

TEST_PROFILES(test_full_store_refuses)
{
    use_little_memory();
    unsigned stored = fill("{3000n}", 3000);
    ck_assert_uint_gt(stored, 10);
    ck_assert_uint_eq(ctr_get(&client.ctr.store_no_memory), 1);
    /* A refused set drops the old value, which makes room for one. */
    exchange("set f0 0 0 3000\r\n{3000x}\r\n", OUT_OF_MEMORY);
    exchange("get f0\r\n", "END\r\n");
    exchange("set new 0 0 3000\r\n{3000x}\r\n", "STORED\r\n");
    exchange("set newer 0 0 3000\r\n{3000x}\r\n", OUT_OF_MEMORY);
    /* Other commands do so in 1.6 only. */
    exchange("replace f1 0 0 3000\r\n{3000x}\r\n", OUT_OF_MEMORY);
    exchange("delete f1\r\n", by_profile("DELETED\r\n", "NOT_FOUND\r\n"));
    exchange("set new 0 0 3000\r\n{3000x}\r\n", "STORED\r\n"); /* takes f1's place */
    exchange("get f2\r\n", "VALUE f2 0 3000\r\n{3000n}\r\nEND\r\n");
}

TEST_PROFILES(test_refused_bodies_are_swallowed)
{
    use_little_memory();
    fill("{3000n}", 3000);
    exchange("set x 0 0 3000\r\nget f2\r\n{2992z}\r\nversion\r\n",
             OUT_OF_MEMORY "VERSION 1.2.3\r\n");
    exchange("set x 0 0 3000 noreply\r\nget f2\r\n{2992z}\r\nversion\r\n",
             "VERSION 1.2.3\r\n");
    exchange("add x 0 0 3000\r\n{3002z}", OUT_OF_MEMORY); /* whatever ends it */
    exchange("version\r\n", "VERSION 1.2.3\r\n");
    ck_assert_uint_eq(ctr_get(&client.ctr.store_no_memory), 4);
}

TEST_PROFILES(test_full_store_and_new_sizes_of_old_items)
{
    use_little_memory();
    unsigned stored = fill("9", 1);
    ck_assert_uint_gt(stored, 100);
    exchange("decr f3 4\r\n", "5\r\n"); /* in place */
    exchange("incr f3 5\r\n", "SERVER_ERROR out of memory\r\n");
    exchange("get f3\r\n", "VALUE f3 0 1\r\n5\r\nEND\r\n");
    exchange("append f4 0 0 1\r\nx\r\n", OUT_OF_MEMORY);
    exchange("get f4\r\n", by_profile("VALUE f4 0 1\r\n9\r\nEND\r\n", "END\r\n"));
}

/* The same refusals, however the bytes are cut. */
TEST_PROFILES(test_refusals_cut_anywhere)
{
    SCOPED(text_free) struct text lines = {.p = NULL};
    SCOPED(text_free) struct text replies = {.p = NULL};
    use_little_memory();
    for (unsigned i = 0; i < 400; i++) {
        char line[200];
        snprintf(
            line, sizeof line,
            "set f%u 0 0 %u\r\n{%uv}\r\nget f%u f0\r\nappend f%u 0 0 9%s\r\n{9w}\r\n", i,
            i * 37 % 6000, i * 37 % 6000, i, i / 2, i % 3 ? "" : " noreply");
        text_expand(&lines, line);
    }
    for (unsigned round = 0; round < 12; round++) {
        reopen_client();
        rng_init(&client.rng, 31, round);
        client.recv_max = round % 2 == 0 ? 0 : 1 + round * round * 20;
        client.varies = round > 1;
        client_write(&client, lines.p, lines.len);
        if (round == 0) {
            text_add(&replies, client.sent.p, client.sent.len);
            ck_assert_uint_gt(ctr_get(&client.ctr.store_no_memory), 10);
        }
        ck_assert_uint_eq(client.sent.len, replies.len);
        ck_assert(memcmp(client.sent.p, replies.p, replies.len) == 0);
    }
}

TEST_PROFILES(test_too_large)
{
    exchange("set k 0 0 1\r\nk\r\n", "STORED\r\n");
    exchange("add k 0 0 65536\r\n{65536v}\r\n",
             "SERVER_ERROR object too large for cache\r\n");
    exchange("get k\r\n", by_profile("VALUE k 0 1\r\nk\r\nEND\r\n", "END\r\n"));
    exchange("set k 0 0 1\r\nk\r\n", "STORED\r\n");
    exchange("set k 0 0 2147483645 noreply\r\n", "");
    exchange("{100000v}", ""); /* still on the way */
    ck_assert(!session_is_quiescent(&client.session, &client.in));
    reconnect();
    exchange("get k\r\n", "END\r\n");
    ck_assert_uint_eq(ctr_get(&client.ctr.store_too_large), 2);
    ck_assert_uint_eq(ctr_get(&client.ctr.store_no_memory), 0);
}

/* ---- options -------------------------------------------------------------------------- */

TEST_PROFILES(test_without_cas)
{
    conf.use_cas = false;
    reopen_client();
    exchange("cas k 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n");
    exchange("set k 0 0 1\r\na\r\n", "STORED\r\n");
    exchange("gets k\r\n", "VALUE k 0 1 0\r\na\r\nEND\r\n");
    exchange("cas k 0 0 1 77\r\nb\r\n", by_profile("STORED\r\n", "EXISTS\r\n"));
    exchange("get k\r\n",
             by_profile("VALUE k 0 1\r\nb\r\nEND\r\n", "VALUE k 0 1\r\na\r\nEND\r\n"));
}

TEST_PROFILES(test_flush_refused)
{
    client.conf.allows_flush = false;
    exchange("set k 0 0 1\r\na\r\n", "STORED\r\n");
    exchange("flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
    exchange("flush_all 0 noreply\r\n", "");
    exchange("get k\r\n", "VALUE k 0 1\r\na\r\nEND\r\n");
    ck_assert_uint_eq(ctr_get(&client.ctr.cmd_flush), 2);
}

TEST_PROFILES(test_flush_numbers)
{
    exchange("flush_all +1\r\n", by_profile("OK\r\n", BAD_EXPTIME));
    exchange("flush_all 0\r\nflush_all -1\r\nflush_all 2592001\r\n",
             "OK\r\nOK\r\nOK\r\n");
    exchange("flush_all 99999999999999999999\r\n", by_profile(FORMAT, BAD_EXPTIME));
    exchange("flush_all 1x\r\n", by_profile("OK\r\n", BAD_EXPTIME));
}

TEST_PROFILES(test_shutdown)
{
    exchange("shutdown\r\n", by_profile("ERROR: shutdown not enabled\r\n",
                                        "SERVER_ERROR: shutdown not enabled\r\n"));
    client.conf.allows_shutdown = true;
    exchange("shutdown\r\nversion\r\n", "");
    ck_assert(client.has_quit);
    ck_assert_uint_eq(client.shutdowns, 1);
}

TEST_PROFILES(test_debugtime)
{
    exchange("debugtime 5\r\n", "ERROR\r\n");
    client.conf.allows_debug = true;
    nsec_t now = clock_now();
    uint32_t rel = clock_rel(now);
    exchange("debugtime 500\r\n", "OK\r\n");
    ck_assert_uint_eq(clock_rel(now), rel + 500);
    exchange("debugtime -500\r\n", "OK\r\n");
    ck_assert_uint_eq(clock_rel(now), rel);
    exchange("debugtime p\r\n", "OK\r\n");
    ck_assert_uint_le(clock_rel(now + 1000 * NSEC_PER_SEC), rel + SUITE_TIMEOUT_S);
    exchange("debugtime r\r\n", "OK\r\n");
    ck_assert_uint_ge(clock_rel(now + 1000 * NSEC_PER_SEC), rel + 999 - SUITE_TIMEOUT_S);
    exchange("debugtime x\r\n", FORMAT);
    exchange("debugtime 2147483648\r\n", FORMAT);
}

/* ---- hostile input -------------------------------------------------------------------- */

static const char *const hostile[] = {"{2049x}",
                                      "{4095 }",
                                      "{101 }gets foo{4000 }",
                                      "gat 0 {4000k}",
                                      "incr {2048 }manyspaces 1",
                                      "set {5000@}",
                                      "version\r\n{3000y}"};

TEST_PROFILES(test_closes_on_endless_lines)
{
    for (unsigned i = 0; i < ROWS(hostile); i++) {
        reopen_client();
        client.recv_max = 500;
        const char *reply = client_exchange(&client, hostile[i]);
        ck_assert_msg(client.is_closed, "%s", hostile[i]);
        ck_assert_msg(strcmp(reply, "") == 0 || strcmp(reply, "VERSION 1.2.3\r\n") == 0,
                      "%s: %s", hostile[i], reply);
    }
}

TEST_PROFILES(test_web_requests)
{
    exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n",
             by_profile("ERROR\r\nERROR\r\nERROR\r\n", ""));
    ck_assert_int_eq(client.is_closed, profile != PROFILE_14);
}

/* An endless retrieval costs no more than the buffer, and one bad key ends it. */
TEST_PROFILES(test_endless_retrieval)
{
    exchange("set a 0 0 1\r\nA\r\n", "STORED\r\n");
    exchange("get ", "");
    for (int i = 0; i < 50; i++) {
        exchange("{4000 }", "");
        ck_assert_uint_le(ctr_get(&client.pool.used), 1);
        ck_assert(!session_is_quiescent(&client.session, &client.in));
    }
    exchange("a\r\n", "VALUE a 0 1\r\nA\r\nEND\r\n");
    exchange("get {50000k} a\r\n", FORMAT);
    exchange("get {17000 }{251k}", "");
    exchange(" a a a\r\n", FORMAT);
    exchange("get a\r\n", "VALUE a 0 1\r\nA\r\nEND\r\n");
    ck_assert(session_is_quiescent(&client.session, &client.in));
}

/* A key of 250 bytes whose CR is the last byte that the buffer takes. */
TEST_PROFILES(test_line_end_at_the_border)
{
    exchange("set {250k} 0 0 1\r\nK\r\n", "STORED\r\n");
    exchange("get a{16127 }{250k}\r\n", "VALUE {250k} 0 1\r\nK\r\nEND\r\n");
    exchange("get a{16128 }{250k}\r\n", "VALUE {250k} 0 1\r\nK\r\nEND\r\n");
    exchange("get a{16129 }{250k}\r\n", "VALUE {250k} 0 1\r\nK\r\nEND\r\n");
}

/* No key at all, in a line longer than the buffer. */
TEST_PROFILES(test_retrieval_of_blanks)
{
    exchange("get {16000 }\r\n", by_profile("ERROR\r\n", FORMAT));
    exchange("get {17000 }\r\n", by_profile("ERROR\r\n", FORMAT));
}

/* ---- long statistics ------------------------------------------------------------------ */

TEST_PROFILES(test_statistics_in_parts)
{
    SCOPED(text_free) struct text want = {.p = NULL};
    for (unsigned i = 0; i < LONG_PARTS; i++) {
        char line[40];
        text_add(&want, line, (size_t)sprintf(line, "STAT part %u\r\n", i));
    }
    text_expand(&want, "END\r\nVERSION 1.2.3\r\n{1@}");
    ck_assert_str_eq(client_exchange(&client, "stats long\r\nversion\r\n"), want.p);
    ck_assert_uint_eq(client.agains, LONG_PARTS - 1);
    ck_assert_str_eq(client_exchange(&client, "stats long\r\nversion\r\n"),
                     want.p); /* from the start again */
}

/* ---- facts ---------------------------------------------------------------------------- */

static struct session_facts
facts_of(const char *pattern)
{
    struct text bytes = {.p = NULL};
    char *to;
    size_t room;
    reconnect();
    text_expand(&bytes, pattern);
    ck_assert(buf_open(&client.in, &client.pool, &to, &room));
    ck_assert_uint_ge(room, bytes.len);
    memcpy(to, bytes.p, bytes.len);
    buf_fill(&client.in, bytes.len);
    text_free(&bytes);
    expect_ready();
    expect_ready(); /* looking twice changes nothing */
    return session_facts(&client.session);
}

static const struct facts_row {
    const char *request;
    unsigned keys, value_bytes, key_len;
    bool is_write, is_control, is_incomplete;
} facts_rows[] = {
    {"get a b c\r\nget d\r\n", .keys = 3, .key_len = 1}, /* the value is not looked up */
    {"get  abc d\r\n", .keys = 2, .key_len = 3},
    {"get k\r\n", .keys = 1, .key_len = 1},
    {"mg k\r\n", .keys = 1, .key_len = 1},
    {"ma k\r\n", .keys = 1, .key_len = 1},
    {"incr k 1\r\n", .keys = 1, .key_len = 1},
    {"touch k 1\r\n", .keys = 1, .key_len = 1},
    {"get a{16300 }{79b}", .keys = 1, .key_len = 1, .is_incomplete = true},
    {"set k 0 0 100\r\n{100v}\r\n", 1, 100, 1, .is_write = true},
    {"set k 0 0 100\r\n", 1, 100, 1, .is_write = true},
    {"set key 0 0 1\r\n", 1, 1, 3, .is_write = true},
    {"ms k 100\r\n", 1, 100, 1, .is_write = true},
    {"delete k\r\n", 1, 0, 1, .is_write = true},
    {"md k\r\n", 1, 0, 1, .is_write = true},
    {"stats\r\n", .keys = 1, .is_control = true},
    {"version\r\n", .keys = 1, .is_control = true},
    {"quit\r\n", .keys = 1, .is_control = true},
    {"flush_all\r\n", .keys = 1},
    {"bogus\r\n", .keys = 1},
    {"set k 0 0 -1\r\n", .keys = 1},
};

TEST_PROFILES(test_facts)
{
    for (unsigned i = 0; i < ROWS(facts_rows); i++) {
        const struct facts_row *row = &facts_rows[i];
        struct session_facts f = facts_of(row->request);
        ck_assert_msg(f.keys == row->keys && f.value_bytes == row->value_bytes &&
                          f.is_write == row->is_write &&
                          f.is_control == row->is_control &&
                          f.is_incomplete == row->is_incomplete,
                      "%u: %u keys, %zu bytes, %d %d %d", i, f.keys,
                      (size_t)f.value_bytes, f.is_write, f.is_control, f.is_incomplete);
        char decoded[REQ_KEY_MAX];
        size_t key_len = session_key(&client.session, decoded).len;
        ck_assert_msg(key_len == row->key_len, "%u: %zu", i, key_len);
    }
}

/* A large value stops the first run and is told about before the second. */
TEST_PROFILES(test_late)
{
    exchange("set big 0 0 10000\r\n{10000v}\r\n", "STORED\r\n");
    client.limits.late_bytes = 10000;
    exchange("get big\r\n", "VALUE big 0 10000\r\n{10000v}\r\nEND\r\n");
    ck_assert_uint_eq(client.lates, 0);
    facts_of("get x big\r\n");
    struct session_limits limits = {.keys = 9, .out_bytes = 1000, .late_bytes = 9999};
    ck_assert_int_eq(run_within(&limits), RAN_LATE);
    ck_assert_uint_eq(client.out.bytes, 0);
    expect_ready();
    ck_assert_uint_eq(session_facts(&client.session).value_bytes, 10000);
    limits.late_bytes = 0;
    ck_assert_int_eq(run_within(&limits), RAN_DONE);
    ck_assert_uint_eq(client.out.bytes,
                      strlen("VALUE big 0 10000\r\n\r\nEND\r\n") + 10000);
}

/* So does that of an mg, whose first line has been written by then: it is not looked up
 * again. */
TEST_PROFILES(test_late_meta)
{
    exchange("set big 0 0 10000\r\n{10000v}\r\n", "STORED\r\n");
    struct session_limits limits = {.keys = 9, .out_bytes = 1000, .late_bytes = 9999};
    facts_of("mg big T60 v t\r\nmg big h\r\n");
    ck_assert_int_eq(run_within(&limits), RAN_LATE);
    ck_assert_uint_eq(client.out.bytes, strlen("VA 10000 t60\r\n"));
    expect_ready();
    ck_assert_uint_eq(session_facts(&client.session).value_bytes, 10000);
    limits.late_bytes = 0;
    ck_assert_int_eq(run_within(&limits), RAN_DONE);
    ck_assert_uint_eq(client.out.bytes, strlen("VA 10000 t60\r\n\r\n") + 10000);
    ck_assert_uint_eq(ctr_get(&client.ctr.cmd_touch), 1);
    /* the next waits until that much has been sent */
    expect_ready();
    ck_assert_int_eq(run_within(&limits), RAN_AGAIN);
    client_send(&client, SIZE_MAX);
    ck_assert_int_eq(run_within(&limits), RAN_DONE);
    ck_assert_uint_eq(client.out.bytes, strlen("HD h1\r\n"));
}

/* A look that changes nothing: other readers are not disturbed. With the lock, of a key whose token
 * a client is to have, it is answered alike. */
TEST_PROFILES(test_meta_gets_write_nothing)
{
    static const char *const looks[][2] = {
        {"mg k\r\n", "HD\r\n"},
        {"mg k v\r\n", "VA 2\r\nhi\r\n"},
        {"mg k k O9 s f t h l c v\r\n", "VA 2 kk O9 s2 f5 t-1 h1 l0 c1\r\nhi\r\n"},
        {"mg aw== b k v q\r\n", "VA 2 kk\r\nhi\r\n"},
        {"mg k v C1 c\r\n", "HD c1\r\n"},
        {"mg gone v k\r\n", "EN kgone\r\n"},
        {"mg gone v q\r\nmn\r\n", "MN\r\n"},
    };
    if (profile == PROFILE_14) {
        return;
    }
    exchange("set k 5 0 2\r\nhi\r\nget k\r\nget k\r\n",
             "STORED\r\nVALUE k 5 2\r\nhi\r\nEND\r\nVALUE k 5 2\r\nhi\r\nEND\r\n");
    uint64_t before = client_store_writes(&client);
    for (unsigned i = 0; i < ROWS(looks); i++) {
        exchange(looks[i][0], looks[i][1]);
    }
    ck_assert_uint_eq(client_store_writes(&client), before);
    exchange("md k I\r\nmg k v\r\nmg k v\r\n",
             "HD\r\nVA 2 X W\r\nhi\r\nVA 2 Z X\r\nhi\r\n");
}

/* Meta commands in a store without room. */
TEST_PROFILES(test_full_store_meta)
{
    use_little_memory();
    exchange("ms n 1\r\n9\r\n", "HD\r\n");
    fill("{3000n}", 3000);
    fill_keys('g', "n", 1);
    exchange("ms new 3000 q k\r\n{3000x}\r\n", OUT_OF_MEMORY);
    exchange("ms ZjI= 3000 b\r\n{3000x}\r\n", OUT_OF_MEMORY); /* f2 */
    exchange("mg f2 s\r\n", by_profile("HD s3000\r\n", "EN\r\n"));
    exchange("mg fresh N30 k\r\n", "EN kfresh\r\n");
    exchange("ma fresh N30\r\n", "SERVER_ERROR Out of memory allocating new item\r\n");
    exchange("ma n\r\n", "SERVER_ERROR out of memory\r\n");
    exchange("ms n 1 MA s\r\n9\r\n", "SERVER_ERROR out of memory storing object\r\n");
    exchange("md n x\r\n", by_profile("SERVER_ERROR out of memory\r\n", "NF\r\n"));
}

/* An item that very many hold is a miss to get and an error to mg. */
TEST_PROFILES(test_too_many_readers)
{
    exchange("set a 0 0 1\r\nx\r\n", "STORED\r\n");
    struct item *item = NULL, *held = NULL;
    unsigned count = 0;
    while (store_get(client.store, (struct key){"a", 1}, NOW, &item) == STORE_OK) {
        held = item;
        count++;
    }
    ck_assert_uint_ge(count, STORE_REFS_MAX);
    exchange("get a\r\n", "END\r\n");
    exchange("mg a v q\r\n", "SERVER_ERROR refcount overflow during fetch\r\n");
    exchange("mg a N30\r\n", "SERVER_ERROR refcount overflow during fetch\r\n");
    exchange("ms a 1\r\ny\r\n", "HD\r\n"); /* a new item has no readers */
    exchange("mg a v\r\n", "VA 1\r\ny\r\n");
    for (; count > 0; count--) {
        store_release(client.store, held);
    }
}

TEST_PROFILES(test_limits_of_a_run)
{
    exchange("set a 0 0 100\r\n{100v}\r\n", "STORED\r\n");
    facts_of("get x x x a x\r\n");
    struct session_limits limits = {.keys = 2, .out_bytes = 1000};
    for (int run = 0; run < 3; run++) {
        ck_assert_int_eq(run_within(&limits), run < 2 ? RAN_AGAIN : RAN_DONE);
    }
    facts_of("get a a a\r\n");
    limits = (struct session_limits){.keys = 9, .out_bytes = 100};
    ck_assert_int_eq(run_within(&limits), RAN_AGAIN);
    ck_assert_uint_lt(client.out.bytes, 200); /* one value, then no more */
    facts_of("get 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 a 20\r\n");
    limits = (struct session_limits){.keys = 64,
                                     .out_bytes = 1000}; /* more than a look-up takes */
    ck_assert_int_eq(run_within(&limits), RAN_DONE);
    ck_assert_uint_eq(client.out.bytes,
                      strlen("VALUE a 0 100\r\n") + 100 + strlen("\r\nEND\r\n"));
}

/* What is about the server says that it may be long, before it does anything: the caller may run
 * it later, and one in a turn. What is as quick as a get does not. */
TEST_PROFILES(test_long_requests_say_so)
{
    static const char *const longs[] = {
        "stats\r\n",     "stats long\r\n",    "slabs automove 0\r\n",
        "watch\r\n",     "verbosity 1\r\n",   "debugitem lock a\r\n",
        "qos show\r\n",  "debugtime 1\r\n",   "cache_memlimit 64\r\n",
        "shutdown\r\n",  "lru mode flat\r\n", "lru_crawler crawl all\r\n",
        "flush_all\r\n", "refresh_certs\r\n", "lru_crawler metadump all\r\n"};
    static const char *const quick[] = {"mn\r\n", "version\r\n", "get a\r\n", "mg a\r\n",
                                        "bogus\r\n"};
    for (unsigned i = 0; i < ROWS(longs); i++) {
        facts_of(longs[i]);
        ck_assert_int_eq(run_within(&client.limits), RAN_LONG);
        ck_assert_uint_eq(client.out.bytes, 0);
        ck_assert_int_ne(run_within(&client.limits), RAN_LONG);
        ck_assert_uint_gt(client.out.bytes, 0);
    }
    for (unsigned i = 0; i < ROWS(quick); i++) {
        facts_of(quick[i]);
        ck_assert_int_eq(run_within(&client.limits), RAN_DONE);
    }
}

/* Each of a run of them does. */
TEST_PROFILES(test_each_long_request_says_so)
{
    facts_of("verbosity 0\r\nverbosity 0\r\n");
    ck_assert_int_eq(run_within(&client.limits), RAN_LONG);
    ck_assert(session_rewind(&client.session)); /* nothing has begun */
    for (unsigned i = 0; i < 2; i++) {
        expect_ready();
        ck_assert_int_eq(run_within(&client.limits), RAN_LONG);
        ck_assert_int_eq(run_within(&client.limits), RAN_DONE);
    }
}

static unsigned
refuse_gets(bool as_miss)
{
    return session_refuse_gets(&client.session, &client.env, &client.in, &client.out, 2,
                               as_miss);
}

/* Plain gets behind a refused one are refused with it; the first other line ends that. */
TEST_PROFILES(test_gets_are_refused_in_a_row)
{
    static const char *const ends[] = {
        "get x y z\r\n", "gets x\r\n",      "get {251k}\r\n", "get  x\r\n", "get \r\n",
        "version\r\n",   "set x 0 0 5\r\n", "get x {251k}\n", "get x"};
    for (unsigned i = 0; i < ROWS(ends); i++) {
        bool as_miss = i % 2 == 1;
        const char *reply = as_miss ? "END\r\n" : "SERVER_ERROR 307 busy\r\n";
        char lines[200];
        sprintf(lines, "get a\r\nget b c\r\nget {250k} d\nget e \r\n%s", ends[i]);
        facts_of(lines);
        size_t bytes = client.out.bytes;
        ck_assert_int_eq(session_refuse(&client.session, &client.env, &client.in,
                                        &client.out, as_miss),
                         RAN_DONE);
        ck_assert_uint_eq(refuse_gets(as_miss), 3);
        ck_assert_uint_eq(client.out.bytes - bytes, 4 * strlen(reply));
        ck_assert_uint_eq(refuse_gets(as_miss), 0);
        ck_assert_int_eq(*buf_unread(&client.in), *ends[i]);
    }
}

/* Between two parts of a body the session waits for the body and nothing else. */
TEST_PROFILES(test_body_in_parts)
{
    char *to;
    exchange("set k 0 0 20000\r\n{5000a}", "");
    ck_assert_int_eq(session_peek(&client.session, &client.env, &client.in),
                     SESSION_WANT);
    ck_assert(!session_is_quiescent(&client.session, &client.in));
    ck_assert_uint_eq(ctr_get(&client.pool.used), 0);
    size_t left = 15002;
    while (left > 0) {
        size_t room = session_want(&client.session, &to);
        ck_assert_uint_gt(room, 0);
        ck_assert_uint_le(room, left);
        size_t n = left > 2 ? (room < left - 2 ? room : left - 2) : room;
        memset(to, 'b', n);
        if (left <= 2) {
            memcpy(to, left == 2 ? "\r\n" : "\n", n);
        }
        session_got(&client.session, n);
        left -= n;
    }
    exchange("get k\r\n", "STORED\r\nVALUE k 0 20000\r\n{5000a}{15000b}\r\nEND\r\n");
}

/* ---- counters ------------------------------------------------------------------------- */

#define SUM_OF(field)                                                                    \
    sum_of(offsetof(struct serve_slab_ctr, field),                                       \
           sizeof client.ctr.slab[0].field / sizeof(ctr_t))

static uint64_t
sum_of(size_t offset, size_t count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        ctr_t *of = (ctr_t *)(void *)((char *)&client.ctr.slab[i] + offset);
        for (size_t part = 0; part < count; part++) {
            sum += ctr_get(of + part);
        }
    }
    return sum;
}

TEST_PROFILES(test_counters)
{
    const struct serve_ctr *ctr = &client.ctr;
    client_exchange(&client, "set a 0 0 1\r\n1\r\nset b 0 0 1\r\nxyz\r\n"
                             "add a 0 0 1\r\n1\r\nget a a x\r\ngets y\r\n");
    ck_assert_uint_eq(SUM_OF(cmd_set), 3); /* the bad chunk, too */
    ck_assert_uint_eq(SUM_OF(get_hits), 2);
    ck_assert_uint_eq(ctr_get(&ctr->get_misses), 2);
    client_exchange(&client, "incr a 1\r\nincr a x\r\nincr x 1\r\ndecr a 1\r\n"
                             "decr a 1\r\ndecr x 1\r\ndecr y 1\r\n");
    ck_assert_uint_eq(SUM_OF(incr_hits), 1);
    ck_assert_uint_eq(SUM_OF(decr_hits), 2);
    ck_assert_uint_eq(ctr_get(&ctr->incr_misses), 1);
    ck_assert_uint_eq(ctr_get(&ctr->decr_misses), 2);
    client_exchange(&client, "touch a 10\r\ntouch x 10\r\ngat 10 a x\r\n");
    ck_assert_uint_eq(ctr_get(&ctr->cmd_touch), 4);
    ck_assert_uint_eq(SUM_OF(touch_hits), 2);
    ck_assert_uint_eq(ctr_get(&ctr->touch_misses), 2);
    ck_assert_uint_eq(SUM_OF(get_hits), 2); /* gat is a touch */
    ck_assert_uint_eq(ctr_get(&ctr->get_misses), 2);
    client_exchange(&client, "cas x 0 0 1 1\r\nx\r\ncas a 0 0 1 999\r\nx\r\n");
    ck_assert_uint_eq(ctr_get(&ctr->cas_misses), 1);
    ck_assert_uint_eq(SUM_OF(cas_badval), 1);
    client_exchange(&client, "set c 0 0 1\r\nc\r\n");
    const char *got = client_exchange(&client, "gets c\r\n");
    char line[100];
    snprintf(line, sizeof line, "cas c 0 0 1 %s",
             got + strlen("VALUE c 0 1 ")); /* the number, then the value, then END */
    strcpy(strstr(line, "\r\n"), "\r\nd\r\n");
    exchange(line, "STORED\r\n");
    ck_assert_uint_eq(SUM_OF(cas_hits), 1);
    client_exchange(&client, "delete c\r\ndelete c\r\nset e 0 -1 1\r\ne\r\nget e\r\n");
    ck_assert_uint_eq(SUM_OF(delete_hits), 1);
    ck_assert_uint_eq(ctr_get(&ctr->delete_misses), 1);
    ck_assert_uint_eq(ctr_get(&ctr->get_expired), 1);
    client_exchange(&client, "flush_all\r\nget a\r\n");
    ck_assert_uint_eq(ctr_get(&ctr->cmd_flush), 1);
    ck_assert_uint_eq(ctr_get(&ctr->get_flushed), 1);
    ck_assert_uint_eq(ctr_get(&ctr->get_misses), 4);
}
