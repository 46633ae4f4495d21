/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/verbose.h"

#include <inttypes.h>

#include "base/be.h"
#include "base/log.h"
#include "base/num.h"
#include "proto/binary.h"

#define OPCODE_AT 1 /* in a packet */
#define STATUS_AT 6
#define BODY_LEN_AT 8

static size_t
without_end(const char *p, size_t len)
{
    len -= len > 0 && p[len - 1] == '\n';
    len -= len > 0 && p[len - 1] == '\r';
    return len;
}

void
verbose_request(int fd, const struct req *req, const char *p, size_t len)
{
    char text[VERBOSE_LINE_MAX];
    if (req->protocol != PROTOCOL_BINARY) {
        log_client('<', fd, p, without_end(p, len));
        return;
    }
    int n = snprintf(text, sizeof text, "binary 0x%02x ", (unsigned char)p[OPCODE_AT]);
    size_t key = req->key.len < sizeof text - (size_t)n ? req->key.len : 0;
    memcpy(text + n, req->key.p != NULL ? req->key.p : "", key);
    log_client('<', fd, text, (size_t)n + key - (key == 0));
}

/* ---- replies -------------------------------------------------------------------------- */

/* The n-th word of a line; empty: there are fewer. */
static struct slice
word_of(struct slice line, unsigned n)
{
    struct slice word = {line.p, 0};
    for (unsigned i = 0; i <= n; i++) {
        if (!req_next_word(&line, &word)) {
            return (struct slice){line.p, 0};
        }
    }
    return word;
}

/* The bytes of value that follow a line. */
static uint64_t
value_behind(struct slice line, unsigned word)
{
    uint64_t bytes;
    struct slice number = word_of(line, word);
    return num_u64(number.p, number.len, &bytes) ? bytes + LINE_END_BYTES : 0;
}

static void
tell_line(struct verbose *t, int fd, const char *p, size_t len)
{
    struct slice line = {p, without_end(p, len)};
    char text[VERBOSE_LINE_MAX + 16];
    if (req_begins(line, "VALUE ")) {
        struct slice key = word_of(line, 1);
        int n = snprintf(text, sizeof text, "sending key %.*s", (int)key.len, key.p);
        t->skip = value_behind(line, 3);
        log_client('>', fd, text, (size_t)n);
    } else if (!req_begins(line, "STAT ")) {
        t->skip = req_begins(line, "VA ") ? value_behind(line, 1) : 0;
        log_client('>', fd, line.p, line.len);
    }
}

static void
tell_packet(struct verbose *t, int fd, const char *header)
{
    char text[64];
    unsigned opcode = (unsigned char)header[OPCODE_AT];
    unsigned status = (unsigned)be_get(header + STATUS_AT, 2);
    uint32_t body = (uint32_t)be_get(header + BODY_LEN_AT, 4);
    int n = snprintf(text, sizeof text, "binary 0x%02x status 0x%04x, %" PRIu32 " bytes",
                     opcode, status, body);
    t->skip = body;
    log_client('>', fd, text, (size_t)n);
}

/* A line, or the head of a packet, that is being put together. */
struct piece {
    char text[VERBOSE_LINE_MAX];
    size_t len, bytes; /* kept, and in all */
};

/* Takes bytes up to the end of the piece; true when that is reached. */
static bool
gather(struct piece *piece, bool is_binary, const char *p, size_t *n)
{
    const char *end = is_binary ? NULL : memchr(p, '\n', *n);
    size_t missing = BINARY_HEADER_BYTES - piece->bytes;
    size_t part = is_binary     ? (missing < *n ? missing : *n)
                  : end != NULL ? (size_t)(end - p) + 1
                                : *n;
    size_t room = sizeof piece->text - piece->len;
    memcpy(piece->text + piece->len, p, part < room ? part : room);
    piece->len += part < room ? part : room;
    piece->bytes += part;
    *n = part;
    return is_binary ? piece->bytes == BINARY_HEADER_BYTES : end != NULL;
}

void
verbose_replies(struct verbose *t, int fd, bool is_binary, const struct iovec *runs,
                unsigned count)
{
    struct piece piece = {.len = 0, .bytes = 0};
    size_t known = t->shown;
    for (unsigned i = 0; i < count; i++) {
        const char *p = runs[i].iov_base;
        for (size_t left = runs[i].iov_len, n; left > 0; left -= n, p += n) {
            n = left;
            if (known > 0) {
                n = known < n ? known : n;
                known -= n;
                continue;
            }
            if (t->skip > 0) {
                n = t->skip < n ? (size_t)t->skip : n;
                t->skip -= n;
                t->shown += n;
                continue;
            }
            if (!gather(&piece, is_binary, p, &n)) {
                continue;
            }
            (is_binary ? tell_packet(t, fd, piece.text)
                       : tell_line(t, fd, piece.text, piece.len));
            t->shown += piece.bytes;
            piece.len = piece.bytes = 0;
        }
    }
}
