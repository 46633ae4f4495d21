/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which class should give a page away: a decision from a window of samples, one a second.
 * Pure; the caller takes the samples and moves the pages. Private to store/.
 *
 * A class with pages to spare, in whose window nothing was refused, evicted or added, gives
 * one to the pool. Else the class whose items are oldest gives one to the class that evicts
 * the youngest, if the difference is large enough.
 */
#pragma once

#include "store/store.h"

#define AUTOMOVE_WINDOW_MIN 3
#define AUTOMOVE_WINDOW_MAX 1800

struct automove_conf {
    double ratio;
    unsigned window;           /* samples, AUTOMOVE_WINDOW_MIN to _MAX */
    unsigned spare_half_pages; /* of free chunks that a class may keep */
    bool waits_until_full;     /* no class gives to the pool while memory is left */
    bool counts_shares;        /* a quarter of all evictions makes a class needy, too */
    bool ignores_ages;         /* only spare pages move */
};

/* What is known about a class now; counters may go back to 0 at a reset. */
struct automove_class {
    uint64_t evicted, outofmemory;
    uint64_t losses, returns; /* s3fifo: of a sample: left the main queue; came back */
    uint64_t free_chunks;
    uint32_t pages, chunks_per_page;
    uint32_t age;    /* of the tail */
    bool keeps_most; /* is passed over when room is made: no page is taken for others */
    unsigned host, best; /* store_class_stats, slab_best_class */
    bool is_wanted;      /* struct slab_class */
};

struct automove_sample {
    unsigned class_count; /* ids 1..class_count */
    bool is_full;         /* but for the pool */
    uint32_t now;
    uint64_t remembered; /* s3fifo: how many losses are */
    struct automove_class class[STORE_CLASSES];
};

/* One second of one class. */
struct automove_record {
    uint64_t age;
    uint64_t evictions;
    bool is_dirty;
};

struct automove_ring {
    struct automove_class last;
    uint64_t age, evictions;  /* sums over the records */
    unsigned dirty, evicting; /* how many of them are, did */
};

struct automove {
    struct automove_record *records; /* [class][window] */
    struct automove_ring rings[STORE_CLASSES];
    unsigned window; /* records of a class; 0: none yet */
    unsigned filled, at;
};

struct automove_move {
    unsigned from, to; /* to 0: the pool */
};

/* All zero is an empty window. */
void automove_fini(struct automove *a);

/* Adds a second's sample. A changed window forgets the old records. False: no memory. */
must_check bool automove_add(struct automove *a, const struct automove_conf *conf,
                             const struct automove_sample *sample);
/* What to do after the last sample; false: nothing. After a move to the pool the caller may
 * ask again at once, with a fresh sample of the same second. */
must_check bool automove_decide(const struct automove *a,
                                const struct automove_conf *conf,
                                const struct automove_sample *sample,
                                struct automove_move *move);
