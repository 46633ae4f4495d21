/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which keys have been met, up to so many: a table of 64 bits of each, open addressed with
 * linear probing, that doubles when three quarters are taken. Two of n keys have the same
 * 64 bits, so that the second counts as known, with a probability of about n^2 / 2^65: of ten
 * millions in three cases of a million. One thread.
 */
#pragma once

#include "base/must.h"

/* Bytes a key: less than 22, and for a moment half as many more while it grows. */
struct keyset {
    uint64_t *places; /* 0: free */
    uint64_t size;    /* a power of two, or 0 */
    uint64_t count, most;
};

enum keyset_met {
    KEYSET_NEW,   /* it is in the set now */
    KEYSET_KNOWN, /* it was in it before */
    KEYSET_FULL,  /* it is one more than `most` */
};

void keyset_init(struct keyset *s, uint64_t most);
/* Also of one that is all zero. */
void keyset_fini(struct keyset *s);
/* `hash` is well mixed in all its bits. */
must_check enum keyset_met keyset_add(struct keyset *s, uint64_t hash);
