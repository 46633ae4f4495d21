/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The groups of "stats" that tell of items and their memory.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/num.h"
#include "front/front.h"
#include "serve/maint.h"
#include "serve/prefix.h"
#include "serve/watch.h"

/* Told in one call. */
#define CLASSES_PER_CALL 4
#define PREFIXES_PER_CALL 32 /* under one lock */
#define ITEMS_PER_CALL 32    /* looked at, under one lock */
#define SIZE_LOOKS_PER_CALL 512
#define CACHEDUMP_BYTES (2u << 20) /* of lines; what does not fit is left out */

/* ---- detail --------------------------------------------------------------------------- */

/* Lines that are collected under a lock and told after it. */
struct lines {
    char bytes[PREFIXES_PER_CALL * PREFIX_LINE_MAX];
    size_t len;
};

static void
add_prefix(void *ctx, const char *line, size_t len)
{
    struct lines *l = ctx;
    must(len <= sizeof l->bytes - l->len);
    memcpy(l->bytes + l->len, line, len);
    l->len += len;
}

static enum reply
dump_detail(struct stats *st, const struct stats_query *ask)
{
    struct lines lines = {.len = 0};
    bool has_more = prefixes_tell(st->shared->prefixes, &ask->place->at,
                                  PREFIXES_PER_CALL, add_prefix, &lines);
    sink_text(ask->sink, "detailed", lines.bytes, lines.len, has_more);
    return has_more ? REPLY_NONE : REPLY_END;
}

static enum reply
show_detail(struct stats *st, const struct stats_query *ask)
{
    bool is_on = ask->count > 0 && req_word_is(ask->words[0], "on");
    if (!st->settings->serve.allows_dump &&
        rules_of(st->settings->profile)->no_dump_is_no_detail) {
        return REPLY_DETAIL_REFUSED;
    }
    if (ask->count > 0 && req_word_is(ask->words[0], "dump")) {
        return dump_detail(st, ask);
    }
    if (!is_on && (ask->count == 0 || !req_word_is(ask->words[0], "off"))) {
        return REPLY_BAD_DETAIL;
    }
    prefixes_set_on(st->shared->prefixes, is_on);
    watch_set_prefixes(st->shared->watch, is_on);
    return REPLY_OK;
}

/* ---- cachedump ------------------------------------------------------------------------ */

/* What of an answer of CACHEDUMP_BYTES has been told. The place in it begins at 1, which says
 * that the listing has begun. */
struct dump {
    struct serve_place *place;
    struct sink *sink;
    bool hides_binary_keys;
};

static bool
show_item(void *ctx, const struct item *item)
{
    struct dump *dump = ctx;
    char line[REQ_KEY_MAX + 80];
    if (dump->hides_binary_keys && item_has_binary_key(item)) {
        return true;
    }
    uint32_t exptime = item_expires(item);
    int64_t expires = exptime == STORE_NEVER ? 0 : clock_started() + exptime;
    int len =
        snprintf(line, sizeof line, "ITEM %.*s [%" PRIu32 " b; %" PRIi64 " s]\r\n",
                 (int)item_key_len(item), item_key(item), item_value_len(item), expires);
    must(len > 0 && (size_t)len < sizeof line);
    dump->place->at += (unsigned)len;
    if (dump->place->at > CACHEDUMP_BYTES) {
        return false;
    }
    sink_text(dump->sink, "cachedump", line, (size_t)len, true);
    return !dump->sink->has_failed;
}

/* NONE: the listing has begun. */
static enum reply
begin_cachedump(struct stats *st, const struct stats_query *ask)
{
    const struct slice *words = ask->words;
    uint32_t class_id;
    uint32_t limit;
    if (!st->settings->serve.allows_dump) {
        return REPLY_CACHEDUMP_REFUSED;
    }
    if (ask->count < 2) {
        return REPLY_BAD_LINE;
    }
    if (!num_u32(words[0].p, words[0].len, &class_id) ||
        !num_u32(words[1].p, words[1].len, &limit)) {
        return REPLY_BAD_FORMAT;
    }
    if (class_id >= STORE_CLASSES) {
        return REPLY_BAD_CLASS_ID;
    }
    if (class_id == 0) {
        return REPLY_END;
    }
    bool hot_first = rules_of(st->settings->profile)->cachedump_shows_hot;
    ask->place->ticket =
        store_dump_begin(st->shared->store, class_id, hot_first, limit, ask->now);
    ask->place->at = 1;
    return REPLY_NONE;
}

static enum reply
show_cachedump(struct stats *st, const struct stats_query *ask)
{
    enum reply reply = ask->place->at == 0 ? begin_cachedump(st, ask) : REPLY_NONE;
    if (reply != REPLY_NONE) {
        return reply;
    }
    const struct rules *rules = rules_of(st->settings->profile);
    struct dump dump = {.place = ask->place,
                        .sink = ask->sink,
                        .hides_binary_keys = rules->cachedump_hides_binary_keys};
    return store_dump_step(st->shared->store, ask->place->ticket, ITEMS_PER_CALL,
                           ask->now, show_item, &dump)
               ? REPLY_NONE
               : REPLY_END;
}

/* ---- sizes ---------------------------------------------------------------------------- */

static void
show_size(void *ctx, uint64_t size, uint64_t count)
{
    char name[NUM_U64_DIGITS + 1];
    snprintf(name, sizeof name, "%" PRIu64, size);
    sink_statf(ctx, name, "%" PRIu64, count);
}

static enum reply
show_sizes(struct stats *st, const struct stats_query *ask)
{
    struct store *store = st->shared->store;
    if (ask->place->at == 0 && !store_is_tracking_sizes(store)) {
        sink_stat(ask->sink, "sizes_status", "disabled");
        return REPLY_END;
    }
    return store_sizes_step(store, &ask->place->at, SIZE_LOOKS_PER_CALL, show_size,
                            ask->sink)
               ? REPLY_NONE
               : REPLY_END;
}

static enum reply
switch_sizes(struct stats *st, bool is_on, struct sink *sink)
{
    if (!rules_of(st->settings->profile)->has_sizes_switch) {
        return REPLY_ERROR;
    }
    if (store_track_sizes(st->shared->store, is_on)) {
        sink_stat(sink, "sizes_status", is_on ? "enabled" : "disabled");
    } else {
        sink_stat(sink, "sizes_status", "error");
        sink_stat(sink, "sizes_error",
                  !st->settings->store.use_cas ? "cas_support_disabled"
                                               : "out_of_memory");
    }
    sink->is_complete = true;
    return REPLY_NONE;
}

static enum reply
enable_sizes(struct stats *st, const struct stats_query *ask)
{
    return switch_sizes(st, true, ask->sink);
}

static enum reply
disable_sizes(struct stats *st, const struct stats_query *ask)
{
    return switch_sizes(st, false, ask->sink);
}

/* ---- items and slabs ------------------------------------------------------------------ */

static void
show_class_items(struct stats *st, bool has_maintainer, unsigned id,
                 const struct stats_query *ask)
{
    struct store_class_stats c;
    char prefix[24];
    store_class_stats(st->shared->store, id, ask->now, &c);
    if (c.number == 0) {
        return;
    }
    struct store_lru_conf lru = store_lru(st->shared->store);
    bool has_temp = has_maintainer && lru.temp_ttl >= 0;
    bool has_ghosts = lru.policy == STORE_LRU_S3FIFO;
    bool has_requested = rules_of(st->settings->profile)->items_show_requested;
    struct stats_parts parts = stats_parts(st, id);
    snprintf(prefix, sizeof prefix, "items:%u:", id);
#define LINE_IF(condition, name, value)                                                  \
    if (condition) {                                                                     \
        sink_stat_of(ask->sink, prefix, name, "%" PRIu64, (uint64_t)(value));            \
    }
#define LINE(name, value) LINE_IF(true, name, value)
#include "front/items.def"
#undef LINE
#undef LINE_IF
}

/* This call tells of the classes from *first to the one before the result. */
static unsigned
classes_of_call(const struct stats *st, struct serve_place *place, unsigned *first)
{
    unsigned end = store_class_count(st->shared->store) + 1;
    *first = place->at + 1;
    place->at += CLASSES_PER_CALL;
    return place->at + 1 < end ? place->at + 1 : end;
}

static enum reply
show_items(struct stats *st, const struct stats_query *ask)
{
    bool has_maintainer = maint_conf(st->shared->serve->maint).has_maintainer;
    unsigned first;
    unsigned end = classes_of_call(st, ask->place, &first);
    for (unsigned id = first; id < end; id++) {
        show_class_items(st, has_maintainer, id, ask);
    }
    return end <= store_class_count(st->shared->store) ? REPLY_NONE : REPLY_END;
}

static void
show_slab_counters(struct stats *st, unsigned id, const char *prefix, struct sink *sink)
{
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    struct stats_sum sum = stats_sum_class(st, id);
    stats_subtract((uint64_t *)&sum, (const uint64_t *)&st->slab_baseline[id],
                   sizeof sum);
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
#define COUNTER(field)
#define SLAB_COUNTER(field) sink_stat_of(sink, prefix, #field, "%" PRIu64, sum.field);
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
}

static void
show_class_slabs(struct stats *st, unsigned id, uint32_t now, struct sink *sink)
{
    bool has_requested = !rules_of(st->settings->profile)->items_show_requested;
    struct store_class_stats c;
    char prefix[24];
    store_class_stats(st->shared->store, id, now, &c);
    if (c.total_pages == 0) {
        return;
    }
    snprintf(prefix, sizeof prefix, "%u:", id);
    sink_stat_of(sink, prefix, "chunk_size", "%u", c.chunk_size);
    sink_stat_of(sink, prefix, "chunks_per_page", "%u", c.chunks_per_page);
    sink_stat_of(sink, prefix, "total_pages", "%u", c.total_pages);
    sink_stat_of(sink, prefix, "total_chunks", "%" PRIu64, c.total_chunks);
    sink_stat_of(sink, prefix, "used_chunks", "%" PRIu64, c.used_chunks);
    sink_stat_of(sink, prefix, "free_chunks", "%" PRIu64, c.free_chunks);
    sink_stat_of(sink, prefix, "free_chunks_end", "0");
    if (has_requested) {
        sink_stat_of(sink, prefix, "mem_requested", "%" PRIu64, c.requested_bytes);
    }
    show_slab_counters(st, id, prefix, sink);
}

static enum reply
show_slabs(struct stats *st, const struct stats_query *ask)
{
    struct store *store = st->shared->store;
    unsigned first;
    unsigned end = classes_of_call(st, ask->place, &first);
    for (unsigned id = first; id < end; id++) {
        show_class_slabs(st, id, ask->now, ask->sink);
    }
    if (end <= store_class_count(store)) {
        return REPLY_NONE;
    }
    struct store_totals totals;
    store_totals(store, &totals);
    sink_statf(ask->sink, "active_slabs", "%u", totals.active_classes);
    sink_statf(ask->sink, "total_malloced", "%" PRIu64, totals.malloced_bytes);
    return REPLY_END;
}

static const struct stats_group groups[] = {
    {"items", show_items},
    {"slabs", show_slabs},
    {"sizes", show_sizes},
    {"sizes_enable", enable_sizes},
    {"sizes_disable", disable_sizes},
    {"detail", show_detail},
    {"cachedump", show_cachedump},
};

const struct front front_items = {GROUPS(groups)};
