/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "stats_keys.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/num.h"
#include "serve/prefix.h"
#include "serve/watch.h"

#define PREFIXES_PER_CALL 128            /* told under one lock by "stats detail dump" */
#define CACHEDUMP_BYTES (2u << 20)       /* of lines; what does not fit is left out */
#define CACHEDUMP_FIRST_BYTES (64 << 10) /* taken at first */
#define SIZES_BUCKET_BYTES 32

/* Lines that are collected under a lock and told after it. */
struct lines {
    char *bytes;
    size_t len, capacity, max;
    bool has_failed; /* no memory */
};

/* False: no room, or no memory. */
static bool
add_line(struct lines *l, const char *line, size_t len)
{
    if (len > l->max - l->len) {
        return false;
    }
    if (len > l->capacity - l->len) {
        size_t capacity =
            l->capacity > 0 ? 2 * l->capacity : (size_t)CACHEDUMP_FIRST_BYTES;
        char *bytes = realloc(l->bytes, capacity);
        if (bytes == NULL) {
            l->has_failed = true;
            return false;
        }
        l->bytes = bytes;
        l->capacity = capacity;
    }
    memcpy(l->bytes + l->len, line, len);
    l->len += len;
    return true;
}

/* Gives the lines to the client and frees them. */
static void
tell_lines(struct lines *l, const char *name, struct sink *sink)
{
    sink->has_failed |= l->has_failed;
    sink_text(sink, name, l->len > 0 ? l->bytes : "", l->len);
    free(l->bytes);
}

/* ---- detail --------------------------------------------------------------------------- */

static void
add_prefix(void *ctx, const char *line, size_t len)
{
    (void)add_line(ctx, line, len);
}

static enum reply
dump_detail(struct stats *st, unsigned *cursor, struct sink *sink)
{
    struct lines lines = {.max = SIZE_MAX};
    bool has_more;
    do { /* every worker that counts waits for a piece */
        has_more = prefixes_tell(st->shared->prefixes, cursor, PREFIXES_PER_CALL,
                                 add_prefix, &lines);
    } while (has_more && !sink_takes_parts(sink));
    tell_lines(&lines, "detailed", sink);
    return has_more ? REPLY_NONE : REPLY_END;
}

enum reply
stats_detail(struct stats *st, const struct slice *words, unsigned count,
             unsigned *cursor, struct sink *sink)
{
    bool is_on = count > 0 && req_word_is(words[0], "on");
    if (st->settings->no_dump && rules_of(st->settings->profile)->no_dump_is_no_detail) {
        return REPLY_DETAIL_REFUSED;
    }
    if (count > 0 && req_word_is(words[0], "dump")) {
        return dump_detail(st, cursor, sink);
    }
    if (!is_on && (count == 0 || !req_word_is(words[0], "off"))) {
        return REPLY_BAD_DETAIL;
    }
    prefixes_set_on(st->shared->prefixes, is_on);
    watch_set_prefixes(st->shared->watch, is_on);
    return REPLY_OK;
}

/* ---- cachedump ------------------------------------------------------------------------ */

struct dump {
    struct lines lines;
    bool hides_binary_keys;
};

static bool
add_item(void *ctx, const struct item *item)
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
    return add_line(&dump->lines, line, (size_t)len);
}

enum reply
stats_cachedump(struct stats *st, const struct slice *words, unsigned count, uint32_t now,
                struct sink *sink)
{
    const struct rules *rules = rules_of(st->settings->profile);
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
    struct dump dump = {.lines = {.max = CACHEDUMP_BYTES},
                        .hides_binary_keys = rules->cachedump_hides_binary_keys};
    if (class_id > 0) {
        store_dump(st->shared->store, class_id, rules->cachedump_shows_hot, limit, now,
                   add_item, &dump);
    }
    tell_lines(&dump.lines, "cachedump", sink);
    return REPLY_END;
}

/* ---- sizes ---------------------------------------------------------------------------- */

enum reply
stats_sizes(struct stats *st, struct sink *sink)
{
    size_t buckets = 0;
    if (!store_is_tracking_sizes(st->shared->store)) {
        sink_stat(sink, "sizes_status", "disabled");
        return REPLY_END;
    }
    uint64_t *counts = store_sizes(st->shared->store, &buckets);
    sink->has_failed |= counts == NULL;
    for (size_t i = 0; counts != NULL && i < buckets; i++) {
        if (counts[i] > 0) {
            char name[NUM_U64_DIGITS + 1];
            snprintf(name, sizeof name, "%zu", (i + 1) * SIZES_BUCKET_BYTES);
            sink_statf(sink, name, "%" PRIu64, counts[i]);
        }
    }
    free(counts);
    return REPLY_END;
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
