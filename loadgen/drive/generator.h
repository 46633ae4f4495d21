/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One thread's endless list of requests: draws verb and keys from the workload and gives
 * them to a connection. The same (seed, stream) gives the same list, whatever the server
 * does, but for the keys that it inserts: these are new in each run. Its thread only.
 *
 * With several servers that share the keys, a get of keys of several servers becomes a get
 * for each of them: its parts, which are requests of their own.
 */
#pragma once

#include "base/rng.h"
#include "loadgen/wire/lconn.h"
#include "loadgen/wire/shard.h"
#include "loadgen/work/workload.h"

struct generator {
    const struct workload *w;
    struct rng rng;
    unsigned thread, threads;    /* a sequence is thread, thread + threads, ... */
    unsigned number, numbers;    /* likewise the keys that no other request has, */
    uint64_t above;              /* of inserts: above this one */
    uint64_t inserted, sequence; /* how many by this thread, inserted: in all runs */
    uint64_t *inserted_kept;     /* for the next run; NULL: there is none */
    uint64_t once;               /* place of its first key that no other request has */
    uint64_t once_given;         /* how many of these it has had */
    uint64_t drift;              /* records replaced since the run began */
    uint64_t *keys;              /* of the get being made */
    struct request drawn;        /* the latest */
    bool is_plain;               /* all are this one, with another key */
    /* Of several servers, to which it is handed out; NULL: there is one. */
    const struct shard *shard;
    unsigned *servers; /* of its keys, each server's together */
    unsigned given;    /* how many of its keys have been handed out */
};

struct generator_conf {
    const struct workload *workload;
    uint64_t seed, stream;
    unsigned thread, threads; /* of those that share a sequence */
    unsigned number, numbers; /* of all, whatever they send */
    uint64_t above;           /* the most records that any of them has */
    uint64_t *inserted; /* keys by this thread before; updated at the end; or NULL */
    const struct shard *shard; /* NULL: every key belongs to every server */
};

void generator_init(struct generator *g, const struct generator_conf *conf);
void generator_fini(struct generator *g);

/* So long after the begin of the run: which records are in use from now on. */
static inline void
generator_at(struct generator *g, uint64_t elapsed_ns)
{
    if (unlikely(g->w->conf.churn > 0)) {
        g->drift = workload_drift(g->w, elapsed_ns);
    }
}

/* The server that the next part goes to; 0 when that is any. */
unsigned generator_server(struct generator *g);
/* The next part goes to c, one of that server's, which has room and nothing else to do first.
 * True when it was the last of its request: it has the tag, parts before it have 1 at most. */
bool generator_push(struct generator *g, struct lconn *c, nsec_t intended, uint32_t tag);
/* The next part is given up. True when it was the last of its request. */
bool generator_skip(struct generator *g);
