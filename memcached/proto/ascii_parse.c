/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/ascii.h"

#include "base/num.h"
#include "proto/meta.h"

#define LEADING_BLANKS_MAX 100 /* of a line that has not ended yet */

enum noreply { NOREPLY_NEVER, NOREPLY_LATER, NOREPLY_ALWAYS };

struct verb_row {
    const char *wire;
    size_t len;
    enum verb_family family;
    unsigned words_min, words_max;
    enum noreply noreply;
};

static const struct verb_row verbs[VERB_COUNT] = {
#define VERB(id, wire, family, min, max, noreply)                                        \
    [VERB_##id] = {wire, sizeof(wire) - 1, FAMILY_##family, min, max, NOREPLY_##noreply},
#include "proto/verb.def"
#undef VERB
};

bool
req_next_word(struct slice *rest, struct slice *word)
{
    const char *p = rest->p;
    const char *end = p + rest->len;
    while (p < end && *p == ' ') {
        p++;
    }
    if (p == end) {
        *rest = (struct slice){end, 0};
        return false;
    }
    const char *blank = memchr(p, ' ', (size_t)(end - p));
    const char *stop = blank != NULL ? blank : end;
    *word = (struct slice){p, (size_t)(stop - p)};
    *rest = (struct slice){stop, (size_t)(end - stop)};
    return true;
}

struct slice
req_cut_words(struct slice text, struct req *req)
{
    struct slice word = {NULL, 0};
    while (req_next_word(&text, &word)) {
        if (req->words < REQ_WORDS_MAX) {
            req->word[req->words] = word;
        }
        req->words++;
    }
    return word;
}

bool
req_word_is(struct slice word, const char *text)
{
    return strlen(text) == word.len && memcmp(word.p, text, word.len) == 0;
}

/* ---- results -------------------------------------------------------------------------- */

bool
req_begins(struct slice text, const char *with)
{
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.p, with, len) == 0;
}

static struct parse
done(size_t consumed)
{
    return (struct parse){.status = PARSE_DONE, .consumed = consumed};
}

static struct parse
bad(size_t consumed, enum reply reply, bool is_quiet)
{
    return (struct parse){
        .status = PARSE_BAD, .consumed = consumed, .reply = reply, .is_quiet = is_quiet};
}

static enum reply
arity_error(const struct rules *rules)
{
    return rules->arity_is_format_error ? REPLY_BAD_FORMAT : REPLY_ERROR;
}

/* ---- numbers -------------------------------------------------------------------------- */

bool
req_digits_u64(struct slice word, uint64_t *out)
{
    int64_t zero;
    if (likely(num_u64(word.p, word.len, out))) {
        return true;
    }
    if (!num_i64(word.p, word.len, &zero) || zero != 0) {
        return false;
    }
    *out = 0;
    return true;
}

bool
req_word_u64(struct slice word, const struct rules *rules, uint64_t *out)
{
    if (likely(num_u64(word.p, word.len, out))) {
        return true;
    }
    return rules->numbers_are_loose ? num_u64_loose(word.p, word.len, out)
                                    : req_digits_u64(word, out);
}

bool
req_word_i64(struct slice word, const struct rules *rules, int64_t *out)
{
    return num_i64(word.p, word.len, out) ||
           (rules->numbers_are_loose && num_i64_loose(word.p, word.len, out));
}

static bool
word_i32(struct slice word, const struct rules *rules, int64_t *out)
{
    return req_word_i64(word, rules, out) && *out >= INT32_MIN && *out <= INT32_MAX;
}

bool
req_admin_u64(struct slice word, const struct rules *rules, uint64_t *out)
{
    return req_word_u64(word, rules, out) && !(rules->strict_admin && *out > UINT32_MAX);
}

bool
req_admin_i64(struct slice word, const struct rules *rules, int64_t *out)
{
    return rules->strict_admin ? word_i32(word, rules, out)
                               : req_word_i64(word, rules, out);
}

static bool
is_digits(struct slice word)
{
    size_t sign = word.len > 0 && (word.p[0] == '-' || word.p[0] == '+');
    for (size_t i = sign; i < word.len; i++) {
        if (word.p[i] < '0' || word.p[i] > '9') {
            return false;
        }
    }
    return word.len > sign;
}

bool
req_admin_i64_or_0(struct slice word, const struct rules *rules, int64_t *out)
{
    *out = 0;
    return req_admin_i64(word, rules, out) || (!rules->strict_admin && !is_digits(word));
}

bool
req_admin_level(struct slice word, const struct rules *rules, int64_t *out)
{
    uint64_t level;
    if (!rules->strict_admin) {
        return req_admin_i64_or_0(word, rules, out);
    }
    if (!req_admin_u64(word, rules, &level)) {
        return false;
    }
    *out = (int64_t)level;
    return true;
}

/* ---- lines ---------------------------------------------------------------------------- */

static bool
find_verb(struct slice word, const struct rules *rules, enum verb *verb)
{
    for (unsigned i = 0; i < VERB_COUNT; i++) {
        if (verbs[i].len == word.len && memcmp(verbs[i].wire, word.p, word.len) == 0) {
            *verb = (enum verb)i;
            return i != VERB_BGET || rules->has_bget;
        }
    }
    return false;
}

static bool
is_key(struct slice word)
{
    return word.len <= REQ_KEY_MAX;
}

static bool
may_have_noreply(const struct req *req, const struct rules *rules)
{
    switch (verbs[req->verb].noreply) {
    case NOREPLY_NEVER:
        return false;
    case NOREPLY_LATER: /* of slabs, 1.4.39 hears it behind automove */
        return rules->noreply_is_wide ||
               (req->words > 2 && req_word_is(req->word[1], "automove"));
    default:
        return rules->noreply_is_wide || req->family != FAMILY_DELETE || req->words > 2;
    }
}

static bool
has_right_word_count(const struct req *req, const struct rules *rules)
{
    const struct verb_row *row = &verbs[req->verb];
    return req->words >= row->words_min &&
           (row->words_max == 0 || req->words <= row->words_max ||
            rules->ignores_extra_words);
}

/* ---- families ------------------------------------------------------------------------- */

static struct slice
trim(struct slice text)
{
    while (text.len > 0 && text.p[0] == ' ') {
        text.p++;
        text.len--;
    }
    while (text.len > 0 && text.p[text.len - 1] == ' ') {
        text.len--;
    }
    return text;
}

/* Cuts the first word off *words, which has neither leading nor trailing blanks, before or
 * after: there is another one. */
static struct slice
cut_word(struct slice *words)
{
    const char *blank = memchr(words->p, ' ', words->len);
    must(blank != NULL);
    struct slice word = {words->p, (size_t)(blank - words->p)};
    while (*++blank == ' ') {
    }
    words->len -= (size_t)(blank - words->p);
    words->p = blank;
    return word;
}

/* Counts the keys of req->rest and cuts off the blanks around them. False when one is too
 * long. */
static bool
count_keys(struct req *req)
{
    req->rest = trim(req->rest);
    req->keys = 0;
    return req->rest.len == 0 || ascii_count_keys(req->rest, &req->keys);
}

struct slice
req_next_key(struct req *req)
{
    must(req->keys > 0);
    req->keys--;
    if (req->keys > 0) {
        return cut_word(&req->rest);
    }
    struct slice last = req->rest;
    req->rest.len = 0;
    return last;
}

static struct parse
parse_retrieve(struct slice rest, size_t consumed, const struct rules *rules,
               struct req *req)
{
    if (req->verb == VERB_GAT || req->verb == VERB_GATS) {
        struct slice word;
        if (!req_next_word(&rest, &word)) {
            return bad(consumed, arity_error(rules), false);
        }
        if (!word_i32(word, rules, &req->exptime)) {
            return bad(consumed, REPLY_BAD_EXPTIME, false);
        }
    }
    req->rest = rest;
    if (!count_keys(req)) {
        return bad(consumed, REPLY_BAD_FORMAT, false);
    }
    if (req->keys == 0) {
        return bad(consumed, arity_error(rules), false);
    }
    return done(consumed);
}

/* The length word of a storage line, if there is a valid one. */
static bool
parse_value_len(const struct req *req, const struct rules *rules, uint32_t *out)
{
    int64_t len;
    if (req->words < 5 || !req_word_i64(req->word[4], rules, &len) || len < 0 ||
        len > REQ_VALUE_MAX) {
        return false;
    }
    *out = (uint32_t)len;
    return true;
}

static struct parse
bad_store(size_t consumed, const struct rules *rules, const struct req *req,
          enum reply reply, bool has_len)
{
    struct parse result = bad(consumed, reply, req->is_noreply);
    if (has_len && rules->swallows_bad_store) {
        result.swallow = (uint64_t)req->value_len + 2;
    }
    return result;
}

static struct parse
parse_store(size_t consumed, const struct rules *rules, struct req *req)
{
    bool has_len = parse_value_len(req, rules, &req->value_len);
    if (!has_right_word_count(req, rules)) {
        bool is_quiet = rules->arity_is_format_error && req->is_noreply;
        req->is_noreply = is_quiet;
        return bad_store(consumed, rules, req, arity_error(rules), has_len);
    }
    uint64_t flags;
    int64_t exptime;
    if (!has_len || !is_key(req->word[1]) || !req_word_u64(req->word[2], rules, &flags) ||
        !req_word_i64(req->word[3], rules, &exptime) ||
        (req->verb == VERB_CAS && !req_word_u64(req->word[5], rules, &req->number))) {
        return bad_store(consumed, rules, req, REPLY_BAD_FORMAT, has_len);
    }
    req->key = req->word[1];
    req->flags = (uint32_t)flags;    /* wider flags are cut, as they always were */
    req->exptime = (int32_t)exptime; /* likewise */
    return done(consumed);
}

static struct parse
parse_delete(size_t consumed, const struct rules *rules, struct req *req)
{
    if (!rules->ignores_extra_words && req->words > 2) {
        bool has_zero = req_word_is(req->word[2], "0");
        bool is_valid =
            req->words == 3 ? has_zero || req->is_noreply : has_zero && req->is_noreply;
        if (!is_valid) {
            return bad(consumed, REPLY_BAD_DELETE, req->is_noreply);
        }
    }
    return done(consumed);
}

/* incr, decr, touch, delete: a key, then at most one number. */
static struct parse
parse_keyed(size_t consumed, const struct rules *rules, struct req *req)
{
    req->key = req->word[1];
    if (!is_key(req->key)) {
        return bad(consumed, REPLY_BAD_FORMAT, req->is_noreply);
    }
    switch (req->family) {
    case FAMILY_ARITH:
        if (!req_word_u64(req->word[2], rules, &req->number)) {
            return bad(consumed, REPLY_BAD_DELTA, req->is_noreply);
        }
        return done(consumed);
    case FAMILY_TOUCH:
        if (!word_i32(req->word[2], rules, &req->exptime)) {
            return bad(consumed, REPLY_BAD_EXPTIME, req->is_noreply);
        }
        return done(consumed);
    default:
        return parse_delete(consumed, rules, req);
    }
}

static struct parse
parse_words(struct slice text, size_t consumed, const struct rules *rules,
            struct req *req)
{
    req->words = 0;
    struct slice last = req_cut_words(text, req);
    req->is_noreply =
        req->words > 1 && req_word_is(last, "noreply") && may_have_noreply(req, rules);
    if (req->family == FAMILY_STORE) {
        return parse_store(consumed, rules, req);
    }
    if (!has_right_word_count(req, rules)) {
        return bad(consumed, arity_error(rules), false);
    }
    if (req->family == FAMILY_ADMIN || req->family == FAMILY_CONTROL) {
        req->rest = text;
        req->words -= req->is_noreply;
        return done(consumed);
    }
    return parse_keyed(consumed, rules, req);
}

static bool
starts_with(const char *p, size_t n, const char *text, size_t len)
{
    return n >= len && memcmp(p, text, len) == 0;
}

static bool
is_http(struct slice text)
{
    struct slice word = {NULL, 0};
    while (req_next_word(&text, &word)) {
    }
    return word.len >= 5 && memcmp(word.p, "HTTP/", 5) == 0;
}

/* A line that ends in front of `end` and is like most of its kind. */
static bool
cut_set(const char *p, const char *end, struct req *req)
{
    struct ascii_set set;
    if (ascii_cut_set(p, end, &set) == 0) {
        return false;
    }
    req->verb = VERB_SET;
    req->family = FAMILY_STORE;
    req->key = set.key;
    req->flags = set.flags;
    req->exptime = set.exptime;
    req->value_len = set.value_len;
    req->is_noreply = set.is_noreply;
    return true;
}

/* A whole line: text without its line end, consumed bytes with it, and so many behind it. */
static struct parse
parse_line(struct slice text, size_t consumed, size_t behind, const struct rules *rules,
           struct req *req)
{
    struct slice rest = text;
    struct slice word;
    if (starts_with(text.p, text.len, "get ", 4)) { /* nearly all lines */
        req->verb = VERB_GET;
        req->family = FAMILY_RETRIEVE;
        return parse_retrieve((struct slice){text.p + 4, text.len - 4}, consumed, rules,
                              req);
    }
    if (behind + 1 >= ASCII_CUT_SLACK && cut_set(text.p, text.p + consumed, req)) {
        return done(consumed);
    }
    if (consumed < rules->line_min) {
        return bad(consumed, REPLY_BAD_FORMAT, false);
    }
    if (!req_next_word(&rest, &word)) {
        return bad(consumed, arity_error(rules), false);
    }
    if ((text.p[0] == ' ' && rules->blank_begins_no_command) ||
        !find_verb(word, rules, &req->verb)) {
        if (rules->closes_on_http && is_http(text)) {
            return (struct parse){.status = PARSE_CLOSE};
        }
        return bad(consumed, REPLY_ERROR, false);
    }
    req->family = verbs[req->verb].family;
    if (req->family == FAMILY_RETRIEVE) {
        return parse_retrieve(rest, consumed, rules, req);
    }
    if (req->family == FAMILY_META || req->verb == VERB_MS) {
        return meta_parse(rest, consumed, req);
    }
    return parse_words(text, consumed, rules, req);
}

/* ---- lines that have not ended -------------------------------------------------------- */

static struct parse
bad_open(size_t consumed, enum reply reply)
{
    struct parse result = bad(consumed, reply, false);
    result.skips_line = true;
    return result;
}

/* Takes the whole keys of an unfinished key list; the last word may be cut short and stays. */
static struct parse
parse_open_keys(const char *p, size_t n, size_t skip, struct req *req)
{
    const char *blank = memrchr(p + skip, ' ', n - skip);
    size_t whole = blank != NULL ? (size_t)(blank - p) + 1 : skip;
    req->is_open = true;
    req->rest = (struct slice){p + skip, whole - skip};
    size_t cut = n - whole - (p[n - 1] == '\r'); /* that may belong to the line's end */
    if (cut > REQ_KEY_MAX || !count_keys(req)) {
        return bad_open(n, REPLY_BAD_FORMAT);
    }
    req->has_keys |= req->keys > 0;
    return done(whole);
}

static struct parse
parse_unfinished(const char *p, size_t n, bool is_full, const struct rules *rules,
                 struct req *req)
{
    if (n <= rules->line_max && !is_full) {
        return (struct parse){.status = PARSE_MORE};
    }
    size_t blanks = 0;
    while (blanks < n && p[blanks] == ' ') {
        blanks++;
    }
    bool is_get = starts_with(p + blanks, n - blanks, "get ", 4);
    bool is_gets = starts_with(p + blanks, n - blanks, "gets ", 5);
    if (blanks > LEADING_BLANKS_MAX || !(is_get || is_gets)) {
        return (struct parse){.status = PARSE_CLOSE};
    }
    if (!is_full) {
        return (struct parse){.status = PARSE_MORE};
    }
    if (blanks > 0 && rules->blank_begins_no_command) {
        return bad_open(n, REPLY_ERROR);
    }
    req->verb = is_get ? VERB_GET : VERB_GETS;
    req->family = FAMILY_RETRIEVE;
    return parse_open_keys(p, n, blanks + verbs[req->verb].len, req);
}

static size_t
text_len(const char *p, size_t line_feed)
{
    return line_feed > 0 && p[line_feed - 1] == '\r' ? line_feed - 1 : line_feed;
}

struct parse
ascii_parse(const char *p, size_t n, size_t scanned, bool is_full,
            const struct rules *rules, struct req *req)
{
    must(scanned <= n);
    const char *line_feed = n > scanned ? memchr(p + scanned, '\n', n - scanned) : NULL;
    req->is_noreply = false;
    req->is_open = false;
    req->has_keys = false;
    req->keys = 1;
    if (line_feed == NULL) {
        return parse_unfinished(p, n, is_full, rules, req);
    }
    size_t len = (size_t)(line_feed - p);
    return parse_line((struct slice){p, text_len(p, len)}, len + 1, n - len - 1, rules,
                      req);
}

struct parse
ascii_parse_keys(const char *p, size_t n, bool is_full, const struct rules *rules,
                 struct req *req)
{
    const char *line_feed = n > 0 ? memchr(p, '\n', n) : NULL;
    if (line_feed == NULL) {
        return is_full ? parse_open_keys(p, n, 0, req)
                       : (struct parse){.status = PARSE_MORE};
    }
    size_t len = (size_t)(line_feed - p);
    req->is_open = false;
    req->rest = (struct slice){p, text_len(p, len)};
    if (!count_keys(req)) {
        return bad(len + 1, REPLY_BAD_FORMAT, false);
    }
    return req->has_keys || req->keys > 0 ? done(len + 1)
                                          : bad(len + 1, arity_error(rules), false);
}
