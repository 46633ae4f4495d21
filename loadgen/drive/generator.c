/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/generator.h"

#include "base/alloc.h"

#define PURPOSE_ONCE 1

void
generator_init(struct generator *g, const struct generator_conf *conf)
{
    *g = (struct generator){
        .w = conf->workload,
        .thread = conf->thread,
        .threads = conf->threads,
        .number = conf->number,
        .numbers = conf->numbers,
        .above = conf->above,
        .inserted = conf->inserted != NULL ? *conf->inserted : 0,
        .inserted_kept = conf->inserted,
        .shard = conf->shard,
    };
    must(conf->threads > 0 && conf->numbers > 0);
    rng_init(&g->rng, conf->seed, conf->stream);
    g->once = rng_mix(conf->seed, 0, PURPOSE_ONCE) % WORKLOAD_KEYS_END;
    const struct workload *w = conf->workload;
    const struct workload_conf *c = &w->conf;
    g->keys = alloc_zeroed(w->keys_max, sizeof *g->keys);
    g->servers = alloc_zeroed(w->keys_max, sizeof *g->servers);
    g->is_plain = c->mix.count == 1 && c->mix.rows[0].verb == MIX_GET &&
                  w->getcount == 1 && !w->has_odds && (c->verify <= 0 || c->verify >= 1);
    g->drawn = (struct request){
        .op = {.verb = CODEC_GET, .keys = 1, .is_verified = c->verify >= 1},
        .keys = g->keys};
    g->given = g->drawn.op.keys;
}

void
generator_fini(struct generator *g)
{
    if (g->inserted_kept != NULL) {
        *g->inserted_kept = g->inserted;
    }
    free(g->keys);
    free(g->servers);
    g->keys = NULL;
    g->servers = NULL;
}

/* Key number `index` of those that this thread inserts. */
static uint64_t
inserted_key(const struct generator *g, uint64_t index)
{
    uint64_t n = g->number + index * g->numbers;
    uint64_t span = WORKLOAD_KEYS_END - g->above;
    return span == 0 ? n % g->w->conf.records : g->above + n % span;
}

/* What a rank means to this thread: of the latest keys it knows those that it has inserted
 * itself, and those that were there before; of a sequence each thread takes its part. */
static uint64_t
choose_by_rank(struct generator *g)
{
    const struct popularity *p = &g->w->conf.popularity;
    if (p->law == POPULARITY_SEQ) {
        return (g->thread + g->sequence++ * g->threads) % p->keys;
    }
    uint64_t rank = popularity_rank(p, &g->rng);
    if (p->law == POPULARITY_LATEST && g->inserted > 0) {
        if (rank <= g->inserted) {
            return inserted_key(g, g->inserted - rank);
        }
        rank -= g->inserted;
    }
    return popularity_key_of(p, rank);
}

static inline uint64_t
choose_key(struct generator *g)
{
    const struct popularity *p = &g->w->conf.popularity;
    return likely(p->law == POPULARITY_UNIFORM)
               ? rng_below(&g->rng, p->keys) /* a rank is as good as another */
               : choose_by_rank(g);
}

/* One of the records, or by the odds one that is none of them. */
static uint64_t
draw_key(struct generator *g, bool reads)
{
    const struct workload_conf *c = &g->w->conf;
    if (unlikely(g->w->has_odds)) {
        double u = rng_unit(&g->rng);
        if (u < c->one_hit) {
            uint64_t n = g->number + g->once_given++ * g->numbers;
            return WORKLOAD_ONCE + (g->once + n) % WORKLOAD_KEYS_END;
        }
        if (reads && u < c->one_hit + c->miss_ratio) {
            return WORKLOAD_ABSENT + rng_below(&g->rng, WORKLOAD_KEYS_END);
        }
    }
    return workload_slide(g->w, choose_key(g), g->drift);
}

static unsigned
choose_scan(struct generator *g)
{
    uint64_t records = g->w->conf.records;
    uint64_t key = choose_key(g);
    unsigned n = 1 + (unsigned)rng_below(&g->rng, WORKLOAD_SCAN_MAX);
    for (unsigned i = 0; i < n; i++) {
        g->keys[i] = workload_slide(g->w, (key + i) % records, g->drift);
    }
    return n;
}

static unsigned
choose_count(struct generator *g)
{
    const struct workload *w = g->w;
    return likely(w->getcount > 0)
               ? w->getcount
               : (unsigned)dist_size(&w->conf.getcount, rng_unit(&g->rng), 1,
                                     WORKLOAD_GETCOUNT_MAX);
}

/* Fills in the keys; returns how many. */
static unsigned
choose_keys(struct generator *g, enum mix_verb verb)
{
    bool reads = verb == MIX_GET || verb == MIX_GETS;
    unsigned n = reads ? choose_count(g) : 1;
    if (verb == MIX_SCAN) {
        return choose_scan(g);
    }
    if (verb == MIX_INSERT) {
        g->keys[0] = inserted_key(g, g->inserted++);
        return 1;
    }
    for (unsigned i = 0; i < n; i++) {
        g->keys[i] = draw_key(g, reads);
    }
    if (verb == MIX_INCR) {
        g->keys[0] = workload_counter_of(g->w, g->keys[0]);
    }
    return n;
}

/* A mix of one verb, or a share of none or all, takes no random number. */
static __attribute__((noinline)) void
draw_any(struct generator *g)
{
    const struct mix *mix = &g->w->conf.mix;
    double verified = g->w->conf.verify;
    enum mix_verb verb =
        mix->count == 1 ? mix->rows[0].verb : mix_draw(mix, rng_unit(&g->rng));
    g->drawn.op = (struct request_op){
        .verb = request_of_mix[verb].verb,
        .then = request_of_mix[verb].then,
        .keys = choose_keys(g, verb),
        .is_verified = verified > 0 && (verified >= 1 || rng_unit(&g->rng) < verified),
    };
}

/* Most are plain, and pay nothing for the others. */
static inline void
draw(struct generator *g)
{
    if (likely(g->is_plain)) {
        g->keys[0] = workload_slide(g->w, choose_key(g), g->drift);
    } else {
        draw_any(g);
    }
}

static unsigned
owner_of(const struct generator *g, uint64_t key)
{
    char text[WORKLOAD_KEY_MAX];
    return shard_of(g->shard, text, workload_put_key(g->w, key, text));
}

/* Brings the keys of each server together, in the order in which they were drawn. */
static void
group_keys(struct generator *g, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = g->keys[i];
        unsigned owner = owner_of(g, key), at = i;
        unsigned last = i; /* behind the last one of the same server */
        while (last > 0 && g->servers[last - 1] != owner) {
            last--;
        }
        for (; last > 0 && at > last; at--) {
            g->keys[at] = g->keys[at - 1];
            g->servers[at] = g->servers[at - 1];
        }
        g->keys[at] = key;
        g->servers[at] = owner;
    }
}

unsigned
generator_server(struct generator *g)
{
    if (g->shard == NULL) {
        return 0;
    }
    if (g->given == g->drawn.op.keys) {
        draw(g);
        group_keys(g, g->drawn.op.keys);
        g->given = 0;
    }
    return g->servers[g->given];
}

/* Hands out the keys of that server, which is the next one's. True: they were the last. */
static bool
take_part(struct generator *g, unsigned server)
{
    while (g->given < g->drawn.op.keys && g->servers[g->given] == server) {
        g->given++;
    }
    return g->given == g->drawn.op.keys;
}

bool
generator_skip(struct generator *g)
{
    return g->shard == NULL || take_part(g, generator_server(g));
}

static __attribute__((noinline)) bool
push_part(struct generator *g, struct lconn *c, nsec_t intended, uint32_t tag)
{
    unsigned server = generator_server(g), before = g->given;
    struct request part = g->drawn;
    must(c->server == server);
    bool is_last = take_part(g, server);
    part.keys += before;
    part.op.keys = g->given - before;
    part.op.intended = intended;
    part.op.tag = is_last || tag == 0 ? tag : 1;
    lconn_push(c, g->w, &part);
    return is_last;
}

bool
generator_push(struct generator *g, struct lconn *c, nsec_t intended, uint32_t tag)
{
    if (g->shard != NULL) {
        return push_part(g, c, intended, tag);
    }
    draw(g);
    g->drawn.op.intended = intended;
    g->drawn.op.tag = tag;
    lconn_push(c, g->w, &g->drawn);
    return true;
}
