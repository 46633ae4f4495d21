/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The protocols that mcload speaks, all behind one interface: a codec writes requests into a
 * buffer and finds the replies to them in what comes back, cut anywhere. Replies of every
 * protocol are told in the words of memcached's text protocol (struct client_reply), so that
 * nothing else asks which protocol runs. Pure: no sockets, no memory beyond the caller's.
 * One parser per connection; its owner's thread only.
 */
#pragma once

#include <assert.h>

#include "base/must.h"
#include "proto/client.h"

enum codec_verb {
    CODEC_GET,
    CODEC_GETS, /* with the cas of each value */
    CODEC_SET,
    CODEC_ADD,
    CODEC_CAS,
    CODEC_DELETE,
    CODEC_TOUCH,
    CODEC_INCR,
    CODEC_AUTH, /* the first request of a connection */
    CODEC_REPLACE,
    CODEC_APPEND,
    CODEC_PREPEND,
    CODEC_DECR,
    CODEC_VERBS,
};

#define CODEC_BIT(verb) (1U << (verb))

static inline bool
codec_is_get(enum codec_verb verb)
{
    return verb == CODEC_GET || verb == CODEC_GETS;
}

struct codec_store {
    enum codec_verb verb; /* SET, ADD, REPLACE, CAS, APPEND or PREPEND */
    const char *key;
    size_t key_len;
    uint32_t flags;
    int32_t exptime;
    size_t value_len;
    uint64_t cas; /* verb CAS only */
};

/* A request with nothing but a key and, but for DELETE, a number. */
struct codec_order {
    enum codec_verb verb; /* DELETE, TOUCH, INCR or DECR */
    const char *key;
    size_t key_len;
    uint64_t number; /* seconds to live, or what to add or take */
};

/* How a get asks for a lease on its key: the client that finds nothing, or a value that
 * lives no longer than `recache` seconds (0: any), has won it, for `seconds`; others are
 * told so. */
struct codec_lease {
    uint32_t seconds, recache;
};

/* A get of `keys` keys, or one of its keys. */
struct codec_get {
    enum codec_verb verb; /* GET or GETS */
    unsigned keys;
    const struct codec_lease *lease; /* NULL: none is asked for */
};

/* The oldest request that was sent and not answered: what a reply can only be to. */
struct codec_expect {
    enum codec_verb verb;
    unsigned keys; /* of a get */
};

struct codec_parser {
    struct client_parser text; /* its input is that of every codec */
    uint8_t state;             /* the codec's own, 0 between replies */
    uint8_t opcode, extras_len;
    uint16_t key_len, status;
    bool is_chunked, has_length, says_close;
    bool is_last;
    enum client_kind held; /* told when the rest of the reply was taken */
    unsigned index, parts; /* of a reply with several parts: done, and all */
    uint64_t cas;
};

/* Writers need room at dst for CLIENT_REQUEST_ROOM bytes and, for each key, its length and
 * CODEC_KEY_ROOM; they return the bytes written. Keys are checked by the caller. */
#define CODEC_KEY_ROOM 32
/* Of a value whose length is not known before its end. */
#define CODEC_LEN_UNKNOWN UINT64_MAX
/* Longest name and longest password; and room for both in put_auth. */
#define CODEC_AUTH_MAX 255
#define CODEC_AUTH_ROOM (2 * CODEC_AUTH_MAX + CLIENT_REQUEST_ROOM)

struct codec {
    const char *name;
    unsigned verbs; /* CODEC_BIT of each that it has words for */
    bool has_multiget;
    bool lists_keys; /* one behind the other in a get, which has nothing else for each */
    bool has_datagrams;  /* can be sent in them */
    bool takes_any_byte; /* in keys; others end a key at a blank */
    bool has_stats;      /* its server answers memcached's `stats` in the text protocol */
    bool has_leases;     /* of keys that are missed */
    bool has_hits;       /* values are what client_parse_hit takes */
    bool has_lone_secret; /* a password may have no user name */

    /* A get: put_get, put_key for each key, put_get_end; the first and the last may be NULL.
     * With a lease, where there are any, the value comes with its cas and its marks
     * (client_reply), an empty one where there was nothing. */
    size_t (*put_get)(char *dst, const struct codec_get *get);
    size_t (*put_key)(char *dst, const struct codec_get *get, const char *key,
                      size_t key_len);
    size_t (*put_get_end)(char *dst, const struct codec_get *get);
    /* The caller puts the value between the two; the second may be NULL. */
    size_t (*put_store)(char *dst, const struct codec_store *store);
    size_t (*put_store_end)(char *dst, const struct codec_store *store);
    size_t (*put_order)(char *dst, const struct codec_order *order);
    size_t (*put_auth)(char *dst, const char *user, const char *password);

    /* One step of codec_parse: adds to *taken; CODEC_ON when another step is needed. */
    enum client_kind (*step)(struct codec_parser *p, const struct codec_expect *expect,
                             const char *buf, size_t len, size_t *taken,
                             struct client_reply *reply);
};

/* The codec of that name, NULL when there is none. */
const struct codec *codec_find(const char *name);
/* What bytes that are no reply of a protocol look like: the words of the command line for what
 * the server speaks. NULL: nothing that is known. */
const char *codec_guess(const char *bytes, size_t len);
/* All, NULL behind the last; the first is the default. */
extern const struct codec *const codec_all[];

static inline size_t
codec_put_get(const struct codec *codec, char *dst, const struct codec_get *get)
{
    return codec->put_get != NULL ? codec->put_get(dst, get) : 0;
}

static inline size_t
codec_put_get_end(const struct codec *codec, char *dst, const struct codec_get *get)
{
    return codec->put_get_end != NULL ? codec->put_get_end(dst, get) : 0;
}

static inline size_t
codec_put_store_end(const struct codec *codec, char *dst, const struct codec_store *store)
{
    return codec->put_store_end != NULL ? codec->put_store_end(dst, store) : 0;
}

/* A get of keys of a length known before: all but the keys is prepared. Of several, where the codec
 * lists them, what is from one key's end to the next one's is that from `list_at` on. */
#define CODEC_STENCIL_SHORT 64
static_assert(CODEC_STENCIL_SHORT <= CLIENT_REQUEST_ROOM, "there is room for it");

struct codec_stencil {
    size_t len, key_at; /* of one key; len 0: there is none */
    size_t list_at, key_end;
    char bytes[CLIENT_KEY_MAX + CODEC_KEY_ROOM + CLIENT_REQUEST_ROOM];
};

/* Of keys like this one. */
void codec_stencil_init(struct codec_stencil *s, const struct codec *codec,
                        const char *like, size_t key_len);
/* Writes it; the caller puts what is different in its key into its place, dst + key_at. A short one with
 * what lies behind it: for that there is room, and a copy of constant length is no call. */
static inline size_t
codec_put_stencil(char *dst, const struct codec_stencil *s)
{
    if (likely(s->len <= CODEC_STENCIL_SHORT)) {
        memcpy(dst, s->bytes, CODEC_STENCIL_SHORT);
    } else {
        memcpy(dst, s->bytes, s->len);
    }
    return s->len;
}

extern const char *const codec_verb_names[CODEC_VERBS];
void codec_parser_init(struct codec_parser *p);

/* As client_parse, for replies to `expect`; the caller has made sure that a reply can come.
 * Values come in the order of their keys; one without a key (key NULL) is the answer to key
 * number `index` of the get. CLIENT_END ends every get, CLIENT_STORED an AUTH that was
 * accepted. Errors have their text, but for those of one key among several. */
must_check size_t codec_parse(const struct codec *codec, struct codec_parser *p,
                              const struct codec_expect *expect, const char *buf,
                              size_t len, struct client_reply *reply);

/* ---- for the codecs themselves ------------------------------------------------------ */

#define CODEC_ON CLIENT_KINDS

static inline enum client_kind
codec_kind_of(enum client_take take)
{
    return take == CLIENT_TAKEN ? CODEC_ON
           : take == CLIENT_CUT ? CLIENT_MORE
                                : CLIENT_DESYNC;
}

/* Bytes of a value: CLIENT_DATA; CODEC_ON once it and its terminator are taken. */
enum client_kind codec_take_value(struct codec_parser *p, const char *buf, size_t len,
                                  size_t *taken, struct client_reply *reply);
/* The same for bytes to be dropped: never CLIENT_DATA. */
enum client_kind codec_skip_value(struct codec_parser *p, const char *buf, size_t len,
                                  size_t *taken);
/* What it is called that a request with neither value nor number has had its effect. */
enum client_kind codec_done_kind(enum codec_verb verb);
/* The kind held for the end of the reply; CLIENT_END when none is. */
enum client_kind codec_tell(struct codec_parser *p);
size_t codec_put_text(char *dst, const char *text);
size_t codec_put(char *dst, const char *bytes, size_t len);
/* "$len CR LF bytes CR LF" and the like: the number and CR LF. */
size_t codec_put_line(char *dst, char type, uint64_t number);

/* put_store_end and put_auth of both text protocols. */
size_t codec_put_text_end(char *dst, const struct codec_store *store);
size_t codec_put_text_auth(char *dst, const char *user, const char *password);

/* One each protocol: its source file. */
extern const struct codec codec_ascii, codec_meta, codec_binary, codec_redis, codec_http;
