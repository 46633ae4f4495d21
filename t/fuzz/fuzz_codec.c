/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The load generator's parsers of replies. The first bytes choose the cut, the protocol, and
 * what was asked for.
 */
#include "replies.h"

#include "loadgen/wire/codec.h"

#define HEAD 4 /* cut, protocol, verb, keys */
#define KEYS_MAX 3

struct asked {
    const struct codec *codec;
    struct codec_expect expect;
    struct codec_parser parser;
};

static size_t
parse(void *parser, const char *buf, size_t len, struct client_reply *reply)
{
    struct asked *a = parser;
    size_t taken = codec_parse(a->codec, &a->parser, &a->expect, buf, len, reply);
    if (reply->kind == CLIENT_VALUE && reply->key == NULL) {
        must(reply->index < a->expect.keys);
    }
    return taken;
}

/* Returns the state between two replies, or within one. */
static int
parse_all(struct asked *a, const uint8_t *data, size_t size, struct cutter *cutter,
          struct text *out)
{
    codec_parser_init(&a->parser);
    if (!replies_of(parse, a, data, size, cutter, out)) {
        return -1;
    }
    return a->parser.state * 2 + client_parser_is_idle(&a->parser.text);
}

static bool
choose(struct asked *a, const uint8_t *head)
{
    unsigned codecs = 0;
    while (codec_all[codecs] != NULL) {
        codecs++;
    }
    a->codec = codec_all[head[1] % codecs];
    a->expect.verb = (enum codec_verb)(head[2] % CODEC_VERBS);
    bool is_get = a->expect.verb == CODEC_GET || a->expect.verb == CODEC_GETS;
    a->expect.keys = is_get && a->codec->has_multiget ? 1 + head[3] % KEYS_MAX : 1;
    return (a->codec->verbs & CODEC_BIT(a->expect.verb)) != 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct asked a;
    if (size < HEAD || !choose(&a, data)) {
        return 0;
    }
    struct text whole = {0}, cut = {0};
    struct cutter one = {.piece_max = 0}, many;
    cutter_init(&many, data[0], size);
    int state = parse_all(&a, data + HEAD, size - HEAD, &one, &whole);
    must(parse_all(&a, data + HEAD, size - HEAD, &many, &cut) == state);
    replies_must_match(&whole, &cut);
    return 0;
}
