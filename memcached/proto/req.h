/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A parsed request: plain values and slices into the bytes it was parsed from.
 */
#pragma once

#include "base/must.h"

#define LINE_END_BYTES 2 /* CR LF, in the text protocol behind each line and value */
#define REQ_WORDS_MAX 8
#define REQ_KEY_MAX 250
#define REQ_VALUE_MAX 2147483645u /* bytes of a value, CR LF excluded */
#define META_WORDS_MAX 20         /* of a meta command's line */
#define META_OPAQUE_MAX 32        /* bytes of an opaque word, its letter included */

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
    FAMILY_META, /* mg, md, ma, me; ms is a STORE */
    FAMILY_ADMIN,
    FAMILY_SASL,
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

/* The flags of a meta command. Copies, for an ms outlives its line. */
struct req_meta {
    uint64_t has;           /* a bit for each flag (meta_has) */
    uint64_t compare;       /* C */
    uint64_t new_cas;       /* E; 0: the next number */
    uint64_t initial;       /* J */
    uint64_t delta;         /* D */
    int32_t create_exptime; /* N */
    int32_t recache_below;  /* R, as the client wrote it */
    char mode;              /* M: its letter, 0 without */
    uint8_t count;
    char order[META_WORDS_MAX]; /* the letters of the flags as they came: 0..count */
    uint8_t opaque_len;
    char opaque[META_OPAQUE_MAX]; /* O: the word */
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
    struct slice
        rest; /* RETRIEVE: the keys, separated by blanks; ADMIN, CONTROL: the line */
    struct slice key;   /* the other keyed families */
    uint32_t flags;     /* STORE; meta: F */
    int64_t exptime;    /* STORE, TOUCH, GAT: as the client wrote it; meta: T */
    uint32_t value_len; /* STORE */
    uint64_t number;    /* CAS: unique; ARITH: delta */
    uint64_t initial;   /* binary ARITH: value of an absent item, when it creates */
    uint64_t compare;   /* binary: the item must have this CAS; 0: any */
    uint32_t opaque;    /* binary: comes back in the reply, bit for bit */
    uint8_t opcode;     /* binary: likewise */
    bool creates;       /* binary ARITH */
    bool wants_key;     /* binary RETRIEVE: the reply holds the key */
    struct slice value; /* SASL: the mechanism's input */
    unsigned
        words; /* ADMIN and CONTROL: the line's words, the command but not noreply, */
    union {
        struct slice word[REQ_WORDS_MAX]; /* as far as they fit */
        struct req_meta meta;             /* meta commands */
    };
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
    uint64_t swallow; /* bytes of a data block to be dropped */
};

/* Cuts the next word off *rest. False at the end. */
bool req_next_word(struct slice *rest, struct slice *word);
/* Puts the words of the text behind those in req->word, the first ones, and counts all. Returns the
 * last. */
struct slice req_cut_words(struct slice text, struct req *req);
/* The next key of a RETRIEVE; req->keys must be above 0 and is counted down. */
struct slice req_next_key(struct req *req);
bool req_word_is(struct slice word, const char *text);
bool req_begins(struct slice text, const char *with);
/* The whole word as a number: digits, or zeros behind a minus sign. */
must_check bool req_digits_u64(struct slice word, uint64_t *out);
