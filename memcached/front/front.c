/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/front.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/hist.h"
#include "front/brief.h"

#define ROWS_MAX 192
#define LINE_MAX_BYTES 512
#define HELP_COLUMN 46 /* width of the usages that "qos help" shows */

/* Rows of one section of the help, sub-commands of "qos" and lines of "stats qos" are in this
 * order, and fronts settle in it. */
static const struct front *const fronts[] = {
    &front_server,  &front_limit,   &front_slo,    &front_headroom, &front_threads,
    &front_network, &front_steer,   &front_memory, &front_lru,      &front_items,
    &front_auth,    &front_tls,     &front_pin,    &front_class,    &front_class_memory,
    &front_fair,    &front_latency, &front_udp,    &front_process,  &front_config,
    &front_doctor,  &front_admin,   &front_compat,
};

#define FRONTS (sizeof fronts / sizeof fronts[0])
static_assert(FRONTS <= SETTINGS_FRONTS_MAX, "struct settings has a state for each");

const struct front *
front_at(unsigned n)
{
    return n < FRONTS ? fronts[n] : NULL;
}

static unsigned
place_of(const struct front *front)
{
    unsigned i = 0;
    while (fronts[i] != front) {
        must(++i < FRONTS);
    }
    return i;
}

void *
front_state(const struct settings *s, const struct front *front)
{
    return s->state[place_of(front)];
}

/* ---- options -------------------------------------------------------------------------- */

static const struct opt_section sections[] = {
    [NETWORK] = {"network", "Network"},
    [MEMORY] = {"memory", "Memory"},
    [LRU] = {"lru", "LRU and expiry"},
    [THREADS] = {"threads", "Threads and placement"},
    [QOS] = {"qos", "Quality of service"},
    [AUTH] = {"tls", "TLS and authentication"},
    [COMMANDS] = {"commands", "Commands and statistics"},
    [PROCESS] = {"process", "Process and help"},
    [COMPAT] = {"compat", "Compatibility"},
};
#define SECTIONS (sizeof sections / sizeof sections[0])

static bool
is_called(const struct opt *row, const char *name)
{
    return (row->name != NULL && strcmp(row->name, name) == 0) ||
           (row->word != NULL && strcmp(row->word, name) == 0);
}

static size_t
add_option(struct opt *all, size_t count, const struct opt *row,
           const struct front *front)
{
    size_t at = count;
    must(count < ROWS_MAX);
    if (row->after != NULL) {
        for (at = 0; !is_called(&all[at], row->after); at++) {
            must(at + 1 < count);
        }
        at++;
        memmove(&all[at + 1], &all[at], (count - at) * sizeof *all);
    }
    all[at] = *row;
    all[at].exit_status = row->exit_status != 0 ? row->exit_status : front->usage;
    if (front->missing != NULL) {
        all[at].kind = OPT_REFUSE;
        all[at].error = front->missing;
        all[at].help = all[at].preset = NULL;
    }
    return count + 1;
}

/* has_place: those that say which row they follow, which must be there by then. */
static size_t
add_section(struct opt *all, size_t count, unsigned section, bool has_place)
{
    for (size_t i = 0; i < FRONTS; i++) {
        for (size_t k = 0; k < fronts[i]->option_count; k++) {
            const struct opt *row = &fronts[i]->options[k];
            if (row->section == section && (row->after != NULL) == has_place) {
                count = add_option(all, count, row, fronts[i]);
            }
        }
    }
    return count;
}

/* Long names of 1.6, which takes abbreviations. */
/* clang-format off */
static const char *const elders[] = {
    "unix-mask", "enable-shutdown", "enable-ssl", "port", "unix-socket", "udp-port",
    "memory-limit", "disable-evictions", "conn-limit", "lock-memory", "help", "license",
    "version", "enable-coredumps", "verbose", "daemon", "listen", "user", "pidfile",
    "slab-growth-factor", "slab-min-size", "threads", "enable-largepages",
    "max-reqs-per-event", "disable-cas", "listen-backlog", "protocol", "max-item-size",
    "enable-sasl", "disable-flush-all", "disable-dumping", "disable-watch", "auth-file",
    "memory-file", "extended", "napi-ids", NULL,
};
/* clang-format on */

struct opt_table
front_options(enum profile profile)
{
    static struct opt all[ROWS_MAX];
    size_t count = 0;
    for (unsigned s = 0; s < SECTIONS; s++) {
        count = add_section(all, count, s, false);
        count = add_section(all, count, s, true);
    }
    return (struct opt_table){.rows = all,
                              .count = count,
                              .program = "memcached",
                              .tells_words_on_stdout = true,
                              .tells_as_getopt = !rules_of(profile)->starts_its_own_way,
                              .skips_operands = true,
                              .elders = elders,
                              .sections = sections,
                              .section_count = SECTIONS,
                              .old_version = "1.4"};
}

const char *
front_say(const char *fmt, ...)
{
    static char sentence[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    return sentence;
}

const char *
front_blame(const char *option, const char *error)
{
    return error != NULL ? front_say("%s: %s", option, error) : NULL;
}

/* ---- "qos" ---------------------------------------------------------------------------- */

/* All sub-commands in the order of the help; how many they are. */
static size_t
collect(const struct qos_row *all[ROWS_MAX])
{
    size_t count = 0;
    for (unsigned has_place = 0; has_place < 2; has_place++) {
        for (size_t i = 0; i < FRONTS; i++) {
            for (size_t k = 0; k < fronts[i]->command_count; k++) {
                const struct qos_row *row = &fronts[i]->commands[k];
                if ((row->after != NULL) != has_place) {
                    continue;
                }
                size_t at = count++;
                must(count <= ROWS_MAX);
                while (has_place && strcmp(all[at - 1]->word, row->after) != 0) {
                    must(at > 1);
                    all[at] = all[at - 1];
                    at--;
                }
                all[at] = row;
            }
        }
    }
    return count;
}

static const struct qos_row *
find_row(struct slice word)
{
    const struct qos_row *all[ROWS_MAX];
    size_t count = collect(all);
    for (size_t i = 0; i < count; i++) {
        if (req_word_is(word, all[i]->word)) {
            return all[i];
        }
    }
    return NULL;
}

enum reply
front_refuse(struct serve_qos *q, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    char line[LINE_MAX_BYTES + 32];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(line, sizeof line, "CLIENT_ERROR %s\r\n", text);
    sink_text(q->sink, "", line, strlen(line), false);
    q->sink->is_complete = true;
    return REPLY_NONE;
}

enum reply
front_refuse_control(const struct stats *st, struct serve_qos *q)
{
    if (q->is_datagram) {
        return front_refuse(q, "not over UDP: use TCP or a UNIX socket");
    }
    bool is_local_refused = st->settings->listen.control == LISTEN_CONTROL_MARKED;
    return front_refuse(q,
                        "not from this connection: use %sa listener with ;control (see "
                        "--control)",
                        is_local_refused ? "" : "a UNIX socket, loopback or ");
}

/* Of one sub-command; without a row the words that there are. */
static enum reply
refuse_usage(struct serve_qos *q, const struct qos_row *row)
{
    if (row != NULL) {
        return front_refuse(q, "usage: qos %s%s%s", row->word, *row->arguments ? " " : "",
                            row->arguments);
    }
    const struct qos_row *all[ROWS_MAX];
    size_t count = collect(all);
    char words[LINE_MAX_BYTES];
    struct phrase t = {words, sizeof words, 0};
    for (size_t i = 0; i < count; i++) {
        phrase_add(&t, "%s%s", i > 0 ? "|" : "", all[i]->word);
    }
    return front_refuse(q, "usage: qos %s ...", words);
}

static void
put_line(struct sink *sink, const char *text)
{
    char line[LINE_MAX_BYTES + 32];
    int len = snprintf(line, sizeof line, "%s\r\n", text);
    must(len > 0 && (size_t)len < sizeof line);
    sink_text(sink, "", line, (size_t)len, true);
}

static void
put_row(const struct qos_row *row, struct sink *sink)
{
    char usage[HELP_COLUMN * 2], line[LINE_MAX_BYTES];
    snprintf(usage, sizeof usage, "qos %s%s%s", row->word, *row->arguments ? " " : "",
             row->arguments);
    snprintf(line, sizeof line, "%-*s  %s", HELP_COLUMN, usage, row->meaning);
    put_line(sink, line);
}

enum reply
front_qos_help(struct stats *st, struct serve_qos *q)
{
    const struct qos_row *all[ROWS_MAX];
    size_t count = collect(all);
    (void)st;
    if (q->count > 0) {
        const struct qos_row *row = find_row(q->words[0]);
        if (row == NULL) {
            return refuse_usage(q, NULL);
        }
        put_row(row, q->sink);
        return REPLY_END;
    }
    for (size_t i = 0; i < count; i++) {
        put_row(all[i], q->sink);
    }
    return REPLY_END;
}

enum reply
front_qos(void *ctx, struct serve_qos *q)
{
    if (q->count == 0) {
        char lines[BRIEF_LINES][BRIEF_MAX];
        brief_settings(ctx, lines);
        for (unsigned i = 0; i < BRIEF_LINES; i++) {
            put_line(q->sink, lines[i]);
        }
        return front_qos_help(ctx, q);
    }
    const struct qos_row *row = find_row(q->words[0]);
    if (row == NULL) {
        return refuse_usage(q, NULL);
    }
    if (row->is_control && !q->may_control) {
        return front_refuse_control(ctx, q);
    }
    q->words++;
    q->count--;
    enum reply reply = REPLY_BAD_FORMAT;
    if (q->count >= row->least && q->count <= row->most) {
        reply = row->run(ctx, q);
    }
    return reply == REPLY_BAD_FORMAT ? refuse_usage(q, row) : reply;
}

/* ---- "stats" -------------------------------------------------------------------------- */

enum reply
front_stats(void *ctx, const struct slice *words, unsigned count, uint32_t now,
            struct serve_place *place, struct sink *sink)
{
    if (count == 0) {
        stats_show_general(ctx, now, sink);
        return REPLY_END;
    }
    struct stats_query ask = {words + 1, count - 1, now, place, sink};
    for (size_t i = 0; i < FRONTS; i++) {
        for (size_t k = 0; k < fronts[i]->group_count; k++) {
            if (req_word_is(words[0], fronts[i]->groups[k].name)) {
                return fronts[i]->groups[k].show(ctx, &ask);
            }
        }
    }
    return REPLY_ERROR;
}

enum reply
front_show_qos(struct stats *st, struct serve_place *place, struct sink *sink)
{
    while (place->at < FRONTS && fronts[place->at]->show == NULL) {
        place->at++;
    }
    if (place->at < FRONTS) {
        fronts[place->at++]->show(st, sink);
    }
    return place->at < FRONTS ? REPLY_NONE : REPLY_END;
}

uint64_t
front_sum(const struct stats *st, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        sum += ctr_get((const ctr_t *)((const char *)&st->workers[i] + offset));
    }
    return sum;
}

void
front_merge(const struct stats *st, size_t offset, struct hist *sum)
{
    for (unsigned i = 0; i < st->worker_count; i++) {
        const char *its = (const char *)&st->workers[i] + offset;
        hist_merge(sum, *(struct hist *const *)(const void *)its);
    }
}

void
front_put_counters(const struct stats *st, struct sink *sink,
                   const struct stats_counter *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sink_statf(sink, rows[i].name, "%" PRIu64, front_sum(st, rows[i].offset));
    }
}

const char *
front_name(const char *name, const char *suffix, char to[FRONT_NAME_MAX])
{
    snprintf(to, FRONT_NAME_MAX, "%s%s%s", name, *suffix != '\0' ? "_" : "", suffix);
    return to;
}

void
front_put_quantiles(struct sink *sink, const char *name, const struct hist *h)
{
    static const struct {
        const char *suffix;
        double q;
    } quantiles[] = {{"p50_us", 0.50}, {"p95_us", 0.95}, {"p99_us", 0.99}};
    char full[FRONT_NAME_MAX];
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        sink_statf(sink, front_name(name, quantiles[i].suffix, full), "%.1f",
                   front_us(hist_quantile(h, quantiles[i].q)));
    }
    sink_statf(sink, front_name(name, "max_us", full), "%.1f", front_us(hist_max(h)));
}
