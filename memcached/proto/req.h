/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A parsed request: plain values and slices into the bytes it was parsed from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQ_WORDS_MAX 8
#define REQ_KEY_MAX 250
#define REQ_VALUE_MAX 2147483645u /* bytes of a value, CR LF excluded */

enum verb {
#define VERB(id, wire, family, min, max, noreply) VERB_##id,
#include "proto/verb.def"
#undef VERB
    VERB_COUNT
};

enum verb_family {
    FAMILY_RETRIEVE, /* any number of keys; answers values and END */
    FAMILY_STORE,    /* a value of value_len bytes follows the line */
    FAMILY_ARITH,
    FAMILY_TOUCH,
    FAMILY_DELETE,
    FAMILY_ADMIN,
    FAMILY_CONTROL, /* answered even when everything else is limited */
};

/* What a connection speaks; replies are written accordingly. */
enum protocol {
    PROTOCOL_UNKNOWN, /* nothing has been received yet */
    PROTOCOL_ASCII,
    PROTOCOL_BINARY,
};

enum reply {
#define REPLY(id, text) REPLY_##id,
#include "proto/reply.def"
#undef REPLY
    REPLY_COUNT
};

struct slice {
    const char *p;
    size_t len;
};

struct req {
    enum protocol protocol; /* of the connection: the parsers leave it */
    enum verb verb;
    enum verb_family family;
    bool is_noreply; /* text: no reply at all, not even an error */
    bool is_quiet;   /* binary: no reply to a miss (RETRIEVE), to success (the others) */
    bool is_open;    /* RETRIEVE: the line goes on; more keys follow (ascii_parse_keys) */
    bool has_keys;   /* open RETRIEVE: an earlier part of the line had keys */
    uint32_t keys;   /* RETRIEVE: how many keys `rest` holds */
    struct slice rest;  /* RETRIEVE: the keys, separated by blanks */
    struct slice key;   /* the other keyed families */
    uint32_t flags;     /* STORE */
    int64_t exptime;    /* STORE, TOUCH, GAT: as the client wrote it */
    uint32_t value_len; /* STORE */
    uint64_t number;    /* CAS: unique; ARITH: delta */
    uint64_t initial;   /* binary ARITH: value of an absent item, when it creates */
    uint64_t compare;   /* binary: the item must have this CAS; 0: any */
    uint32_t opaque;    /* binary: comes back in the reply, bit for bit */
    uint8_t opcode;     /* binary: likewise */
    bool creates;       /* binary ARITH */
    bool wants_key;     /* binary RETRIEVE: the reply holds the key */
    struct slice value; /* SASL: what the mechanism is told */
    unsigned words;     /* ADMIN and CONTROL: the line's words, command included, */
    struct slice word[REQ_WORDS_MAX]; /* as far as they fit */
};

enum parse_status {
    PARSE_DONE, /* *req holds a request, `consumed` bytes are its line */
    PARSE_MORE, /* no whole line yet; nothing consumed */
    PARSE_BAD, /* the line (consumed) is answered with `reply`, then `swallow` bytes go */
    PARSE_CLOSE, /* endless or hostile line: close without a reply */
};

struct parse {
    enum parse_status status;
    size_t consumed;
    enum reply reply;
    bool is_quiet;    /* PARSE_BAD of a noreply command: the reply is suppressed */
    bool skips_line;  /* PARSE_BAD in an open line: the rest up to LF is to be dropped */
    bool closes;      /* PARSE_BAD: the connection ends behind the reply */
    uint64_t swallow; /* bytes of a data block that nobody wants */
};

/* Cuts the next word off *rest. False at the end. */
bool req_next_word(struct slice *rest, struct slice *word);
/* The next key of a RETRIEVE; req->keys must be above 0 and is counted down. */
struct slice req_next_key(struct req *req);
bool req_word_is(struct slice word, const char *text);
