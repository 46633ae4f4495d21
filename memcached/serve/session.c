/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/session.h"

#include "base/log.h"
#include "proto/meta.h"
#include "serve/auth.h"
#include "serve/exec.h"
#include "serve/key_event.h"
#include "serve/verbose.h"

void
session_init(struct session *s)
{
    *s = (struct session){.item = NULL};
}

static void
drop_item(struct session *s, const struct env *env)
{
    if (s->item != NULL) {
        store_release(env->store, s->item);
        s->item = NULL;
    }
}

/* Requests are several times as large as what else an idle client needs, so they have memory
 * while one is under way only; nearly always that of the request before. */
static bool
take_req(struct session *s, const struct env *env)
{
    if (env->spare != NULL && *env->spare != NULL) {
        s->req = *env->spare;
        *env->spare = NULL;
    } else {
        s->req = malloc(sizeof *s->req);
        if (s->req == NULL) {
            return false;
        }
    }
    /* What is behind it belongs to one family each, whose parser writes what is read. */
    memset(s->req, 0, offsetof(struct req, word));
    s->req->protocol = (enum protocol)s->protocol;
    return true;
}

static void
give_req(struct session *s, const struct env *env)
{
    if (env->spare != NULL && *env->spare == NULL) {
        *env->spare = s->req;
    } else {
        free(s->req);
    }
    s->req = NULL;
}

void
session_fini(struct session *s, const struct env *env)
{
    drop_item(s, env);
    exec_dump_end(s, env);
    exec_debug_end(s, env);
    auth_end(&s->auth);
    if (s->has_parked) {
        s->parked->discard(s->parked);
    }
    give_req(s, env);
}

void
session_leave_parked(struct session *s)
{
    auth_abandon(s->auth);
}

void
session_rest(struct session *s, const struct env *env)
{
    if (s->req != NULL && !s->is_pending && !s->is_open) {
        give_req(s, env);
    }
}

bool
session_is_quiescent(const struct session *s, const struct buf *in)
{
    return !s->is_pending && !s->is_open && !s->skips_line && s->swallow == 0 &&
           buf_len(in) == 0;
}

uint64_t
session_progress(const struct session *s, const struct buf *in)
{
    if (s->swallow > 0) {
        return UINT64_MAX - s->swallow;
    }
    return (s->is_body ? 1 + s->filled : s->skips_line) + buf_len(in);
}

bool
session_rewind(struct session *s)
{
    bool is_begun = s->is_open || s->is_body || s->item != NULL ||
                    (s->is_pending && (s->has_parked || s->place.at > 0));
    bool is_refused = s->skips_line || s->swallow > 0 || s->closes;
    if (is_begun || is_refused || (s->is_pending && s->error != REPLY_NONE)) {
        return false;
    }
    s->is_pending = false;
    s->is_long = false;
    s->line_len = 0;
    s->scanned = 0;
    return true;
}

/* ---- peek ----------------------------------------------------------------------------- */

/* Drops what is to be dropped. False when the buffer ran empty first. */
static bool
skip_rejected(struct session *s, struct buf *in)
{
    if (s->swallow > 0) {
        size_t len = buf_len(in);
        size_t part = s->swallow < len ? (size_t)s->swallow : len;
        buf_consume(in, part);
        s->swallow -= part;
    }
    if (s->swallow == 0 && s->skips_line) {
        size_t len = buf_len(in);
        const char *line_feed = len > 0 ? memchr(buf_unread(in), '\n', len) : NULL;
        buf_consume(in,
                    line_feed != NULL ? (size_t)(line_feed - buf_unread(in)) + 1 : len);
        s->skips_line = line_feed == NULL;
    }
    return s->swallow == 0 && !s->skips_line;
}

/* What the client sends behind a value. */
static size_t
line_end_bytes(const struct session *s)
{
    return s->protocol == PROTOCOL_BINARY ? 0 : LINE_END_BYTES;
}

static size_t
body_bytes(const struct session *s)
{
    return (size_t)item_value_len(s->item) + line_end_bytes(s);
}

static enum protocol
choose_protocol(const struct session *s, const struct env *env, char first)
{
    enum serve_binding binding =
        s->binding != BINDING_DEFAULT ? s->binding : env->conf->binding;
    bool is_binary = binding == BINDING_BINARY ||
                     (binding != BINDING_ASCII && (uint8_t)first == BINARY_REQUEST_MAGIC);
    return is_binary ? PROTOCOL_BINARY : PROTOCOL_ASCII;
}

static struct parse
parse_next(struct session *s, const struct env *env, const struct buf *in)
{
    const struct rules *rules = env->conf->rules;
    const char *p = buf_unread(in);
    size_t len = buf_len(in);
    if (s->protocol == PROTOCOL_BINARY) {
        return binary_parse(p, len, rules, s->req);
    }
    bool is_full = len == BUF_CAPACITY;
    return s->is_open ? ascii_parse_keys(p, len, is_full, rules, s->req)
                      : ascii_parse(p, len, s->scanned, is_full, rules, s->req);
}

/* A client that has not authenticated (-S) may do that and ask for the version, no
 * more. */
static void
refuse_stranger(struct session *s)
{
    bool is_garbled = s->closes && s->error == REPLY_ERROR; /* lengths that lie */
    if (s->req->family != FAMILY_SASL && s->req->verb != VERB_VERSION && !is_garbled) {
        s->error = REPLY_AUTH_FAILURE;
        s->closes = true;
    }
}

/* A request that the server does not have, however it is made. */
static bool
is_disabled(const struct session *s, const struct env *env)
{
    return s->req->protocol == PROTOCOL_BINARY && s->req->family == FAMILY_SASL &&
           env->conf->auth == NULL;
}

static enum session_next
peek_parse(struct session *s, const struct env *env, struct buf *in)
{
    struct parse parsed = parse_next(s, env, in);
    if (parsed.status == PARSE_BAD && is_disabled(s, env)) {
        parsed = binary_parse_unknown(buf_unread(in), env->conf->rules);
    }
    s->scanned = 0;
    s->closes = false;
    switch (parsed.status) {
    case PARSE_DONE:
        s->error = REPLY_NONE;
        break;
    case PARSE_BAD:
        s->error = parsed.reply;
        s->req->is_noreply = parsed.is_quiet;
        s->req->is_open = false;
        s->swallow = parsed.swallow;
        s->closes = parsed.closes;
        s->skips_line = parsed.skips_line;
        break;
    case PARSE_MORE:
        s->scanned = s->is_open ? 0 : buf_len(in);
        return SESSION_MORE;
    case PARSE_CLOSE:
        return SESSION_CLOSE;
    }
    s->line_len = parsed.consumed;
    s->place.at = 0;
    s->is_pending = true;
    return SESSION_READY;
}

/* Nothing but a token is understood before there was a right one (-Y). */
static enum session_next
peek_gate(struct session *s, const struct env *env, struct buf *in)
{
    size_t consumed;
    enum reply reply = REPLY_NONE;
    enum auth_gate gate = auth_gate(env->conf->auth, &s->auth, buf_unread(in),
                                    buf_len(in), &consumed, &reply);
    s->error = (uint8_t)reply;
    buf_consume(in, consumed);
    if (gate != AUTH_GATE_REPLY) {
        return gate == AUTH_GATE_MORE ? SESSION_MORE : SESSION_CLOSE;
    }
    if (s->error == REPLY_STORED || s->error == REPLY_AUTH_FAILURE) {
        ctr_add(&env->ctr->auth_cmds, 1);
        ctr_add(&env->ctr->auth_errors, s->error == REPLY_AUTH_FAILURE);
    }
    s->is_authenticated = s->error == REPLY_STORED;
    if (s->is_authenticated) {
        auth_end(&s->auth);
    }
    s->req->is_noreply = false;
    s->is_pending = true;
    return SESSION_READY;
}

static bool
is_stranger(const struct session *s, const struct env *env)
{
    return env->conf->auth != NULL && !s->is_authenticated;
}

/* A request that was parsed is shown in the log, and its sender must be known. */
static void
look_closer(struct session *s, const struct env *env, const struct buf *in)
{
    if (log_level() >= LOG_DEBUG) {
        verbose_request(env->client_fd, s->req, buf_unread(in), s->line_len);
    }
    if (is_stranger(s, env)) {
        refuse_stranger(s);
    }
}

/* Bytes have arrived between two requests. */
static enum session_next
peek_bytes(struct session *s, const struct env *env, struct buf *in)
{
    if (!skip_rejected(s, in) || buf_len(in) == 0) {
        return SESSION_MORE;
    }
    if (unlikely(s->protocol == PROTOCOL_UNKNOWN)) {
        s->protocol = choose_protocol(s, env, *buf_unread(in));
    }
    if (s->req == NULL && !take_req(s, env)) {
        return SESSION_NO_MEMORY;
    }
    bool looks_closer = unlikely(env->looks_closer);
    if (looks_closer && s->protocol == PROTOCOL_ASCII && is_stranger(s, env)) {
        return peek_gate(s, env, in);
    }
    enum session_next next = peek_parse(s, env, in);
    if (looks_closer && next == SESSION_READY) {
        look_closer(s, env, in);
    }
    return next;
}

enum session_next
session_peek(struct session *s, const struct env *env, struct buf *in)
{
    if (s->is_pending) {
        bool wants = s->is_body && buf_len(in) == 0 && s->filled < body_bytes(s);
        return wants ? SESSION_WANT : SESSION_READY;
    }
    return buf_len(in) == 0 ? SESSION_MORE : peek_bytes(s, env, in);
}

struct session_facts
session_facts(const struct session *s)
{
    struct session_facts facts = {.keys = 1};
    if (s->error != REPLY_NONE) {
        return facts;
    }
    switch (s->req->family) {
    case FAMILY_RETRIEVE:
        facts.keys = s->req->keys;
        facts.value_bytes = s->item != NULL ? item_value_len(s->item) : 0;
        facts.is_incomplete = s->is_open || s->req->is_open;
        break;
    case FAMILY_STORE:
        facts.value_bytes = s->req->value_len;
        facts.is_write = true;
        break;
    case FAMILY_DELETE:
        facts.is_write = true;
        break;
    case FAMILY_META:
        facts.value_bytes = s->item != NULL ? item_value_len(s->item) : 0;
        facts.is_write = s->req->verb == VERB_MD;
        break;
    case FAMILY_CONTROL:
    case FAMILY_SASL:
        facts.is_control = true;
        break;
    default:
        break;
    }
    return facts;
}

struct slice
session_key(const struct session *s, char buf[REQ_KEY_MAX])
{
    const struct req *req = s->req;
    struct slice key = {NULL, 0};
    struct slice rest = req->rest;
    if (s->error != REPLY_NONE) {
        return key;
    }
    switch (req->family) {
    case FAMILY_RETRIEVE:
        if (req->protocol == PROTOCOL_BINARY) {
            return req->key;
        }
        return req->keys > 0 && req_next_word(&rest, &key) ? key
                                                           : (struct slice){NULL, 0};
    case FAMILY_META:
        return meta_key(req, buf);
    case FAMILY_STORE:
        return req->verb == VERB_MS ? meta_key(req, buf) : req->key;
    case FAMILY_ARITH:
    case FAMILY_TOUCH:
    case FAMILY_DELETE:
        return req->key;
    default:
        return key;
    }
}

/* ---- run ------------------------------------------------------------------------------ */

/* The request is over: its line leaves the buffer. */
static enum session_ran
finish(struct session *s, struct buf *in, enum session_ran ran)
{
    buf_consume(in, s->line_len);
    s->line_len = 0;
    s->is_pending = false;
    s->is_open = s->req->is_open;
    return ran;
}

bool
session_open_get(struct session *s, const struct env *env)
{
    if (s->req == NULL && !take_req(s, env)) {
        return false;
    }
    *s->req = (struct req){.protocol = PROTOCOL_ASCII,
                           .verb = VERB_GET,
                           .family = FAMILY_RETRIEVE,
                           .is_open = true,
                           .has_keys = true};
    s->is_open = true;
    return true;
}

void
session_abandon(struct session *s, const struct env *env, struct buf *in)
{
    drop_item(s, env);
    s->skips_line |= s->is_pending ? s->req->is_open : s->is_open;
    s->req->is_open = false;
    s->is_open = false;
    if (s->is_pending) {
        (void)finish(s, in, RAN_DONE);
    }
}

size_t
session_want(struct session *s, char **to)
{
    must(s->is_body);
    size_t space = item_space(s->item, s->filled, to);
    size_t missing = body_bytes(s) - s->filled;
    return space < missing ? space : missing;
}

void
session_got(struct session *s, size_t n)
{
    must(s->is_body && n <= body_bytes(s) - s->filled);
    s->filled += n;
}

/* Moves body bytes that arrived together with the line into the item. */
static void
take_body(struct session *s, struct buf *in)
{
    while (s->filled < body_bytes(s) && buf_len(in) > 0) {
        char *to;
        size_t room = session_want(s, &to);
        size_t part = buf_len(in) < room ? buf_len(in) : room;
        memcpy(to, buf_unread(in), part);
        buf_consume(in, part);
        s->filled += part;
    }
}

static enum session_ran
run_body(struct session *s, const struct env *env, struct buf *in, struct chain *out)
{
    take_body(s, in);
    if (s->filled < body_bytes(s)) {
        return RAN_BODY;
    }
    s->is_body = false;
    s->is_pending = false;
    return exec_store_end(s, env, out);
}

/* Nearly all sets: the value has come with the line, and no watcher listens. */
static bool
has_value(const struct session *s, const struct env *env, const struct buf *in)
{
    const struct req *req = s->req;
    size_t end = s->line_len + req->value_len;
    const char *p = buf_unread(in);
    return req->verb == VERB_SET && req->protocol == PROTOCOL_ASCII &&
           buf_len(in) >= end + LINE_END_BYTES && p[end] == '\r' && p[end + 1] == '\n' &&
           !watch_wants(env->log, KEY_EVENTS_OF_SET);
}

static enum session_ran
run_set(struct session *s, const struct env *env, struct buf *in, struct chain *out)
{
    const struct req *req = s->req;
    struct ascii_set set = {.key = req->key,
                            .flags = req->flags,
                            .exptime = (int32_t)req->exptime,
                            .value_len = req->value_len};
    enum reply reply = exec_set(env, &set, buf_unread(in) + s->line_len, env->owner);
    s->line_len += (size_t)req->value_len + LINE_END_BYTES;
    return finish(s, in, exec_reply(s, env, out, reply));
}

static enum session_ran
run_store(struct session *s, const struct env *env, struct buf *in, struct chain *out)
{
    if (has_value(s, env, in)) {
        return run_set(s, env, in, out);
    }
    enum session_ran ran = exec_store_begin(s, env, out);
    buf_consume(in, s->line_len); /* the key is in the item now, or not needed */
    s->line_len = 0;
    if (s->item == NULL) {
        s->is_pending = false;
        return ran;
    }
    s->is_body = true;
    s->filled = 0;
    return run_body(s, env, in, out);
}

static enum session_ran
run_error(struct session *s, const struct env *env, struct buf *in, struct chain *out)
{
    enum session_ran ran = exec_reply(s, env, out, s->error);
    s->error = REPLY_NONE;
    s->req->family =
        FAMILY_ADMIN; /* what an earlier request left there is not this one's */
    return finish(s, in, ran == RAN_DONE && s->closes ? RAN_CLOSE : ran);
}

/* What asks about the server or changes it, and is more than a few instructions. */
static bool
is_long(const struct req *req)
{
    switch (req->verb) {
    case VERB_MN:
    case VERB_NOOP:
    case VERB_VERSION:
    case VERB_QUIT:
        return false;
    default:
        return true;
    }
}

static enum session_ran
run_admin(struct session *s, const struct env *env, struct buf *in, struct chain *out,
          const struct session_limits *limits)
{
    if (!s->is_long && is_long(s->req)) {
        s->is_long = true;
        s->is_behind = out->bytes > 0 || s->follows; /* they may go before its turn */
        return RAN_LONG;
    }
    enum session_ran ran = s->req->family == FAMILY_SASL
                               ? exec_sasl(s, env, out)
                               : exec_admin(s, env, out, limits);
    if (ran == RAN_AGAIN || ran == RAN_PARKED) {
        return ran;
    }
    s->is_long = false;
    return finish(s, in, ran);
}

/* What is not a RETRIEVE. */
static enum session_ran
run_family(struct session *s, const struct env *env, struct buf *in, struct chain *out,
           const struct session_limits *limits)
{
    enum session_ran ran;
    switch (s->req->family) {
    case FAMILY_STORE:
        return run_store(s, env, in, out);
    case FAMILY_ARITH:
        return finish(s, in, exec_arith(s, env, out));
    case FAMILY_TOUCH:
        return finish(s, in, exec_touch(s, env, out));
    case FAMILY_DELETE:
        return finish(s, in, exec_delete(s, env, out));
    case FAMILY_META:
        ran = exec_meta(s, env, out, limits);
        return ran == RAN_AGAIN || ran == RAN_LATE ? ran : finish(s, in, ran);
    default:
        return run_admin(s, env, in, out, limits);
    }
}

enum session_ran
session_refuse(struct session *s, const struct env *env, struct buf *in,
               struct chain *out, bool as_miss)
{
    must(s->is_pending && !s->is_body && !s->is_open && s->item == NULL);
    if (s->error != REPLY_NONE) {
        return run_error(s, env, in, out);
    }
    if (s->req->family == FAMILY_STORE) {
        s->swallow = (uint64_t)s->req->value_len + line_end_bytes(s);
    }
    enum session_ran ran = exec_refuse(s, env, out, as_miss);
    s->skips_line = s->req->is_open;
    s->req->is_open = false;
    return finish(s, in, ran);
}

unsigned
session_refuse_gets(struct session *s, const struct env *env, struct buf *in,
                    struct chain *out, uint32_t keys, bool as_miss)
{
    unsigned n = 0;
    bool is_between = !s->is_pending && !s->is_open && !s->skips_line && s->swallow == 0;
    if (!is_between || is_stranger(s, env) || s->req->protocol != PROTOCOL_ASCII) {
        return 0;
    }
    while (buf_len(in) > 0) {
        size_t len = ascii_skim_get(buf_unread(in), buf_len(in), keys);
        if (len == 0 ||
            !ascii_put_reply(out, &env->chain, as_miss ? REPLY_END : REPLY_BUSY)) {
            break;
        }
        buf_consume(in, len);
        n++;
    }
    return n;
}

enum session_ran
session_run(struct session *s, const struct env *env, struct buf *in, struct chain *out,
            const struct session_limits *limits)
{
    must(s->is_pending);
    if (unlikely(s->error != REPLY_NONE)) {
        return run_error(s, env, in, out);
    }
    if (s->req->family == FAMILY_RETRIEVE) { /* nearly all requests */
        enum session_ran ran = exec_retrieve(s, env, out, limits);
        return ran == RAN_DONE ? finish(s, in, ran) : ran;
    }
    return s->is_body ? run_body(s, env, in, out) : run_family(s, env, in, out, limits);
}
