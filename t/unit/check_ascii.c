/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whole lines of the text protocol and what both rule sets make of them.
 */
#include "check_ascii.h"
#include "check_main.h"

/* ---- whole lines ---------------------------------------------------------------------- */

#define ARITY "BAD ERROR", "BAD BAD_FORMAT"
#define SET(flags, exp, len) "set [k] flags=" flags " exp=" exp " len=" len

static const struct line_row rows[] = {
    /* retrieval */
    {"get a\r\n", "get [a]", NULL},
    {"get a\n", "get [a]", NULL},
    {"get a \r\n", "get [a]", NULL},
    {"get a b\n", "get [a][b]", NULL},
    {"get   a  b   c \r\n", "get [a][b][c]", NULL},
    {"get a a\r\n", "get [a][a]", NULL},
    {"  get a\r\n", "get [a]", "BAD ERROR"},
    {"{200 }get a\r\n", "get [a]",
     "BAD ERROR"}, /* blanks are counted in unfinished lines only */
    {"gets a b\r\n", "gets [a][b]", NULL},
    {"   gets    a\r\n", "gets [a]", "BAD ERROR"},
    {"gets    a\r\n", "gets [a]", NULL},
    {"bget a\r\n", "bget [a]", "BAD ERROR"},
    {"get {250k}\r\n", "get [250*k]", NULL},
    {"get {250k}\n", "get [250*k]", NULL},
    {"get {250k} {250m}\r\n", "get [250*k][250*m]", NULL},
    {"get 1 2 3 4 5 6 7 8 9 10 11 12\r\n", "get [1][2][3][4]+8", NULL},
    {"get a\tb\r\n", "get [a\tb]", NULL},
    {"get a\r\r\n", "get [a\r]", NULL}, /* one CR belongs to the line end */
    {"get a\rb c\r\n", "get [a\rb][c]", NULL},
    {"get a{1@}b c\r\n", "get [a@b][c]", NULL},
    {"get {1@}\r\n", "get [@]", NULL},
    {"get \xff\x80\r\n", "get [\xff\x80]", NULL},
    {"get noreply\r\n", "get [noreply]", NULL},
    {"get a noreply\r\n", "get [a][noreply]", NULL},
    {"gat 10 a b\r\n", "gat 10 [a][b]", NULL},
    {"gats 0 a\r\n", "gats 0 [a]", NULL},
    {"gat -1 a\r\n", "gat -1 [a]", NULL},
    {"gat 2147483647 a\r\n", "gat 2147483647 [a]", NULL},
    {"gat -2147483648 a\r\n", "gat -2147483648 [a]", NULL},
    {"gat +5 a\r\n", "gat 5 [a]", "BAD BAD_EXPTIME"},
    {"gat 0 {250k}\r\n", "gat 0 [250*k]", NULL},
    /* storage */
    {"set k 1 2 3\r\n", SET("1", "2", "3"), NULL},
    {"set k 1 2 3\n", SET("1", "2", "3"), NULL},
    {"set   k  1 2   3  \r\n", SET("1", "2", "3"), NULL},
    {" set k 1 2 3\r\n", SET("1", "2", "3"), "BAD ERROR"},
    {"set k 1 2 3 noreply\r\n", SET("1", "2", "3") " noreply", NULL},
    {"set k 1 2 3 Noreply\r\n", SET("1", "2", "3"), NULL},
    {"set k 1 2 3 noreply2\r\n", SET("1", "2", "3"), NULL},
    {"set k 1 2 3 4\r\n", SET("1", "2", "3"), NULL}, /* a sixth word is ignored */
    {"set k 1 2 3 4 5\r\n", "BAD ERROR", SET("1", "2", "3")},
    {"set k 1 2 3 4 noreply\r\n", "BAD ERROR", SET("1", "2", "3") " noreply"},
    {"add k 0 0 0\r\n", "add [k] flags=0 exp=0 len=0", NULL},
    {"replace k 0 0 1\r\n", "replace [k] flags=0 exp=0 len=1", NULL},
    {"append k 0 0 1 noreply\r\n", "append [k] flags=0 exp=0 len=1 noreply", NULL},
    {"prepend k 0 0 1\r\n", "prepend [k] flags=0 exp=0 len=1", NULL},
    {"set k 1 noreply\r\n", "BAD ERROR", "BAD BAD_FORMAT quiet"},
    {"set k 1 2 noreply\r\n", "BAD BAD_FORMAT quiet", NULL},
    /* keys */
    {"set {250k} 0 0 3\r\n", "set [250*k] flags=0 exp=0 len=3", NULL},
    {"set {251k} 0 0 3 noreply\r\n", "BAD BAD_FORMAT quiet",
     "BAD BAD_FORMAT quiet swallow=5"},
    {"set {1000k} 0 0 0\r\n", "BAD BAD_FORMAT", "BAD BAD_FORMAT swallow=2"},
    {"set {1@} 0 0 3\r\n", "set [@] flags=0 exp=0 len=3", NULL},
    /* flags: 64 bits, cut to 32 */
    {"set k 2147483648 0 3\r\n", SET("2147483648", "0", "3"), NULL},
    {"set k 4294967295 0 3\r\n", SET("4294967295", "0", "3"), NULL},
    {"set k 4294967296 0 3\r\n", SET("0", "0", "3"), NULL},
    {"set k 18446744073709551615 0 3\r\n", SET("4294967295", "0", "3"), NULL},
    {"set k 1{1@} 0 3\r\n", SET("1", "0", "3"), "BAD BAD_FORMAT swallow=5"},
    {"set k -0 0 3\r\n", SET("0", "0", "3"), NULL},
    {"set k \t7 0 3\r\n", SET("7", "0", "3"), "BAD BAD_FORMAT swallow=5"},
    {"set k 0 7\t 3\r\n", SET("0", "7", "3"), "BAD BAD_FORMAT swallow=5"},
    {"set k 0 0 3\r\r\n", SET("0", "0", "3"), "BAD BAD_FORMAT"},
    {"set k +7 0 3\r\n", SET("7", "0", "3"), "BAD BAD_FORMAT swallow=5"},
    {"set k x 0 3 noreply\r\n", "BAD BAD_FORMAT quiet", "BAD BAD_FORMAT quiet swallow=5"},
    /* exptime: signed 64 bits, cut to 32 */
    {"set k 0 -1 3\r\n", SET("0", "-1", "3"), NULL},
    {"set k 0 2592000 3\r\n", SET("0", "2592000", "3"), NULL},
    {"set k 0 2147483647 3\r\n", SET("0", "2147483647", "3"), NULL},
    {"set k 0 2147483648 3\r\n", SET("0", "-2147483648", "3"), NULL},
    {"set k 0 99999999999 3\r\n", SET("0", "1215752191", "3"), NULL},
    {"set k 0 9223372036854775807 3\r\n", SET("0", "-1", "3"), NULL},
    {"set k 0 -9223372036854775808 3\r\n", SET("0", "0", "3"), NULL},
    {"set k 0 +9 3\r\n", SET("0", "9", "3"), "BAD BAD_FORMAT swallow=5"},
    /* length: what is no length swallows nothing */
    {"set k 0 0 0\r\n", SET("0", "0", "0"), NULL},
    {"set k 0 0 2147483645\r\n", SET("0", "0", "2147483645"), NULL},
    {"set k 0 0 +3\r\n", SET("0", "0", "3"), "BAD BAD_FORMAT"},
    {"set k x 0 2147483645\r\n", "BAD BAD_FORMAT", "BAD BAD_FORMAT swallow=2147483647"},
    /* cas */
    {"cas k 1 2 3 4\r\n", "cas [k] flags=1 exp=2 len=3 cas=4", NULL},
    {"cas k 1 2 3 4 noreply\r\n", "cas [k] flags=1 exp=2 len=3 cas=4 noreply", NULL},
    {"cas k 1 2 3 4 5\r\n", "cas [k] flags=1 exp=2 len=3 cas=4", NULL},
    {"cas k 1 2 3 4 5 6\r\n", "BAD ERROR", "cas [k] flags=1 exp=2 len=3 cas=4"},
    {"cas k 0 0 3 18446744073709551615\r\n",
     "cas [k] flags=0 exp=0 len=3 cas=18446744073709551615", NULL},
    {"cas k 0 0 3 18446744073709551616\r\n", "BAD BAD_FORMAT",
     "BAD BAD_FORMAT swallow=5"},
    {"cas k 0 0 6 \r\n", "BAD ERROR", "BAD BAD_FORMAT swallow=8"},
    {"cas k 0 0 x\r\n", "BAD ERROR", "BAD BAD_FORMAT"},
    {"cas k 0 0 6 noreply\r\n", "BAD BAD_FORMAT quiet", "BAD BAD_FORMAT quiet swallow=8"},
    /* one key */
    {"incr k 5\r\n", "incr [k] 5", NULL},
    {"incr k 0\n", "incr [k] 0", NULL},
    {"decr  k   5\r\n", "decr [k] 5", NULL},
    {"  decr k 5\r\n", "decr [k] 5", "BAD ERROR"},
    {"decr k 18446744073709551615\r\n", "decr [k] 18446744073709551615", NULL},
    {"incr k 1{1@}\r\n", "incr [k] 1", "BAD BAD_DELTA"},
    {"incr k 1{1@}x\r\n", "incr [k] 1", "BAD BAD_DELTA"},
    {"incr k +1\r\n", "incr [k] 1", "BAD BAD_DELTA"},
    {"incr k -0\r\n", "incr [k] 0", NULL},
    {"incr k -00\r\n", "incr [k] 0", NULL},
    {"incr k 1\t\r\n", "incr [k] 1", "BAD BAD_DELTA"},
    {"incr k \t1\vx\r\n", "incr [k] 1", "BAD BAD_DELTA"},
    {"incr k 1\r\r\n", "incr [k] 1", "BAD BAD_DELTA"},
    {"incr k 1 noreply\r\n", "incr [k] 1 noreply", NULL},
    {"incr k x noreply\r\n", "BAD BAD_DELTA quiet", NULL},
    {"incr k 1 2\r\n", "incr [k] 1", NULL},
    {"incr k 1 2 3\r\n", "BAD ERROR", "incr [k] 1"},
    {"incr k noreply\r\n", "BAD BAD_DELTA quiet", NULL},
    {"incr {250k} 1\r\n", "incr [250*k] 1", NULL},
    {"decr {251k} 1 noreply\r\n", "BAD BAD_FORMAT quiet", NULL},
    {"touch k 5\r\n", "touch [k] 5", NULL},
    {"touch k -5\r\n", "touch [k] -5", NULL},
    {"touch k 0 noreply\r\n", "touch [k] 0 noreply", NULL},
    {"touch k 2147483647\r\n", "touch [k] 2147483647", NULL},
    {"touch k -2147483648\r\n", "touch [k] -2147483648", NULL},
    {"touch k x noreply\r\n", "BAD BAD_EXPTIME quiet", NULL},
    {"touch k 1 2 3\r\n", "BAD ERROR", "touch [k] 1"},
    {"delete k\r\n", "delete [k]", NULL},
    {"delete k \n", "delete [k]", NULL},
    {"delete k noreply\r\n", "delete [k] noreply", NULL},
    {"delete k 0\r\n", "delete [k]", NULL},
    {"delete k 0 noreply\r\n", "delete [k] noreply", NULL},
    {"delete k 10 noreply\r\n", "BAD BAD_DELETE quiet", "delete [k] noreply"},
    {"delete k 0 0 noreply\r\n", "BAD ERROR", "delete [k] noreply"},
    {"delete noreply\r\n", "delete [noreply]", "delete [noreply] noreply"},
    {"delete noreply noreply\r\n", "delete [noreply] noreply", NULL},
    {"delete {250k}\r\n", "delete [250*k]", NULL},
    {"delete {251k} noreply\r\n", "BAD BAD_FORMAT quiet", NULL},
    /* the others */
    {"stats\r\n", "stats 1", NULL},
    {"stats settings\n", "stats 2 [settings]", NULL},
    {"stats  a b \r\n", "stats 3 [a] [b]", NULL},
    {"stats 1 2 3 4 5 6 7 8 9\r\n", "stats 10 [1] [2] [3] [4] [5] [6] [7]", NULL},
    {"stats noreply\r\n", "stats 2 [noreply]", NULL},
    {"version\r\n", "version 1", NULL},
    {"version \r\n", "version 1", NULL},
    {"version x\r\n", "BAD ERROR", "version 2 [x]"},
    {"quit\r\n", "quit 1", NULL},
    {"quit\n", "quit 1", NULL},
    {"shutdown\r\n", "shutdown 1", NULL},
    {"flush_all\r\n", "flush_all 1", NULL},
    {"flush_all 10\r\n", "flush_all 2 [10]", NULL},
    {"flush_all noreply\r\n", "flush_all 1 noreply", NULL},
    {"flush_all 10 noreply\r\n", "flush_all 2 [10] noreply", NULL},
    {"flush_all 10 noreply x\r\n", "BAD ERROR", "flush_all 4 [10] [noreply] [x]"},
    {"verbosity 1\r\n", "verbosity 2 [1]", NULL},
    {"verbosity 1 noreply\r\n", "verbosity 2 [1] noreply", NULL},
    {"verbosity 1 2 3\r\n", "BAD ERROR", "verbosity 4 [1] [2] [3]"},
    {"cache_memlimit 64\r\n", "cache_memlimit 2 [64]", NULL},
    {"slabs automove 1 noreply\r\n", "slabs 3 [automove] [1] noreply", NULL},
    {"slabs automove noreply\r\n", "slabs 2 [automove] noreply", NULL},
    {"slabs noreply\r\n", "slabs 2 [noreply]", "slabs 1 noreply"},
    {"slabs reassign 1 2 noreply\r\n", "slabs 5 [reassign] [1] [2] [noreply]",
     "slabs 4 [reassign] [1] [2] noreply"},
    {"lru noreply\r\n", "lru 1 noreply", NULL},
    {"lru_crawler enable noreply\r\n", "lru_crawler 3 [enable] [noreply]",
     "lru_crawler 2 [enable] noreply"},
    {"refresh_certs noreply\r\n", "refresh_certs 2 [noreply]", "refresh_certs 1 noreply"},
    {"shutdown noreply\r\n", "shutdown 1 noreply", NULL},
    {"shutdown graceful noreply\r\n", "BAD ERROR", "shutdown 2 [graceful] noreply"},
    {"cache_memlimit 64 noreply\r\n", "cache_memlimit 2 [64] noreply", NULL},
    {"cache_memlimit\r\n", "cache_memlimit 1", NULL},
    {"qos show\r\n", "qos 2 [show]", NULL},
    {"qos qps_limit 100 5\r\n", "qos 4 [qps_limit] [100] [5]", NULL},
    {"qos\r\n", "qos 1", NULL},
    {"debugtime 5\r\n", "debugtime 2 [5]", NULL},
    {"debugtime\r\n", "debugtime 1", NULL},
    /* nothing, or nothing known */
    {"x\r\n", ARITY}, /* shorter than any command */
    {"mn\n", "mn 1", "BAD BAD_FORMAT"},
    {"mn\r\n", "mn 1", NULL},
    {"GET / HTTP/1.1\r\n", "BAD ERROR", "CLOSE"},
    {"PUT /x HTTP/1.0\n", "BAD ERROR", "CLOSE"},
    {"DELETE HTTP/1.1\r\n", "BAD ERROR", "CLOSE"},
    {"get HTTP/1.1\r\n", "get [HTTP/1.1]", NULL},
};

/* Lines that are all answered alike. */
static const struct {
    const char *old, *now;
    const char *lines[27];
} bad_rows[] = {
    {ARITY, {"get\r\n",    "get \r\n",   "get    \n",     "gets\r\n",
             "gets \r\n",  "gat 10\r\n", "gat\r\n",       "gats \r\n",
             "set\r\n",    "set k\r\n",  "set k 1 2\r\n", "cas k 0 0\r\n",
             "incr k\r\n", "incr\r\n",   "decr\r\n",      "touch k\r\n",
             "touch\r\n",  "delete\r\n", "verbosity\r\n", "\r\n",
             "\n",         " \n",        " \r\n",         "    \r\n",
             "{500 }\r\n"}},
    {"BAD BAD_FORMAT",
     NULL,
     {"get {251k}\r\n",
      "get {251k}\n",
      "get a {251k}\r\n",
      "get {251k} a\r\n",
      "get a {251k} b\r\n",
      "gets a {251k} b\r\n",
      "get {30000k}\r\n",
      "gat 0 {251k}\r\n",
      "gats 0 a {251k}\r\n",
      "set k 0 0 2147483646\r\n",
      "set k 0 0 2147483647\r\n",
      "set k 0 0 4294967295\r\n",
      "set k 0 0 18446744073709551616\r\n",
      "set k 0 0 -1\r\n",
      "set k 0 0 x\r\n",
      "set k 0 0 3x\r\n",
      "set k x 0 -1\r\n",
      "incr {251k} 1\r\n",
      "touch {251k} 1\r\n",
      "delete {251k}\r\n"}},
    {"BAD BAD_EXPTIME",
     NULL,
     {"gat 2147483648 a\r\n", "gat -2147483649 a\r\n", "gat x a\r\n", "gat 1x a\r\n",
      "touch k 2147483648\r\n", "touch k -2147483649\r\n", "touch k +-1\r\n",
      "touch k x\r\n"}},
    {"BAD BAD_FORMAT",
     "BAD BAD_FORMAT swallow=5",
     {"set {251k} 0 0 3\r\n", "set k 18446744073709551616 0 3\r\n", "set k -1 0 3\r\n",
      "set k x 0 3\r\n", "set k 0x1 0 3\r\n", "set k + 0 3\r\n", "set k ++7 0 3\r\n",
      "set k 0 9223372036854775808 3\r\n", "set k 0 -9223372036854775809 3\r\n",
      "set k 0 +-9 3\r\n", "set k 0 1.5 3\r\n", "cas k 0 0 3 -1\r\n",
      "cas k 0 0 3 x\r\n"}},
    {"BAD BAD_DELTA",
     NULL,
     {"incr k 18446744073709551616\r\n", "incr k -1\r\n", "incr k x\r\n", "incr k 1x\r\n",
      "incr k 0x1\r\n", "incr k {1@}1\r\n", "incr k +\r\n", "incr k --0\r\n"}},
    {"BAD BAD_DELETE",
     "delete [k]",
     {"delete k 10\r\n", "delete k 00\r\n", "delete k noreply 0\r\n",
      "delete k 0 0\r\n"}},
    {"BAD ERROR",
     NULL,
     {"abc\n", "unknown\r\n", "unknown with words noreply\r\n", "GET a\r\n",
      "Set k 0 0 1\r\n", "getx a\r\n", "ge a\r\n", "get\ta\r\n", "get\ra\r\n",
      "{1@}get a\r\n", "get{1@} a\r\n", "{1@}{1@}{1@}{1@}\r\n", "\x80get a\r\n",
      "{30000x}\r\n", "GET / HTTP\r\n", "GET HTTP/1.1 x\r\n"}},
};

TEST_ROWS(test_lines, rows, row->line)
{
    check_row(row);
}

TEST_ROWS(test_bad_lines, bad_rows, row->old)
{
    for (unsigned i = 0; row->lines[i] != NULL; i++) {
        check_row(&(struct line_row){row->lines[i], row->old, row->now});
    }
}

/* What is skimmed is what the parser takes for a get, and has no more keys than were asked for. */
static void
check_skim(const char *line, size_t n)
{
    static const uint32_t limits[] = {1, 2, 3, 16, UINT32_MAX};
    for (unsigned i = 0; i < ROWS(limits); i++) {
        struct req req;
        size_t len = ascii_skim_get(line, n, limits[i]);
        if (len == 0) {
            continue;
        }
        struct parse parsed = ascii_parse(
            line, n, 0, false, rules_of((enum profile)(i % PROFILE_COUNT)), &req);
        ck_assert_int_eq(parsed.status, PARSE_DONE);
        ck_assert_uint_eq(parsed.consumed, len);
        ck_assert_int_eq(req.verb, VERB_GET);
        ck_assert_uint_le(req.keys, limits[i]);
    }
}

static uint32_t
count_one_by_one(const char *p, size_t n, bool *are_keys)
{
    uint32_t keys = 0;
    size_t len = 0;
    *are_keys = true;
    for (size_t i = 0; i < n; i++) {
        keys += p[i] != ' ' && len == 0;
        len = p[i] != ' ' ? len + 1 : 0;
        *are_keys &= len <= REQ_KEY_MAX;
    }
    return keys;
}

/* Words and blanks of any number, in memory that ends with them. */
TEST(test_counted_keys)
{
    static const unsigned longest[] = {3, 30, REQ_KEY_MAX + 2};
    struct rng rng = rng_of(12, 1);
    for (unsigned i = 0; i < 20000; i++) {
        char text[9000];
        size_t n = 0;
        unsigned words = 1 + (unsigned)rng_below(&rng, i % 100 == 0 ? 2000 : 40);
        while (words-- > 0 && n < 8000) {
            size_t len = 1 + (size_t)rng_below(&rng, longest[i % ROWS(longest)]);
            memset(text + n, 'k', len);
            n += len;
            do {
                text[n++] = ' ';
            } while (rng_below(&rng, 8) == 0);
        }
        char *exact = malloc(n);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, text, n);
        bool are_keys;
        uint32_t keys, expected = count_one_by_one(text, n, &are_keys);
        ck_assert_int_eq(ascii_count_keys((struct slice){exact, n}, &keys), are_keys);
        ck_assert_uint_eq(keys, expected);
        free(exact);
    }
}

TEST_ROWS(test_skim_of_rows, rows, row->line)
{
    char line[INPUT_MAX];
    check_skim(line, expand(row->line, line));
}

TEST_ROWS(test_skim_of_bad_lines, bad_rows, row->old)
{
    char line[INPUT_MAX];
    for (unsigned i = 0; row->lines[i] != NULL; i++) {
        check_skim(line, expand(row->lines[i], line));
    }
}

/* ---- sets cut in one go ---------------------------------------------------------------- */

static const struct {
    const char *line;
    const char *found; /* NULL: ascii_parse decides */
} set_rows[] = {
    {"set k 1 2 3\r\n", "k 1 2 3"},
    {"set k 1 2 3\n", "k 1 2 3"},
    {"set k 01 002 0003\r\n", "k 1 2 3"},
    {"set k 1 2 3 noreply\r\n", "k 1 2 3 noreply"},
    {"set k 1 2 3 noreply\n", "k 1 2 3 noreply"},
    {"set noreply 1 2 3\r\n", "noreply 1 2 3"},
    {"set k 4294967295 2147483647 2147483645\r\n", "k 4294967295 2147483647 2147483645"},
    {"set \xc3\xa4\x7f 1 2 3\r\n", "\xc3\xa4\x7f 1 2 3"},
    {"set k 4294967296 2 3\r\n", NULL},
    {"set k 1 2147483648 3\r\n", NULL},
    {"set k 1 2 2147483646\r\n", NULL},
    {"set k 00000000001 2 3\r\n", NULL},
    {"set k 18446744073709551617 2 3\r\n", NULL},
    {"set k 1 -2 3\r\n", NULL},
    {"set k 1 2 3 4\r\n", NULL},
    {"set k 1 2 3 \r\n", NULL},
    {"set k 1 2 3 noreply \r\n", NULL},
    {"set k 1 2 3 noreplyx\r\n", NULL},
    {"set k 1 2 3 norepl\r\n", NULL},
    {"set k 1 2 3\r\r\n", NULL},
    {"set k 1 2 3\rx\n", NULL},
    {"set k 1 2\r\n", NULL},
    {"set k 1\r\n", NULL},
    {"set k\r\n", NULL},
    {"set \r\n", NULL},
    {"set\r\n", NULL},
    {"set  k 1 2 3\r\n", NULL},
    {"set k  1 2 3\r\n", NULL},
    {"set k\t1 2 3\r\n", NULL},
    {"set k\tx 1 2 3\r\n", NULL},
    {"Set k 1 2 3\r\n", NULL},
    {"sets k 1 2 3\r\n", NULL},
    {"add k 1 2 3\r\n", NULL},
};

TEST_ROWS(test_cut_set, set_rows, row->line)
{
    size_t n = strlen(row->line);
    char found[128] = "";
    struct ascii_set set;
    for (unsigned scrap = 0; scrap <= n; scrap++) { /* the whole line, or a part of it */
        char *line = malloc(n - scrap + ASCII_CUT_SLACK);
        ck_assert_ptr_nonnull(line);
        memcpy(line, row->line, n - scrap);
        memcpy(line + n - scrap, "\n123456789abcdef", ASCII_CUT_SLACK);
        size_t len = ascii_cut_set(line, line + n - scrap, &set);
        ck_assert_uint_eq(len, scrap == 0 && row->found != NULL ? n : 0);
        if (len > 0) {
            snprintf(found, sizeof found, "%.*s %u %d %u%s", (int)set.key.len, set.key.p,
                     set.flags, set.exptime, set.value_len,
                     set.is_noreply ? " noreply" : "");
        }
        free(line);
    }
    ck_assert_str_eq(found, row->found != NULL ? row->found : "");
}

TEST(test_cut_set_of_long_keys)
{
    char line[INPUT_MAX];
    struct ascii_set set;
    size_t n = expand("set {250k} 1 2 3\r\n", line);
    ck_assert_uint_eq(ascii_cut_set(line, line + n, &set), n);
    ck_assert_uint_eq(set.key.len, 250);
    n = expand("set {251k} 1 2 3\r\n", line);
    ck_assert_uint_eq(ascii_cut_set(line, line + n, &set), 0);
}

TEST(test_skim)
{
    char line[INPUT_MAX];
    ck_assert_uint_eq(ascii_skim_get(line, expand("get a\r\nget b\r\n", line), 1), 7);
    ck_assert_uint_eq(ascii_skim_get(line, expand("get a b\n", line), 2), 8);
    ck_assert_uint_eq(ascii_skim_get(line, expand("get a b\r\n", line), 1), 0);
    ck_assert_uint_eq(ascii_skim_get(line, expand("get {250k} b {250m}\r\n", line), 3),
                      509);
    ck_assert_uint_eq(ascii_skim_get(line, expand("get {9000k}\r\n", line), 3), 0);
    struct rng rng = rng_of(11, 1);
    for (unsigned i = 0; i < 20000; i++) {
        static const char parts[] = "  a\r\nkg";
        size_t n = expand("get ", line);
        size_t more = (size_t)rng_below(&rng, i % 7 == 0 ? 900 : 40);
        while (n < more) {
            bool is_odd = rng_below(&rng, 30) == 0;
            line[n++] = is_odd ? parts[rng_below(&rng, sizeof parts - 1)] : 'k';
        }
        n += expand("\r\n", line + n);
        check_skim(line, n);
    }
}
