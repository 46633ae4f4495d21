/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/keys.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/num.h"
#include "serve/prefix.h"
#include "serve/watch.h"

/* Told in one call. */
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
dump_detail(struct stats *st, struct serve_place *place, struct sink *sink)
{
    struct lines lines = {.len = 0};
    bool has_more = prefixes_tell(st->shared->prefixes, &place->at, PREFIXES_PER_CALL,
                                  add_prefix, &lines);
    sink_text(sink, "detailed", lines.bytes, lines.len, has_more);
    return has_more ? REPLY_NONE : REPLY_END;
}

enum reply
stats_detail(struct stats *st, const struct slice *words, unsigned count,
             struct serve_place *place, struct sink *sink)
{
    bool is_on = count > 0 && req_word_is(words[0], "on");
    if (st->settings->no_dump && rules_of(st->settings->profile)->no_dump_is_no_detail) {
        return REPLY_DETAIL_REFUSED;
    }
    if (count > 0 && req_word_is(words[0], "dump")) {
        return dump_detail(st, place, sink);
    }
    if (!is_on && (count == 0 || !req_word_is(words[0], "off"))) {
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
begin_cachedump(struct stats *st, const struct slice *words, unsigned count, uint32_t now,
                struct serve_place *place)
{
    uint32_t class_id;
    uint32_t limit;
    if (st->settings->no_dump) {
        return REPLY_CACHEDUMP_REFUSED;
    }
    if (count < 2) {
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
    place->ticket = store_dump_begin(st->shared->store, class_id, hot_first, limit, now);
    place->at = 1;
    return REPLY_NONE;
}

enum reply
stats_cachedump(struct stats *st, const struct slice *words, unsigned count, uint32_t now,
                struct serve_place *place, struct sink *sink)
{
    enum reply reply =
        place->at == 0 ? begin_cachedump(st, words, count, now, place) : REPLY_NONE;
    if (reply != REPLY_NONE) {
        return reply;
    }
    const struct rules *rules = rules_of(st->settings->profile);
    struct dump dump = {.place = place,
                        .sink = sink,
                        .hides_binary_keys = rules->cachedump_hides_binary_keys};
    return store_dump_step(st->shared->store, place->ticket, ITEMS_PER_CALL, now,
                           show_item, &dump)
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

enum reply
stats_sizes(struct stats *st, struct serve_place *place, struct sink *sink)
{
    struct store *store = st->shared->store;
    if (place->at == 0 && !store_is_tracking_sizes(store)) {
        sink_stat(sink, "sizes_status", "disabled");
        return REPLY_END;
    }
    return store_sizes_step(store, &place->at, SIZE_LOOKS_PER_CALL, show_size, sink)
               ? REPLY_NONE
               : REPLY_END;
}

enum reply
stats_switch_sizes(struct stats *st, bool is_on, struct sink *sink)
{
    if (!rules_of(st->settings->profile)->has_sizes_switch) {
        return REPLY_ERROR;
    }
    if (store_track_sizes(st->shared->store, is_on)) {
        sink_stat(sink, "sizes_status", is_on ? "enabled" : "disabled");
    } else {
        sink_stat(sink, "sizes_status", "error");
        sink_stat(sink, "sizes_error",
                  st->settings->no_cas ? "cas_support_disabled" : "out_of_memory");
    }
    sink->is_complete = true;
    return REPLY_NONE;
}
