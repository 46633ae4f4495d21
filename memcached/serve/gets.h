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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    size_t value_bytes; /* the largest that is copied */
    size_t line_bytes;  /* of replies to one line, at most */
    char *to, *end;     /* free space */
    char *last_begin;   /* no further key is answered when it is used up to here */
    unsigned count;
    uint32_t line_ends; /* a bit for each key that is the last one of a whole line */
    struct store_read keys[GETS_KEYS];
    /* of the run: */
    struct item *held; /* a reference, the caller's to release */
    unsigned misses;
    unsigned lines; /* that were answered in whole, up to `line` in the output */
    char *line;
    ctr_t *counters[GETS_KEYS]; /* what each key is counted by */
};

/* Into room bytes; no line ends. */
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
