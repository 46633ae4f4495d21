/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * HTTP/1.1 GET of /KEY over connections that stay open. A reply of status 2xx is a hit, 404
 * and 410 are misses, other 4xx and 5xx errors of client and server; its body is taken to
 * the end whatever the status. A body that only the end of the connection would end is
 * refused.
 */
#include <strings.h>

#include "base/num.h"
#include "loadgen/wire/codec.h"

enum state {
    STATE_STATUS,
    STATE_HEADERS,
    STATE_BODY,
    STATE_CHUNK_SIZE,
    STATE_CHUNK,
    STATE_TRAILER,
};

#define CHUNK_DIGITS_MAX 15 /* of a size in hexadecimal */

enum {
    HTTP_OK = 200,
    HTTP_NO_CONTENT = 204,
    HTTP_REDIRECT = 300,
    HTTP_NOT_MODIFIED = 304,
    HTTP_CLIENT = 400,
    HTTP_NOT_FOUND = 404,
    HTTP_GONE = 410,
    HTTP_SERVER = 500,
    HTTP_END = 600,
};

/* ---- requests ---------------------------------------------------------------------- */

static size_t
put_get(char *dst, const struct codec_get *get)
{
    must(get->keys == 1);
    return codec_put_text(dst, "GET /");
}

static size_t
put_key(char *dst, const struct codec_get *get, const char *key, size_t key_len)
{
    (void)get;
    return codec_put(dst, key, key_len);
}

static size_t
put_get_end(char *dst, const struct codec_get *get)
{
    (void)get;
    return codec_put_text(dst, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* ---- replies ----------------------------------------------------------------------- */

static bool
is_success(const struct codec_parser *p)
{
    return p->status >= HTTP_OK && p->status < HTTP_REDIRECT;
}

static enum client_kind
kind_of_status(unsigned status)
{
    if (status < HTTP_REDIRECT || status == HTTP_NOT_FOUND || status == HTTP_GONE) {
        return CLIENT_END;
    }
    if (status < HTTP_CLIENT) {
        return CLIENT_OK; /* what no request is answered with */
    }
    return status < HTTP_SERVER ? CLIENT_CLIENT_ERROR : CLIENT_SERVER_ERROR;
}

/* "HTTP/1.1 200 OK" */
static enum client_kind
parse_status(struct codec_parser *p, struct client_text line)
{
    struct client_text rest = line;
    struct client_text version = client_take_word(&rest);
    struct client_text code = client_take_word(&rest);
    uint32_t status;
    bool is_1_0 = client_is_text(version, "HTTP/1.0");
    if ((!is_1_0 && !client_is_text(version, "HTTP/1.1")) || code.len != 3 ||
        !num_u32(code.p, code.len, &status) || status < 100 || status >= HTTP_END) {
        return CLIENT_DESYNC;
    }
    p->status = (uint16_t)status;
    p->state = STATE_HEADERS;
    p->has_length = p->is_chunked = p->says_close = false;
    p->is_last = is_1_0;
    p->text.in.data_left = 0;
    return CODEC_ON;
}

static struct client_text
trim(struct client_text text)
{
    while (text.len > 0 && (text.p[0] == ' ' || text.p[0] == '\t')) {
        text.p++;
        text.len--;
    }
    while (text.len > 0 &&
           (text.p[text.len - 1] == ' ' || text.p[text.len - 1] == '\t')) {
        text.len--;
    }
    return text;
}

/* True with the rest when the line is that header. */
static bool
is_header(struct client_text line, const char *name, struct client_text *value)
{
    size_t n = strlen(name);
    if (line.len <= n || strncasecmp(line.p, name, n) != 0 || line.p[n] != ':') {
        return false;
    }
    *value = trim((struct client_text){line.p + n + 1, line.len - n - 1});
    return true;
}

static bool
is_word(struct client_text text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.p, word, text.len) == 0;
}

/* A list: "close" among others closes, whatever else is said; "keep-alive" keeps open what
 * HTTP/1.0 would close. */
static void
parse_connection(struct codec_parser *p, struct client_text list)
{
    while (list.len > 0) {
        const char *comma = memchr(list.p, ',', list.len);
        size_t len = comma != NULL ? (size_t)(comma - list.p) : list.len;
        struct client_text word = trim((struct client_text){list.p, len});
        p->says_close = p->says_close || is_word(word, "close");
        p->is_last = p->says_close || (p->is_last && !is_word(word, "keep-alive"));
        len += comma != NULL ? 1 : 0;
        list = (struct client_text){list.p + len, list.len - len};
    }
}

static enum client_kind
parse_header(struct codec_parser *p, struct client_text line)
{
    struct client_text value;
    uint64_t length;
    if (is_header(line, "Content-Length", &value)) {
        if (!num_u64(value.p, value.len, &length) ||
            (p->has_length && length != p->text.in.data_left)) {
            return CLIENT_DESYNC;
        }
        p->has_length = true;
        p->text.in.data_left = length;
    } else if (is_header(line, "Transfer-Encoding", &value)) {
        p->is_chunked = true;
        return is_word(value, "chunked") ? CODEC_ON : CLIENT_DESYNC;
    } else if (is_header(line, "Connection", &value)) {
        parse_connection(p, value);
    }
    return memchr(line.p, ':', line.len) != NULL ? CODEC_ON : CLIENT_DESYNC;
}

/* The reply is complete. */
static enum client_kind
finish(struct codec_parser *p, struct client_reply *reply)
{
    reply->is_last = p->is_last;
    return codec_tell(p);
}

/* Behind the headers: what body there is. */
static enum client_kind
begin_body(struct codec_parser *p, struct client_reply *reply)
{
    if (p->status < HTTP_OK) {
        p->state = STATE_STATUS; /* the reply proper follows */
        p->text.in.data_left = 0;
        return CODEC_ON;
    }
    p->held = kind_of_status(p->status);
    if (p->status == HTTP_NO_CONTENT || p->status == HTTP_NOT_MODIFIED) {
        p->has_length = true;
        p->is_chunked = false;
        p->text.in.data_left = 0;
    }
    if (!p->has_length && !p->is_chunked) {
        return CLIENT_DESYNC;
    }
    p->state = p->is_chunked ? STATE_CHUNK_SIZE : STATE_BODY;
    reply->value_len = p->is_chunked ? CODEC_LEN_UNKNOWN : p->text.in.data_left;
    return is_success(p) ? CLIENT_VALUE : CODEC_ON;
}

/* "1a2b" or "1a2b;extension" */
static enum client_kind
parse_chunk_size(struct codec_parser *p, struct client_text line)
{
    uint64_t size = 0;
    size_t digits = 0;
    while (digits < line.len && digits < CHUNK_DIGITS_MAX) {
        char c = line.p[digits];
        unsigned digit;
        if (c >= '0' && c <= '9') {
            digit = (unsigned)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        } else {
            break;
        }
        size = size << 4 | digit;
        digits++;
    }
    bool is_end = digits == line.len || line.p[digits] == ';' || line.p[digits] == ' ';
    if (digits == 0 || !is_end) {
        return CLIENT_DESYNC;
    }
    p->state = size > 0 ? STATE_CHUNK : STATE_TRAILER;
    p->text.in.data_left = size;
    p->text.in.terminator_len = size > 0 ? 2 : 0; /* CR LF */
    return CODEC_ON;
}

static enum client_kind
parse_line(struct codec_parser *p, struct client_text line, struct client_reply *reply)
{
    switch (p->state) {
    case STATE_STATUS:
        return parse_status(p, line);
    case STATE_HEADERS:
        return line.len > 0 ? parse_header(p, line) : begin_body(p, reply);
    case STATE_CHUNK_SIZE:
        return parse_chunk_size(p, line);
    default: /* STATE_TRAILER */
        return line.len > 0 ? CODEC_ON : finish(p, reply);
    }
}

static enum client_kind
take_body(struct codec_parser *p, const char *buf, size_t len, size_t *taken,
          struct client_reply *reply)
{
    return is_success(p) ? codec_take_value(p, buf, len, taken, reply)
                         : codec_skip_value(p, buf, len, taken);
}

static enum client_kind
step(struct codec_parser *p, const struct codec_expect *expect, const char *buf,
     size_t len, size_t *taken, struct client_reply *reply)
{
    (void)expect;
    struct client_text line;
    enum client_kind kind;
    switch (p->state) {
    case STATE_BODY:
        kind = take_body(p, buf, len, taken, reply);
        return kind == CODEC_ON ? finish(p, reply) : kind;
    case STATE_CHUNK:
        kind = take_body(p, buf, len, taken, reply);
        p->state = kind == CODEC_ON ? STATE_CHUNK_SIZE : STATE_CHUNK;
        return kind;
    default:
        kind = codec_kind_of(client_take_line(&p->text.in, buf, len, taken, &line));
        return kind == CODEC_ON ? parse_line(p, line, reply) : kind;
    }
}

const struct codec codec_http = {
    .name = "http",
    .verbs = CODEC_BIT(CODEC_GET),
    .put_get = put_get,
    .put_key = put_key,
    .put_get_end = put_get_end,
    .step = step,
};
