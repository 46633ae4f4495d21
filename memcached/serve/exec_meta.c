/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The meta commands: mg, md, ma, me, and the second half of ms. A reply's first line is
 * written in one go; its flags stand in the order in which the client asked, and what they
 * show of the time to live depends on their place beside T and N.
 */
#include "serve/exec.h"

#include <limits.h>

#include "proto/meta.h"
#include "serve/key_event.h"

static int64_t
ttl_of(const struct env *env, uint32_t exptime)
{
    if (exptime == STORE_NEVER) {
        return -1;
    }
    return exptime > env->now ? (int64_t)exptime - env->now : 0;
}

/* Clocks are read once a batch: another worker's may be ahead. */
static uint32_t
idle_of(const struct env *env, uint32_t last_access)
{
    return env->now > last_access ? env->now - last_access : 0;
}

/* Where the flag stands among the others; behind them all when it is not there. */
static unsigned
place_of(const struct req *req, char flag)
{
    unsigned at = 0;
    while (at < req->meta.count && req->meta.order[at] != flag) {
        at++;
    }
    return at;
}

static bool
comes_before(const struct req *req, char first, char second)
{
    return place_of(req, first) < place_of(req, second);
}

/* Of an item made on a miss: T and N set it one after the other. */
static uint32_t
create_exptime_of(const struct req *req, const struct env *env)
{
    bool touch_is_last = meta_has(req, 'T') && comes_before(req, 'N', 'T');
    return exec_exptime(env, touch_is_last ? req->exptime : req->meta.create_exptime);
}

/* ---- replies -------------------------------------------------------------------------- */

/* Room for a first line; what meta_line_end leaves is committed. NULL: no memory. */
static char *
open_line(const struct env *env, struct chain *out)
{
    return chain_reserve(out, &env->chain, META_LINE_MAX);
}

static void
close_line(struct chain *out, struct meta_line *line)
{
    meta_line_end(line);
    chain_commit(out, line->len);
}

enum session_ran
exec_meta_echo(const struct req *req, const struct env *env, struct chain *out,
               const char *status, struct slice key)
{
    char *p = open_line(env, out);
    if (p == NULL) {
        return RAN_NO_MEMORY;
    }
    struct meta_line line = meta_line_begin(p, status);
    meta_line_echo(&line, req, key);
    close_line(out, &line);
    return RAN_DONE;
}

/* ---- mg ------------------------------------------------------------------------------- */

static struct store_look
look_of(const struct req *req, const struct env *env)
{
    uint32_t recache_until = exec_exptime(env, req->meta.recache_below);
    bool recaches = recache_until > env->now;
    return (struct store_look){
        .is_use = !meta_has(req, 'u'),
        .touches = meta_has(req, 'T'),
        .exptime = exec_exptime(env, req->exptime),
        .creates = meta_has(req, 'N'),
        .is_binary_key = meta_has(req, 'b'),
        .owner = env->owner,
        .create_exptime = create_exptime_of(req, env),
        .new_cas = req->meta.new_cas,
        .takes_stale = true,
        .recaches = recaches,
        .recache_sees_touch = comes_before(req, 'T', 'R'),
        .recache_below = recaches ? recache_until - env->now : 0,
    };
}

static enum session_ran
miss(const struct req *req, const struct env *env, struct chain *out,
     enum store_status status, struct slice key)
{
    ctr_add(&env->ctr->get_misses, 1);
    exec_count_gone(env, status);
    return meta_has(req, 'q') ? RAN_DONE : exec_meta_echo(req, env, out, "EN", key);
}

static void
count_hit(const struct req *req, const struct env *env, const struct item *item)
{
    struct serve_slab_ctr *slab = &env->ctr->slab[item_slot(item)];
    if (meta_has(req, 'T')) {
        ctr_add(&env->ctr->cmd_touch, 1);
        ctr_add(&slab->touch_hits, 1);
    } else {
        ctr_add(&slab->get_hits[item_list(item)], 1);
    }
}

/* C0 is no unique: it is never lower than another one, and what adds to a value compares nothing
 * then. Only replacing or deleting an item compares it, in vain. */
static bool
has_nonzero_compare(const struct req *req)
{
    return meta_has(req, 'C') && req->meta.compare != 0;
}

/* And does not have it already, as C says. */
static bool
wants_value(const struct req *req, const struct store_seen *seen)
{
    return meta_has(req, 'v') &&
           !(has_nonzero_compare(req) && req->meta.compare == seen->cas);
}

/* An item while its line is written. */
struct shown_item {
    struct slice key;
    bool is_binary_key;
    uint32_t value_len;
    const struct store_seen *seen;
    uint32_t exptime; /* at the flag that is being written */
};

static void
put_flag(struct meta_line *line, const struct req *req, const struct env *env,
         struct shown_item *shown, char flag)
{
    switch (flag) {
    case 'T':
        shown->exptime = exec_exptime(env, req->exptime);
        return;
    case 'N':
        if (shown->seen->is_created) {
            shown->exptime = exec_exptime(env, req->meta.create_exptime);
        }
        return;
    case 't':
        meta_line_ttl(line, ttl_of(env, shown->exptime));
        return;
    case 's':
        meta_line_number(line, 's', shown->value_len);
        return;
    case 'c':
        meta_line_number(line, 'c', shown->seen->cas);
        return;
    case 'f':
        meta_line_number(line, 'f', shown->seen->flags);
        return;
    case 'h':
        meta_line_number(line, 'h', shown->seen->was_fetched);
        return;
    case 'l':
        meta_line_number(line, 'l', idle_of(env, shown->seen->last_access));
        return;
    case 'k':
        meta_line_key(line, shown->key, shown->is_binary_key);
        return;
    case 'O':
        meta_line_opaque(line, req);
        return;
    default:
        return;
    }
}

/* Those of the request's flags that are in `flags`, which replies to its verb show. */
static inline void
put_flags(struct meta_line *line, const struct req *req, const struct env *env,
          struct shown_item *shown, uint64_t flags)
{
    for (unsigned i = 0; i < req->meta.count; i++) {
        if ((flags & meta_bit(req->meta.order[i])) != 0) {
            put_flag(line, req, env, shown, req->meta.order[i]);
        }
    }
}

/* In p[0..META_LINE_MAX); returns its length. `item` may be its head alone. */
static __attribute__((flatten)) size_t
put_hit_line(char *p, const struct req *req, const struct env *env, struct slice key,
             const struct item *item, const struct store_seen *seen)
{
    struct shown_item hit = {.key = key,
                             .is_binary_key = item_has_binary_key(item),
                             .value_len = item_value_len(item),
                             .seen = seen,
                             .exptime = seen->exptime_before};
    struct meta_line line = wants_value(req, seen)
                                ? meta_line_begin_value(p, hit.value_len)
                                : meta_line_begin(p, "HD");
    if (seen->is_created) {
        hit.exptime = STORE_NEVER; /* until N is reached */
    }
    for (unsigned i = 0; i < req->meta.count; i++) {
        put_flag(&line, req, env, &hit, req->meta.order[i]);
    }
    if (seen->is_won_before) {
        meta_line_mark(&line, 'Z');
    }
    if (seen->is_stale) {
        meta_line_mark(&line, 'X');
    }
    if (seen->is_won) {
        meta_line_mark(&line, 'W');
    }
    meta_line_end(&line);
    return line.len;
}

/* ---- mg without a lock ----------------------------------------------------------------- */

/* A get that changes nothing but that the item was used, and that no watcher sees. */
static bool
is_mere_look(const struct req *req, const struct env *env)
{
    return !meta_has(req, 'u') && !meta_has(req, 'T') && !meta_has(req, 'N') &&
           !meta_has(req, 'R') && !watch_wants(env->log, WATCH_FETCHERS | WATCH_PREFIXES);
}

struct mere_look {
    const struct req *req;
    const struct env *env;
    struct chain *out;
    struct slice key;
    size_t most; /* value and line end that are copied */
    size_t made;
    enum store_status status;
};

static enum store_take
take_look(void *ctx, unsigned i, enum store_status status, const struct store_hit *hit)
{
    struct mere_look *look = ctx;
    const struct req *req = look->req;
    struct store_seen seen;
    (void)i;
    look->status = status;
    if (status != STORE_OK) {
        return STORE_TAKEN;
    }
    store_hit_see(hit, &seen);
    size_t value = wants_value(req, &seen) ? (size_t)hit->value_len + LINE_END_BYTES : 0;
    bool has_token = seen.is_stale && !seen.is_won_before; /* for this client */
    char *to = has_token || value > look->most
                   ? NULL
                   : chain_reserve(look->out, &look->env->chain, CHAIN_RESERVE_MAX);
    if (to == NULL) {
        return STORE_TAKE_STOP;
    }
    size_t head = put_hit_line(to, req, look->env, look->key, hit->head, &seen);
    if (hit->value != NULL) {
        memcpy(to + head, hit->value, value);
    } else {
        exec_copy(to + head, hit->item, value);
    }
    if (!store_hit_holds(hit)) {
        return STORE_TAKE_AGAIN;
    }
    look->made = head + value;
    count_hit(req, look->env, hit->head);
    return STORE_TAKEN;
}

/* False: it takes a look with the lock (begin_get). */
static bool
answer_mere_look(const struct req *req, const struct env *env, struct chain *out,
                 struct slice key, size_t late_bytes, enum session_ran *ran)
{
    struct mere_look look = {.req = req,
                             .env = env,
                             .out = out,
                             .key = key,
                             .most = CHAIN_RESERVE_MAX - META_LINE_MAX};
    struct store_read read = {.key = exec_key(key)};
    if (late_bytes != 0 && late_bytes < look.most) {
        look.most = late_bytes;
    }
    if (store_read(env->store, &read, 1, env->now, take_look, &look) == 0) {
        return false;
    }
    if (look.status == STORE_OK) {
        chain_commit(out, look.made);
        *ran = RAN_DONE;
    } else if (look.status == STORE_BUSY) {
        *ran = exec_ran(ascii_put_reply(out, &env->chain, REPLY_META_REFCOUNT));
    } else {
        *ran = miss(req, env, out, look.status, key);
        if (out->bytes == 0) {
            chain_clear(out, &env->chain); /* what a hit that did not hold has reserved */
        }
    }
    return true;
}

/* ---- mg with it ------------------------------------------------------------------------ */

/* Looks the key up and answers, but for the value: *item is left when one is to follow. */
static enum session_ran
begin_get(const struct req *req, const struct env *env, struct chain *out,
          size_t late_bytes, struct item **item)
{
    char decoded[REQ_KEY_MAX];
    struct slice key = meta_key(req, decoded);
    enum session_ran ran;
    if (is_mere_look(req, env) &&
        answer_mere_look(req, env, out, key, late_bytes, &ran)) {
        return ran;
    }
    struct store_look ask = look_of(req, env);
    struct store_seen seen;
    enum store_status status =
        store_look(env->store, exec_key(key), &ask, env->now, &seen, item);
    key_event_get(env, exec_key(key), seen.is_created ? STORE_MISS : status,
                  seen.is_created ? NULL : *item);
    if (status == STORE_BUSY) {
        return exec_ran(ascii_put_reply(out, &env->chain, REPLY_META_REFCOUNT));
    }
    if (status != STORE_OK) {
        return miss(req, env, out, status, key);
    }
    count_hit(req, env, *item);
    char *p = open_line(env, out);
    if (p != NULL) {
        chain_commit(out, put_hit_line(p, req, env, key, *item, &seen));
    }
    if (p == NULL || !wants_value(req, &seen)) {
        store_release(env->store, *item);
        *item = NULL;
    }
    return exec_ran(p != NULL);
}

/* The first line of a large value leaves before the value, which comes when it is its turn:
 * s->item is held from the one to the other. */
static enum session_ran
exec_meta_get(struct session *s, const struct env *env, struct chain *out,
              const struct session_limits *limits)
{
    if (s->item == NULL) {
        if (out->bytes >= limits->out_bytes) {
            return RAN_AGAIN;
        }
        enum session_ran ran = begin_get(s->req, env, out, limits->late_bytes, &s->item);
        if (s->item == NULL) {
            return ran;
        }
    }
    if (limits->late_bytes != 0 && item_value_len(s->item) > limits->late_bytes) {
        return RAN_LATE;
    }
    struct item *item = s->item;
    s->item = NULL;
    return exec_ran(exec_put_value(env, out, item));
}

/* ---- ms ------------------------------------------------------------------------------- */

/* By M: E is add, and so on; STORE_SET without. */
static const enum store_mode modes[UCHAR_MAX + 1] = {
    ['E'] = STORE_ADD,
    ['A'] = STORE_APPEND,
    ['P'] = STORE_PREPEND,
    ['R'] = STORE_REPLACE,
};

_Static_assert(STORE_SET == 0, "the default of modes");

static __attribute__((flatten)) enum session_ran
reply_stored(const struct req *req, const struct env *env, struct chain *out,
             enum store_status status, const struct store_result *result,
             struct slice key)
{
    bool is_stored = status == STORE_OK;
    struct store_seen seen = {.cas = is_stored ? result->cas : 0};
    struct shown_item shown = {.key = key,
                               .is_binary_key = meta_has(req, 'b'),
                               .value_len =
                                   is_stored ? result->value_len : req->value_len,
                               .seen = &seen};
    const char *word = is_stored                ? "HD"
                       : status == STORE_EXISTS ? "EX"
                       : status == STORE_MISS   ? "NF"
                                                : "NS"; /* the old value stays */
    char *p = open_line(env, out);
    if (p == NULL) {
        return RAN_NO_MEMORY;
    }
    struct meta_line line = meta_line_begin(p, word);
    put_flags(&line, req, env, &shown,
              meta_bit('k') | meta_bit('O') | meta_bit('c') | meta_bit('s'));
    close_line(out, &line);
    return RAN_DONE;
}

/* Only what replaces an item compares its unique in full: a cas. */
static bool
is_cas(const struct req *req)
{
    enum store_mode mode = modes[(unsigned char)req->meta.mode];
    return (mode == STORE_SET || mode == STORE_REPLACE) && meta_has(req, 'C');
}

enum watch_cmd
exec_meta_cmd(const struct req *req)
{
    return is_cas(req) ? WATCH_CMD_CAS
                       : key_event_cmd(modes[(unsigned char)req->meta.mode]);
}

enum session_ran
exec_meta_store(const struct session *s, const struct env *env, struct chain *out,
                struct item *item)
{
    const struct req *req = s->req;
    enum store_mode mode = modes[(unsigned char)req->meta.mode];
    bool replaces = mode == STORE_SET || mode == STORE_REPLACE;
    bool has_unique = has_nonzero_compare(req);
    struct store_put put = {
        .mode = mode,
        .has_compare = is_cas(req) || (!replaces && has_unique),
        .accepts_stale = replaces && has_unique && meta_has(req, 'I'),
        .creates = meta_has(req, 'N'),
        .compare = req->meta.compare,
        .new_cas = req->meta.new_cas,
    };
    char copy[REQ_KEY_MAX]; /* the line has gone, and the item goes with the commit */
    struct slice key = {copy, item_key_len(item)};
    memcpy(copy, item_key(item), key.len);
    struct store_result result;
    struct key_event_put event;
    key_event_put(env, exec_meta_cmd(req), item, &event);
    enum store_status status = exec_commit(env, item, &put, &result);
    key_event_outcome(env, &event, status, &result);
    if (is_cas(req)) {
        exec_count_cas(env, status, result.class_id);
    }
    if (status == STORE_OK && meta_has(req, 'q')) {
        return RAN_DONE;
    }
    return reply_stored(req, env, out, status, &result, key);
}

/* ---- md ------------------------------------------------------------------------------- */

static enum session_ran
exec_meta_delete(const struct req *req, const struct env *env, struct chain *out)
{
    char decoded[REQ_KEY_MAX];
    struct slice key = meta_key(req, decoded);
    struct store_cut cut = {
        .has_compare = meta_has(req, 'C'),
        .marks_stale = meta_has(req, 'I'),
        .empties = meta_has(req, 'x'),
        .touches = meta_has(req, 'T'),
        .exptime = exec_exptime(env, req->exptime),
        .client_flags = req->flags,
        .compare = req->meta.compare,
        .new_cas = req->meta.new_cas,
    };
    struct store_result result;
    key_event_delete(env, exec_key(key));
    enum store_status status =
        store_delete(env->store, exec_key(key), &cut, env->now, &result);
    switch (status) {
    case STORE_OK:
        if (!cut.marks_stale) {
            key_event_deleted(env, exec_key(key), true, &result);
            ctr_add(&env->ctr->slab[result.class_id].delete_hits, 1);
        }
        return meta_has(req, 'q') ? RAN_DONE : exec_meta_echo(req, env, out, "HD", key);
    case STORE_NO_MEMORY:
        return exec_ran(ascii_put_reply(out, &env->chain, REPLY_NO_MEMORY));
    default:
        ctr_add(&env->ctr->delete_misses, 1);
        exec_count_gone(env, result.found);
        return exec_meta_echo(req, env, out, status == STORE_EXISTS ? "EX" : "NF", key);
    }
}

/* ---- ma ------------------------------------------------------------------------------- */

static __attribute__((flatten)) bool
reply_number(const struct req *req, const struct env *env, struct chain *out,
             struct slice key, struct slice digits, const struct store_result *result)
{
    bool has_value = meta_has(req, 'v');
    struct store_seen seen = {.cas = result->cas, .is_created = result->is_created};
    struct shown_item shown = {.key = key,
                               .is_binary_key = meta_has(req, 'b'),
                               .seen = &seen,
                               .exptime = result->is_created ? STORE_NEVER
                                                             : result->exptime_before};
    char *p = open_line(env, out);
    if (p == NULL) {
        return false;
    }
    struct meta_line line = has_value ? meta_line_begin_value(p, (uint32_t)digits.len)
                                      : meta_line_begin(p, "HD");
    put_flags(&line, req, env, &shown,
              meta_bit('N') | meta_bit('T') | meta_bit('t') | meta_bit('c') |
                  meta_bit('k') | meta_bit('O'));
    close_line(out, &line);
    return !has_value || ascii_put_number(out, &env->chain, digits.p, digits.len);
}

static enum session_ran
reply_no_sum(const struct req *req, const struct env *env, struct chain *out,
             enum store_status status, const struct store_result *result,
             struct slice key)
{
    enum reply error = REPLY_NO_MEMORY;
    switch (status) {
    case STORE_MISS:
        return exec_meta_echo(req, env, out, "NF", key);
    case STORE_EXISTS:
        return exec_meta_echo(req, env, out, "EX", key);
    case STORE_NOT_NUMERIC:
        error = REPLY_NOT_NUMERIC;
        break;
    default:
        if (result->class_id == 0) { /* there is none that could not grow */
            error = REPLY_META_NO_MEMORY_NEW;
        }
        break;
    }
    return exec_ran(ascii_put_reply(out, &env->chain, error));
}

static enum session_ran
exec_meta_arith(const struct req *req, const struct env *env, struct chain *out)
{
    char decoded[REQ_KEY_MAX];
    struct slice key = meta_key(req, decoded);
    struct store_sum sum = {
        .increments = req->meta.mode != 'D' && req->meta.mode != '-',
        .has_compare = has_nonzero_compare(req),
        .creates = meta_has(req, 'N'),
        .is_binary_key = meta_has(req, 'b'),
        .owner = env->owner,
        .touches = meta_has(req, 'T'),
        .delta = req->meta.delta,
        .initial = req->meta.initial,
        .compare = req->meta.compare,
        .new_cas = req->meta.new_cas,
        .create_exptime = create_exptime_of(req, env),
        .exptime = exec_exptime(env, req->exptime),
    };
    char number[STORE_NUMBER_DIGITS];
    struct slice digits = {number, 0};
    struct store_result result;
    key_event_lookup(env, exec_key(key));
    enum store_status status = store_arith(env->store, exec_key(key), &sum, env->now,
                                           number, &digits.len, &result);
    exec_count_sum(env, sum.increments, status, &result);
    exec_count_gone(env, result.found);
    if (status == STORE_OK && result.is_created) {
        key_event_created(env, exec_key(key), &result);
    }
    if (status != STORE_OK) {
        return reply_no_sum(req, env, out, status, &result, key);
    }
    return exec_ran(meta_has(req, 'q') ||
                    reply_number(req, env, out, key, digits, &result));
}

/* ---- me ------------------------------------------------------------------------------- */

static enum session_ran
exec_meta_show(const struct req *req, const struct env *env, struct chain *out)
{
    char decoded[REQ_KEY_MAX];
    struct store_look ask = {.is_use = false};
    struct store_seen seen;
    struct item *item;
    struct key key = exec_key(meta_key(req, decoded));
    ctr_add(&env->ctr->cmd_meta, 1);
    key_event_lookup(env, key);
    enum store_status status = store_look(env->store, key, &ask, env->now, &seen, &item);
    exec_count_gone(env, status);
    if (status != STORE_OK) {
        enum reply reply = status == STORE_BUSY ? REPLY_META_REFCOUNT : REPLY_META_MISS;
        return exec_ran(ascii_put_reply(out, &env->chain, reply));
    }
    char *p = open_line(env, out);
    if (p != NULL) {
        struct meta_facts facts = {
            .key = {item_key(item), item_key_len(item)},
            .is_binary_key = item_has_binary_key(item),
            .was_fetched = seen.was_fetched,
            .class_id = item_class(item),
            .ttl = ttl_of(env, seen.exptime_before),
            .idle = idle_of(env, seen.last_access),
            .total = item_accounted(env->store, item),
            .cas = seen.cas,
        };
        chain_commit(out, meta_describe(p, &facts));
    }
    store_release(env->store, item);
    return exec_ran(p != NULL);
}

enum session_ran
exec_meta(struct session *s, const struct env *env, struct chain *out,
          const struct session_limits *limits)
{
    switch (s->req->verb) {
    case VERB_MG:
        return exec_meta_get(s, env, out, limits);
    case VERB_MD:
        return exec_meta_delete(s->req, env, out);
    case VERB_MA:
        return exec_meta_arith(s->req, env, out);
    case VERB_ME:
        return exec_meta_show(s->req, env, out);
    default:
        unreachable();
    }
}
