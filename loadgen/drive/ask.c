/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/ask.h"

#include <assert.h>
#include <stdlib.h>

/* How each verb of the mix begins on the wire, and what follows. */
static const struct {
    enum codec_verb verb;
    enum request_then then;
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

#define PURPOSE_ONCE 1

bool
ask_init(struct ask *a, const struct ask_conf *conf)
{
    *a = (struct ask){
        .w = conf->workload,
        .thread = conf->thread,
        .threads = conf->threads,
        .shard = conf->shard,
    };
    must(conf->threads > 0);
    rng_init(&a->rng, conf->seed, conf->stream);
    a->once = rng_mix(conf->seed, 0, PURPOSE_ONCE) % WORKLOAD_KEYS_END;
    a->keys = calloc(conf->workload->keys_max, sizeof *a->keys);
    a->servers = calloc(conf->workload->keys_max, sizeof *a->servers);
    return a->keys != NULL && a->servers != NULL;
}

void
ask_fini(struct ask *a)
{
    free(a->keys);
    free(a->servers);
    a->keys = NULL;
    a->servers = NULL;
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

void
ask_at(struct ask *a, uint64_t elapsed_ns)
{
    a->drift = workload_drift(a->w, elapsed_ns);
}

/* One of the records, or by the odds one that is none of them. */
static uint64_t
draw_key(struct ask *a, bool reads)
{
    const struct workload_conf *c = &a->w->conf;
    if (unlikely(a->w->has_odds)) {
        double u = rng_unit(&a->rng);
        if (u < c->one_hit) {
            uint64_t n = a->thread + a->once_given++ * a->threads;
            return WORKLOAD_ONCE + (a->once + n) % WORKLOAD_KEYS_END;
        }
        if (reads && u < c->one_hit + c->miss_ratio) {
            return WORKLOAD_ABSENT + rng_below(&a->rng, WORKLOAD_KEYS_END);
        }
    }
    return workload_slide(a->w, choose_key(a), a->drift);
}

static unsigned
choose_scan(struct ask *a)
{
    uint64_t records = a->w->conf.records;
    uint64_t key = choose_key(a);
    unsigned n = 1 + (unsigned)rng_below(&a->rng, WORKLOAD_SCAN_MAX);
    for (unsigned i = 0; i < n; i++) {
        a->keys[i] = workload_slide(a->w, (key + i) % records, a->drift);
    }
    return n;
}

static unsigned
choose_count(struct ask *a)
{
    const struct workload *w = a->w;
    return likely(w->getcount > 0)
               ? w->getcount
               : (unsigned)dist_size(&w->conf.getcount, rng_unit(&a->rng), 1,
                                     WORKLOAD_GETCOUNT_MAX);
}

/* Fills in the keys; returns how many. */
static unsigned
choose_keys(struct ask *a, enum mix_verb verb)
{
    bool reads = verb == MIX_GET || verb == MIX_GETS;
    unsigned n = reads ? choose_count(a) : 1;
    if (verb == MIX_SCAN) {
        return choose_scan(a);
    }
    if (verb == MIX_INSERT) {
        a->keys[0] = inserted_key(a, a->inserted++);
        return 1;
    }
    for (unsigned i = 0; i < n; i++) {
        a->keys[i] = draw_key(a, reads);
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

static void
draw(struct ask *a, struct request *request)
{
    enum mix_verb verb = choose_verb(a);
    *request = (struct request){
        .verb = wire[verb].verb,
        .keys = a->keys,
        .count = choose_keys(a, verb),
        .then = wire[verb].then,
        .is_verified = choose_verified(a),
    };
}

static unsigned
owner_of(const struct ask *a, uint64_t key)
{
    char text[WORKLOAD_KEY_MAX];
    return shard_of(a->shard, text, workload_put_key(a->w, key, text));
}

/* Brings the keys of each server together, in the order in which they were drawn. */
static void
group_keys(struct ask *a, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = a->keys[i];
        unsigned owner = owner_of(a, key), at = i;
        unsigned last = i; /* behind the last one of the same server */
        while (last > 0 && a->servers[last - 1] != owner) {
            last--;
        }
        for (; last > 0 && at > last; at--) {
            a->keys[at] = a->keys[at - 1];
            a->servers[at] = a->servers[at - 1];
        }
        a->keys[at] = key;
        a->servers[at] = owner;
    }
}

unsigned
ask_server(struct ask *a)
{
    if (a->shard == NULL) {
        return 0;
    }
    if (a->given == a->drawn.count) {
        draw(a, &a->drawn);
        group_keys(a, a->drawn.count);
        a->given = 0;
    }
    return a->servers[a->given];
}

void
ask_drop(struct ask *a)
{
    a->given = a->drawn.count;
}

static bool
push_part(struct ask *a, struct lconn *c, nsec_t intended, uint32_t tag)
{
    unsigned server = ask_server(a);
    struct request part = a->drawn;
    part.keys += a->given;
    part.intended = intended;
    for (part.count = 0; a->given < a->drawn.count && a->servers[a->given] == server;
         part.count++) {
        a->given++;
    }
    must(c->server == server);
    bool is_last = a->given == a->drawn.count;
    part.tag = is_last || tag == 0 ? tag : 1;
    lconn_push(c, a->w, &part);
    return is_last;
}

bool
ask_push(struct ask *a, struct lconn *c, nsec_t intended, uint32_t tag)
{
    struct request request;
    if (a->shard != NULL) {
        return push_part(a, c, intended, tag);
    }
    draw(a, &request);
    request.intended = intended;
    request.tag = tag;
    lconn_push(c, a->w, &request);
    return true;
}
