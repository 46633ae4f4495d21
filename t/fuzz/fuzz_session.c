/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A whole session over a store of 1 MB: the same bytes, cut differently and executed in
 * pieces of different size, give the same output. The first byte chooses profile, CAS and
 * cut.
 */
#include "fuzz.h"

#include "serve/session.h"

#define FLAG_PROFILE 1
#define FLAG_NO_CAS 2
#define NOW 1000
#define MIB (1024u * 1024u)

/* One life of a session and everything beneath. */
struct run {
    struct store *store;
    struct serve_conf conf;
    struct serve_ctr ctr;
    struct pool pool;
    struct env env;
    struct session session;
    struct buf in;
    struct chain out;
    struct session_limits limits;
    struct text sent;
    bool is_closed; /* by the server, as hostile */
};

static enum reply
answer_stats(void *ctx, const struct slice *words, unsigned count, uint32_t now,
             unsigned *cursor, struct sink *sink)
{
    (void)cursor;
    (void)ctx, (void)now;
    for (unsigned i = 0; i < count; i++) {
        must(words[i].len > 0 && words[i].p[0] != ' ');
    }
    sink_stat(sink, "pid", "1");
    return REPLY_END;
}

static enum reply
answer_qos(void *ctx, const struct slice *words, unsigned count, struct sink *sink)
{
    return answer_stats(ctx, words, count, 0, NULL, sink);
}

static void
ignore_shutdown(void *ctx, bool is_graceful)
{
    (void)ctx, (void)is_graceful;
}

static const struct serve_hooks hooks = {
    .stats = answer_stats, .qos = answer_qos, .shutdown = ignore_shutdown};

static void
release_item(void *ctx, void *owner)
{
    store_release(ctx, owner);
}

static void
run_open(struct run *r, uint8_t flags, struct session_limits limits)
{
    char err[128] = "";
    struct store_conf conf = {
        .limit_bytes = MIB,
        .growth_factor = 1.25,
        .min_space = 48,
        .item_max = MIB,
        .chunk_max = MIB / 2,
        .hash_power = 12,
        .threads = 1,
        .hash_seed = 42,
        .use_cas = (flags & FLAG_NO_CAS) == 0,
        .can_evict = true,
        .inline_suffix = (flags & FLAG_PROFILE) == 0,
    };
    *r = (struct run){.limits = limits};
    r->store = store_create(&conf, err, sizeof err);
    must(r->store != NULL);
    r->conf = (struct serve_conf){
        .rules = rules_of(flags & FLAG_PROFILE ? PROFILE_16 : PROFILE_14),
        .version = "1.2.3",
        .use_cas = conf.use_cas,
        .allows_flush = true,
        .allows_shutdown = true,
    };
    pool_init(&r->pool);
    r->env = (struct env){
        .store = r->store,
        .conf = &r->conf,
        .hooks = &hooks,
        .ctr = &r->ctr,
        .chain = {.pool = &r->pool, .release = release_item, .ctx = r->store},
        .now = NOW,
    };
    session_init(&r->session);
}

/* Everything that was taken must be back by now. */
static void
run_close(struct run *r)
{
    chain_clear(&r->out, &r->env.chain);
    session_fini(&r->session, &r->env);
    buf_fini(&r->in, &r->pool);
    pool_fini(&r->pool);
    store_destroy(&r->store);
    free(r->sent.p);
}

static void
send_output(struct run *r)
{
    while (r->out.bytes > 0) {
        struct iovec iov[4];
        unsigned runs = chain_iov(&r->out, iov, 4, r->limits.out_bytes);
        size_t n = 0;
        must(runs > 0);
        for (unsigned i = 0; i < runs; i++) {
            text_add(&r->sent, iov[i].iov_base, iov[i].iov_len);
            n += iov[i].iov_len;
        }
        must(n > 0 && n <= r->out.bytes);
        chain_consume(&r->out, &r->env.chain, n);
    }
}

/* Hands the next piece of input to whoever waits for it; returns its length. */
static size_t
receive(struct run *r, enum session_next next, const uint8_t *data, size_t left,
        struct cutter *cutter)
{
    char *to;
    size_t room;
    if (next == SESSION_WANT) {
        room = session_want(&r->session, &to);
    } else {
        buf_park(&r->in, &r->pool);
        must(buf_open(&r->in, &r->pool, &to, &room));
    }
    must(room > 0);
    size_t n = cutter_next(cutter, left);
    n = n < room ? n : room;
    memcpy(to, data, n);
    if (next == SESSION_WANT) {
        session_got(&r->session, n);
    } else {
        buf_fill(&r->in, n);
    }
    return n;
}

/* Executes the request at the head; false: the session is over. */
static bool
execute(struct run *r)
{
    struct session_limits limits = r->limits;
    for (;;) {
        (void)session_facts(&r->session, &r->in);
        switch (session_run(&r->session, &r->env, &r->in, &r->out, &limits)) {
        case RAN_LATE:
            must(limits.late_bytes != 0);
            limits.late_bytes = 0;
            break;
        case RAN_AGAIN:
            send_output(r);
            break;
        case RAN_DONE:
        case RAN_BODY:
            send_output(r);
            return true;
        case RAN_WATCH:
            must(false); /* there is no log */
            return false;
        case RAN_QUIT:
        case RAN_CLOSE:
        case RAN_NO_MEMORY:
            send_output(r);
            return false;
        }
    }
}

static void
run_all(struct run *r, const uint8_t *data, size_t size, struct cutter *cutter)
{
    for (size_t at = 0;;) {
        enum session_next next = session_peek(&r->session, &r->env, &r->in);
        if (next == SESSION_CLOSE) {
            r->is_closed = true;
            return;
        }
        if (next == SESSION_READY) {
            if (!execute(r)) {
                return;
            }
            continue;
        }
        if (at == size) {
            return;
        }
        at += receive(r, next, data + at, size - at, cutter);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct run whole, cut;
    struct cutter one = {.piece_max = 0}, many;
    cutter_init(&many, data[0], size);
    run_open(&whole, data[0], (struct session_limits){.keys = 64, .out_bytes = 131072});
    run_open(&cut, data[0],
             (struct session_limits){.keys = 1, .out_bytes = 100, .late_bytes = 10});
    run_all(&whole, data + 1, size - 1, &one);
    run_all(&cut, data + 1, size - 1, &many);
    /* A line too long is hostile only while its end has not arrived: where the cuts are
     * decides whether it is answered or closed upon. Until then the output is the same. */
    size_t common = cut.sent.len < whole.sent.len ? cut.sent.len : whole.sent.len;
    must(common == 0 || memcmp(cut.sent.p, whole.sent.p, common) == 0);
    must(common == cut.sent.len || whole.is_closed);
    must(common == whole.sent.len || cut.is_closed);
    run_close(&whole);
    run_close(&cut);
    return 0;
}
