/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Gets, many keys at once: looked up in one call of the store, and their values copied from
 * where they lie to where they are sent from.
 *
 *     "get a b\r\nget c\r\n"  ->  keys a b c  ->  store_read  ->  "VALUE a ... END\r\nVALUE c ..."
 *
 * The worker's thread.
 */
#pragma once

#include "proto/ascii.h"
#include "serve/env.h"

#define GETS_KEYS STORE_READS_MAX
/* A larger value is lent to the output: a copy would cost more than the reference. */
#define GETS_COPY_MAX (CHAIN_RESERVE_MAX - ASCII_VALUE_HEAD_MAX - 2)

/* Keys, and what was found. After gets_begin the rest is the caller's to set, but for what is
 * said to be the run's. */
struct gets {
    const struct env *env;
    const struct req *binary; /* a binary client's, of one key; NULL: a text client's */
    bool wants_cas;
    bool may_hold; /* a value that is too large to be copied ends the run, as `held` */
    size_t value_bytes;      /* the largest that is copied */
    size_t line_bytes;       /* of replies to one line, at most */
    char *to, *end;          /* free space */
    char *last_begin;        /* no further key is answered when it is used up to here */
    struct store_read *keys; /* GETS_KEYS at most */
    unsigned count;
    uint32_t line_ends; /* a bit for each key that is the last one of a whole line */
    /* of the run: */
    struct item *held; /* a reference, the caller's to release */
    unsigned misses;
    unsigned lines; /* that were answered in whole, up to `line` in the output */
    char *line;
    ctr_t *counters[GETS_KEYS]; /* what each key is counted by */
};

/* Into room bytes; there are no keys, and no line ends. */
void gets_begin(struct gets *g, const struct env *env, char *to, size_t room);
/* Looks up the keys and writes what was found. Returns how many; the next one had no space, or is
 * too large. */
unsigned gets_run(struct gets *g);
/* Counts the first n keys of a run. */
void gets_count(const struct gets *g, unsigned n);

/* Whole lines of plain gets. */
struct gets_limits {
    unsigned requests, keys; /* keys: of each */
    size_t value_bytes, line_bytes;
};

struct gets_served {
    unsigned requests;
    size_t consumed, made; /* bytes of input and output */
};

/* Serves those at the front of in[0..len) as long as there are only such: what is left is the
 * session's. No watcher wants key events. in[len] is a line feed, with the bytes behind it that
 * proto/ascii_cut.h reads. */
struct gets_served gets_serve(const struct env *env, const char *in, size_t len, char *to,
                              size_t room, const struct gets_limits *limits);

/* A plain get of many keys, which are looked up GETS_KEYS at a time. */
#define GETS_LINE_KEYS 128

struct gets_line {
    struct gets gets;
    const char *rest,
        *next;          /* of its keys, at a blank or the line's end; the next line */
    unsigned at, count; /* keys: answered, all */
    struct store_read keys[GETS_LINE_KEYS];
};

/* The line at the front of in[0..len), to be answered into room bytes; as gets_serve. False: it is no
 * such, or has not more than `few` keys. */
must_check bool gets_line_begin(struct gets_line *line, const struct env *env,
                                const char *in, size_t len, unsigned few, char *to,
                                size_t room);

enum gets_line_step {
    GETS_LINE_MORE, /* there are keys left */
    GETS_LINE_DONE,
    GETS_LINE_STUCK, /* no room, or a value is too large: `rest` is the session's */
};

/* Answers the next keys. */
must_check enum gets_line_step gets_line_step(struct gets_line *line);
