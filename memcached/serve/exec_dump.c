/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * lru_crawler metadump and mgdump: every item, a line each, in as many turns as it takes. The
 * client's output is the measure: while a piece of it waits, nothing is walked.
 */
#include "serve/exec.h"

#include <inttypes.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/uri.h"
#include "serve/maint.h"

#define STEP_ITEMS 32 /* looked at between two looks at the clock */
/* key=<uri> exp= la= cas= fetch= cls= size= flags= and a line end */
#define LINE_MAX_BYTES (URI_ENCODED_MAX(REQ_KEY_MAX) + 200)

enum dump_kind { DUMP_NONE, DUMP_META, DUMP_MG };

/* A step's output. */
struct dump {
    const struct env *env;
    struct chain *out;
    size_t out_max;
    enum dump_kind kind;
    bool has_failed;
};

static size_t
put_meta(const struct dump *d, const struct item *it, char *to)
{
    int64_t started = clock_started();
    uint32_t exptime = item_expires(it);
    size_t at = 0;
    memcpy(to, "key=", 4);
    at = 4 + uri_encode(to + 4, item_key(it), item_key_len(it));
    int n = snprintf(to + at, LINE_MAX_BYTES - at,
                     " exp=%" PRId64 " la=%" PRId64 " cas=%" PRIu64 " fetch=%s",
                     exptime == STORE_NEVER ? -1 : started + exptime,
                     started + item_accessed(it), item_cas(it),
                     item_was_fetched(it) ? "yes" : "no");
    at += (size_t)n;
    if (d->env->conf->rules->dumps_are_framed) {
        n = snprintf(to + at, LINE_MAX_BYTES - at, " cls=%u size=%u flags=%u ",
                     item_class(it), item_accounted(d->env->store, it), item_flags(it));
        at += (size_t)n;
    }
    to[at++] = '\n';
    must(at < LINE_MAX_BYTES);
    return at;
}

static size_t
put_mg(const struct item *it, char *to)
{
    size_t at = 3;
    memcpy(to, "mg ", 3);
    if (item_has_binary_key(it)) {
        at += base64_encode(to + at, item_key(it), item_key_len(it));
        memcpy(to + at, " b", 2);
        at += 2;
    } else {
        memcpy(to + at, item_key(it), item_key_len(it));
        at += item_key_len(it);
    }
    memcpy(to + at, "\r\n", 2);
    return at + 2;
}

static bool
show_item(void *ctx, const struct item *it)
{
    struct dump *d = ctx;
    if (d->out->bytes >= d->out_max) {
        return false;
    }
    char *to = chain_reserve(d->out, &d->env->chain, LINE_MAX_BYTES);
    if (to == NULL) {
        d->has_failed = true;
        return false;
    }
    chain_commit(d->out, d->kind == DUMP_MG ? put_mg(it, to) : put_meta(d, it, to));
    return true;
}

void
exec_dump_end(struct session *s, const struct env *env)
{
    if (s->dump != DUMP_NONE) {
        store_walk_close(env->store, s->place.ticket);
        s->dump = DUMP_NONE;
    }
}

static enum session_ran
finish(const struct session *s, const struct env *env, struct chain *out,
       enum dump_kind kind)
{
    if (!env->conf->rules->dumps_are_framed) {
        return RAN_DONE;
    }
    return exec_reply(s, env, out, kind == DUMP_MG ? REPLY_META_MISS : REPLY_END);
}

enum session_ran
exec_dump(struct session *s, const struct env *env, struct chain *out,
          const struct session_limits *limits)
{
    struct dump d = {.env = env,
                     .out = out,
                     .out_max = limits->out_bytes,
                     .kind = (enum dump_kind)s->dump};
    enum store_walk_step step =
        store_walk_step(env->store, s->place.ticket, STEP_ITEMS, env->now, show_item, &d);
    if (d.has_failed) {
        return RAN_NO_MEMORY;
    }
    if (step == STORE_WALK_MORE) {
        return RAN_AGAIN;
    }
    exec_dump_end(s, env);
    /* The client was so slow that the walk was taken away: the rest is not to be had. */
    return step == STORE_WALK_LOST ? RAN_QUIT : finish(s, env, out, d.kind);
}

enum session_ran
exec_dump_begin(struct session *s, const struct env *env, struct chain *out,
                const struct store_walk_spec *ask, bool is_mg)
{
    static const enum reply replies[] = {
        [STORE_WALK_OK] = REPLY_OK,
        [STORE_WALK_BUSY] = REPLY_CRAWL_BUSY,
        [STORE_WALK_EMPTY] = REPLY_CRAWL_EMPTY,
        [STORE_WALK_LOCKED] = REPLY_CRAWL_LOCKED,
        [STORE_WALK_NO_MEMORY] = REPLY_NO_MEMORY,
    };
    const struct rules *rules = env->conf->rules;
    enum dump_kind kind = is_mg ? DUMP_MG : DUMP_META;
    if (rules->dumps_are_framed && s->is_behind) {
        return exec_reply(s, env, out,
                          is_mg ? REPLY_MGDUMP_PIPELINED : REPLY_DUMP_PIPELINED);
    }
    enum store_walk_status status =
        maint_dump(env->conf->maint, env->store, ask, env->now, &s->place.ticket);
    bool is_empty = status == STORE_WALK_EMPTY && rules->crawls_empty_classes;
    if (status != STORE_WALK_OK && !is_empty) {
        return exec_reply(s, env, out, replies[status]);
    }
    if (status == STORE_WALK_OK) {
        s->dump = kind;
    }
    if (rules->dumps_are_framed && exec_reply(s, env, out, REPLY_OK) != RAN_DONE) {
        return RAN_NO_MEMORY;
    }
    return is_empty ? finish(s, env, out, kind) : RAN_AGAIN;
}
