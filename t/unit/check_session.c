/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sessions: a script of commands and its replies under both rule sets; the same bytes cut
 * anywhere and run under any limits; connections that end anywhere.
 */
#include "fixture_session.h"

struct step {
    const char *input; /* patterns, see text_expand */
    const char *old;   /* 1.4 */
    const char *now;   /* 1.6; NULL: the same */
};

#define FORMAT "CLIENT_ERROR bad command line format\r\n"
#define ARITY "ERROR\r\n", FORMAT
#define BAD_DATA "CLIENT_ERROR bad data chunk\r\n"
#define NOT_NUMERIC "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"

#define SAME(input, reply)                                                               \
    {                                                                                    \
        input, reply, NULL                                                               \
    }
static const struct step script[] = {
    {"version\r\n", "VERSION 1.2.3\r\n", NULL},
    {"get a\r\n", "END\r\n", NULL},
    {"set a 1 0 3\r\nabc\r\n", "STORED\r\n", NULL}, /* CAS 1 */
    {"get a\r\n", "VALUE a 1 3\r\nabc\r\nEND\r\n", NULL},
    {"gets a b\n", "VALUE a 1 3 1\r\nabc\r\nEND\r\n", NULL},
    {"add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n", NULL},
    {"add b 2 0 0\r\n\r\n", "STORED\r\n", NULL}, /* 2 */
    {"get b\r\n", "VALUE b 2 0\r\n\r\nEND\r\n", NULL},
    {"replace c 0 0 1\r\nx\r\n", "NOT_STORED\r\n", NULL},
    {"replace b 4294967295 0 2\r\nbb\r\n", "STORED\r\n", NULL}, /* 3 */
    {"append a 9 9 2\r\n>>\r\n", "STORED\r\n", NULL},           /* 4 */
    {"prepend a 9 9 2\r\n<<\r\n", "STORED\r\n", NULL},          /* 5 */
    {"append zz 0 0 1\r\nx\r\n", "NOT_STORED\r\n", NULL},
    {"prepend zz 0 0 1\r\nx\r\n", "NOT_STORED\r\n", NULL},
    SAME("get a b c\r\n",
         "VALUE a 1 7\r\n<<abc>>\r\nVALUE b 4294967295 2\r\nbb\r\nEND\r\n"),
    {"cas a 1 0 1 99\r\nx\r\n", "EXISTS\r\n", NULL},
    {"cas a 1 0 1 5\r\nX\r\n", "STORED\r\n", NULL}, /* 6 */
    {"cas nn 1 0 1 5\r\nx\r\n", "NOT_FOUND\r\n", NULL},
    {"cas a 1 0 1 5 noreply\r\nY\r\n", "", NULL},
    {"gets a\r\n", "VALUE a 1 1 6\r\nX\r\nEND\r\n", NULL},
    /* arithmetic */
    {"set n 7 0 2\r\n10\r\n", "STORED\r\n", NULL}, /* 7 */
    {"incr n 5\r\n", "15\r\n", NULL},
    {"decr n 10\r\n", "5\r\n", NULL},
    {"gets n\r\n", "VALUE n 7 2 9\r\n5 \r\nEND\r\n", NULL},
    {"incr n 18446744073709551614\r\n", "3\r\n", NULL}, /* modulo 2^64 */
    {"decr n 100\r\n", "0\r\n", NULL},
    {"incr n 18446744073709551615\r\n", "18446744073709551615\r\n", NULL},
    {"get n\r\n", "VALUE n 7 20\r\n18446744073709551615\r\nEND\r\n", NULL},
    {"incr n 1\r\n", "0\r\n", NULL},
    {"incr n 3 noreply\r\n", "", NULL},
    {"decr n 1\r\n", "2\r\n", NULL},
    {"incr zz 1\r\n", "NOT_FOUND\r\n", NULL},
    {"decr zz 1 noreply\r\n", "", NULL},
    {"incr a 1\r\n", NOT_NUMERIC, NULL},
    {"incr n x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n", NULL},
    {"incr n\r\n", ARITY},
    {"incr n +1\r\n", "3\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"},
    /* touch and gat */
    {"touch a 100\r\n", "TOUCHED\r\n", NULL},
    {"touch a 100 noreply\r\n", "", NULL},
    {"touch zz 100\r\n", "NOT_FOUND\r\n", NULL},
    {"touch a x\r\n", "CLIENT_ERROR invalid exptime argument\r\n", NULL},
    SAME("gat 200 a zz b\r\n",
         "VALUE a 1 1\r\nX\r\nVALUE b 4294967295 2\r\nbb\r\nEND\r\n"),
    {"gats 0 a\r\n", "VALUE a 1 1 6\r\nX\r\nEND\r\n", NULL},
    {"gat x a\r\n", "CLIENT_ERROR invalid exptime argument\r\n", NULL},
    /* a past exptime */
    {"set e 0 -1 1\r\nx\r\n", "STORED\r\n", NULL},
    {"get e\r\n", "END\r\n", NULL},
    {"set e 0 2678400 1\r\nx\r\n", "STORED\r\n", NULL},
    {"get e\r\n", "END\r\n", NULL},
    {"set e 0 100 1\r\nx\r\n", "STORED\r\n", NULL},
    {"gat -1 e\r\n", "VALUE e 0 1\r\nx\r\nEND\r\n", NULL},
    {"get e\r\n", "END\r\n", NULL},
    /* delete */
    {"delete b\r\n", "DELETED\r\n", NULL},
    {"delete b\r\n", "NOT_FOUND\r\n", NULL},
    {"delete a 10\r\n",
     "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
     "DELETED\r\n"},
    {"delete a 0 noreply\r\n", "", NULL},
    {"get a b\r\n", "END\r\n", NULL},
    /* noreply */
    {"set q 5 0 4 noreply\r\nqqqq\r\n", "", NULL},
    {"add q 0 0 1 noreply\r\nx\r\n", "", NULL},
    {"append q 0 0 1 noreply\r\n!\r\n", "", NULL},
    {"incr q 1 noreply\r\n", "", NULL},
    {"get q\r\n", "VALUE q 5 5\r\nqqqq!\r\nEND\r\n", NULL},
    {"delete q noreply\r\n", "", NULL},
    {"get q\r\n", "END\r\n", NULL},
    {"set {251k} 0 0 -1 noreply\r\n", "", NULL},
    /* bad lines */
    {"\r\n", ARITY},
    {" \n", ARITY},
    {"bogus\r\n", "ERROR\r\n", NULL},
    {"get\r\n", ARITY},
    {"get {250k}\r\n", "END\r\n", NULL},
    {"get n {251k}\r\n", FORMAT, NULL},
    {"set k 0 0\r\n", ARITY},
    {"set k 0 0 -1\r\n", FORMAT, NULL},
    {"set {251k} 0 0 3\r\nabc\r\n", FORMAT "ERROR\r\n", FORMAT},
    {"set k x 0 3 noreply\r\nabc\r\n", "ERROR\r\n", ""},
    {"cas k 0 0 6 \r\nbarva2\r\n", "ERROR\r\nERROR\r\n", FORMAT},
    {"set k 0 0 5 6 7\r\nlater\r\n", "ERROR\r\nERROR\r\n", "STORED\r\n"},
    {"delete k noreply\r\n", "", NULL},
    /* bad bodies */
    {"set k 0 0 1\r\nxyz\r\n", BAD_DATA "ERROR\r\n", BAD_DATA FORMAT},
    {"set k 0 0 2\r\nab\n\n", BAD_DATA, NULL},
    {"set k 0 0 2\r\nab\r\r", BAD_DATA, NULL},
    {"set k 0 0 2 noreply\r\nabcd", "", NULL},
    {"get k\r\n", "END\r\n", NULL},
    {"set k 0 0 9\r\nget a\r\n{1@}\t\r\n", "STORED\r\n", NULL}, /* a body is no command */
    SAME("set k 0 0 70000\r\n{70000v}\r\n",
         "SERVER_ERROR object too large for cache\r\n"),
    {"get k\r\n", "END\r\n", NULL}, /* nothing stale stays */
    {"set k 0 0 1\r\nk\r\n", "STORED\r\n", NULL},
    {"append k 0 0 66000 noreply\r\n{66000v}\r\n", "", NULL},
    {"get k\r\n", "VALUE k 0 1\r\nk\r\nEND\r\n", "END\r\n"},
    /* values of all sizes */
    {"set v1 0 0 100\r\n{100v}\r\n", "STORED\r\n", NULL},
    {"set v2 0 0 3700\r\n{3700v}\r\n", "STORED\r\n", NULL},
    {"set v3 0 0 4096\r\n{4096v}\r\n", "STORED\r\n", NULL},
    {"set v4 0 0 16300\r\n{16300v}\r\n", "STORED\r\n", NULL},
    {"set v5 0 0 40000\r\n{40000v}\r\n", "STORED\r\n", NULL},
    {"append v5 0 0 5000\r\n{5000w}\r\n", "STORED\r\n", NULL},
    SAME("get v1 v2\r\n",
         "VALUE v1 0 100\r\n{100v}\r\nVALUE v2 0 3700\r\n{3700v}\r\nEND\r\n"),
    SAME("get v3 v4 v3\r\n",
         "VALUE v3 0 4096\r\n{4096v}\r\nVALUE v4 0 16300\r\n{16300v}\r\nVALUE v3 0 "
         "4096\r\n{4096v}\r\nEND\r\n"),
    {"get x{2000 }v1{3000 }y\r\n", "VALUE v1 0 100\r\n{100v}\r\nEND\r\n", NULL},
    {"get v5\r\n", "VALUE v5 0 45000\r\n{40000v}{5000w}\r\nEND\r\n", NULL},
    {"replace v5 0 0 1\r\n5\r\n", "STORED\r\n", NULL},
    /* longer than the buffer */
    SAME("get v5{9000 }x{8000 }v5 v1{5000 }v5\r\n",
         "VALUE v5 0 1\r\n5\r\nVALUE v5 0 1\r\n5\r\nVALUE v1 0 100\r\n{100v}\r\nVALUE v5 "
         "0 1\r\n5\r\nEND\r\n"),
    /* administration */
    {"stats\r\n", "STAT words 0\r\nEND\r\n", NULL},
    {"stats reset\r\n", "STAT words 1\r\nRESET\r\n", NULL},
    {"stats 1 2 3 4 5 6 7 8 9\r\n", "STAT words 7\r\nEND\r\n", NULL},
    {"qos show\r\n", "STAT words 1\r\nEND\r\n", NULL},
    {"verbosity 0\r\n", "OK\r\n", NULL},
    {"verbosity x\r\n", "OK\r\n", FORMAT},
    {"verbosity 0 noreply\r\n", "", NULL},
    {"cache_memlimit 64\r\n", "OK\r\n", NULL},
    {"cache_memlimit x\r\n", "ERROR\r\n", NULL},
    SAME("cache_memlimit 7\r\n",
         "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"),
    SAME("cache_memlimit 1000000001\r\n",
         "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n"),
    {"shutdown\r\n", "ERROR: shutdown not enabled\r\n",
     "SERVER_ERROR: shutdown not enabled\r\n"},
    {"debugtime 5\r\n", "ERROR\r\n", NULL},
    {"flush_all 100\r\n", "OK\r\n", NULL},
    {"get n\r\n", "VALUE n 7 20\r\n3                   \r\nEND\r\n",
     "VALUE n 7 20\r\n2                   \r\nEND\r\n"},
    {"flush_all x\r\n", "OK\r\n", "CLIENT_ERROR invalid exptime argument\r\n"},
    {"flush_all\r\n", "OK\r\n", NULL},
    {"get n v1 v5\r\n", "END\r\n", NULL},
    {"set n 0 0 1\r\nn\r\n", "STORED\r\n", NULL},
    {"get n\r\n", "VALUE n 0 1\r\nn\r\nEND\r\n", NULL},
    {"flush_all noreply\r\n", "", NULL},
    {"get n\r\n", "END\r\n", NULL},
    /* meta commands */
    {"mn\r\n", "MN\r\n", NULL},
    {"mg m1 k Oq\r\n", "EN km1 Oq\r\n", NULL},
    {"mg m1 k Oq q\r\n", "", NULL},
    {"ms m1 3 T100 F5 E70 k Oxyz c s\r\nabc\r\n", "HD km1 Oxyz c70 s3\r\n", NULL},
    {"mg m1 v s k t f c Oxyz\r\n", "VA 3 s3 km1 t100 f5 c70 Oxyz\r\nabc\r\n", NULL},
    {"ms m1 1 q C69 Oz c\r\nx\r\n", "EX Oz c0\r\n", NULL},
    {"ms m1 1 q C70 E71\r\nx\r\n", "", NULL},
    {"ms m2 1000 MA N50 k s Oz\r\n{1000x}\r\n", "HD km2 s1000 Oz\r\n", NULL},
    {"ms m2 4000 MP s Oz\r\n{4000y}\r\n", "HD s5000 Oz\r\n", NULL},
    {"mg m2 t v k\r\n", "VA 5000 t50 km2\r\n{4000y}{1000x}\r\n", NULL},
    {"mg m2 s\r\nmg m2 v C1 q\r\n", "HD s5000\r\nVA 5000\r\n{4000y}{1000x}\r\n", NULL},
    {"ms bTM= 20000 b k\r\n{20000z}\r\n", "HD kbTM= b\r\n", NULL},
    {"mg bTM= b v k\r\nmn\r\n", "VA 20000 kbTM= b\r\n{20000z}\r\nMN\r\n", NULL},
    SAME("ms bTM= 70000 b\r\n{70000z}\r\n",
         "SERVER_ERROR object too large for cache\r\n"),
    {"mg m3 s k\r\n", "HD s20000 kbTM= b\r\n", "EN km3\r\n"},
    {"ms m1 5 z\r\n12345\r\n", "CLIENT_ERROR invalid flag\r\n", NULL},
    {"ms m1 5 b\r\n12345\r\n", "CLIENT_ERROR error decoding key\r\n", NULL},
    {"ms m1 x\r\n", FORMAT, NULL},
    {"ms m1 2 q\r\n1234", BAD_DATA, NULL},
    {"mg m1 s c\r\n", "HD s1 c71\r\n", NULL},
    {"md m1 I T30 q\r\n", "", NULL},
    {"mg m1 t\r\nmg m1\r\n", "HD t30 X W\r\nHD Z X\r\n", NULL},
    {"md m1 k\r\nmd m1 k q\r\n", "HD km1\r\nNF km1\r\n", NULL},
    {"mg m4 N30 t\r\nmg m4\r\n", "HD t30 W\r\nHD Z\r\n", NULL},
    SAME("ma m5 N0 J9 v\r\nma m5 q\r\nma m5 v k\r\n", "VA 1\r\n9\r\nVA 2 km5\r\n11\r\n"),
    SAME("ma m2\r\nma m6 Oa\r\nma m5 z\r\n",
         NOT_NUMERIC "NF Oa\r\nCLIENT_ERROR invalid or duplicate flag\r\n"),
    {"me m6\r\n", "EN\r\n", NULL},
    {"set w1 0 0 3000\r\n{3000w}\r\n", "STORED\r\n", NULL}, /* something stays */
    {"quit\r\n", "", NULL},
    {"get n\r\n", "", NULL}, /* nobody listens any more */
};

/* Every key that the script may leave behind. */
static const char sweep[] = "get a b c e k n q v1 v2 v3 v4 v5 w1\r\n"
                            "md m1 q\r\nmd m2 q\r\nmd m3 q\r\nmd m4 q\r\nmd m5 q\r\n"
                            "delete a noreply\r\ndelete b noreply\r\ndelete e noreply\r\n"
                            "delete k noreply\r\ndelete n noreply\r\ndelete q noreply\r\n"
                            "delete v1 noreply\r\ndelete v2 noreply\r\n"
                            "delete v3 noreply\r\ndelete v4 noreply\r\n"
                            "delete v5 noreply\r\ndelete w1 noreply\r\n";

static const char *
reply_of(const struct step *step)
{
    return profile != PROFILE_14 && step->now != NULL ? step->now : step->old;
}

static void
use_profile(int round)
{
    profile = (enum profile)(round % PROFILE_COUNT);
    text_free(&input);
    text_free(&expected);
    for (size_t i = 0; i < sizeof script / sizeof script[0]; i++) {
        text_expand(&input, script[i].input);
        text_expand(&expected, reply_of(&script[i]));
    }
}

/* ---- step by step --------------------------------------------------------------------- */

FIXTURE(set_up_session, tear_down_script);

TEST_LOOP(test_script, PROFILE_COUNT)
{
    use_profile(_i);
    open_client();
    for (size_t i = 0; i < sizeof script / sizeof script[0]; i++) {
        SCOPED(text_free) struct text reply = {.p = NULL};
        text_expand(&reply, reply_of(&script[i]));
        text_add(&reply, "", 1);
        const char *got = client_exchange(&client, script[i].input);
        ck_assert_msg(strcmp(got, reply.p) == 0, "%.60s: %.200s instead of %.200s",
                      script[i].input, got, reply.p);
        ck_assert(!client.is_closed);
        ck_assert_msg(client.has_quit ||
                          session_is_quiescent(&client.session, &client.in),
                      "%.60s", script[i].input);
        if (!client.has_quit) {
            ck_assert_uint_eq(ctr_get(&client.pool.used), 0); /* idle: no memory */
        }
    }
    ck_assert(client.has_quit);
    client_close(&client);
}

TEST_LOOP(test_all_at_once, PROFILE_COUNT)
{
    use_profile(_i);
    open_client();
    client_write(&client, input.p, input.len);
    client_check_sent(&client, &expected, 0);
    client_close(&client);
}

/* ---- cut anywhere --------------------------------------------------------------------- */

/* The next place to cut at: few inside long runs of one byte, and of the others every `step`th,
 * each with CUT_STEP=1 (scripts/ci asan). */
static size_t
next_cut(size_t at)
{
    static const size_t margin = 40, stride = 997;
    static size_t step;
    if (step == 0) {
        const char *asked = getenv("CUT_STEP");
        step = asked != NULL && atoi(asked) > 0 ? (size_t)atoi(asked) : 7;
    }
    at += step;
    if (at > margin && at + margin + stride < input.len) {
        bool is_inside = true;
        for (size_t i = at - margin; i < at + margin + stride && is_inside; i++) {
            is_inside = input.p[i] == input.p[at];
        }
        at += is_inside ? stride : 0;
    }
    return at;
}

TEST_LOOP(test_cut_in_two, PROFILE_COUNT)
{
    use_profile(_i);
    for (size_t cut = 0; cut <= input.len; cut = next_cut(cut)) {
        open_client();
        rng_init(&client.rng, 21, cut);
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
    check_random_pieces(22, true);
}

/* ---- connections that end anywhere ---------------------------------------------------- */

/* Whatever was half done is given back: what is left can be deleted to the last byte. */
TEST_LOOP(test_hang_up_anywhere, PROFILE_COUNT)
{
    use_profile(_i);
    for (size_t cut = 0; cut <= input.len; cut = next_cut(cut)) {
        open_client();
        rng_init(&client.rng, 23, cut);
        client.keeps_all = cut % 3 != 0; /* with output that was not sent */
        client_write(&client, input.p, cut);
        check_sweep(sweep, sizeof sweep - 1);
    }
}

/* The same between two runs of one request, with a value in the session's hand. */
TEST_LOOP(test_hang_up_between_runs, PROFILE_COUNT)
{
    use_profile(_i);
    bool was_late = false;
    for (unsigned runs = 1;; runs++) {
        open_client();
        rng_init(&client.rng, 24, 0);
        client.varies = true;
        client.runs_max = runs;
        client_write(&client, input.p, input.len);
        if (client.has_quit) {
            client_close(&client);
            break;
        }
        was_late = was_late || client.session.item != NULL;
        check_sweep(sweep, sizeof sweep - 1);
    }
    ck_assert(was_late);
}
