/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The LRU and its background thread.
 */
#include "base/num.h"
#include "front/front.h"
#include "serve/maint.h"

#define SEGMENTS_PCT_MOST 80 /* of HOT and WARM together */
#define TEMP_TTL 61          /* that "stats settings" tells while there is none */

/* The maintainer and the segments come and go together. */
static const char *
set_maintainer(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    s->maint.has_maintainer = true;
    s->store.lru.policy = STORE_LRU_SEGMENTED;
    return NULL;
}

static const char *
set_no_maintainer(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    s->maint.has_maintainer = false;
    s->store.lru.policy = STORE_LRU_FLAT;
    return NULL;
}

/* Which the maintainer keeps, but for the flat one. */
static const char *
set_policy(void *conf, const char *text)
{
    struct settings *s = conf;
    for (unsigned i = 0; i < STORE_LRU_POLICIES; i++) {
        if (strcmp(text, store_lru_name(i)) == 0) {
            s->store.lru.policy = i;
            s->maint.has_maintainer |= i != STORE_LRU_FLAT;
            return NULL;
        }
    }
    return "lru_policy must be s3fifo, segmented or flat";
}

static const char *
set_temporary_ttl(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t seconds;
    if (strcmp(text, "off") == 0) {
        s->has_temp = false;
        return NULL;
    }
    if (!num_u32(text, strlen(text), &seconds)) {
        return "could not parse argument to temporary_ttl";
    }
    s->temp_ttl = seconds;
    s->has_temp = true;
    return NULL;
}

/* ---- at run time ---------------------------------------------------------------------- */

static void
read_crawler(void *program, void *conf)
{
    struct stats *st = program;
    struct maint_conf *to = &((struct settings *)conf)->maint;
    bool has_maintainer = to->has_maintainer;
    *to = maint_conf(st->shared->serve->maint);
    to->has_maintainer = has_maintainer;
}

static bool
apply_crawler(void *program, const void *conf)
{
    struct stats *st = program;
    const struct maint_conf *from = &((const struct settings *)conf)->maint;
    struct maint *m = st->shared->serve->maint;
    maint_set_crawler_sleep(m, from->crawler_sleep_us);
    maint_set_crawler_tocrawl(m, from->crawler_tocrawl);
    return maint_conf(m).has_crawler == from->has_crawler ||
           maint_switch_crawler(m, st->shared->store, from->has_crawler);
}

static void
read_lru(void *program, void *conf)
{
    struct stats *st = program;
    struct settings *to = conf;
    to->store.lru = store_lru(st->shared->store);
    to->has_temp = to->store.lru.temp_ttl >= 0;
    to->temp_ttl = to->has_temp ? (uint32_t)to->store.lru.temp_ttl : TEMP_TTL;
}

static bool
put_lru(struct stats *st, const struct store_lru_conf *lru)
{
    store_set_lru(st->shared->store, lru);
    maint_wake(st->shared->serve->maint);
    return true;
}

static bool
apply_shares(void *program, const void *conf)
{
    struct stats *st = program;
    const struct store_lru_conf *from = &((const struct settings *)conf)->store.lru;
    struct store_lru_conf lru = store_lru(st->shared->store);
    lru.hot_pct = from->hot_pct;
    lru.warm_pct = from->warm_pct;
    lru.hot_factor = from->hot_factor;
    lru.warm_factor = from->warm_factor;
    return put_lru(st, &lru);
}

static const char *
lists_wait(const void *now, const void *next)
{
    const struct settings *a = now, *b = next;
    return a->maint.has_maintainer != b->maint.has_maintainer
               ? "lru_maintainer changes at a restart"
               : NULL;
}

static bool
apply_lists(void *program, const void *conf)
{
    struct stats *st = program;
    const struct store_lru_conf *from = &((const struct settings *)conf)->store.lru;
    struct store_lru_conf lru = store_lru(st->shared->store);
    lru.policy = from->policy;
    lru.temp_ttl = from->temp_ttl;
    return put_lru(st, &lru);
}

static void
tell_policy(const void *conf, char *to, size_t size)
{
    const struct settings *s = conf;
    snprintf(to, size, "%s", store_lru_name(s->store.lru.policy));
}

static void
tell_temporary_ttl(const void *conf, char *to, size_t size)
{
    const struct settings *s = conf;
    if (s->has_temp) {
        snprintf(to, size, "%ju", (uintmax_t)s->temp_ttl);
    } else {
        snprintf(to, size, "off");
    }
}

static const struct opt_live live_crawler = {read_crawler, apply_crawler, NULL, NULL},
                             live_shares = {read_lru, apply_shares, NULL, NULL},
                             live_policy = {read_lru, apply_lists, tell_policy,
                                            lists_wait},
                             live_temporary = {read_lru, apply_lists, tell_temporary_ttl,
                                               lists_wait};

/* clang-format off */
static const struct opt options[] = {
    {.word = "lru_crawler", .kind = OPT_FLAG, OF(maint.has_crawler), .section = LRU,
     .live = &live_crawler,
     .help = "a background thread reclaims expired items"},
    {.word = "no_lru_crawler", .kind = OPT_OFF, OF(maint.has_crawler), .section = LRU,
     .live = &live_crawler, .help = "disable the LRU crawler"},
    {.word = "lru_crawler_sleep", .kind = OPT_INT, OF(maint.crawler_sleep_us),
     .max = 1000000, .arg = "N", .section = LRU, .preset = "100", .live = &live_crawler,
     .error = "LRU crawler sleep must be between 0 and 1 second",
     .help = "pause of the crawler between items in microseconds"},
    {.word = "lru_crawler_tocrawl", .kind = OPT_INT, OF(maint.crawler_tocrawl),
     .max = UINT32_MAX, .arg = "N", .section = LRU, .preset = "0", .live = &live_crawler,
     .error = "lru_crawler_tocrawl takes a numeric 32bit value",
     .help = "items of a list that one crawl examines; 0: all"},
    {.word = "tail_repair_time", .kind = OPT_INT, OF(store.tail_repair_seconds), .min = 10,
     .max = UINT32_MAX, .arg = "N", .section = LRU, .preset_help = "0",
     .error = "Cannot set tail_repair_time to less than 10 seconds",
     .help = "free a tail item with leaked references after N seconds; 0: off"},
    {.word = "lru_maintainer", SET(set_maintainer), .section = LRU,
     .help = "segmented LRU, kept by a background thread"},
    {.word = "no_lru_maintainer", SET(set_no_maintainer), .section = LRU,
     .help = "flat LRU"},
    {.word = "lru_policy", SET(set_policy), .arg = "P", .section = LRU,
     .preset_help = "s3fifo", .live = &live_policy,
     .help = "what leaves when memory is short: s3fifo, segmented or flat"},
    {.word = "hot_lru_pct", .kind = OPT_INT, OF(store.lru.hot_pct), .min = 1, .max = 79,
     .arg = "N", .section = LRU, .preset = "20", .live = &live_shares,
     .error = "hot_lru_pct must be > 1 and < 80",
     .help = "maximum share of HOT items in a class in percent"},
    {.word = "warm_lru_pct", .kind = OPT_INT, OF(store.lru.warm_pct), .min = 1, .max = 79,
     .arg = "N", .section = LRU, .preset = "40", .live = &live_shares,
     .error = "warm_lru_pct must be > 1 and < 80",
     .help = "maximum share of WARM items in a class in percent"},
    {.word = "hot_max_factor", .kind = OPT_DOUBLE, OF(store.lru.hot_factor), .min = 1e-9,
     .max = 1e9, .arg = "X", .section = LRU, .preset = "0.2",
     .live = &live_shares,
     .error = "hot_max_factor must be > 0",
     .help = "maximum age of HOT items as a share of the tail's age"},
    {.word = "warm_max_factor", .kind = OPT_DOUBLE, OF(store.lru.warm_factor), .min = 1e-9,
     .max = 1e9, .arg = "X", .section = LRU, .preset = "2.0",
     .live = &live_shares,
     .error = "warm_max_factor must be > 0",
     .help = "maximum age of WARM items as a share of the tail's age"},
    {.word = "temporary_ttl", SET(set_temporary_ttl), .arg = "N|off", .section = LRU,
     .preset_help = "off", .live = &live_temporary,
     .help = "items with a TTL of at most N seconds have an LRU of their own"},
};
/* clang-format on */

static void
init(struct settings *s)
{
    s->temp_ttl = TEMP_TTL;
}

static const char *
settle(struct settings *s, struct settling *to)
{
    struct store_lru_conf *lru = &s->store.lru;
    (void)to;
    lru->temp_ttl = s->has_temp ? s->temp_ttl : -1;
    if (lru->hot_pct + lru->warm_pct > SEGMENTS_PCT_MOST) {
        return front_say("hot_lru_pct + warm_lru_pct cannot be more than %d%% combined",
                         SEGMENTS_PCT_MOST);
    }
    return s->has_temp && !s->maint.has_maintainer
               ? "temporary_ttl requires lru_maintainer to be enabled"
               : NULL;
}

/* A variable of upstream: a step's size. What is no number, or 0, is 1, as there. */
static unsigned
step_of(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    uint32_t step;
    if (text == NULL) {
        return otherwise;
    }
    if (!num_u32(text, strlen(text), &step) || step == 0) {
        return 1;
    }
    return step < MAINTENANCE_STEP_MAX ? step : MAINTENANCE_STEP_MAX;
}

struct maintenance_conf
settings_maintenance(void)
{
    return (struct maintenance_conf){
        .grow_buckets = step_of("MEMCACHED_HASH_BULK_MOVE", MAINTENANCE_GROW_BUCKETS),
        .move_chunks = step_of("MEMCACHED_SLAB_BULK_CHECK", MAINTENANCE_MOVE_CHUNKS),
    };
}

const struct front front_lru = {OPTIONS(options), .init = init, .settle = settle};
