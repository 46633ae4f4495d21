/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/client_input.h"

#define TERMINATOR_LEN 2 /* CR LF */

void
client_input_init(struct client_input *in)
{
    in->data_left = 0;
    in->terminator_len = 0;
    in->line_len = 0;
}

bool
client_input_is_idle(const struct client_input *in)
{
    return in->data_left == 0 && in->terminator_len == 0 && in->line_len == 0;
}

/* Makes *text of the n bytes at buf + *taken and those kept before; false when they are
 * more than can be kept. */
static bool
gather(struct client_input *in, const char *buf, size_t n, bool is_whole, size_t *taken,
       struct client_text *text)
{
    const char *p = buf + *taken;
    *taken += n;
    if (in->line_len + n > sizeof in->line) {
        return false;
    }
    if (is_whole && in->line_len == 0) {
        *text = (struct client_text){p, n};
        return true;
    }
    memcpy(in->line + in->line_len, p, n);
    in->line_len = (uint16_t)(in->line_len + n);
    *text = (struct client_text){in->line, in->line_len};
    if (is_whole) {
        in->line_len = 0; /* the bytes stay until the next call */
    }
    return true;
}

enum client_take
client_take_line(struct client_input *in, const char *buf, size_t len, size_t *taken,
                 struct client_text *line)
{
    const char *start = buf + *taken;
    size_t left = len - *taken;
    const char *end = left > 0 ? memchr(start, '\n', left) : NULL;
    size_t n = end != NULL ? (size_t)(end - start) + 1 : left;
    if (left == 0) {
        return CLIENT_CUT;
    }
    if (!gather(in, buf, n, end != NULL, taken, line)) {
        return CLIENT_BAD;
    }
    if (end == NULL) {
        return CLIENT_CUT;
    }
    if (line->len < TERMINATOR_LEN || line->p[line->len - 2] != '\r') {
        return CLIENT_BAD;
    }
    line->len -= TERMINATOR_LEN;
    return CLIENT_TAKEN;
}

enum client_take
client_take_block(struct client_input *in, size_t bytes, const char *buf, size_t len,
                  size_t *taken, struct client_text *block)
{
    size_t left = len - *taken;
    must(bytes <= sizeof in->line && in->line_len <= bytes);
    size_t missing = bytes - in->line_len;
    bool is_whole = left >= missing;
    bool fits = gather(in, buf, is_whole ? missing : left, is_whole, taken, block);
    must(fits);
    return is_whole ? CLIENT_TAKEN : CLIENT_CUT;
}

enum client_take
client_take_data(struct client_input *in, const char *buf, size_t len, size_t *taken,
                 struct client_text *data)
{
    size_t n = len - *taken;
    must(in->data_left > 0);
    if (n == 0) {
        return CLIENT_CUT;
    }
    n = n < in->data_left ? n : (size_t)in->data_left;
    *data = (struct client_text){buf + *taken, n};
    in->data_left -= n;
    *taken += n;
    return CLIENT_TAKEN;
}

enum client_take
client_take_terminator(struct client_input *in, const char *buf, size_t len,
                       size_t *taken)
{
    while (in->terminator_len > 0 && *taken < len) {
        char expected = in->terminator_len == TERMINATOR_LEN ? '\r' : '\n';
        if (buf[*taken] != expected) {
            return CLIENT_BAD;
        }
        ++*taken;
        in->terminator_len--;
    }
    return in->terminator_len > 0 ? CLIENT_CUT : CLIENT_TAKEN;
}

struct client_text
client_take_word(struct client_text *rest)
{
    const char *blank = rest->len > 0 ? memchr(rest->p, ' ', rest->len) : NULL;
    struct client_text word = {rest->p,
                               blank != NULL ? (size_t)(blank - rest->p) : rest->len};
    size_t taken = word.len + (blank != NULL ? 1 : 0);
    rest->p += taken;
    rest->len -= taken;
    return word;
}

bool
client_has_prefix(struct client_text text, const char *prefix)
{
    size_t n = strlen(prefix);
    return text.len >= n && memcmp(text.p, prefix, n) == 0;
}

bool
client_is_text(struct client_text text, const char *expected)
{
    return text.len == strlen(expected) && memcmp(text.p, expected, text.len) == 0;
}
