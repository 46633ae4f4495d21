/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A client without a socket: it hands input to a session over a real store, in pieces of any
 * size and under any limits, and collects what the session sends.
 */
#pragma once

#include "serve/session.h"

#include "base/clock.h"
#include "base/rng.h"
#include "check_store.h"

struct client {
    struct store *store;
    struct serve_conf conf;
    struct serve_hooks hooks;
    struct serve_ctr ctr;
    struct pool pool;
    struct env env;
    struct session session;
    struct buf in;
    struct chain out;
    struct text sent;
    struct session_limits limits;
    struct rng rng;
    size_t recv_max;   /* of one read; sizes up to it are drawn; 0: all that fits */
    bool keeps_all;    /* nothing is sent before the end */
    bool varies;       /* limits are drawn anew for every run */
    bool is_closed;    /* the session asked for it, as hostile */
    bool has_quit;     /* the client did */
    unsigned runs_max; /* stop after so many; 0: never */
    unsigned reads;    /* of input into the buffer */
    unsigned shutdowns;
    unsigned runs, lates, longs, agains, rewinds;
};

/* Grows with each lock of a stripe that is taken to write. */
static inline uint64_t
client_store_writes(const struct client *c)
{
    const struct table *t = &c->store->table;
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        sum += atomic_load(&t->stripes[i].seq.number);
    }
    return sum;
}

/* ---- life ----------------------------------------------------------------------------- */

#define LONG_PARTS 40

/* "stats long" is told in parts. */
static inline enum reply
answer_stats(void *ctx, const struct slice *words, unsigned count, uint32_t now,
             struct serve_place *place, struct sink *sink)
{
    (void)ctx;
    expect(now == NOW);
    if (count > 0 && req_word_is(words[0], "long")) {
        sink_statf(sink, "part", "%u", place->at++);
        return place->at < LONG_PARTS ? REPLY_NONE : REPLY_END;
    }
    expect(place->at == 0);
    sink_statf(sink, "words", "%u", count);
    return count > 0 && req_word_is(words[0], "reset") ? REPLY_RESET : REPLY_END;
}

static inline enum reply
answer_qos(void *ctx, struct serve_qos *q)
{
    return answer_stats(ctx, q->words, q->count, NOW, q->place, q->sink);
}

static inline void
count_shutdown(void *ctx, bool is_graceful)
{
    (void)is_graceful;
    ++*(unsigned *)ctx;
}

static inline void
release_item(void *ctx, void *owner)
{
    store_release(ctx, owner);
}

/* Small chunks, so that values of a few KB are chained. */
static inline struct store_conf
small_store_conf(void)
{
    struct store_conf conf = default_conf(64 * MIB);
    conf.growth_factor = 4;
    conf.item_max = 65536;
    conf.chunk_max = 16384;
    conf.can_grow_hash = false;
    conf.inline_suffix = false;
    return conf;
}

static inline void
client_open(struct client *c, enum profile profile, const struct store_conf *conf)
{
    char err[128] = "";
    *c = (struct client){.limits = {.keys = 1000, .out_bytes = SIZE_MAX}};
    c->store = store_create(conf, err, sizeof err);
    expect(c->store != NULL);
    c->conf = (struct serve_conf){.rules = rules_of(profile),
                                  .version = "1.2.3",
                                  .use_cas = conf->use_cas,
                                  .allows_flush = true};
    c->hooks = (struct serve_hooks){.stats = answer_stats,
                                    .qos = answer_qos,
                                    .shutdown = count_shutdown,
                                    .ctx = &c->shutdowns};
    pool_init(&c->pool);
    c->env = (struct env){
        .store = c->store,
        .conf = &c->conf,
        .hooks = &c->hooks,
        .ctr = &c->ctr,
        .chain = {.pool = &c->pool, .release = release_item, .ctx = c->store},
        .now = NOW,
        .looks_closer = true,
    };
    rng_init(&c->rng, 20, 0);
    session_init(&c->session);
}

/* Ends the connection in whatever state it is; the store stays. */
static inline void
client_hang_up(struct client *c)
{
    chain_clear(&c->out, &c->env.chain);
    session_fini(&c->session, &c->env);
    buf_fini(&c->in, &c->pool);
    expect(ctr_get(&c->pool.used) == 0);
}

static inline void
client_close(struct client *c)
{
    client_hang_up(c);
    pool_fini(&c->pool);
    store_destroy(&c->store);
    text_free(&c->sent);
}

/* ---- output --------------------------------------------------------------------------- */

static inline void
client_send(struct client *c, size_t max_bytes)
{
    while (max_bytes > 0 && c->out.bytes > 0) {
        struct iovec iov[4];
        unsigned runs = chain_iov(&c->out, iov, 4, max_bytes);
        expect(runs > 0);
        size_t n = text_add_runs(&c->sent, iov, runs);
        expect(n > 0 && n <= max_bytes && n <= c->out.bytes);
        chain_consume(&c->out, &c->env.chain, n);
        max_bytes -= n;
    }
}

/* All that was sent; cut tells how the input came. */
static inline void
client_check_sent(const struct client *c, const struct text *expected, size_t cut)
{
    size_t at = 0;
    while (at < c->sent.len && at < expected->len && c->sent.p[at] == expected->p[at]) {
        at++;
    }
    ck_assert_msg(at == c->sent.len && at == expected->len,
                  "cut at %zu: output differs at byte %zu of %zu (%zu expected): %.*s",
                  cut, at, c->sent.len, expected->len,
                  (int)(c->sent.len - at < 40 ? c->sent.len - at : 40), c->sent.p + at);
}

/* ---- input ---------------------------------------------------------------------------- */

static inline void
vary(struct client *c)
{
    if (c->varies) {
        c->limits.keys = 1 + (unsigned)rng_below(&c->rng, 9);
        c->limits.out_bytes = 1 + (size_t)rng_below(&c->rng, 9000);
        c->limits.late_bytes = (size_t)rng_below(&c->rng, 3000);
    }
}

static inline bool
has_run_enough(const struct client *c)
{
    return c->runs_max != 0 && c->runs >= c->runs_max;
}

/* Executes the request at the head as far as it goes now. */
static inline void
client_run(struct client *c)
{
    bool is_bulk = false;
    while (!has_run_enough(c)) {
        (void)session_facts(&c->session);
        vary(c);
        struct session_limits limits = c->limits;
        limits.late_bytes = is_bulk ? 0 : limits.late_bytes;
        size_t before = c->out.bytes;
        c->runs++;
        switch (session_run(&c->session, &c->env, &c->in, &c->out, &limits)) {
        case RAN_DONE:
        case RAN_BODY:
            return;
        case RAN_AGAIN:
            c->agains++;
            client_send(c, 1 + (size_t)rng_below(&c->rng, 20000));
            break;
        case RAN_LONG:
            expect(c->out.bytes == before);
            c->longs++;
            break;
        case RAN_LATE:
            expect(limits.late_bytes != 0);
            c->lates++;
            is_bulk = true;
            break;
        case RAN_QUIT:
            c->has_quit = true;
            return;
        case RAN_WATCH:
            ck_abort_msg("there is no log");
        case RAN_CLOSE:
            c->is_closed = true;
            return;
        case RAN_PARKED:
            ck_abort_msg("no other thread works for it");
        case RAN_NO_MEMORY:
            ck_abort_msg("no memory");
        }
    }
}

static inline size_t
read_size(struct client *c, size_t left, size_t room)
{
    size_t n = c->recv_max != 0 ? 1 + (size_t)rng_below(&c->rng, c->recv_max) : left;
    n = n < left ? n : left;
    return n < room ? n : room;
}

/* One read: into the item when the session wants a body, else into the buffer. */
static inline size_t
client_read(struct client *c, enum session_next next, const char *p, size_t left)
{
    char *to;
    size_t room, n;
    if (next == SESSION_WANT) {
        room = session_want(&c->session, &to);
        expect(room > 0 && buf_len(&c->in) == 0);
        n = read_size(c, left, room);
        memcpy(to, p, n);
        session_got(&c->session, n);
        return n;
    }
    expect(buf_open(&c->in, &c->pool, &to, &room));
    expect(room > 0); /* a full buffer is never asked for more */
    n = read_size(c, left, room);
    memcpy(to, p, n);
    buf_fill(&c->in, n);
    expect(buf_len(&c->in) <= BUF_CAPACITY);
    c->reads++;
    return n;
}

/* As when a connection goes to another worker, now and then: a request that has not begun is
 * input again, and the input is in other memory. */
static inline enum session_next
client_peek(struct client *c)
{
    enum session_next next = session_peek(&c->session, &c->env, &c->in);
    if (next == SESSION_CLOSE || !c->varies || rng_below(&c->rng, 4) > 0 ||
        !session_rewind(&c->session)) {
        return next;
    }
    expect(!c->session.is_pending);
    c->rewinds += buf_detach(&c->in, &c->pool);
    enum session_next again = session_peek(&c->session, &c->env, &c->in);
    expect(again == next);
    return again;
}

/* Hands over n bytes and runs all that can run; then the client is idle. */
static inline void
client_write(struct client *c, const char *p, size_t n)
{
    while (!c->has_quit && !c->is_closed && !has_run_enough(c)) {
        enum session_next next = client_peek(c);
        if (next == SESSION_READY) {
            client_run(c);
        } else if (next == SESSION_CLOSE) {
            c->is_closed = true;
        } else if (n > 0) {
            size_t taken = client_read(c, next, p, n);
            p += taken;
            n -= taken;
        } else {
            buf_park(&c->in, &c->pool);
            break;
        }
    }
    if (!c->keeps_all) {
        client_send(c, SIZE_MAX);
    }
}

/* Writes a pattern and returns what came back for it, as a string. */
static inline const char *
client_exchange(struct client *c, const char *pattern)
{
    struct text input = {.p = NULL};
    text_expand(&input, pattern);
    c->sent.len = 0;
    client_write(c, input.p, input.len);
    text_add(&c->sent, "", 1);
    c->sent.len--;
    text_free(&input);
    return c->sent.p;
}
