/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Traces: the first byte chooses lines of Twitter's, names of columns and a line of these, or
 * the binary form.
 */
#include "fuzz.h"

#include "loadgen/work/trace_file.h"
#include "loadgen/work/trace.h"

static void
look(const struct trace_record *r)
{
    must(r->key_len >= 1 && r->key_len <= TRACE_KEY_MAX);
    must(r->verb >= TRACE_GET && r->verb < TRACE_VERBS_END);
    must(r->repeat >= 1 && r->repeat <= TRACE_REPEAT_MAX);
    for (size_t i = 0; i < r->key_len; i++) {
        must((unsigned char)r->key[i] > ' ' && r->key[i] != 0x7f);
    }
}

static void
parse_line(const struct trace_layout *l, const char *line, size_t len)
{
    struct trace_record r;
    struct trace_line_note note;
    switch (trace_line_parse(l, line, len, &r, &note)) {
    case TRACE_LINE_GOOD:
        look(&r);
        break;
    case TRACE_LINE_UNKNOWN:
        must(note.verb >= line && note.verb + note.verb_len <= line + len);
        break;
    case TRACE_LINE_BAD:
        must(note.wrong != NULL);
        break;
    }
}

/* What is read and written again is read as the same. */
static void
parse_binary(const char *p, size_t len)
{
    struct trace_binary in, out, again;
    struct trace_record r, copy;
    char bytes[TRACE_BINARY_RECORD_MAX];
    size_t taken, used;
    if (trace_binary_take_header(&in, p, len) != NULL) {
        return;
    }
    p += TRACE_BINARY_HEADER;
    len -= TRACE_BINARY_HEADER;
    out = again = in;
    while (trace_binary_take(&in, p, len, &r, &taken) == TRACE_BINARY_TAKEN) {
        must(taken > 0 && taken <= len);
        look(&r);
        size_t n = trace_binary_put(&out, &r, bytes);
        must(n <= sizeof bytes && n <= taken);
        must(trace_binary_take(&again, bytes, n, &copy, &used) == TRACE_BINARY_TAKEN);
        must(used == n && copy.time_ns == r.time_ns && copy.client == r.client &&
             copy.value_len == r.value_len && copy.ttl == r.ttl &&
             copy.repeat == r.repeat && copy.verb == r.verb &&
             copy.key_len == r.key_len && memcmp(copy.key, r.key, r.key_len) == 0);
        p += taken;
        len -= taken;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_layout layout;
    if (size < 2) {
        return 0;
    }
    size_t len = size - 1;
    char *bytes = exact_copy(data + 1, len);
    if (data[0] % 3 == 0) {
        trace_layout_twitter(&layout);
        parse_line(&layout, bytes, len);
    } else if (data[0] % 3 == 1) {
        const char *end = memchr(bytes, '\n', len);
        size_t names = end != NULL ? (size_t)(end - bytes) : len;
        if (trace_layout_parse(&layout, bytes, names, data[0] % 2 == 0) == NULL &&
            end != NULL) {
            parse_line(&layout, end + 1, len - names - 1);
        }
    } else {
        parse_binary(bytes, len);
    }
    free(bytes);
    return 0;
}
