/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/ask.h"

#include <assert.h>
#include <stdlib.h>

/* How each verb of the mix begins on the wire, and what follows. */
static const struct {
    enum codec_verb verb;
    enum lconn_then then;
} wire[] = {
    [MIX_GET] = {CODEC_GET, THEN_NOTHING},
    [MIX_GETS] = {CODEC_GETS, THEN_NOTHING},
    [MIX_SET] = {CODEC_SET, THEN_NOTHING},
    [MIX_ADD] = {CODEC_ADD, THEN_NOTHING},
    [MIX_CAS] = {CODEC_GETS, THEN_CAS},
    [MIX_DELETE] = {CODEC_DELETE, THEN_NOTHING},
    [MIX_TOUCH] = {CODEC_TOUCH, THEN_NOTHING},
    [MIX_INCR] = {CODEC_INCR, THEN_NOTHING},
    [MIX_INSERT] = {CODEC_SET, THEN_NOTHING},
    [MIX_SCAN] = {CODEC_GET, THEN_NOTHING},
    [MIX_RMW] = {CODEC_GET, THEN_SET},
};
static_assert(sizeof wire / sizeof wire[0] == MIX_VERBS, "each verb has its words");

bool
ask_init(struct ask *a, const struct ask_conf *conf)
{
    *a = (struct ask){
        .w = conf->workload,
        .thread = conf->thread,
        .threads = conf->threads,
    };
    must(conf->threads > 0);
    rng_init(&a->rng, conf->seed, conf->stream);
    a->keys = calloc(conf->workload->keys_max, sizeof *a->keys);
    return a->keys != NULL;
}

void
ask_fini(struct ask *a)
{
    free(a->keys);
    a->keys = NULL;
}

/* Key number `index` of those that this thread inserts. */
static uint64_t
inserted_key(const struct ask *a, uint64_t index)
{
    uint64_t records = a->w->conf.records;
    uint64_t above = a->thread + index * a->threads;
    uint64_t span = WORKLOAD_KEYS_END - records;
    return span == 0 ? above % records : records + above % span;
}

/* What a rank means to this thread: of the latest keys it knows those that it has inserted
 * itself, and those that were there before; of a sequence each thread takes its part. */
static uint64_t
choose_key(struct ask *a)
{
    const struct popularity *p = &a->w->conf.popularity;
    if (p->law == POPULARITY_SEQ) {
        return (a->thread + a->sequence++ * a->threads) % p->keys;
    }
    uint64_t rank = popularity_rank(p, &a->rng);
    if (p->law == POPULARITY_LATEST && a->inserted > 0) {
        if (rank <= a->inserted) {
            return inserted_key(a, a->inserted - rank);
        }
        rank -= a->inserted;
    }
    return popularity_key_of(p, rank);
}

static unsigned
choose_scan(struct ask *a)
{
    uint64_t records = a->w->conf.records;
    uint64_t key = choose_key(a);
    unsigned n = 1 + (unsigned)rng_below(&a->rng, WORKLOAD_SCAN_MAX);
    for (unsigned i = 0; i < n; i++) {
        a->keys[i] = (key + i) % records;
    }
    return n;
}

/* Fills in the keys; returns how many. */
static unsigned
choose_keys(struct ask *a, enum mix_verb verb)
{
    unsigned n = verb == MIX_GET || verb == MIX_GETS ? a->w->conf.getcount : 1;
    if (verb == MIX_SCAN) {
        return choose_scan(a);
    }
    if (verb == MIX_INSERT) {
        a->keys[0] = inserted_key(a, a->inserted++);
        return 1;
    }
    for (unsigned i = 0; i < n; i++) {
        a->keys[i] = choose_key(a);
    }
    if (verb == MIX_INCR) {
        a->keys[0] = workload_counter_of(a->w, a->keys[0]);
    }
    return n;
}

/* A mix of one verb, or a share of none or all, takes no random number. */
static enum mix_verb
choose_verb(struct ask *a)
{
    const struct mix *mix = &a->w->conf.mix;
    return mix->count == 1 ? mix->rows[0].verb : mix_draw(mix, rng_unit(&a->rng));
}

static bool
choose_verified(struct ask *a)
{
    double share = a->w->conf.verify;
    return share > 0 && (share >= 1 || rng_unit(&a->rng) < share);
}

void
ask_push(struct ask *a, struct lconn *c, nsec_t intended)
{
    enum mix_verb verb = choose_verb(a);
    struct lconn_request request = {
        .verb = wire[verb].verb,
        .keys = a->keys,
        .count = choose_keys(a, verb),
        .intended = intended,
        .then = wire[verb].then,
        .is_verified = choose_verified(a),
    };
    lconn_push(c, a->w, &request);
}
