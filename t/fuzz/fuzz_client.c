/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The client's parser of replies: the same bytes, cut differently, are the same replies. The
 * first byte chooses the cut.
 */
#include "fuzz.h"

#include <stdbool.h>

#include "proto/client.h"

/* One reply as bytes; the pieces of a value run together. */
static void
note(struct text *out, const struct client_reply *reply)
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

/* Parses the bytes in pieces; returns whether the parser rests between two replies. */
static bool
parse_all(const uint8_t *data, size_t size, struct cutter *cutter, struct text *out)
{
    struct client_parser parser;
    bool is_broken = false;
    client_parser_init(&parser);
    for (size_t at = 0; at < size && !is_broken;) {
        size_t n = cutter_next(cutter, size - at);
        char *piece = exact_copy(data + at, n);
        for (size_t done = 0;;) {
            struct client_reply reply;
            size_t taken = client_parse(&parser, piece + done, n - done, &reply);
            must(taken <= n - done);
            done += taken;
            must((unsigned)reply.kind < CLIENT_KINDS);
            if (reply.kind == CLIENT_MORE) {
                must(done == n);
                break;
            }
            note(out, &reply);
            if (reply.kind == CLIENT_DESYNC) {
                is_broken = true;
                break;
            }
        }
        free(piece);
        at += n;
    }
    return !is_broken && client_parser_is_idle(&parser);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct text whole = {0}, cut = {0};
    struct cutter one = {.piece_max = 0}, many;
    cutter_init(&many, data[0], size);
    bool is_idle = parse_all(data + 1, size - 1, &one, &whole);
    must(parse_all(data + 1, size - 1, &many, &cut) == is_idle);
    must(cut.len == whole.len);
    must(cut.len == 0 || memcmp(cut.p, whole.p, cut.len) == 0);
    free(whole.p);
    free(cut.p);
    return 0;
}
