/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/client.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"

#define TERMINATOR_LEN 2 /* CR LF */

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

struct line {
    const char *p;
    size_t len;
};

/* Replies that are one fixed line. */
static const struct {
    const char *text;
    enum client_kind kind;
} plain_replies[] = {
    {"END", CLIENT_END},
    {"STORED", CLIENT_STORED},
    {"NOT_STORED", CLIENT_NOT_STORED},
    {"EXISTS", CLIENT_EXISTS},
    {"NOT_FOUND", CLIENT_NOT_FOUND},
    {"DELETED", CLIENT_DELETED},
    {"TOUCHED", CLIENT_TOUCHED},
    {"OK", CLIENT_OK},
    {"RESET", CLIENT_RESET},
    {"ERROR", CLIENT_ERROR},
};

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

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool
has_prefix(struct line line, const char *prefix)
{
    size_t n = strlen(prefix);
    return line.len >= n && memcmp(line.p, prefix, n) == 0;
}

/* Cuts the next word off; words are separated by one blank. */
static struct line
take_word(struct line *rest)
{
    const char *blank = memchr(rest->p, ' ', rest->len);
    struct line word = {rest->p, blank != NULL ? (size_t)(blank - rest->p) : rest->len};
    size_t taken = word.len + (blank != NULL ? 1 : 0);
    rest->p += taken;
    rest->len -= taken;
    return word;
}

/* "VALUE key flags bytes[ cas]" */
static enum client_kind
parse_value_line(struct client_parser *p, struct line line, struct client_reply *reply)
{
    struct line rest = line;
    take_word(&rest);
    struct line key = take_word(&rest);
    struct line flags = take_word(&rest);
    struct line bytes = take_word(&rest);
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
    p->data_left = reply->value_len;
    p->terminator_len = TERMINATOR_LEN;
    return CLIENT_VALUE;
}

static enum client_kind
parse_text_line(struct line line, struct client_reply *reply)
{
    for (size_t i = 0; i < COUNT(text_replies); i++) {
        if (has_prefix(line, text_replies[i].prefix)) {
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
parse_line(struct client_parser *p, struct line line, struct client_reply *reply)
{
    if (has_prefix(line, "VALUE ")) {
        return parse_value_line(p, line, reply);
    }
    for (size_t i = 0; i < COUNT(plain_replies); i++) {
        if (line.len == strlen(plain_replies[i].text) &&
            memcmp(line.p, plain_replies[i].text, line.len) == 0) {
            return plain_replies[i].kind;
        }
    }
    /* decr may leave blanks behind the digits, as it keeps the stored length. */
    size_t digits = line.len;
    while (digits > 0 && line.p[digits - 1] == ' ') {
        digits--;
    }
    if (num_u64(line.p, digits, &reply->number)) {
        return CLIENT_NUMBER;
    }
    return parse_text_line(line, reply);
}

static size_t
take_data(struct client_parser *p, const char *buf, size_t len,
          struct client_reply *reply)
{
    size_t n = len < p->data_left ? len : (size_t)p->data_left;
    p->data_left -= n;
    reply->kind = CLIENT_DATA;
    reply->text = buf;
    reply->text_len = n;
    return n;
}

/* The CR LF that ends a value. False when something else stands there. */
static bool
take_terminator(struct client_parser *p, const char *buf, size_t len, size_t *taken)
{
    while (p->terminator_len > 0 && *taken < len) {
        char expected = p->terminator_len == TERMINATOR_LEN ? '\r' : '\n';
        if (buf[*taken] != expected) {
            return false;
        }
        ++*taken;
        p->terminator_len--;
    }
    return true;
}

/* Finds the line that begins in the parser or at buf[0]. False when it is not all there;
 * *is_too_long then says whether it can still become a line. */
static bool
take_line(struct client_parser *p, const char *buf, size_t len, size_t *taken,
          struct line *line, bool *is_too_long)
{
    const char *end = memchr(buf, '\n', len);
    size_t n = end != NULL ? (size_t)(end - buf) + 1 : len;
    *taken = n;
    *is_too_long = p->line_len + n > sizeof p->line;
    if (*is_too_long) {
        return false;
    }
    if (end != NULL && p->line_len == 0) {
        *line = (struct line){buf, n};
    } else {
        memcpy(p->line + p->line_len, buf, n);
        p->line_len = (uint16_t)(p->line_len + n);
        *line = (struct line){p->line, p->line_len};
    }
    return end != NULL;
}

static size_t
broken(struct client_parser *p, struct client_reply *reply, size_t taken)
{
    p->is_broken = true;
    reply->kind = CLIENT_DESYNC;
    return taken;
}

void
client_parser_init(struct client_parser *p)
{
    p->data_left = 0;
    p->terminator_len = 0;
    p->is_broken = false;
    p->line_len = 0;
}

size_t
client_parse(struct client_parser *p, const char *buf, size_t len,
             struct client_reply *reply)
{
    *reply = (struct client_reply){.kind = CLIENT_MORE};
    if (p->is_broken) {
        return broken(p, reply, 0);
    }
    if (len == 0) {
        return 0;
    }
    if (p->data_left > 0) {
        return take_data(p, buf, len, reply);
    }
    size_t taken = 0;
    if (!take_terminator(p, buf, len, &taken)) {
        return broken(p, reply, taken);
    }
    if (taken == len) {
        return taken;
    }
    struct line line;
    size_t line_bytes;
    bool is_too_long;
    bool is_whole =
        take_line(p, buf + taken, len - taken, &line_bytes, &line, &is_too_long);
    taken += line_bytes;
    if (is_too_long) {
        return broken(p, reply, taken);
    }
    if (!is_whole) {
        return taken;
    }
    p->line_len = 0; /* the bytes stay where the reply points until the next call */
    if (line.len < TERMINATOR_LEN || line.p[line.len - 2] != '\r') {
        return broken(p, reply, taken);
    }
    line.len -= TERMINATOR_LEN;
    reply->kind = parse_line(p, line, reply);
    if (reply->kind == CLIENT_DESYNC) {
        return broken(p, reply, taken);
    }
    return taken;
}

bool
client_parser_is_idle(const struct client_parser *p)
{
    return p->data_left == 0 && p->terminator_len == 0 && p->line_len == 0 &&
           !p->is_broken;
}

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

const char *
client_kind_name(enum client_kind kind)
{
    must((unsigned)kind < CLIENT_KINDS);
    return kind_names[kind];
}
