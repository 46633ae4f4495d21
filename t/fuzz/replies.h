/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * For targets that parse replies: the same bytes, cut differently, are the same replies.
 */
#pragma once

#include "fuzz.h"

#include <stdbool.h>

#include "proto/client.h"

/* Of the parser at `parser`: as client_parse has it. */
typedef size_t replies_parse(void *parser, const char *buf, size_t len,
                             struct client_reply *reply);

/* One reply as bytes; the pieces of a value run together. */
static inline void
replies_note(struct text *out, const struct client_reply *reply)
{
    if (reply->kind == CLIENT_DATA) {
        must(reply->text_len > 0);
        text_add(out, reply->text, reply->text_len);
        return;
    }
    const char *name = client_kind_name(reply->kind);
    text_add(out, name, strlen(name));
    switch (reply->kind) {
    case CLIENT_VALUE:
        must(reply->key_len <= CLIENT_KEY_MAX);
        text_add(out, &reply->index, sizeof reply->index);
        text_add(out, reply->key, reply->key_len);
        text_add(out, &reply->flags, sizeof reply->flags);
        text_add(out, &reply->value_len, sizeof reply->value_len);
        text_add(out, &reply->has_cas, sizeof reply->has_cas);
        if (reply->has_cas) {
            text_add(out, &reply->cas, sizeof reply->cas);
        }
        break;
    case CLIENT_NUMBER:
        text_add(out, &reply->number, sizeof reply->number);
        break;
    case CLIENT_STAT:
    case CLIENT_VERSION:
    case CLIENT_CLIENT_ERROR:
    case CLIENT_SERVER_ERROR:
        text_add(out, reply->text, reply->text_len);
        break;
    default:
        break;
    }
}

/* Parses the bytes in pieces; false when they are not the protocol. */
static inline bool
replies_of(replies_parse *parse, void *parser, const uint8_t *data, size_t size,
           struct cutter *cutter, struct text *out)
{
    bool is_broken = false;
    for (size_t at = 0; at < size && !is_broken;) {
        size_t n = cutter_next(cutter, size - at);
        char *piece = exact_copy(data + at, n);
        for (size_t done = 0;;) {
            struct client_reply reply;
            size_t taken = parse(parser, piece + done, n - done, &reply);
            must(taken <= n - done);
            done += taken;
            must((unsigned)reply.kind < CLIENT_KINDS);
            if (reply.kind == CLIENT_MORE) {
                must(done == n);
                break;
            }
            replies_note(out, &reply);
            if (reply.kind == CLIENT_DESYNC) {
                is_broken = true;
                break;
            }
        }
        free(piece);
        at += n;
    }
    return !is_broken;
}

/* Compares and frees them. */
static inline void
replies_must_match(struct text *whole, struct text *cut)
{
    must(cut->len == whole->len);
    must(cut->len == 0 || memcmp(cut->p, whole->p, cut->len) == 0);
    free(whole->p);
    free(cut->p);
}
