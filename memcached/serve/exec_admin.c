/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Commands that answer about the server or change it.
 */
#include "serve/exec.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "store/expiry.h"

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
    const struct slice *words = s->req.word + 1;
    if (s->req.verb == VERB_STATS) {
        return hooks->stats(hooks->ctx, words, count, env->now, &s->place, sink);
    }
    struct serve_qos q = {.words = words,
                          .count = count,
                          .is_datagram = s->is_datagram,
                          .may_control = s->may_control && !s->is_datagram,
                          .declared = s->declared,
                          .place = &s->place,
                          .sink = sink};
    enum reply reply = hooks->qos(hooks->ctx, &q);
    s->declared = q.declared;
    return reply;
}

static enum session_ran
exec_hooked(struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = &s->req;
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
        return RAN_AGAIN;
    }
    bool is_unknown_group = is_binary && reply == REPLY_ERROR;
    return exec_reply(s, env, out, is_unknown_group ? REPLY_NOT_FOUND : reply);
}

static enum session_ran
exec_version(const struct session *s, const struct env *env, struct chain *out)
{
    const char *version = env->conf->version;
    if (s->req.protocol == PROTOCOL_BINARY) {
        return exec_reply_body(s, env, out, BINARY_SUCCESS, version, strlen(version));
    }
    return chain_copy(out, &env->chain, "VERSION ", 8) &&
                   chain_copy(out, &env->chain, version, strlen(version)) &&
                   chain_copy(out, &env->chain, "\r\n", 2)
               ? RAN_DONE
               : RAN_NO_MEMORY;
}

/* The delay that the request asks for. False: it is answered already, with *reply. */
static bool
parse_delay(const struct req *req, const struct rules *rules, int64_t *delay,
            enum reply *reply)
{
    *delay = 0;
    if (req->protocol == PROTOCOL_BINARY) {
        *delay = req->exptime;
        return true;
    }
    *reply = rules->strict_admin ? REPLY_BAD_EXPTIME : REPLY_BAD_FORMAT;
    return req->words < 2 || req_admin_i64_or_0(req->word[1], rules, delay);
}

static enum session_ran
exec_flush_all(struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = &s->req;
    enum reply reply;
    int64_t delay;
    bool counts = env->conf->allows_flush || req->protocol != PROTOCOL_BINARY;
    ctr_add(&env->ctr->cmd_flush,
            counts); /* a refusal counts in the text protocol only */
    if (!env->conf->allows_flush) {
        return exec_reply(s, env, out, REPLY_FLUSH_REFUSED);
    }
    if (!parse_delay(req, env->conf->rules, &delay, &reply)) {
        return exec_reply(s, env, out, reply);
    }
    /* What is stored in the second of the given time stays, so all goes one second before. */
    uint32_t at =
        delay > 0 ? expiry_from_wire(delay, env->now, clock_started()) - 1 : env->now;
    store_flush(env->store, at, env->now);
    return exec_reply(s, env, out, REPLY_OK);
}

static enum session_ran
exec_quit(const struct session *s, const struct env *env, struct chain *out)
{
    if (s->req.protocol != PROTOCOL_BINARY) {
        return RAN_QUIT;
    }
    enum session_ran ran = exec_reply(s, env, out, REPLY_OK);
    return ran == RAN_DONE ? RAN_QUIT : ran;
}

static enum session_ran
exec_verbosity(struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = &s->req;
    const struct rules *rules = env->conf->rules;
    int64_t level = 0;
    bool is_number = req->words > 1 && req_admin_level(req->word[1], rules, &level);
    if (rules->strict_admin && !is_number) {
        return exec_reply(s, env, out, REPLY_BAD_FORMAT);
    }
    log_set_level(level < 0 || level > VERBOSITY_MAX ? VERBOSITY_MAX : (unsigned)level);
    return exec_reply(s, env, out, REPLY_OK);
}

static enum session_ran
exec_memlimit(struct session *s, const struct env *env, struct chain *out)
{
    uint64_t megabytes;
    if (s->req.words < 2 ||
        !req_admin_u64(s->req.word[1], env->conf->rules, &megabytes)) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (megabytes < MEMLIMIT_MIN_MB) {
        return exec_reply(s, env, out, REPLY_MEMLIMIT_SMALL);
    }
    if (megabytes > MEMLIMIT_MAX_MB) {
        return exec_reply(s, env, out, REPLY_MEMLIMIT_UNIT);
    }
    return exec_reply(
        s, env, out,
        store_set_limit(env->store, megabytes << 20) ? REPLY_OK : REPLY_MEMLIMIT_FIXED);
}

static enum session_ran
exec_shutdown(struct session *s, const struct env *env, struct chain *out)
{
    const struct rules *rules = env->conf->rules;
    bool has_mode = s->req.words > 1;
    if (has_mode && !rules->has_shutdown_modes) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (!env->conf->allows_shutdown) {
        return exec_reply(s, env, out,
                          rules->shutdown_error_is_server_error ? REPLY_SHUTDOWN_OFF_16
                                                                : REPLY_SHUTDOWN_OFF_14);
    }
    bool is_graceful = has_mode && req_word_is(s->req.word[1], "graceful");
    if (has_mode && !is_graceful) {
        return exec_reply(s, env, out, REPLY_SHUTDOWN_MODE);
    }
    env->hooks->shutdown(env->hooks->ctx, is_graceful);
    return RAN_QUIT;
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
    return s->req.is_noreply || (chain_copy(out, &env->chain, err, strlen(err)) &&
                                 chain_copy(out, &env->chain, "\r\n", 2))
               ? RAN_DONE
               : RAN_NO_MEMORY;
}

static enum session_ran
exec_debugtime(struct session *s, const struct env *env, struct chain *out)
{
    int32_t seconds;
    struct slice word = s->req.word[1];
    if (!env->conf->allows_debug) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (req_word_is(word, "p")) {
        clock_pause();
    } else if (req_word_is(word, "r")) {
        clock_resume();
    } else if (num_i32(word.p, word.len, &seconds)) {
        clock_shift(seconds);
    } else {
        return exec_reply(s, env, out, REPLY_BAD_FORMAT);
    }
    return exec_reply(s, env, out, REPLY_OK);
}

enum session_ran
exec_admin(struct session *s, const struct env *env, struct chain *out,
           const struct session_limits *limits)
{
    if (s->is_datagram && s->req.family == FAMILY_ADMIN &&
        env->conf->rules->udp_only_reads_and_stores) {
        return exec_reply(s, env, out, REPLY_UDP_REFUSED);
    }
    switch (s->req.verb) {
    case VERB_STATS:
    case VERB_QOS:
        return exec_hooked(s, env, out);
    case VERB_VERSION:
        return exec_version(s, env, out);
    case VERB_QUIT:
        return exec_quit(s, env, out);
    case VERB_MN:
        return exec_reply(s, env, out, REPLY_META_NOOP);
    case VERB_NOOP:
        return exec_reply(s, env, out, REPLY_OK);
    case VERB_FLUSH_ALL:
        return exec_flush_all(s, env, out);
    case VERB_VERBOSITY:
        return exec_verbosity(s, env, out);
    case VERB_CACHE_MEMLIMIT:
        return exec_memlimit(s, env, out);
    case VERB_SHUTDOWN:
        return exec_shutdown(s, env, out);
    case VERB_WATCH:
        return exec_watch(s, env, out);
    case VERB_REFRESH_CERTS:
        return exec_refresh_certs(s, env, out);
    case VERB_DEBUGTIME:
        return exec_debugtime(s, env, out);
    case VERB_DEBUGITEM:
        return exec_debugitem(s, env, out);
    case VERB_SLABS:
    case VERB_LRU:
    case VERB_LRU_CRAWLER:
        return exec_maint(s, env, out, limits);
    default:
        unreachable();
    }
}
