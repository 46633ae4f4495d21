/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Commands that are allowed, the live log, and statistics of the server as a whole.
 */
#include <inttypes.h>

#include "base/log.h"
#include "config.h"
#include "front/front.h"
#include "serve/prefix.h"

/* Also begins to count. */
static const char *
set_prefix_delimiter(void *conf, const char *text)
{
    struct settings *s = conf;
    if (*text == '\0') {
        return "No delimiter specified";
    }
    s->prefix_delimiter = *text;
    s->counts_prefixes = true;
    return NULL;
}

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'A', .name = "enable-shutdown", .kind = OPT_FLAG, OF(serve.allows_shutdown),
     .section = COMMANDS, .help = "allow the command shutdown"},
    {.letter = 'D', SET(set_prefix_delimiter), .arg = "C", .section = COMMANDS,
     .preset_help = ":",
     .help = "prefix delimiter of keys for stats detail, and count by prefix"},
    {.letter = 'F', .name = "disable-flush-all", .kind = OPT_OFF, OF(serve.allows_flush),
     .section = COMMANDS, .help = "refuse flush_all"},
    {.letter = 'X', .name = "disable-dumping", .kind = OPT_OFF, OF(serve.allows_dump),
     .section = COMMANDS,
     .help = "refuse stats cachedump, metadump, mgdump; except in 1.4 also stats detail"},
    {.word = "watcher_logbuf_size", .kind = OPT_INT, OF(watcher_log_bytes), .unit = 1024,
     .min = 1, .max = 1 << 20, .arg = "N", .section = COMMANDS, .preset = "256",
     .error = "could not parse argument to watcher_logbuf_size",
     .help = "output buffer of a watcher in kilobytes"},
    {.word = "worker_logbuf_size", .kind = OPT_INT, OF(worker_log_bytes), .unit = 1024,
     .min = 1, .max = 1 << 20, .arg = "N", .section = COMMANDS, .preset = "64",
     .error = "could not parse argument to worker_logbuf_size",
     .help = "log buffer of a thread in kilobytes"},
    {.word = "track_sizes", .kind = OPT_FLAG, OF(tracks_sizes), .section = COMMANDS,
     .help = "count items by size from the start, for stats sizes"},
    {.letter = 'W', .name = "disable-watch", .kind = OPT_OFF, OF(serve.allows_watch),
     .section = COMMANDS, .help = "refuse the command watch"},
    {.name = "debug-commands", .kind = OPT_FLAG, OF(serve.allows_debug),
     .section = COMMANDS,
     .help = "allow debugtime and debugitem, which move the clock and hold items (for tests)"},
};
/* clang-format on */

static void
init(struct settings *s)
{
    s->serve.rules = rules_of(s->profile);
    s->serve.version = settings_version(s);
    s->serve.allows_flush = s->serve.allows_dump = s->serve.allows_watch = true;
    s->prefix_delimiter = ':';
}

/* ---- "stats settings" ----------------------------------------------------------------- */

static const char *const protocols[] = {
    [BINDING_AUTO] = "auto-negotiate",
    [BINDING_ASCII] = "ascii",
    [BINDING_BINARY] = "binary",
};

static const char *
yes(bool is_so)
{
    return is_so ? "yes" : "no";
}

static const char *
text_or(const char *otherwise, const char *text)
{
    return text != NULL ? text : otherwise;
}

/* What commands change while the server runs. */
struct now {
    struct store_totals store;
    struct store_lru_conf lru;
    struct store_automove automove;
    struct maint_conf maint;
    unsigned udp_workers;
    bool has_detail, tracks_sizes;
};

static enum reply
show_settings(struct stats *st, const struct stats_query *ask)
{
    const struct settings *s = st->settings;
    struct store *store = st->shared->store;
    struct now now = {.lru = store_lru(store),
                      .automove = store_automove(store),
                      .maint = maint_conf(st->shared->serve->maint),
                      .udp_workers = st->shared->udp.workers,
                      .has_detail = prefixes_are_on(st->shared->prefixes),
                      .tracks_sizes = store_is_tracking_sizes(store)};
    const struct now *x = &now;
    store_totals(store, &now.store);
#define LINE_IF(condition, since, name, ...)                                             \
    if ((condition) && (since) <= s->profile) {                                          \
        sink_statf(ask->sink, name, __VA_ARGS__);                                        \
    }
#define TEXT_IF(condition, since, name, text)                                            \
    if ((condition) && (since) <= s->profile) {                                          \
        sink_stat(ask->sink, name, text);                                                \
    }
#define LINE(...) LINE_IF(true, __VA_ARGS__)
#define TEXT(...) TEXT_IF(true, __VA_ARGS__)
#include "front/stats_settings.def"
#undef LINE
#undef LINE_IF
#undef TEXT
#undef TEXT_IF
    return REPLY_END;
}

/* ---- other statistics ----------------------------------------------------------------- */

static enum reply
show_qos(struct stats *st, const struct stats_query *ask)
{
    return front_show_qos(st, ask->place, ask->sink);
}

/* It would be in the general ones. */
static enum reply
show_extstore(struct stats *st, const struct stats_query *ask)
{
    (void)ask;
    return st->settings->profile >= PROFILE_16 ? REPLY_END : REPLY_ERROR;
}

static enum reply
reset(struct stats *st, const struct stats_query *ask)
{
    (void)ask;
    stats_reset(st);
    return REPLY_RESET;
}

static const struct stats_group groups[] = {
    {"settings", show_settings},
    {"qos", show_qos},
    {"extstore", show_extstore},
    {"reset", reset},
};

static void
show(struct stats *st, struct sink *sink)
{
    (void)st;
    sink_stat(sink, "server", PACKAGE_NAME);
    sink_stat(sink, "server_version", PACKAGE_VERSION);
}

/* ---- commands ------------------------------------------------------------------------- */

static enum reply
run_show(struct stats *st, struct serve_qos *q)
{
    return front_show_qos(st, q->place, q->sink);
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "show", .arguments = "", .run = run_show,
     .meaning = "settings and statistics, as stats qos"},
    {.word = "help", .arguments = "[word]", .most = 1, .run = front_qos_help,
     .meaning = "this table, or one line of it", .after = "fair"},
};
/* clang-format on */

const struct front front_server = {OPTIONS(options), COMMANDS(commands), GROUPS(groups),
                                   .init = init, .show = show};
