/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/client.h"

#include <assert.h>

#include "base/num.h"

#define TERMINATOR_LEN 2 /* CR LF */
#define DIGITS_32 9      /* of any such number */
#define HIT_MIN (sizeof "VALUE k 0 0\r\n\r\nEND\r\n" - 1)

/* ---- requests ---------------------------------------------------------------------- */

static size_t
put(char *dst, const char *src, size_t len)
{
    memcpy(dst, src, len);
    return len;
}

static size_t
put_text(char *dst, const char *text)
{
    return put(dst, text, strlen(text));
}

static size_t
put_field(char *dst, uint64_t number)
{
    *dst = ' ';
    return 1 + num_put_u64(dst + 1, number);
}

size_t
client_put_get(char *dst, bool with_cas)
{
    return with_cas ? put(dst, "gets", 4) : put(dst, "get", 3);
}

size_t
client_put_key(char *dst, const char *key, size_t key_len)
{
    must(key_len >= 1 && key_len <= CLIENT_KEY_MAX);
    *dst = ' ';
    return 1 + put(dst + 1, key, key_len);
}

size_t
client_put_end(char *dst)
{
    return put(dst, "\r\n", TERMINATOR_LEN);
}

size_t
client_put_store(char *dst, const struct client_store *store)
{
    size_t n = put_text(dst, store->verb);
    n += client_put_key(dst + n, store->key, store->key_len);
    n += put_field(dst + n, store->flags);
    if (store->exptime < 0) {
        n += put(dst + n, " -", 2);
        n += num_put_u64(dst + n, (uint64_t)(-(int64_t)store->exptime));
    } else {
        n += put_field(dst + n, (uint64_t)store->exptime);
    }
    n += put_field(dst + n, store->value_len);
    if (strcmp(store->verb, "cas") == 0) {
        n += put_field(dst + n, store->cas);
    }
    if (store->is_quiet) {
        n += put_text(dst + n, " noreply");
    }
    return n + client_put_end(dst + n);
}

size_t
client_put_delete(char *dst, const char *key, size_t key_len)
{
    size_t n = put_text(dst, "delete");
    n += client_put_key(dst + n, key, key_len);
    return n + client_put_end(dst + n);
}

size_t
client_put_number(char *dst, const char *verb, const char *key, size_t key_len,
                  uint64_t number)
{
    size_t n = put_text(dst, verb);
    n += client_put_key(dst + n, key, key_len);
    n += put_field(dst + n, number);
    return n + client_put_end(dst + n);
}

/* ---- replies ----------------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Those from END to RESET, and ERROR, are replies of one fixed line. */
static const char *const kind_names[] = {
    [CLIENT_MORE] = "more",
    [CLIENT_VALUE] = "VALUE",
    [CLIENT_DATA] = "data",
    [CLIENT_END] = "END",
    [CLIENT_STORED] = "STORED",
    [CLIENT_NOT_STORED] = "NOT_STORED",
    [CLIENT_EXISTS] = "EXISTS",
    [CLIENT_NOT_FOUND] = "NOT_FOUND",
    [CLIENT_DELETED] = "DELETED",
    [CLIENT_TOUCHED] = "TOUCHED",
    [CLIENT_OK] = "OK",
    [CLIENT_RESET] = "RESET",
    [CLIENT_NUMBER] = "number",
    [CLIENT_STAT] = "STAT",
    [CLIENT_VERSION] = "VERSION",
    [CLIENT_ERROR] = "ERROR",
    [CLIENT_CLIENT_ERROR] = "CLIENT_ERROR",
    [CLIENT_SERVER_ERROR] = "SERVER_ERROR",
    [CLIENT_DESYNC] = "desync",
};
static_assert(COUNT(kind_names) == CLIENT_KINDS, "one name a kind");

/* Replies that carry text behind a first word. */
static const struct {
    const char *prefix;
    enum client_kind kind;
} text_replies[] = {
    {"STAT ", CLIENT_STAT},
    {"VERSION ", CLIENT_VERSION},
    {"CLIENT_ERROR", CLIENT_CLIENT_ERROR},
    {"SERVER_ERROR", CLIENT_SERVER_ERROR},
    {"ERROR ", CLIENT_ERROR}, /* as 1.4 answers too many connections */
};

/* "VALUE key flags bytes[ cas]" */
static enum client_kind
parse_value_line(struct client_parser *p, struct client_text line,
                 struct client_reply *reply)
{
    struct client_text rest = line;
    client_take_word(&rest);
    struct client_text key = client_take_word(&rest);
    struct client_text flags = client_take_word(&rest);
    struct client_text bytes = client_take_word(&rest);
    if (key.len == 0 || key.len > CLIENT_KEY_MAX ||
        !num_u32(flags.p, flags.len, &reply->flags) ||
        !num_u64(bytes.p, bytes.len, &reply->value_len)) {
        return CLIENT_DESYNC;
    }
    if (rest.len > 0) {
        if (!num_u64(rest.p, rest.len, &reply->cas)) {
            return CLIENT_DESYNC;
        }
        reply->has_cas = true;
    }
    reply->key = key.p;
    reply->key_len = key.len;
    p->in.data_left = reply->value_len;
    p->in.terminator_len = TERMINATOR_LEN;
    return CLIENT_VALUE;
}

enum client_kind
client_parse_text(struct client_text line, struct client_reply *reply)
{
    for (size_t i = 0; i < COUNT(text_replies); i++) {
        if (client_has_prefix(line, text_replies[i].prefix)) {
            size_t n = strlen(text_replies[i].prefix);
            n += n < line.len && line.p[n] == ' ' ? 1 : 0;
            reply->text = line.p + n;
            reply->text_len = line.len - n;
            return text_replies[i].kind;
        }
    }
    return CLIENT_DESYNC;
}

/* A whole line without its end. */
static enum client_kind
parse_line(struct client_parser *p, struct client_text line, struct client_reply *reply)
{
    if (client_has_prefix(line, "VALUE ")) {
        return parse_value_line(p, line, reply);
    }
    for (enum client_kind kind = CLIENT_END; kind <= CLIENT_RESET; kind++) {
        if (client_is_text(line, kind_names[kind])) {
            return kind;
        }
    }
    if (client_is_text(line, kind_names[CLIENT_ERROR])) {
        return CLIENT_ERROR;
    }
    /* decr may leave blanks behind the digits, as it keeps the stored length. */
    size_t digits = line.len;
    while (digits > 0 && line.p[digits - 1] == ' ') {
        digits--;
    }
    if (num_u64(line.p, digits, &reply->number)) {
        return CLIENT_NUMBER;
    }
    return client_parse_text(line, reply);
}

void
client_parser_init(struct client_parser *p)
{
    client_input_init(&p->in);
    p->is_broken = false;
}

static enum client_kind
parse(struct client_parser *p, const char *buf, size_t len, size_t *taken,
      struct client_reply *reply)
{
    struct client_text text = {NULL, 0};
    enum client_take take;
    if (p->in.data_left > 0) {
        take = client_take_data(&p->in, buf, len, taken, &text);
        reply->text = text.p;
        reply->text_len = text.len;
        return take == CLIENT_CUT ? CLIENT_MORE : CLIENT_DATA;
    }
    take = client_take_terminator(&p->in, buf, len, taken);
    if (take == CLIENT_TAKEN) {
        take = client_take_line(&p->in, buf, len, taken, &text);
    }
    if (take != CLIENT_TAKEN) {
        return take == CLIENT_CUT ? CLIENT_MORE : CLIENT_DESYNC;
    }
    return parse_line(p, text, reply);
}

size_t
client_parse(struct client_parser *p, const char *buf, size_t len,
             struct client_reply *reply)
{
    size_t taken = 0;
    *reply = (struct client_reply){.kind = CLIENT_DESYNC};
    if (!p->is_broken) {
        reply->kind = parse(p, buf, len, &taken, reply);
        p->is_broken = reply->kind == CLIENT_DESYNC;
    }
    return taken;
}

/* Digits, at most so many that they fit into 32 bits, up to `end`: the rest behind that, NULL
 * when it is anything else. */
static const char *
take_digits(const char *p, const char *limit, char end, uint32_t *number)
{
    const char *from = p;
    uint32_t n = 0; /* means nothing when there are too many */
    for (; p < limit && *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint32_t)(*p - '0');
    }
    *number = n;
    return p > from && p - from <= DIGITS_32 && p < limit && *p == end ? p + 1 : NULL;
}

bool
client_read_hit_line(const char *buf, size_t len, struct client_hit_line *line)
{
    const size_t begin_len = sizeof CLIENT_HIT_BEGIN - 1;
    if (len < HIT_MIN || memcmp(buf, CLIENT_HIT_BEGIN, begin_len) != 0) {
        return false;
    }
    const char *key = buf + begin_len, *limit = buf + len;
    size_t left = (size_t)(limit - key);
    const char *blank =
        memchr(key, ' ', left < CLIENT_KEY_MAX + 1 ? left : CLIENT_KEY_MAX + 1);
    if (blank == NULL || blank == key) {
        return false;
    }
    uint32_t flags, bytes;
    const char *at = take_digits(blank + 1, limit, ' ', &flags);
    at = at != NULL ? take_digits(at, limit, '\r', &bytes) : NULL;
    if (at == NULL || at == limit || *at != '\n') {
        return false;
    }
    size_t line_len = (size_t)(at + 1 - blank), value_at = (size_t)(at + 1 - buf);
    size_t whole = value_at + bytes + sizeof CLIENT_HIT_END - 1;
    size_t compared = (size_t)(blank - buf) + SHORT_TEXT_MAX;
    bool is_short = line_len <= SHORT_TEXT_MAX;
    *line = (struct client_hit_line){
        .text = short_text_of(blank, is_short ? line_len : 0),
        .key_len = (size_t)(blank - key),
        .value_at = value_at,
        .least = !is_short          ? 0
                 : whole > compared ? whole
                                    : compared,
        .flags = flags,
        .bytes = bytes,
    };
    return len >= whole;
}

bool
client_parser_is_idle(const struct client_parser *p)
{
    return client_input_is_idle(&p->in) && !p->is_broken;
}

const char *
client_kind_name(enum client_kind kind)
{
    must((unsigned)kind < CLIENT_KINDS);
    return kind_names[kind];
}
