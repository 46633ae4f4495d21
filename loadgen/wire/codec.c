/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/codec.h"

#include "base/num.h"

const struct codec *const codec_all[] = {
    &codec_ascii, &codec_meta, &codec_binary, &codec_redis, &codec_http, NULL,
};

const struct codec *
codec_find(const char *name)
{
    const struct codec *const *c = codec_all;
    while (*c != NULL && strcmp((*c)->name, name) != 0) {
        c++;
    }
    return *c;
}

const char *const codec_verb_names[CODEC_VERBS] = {
    [CODEC_GET] = "get",       [CODEC_GETS] = "gets",       [CODEC_SET] = "set",
    [CODEC_ADD] = "add",       [CODEC_REPLACE] = "replace", [CODEC_CAS] = "cas",
    [CODEC_APPEND] = "append", [CODEC_PREPEND] = "prepend", [CODEC_DELETE] = "delete",
    [CODEC_TOUCH] = "touch",   [CODEC_INCR] = "incr",       [CODEC_DECR] = "decr",
    [CODEC_AUTH] = "auth",
};
void
codec_stencil_init(struct codec_stencil *s, const struct codec *codec, const char *like,
                   size_t key_len)
{
    char key[CLIENT_KEY_MAX]; /* of bytes that nothing else in a request has */
    must(key_len >= 1 && key_len <= sizeof key);
    memset(key, 0xff, key_len);
    const struct codec_get get = {.verb = CODEC_GET, .keys = 1};
    s->list_at = codec_put_get(codec, s->bytes, &get);
    s->key_end = s->list_at + codec->put_key(s->bytes + s->list_at, &get, key, key_len);
    s->len = s->key_end + codec_put_get_end(codec, s->bytes + s->key_end, &get);
    const char *at = memmem(s->bytes, s->len, key, key_len);
    must(at != NULL);
    s->key_at = (size_t)(at - s->bytes);
    memcpy(s->bytes + s->key_at, like, key_len);
}

void
codec_parser_init(struct codec_parser *p)
{
    client_parser_init(&p->text);
    p->state = 0;
    p->is_chunked = p->has_length = p->says_close = p->is_last = false;
    p->held = CLIENT_END;
    p->index = p->parts = 0;
}

size_t
codec_parse(const struct codec *codec, struct codec_parser *p,
            const struct codec_expect *expect, const char *buf, size_t len,
            struct client_reply *reply)
{
    size_t taken = 0;
    *reply = (struct client_reply){.kind = CLIENT_DESYNC};
    if (p->text.is_broken) {
        return 0;
    }
    do {
        reply->kind = codec->step(p, expect, buf, len, &taken, reply);
    } while (reply->kind == CODEC_ON);
    p->text.is_broken = reply->kind == CLIENT_DESYNC;
    return taken;
}

enum client_kind
codec_take_value(struct codec_parser *p, const char *buf, size_t len, size_t *taken,
                 struct client_reply *reply)
{
    struct client_input *in = &p->text.in;
    struct client_text text = {NULL, 0};
    if (in->data_left > 0) {
        enum client_take take = client_take_data(in, buf, len, taken, &text);
        reply->text = text.p;
        reply->text_len = text.len;
        return take == CLIENT_CUT ? CLIENT_MORE : CLIENT_DATA;
    }
    return codec_kind_of(client_take_terminator(in, buf, len, taken));
}

enum client_kind
codec_skip_value(struct codec_parser *p, const char *buf, size_t len, size_t *taken)
{
    struct client_reply unwanted;
    enum client_kind kind = codec_take_value(p, buf, len, taken, &unwanted);
    while (kind == CLIENT_DATA) {
        kind = codec_take_value(p, buf, len, taken, &unwanted);
    }
    return kind;
}

enum client_kind
codec_done_kind(enum codec_verb verb)
{
    switch (verb) {
    case CODEC_DELETE:
        return CLIENT_DELETED;
    case CODEC_TOUCH:
        return CLIENT_TOUCHED;
    case CODEC_GET:
    case CODEC_GETS:
    case CODEC_INCR:
    case CODEC_DECR:
        return CLIENT_OK; /* what none of them is answered with */
    default:
        return CLIENT_STORED;
    }
}

enum client_kind
codec_tell(struct codec_parser *p)
{
    enum client_kind kind = p->held;
    p->held = CLIENT_END;
    p->state = 0;
    p->index = p->parts = 0;
    return kind;
}

size_t
codec_put(char *dst, const char *bytes, size_t len)
{
    memcpy(dst, bytes, len);
    return len;
}

size_t
codec_put_text(char *dst, const char *text)
{
    return codec_put(dst, text, strlen(text));
}

size_t
codec_put_line(char *dst, char type, uint64_t number)
{
    *dst = type;
    size_t n = 1 + num_put_u64(dst + 1, number);
    return n + client_put_end(dst + n);
}

const char *
codec_guess(const char *bytes, size_t len)
{
    static const struct {
        const char *head, *words;
    } all[] = {
        {"-ERR ", "--protocol=redis"},     {"-NOAUTH ", "--protocol=redis --password"},
        {"HTTP/", "--protocol=http"},      {"\x81", "--protocol=binary"},
        {"ERROR\r\n", "--protocol=ascii"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = strlen(all[i].head);
        if (len >= n && memcmp(bytes, all[i].head, n) == 0) {
            return all[i].words;
        }
    }
    return NULL;
}
