/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Commands about what goes on in the background: slabs, lru, lru_crawler.
 */
#include "serve/exec.h"

#include <limits.h>
#include <math.h>

#include "base/num.h"
#include "serve/maint.h"
#include "store/automove.h"

#define AUTOMOVE_LEVEL_MAX 2
#define LRU_PERCENT_MAX 80
#define FRACTION_MAX 32 /* characters of a number with a point */

static struct slice
word(const struct req *req, unsigned i)
{
    return req->words > i ? req->word[i] : (struct slice){"", 0};
}

/* What the C library reads but for hexadecimal digits, infinities and what is no number. */
static bool
read_fraction(struct slice w, double *out)
{
    char text[FRACTION_MAX + 1];
    char *end;
    if (w.len == 0 || w.len > FRACTION_MAX) {
        return false;
    }
    memcpy(text, w.p, w.len);
    text[w.len] = '\0';
    if (strspn(text, "0123456789.eE+-") != w.len) {
        return false;
    }
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

/* ---- slabs ---------------------------------------------------------------------------- */

static const enum reply move_replies[] = {
    [STORE_MOVE_OK] = REPLY_OK,
    [STORE_MOVE_BUSY] = REPLY_MOVE_BUSY,
    [STORE_MOVE_BAD_CLASS] = REPLY_MOVE_BAD_CLASS,
    [STORE_MOVE_NO_SPARE] = REPLY_MOVE_NO_SPARE,
    [STORE_MOVE_SAME] = REPLY_MOVE_SAME,
    [STORE_MOVE_OFF] = REPLY_MOVE_OFF,
};

/* What is out of every range that the store knows stays so, and different. */
static int
clamp_class(int64_t id)
{
    return id < INT_MIN ? INT_MIN : id > INT_MAX ? INT_MAX : (int)id;
}

static enum store_move_status
move_page(const struct env *env, int64_t from, int64_t to)
{
    enum store_move_status status =
        store_move_page(env->store, clamp_class(from), clamp_class(to));
    if (!env->conf->rules->pool_is_class) {
        return status;
    }
    bool has_target = to >= 0 && to <= store_class_count(env->store);
    if (from == 0 && has_target && status == STORE_MOVE_BAD_CLASS) {
        return STORE_MOVE_NO_SPARE;
    }
    return from == -1 && status == STORE_MOVE_NO_SPARE ? STORE_MOVE_BAD_CLASS : status;
}

static enum reply
reassign(const struct req *req, const struct env *env)
{
    const struct rules *rules = env->conf->rules;
    int64_t from, to;
    if (req->words != 4) {
        return REPLY_ERROR;
    }
    if (!req_admin_i64_or_0(req->word[2], rules, &from) ||
        !req_admin_i64_or_0(req->word[3], rules, &to)) {
        return REPLY_BAD_FORMAT;
    }
    enum store_move_status status = move_page(env, from, to);
    maint_wake(env->conf->maint);
    return move_replies[status];
}

static enum reply
automove_window(const struct req *req, const struct rules *rules,
                struct store_automove *conf)
{
    uint64_t window;
    if (!req_admin_u64(word(req, 3), rules, &window)) {
        return REPLY_BAD_FORMAT;
    }
    if (window < AUTOMOVE_WINDOW_MIN || window > AUTOMOVE_WINDOW_MAX) {
        return REPLY_AUTOMOVE_WINDOW;
    }
    conf->window = (unsigned)window;
    return REPLY_OK;
}

static enum reply
automove_level(const struct req *req, const struct rules *rules,
               struct store_automove *conf)
{
    int64_t level;
    if (!req_admin_level(req->word[2], rules, &level)) {
        return REPLY_BAD_FORMAT;
    }
    if (level < 0 || level > AUTOMOVE_LEVEL_MAX) {
        return REPLY_ERROR;
    }
    conf->level = (unsigned)level;
    return REPLY_OK;
}

static enum reply
automove(const struct req *req, const struct env *env)
{
    const struct rules *rules = env->conf->rules;
    struct store_automove conf = store_automove(env->store);
    struct slice what = word(req, 2);
    enum reply reply;
    if (req->words < 3) {
        return REPLY_ERROR;
    }
    if (req_word_is(what, "ratio")) {
        reply = read_fraction(word(req, 3), &conf.ratio) ? REPLY_OK : REPLY_ERROR;
    } else if (rules->has_automove_window && req_word_is(what, "window")) {
        reply = automove_window(req, rules, &conf);
    } else if (rules->has_automove_window && req_word_is(what, "freeratio")) {
        /* There is no external storage whose share of free pages it could be. */
        double ignored;
        reply = read_fraction(word(req, 3), &ignored) ? REPLY_OK : REPLY_BAD_FORMAT;
    } else {
        reply = automove_level(req, rules, &conf);
    }
    if (reply == REPLY_OK) {
        store_set_automove(env->store, &conf);
        maint_wake(env->conf->maint);
    }
    return reply;
}

static enum reply
exec_slabs(const struct req *req, const struct env *env)
{
    if (req_word_is(word(req, 1), "reassign")) {
        return reassign(req, env);
    }
    return req_word_is(word(req, 1), "automove") ? automove(req, env) : REPLY_ERROR;
}

/* ---- lru ------------------------------------------------------------------------------ */

static enum reply
tune(const struct req *req, const struct rules *rules, struct store_lru_conf *conf)
{
    uint64_t hot, warm;
    double hot_factor, warm_factor;
    if (conf->policy == STORE_LRU_S3FIFO) {
        return REPLY_LRU_TUNE;
    }
    if (req->words < 6 || !req_admin_u64(req->word[2], rules, &hot) ||
        !req_admin_u64(req->word[3], rules, &warm) ||
        !read_fraction(req->word[4], &hot_factor) ||
        !read_fraction(req->word[5], &warm_factor)) {
        return REPLY_ERROR;
    }
    if (hot > LRU_PERCENT_MAX || warm > LRU_PERCENT_MAX || hot + warm > LRU_PERCENT_MAX) {
        return REPLY_LRU_PERCENT;
    }
    if (hot_factor <= 0 || warm_factor <= 0) {
        return REPLY_LRU_FACTOR;
    }
    conf->hot_pct = (unsigned)hot;
    conf->warm_pct = (unsigned)warm;
    conf->hot_factor = hot_factor;
    conf->warm_factor = warm_factor;
    return REPLY_OK;
}

static enum reply
set_mode(const struct req *req, const struct rules *rules, struct store_lru_conf *conf)
{
    for (unsigned i = 0; i < STORE_LRU_POLICIES; i++) {
        bool is_word = i != STORE_LRU_S3FIFO || rules->lru_is_s3fifo;
        if (is_word && req_word_is(word(req, 2), store_lru_name(i))) {
            conf->policy = i;
            return REPLY_OK;
        }
    }
    return REPLY_ERROR;
}

static enum reply
set_temp_ttl(const struct req *req, const struct rules *rules,
             struct store_lru_conf *conf)
{
    int64_t ttl;
    if (!req_admin_i64(word(req, 2), rules, &ttl)) {
        return REPLY_ERROR;
    }
    conf->temp_ttl = ttl < 0 ? -1 : ttl < UINT32_MAX ? ttl : UINT32_MAX;
    return REPLY_OK;
}

static enum reply
exec_lru(const struct req *req, const struct env *env)
{
    bool has_maintainer = maint_conf(env->conf->maint).has_maintainer;
    struct store_lru_conf conf = store_lru(env->store);
    enum reply reply = REPLY_ERROR;
    if (req_word_is(word(req, 1), "tune")) {
        reply = tune(req, env->conf->rules, &conf);
    } else if (has_maintainer && req_word_is(word(req, 1), "mode")) {
        reply = set_mode(req, env->conf->rules, &conf);
    } else if (has_maintainer && req_word_is(word(req, 1), "temp_ttl")) {
        reply = set_temp_ttl(req, env->conf->rules, &conf);
    }
    if (reply == REPLY_OK) {
        store_set_lru(env->store, &conf);
        maint_wake(env->conf->maint);
    }
    return reply;
}

/* ---- lru_crawler ---------------------------------------------------------------------- */

/* "all", or numbers with commas between them. */
static bool
read_classes(struct slice list, uint64_t *classes)
{
    const char *p = list.p;
    const char *end = list.p + list.len;
    *classes = 0;
    if (req_word_is(list, "all")) {
        *classes = STORE_WALK_ALL;
        return true;
    }
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t len = (size_t)((comma != NULL ? comma : end) - p);
        uint32_t id;
        if (len > 0 && (!num_u32(p, len, &id) || id < 1 || id >= STORE_CLASSES)) {
            return false;
        }
        if (len > 0) {
            *classes |= UINT64_C(1) << id;
        }
        p += len + (comma != NULL);
    }
    return *classes != 0;
}

static enum reply
crawl(const struct req *req, const struct env *env)
{
    const struct rules *rules = env->conf->rules;
    uint64_t classes;
    if (!maint_conf(env->conf->maint).has_crawler) {
        return REPLY_CRAWLER_OFF;
    }
    if (rules->dumps_are_framed && req_word_is(req->word[2], "hash")) {
        return REPLY_CRAWL_UNKNOWN;
    }
    if (!read_classes(req->word[2], &classes)) {
        return REPLY_CRAWL_BAD_CLASS;
    }
    switch (maint_crawl(env->conf->maint, env->store, classes, env->now)) {
    case STORE_WALK_OK:
        return REPLY_OK;
    case STORE_WALK_BUSY:
        return REPLY_CRAWL_BUSY;
    case STORE_WALK_EMPTY:
        return rules->crawls_empty_classes ? REPLY_OK : REPLY_CRAWL_EMPTY;
    default:
        return REPLY_CRAWL_UNKNOWN;
    }
}

static enum session_ran
dump(struct session *s, const struct env *env, struct chain *out, bool is_mg)
{
    struct slice list = s->req->word[2];
    struct store_walk_spec ask = {.classes = 0};
    if (s->is_datagram) {
        return exec_reply(s, env, out, REPLY_ERROR); /* there is no end of it */
    }
    if (s->req->is_noreply) {
        return RAN_DONE; /* there is nothing else to it */
    }
    if (!maint_conf(env->conf->maint).has_crawler) {
        return exec_reply(s, env, out, REPLY_CRAWLER_OFF);
    }
    if (!env->conf->allows_dump) {
        return exec_reply(s, env, out, REPLY_DUMP_REFUSED);
    }
    ask.by_table = env->conf->rules->dumps_are_framed && req_word_is(list, "hash");
    if (!ask.by_table && !read_classes(list, &ask.classes)) {
        return exec_reply(s, env, out, REPLY_CRAWL_BAD_CLASS);
    }
    return exec_dump_begin(s, env, out, &ask, is_mg);
}

static enum reply
tocrawl(const struct req *req, const struct env *env)
{
    uint64_t items;
    if (!req_word_u64(req->word[2], env->conf->rules, &items) || items > UINT32_MAX) {
        return REPLY_BAD_FORMAT;
    }
    maint_set_crawler_tocrawl(env->conf->maint, (uint32_t)items);
    return REPLY_OK;
}

static enum reply
sleep_between(const struct req *req, const struct env *env)
{
    uint64_t us;
    if (!req_admin_u64(req->word[2], env->conf->rules, &us)) {
        return REPLY_BAD_FORMAT;
    }
    if (us > MAINT_CRAWLER_SLEEP_MAX_US) {
        return REPLY_CRAWLER_SLEEP;
    }
    maint_set_crawler_sleep(env->conf->maint, (uint32_t)us);
    return REPLY_OK;
}

/* It can always be stopped, so only a second start fails. */
static enum reply
switch_crawler(const struct env *env, bool is_on)
{
    bool is_new = maint_switch_crawler(env->conf->maint, env->store, is_on);
    return is_new || !is_on ? REPLY_OK : REPLY_CRAWLER_NO_START;
}

static enum session_ran
exec_crawler(struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = s->req;
    struct slice what = word(req, 1);
    enum reply reply = REPLY_ERROR;
    if (req->words == 2 && req_word_is(what, "enable")) {
        reply = switch_crawler(env, true);
    } else if (req->words == 2 && req_word_is(what, "disable")) {
        reply = switch_crawler(env, false);
    } else if (req->words == 3 && req_word_is(what, "crawl")) {
        reply = crawl(req, env);
    } else if (req->words == 3 && req_word_is(what, "tocrawl")) {
        reply = tocrawl(req, env);
    } else if (req->words == 3 && req_word_is(what, "sleep")) {
        reply = sleep_between(req, env);
    } else if (req->words == 3 && req_word_is(what, "metadump")) {
        return dump(s, env, out, false);
    } else if (req->words == 3 && env->conf->rules->dumps_are_framed &&
               req_word_is(what, "mgdump")) {
        return dump(s, env, out, true);
    }
    return exec_reply(s, env, out, reply);
}

enum session_ran
exec_maint(struct session *s, const struct env *env, struct chain *out,
           const struct session_limits *limits)
{
    if (s->dump != 0) {
        return exec_dump(s, env, out, limits);
    }
    if (env->conf->maint == NULL) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    switch (s->req->verb) {
    case VERB_SLABS:
        return exec_reply(s, env, out, exec_slabs(s->req, env));
    case VERB_LRU:
        return exec_reply(s, env, out, exec_lru(s->req, env));
    case VERB_LRU_CRAWLER:
        return exec_crawler(s, env, out);
    default:
        unreachable();
    }
}
