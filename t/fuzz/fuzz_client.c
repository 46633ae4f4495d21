/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The client's parser of replies. The first byte chooses the cut.
 */
#include "replies.h"

static size_t
parse(void *parser, const char *buf, size_t len, struct client_reply *reply)
{
    return client_parse(parser, buf, len, reply);
}

/* Returns whether the parser rests between two replies. */
static bool
parse_all(const uint8_t *data, size_t size, struct cutter *cutter, struct text *out)
{
    struct client_parser parser;
    client_parser_init(&parser);
    bool is_good = replies_of(parse, &parser, data, size, cutter, out);
    return is_good && client_parser_is_idle(&parser);
}

/* What is taken as a hit at once is the same piece by piece. */
static void
check_hit(const uint8_t *data, size_t size)
{
    char *buf = exact_copy(data, size);
    struct client_reply value = {.kind = CLIENT_DESYNC};
    struct client_hit_line line = {.least = 0};
    size_t n = client_parse_hit(buf, size, &line, &value);
    must(n <= size);
    if (n > 0 && memchr(value.key, '\n', value.key_len) == NULL) {
        struct client_reply again = {.kind = CLIENT_DESYNC};
        must(client_parse_hit(buf, size, &line, &again) == n);
        must(again.key_len == value.key_len && again.flags == value.flags &&
             again.text == value.text && again.text_len == value.text_len);
        struct text at_once = {0}, pieces = {0};
        struct cutter one = {.piece_max = 0};
        must(parse_all(data, n, &one, &pieces));
        bool is_end = value.kind == CLIENT_END;
        value.kind = CLIENT_VALUE;
        replies_note(&at_once, &value);
        text_add(&at_once, value.text, value.text_len);
        if (is_end) {
            replies_note(&at_once, &(struct client_reply){.kind = CLIENT_END});
        }
        replies_must_match(&at_once, &pieces);
    }
    free(buf);
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
    replies_must_match(&whole, &cut);
    check_hit(data + 1, size - 1);
    return 0;
}
