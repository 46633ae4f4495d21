/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Commands that answer about the server or change it.
 */
#include "serve/exec.h"

#include "base/log.h"
#include "base/num.h"
#include "serve/watch.h"

#define VERBOSITY_MAX 2
#define MEMLIMIT_MIN_MB 8
#define MEMLIMIT_MAX_MB 1000000000
#define REFRESH_ERROR_MAX 512

/* Groups that binary clients may not ask for, and keys that name none. */
static bool
is_text_group(const struct req *req)
{
    return req->words > 1 ? req_word_is(req->word[1], "conns") ||
                                req_word_is(req->word[1], "cachedump")
                          : req->key.len > 0;
}

static enum reply
call_hook(struct session *s, const struct env *env, unsigned count, struct sink *sink)
{
    const struct serve_hooks *hooks = env->hooks;
    const struct slice *words = s->req->word + 1;
    if (s->req->verb == VERB_STATS) {
        return hooks->stats(hooks->ctx, words, count, env->now, &s->place, sink);
    }
    struct serve_qos q = {.words = words,
                          .count = count,
                          .is_datagram = s->is_datagram,
                          .may_control = s->may_control && !s->is_datagram,
                          .is_local = s->is_local,
                          .declared = s->declared,
                          .place = &s->place,
                          .back = env->back,
                          .parked = s->has_parked ? s->parked : NULL,
                          .sink = sink};
    enum reply reply = hooks->qos(hooks->ctx, &q);
    s->declared = q.declared;
    s->has_parked = q.parked != NULL;
    if (s->has_parked) { /* in the room of s->place */
        s->parked = q.parked;
    }
    return reply;
}

static enum session_ran
exec_hooked(struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = s->req;
    bool is_binary = req->protocol == PROTOCOL_BINARY;
    struct sink sink = {.out = out, .env = &env->chain, .req = req};
    unsigned count = (req->words < REQ_WORDS_MAX ? req->words : REQ_WORDS_MAX) - 1;
    if (is_binary && is_text_group(req)) {
        return exec_reply(s, env, out, REPLY_NOT_FOUND);
    }
    enum reply reply = call_hook(s, env, count, &sink);
    if (sink.has_failed) {
        return RAN_NO_MEMORY;
    }
    if (sink.is_complete) { /* as lines; packets need their end packet */
        return is_binary ? exec_reply(s, env, out, REPLY_END) : RAN_DONE;
    }
    if (reply == REPLY_NONE) {
        return s->has_parked ? RAN_PARKED : RAN_AGAIN;
    }
    bool is_unknown_group = is_binary && reply == REPLY_ERROR;
    return exec_reply(s, env, out, is_unknown_group ? REPLY_NOT_FOUND : reply);
}

static enum session_ran
exec_version(struct session *s, const struct env *env, struct chain *out)
{
    const char *version = env->conf->version;
    if (s->req->protocol == PROTOCOL_BINARY) {
        return exec_reply_body(s, env, out, BINARY_SUCCESS, version, strlen(version));
    }
    return exec_ran(chain_copy(out, &env->chain, "VERSION ", 8) &&
                    chain_copy(out, &env->chain, version, strlen(version)) &&
                    chain_copy(out, &env->chain, "\r\n", 2));
}

static enum reply
flush_all(const struct req *req, const struct env *env)
{
    const struct rules *rules = env->conf->rules;
    bool is_binary = req->protocol == PROTOCOL_BINARY;
    int64_t delay = is_binary ? req->exptime : 0;
    /* a refusal counts in the text protocol only */
    ctr_add(&env->ctr->cmd_flush, env->conf->allows_flush || !is_binary);
    if (!env->conf->allows_flush) {
        return REPLY_FLUSH_REFUSED;
    }
    if (!is_binary && req->words > 1 &&
        !req_admin_i64_or_0(req->word[1], rules, &delay)) {
        return rules->strict_admin ? REPLY_BAD_EXPTIME : REPLY_BAD_FORMAT;
    }
    /* What is stored in the second of the given time stays, so all goes one second before. */
    uint32_t at = delay > 0 ? exec_exptime(env, delay) - 1 : 0;
    store_flush(env->store, at, env->now);
    return REPLY_OK;
}

static enum session_ran
exec_quit(struct session *s, const struct env *env, struct chain *out)
{
    if (s->req->protocol != PROTOCOL_BINARY) {
        return RAN_QUIT;
    }
    enum session_ran ran = exec_reply(s, env, out, REPLY_OK);
    return ran == RAN_DONE ? RAN_QUIT : ran;
}

static enum reply
verbosity(const struct req *req, const struct env *env)
{
    const struct rules *rules = env->conf->rules;
    int64_t level = 0;
    bool is_number = req->words > 1 && req_admin_level(req->word[1], rules, &level);
    if (rules->strict_admin && !is_number) {
        return REPLY_BAD_FORMAT;
    }
    log_set_level(level < 0 || level > VERBOSITY_MAX ? VERBOSITY_MAX : (unsigned)level);
    return REPLY_OK;
}

static enum reply
memlimit(const struct req *req, const struct env *env)
{
    uint64_t megabytes;
    if (req->words < 2 || !req_admin_u64(req->word[1], env->conf->rules, &megabytes)) {
        return REPLY_ERROR;
    }
    if (megabytes < MEMLIMIT_MIN_MB) {
        return REPLY_MEMLIMIT_SMALL;
    }
    if (megabytes > MEMLIMIT_MAX_MB) {
        return REPLY_MEMLIMIT_UNIT;
    }
    return store_set_limit(env->store, megabytes << 20) ? REPLY_OK : REPLY_MEMLIMIT_FIXED;
}

static enum session_ran
exec_shutdown(struct session *s, const struct env *env, struct chain *out)
{
    const struct rules *rules = env->conf->rules;
    bool has_mode = s->req->words > 1;
    bool is_graceful = has_mode && req_word_is(s->req->word[1], "graceful");
    enum reply error = REPLY_SHUTDOWN_MODE;
    if (has_mode && !rules->has_shutdown_modes) {
        error = REPLY_ERROR;
    } else if (!env->conf->allows_shutdown) {
        error = rules->shutdown_error_is_server_error ? REPLY_SHUTDOWN_OFF_16
                                                      : REPLY_SHUTDOWN_OFF_14;
    } else if (!has_mode || is_graceful) {
        env->hooks->shutdown(env->hooks->ctx, is_graceful);
        return RAN_QUIT;
    }
    return exec_reply(s, env, out, error);
}

static enum session_ran
exec_refresh_certs(struct session *s, const struct env *env, struct chain *out)
{
    char err[REFRESH_ERROR_MAX];
    const struct serve_hooks *hooks = env->hooks;
    if (s->is_datagram || hooks->refresh_certs == NULL) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (hooks->refresh_certs(hooks->ctx, env->now, err, sizeof err)) {
        return exec_reply(s, env, out, REPLY_OK);
    }
    return exec_ran(s->req->is_noreply ||
                    (chain_copy(out, &env->chain, err, strlen(err)) &&
                     chain_copy(out, &env->chain, "\r\n", 2)));
}

static enum reply
debugtime(const struct req *req, const struct env *env)
{
    int32_t seconds;
    struct slice word = req->word[1];
    if (!env->conf->allows_debug) {
        return REPLY_ERROR;
    }
    if (req->words < 2) {
        return REPLY_BAD_FORMAT;
    }
    if (req_word_is(word, "p")) {
        clock_pause();
    } else if (req_word_is(word, "r")) {
        clock_resume();
    } else if (num_i32(word.p, word.len, &seconds)) {
        clock_shift(seconds);
    } else {
        return REPLY_BAD_FORMAT;
    }
    return REPLY_OK;
}

/* watch [type ...]: the types asked for; 0 when one of them is unknown. */
static uint32_t
types_of(const struct req *req, bool is_long)
{
    uint32_t types = 0;
    struct slice rest = req->rest;
    struct slice word;
    must(req_next_word(&rest, &word)); /* the command */
    while (req_next_word(&rest, &word)) {
        uint32_t type = watch_type_of(word, is_long);
        if (type == 0) {
            return 0;
        }
        types |= type;
    }
    return types != 0 ? types : WATCH_FETCHERS;
}

/* The client becomes a watcher of the live log. */
static enum session_ran
exec_watch(struct session *s, const struct env *env, struct chain *out)
{
    const struct rules *rules = env->conf->rules;
    uint32_t types = types_of(s->req, rules->log_is_long);
    enum reply error = REPLY_WATCH_TOO_MANY;
    if (s->is_datagram || env->watch == NULL) {
        error = REPLY_ERROR;
    } else if (!env->conf->allows_watch) {
        error = REPLY_WATCH_REFUSED;
    } else if (rules->watch_must_be_alone && s->is_behind) {
        error = REPLY_WATCH_PIPELINED;
    } else if (types == 0) {
        error = REPLY_ERROR;
    } else if (watch_enter(env->watch)) {
        s->watches = types;
        return RAN_WATCH;
    }
    return exec_reply(s, env, out, error);
}

static enum reply
noop(const struct req *req, const struct env *env)
{
    (void)env;
    return req->verb == VERB_MN ? REPLY_META_NOOP : REPLY_OK;
}

/* Commands that are answered by one line, */
static enum reply (*const replies[VERB_COUNT])(const struct req *, const struct env *) = {
    [VERB_MN] = noop,
    [VERB_NOOP] = noop,
    [VERB_FLUSH_ALL] = flush_all,
    [VERB_VERBOSITY] = verbosity,
    [VERB_CACHE_MEMLIMIT] = memlimit,
    [VERB_DEBUGTIME] = debugtime,
};

/* and others. */
static enum session_ran (*const runs[VERB_COUNT])(struct session *s,
                                                  const struct env *env,
                                                  struct chain *out) = {
    [VERB_STATS] = exec_hooked,
    [VERB_QOS] = exec_hooked,
    [VERB_VERSION] = exec_version,
    [VERB_QUIT] = exec_quit,
    [VERB_SHUTDOWN] = exec_shutdown,
    [VERB_WATCH] = exec_watch,
    [VERB_REFRESH_CERTS] = exec_refresh_certs,
    [VERB_DEBUGITEM] = exec_debugitem,
};

enum session_ran
exec_admin(struct session *s, const struct env *env, struct chain *out,
           const struct session_limits *limits)
{
    if (s->is_datagram && s->req->family == FAMILY_ADMIN &&
        env->conf->rules->udp_only_reads_and_stores) {
        return exec_reply(s, env, out, REPLY_UDP_REFUSED);
    }
    enum verb verb = s->req->verb;
    if (verb == VERB_SLABS || verb == VERB_LRU || verb == VERB_LRU_CRAWLER) {
        return exec_maint(s, env, out, limits);
    }
    if (replies[verb] != NULL) {
        return exec_reply(s, env, out, replies[verb](s->req, env));
    }
    must(runs[verb] != NULL);
    return runs[verb](s, env, out);
}
