/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/meta.h"

#include <assert.h>

#include "base/base64.h"
#include "base/num.h"

/* " k<key> b", " O...", ten numbers, " X W" and the status; a flag comes once. */
static_assert(sizeof "VA 4294967295" + BASE64_ENCODED(REQ_KEY_MAX) + sizeof " k b" +
                      META_OPAQUE_MAX + 7 * (NUM_U64_DIGITS + 2) + sizeof " X W\r\n" <=
                  META_LINE_MAX,
              "META_LINE_MAX is too small");

static void
add(struct meta_line *line, const char *p, size_t n)
{
    memcpy(line->p + line->len, p, n);
    line->len += n;
}

static void
add_text(struct meta_line *line, const char *text)
{
    add(line, text, strlen(text));
}

static void
add_number(struct meta_line *line, uint64_t number)
{
    line->len += num_put_u64(line->p + line->len, number);
}

static void
add_signed(struct meta_line *line, int64_t number)
{
    if (number < 0) {
        add_text(line, "-");
    }
    add_number(line, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static void
add_key(struct meta_line *line, struct slice key, bool is_binary)
{
    if (is_binary) {
        line->len += base64_encode(line->p + line->len, key.p, key.len);
    } else {
        add(line, key.p, key.len);
    }
}

struct meta_line
meta_line_begin(char *p, const char *status)
{
    struct meta_line line = {p, 0};
    add_text(&line, status);
    return line;
}

struct meta_line
meta_line_begin_value(char *p, uint32_t value_len)
{
    struct meta_line line = meta_line_begin(p, "VA ");
    add_number(&line, value_len);
    return line;
}

void
meta_line_mark(struct meta_line *line, char flag)
{
    char text[] = {' ', flag};
    add(line, text, sizeof text);
}

void
meta_line_number(struct meta_line *line, char flag, uint64_t number)
{
    meta_line_mark(line, flag);
    add_number(line, number);
}

void
meta_line_ttl(struct meta_line *line, int64_t seconds)
{
    meta_line_mark(line, 't');
    add_signed(line, seconds);
}

void
meta_line_key(struct meta_line *line, struct slice key, bool is_binary)
{
    meta_line_mark(line, 'k');
    add_key(line, key, is_binary);
    if (is_binary) {
        meta_line_mark(line, 'b');
    }
}

void
meta_line_opaque(struct meta_line *line, const struct req *req)
{
    add_text(line, " ");
    add(line, req->meta.opaque, req->meta.opaque_len);
}

void
meta_line_end(struct meta_line *line)
{
    add_text(line, "\r\n");
    must(line->len <= META_LINE_MAX);
}

void
meta_line_echo(struct meta_line *line, const struct req *req, struct slice key)
{
    for (unsigned i = 0; i < req->meta.count; i++) {
        if (req->meta.order[i] == 'k') {
            meta_line_key(line, key, meta_has(req, 'b'));
        } else if (req->meta.order[i] == 'O') {
            meta_line_opaque(line, req);
        }
    }
}

size_t
meta_describe(char *p, const struct meta_facts *facts)
{
    struct meta_line line = meta_line_begin(p, "ME ");
    add_key(&line, facts->key, facts->is_binary_key);
    add_text(&line, " exp=");
    add_signed(&line, facts->ttl);
    add_text(&line, " la=");
    add_number(&line, facts->idle);
    add_text(&line, " cas=");
    add_number(&line, facts->cas);
    add_text(&line, facts->was_fetched ? " fetch=yes cls=" : " fetch=no cls=");
    add_number(&line, facts->class_id);
    add_text(&line, " size=");
    add_number(&line, facts->total);
    meta_line_end(&line);
    return line.len;
}
