/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The shares of the kinds of requests: "get:90,set:5,delete:3". Pure; the randomness is an
 * argument.
 */
#pragma once

#include "base/must.h"

enum mix_verb {
    MIX_GET,
    MIX_GETS,
    MIX_SET,
    MIX_ADD,
    MIX_CAS, /* a gets, and a cas when it found the key */
    MIX_DELETE,
    MIX_TOUCH,
    MIX_INCR,
    MIX_INSERT, /* a set of a key that was not there before */
    MIX_SCAN,   /* a get of keys that follow each other */
    MIX_RMW,    /* a get, then a set of the same key */
    MIX_VERBS,
};

struct mix {
    unsigned count;
    struct {
        double upto; /* share of this row and all before it */
        enum mix_verb verb;
    } rows[MIX_VERBS]; /* the largest share first: it is found first */
};

/* Weights of any sum above 0. NULL, or a sentence saying what is wrong. */
must_check const char *mix_parse(void *mix, const char *text);
/* Gets and sets, the latter with this share, 0 to 1. */
void mix_of_update(struct mix *m, double share);

/* The verb for u, uniform on (0, 1). */
static inline enum mix_verb
mix_draw(const struct mix *m, double u)
{
    unsigned i = 0;
    while (i + 1 < m->count && u >= m->rows[i].upto) {
        i++;
    }
    return m->rows[i].verb;
}

double mix_share(const struct mix *m, enum mix_verb verb);
/* Of the requests sent, those that do not read: CAS and RMW are two, of which one reads. */
double mix_share_of_updates(const struct mix *m);
