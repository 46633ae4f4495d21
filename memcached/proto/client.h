/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The text protocol from the client's side: writes requests, parses replies as they come
 * in, cut anywhere. Pure: no sockets, no memory beyond the caller's structs. One parser per
 * connection; its owner's thread only.
 */
#pragma once

#include "base/must.h"
#include "base/short_text.h"
#include "proto/client_input.h"

#define CLIENT_KEY_MAX 250
/* Bytes that a request line needs beside its keys. */
#define CLIENT_REQUEST_ROOM 128

/* ---- requests: each writes at dst, which has room (keys + CLIENT_REQUEST_ROOM), and
 * returns the bytes written. Keys are checked by the caller. ------------------------- */

/* A get of one or more keys: client_put_get, client_put_key for each, client_put_end. */
size_t client_put_get(char *dst, bool with_cas);
size_t client_put_key(char *dst, const char *key, size_t key_len);
size_t client_put_end(char *dst);

struct client_store {
    const char *verb; /* set, add, replace, append, prepend or cas */
    const char *key;
    size_t key_len;
    uint32_t flags;
    int32_t exptime;
    size_t value_len;
    uint64_t cas;  /* verb cas only */
    bool is_quiet; /* noreply */
};

/* The request line; the caller appends the value and client_put_end. */
size_t client_put_store(char *dst, const struct client_store *store);

/* "verb key[ number]": delete (no number), incr, decr, touch. */
size_t client_put_delete(char *dst, const char *key, size_t key_len);
size_t client_put_number(char *dst, const char *verb, const char *key, size_t key_len,
                         uint64_t number);

/* ---- replies ----------------------------------------------------------------------- */

enum client_kind {
    CLIENT_MORE, /* all input taken, no further reply in it */
    /* Parts of the reply to a get; CLIENT_END is its last. */
    CLIENT_VALUE, /* key, flags, value_len, cas; its bytes follow */
    CLIENT_DATA,  /* text: some bytes of the value, never none */
    CLIENT_END,   /* also ends statistics */
    /* Whole replies. */
    CLIENT_STORED,
    CLIENT_NOT_STORED,
    CLIENT_EXISTS,
    CLIENT_NOT_FOUND,
    CLIENT_DELETED,
    CLIENT_TOUCHED,
    CLIENT_OK,
    CLIENT_RESET,
    CLIENT_NUMBER,       /* number: of incr and decr */
    CLIENT_STAT,         /* text: after "STAT "; CLIENT_END follows the last */
    CLIENT_VERSION,      /* text: after "VERSION " */
    CLIENT_ERROR,        /* "ERROR" */
    CLIENT_CLIENT_ERROR, /* text: after the first word */
    CLIENT_SERVER_ERROR, /* text: likewise */
    /* Not this protocol; the parser takes nothing more until client_parser_init. */
    CLIENT_DESYNC,
    CLIENT_KINDS,
};

/* What memcached's meta commands say of a value beside it. */
enum client_mark {
    CLIENT_MARK_WON = 1,   /* this client alone is to store it anew */
    CLIENT_MARK_TAKEN = 2, /* another client is about to */
    CLIENT_MARK_STALE = 4, /* it was declared to be out of date */
};

struct client_reply {
    enum client_kind kind;
    uint8_t marks;   /* bits of enum client_mark */
    const char *key; /* valid until the next call */
    size_t key_len;
    unsigned index; /* without a key: which of those asked for the value belongs to */
    uint32_t flags;
    bool has_cas;
    bool is_last; /* the server closes the connection behind this reply */
    uint64_t value_len;
    uint64_t cas;
    uint64_t number;
    const char *text; /* into the input or the parser; valid until the next call */
    size_t text_len;
};

struct client_parser {
    struct client_input in;
    bool is_broken;
};

void client_parser_init(struct client_parser *p);

/* Finds the next reply, or part of one, in buf[0..len) and returns how many bytes were
 * taken. Call again with the rest until it says CLIENT_MORE (everything taken; what is
 * unfinished is kept in the parser). */
must_check size_t client_parse(struct client_parser *p, const char *buf, size_t len,
                               struct client_reply *reply);

/* What the line of a hit says behind its key, " flags bytes CR LF": most say what the one before
 * said. All zero: there was none yet. */
struct client_hit_line {
    struct short_text text;
    size_t key_len, value_at;
    size_t
        least; /* bytes that a hit with such a line has, and the rest; 0: it is not compared */
    uint32_t flags, bytes;
};

#define CLIENT_HIT_BEGIN "VALUE "
#define CLIENT_HIT_END "\r\nEND\r\n"

/* Reads the line of a hit that buf begins with; false when there is none, or not all of the hit and
 * of what client_parse_hit wants behind it. */
must_check bool client_read_hit_line(const char *buf, size_t len,
                                     struct client_hit_line *line);

/* A value in the reply to a get, when all of it and as many bytes as "END CR LF" has lie in buf:
 * fills in key, flags and value (text), and returns its length; `last` becomes its line. CLIENT_END
 * when it is the last one, whose length is that with the end of the reply; else CLIENT_VALUE. 0
 * when it is anything else, which is for client_parse to say. Where a value or a reply begins only;
 * a key with a blank or a line feed is none, which the caller sees that compares it with the one
 * asked for. */
must_check static inline __attribute__((always_inline)) size_t
client_parse_hit(const char *buf, size_t len, struct client_hit_line *last,
                 struct client_reply *reply)
{
    const size_t begin_len = sizeof CLIENT_HIT_BEGIN - 1;
    const size_t end_len = sizeof CLIENT_HIT_END - 1, behind_len = sizeof "\r\n" - 1;
    bool is_like_last = len >= last->least && last->least > 0 &&
                        memcmp(buf, CLIENT_HIT_BEGIN, begin_len) == 0 &&
                        short_text_begins(&last->text, buf + begin_len + last->key_len);
    if (unlikely(!is_like_last) && !client_read_hit_line(buf, len, last)) {
        return 0;
    }
    size_t value_end = last->value_at + last->bytes;
    bool is_end = memcmp(buf + value_end, CLIENT_HIT_END, end_len) == 0;
    if (unlikely(!is_end) && memcmp(buf + value_end, CLIENT_HIT_END, behind_len) != 0) {
        return 0;
    }
    reply->kind = is_end ? CLIENT_END : CLIENT_VALUE;
    reply->key = buf + begin_len;
    reply->key_len = last->key_len;
    reply->flags = last->flags;
    reply->value_len = reply->text_len = last->bytes;
    reply->text = buf + last->value_at;
    return value_end + (is_end ? end_len : behind_len);
}

/* A line that is a word and free text, such as an error; CLIENT_DESYNC when it is not. */
enum client_kind client_parse_text(struct client_text line, struct client_reply *reply);

/* True between replies: nothing half read. */
bool client_parser_is_idle(const struct client_parser *p);
const char *client_kind_name(enum client_kind kind);
