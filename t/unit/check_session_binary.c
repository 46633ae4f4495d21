/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sessions in the binary protocol: a script of requests and their replies; the same bytes cut
 * anywhere and run under any limits; connections that end anywhere; who is let in.
 */
#include "fixture_session.h"

#include <stdarg.h>
#include <unistd.h>

#include "serve/auth.h"

enum extras { NONE, STORE, EXPIRY, SUM, MUST_BE };

struct step {
    unsigned opcode;
    enum extras extras;
    const char *key, *value; /* patterns, see text_expand */
    uint64_t cas;
    const char *replies; /* see describe */
};

static const struct step script[] = {
    {0x0b, NONE, "", "", 0, "0b:0 '1.2.3'"},
    {0x00, NONE, "a", "", 0, "00:1 'Not found'"},
    {0x09, NONE, "a", "", 0, ""},
    {0x0c, NONE, "a", "", 0, "0c:1 key=1 'a'"},
    {0x0d, NONE, "a", "", 0, ""},
    {0x01, STORE, "a", "abc", 0, "01:0 cas=1 ''"},
    {0x00, NONE, "a", "", 0, "00:0 cas=1 extras=4 '...5abc'"},
    {0x0c, NONE, "a", "", 0, "0c:0 cas=1 key=1 extras=4 '...5aabc'"},
    {0x02, STORE, "a", "x", 0, "02:2 'Data exists for key.'"},
    {0x12, STORE, "a", "x", 0, "12:2 'Data exists for key.'"},
    {0x12, STORE, "b", "", 0, ""}, /* CAS 2 */
    {0x00, NONE, "b", "", 0, "00:0 cas=2 extras=4 '...5'"},
    {0x03, STORE, "nn", "x", 0, "03:1 'Not found'"},
    {0x03, STORE, "b", "bb", 0, "03:0 cas=3 ''"},
    {0x0e, NONE, "nn", "x", 0, "0e:5 'Not stored.'"},
    {0x0f, NONE, "nn", "x", 7, "0f:5 'Not stored.'"},
    {0x0e, NONE, "b", ">>", 0, "0e:0 cas=4 ''"},
    {0x0f, NONE, "b", "<<", 4, "0f:0 cas=5 ''"},
    {0x1a, NONE, "b", "<<", 4, "1a:2 'Data exists for key.'"},
    {0x00, NONE, "b", "", 0, "00:0 cas=5 extras=4 '...5<<bb>>'"},
    {0x01, STORE, "b", "B", 99, "01:2 'Data exists for key.'"},
    {0x01, STORE, "nn", "B", 99, "01:1 'Not found'"},
    {0x02, STORE, "nn", "B", 99, "02:1 'Not found'"},
    {0x03, STORE, "b", "B", 5, "03:0 cas=6 ''"},
    {0x04, NONE, "b", "", 5, "04:2 'Data exists for key.'"},
    {0x04, NONE, "b", "", 6, "04:0 ''"},
    {0x14, NONE, "b", "", 0, "14:1 'Not found'"},
    /* arithmetic */
    {0x05, MUST_BE, "n", "", 0, "05:1 'Not found'"},
    {0x15, MUST_BE, "n", "", 0, "15:1 'Not found'"},
    {0x05, SUM, "n", "", 0, "05:0 cas=7 '.......3'"},
    {0x00, NONE, "n", "", 0, "00:0 cas=7 extras=4 '....3'"},
    {0x06, SUM, "n", "", 0, "06:0 cas=8 '.......2'"},
    {0x16, SUM, "n", "", 0, ""},
    {0x06, SUM, "n", "", 0, "06:0 cas=10 '........'"},
    {0x06, SUM, "n", "", 0, "06:0 cas=11 '........'"},
    {0x05, SUM, "n", "", 10, "05:2 'Data exists for key.'"},
    {0x05, SUM, "a", "", 0, "05:6 'Non-numeric server-side value for incr or decr'"},
    {0x14, NONE, "n", "", 0, ""},
    /* touch */
    {0x1c, EXPIRY, "a", "", 0, "1c:0 cas=1 extras=4 '...5'"},
    {0x1c, EXPIRY, "nn", "", 0, "1c:1 'Not found'"},
    {0x1d, EXPIRY, "a", "", 0, "1d:0 cas=1 extras=4 '...5abc'"},
    {0x1e, EXPIRY, "nn", "", 0, ""},
    {0x23, EXPIRY, "a", "", 0, "23:0 cas=1 key=1 extras=4 '...5aabc'"},
    {0x23, EXPIRY, "nn", "", 0, "23:1 key=2 'nn'"},
    {0x24, EXPIRY, "nn", "", 0, ""},
    /* values of every kind */
    {0x11, STORE, "v1", "{3000v}", 0, ""}, /* 12 */
    {0x00, NONE, "v1", "", 0, "00:0 cas=12 extras=4 '...5{3000v}'"},
    {0x01, STORE, "v2", "{30000w}", 0, "01:0 cas=13 ''"}, /* chained */
    {0x09, NONE, "v2", "", 0, "09:0 cas=13 extras=4 '...5{30000w}'"},
    {0x0e, NONE, "v2", "{9000x}", 0, "0e:0 cas=14 ''"},
    {0x0c, NONE, "v2", "", 0, "0c:0 cas=14 key=2 extras=4 '...5v2{30000w}{9000x}'"},
    {0x01, STORE, "v2", "{70000w}", 0, "01:3 'Too large.'"},
    {0x00, NONE, "v2", "", 0, "00:1 'Not found'"},
    {0x11, STORE, "v1", "{70000w}", 0, "11:3 'Too large.'"},
    {0x01, STORE, "k {2\n}{1@}", "\r\n", 0, "01:0 cas=15 ''"},
    {0x0c, NONE, "k {2\n}{1@}", "", 0, "0c:0 cas=15 key=5 extras=4 '...5k .....'"},
    {0x04, NONE, "k {2\n}{1@}", "", 0, "04:0 ''"},
    {0x01, STORE, "{250k}", "x", 0, "01:0 cas=16 ''"},
    {0x04, NONE, "{250k}", "", 0, "04:0 ''"},
    /* about the server */
    {0x10, NONE, "", "", 0, "10:0 key=5 'words0';10:0 ''"},
    {0x10, NONE, "reset", "", 0, "10:0 key=5 'words1';10:0 ''"},
    {0x10, NONE, "conns", "", 0, "10:1 'Not found'"},
    {0x0a, NONE, "", "", 0, "0a:0 ''"},
    {0x1b, STORE, "kk", "{300v}", 0, "1b:81 'Unknown command'"},
    {0xff, NONE, "", "", 0, "ff:81 'Unknown command'"},
    {0x20, NONE, "", "", 0, "20:81 'Unknown command'"},
    {0x21, NONE, "PLAIN", "x", 0, "21:81 'Unknown command'"},
    {0x22, NONE, "{40m}", "x", 0, "22:81 'Unknown command'"},
    {0x20, NONE, "PLAIN", "x", 0, "20:81 'Unknown command'"},
    {0x21, NONE, "", "{300v}", 0, "21:81 'Unknown command'"},
    {0x22, STORE, "", "", 0, "22:81 'Unknown command'"},
    {0x08, EXPIRY, "", "", 0, "08:0 ''"},
    {0x18, NONE, "", "", 0, ""},
    {0x00, NONE, "a", "", 0, "00:1 'Not found'"},
    {0x01, STORE, "w1", "{3000w}", 0, "01:0 cas=17 ''"}, /* something stays */
    {0x07, NONE, "", "", 0, "07:0 ''"},
    {0x0a, NONE, "", "", 0, ""}, /* nobody listens any more */
};

#define STEPS (sizeof script / sizeof script[0])

static const char *const sweep_keys[] = {"a",  "b",  "n",      "v1",
                                         "v2", "w1", "{250k}", "k {2\n}{1@}"};

/* ---- packets -------------------------------------------------------------------------- */

static void
add_extras(struct text *t, enum extras extras)
{
    switch (extras) {
    case NONE:
        break;
    case STORE:
        text_add_be(t, '5', 4);
        text_add_be(t, 0, 4);
        break;
    case EXPIRY:
        text_add_be(t, 0, 4);
        break;
    case SUM:
    case MUST_BE:
        text_add_be(t, 1, 8);
        text_add_be(t, 3, 8);
        text_add_be(t, extras == SUM ? 0 : UINT32_MAX, 4);
        break;
    }
}

static void
add_packet(struct text *t, const struct step *step)
{
    SCOPED(text_free)
    struct text extras = {.p = NULL}, key = {.p = NULL}, value = {.p = NULL};
    add_extras(&extras, step->extras);
    text_expand(&key, step->key);
    text_expand(&value, step->value);
    text_add_be(t, 0x80, 1);
    text_add_be(t, step->opcode, 1);
    text_add_be(t, key.len, 2);
    text_add_be(t, extras.len, 1);
    text_add_be(t, 0, 3);
    text_add_be(t, extras.len + key.len + value.len, 4);
    text_add_be(t, 0xdeadbeef, 4);
    text_add_be(t, step->cas, 8);
    text_add(t, extras.p, extras.len);
    text_add(t, key.p, key.len);
    text_add(t, value.p, value.len);
}

static uint64_t
be(const char *p, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0) {
        value = value << 8 | (uint8_t)*p++;
    }
    return value;
}

__attribute__((format(printf, 2, 3))) static void
say(struct text *t, const char *fmt, ...)
{
    char piece[64];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(piece, sizeof piece, fmt, args);
    va_end(args);
    text_add(t, piece, (size_t)n);
}

/* Bytes that cannot be seen become dots; small numbers, digits. */
static void
say_body(struct text *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = p[i] > 0 && p[i] < 10 ? (char)('0' + p[i]) : p[i];
        c = p[i] == '\n' || c < ' ' || c > '~' ? '.' : c;
        text_add(t, &c, 1);
    }
}

/* "opcode:status cas key extras 'body'" for each reply, with a semicolon between them. */
static void
describe(const struct text *sent, struct text *out)
{
    for (size_t at = 0; at < sent->len;) {
        const char *p = sent->p + at;
        ck_assert_uint_ge(sent->len - at, BINARY_HEADER_BYTES);
        ck_assert_uint_eq(be(p, 1), 0x81);
        ck_assert_uint_eq(be(p + 12, 4), 0xdeadbeef);
        size_t body = be(p + 8, 4);
        ck_assert_uint_le(BINARY_HEADER_BYTES + body, sent->len - at);
        say(out, "%s%02x:%x ", at > 0 ? ";" : "", (unsigned)be(p + 1, 1),
            (unsigned)be(p + 6, 2));
        if (be(p + 16, 8) != 0) {
            say(out, "cas=%u ", (unsigned)be(p + 16, 8));
        }
        if (be(p + 2, 2) != 0) {
            say(out, "key=%u ", (unsigned)be(p + 2, 2));
        }
        if (be(p + 4, 1) != 0) {
            say(out, "extras=%u ", (unsigned)be(p + 4, 1));
        }
        text_add(out, "'", 1);
        say_body(out, p + BINARY_HEADER_BYTES, body);
        text_add(out, "'", 1);
        at += BINARY_HEADER_BYTES + body;
    }
    text_add(out, "", 1);
}

/* ---- life ----------------------------------------------------------------------------- */

/* Sends one step and compares the replies with what the pattern says. */
static void
exchange(const struct step *step)
{
    SCOPED(text_free)
    struct text packet = {.p = NULL}, got = {.p = NULL}, want = {.p = NULL};
    add_packet(&packet, step);
    client.sent.len = 0;
    client_write(&client, packet.p, packet.len);
    describe(&client.sent, &got);
    text_expand(&want, step->replies);
    text_add(&want, "", 1);
    ck_assert_msg(strcmp(got.p, want.p) == 0, "%02x %s: %.200s instead of %.200s",
                  step->opcode, step->key, got.p, want.p);
}

/* The whole script, and what comes back when it is sent at once. */
static void
use_profile(int round)
{
    profile = (enum profile)(round % PROFILE_COUNT);
    for (size_t i = 0; i < STEPS; i++) {
        add_packet(&input, &script[i]);
    }
    open_client();
    client_write(&client, input.p, input.len);
    text_add(&expected, client.sent.p, client.sent.len);
    client_close(&client);
}

/* ---- the script ----------------------------------------------------------------------- */

FIXTURE(set_up_session, tear_down_script);

TEST_LOOP(test_script, PROFILE_COUNT)
{
    profile = (enum profile)_i;
    open_client();
    for (size_t i = 0; i < STEPS; i++) {
        exchange(&script[i]);
        ck_assert(!client.is_closed);
        if (!client.has_quit) {
            ck_assert(session_is_quiescent(&client.session, &client.in));
            ck_assert_uint_eq(ctr_get(&client.pool.used), 0); /* idle: no memory */
        }
    }
    ck_assert(client.has_quit);
    client_close(&client);
}

TEST_LOOP(test_cut_in_two, PROFILE_COUNT)
{
    use_profile(_i);
    for (size_t cut = 0; cut <= input.len; cut++) {
        if (cut > 50 && cut + 50 < input.len &&
            memcmp(input.p + cut - 50, input.p + cut - 49, 99) == 0 && cut % 499 != 0) {
            continue; /* inside a long value */
        }
        open_client();
        rng_init(&client.rng, 41, cut);
        client.varies = cut % 2 == 1;
        client_write(&client, input.p, cut);
        client_write(&client, input.p + cut, input.len - cut);
        client_check_sent(&client, &expected, cut);
        client_close(&client);
    }
}

TEST_LOOP(test_random_pieces, PROFILE_COUNT)
{
    use_profile(_i);
    check_random_pieces(42, false);
}

/* The client is gone after `runs` pieces of work: nothing of its requests stays behind. */
TEST_LOOP(test_hang_up_between_runs, PROFILE_COUNT)
{
    use_profile(_i);
    SCOPED(text_free) struct text sweep = {.p = NULL};
    for (size_t i = 0; i < sizeof sweep_keys / sizeof sweep_keys[0]; i++) {
        add_packet(&sweep, &(struct step){0x14, NONE, sweep_keys[i], "", 0, NULL});
    }
    for (unsigned runs = 1; runs < 3 * STEPS; runs++) {
        open_client();
        rng_init(&client.rng, 43, runs);
        client.varies = true;
        client.runs_max = runs;
        client_write(&client, input.p, input.len);
        bool has_ended = client.has_quit;
        check_sweep(sweep.p, sweep.len);
        if (has_ended) {
            return;
        }
    }
    ck_abort_msg("the script does not end");
}

/* ---- protocols ------------------------------------------------------------------------- */

/* Text and binary clients see the same values. */
TEST_LOOP(test_both_protocols, PROFILE_COUNT)
{
    profile = (enum profile)_i;
    open_client();
    exchange(&(struct step){0x01, STORE, "k", "value", 0, "01:0 cas=1 ''"});
    exchange(&(struct step){0x01, STORE, "l", "{20000w}", 0, "01:0 cas=2 ''"});
    reconnect();
    struct text large = {.p = NULL};
    text_expand(&large,
                "VALUE k 53 5\r\nvalue\r\nVALUE l 53 20000\r\n{20000w}\r\nEND\r\n");
    text_add(&large, "", 1);
    ck_assert_str_eq(client_exchange(&client, "get k l\r\n"), large.p);
    text_free(&large);
    ck_assert_str_eq(client_exchange(&client, "set t 53 0 4\r\ntext\r\n"), "STORED\r\n");
    reconnect();
    exchange(&(struct step){0x00, NONE, "t", "", 0, "00:0 cas=3 extras=4 '...5text'"});
    client_close(&client);
}

TEST_LOOP(test_binding, PROFILE_COUNT)
{
    profile = (enum profile)_i;
    static const char text[] = "version\r\nversion\r\nversio";
    open_client();
    client.conf.binding = BINDING_BINARY;
    client_write(&client, text, BINARY_HEADER_BYTES - 1);
    ck_assert(!client.is_closed);
    client_write(&client, text, 1);
    ck_assert(client.is_closed);
    ck_assert_uint_eq(client.sent.len, 0);
    client_close(&client);
    open_client();
    client.conf.binding = BINDING_ASCII;
    ck_assert_str_eq(client_exchange(&client, "\x80get k\r\n"), "ERROR\r\n");
    client_close(&client);
    open_client(); /* the first byte decides for good */
    ck_assert_str_eq(client_exchange(&client, "version\r\n"), "VERSION 1.2.3\r\n");
    ck_assert_str_eq(client_exchange(&client, "\x80get k\r\n"), "ERROR\r\n");
    client_close(&client);
    open_client();
    exchange(&(struct step){0x0a, NONE, "", "", 0, "0a:0 ''"});
    client.sent.len = 0;
    client_write(&client, text, sizeof text - 1);
    ck_assert(client.is_closed);
    ck_assert_uint_eq(client.sent.len, 0);
    client_close(&client);
}

static const struct {
    const char *bytes; /* header up to the body length, in hex */
    const char *replies;
} broken_rows[] = {
    {"800000050000000000000001", "00:81 'Unknown command'"},
    {"800100010800000000000004", "01:81 'Unknown command'"},
    {"801900040000000000000003", "19:81 'Unknown command'"},
    {"800000000000000000000000", "00:4 'Invalid arguments'"},
    {"80000001040000000000000a", "00:4 'Invalid arguments'"},
    {"800900fb00000000000000fb", "09:4 'Invalid arguments'"},
    {"8000016d000000000000016d", "00:4 'Invalid arguments'"},
    {"8012000108000000ffffffe8", "12:4 'Invalid arguments'"},
    {"800a00000000000000000001", "0a:4 'Invalid arguments'"},
};

/* A broken request is answered and ends the connection. */
TEST_ROWS(test_broken, broken_rows, row->bytes)
{
    SCOPED(text_free) struct text packet = {.p = NULL}, got = {.p = NULL};
    for (const char *p = row->bytes; *p != '\0'; p += 2) {
        char digits[3] = {p[0], p[1], '\0'};
        text_add_be(&packet, strtoul(digits, NULL, 16), 1);
    }
    text_add_be(&packet, 0xdeadbeef, 4);
    text_add_be(&packet, 0, 8);
    text_expand(&packet, "{400x}");
    profile = PROFILE_14;
    open_client();
    client_write(&client, packet.p, packet.len);
    describe(&client.sent, &got);
    ck_assert_str_eq(got.p, row->replies);
    ck_assert(client.is_closed);
    client_close(&client);
}

/* ---- memory and facts ------------------------------------------------------------------ */

#define NO_ITEM "82 'Out of memory allocating item'"

TEST_LOOP(test_full_store, PROFILE_COUNT)
{
    conf.limit_bytes = MIB;
    conf.can_evict = false;
    profile = (enum profile)_i;
    open_client();
    struct text set = {.p = NULL};
    add_packet(&set, &(struct step){0x11, STORE, "key0", "9", 0, NULL});
    for (unsigned i = 0; client.sent.len == 0; i++) {
        expect(i < 100000);
        memcpy(set.p + BINARY_HEADER_BYTES + 8, &i, 4); /* the key */
        client_write(&client, set.p, set.len);
    }
    text_free(&set);
    exchange(&(struct step){0x01, STORE, "n", "7", 0, "01:" NO_ITEM});
    exchange(&(struct step){0x12, STORE, "n", "7", 0, "12:" NO_ITEM});
    exchange(&(struct step){0x05, SUM, "n", "", 0,
                            "05:82 'Out of memory allocating new item'"});
    exchange(&(struct step){0x0a, NONE, "", "", 0, "0a:0 ''"});
    ck_assert_uint_ge(ctr_get(&client.ctr.store_no_memory), 3);
    client_close(&client);
}

/* What the request at the head is for the classes. */
static struct session_facts
facts_of(const struct step *step, size_t missing)
{
    struct text packet = {.p = NULL};
    char *to;
    size_t room;
    add_packet(&packet, step);
    open_client();
    expect(buf_open(&client.in, &client.pool, &to, &room));
    memcpy(to, packet.p, packet.len - missing);
    buf_fill(&client.in, packet.len - missing);
    expect(session_peek(&client.session, &client.env, &client.in) == SESSION_READY);
    struct session_facts facts = session_facts(&client.session);
    client_close(&client);
    text_free(&packet);
    return facts;
}

/* A hit or a miss changes nothing, so other readers are not disturbed; quiet misses leave no space
 * taken. */
TEST(test_gets_write_nothing)
{
    static const struct step looks[] = {
        {0x00, NONE, "k", "", 0, "00:0 cas=1 extras=4 '...5abc'"},
        {0x0c, NONE, "k", "", 0, "0c:0 cas=1 key=1 extras=4 '...5kabc'"},
        {0x09, NONE, "k", "", 0, "09:0 cas=1 extras=4 '...5abc'"},
        {0x09, NONE, "gone", "", 0, ""},
        {0x0d, NONE, "gone", "", 0, ""},
    };
    profile = PROFILE_16;
    open_client();
    exchange(&(struct step){0x01, STORE, "k", "abc", 0, "01:0 cas=1 ''"});
    exchange(&looks[0]);
    exchange(&looks[0]);
    uint64_t before = client_store_writes(&client);
    for (unsigned i = 0; i < ROWS(looks); i++) {
        exchange(&looks[i]);
    }
    ck_assert_uint_eq(client_store_writes(&client), before);
    ck_assert_ptr_null(client.out.block);
    client_close(&client);
}

TEST(test_facts)
{
    profile = PROFILE_14;
    struct session_facts facts =
        facts_of(&(struct step){0x01, STORE, "k", "{5000v}", 0, NULL}, 0);
    ck_assert_uint_eq(facts.value_bytes, 5000);
    ck_assert(!facts.is_incomplete && !facts.is_control);
    facts = facts_of(&(struct step){0x01, STORE, "k", "{5000v}", 0, NULL}, 1);
    ck_assert(facts.is_write && !facts.is_incomplete);
    facts = facts_of(&(struct step){0x00, NONE, "k", "", 0, NULL}, 0);
    ck_assert_uint_eq(facts.keys, 1);
    ck_assert(!facts.is_incomplete && !facts.is_control && facts.value_bytes == 0);
    static const unsigned controls[] = {0x07, 0x0a, 0x0b, 0x10, 0x20};
    for (unsigned i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        facts = facts_of(&(struct step){controls[i], NONE, "", "", 0, NULL}, 0);
        ck_assert(facts.is_control);
    }
    facts = facts_of(&(struct step){0x08, NONE, "", "", 0, NULL}, 0);
    ck_assert(!facts.is_control);
}

/* ---- who is let in --------------------------------------------------------------------- */

#define AUTH_FAILED "20 'Auth failure.'"

static struct auth *
open_auth(void)
{
    char path[SCRATCH_PATH];
    char err[128] = "";
    scratch_file(path, "user:secret\n", 12);
    struct auth *auth = auth_open_sasl(path, NULL, err, sizeof err);
    ck_assert_msg(auth != NULL, "%s", err);
    ck_assert_int_eq(unlink(path), 0);
    return auth;
}

static const struct step sasl_script[] = {
    {0x0b, NONE, "", "", 0, "0b:0 '1.2.3'"},
    {0x20, NONE, "", "", 0, "20:0 'PLAIN'"},
    {0x22, NONE, "PLAIN", "{1@}user{1@}secret", 0, "22:" AUTH_FAILED},
    {0x21, NONE, "PLAIN", "{1@}user{1@}wrong", 0, "21:" AUTH_FAILED},
    {0x21, NONE, "OTHER", "{1@}user{1@}secret", 0, "21:" AUTH_FAILED},
    {0x21, NONE, "{40m}", "{1@}user{1@}secret", 0, "21:4 'Invalid arguments'"},
    {0x21, NONE, "PLAIN", "{1@}user{1@}secret", 0, "21:0 'Authenticated'"},
    {0x01, STORE, "k", "v", 0, "01:0 cas=1 ''"},
    {0x21, NONE, "PLAIN", "{1@}user{1@}wrong", 0, "21:" AUTH_FAILED},
    {0x21, NONE, "PLAIN", "", 0, "21:21 ''"},
    {0x22, NONE, "PLAIN", "{1@}user{1@}secret", 0, "22:0 'Authenticated'"},
    {0x00, NONE, "k", "", 0, "00:0 cas=1 extras=4 '...5v'"},
    {0x21, NONE, "PLAIN", "{1@}user{1@}wrong", 0, "21:" AUTH_FAILED},
    {0x00, NONE, "k", "", 0, "00:" AUTH_FAILED}, /* not on the strength of the past */
};

TEST(test_sasl)
{
    SCOPED(auth_close) struct auth *auth = open_auth();
    profile = PROFILE_14;
    open_client();
    client.conf.auth = auth;
    for (size_t i = 0; i < sizeof sasl_script / sizeof sasl_script[0]; i++) {
        ck_assert(!client.is_closed);
        exchange(&sasl_script[i]);
    }
    ck_assert(client.is_closed);
    ck_assert_uint_eq(ctr_get(&client.ctr.auth_cmds), 7);
    ck_assert_uint_eq(ctr_get(&client.ctr.auth_errors), 5);
    client_close(&client);
}

/* Before that, nothing but who one is and the version, whatever the request looks like; and
 * then the connection ends. */
TEST_LOOP(test_strangers, 2)
{
    SCOPED(auth_close) struct auth *auth = open_auth();
    profile = PROFILE_14;
    for (unsigned opcode = 0; opcode < 256; opcode += opcode < 0x28 ? 1 : 43) {
        if (opcode == 0x0b || (opcode >= 0x20 && opcode <= 0x22)) {
            continue;
        }
        char reply[64];
        snprintf(reply, sizeof reply, "%02x:" AUTH_FAILED, opcode);
        open_client();
        client.conf.auth = auth;
        exchange(&(struct step){opcode, NONE, _i == 0 ? "" : "k", "", 0, reply});
        ck_assert(client.is_closed);
        client_close(&client);
    }
}
