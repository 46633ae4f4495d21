/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Meta commands: lines and what the parser makes of them, and the lines of replies, up to
 * the longest.
 */
#include "check_ascii.h"
#include "check_main.h"

#define BAD(error) "BAD " error, NULL
#define MS(len, flags) "ms [k] len=" len " exp=" flags, NULL

static const struct line_row rows[] = {
    /* mg */
    {"mg k\r\n", "mg [k]", NULL},
    {"mg k\n", "mg [k]", NULL},
    {"mg   k   s  v \r\n", "mg [k] s v", NULL},
    {"  mg k s v\r\n", "mg [k] s v", "BAD ERROR"},
    {"mg k k s v c t f l h u q\r\n", "mg [k] k s v c t f l h u q", NULL},
    {"mg k v t s\r\n", "mg [k] v t s", NULL},
    {"mg k vv sX t9\r\n", "mg [k] v s t", NULL}, /* no argument: the rest is ignored */
    {"mg {250k} v\r\n", "mg [250*k] v", NULL},
    {"mg a\tb v\r\n", "mg [a\tb] v", NULL},
    {"mg a{1@}b v\r\n", "mg [a@b] v", NULL},
    {"mg a\r\r\n", "mg [a\r]", NULL},
    {"mg noreply\r\n", "mg [noreply]", NULL},
    /* numbers */
    {"mg k T30 N-1 R0\r\n", "mg [k] T30 N-1 R0", NULL},
    {"mg k T2147483647 N-2147483648\r\n", "mg [k] T2147483647 N-2147483648", NULL},
    {"mg k C18446744073709551615 E1\r\n", "mg [k] C18446744073709551615 E1", NULL},
    {"mg k F4294967295\r\n", "mg [k] F4294967295", NULL},
    {"mg k F-0 C-0 J-0 D-00\r\n", "mg [k] F0 C0 J0 D0", NULL},
    {"mg k J7 D8 M\r\n", "mg [k] J7 D8 M=@", NULL}, /* no mode of a get is wrong */
    {"mg k Mxyz\r\n", "mg [k] M=x", NULL},
    {"mg k J\r\n", BAD("META_BAD_INITIAL")},
    {"mg k Jx\r\n", BAD("META_BAD_INITIAL")},
    {"mg k D\r\n", BAD("META_BAD_DELTA")},
    {"mg k D-1\r\n", BAD("META_BAD_DELTA")},
    /* 20 words, and one more */
    {"mg k k O q s v c t f l h u C1 N1 R1 T1 F1 I x\r\n",
     "mg [k] k O=O q s v c t f l h u C1 N1 R1 T1 F1 I x", NULL},
    {"mg k k O q s v c t f l h u C1 N1 R1 T1 F1 I x P\r\n", BAD("META_TOO_MANY")},
    {"mg k k O q s v c t f l h u C1 N1 R1 T1 F1 I x z\r\n", BAD("META_TOO_MANY")},
    /* opaque */
    {"mg k O\r\n", "mg [k] O=O", NULL},
    {"mg k Oabc k\r\n", "mg [k] O=Oabc k", NULL},
    {"mg k O1234567890123456789012345678901\r\n",
     "mg [k] O=O1234567890123456789012345678901", NULL},
    {"mg k O12345678901234567890123456789012\r\n", BAD("META_BAD_OPAQUE")},
    {"mg k O{2000x}\r\n", BAD("META_BAD_OPAQUE")},
    {"mg k Pfoo Lbar v\r\n", "mg [k] P L v", NULL},
    /* keys */
    {"mg Zm9v b k\r\n", "mg [foo] b k", NULL},
    {"mg Zm9v k b\r\n", "mg [foo] k b", NULL},
    {"mg Zm9v bxyz\r\n", "mg [foo] b", NULL},
    {"mg AAo= b\r\n", "mg [@\n] b", NULL}, /* any byte can be in a key then */
    {"mg {248A} b\r\n", "mg [186*@] b", NULL},
    {"mg {252A} b\r\n", BAD("BAD_FORMAT")}, /* as sent, before decoding */
    /* ms */
    {"ms k 2\r\n", MS("2", "0")},
    {"ms k 2\n", MS("2", "0")},
    {"ms k 0\r\n", MS("0", "0")},
    {"ms k 2147483645\r\n", MS("2147483645", "0")},
    {"ms k 2 T30 F7 c k s q I\r\n", MS("2", "30 T30 F7 c k s q I")},
    {"ms k 2 ME\r\n", MS("2", "0 M=E")},
    {"ms k 2 MA\r\n", MS("2", "0 M=A")},
    {"ms k 2 MP\r\n", MS("2", "0 M=P")},
    {"ms k 2 MR\r\n", MS("2", "0 M=R")},
    {"ms k 2 MS\r\n", MS("2", "0 M=S")},
    {"ms k 2 MEverybody\r\n", MS("2", "0 M=E")},
    {"ms k 2 MA N30 T5\r\n", MS("2", "30 M=A N30 T30")}, /* of the item that it creates */
    {"ms k 2 T5 N30 MP\r\n", MS("2", "30 T30 N30 M=P")},
    {"ms k 2 N30 T5\r\n", MS("2", "5 N30 T5")},
    {"ms Zm9v 3 b\r\n", "ms [foo] len=3 exp=0 b", NULL},
    /* and what is one does */
    {"ms {251k} 3\r\n", BAD("BAD_FORMAT swallow=5")},
    {"ms {251k} 3 z\r\n", BAD("BAD_FORMAT swallow=5")},
    {"ms k 3 z\r\n", BAD("META_BAD_FLAG swallow=5")},
    {"ms k 3 T\r\n", BAD("META_BAD_TOKEN swallow=5")},
    {"ms k 3 T1 T1\r\n", BAD("META_DUPLICATE swallow=5")},
    {"ms k 3 F\r\n", BAD("BAD_FORMAT swallow=5")},
    {"ms k 3 O12345678901234567890123456789012\r\n", BAD("META_BAD_OPAQUE swallow=5")},
    {"ms k 3 b\r\n", BAD("META_BAD_KEY swallow=5")},
    {"ms k 3 k O q s v c t f l h u C1 N1 R1 T1 F1 I\r\n",
     MS("3", "1 k O=O q s v c t f l h u C1 N1 R1 T1 F1 I")},
    {"ms k 3 k O q s v c t f l h u C1 N1 R1 T1 F1 I x\r\n",
     BAD("META_TOO_MANY swallow=5")},
    {"ms k 2147483645 z\r\n", BAD("META_BAD_FLAG swallow=2147483647")},
    /* the others */
    {"md k\r\n", "md [k]", NULL},
    {"md k q k Oabc I T30 C5 E6 x F7\r\n", "md [k] q k O=Oabc I T30 C5 E6 x F7", NULL},
    {"md Zm9v b\r\n", "md [foo] b", NULL},
    /* ma has one text for most errors */
    {"ma k\r\n", "ma [k]", NULL},
    {"ma k N0 J13 D2 v t c\r\n", "ma [k] N0 J13 D2 v t c", NULL},
    {"ma k MI\r\n", "ma [k] M=I", NULL},
    {"ma k M+\r\n", "ma [k] M=+", NULL},
    {"ma k MD\r\n", "ma [k] M=D", NULL},
    {"ma k M-\r\n", "ma [k] M=-", NULL},
    {"ma k MIncrement\r\n", "ma [k] M=I", NULL},
    {"ma k D18446744073709551615\r\n", "ma [k] D18446744073709551615", NULL},
    {"ma k M\r\n", BAD("META_BAD_MA_MODE")},
    {"ma k MX\r\n", BAD("META_BAD_MA_MODE")},
    {"ma k ME\r\n", BAD("META_BAD_MA_MODE")},
    {"ma k O12345678901234567890123456789012\r\n", BAD("META_BAD_OPAQUE")},
    {"ma k k O q s v c t f l h u C1 N1 R1 T1 F1 I x P\r\n", BAD("META_TOO_MANY")},
    /* me knows one flag, behind the key */
    {"me k\r\n", "me [k]", NULL},
    {"me k x y z v v T\r\n", "me [k]", NULL},
    {"me Zm9v b\r\n", "me [foo]", NULL},
    {"me Zm9v b x\r\n", "me [foo]", NULL},
    {"me Zm9v x b\r\n", "me [Zm9v]", NULL},
    {"mn x y\r\n", "mn 3 [x] [y]", NULL},
    {"MG k\r\n", "BAD ERROR", NULL},
    {"mgx k\r\n", "BAD ERROR", NULL},
};

/* Lines that are all answered alike. */
static const struct {
    const char *old, *now;
    const char *lines[34];
} bad_rows[] = {
    {BAD("BAD_FORMAT"),
     {"mg k F4294967296\r\n",
      "mg k F18446744073709551616\r\n",
      "mg k F\r\n",
      "mg k Fx\r\n",
      "mg k F-1\r\n",
      "mg\n",
      "mg\r\n",
      "mg \r\n",
      "mg {251k} v\r\n",
      "mg {251k} z\r\n",
      "ms\n",
      "ms\r\n",
      "ms k\r\n",
      "ms k \r\n",
      "ms k x\r\n",
      "ms k 2x\r\n",
      "ms k -1\r\n",
      "ms k +2\r\n",
      "ms k 2147483646\r\n",
      "ms k 4294967297\r\n",
      "ms k 18446744073709551618\r\n",
      "ms k T30 2\r\n",
      "ms k x z\r\n",
      "ms {251k} x\r\n",
      "md\r\n",
      "md {251k}\r\n",
      "ma\r\n",
      "ma {251k}\r\n",
      "ma k F\r\n",
      "ma k F4294967296\r\n",
      "me\r\n",
      "me {251k}\r\n",
      "me Zg b\r\n"}},
    {BAD("META_BAD_TOKEN"),
     {"mg k T\r\n", "mg k T\n", "mg k T \r\n", "mg k T-\r\n", "mg k T+5\r\n",
      "mg k T5x\r\n", "mg k T2147483648\r\n", "mg k N\r\n", "mg k Nx\r\n", "mg k R\r\n",
      "mg k R1.5\r\n", "mg k C\r\n", "mg k C-1\r\n", "mg k C18446744073709551616\r\n",
      "mg k E\r\n", "mg k Ex\r\n", "mg k T z\r\n", "md k Cx\r\n"}},
    {BAD("META_BAD_FLAG"),
     {"mg k z\r\n", "mg k 1\r\n", "mg k ~\r\n", "mg k {1@}\r\n", "mg k \r\r\n",
      "mg k S3\r\n", "mg k z v v\r\n",
      "mg k m o o o o o o o o o o o o o o o o o o o o o o o o\r\n",
      "mg foo m o o o o o o o o\r\n", "mg Zg z b\r\n", "md k z\r\n"}},
    {BAD("META_DUPLICATE"),
     {"mg k v v\r\n", "mg k v vv\r\n", "mg k T1 T2\r\n", "mg k \x7f\r\n", "mg k \x80\r\n",
      "mg k \xff\r\n", "mg k v v z\r\n", "mg k P P\r\n", "md k v v\r\n"}},
    {BAD("META_BAD_KEY"),
     {"mg Zg b\r\n", "mg Zm9 b\r\n", "mg Zg=x b\r\n", "mg Zm-_ b\r\n", "mg ==== b\r\n",
      "mg {249A} b\r\n", "mg Zg b z\r\n", "md Zg b\r\n"}},
    {BAD("META_BAD_MS_MODE swallow=5"),
     {"ms k 3 M\r\n", "ms k 3 MX\r\n", "ms k 3 M{1@}\r\n", "ms k 3 MI\r\n"}},
    {BAD("META_BAD_MA_FLAG"),
     {"ma k z\r\n", "ma k v v\r\n", "ma k \xff\r\n", "ma k T\r\n", "ma k N1x\r\n",
      "ma k J\r\n", "ma k Jx\r\n", "ma k D\r\n", "ma k D-1\r\n",
      "ma k D18446744073709551616\r\n", "ma Zg b\r\n"}},
};

TEST_ROWS(test_requests, rows, row->line)
{
    check_row(row);
}

TEST_ROWS(test_bad_lines, bad_rows, row->old)
{
    for (unsigned i = 0; row->lines[i] != NULL; i++) {
        check_row(&(struct line_row){row->lines[i], row->old, row->now});
    }
}

/* ---- replies -------------------------------------------------------------------------- */

/* A line under way in a block of exactly the promised size. */
static struct meta_line
begin(const char *status)
{
    char *p = malloc(META_LINE_MAX);
    ck_assert_ptr_nonnull(p);
    return status != NULL ? meta_line_begin(p, status)
                          : meta_line_begin_value(p, UINT32_MAX);
}

static void
check_line_is(struct meta_line *line, const char *expected)
{
    meta_line_end(line);
    ck_assert_uint_eq(line->len, strlen(expected));
    ck_assert_mem_eq(line->p, expected, line->len);
    free(line->p);
}

TEST(test_lines)
{
    struct meta_line line = begin("HD");
    check_line_is(&line, "HD\r\n");
    line = begin(NULL);
    check_line_is(&line, "VA 4294967295\r\n");
    line = begin("HD");
    meta_line_number(&line, 's', 0);
    meta_line_number(&line, 'c', UINT64_MAX);
    meta_line_ttl(&line, -1);
    meta_line_ttl(&line, 30);
    meta_line_mark(&line, 'W');
    check_line_is(&line, "HD s0 c18446744073709551615 t-1 t30 W\r\n");
    line = begin("EN");
    meta_line_key(&line, (struct slice){"foo", 3}, false);
    meta_line_key(&line, (struct slice){"foo", 3}, true);
    check_line_is(&line, "EN kfoo kZm9v b\r\n");
}

/* The echo is in the order of the request and has nothing else of it. */
static const struct {
    const char *line, *reply;
} echo_rows[] = {
    {"mg foo v k s Oabc q\n", "NF kfoo Oabc\r\n"},
    {"mg foo Oabc k\n", "NF Oabc kfoo\r\n"},
    {"mg Zh== k b O\n", "NF kZg== b O\r\n"}, /* encoded anew */
    {"mg foo\n", "NF\r\n"},
};

TEST_ROWS(test_echo, echo_rows, row->line)
{
    struct req req = {0};
    char decoded[REQ_KEY_MAX];
    struct parse parsed =
        ascii_parse(row->line, strlen(row->line), 0, false, rules_of(PROFILE_16), &req);
    ck_assert(parsed.status == PARSE_DONE);
    struct meta_line line = begin("NF");
    meta_line_echo(&line, &req, meta_key(&req, decoded));
    check_line_is(&line, row->reply);
}

TEST(test_longest)
{
    char key[REQ_KEY_MAX];
    struct req req = {.meta = {.opaque_len = META_OPAQUE_MAX}};
    memset(key, 'k', sizeof key);
    struct meta_line line = begin(NULL);
    meta_line_key(&line, (struct slice){key, sizeof key}, true);
    meta_line_opaque(&line, &req);
    for (const char *flag = "scftlh"; *flag != '\0'; flag++) {
        meta_line_number(&line, *flag, UINT64_MAX);
    }
    meta_line_mark(&line, 'Z');
    meta_line_mark(&line, 'X');
    meta_line_mark(&line, 'W');
    meta_line_end(&line);
    ck_assert_uint_le(line.len, META_LINE_MAX);
    struct meta_facts facts = {
        .key = {key, sizeof key},
        .is_binary_key = true,
        .class_id = UINT8_MAX,
        .ttl = INT64_MIN,
        .idle = UINT32_MAX,
        .total = UINT32_MAX,
        .cas = UINT64_MAX,
    };
    ck_assert_uint_le(meta_describe(line.p, &facts), META_LINE_MAX);
    free(line.p);
}

TEST(test_describe)
{
    struct meta_facts facts = {
        .key = {"foo", 3}, .class_id = 1, .ttl = -1, .idle = 3, .total = 64, .cas = 9};
    struct meta_line line = begin("");
    line.len = meta_describe(line.p, &facts);
    line.len -= 2;
    check_line_is(&line, "ME foo exp=-1 la=3 cas=9 fetch=no cls=1 size=64\r\n");
    facts.is_binary_key = true;
    facts.was_fetched = true;
    facts.ttl = 100;
    line = begin("");
    line.len = meta_describe(line.p, &facts) - 2;
    check_line_is(&line, "ME Zm9v exp=100 la=3 cas=9 fetch=yes cls=1 size=64\r\n");
}
