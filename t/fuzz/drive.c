/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "drive.h"

#include "serve/watch.h"

#define NOW 1000
#define MIB (1024u * 1024u)
#define ALL_TYPES ((1u << WATCH_TYPES) - 1)

/* One for all runs: a thread keeps its ring. */
static struct watch watch;

static enum reply
answer_stats(void *ctx, const struct slice *words, unsigned count, uint32_t now,
             struct serve_place *place, struct sink *sink)
{
    (void)place;
    (void)ctx, (void)now;
    for (unsigned i = 0; i < count; i++) {
        must(words[i].len > 0 && words[i].p[0] != ' ');
    }
    sink_stat(sink, "pid", "1");
    return REPLY_END;
}

static enum reply
answer_qos(void *ctx, struct serve_qos *q)
{
    return answer_stats(ctx, q->words, q->count, 0, NULL, q->sink);
}

static void
ignore_shutdown(void *ctx, bool is_graceful)
{
    (void)ctx, (void)is_graceful;
}

/* The live log of this run: everything is told, whoever watches. */
static void
open_log(struct run *r)
{
    const struct watch_conf conf = {
        .threads = 1, .ring_bytes = 16384, .outbox_bytes = 16384};
    const struct maint_conf maint = {.has_maintainer = true, .has_crawler = true};
    if (watch.rings == NULL) {
        must(watch_init(&watch, &conf));
        watch_set_types(&watch, ALL_TYPES);
    }
    watch.conf.is_long = r->conf.rules->log_is_long;
    maint_init(&r->maint, &maint, NULL);
    r->conf.maint = &r->maint;
    r->conf.allows_watch = r->conf.allows_dump = true;
    r->env.watch = &watch;
    r->env.log = watch_ring(&watch);
}

/* Whatever keys hold, a line is a line. */
static void
check_line(void *ctx, uint32_t type, nsec_t at, const char *line, size_t len)
{
    (void)ctx, (void)at;
    must((type & ALL_TYPES) != 0 && len > 3 && len <= WATCH_LINE_MAX);
    must(memcmp(line, "ts=", 3) == 0 && line[len - 1] == '\n');
    for (size_t i = 0; i + 1 < len; i++) {
        must(line[i] >= ' ' && line[i] < 0x7f);
    }
}

static void
close_log(struct run *r)
{
    uint32_t ticket;
    watch_collect(&watch, clock_now() + 1, 0, check_line, NULL);
    if (maint_crawling(&r->maint, &ticket)) {
        maint_end_crawl(&r->maint, r->store, ticket);
    }
    maint_fini(&r->maint);
}

static const struct serve_hooks hooks = {
    .stats = answer_stats, .qos = answer_qos, .shutdown = ignore_shutdown};

static void
release_item(void *ctx, void *owner)
{
    store_release(ctx, owner);
}

void
run_open(struct run *r, const struct drive_conf *conf, struct session_limits limits)
{
    char err[128] = "";
    struct store_conf store = {
        .limit_bytes = MIB,
        .growth_factor = 1.25,
        .min_space = 48,
        .item_max = MIB,
        .chunk_max = MIB / 2,
        .hash_power = 12,
        .threads = 1,
        .hash_seed = 42,
        .use_cas = conf->use_cas,
        .can_evict = true,
        .inline_suffix = conf->profile == PROFILE_14,
        .is_lean = conf->profile == PROFILE_NATIVE,
        .on_event = conf->has_log ? watch_on_store_event : NULL,
        .event_ctx = &watch,
    };
    *r = (struct run){.limits = limits, .observe = conf->observe};
    r->store = store_create(&store, err, sizeof err);
    must(r->store != NULL);
    r->conf = (struct serve_conf){
        .rules = rules_of(conf->profile),
        .binding = conf->binding,
        .version = DRIVE_VERSION,
        .use_cas = conf->use_cas,
        .allows_flush = true,
        .allows_shutdown = true,
        .auth = conf->auth,
    };
    pool_init(&r->pool);
    r->env = (struct env){
        .store = r->store,
        .conf = &r->conf,
        .hooks = &hooks,
        .ctr = &r->ctr,
        .chain = {.pool = &r->pool, .release = release_item, .ctx = r->store},
        .now = NOW,
        .looks_closer = true,
    };
    if (conf->has_log) {
        open_log(r);
    }
    session_init(&r->session);
}

static void
disconnect(struct run *r)
{
    chain_clear(&r->out, &r->env.chain);
    session_fini(&r->session, &r->env);
    buf_fini(&r->in, &r->pool);
    free(r->received.p);
    free(r->sent.p);
    r->received = r->sent = (struct text){.p = NULL};
}

void
run_close(struct run *r)
{
    disconnect(r);
    if (r->conf.maint != NULL) {
        close_log(r);
    }
    pool_fini(&r->pool);
    store_destroy(&r->store);
}

void
run_reconnect(struct run *r)
{
    disconnect(r);
    session_init(&r->session);
    r->is_closed = false;
    r->is_over = false;
    r->was_authenticated = false;
}

static void
send_output(struct run *r)
{
    while (r->out.bytes > 0) {
        struct iovec iov[4];
        unsigned runs = chain_iov(&r->out, iov, 4, r->limits.out_bytes);
        must(runs > 0);
        size_t n = text_add_runs(&r->sent, iov, runs);
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
    text_add(&r->received, data, n);
    if (next == SESSION_WANT) {
        session_got(&r->session, n);
    } else {
        buf_fill(&r->in, n);
    }
    return n;
}

/* Executes the request at the head until it is done or needs more bytes. */
static enum session_ran
execute(struct run *r)
{
    struct session_limits limits = r->limits;
    for (;;) {
        (void)session_facts(&r->session);
        enum session_ran ran =
            session_run(&r->session, &r->env, &r->in, &r->out, &limits);
        send_output(r);
        if (ran == RAN_WATCH) {
            must(r->env.watch != NULL && (r->session.watches & ~ALL_TYPES) == 0);
            watch_leave(&watch);
        }
        must(ran != RAN_LATE || limits.late_bytes != 0);
        if (ran != RAN_AGAIN && ran != RAN_LATE && ran != RAN_LONG) {
            return ran;
        }
        if (ran == RAN_LATE) {
            limits.late_bytes = 0;
        }
    }
}

void
run_input(struct run *r, const uint8_t *data, size_t size, struct cutter *cutter)
{
    for (size_t at = 0; !r->is_closed && !r->is_over;) {
        bool was_authenticated = r->session.is_authenticated;
        size_t from = r->sent.len;
        enum session_next next = session_peek(&r->session, &r->env, &r->in);
        if (next == SESSION_CLOSE) {
            r->is_closed = true;
        } else if (next == SESSION_READY) {
            enum session_ran ran = execute(r);
            r->is_over = ran != RAN_DONE && ran != RAN_BODY;
            r->was_authenticated |= r->session.is_authenticated;
            if (r->observe != NULL) {
                r->observe(r, was_authenticated, from);
            }
        } else if (at == size) {
            return;
        } else {
            at += receive(r, next, data + at, size - at, cutter);
        }
    }
}

void
run_compare(const struct run *whole, const struct run *cut)
{
    /* A line too long is hostile only while its end has not arrived: where the cuts are
     * decides whether it is answered or closed upon. Until then the output is the same. */
    size_t common = cut->sent.len < whole->sent.len ? cut->sent.len : whole->sent.len;
    must(common == 0 || memcmp(cut->sent.p, whole->sent.p, common) == 0);
    must(common == cut->sent.len || whole->is_closed);
    must(common == whole->sent.len || cut->is_closed);
}
