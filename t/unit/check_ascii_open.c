/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Lines that have not ended: those to wait for, those to close upon, and key lists longer
 * than the buffer.
 */
#include "check_ascii.h"
#include "check_main.h"

/* ---- lines that do not end ------------------------------------------------------------ */

static const struct {
    const char *text;
    bool is_full;
    const char *old, *now;
} unfinished_rows[] = {
    {"", false, "MORE", NULL},
    {"{1024x}", false, "MORE", NULL},
    {"{1025x}", false, "CLOSE", "MORE"},
    {"{2048x}", false, "CLOSE", "MORE"},
    {"{2049x}", false, "CLOSE", NULL},
    {"{1024 }", false, "MORE", NULL},
    {"{2048 }", false, "CLOSE", "MORE"},
    {"{4095 }", false, "CLOSE", NULL},
    {"{14000 }", false, "CLOSE", NULL},
    {"{100 }get {2000k}", false, "MORE", NULL},
    {"{101 }get {2000k}", false, "CLOSE", NULL},
    {"{100 }gets {2000k}", false, "MORE", NULL},
    {"{101 }gets foo{3985 }", false, "CLOSE", NULL},
    {"get {4000k}", false, "MORE", NULL},
    {"gets {4000k}", false, "MORE", NULL},
    {"get {2048 }manyspaces", false, "MORE", NULL},
    {"get{4000 }", false, "MORE", NULL},
    {"get{4000k}", false, "CLOSE", NULL},
    {"bget {4000k}", false, "CLOSE", NULL},
    {"gat 0 {4000k}", false, "CLOSE", NULL},
    {"gats 0 {4000k}", false, "CLOSE", NULL},
    {"incr {2048 }manyspaces 1", false, "CLOSE", NULL},
    {"set {4000k}", false, "CLOSE", NULL},
    {"{4000@}", false, "CLOSE", NULL},
    /* the buffer takes no more */
    {"get {3000k}", true, "BAD BAD_FORMAT skip", NULL},
    {"get a {3000k}", true, "BAD BAD_FORMAT skip", NULL},
    {"get a {3000k} ", true, "BAD BAD_FORMAT skip", NULL},
    {"get {251k} {2000 }", true, "BAD BAD_FORMAT skip", NULL},
    {"get a{3000 }{250k}\r", true, "get [a] open", NULL},
    {"get {3000 }a", true, "get  open", NULL},
    {"get a{3000 }b", true, "get [a] open", NULL},
    {"get a{3000 }{250k}", true, "get [a] open", NULL},
    {"get a{3000 }{250k} ", true, "get [a][250*k] open", NULL},
    {"gets a b c{3000 }", true, "gets [a][b][c] open", NULL},
    {"{100 }gets a b{3000 }c", true, "gets [a][b] open", "BAD ERROR skip"},
    {"{101 }gets a b{3000 }c", true, "CLOSE", NULL},
    {"gat 0 a{3000 }b", true, "CLOSE", NULL},
    {"set {3000k}", true, "CLOSE", NULL},
};

TEST_ROWS(test_unfinished, unfinished_rows, row->text)
{
    char input[INPUT_MAX];
    char result[RESULT_MAX];
    size_t n = expand(row->text, input);
    for (unsigned profile = 0; profile < PROFILE_COUNT; profile++) {
        const char *expected =
            profile != PROFILE_14 && row->now != NULL ? row->now : row->old;
        for (size_t scanned = 0; scanned <= n; scanned += n / 7 + 1) {
            size_t consumed =
                parse(input, n, scanned, row->is_full, (enum profile)profile, result);
            ck_assert_str_eq(result, expected);
            if (strstr(result, "skip") != NULL) {
                ck_assert_uint_eq(consumed, n);
            } else if (strstr(result, "open") != NULL) {
                ck_assert_int_eq(input[consumed - 1], ' ');
                ck_assert_ptr_null(memchr(input + consumed, ' ', n - consumed));
            } else {
                ck_assert_uint_eq(consumed, 0);
            }
        }
    }
}

/* ---- open lines ----------------------------------------------------------------------- */

#define WINDOW_MIN 300 /* holds verb, one key and a blank */
#define LINE_KEYS 300

/* A line of numbered keys; each number says how long its key is. */
static size_t
make_line(struct rng *rng, enum profile profile, char *dst)
{
    size_t n = 0;
    bool may_begin = !rules_of(profile)->blank_begins_no_command;
    n +=
        (size_t)sprintf(dst, "%*s", may_begin ? (int)rng_below(rng, 30) + 5 : 0, "gets ");
    for (unsigned i = 0; i < LINE_KEYS; i++) {
        size_t len = 10 + (size_t)rng_below(rng, rng_below(rng, 5) == 0 ? 240 : 20);
        int digits = sprintf(dst + n, "%u:%zu:", i, len);
        memset(dst + n + digits, 'k', len - (size_t)digits);
        n += len;
        size_t blanks = 1 + (size_t)rng_below(rng, rng_below(rng, 9) == 0 ? 400 : 3);
        memset(dst + n, ' ', blanks);
        n += blanks;
    }
    if (rng_below(rng, 2) == 0) {
        while (dst[n - 1] == ' ') {
            n--;
        }
    }
    memcpy(dst + n, "\r\n", 2);
    return n + 2;
}

static unsigned
check_keys(struct req *req, unsigned number)
{
    while (req->keys > 0) {
        struct slice key = req_next_key(req);
        char head[32];
        size_t n = (size_t)sprintf(head, "%u:%zu:", number, key.len);
        expect(key.len >= n && memcmp(key.p, head, n) == 0);
        number++;
    }
    return number;
}

/* Parses the line through a window that moves on by what was consumed. */
static void
check_windows(const char *line, size_t n, size_t window, enum profile profile)
{
    struct req req = {.is_open = false};
    unsigned number = 0;
    size_t at = 0;
    while (at < n) {
        bool is_full = n - at >= window;
        size_t seen = is_full ? window : n - at;
        FREED char *p = exact_copy(line + at, seen);
        struct parse parsed =
            req.is_open ? ascii_parse_keys(p, seen, is_full, rules_of(profile), &req)
                        : ascii_parse(p, seen, 0, is_full, rules_of(profile), &req);
        expect(parsed.status == PARSE_DONE);
        expect(parsed.consumed > 0);
        expect(req.verb == VERB_GETS && req.family == FAMILY_RETRIEVE);
        expect(!req.is_noreply);
        number = check_keys(&req, number);
        at += parsed.consumed;
        expect(req.is_open == (at < n));
    }
    ck_assert_uint_eq(number, LINE_KEYS);
}

TEST_LOOP(test_open_lines, 5)
{
    static char line[LINE_KEYS * 700];
    struct rng rng = rng_of(11, (uint64_t)_i);
    for (int i = 0; i < 20; i++) {
        enum profile profile = (enum profile)(i % PROFILE_COUNT);
        size_t n = make_line(&rng, profile, line);
        size_t window = WINDOW_MIN + (size_t)rng_below(&rng, i % 4 == 0 ? 20000 : 600);
        check_windows(line, n, window, profile);
    }
}

static const struct {
    const char *text;
    bool is_full;
    const char *expected;
    size_t consumed;
} keys_rows[] = {
    {"", false, "MORE", 0},
    {"a b", false, "MORE", 0},
    {"{300k}", false, "MORE", 0},
    {"a b\r\n", false, "get [a][b]", 5},
    {"a b\n", false, "get [a][b]", 4},
    {"a b\r\nget c\r\n", false, "get [a][b]", 5},
    {"\r\n", false, "get ", 2},
    {"\n", false, "get ", 1},
    {"  \r\n", false, "get ", 4},
    {"{250k}\r\n", false, "get [250*k]", 252},
    {"{251k}\r\n", false, "BAD BAD_FORMAT", 253},
    {"a {251k} b\r\n", false, "BAD BAD_FORMAT", 257},
    {"a b\r\n", true, "get [a][b]", 5},
    {"a b c", true, "get [a][b] open", 4},
    {"a b ", true, "get [a][b] open", 4},
    {"    ", true, "get  open", 4},
    {"a {250k}", true, "get [a] open", 2},
    {"a {250k}\r", true, "get [a] open", 2},
    {"a {252k}", true, "BAD BAD_FORMAT skip", 254},
    {"{252k} a", true, "BAD BAD_FORMAT skip", 254},
};

TEST_ROWS(test_keys_of_open_lines, keys_rows, row->text)
{
    char input[INPUT_MAX];
    char result[RESULT_MAX];
    size_t n = expand(row->text, input);
    FREED char *copy = exact_copy(input, n);
    struct req req = {
        .verb = VERB_GET, .family = FAMILY_RETRIEVE, .is_open = true, .has_keys = true};
    struct parse parsed =
        ascii_parse_keys(copy, n, row->is_full, rules_of(PROFILE_14), &req);
    ck_assert_str_eq(describe(parsed, &req, result), row->expected);
    ck_assert_uint_eq(parsed.consumed, row->consumed);
}

/* ---- any bytes ------------------------------------------------------------------------ */

/* Whatever comes, the parser stays inside, ends, and consumes whole lines only. */
TEST_LOOP(test_random_bytes, 3)
{
    static const char *const words[] = {
        "get",     "gets",        "gat",    "set",    "cas",
        "incr",    "touch",       "delete", "stats",  "flush",
        "noreply", "0",           "1",      "-1",     "+2",
        "k",       "99999999999", " ",      "  ",     "\r",
        "\r\n",    "\n",          "\t",     "HTTP/1", "18446744073709551616"};
    struct rng rng = rng_of(12, (uint64_t)_i);
    for (int i = 0; i < 5000; i++) {
        char input[400];
        char result[RESULT_MAX];
        size_t n = 0;
        unsigned count = (unsigned)rng_below(&rng, 9);
        for (unsigned w = 0; w < count; w++) {
            const char *word = words[rng_below(&rng, sizeof words / sizeof words[0])];
            n += (size_t)sprintf(input + n, "%s%s", word, rng_below(&rng, 9) ? " " : "");
        }
        if (n > 0 && rng_below(&rng, 3) == 0) {
            input[rng_below(&rng, n)] = (char)rng_u64(&rng);
        }
        const char *line_feed = memchr(input, '\n', n);
        enum profile profile = (enum profile)rng_below(&rng, PROFILE_COUNT);
        size_t consumed = parse(input, n, 0, false, profile, result);
        if (line_feed == NULL) {
            expect(strcmp(result, "MORE") == 0 && consumed == 0);
        } else {
            expect(strcmp(result, "MORE") != 0);
            expect(consumed == (size_t)(line_feed - input) + 1 ||
                   strcmp(result, "CLOSE") == 0);
        }
    }
}

TEST(test_words)
{
    struct slice rest = {"  a  bc ", 8}, word;
    ck_assert(req_next_word(&rest, &word));
    ck_assert(req_word_is(word, "a"));
    ck_assert(req_next_word(&rest, &word));
    ck_assert(req_word_is(word, "bc"));
    ck_assert(!req_word_is(word, "b") && !req_word_is(word, "bcd"));
    ck_assert(!req_next_word(&rest, &word));
    ck_assert(!req_next_word(&rest, &word));
    rest = (struct slice){"", 0};
    ck_assert(!req_next_word(&rest, &word));
}
