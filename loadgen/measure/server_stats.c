/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/server_stats.h"

#include "base/alloc.h"
#include "base/num.h"
#include "base/part.h"

#define REPLY_END "END\r\n"
#define STAT "STAT "
#define TOLD_VERSION "VERSION "

const char *const server_stat_names[SERVER_STATS] = {
    [STAT_ITEMS] = "curr_items",
    [STAT_BYTES] = "bytes",
    [STAT_CONNECTIONS] = "curr_connections",
    [STAT_EVICTIONS] = "evictions",
    [STAT_GETS] = "cmd_get",
    [STAT_SETS] = "cmd_set",
    [STAT_HITS] = "get_hits",
    [STAT_MISSES] = "get_misses",
    [STAT_CPU_USER] = "rusage_user",
    [STAT_CPU_SYSTEM] = "rusage_system",
};

struct server_stats *
server_stats_create(unsigned servers)
{
    struct server_stats *s = alloc_zeroed(1, sizeof *s);
    s->servers = servers;
    return s;
}

void
server_stats_destroy(struct server_stats **s)
{
    if (*s != NULL) {
        free((*s)->samples);
        free(*s);
        *s = NULL;
    }
}

void
server_stats_add(struct server_stats *s, const struct server_sample *sample)
{
    must(sample->server < s->servers);
    s->samples = alloc_grown(s->samples, s->len, sizeof *s->samples);
    s->samples[s->len++] = *sample;
}

static bool
begins(const char *line, const char *end, const char *with)
{
    size_t len = strlen(with);
    return (size_t)(end - line) >= len && memcmp(line, with, len) == 0;
}

/* "STAT NAME VALUE", and its CR. */
static const char *
take_line(void *arg, const char *line, size_t len)
{
    struct server_sample *sample = arg;
    const char *end = line + len - (len > 0 ? 1 : 0);
    if (!begins(line, end, STAT)) {
        return NULL;
    }
    const char *name = line + strlen(STAT);
    const char *space = memchr(name, ' ', (size_t)(end - name));
    for (unsigned i = 0; space != NULL && i < SERVER_STATS; i++) {
        size_t name_len = strlen(server_stat_names[i]);
        double value;
        if ((size_t)(space - name) == name_len &&
            memcmp(name, server_stat_names[i], name_len) == 0 &&
            num_double(space + 1, (size_t)(end - space - 1), &value)) {
            sample->values[i] = value;
            sample->reported |= 1U << i;
        }
    }
    return NULL;
}

bool
server_sample_parse(struct server_sample *sample, const char *text, size_t len)
{
    size_t end_len = sizeof REPLY_END - 1;
    if (len < end_len || memcmp(text + len - end_len, REPLY_END, end_len) != 0 ||
        (len > end_len && text[len - end_len - 1] != '\n')) {
        return false;
    }
    memset(sample->values, 0, sizeof sample->values);
    sample->reported = 0;
    return part_each(text, len, '\n', take_line, sample) == NULL;
}

struct server_evictions
server_stats_evictions(const struct server_stats *s)
{
    struct server_evictions e = s->evictions;
    unsigned reported = 0;
    e.total = 0;
    for (unsigned server = 0; server < s->servers; server++) {
        const struct server_sample *last = NULL;
        for (size_t i = 0; i < s->len; i++) {
            last = s->samples[i].server == server ? &s->samples[i] : last;
        }
        if (last != NULL && last->at_s >= s->end_s &&
            server_stats_has(last->reported, STAT_EVICTIONS)) {
            reported++;
            e.total += last->values[STAT_EVICTIONS];
        }
    }
    e.is_known = reported == s->servers;
    return e;
}

#define BIT(stat) (1U << (stat))
#define COUNTERS                                                                         \
    (BIT(STAT_EVICTIONS) | BIT(STAT_GETS) | BIT(STAT_SETS) | BIT(STAT_HITS) |            \
     BIT(STAT_MISSES) | BIT(STAT_CPU_USER) | BIT(STAT_CPU_SYSTEM))

/* What only grows has become less. */
static bool
has_begun_anew(const struct server_sample *before, const struct server_sample *after)
{
    bool has = false;
    for (unsigned i = 0; i < SERVER_STATS; i++) {
        has =
            has || (server_stats_has(before->reported & after->reported & COUNTERS, i) &&
                    after->values[i] < before->values[i]);
    }
    return has;
}

struct server_change
server_stats_change(const struct server_stats *s)
{
    struct server_change change = {.servers = 0};
    for (unsigned server = 0; server < s->servers; server++) {
        const struct server_sample *first = NULL, *last = NULL;
        bool is_restarted = false;
        for (size_t i = 0; i < s->len; i++) {
            if (s->samples[i].server == server) {
                first = first == NULL ? &s->samples[i] : first;
                is_restarted = is_restarted ||
                               (last != NULL && has_begun_anew(last, &s->samples[i]));
                last = &s->samples[i];
            }
        }
        change.restarted += is_restarted ? 1 : 0;
        if (is_restarted || first == last || last->at_s <= first->at_s) {
            continue;
        }
        change.reported = (change.servers > 0 ? change.reported : SERVER_STATS_ALL) &
                          first->reported & last->reported;
        change.servers++;
        for (unsigned i = 0; i < SERVER_STATS; i++) {
            change.before[i] += first->values[i];
            change.after[i] += last->values[i];
        }
        double cpu_s = last->values[STAT_CPU_USER] - first->values[STAT_CPU_USER] +
                       last->values[STAT_CPU_SYSTEM] - first->values[STAT_CPU_SYSTEM];
        change.cpu += cpu_s / (last->at_s - first->at_s);
    }
    return change;
}

/* ---- settings ----------------------------------------------------------------------------- */

struct server_settings *
server_settings_create(unsigned servers)
{
    struct server_settings *s =
        alloc_zeroed(1, sizeof *s + servers * sizeof s->reported[0]);
    s->users = 1;
    s->servers = servers;
    return s;
}

struct server_settings *
server_settings_get(struct server_settings *s)
{
    if (s != NULL) {
        s->users++;
    }
    return s;
}

void
server_settings_release(struct server_settings **s)
{
    struct server_settings *all = *s;
    *s = NULL;
    if (all == NULL || --all->users > 0) {
        return;
    }
    for (unsigned i = 0; i < all->servers; i++) {
        free(all->reported[i].settings);
        free(all->reported[i].text);
    }
    free(all);
}

/* The version's line, those of settings, and one that is none of them: END, or an error. */
static bool
is_whole(const char *text, size_t len, size_t *lines)
{
    const char *end = text + len, *line = text, *newline;
    *lines = 0;
    while (line < end && (newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        if (line != text && !begins(line, end, STAT)) {
            return true;
        }
        line = newline + 1;
        ++*lines;
    }
    return false;
}

/* Ends it where the line ends; the next one. */
static char *
cut(char *line)
{
    char *end = strchr(line, '\n');
    must(end != NULL);
    *end = '\0';
    if (end > line && end[-1] == '\r') {
        end[-1] = '\0';
    }
    return end + 1;
}

bool
server_settings_take(struct server_settings *s, unsigned server, const char *text,
                     size_t len)
{
    size_t lines;
    must(server < s->servers && s->reported[server].text == NULL);
    if (!is_whole(text, len, &lines)) {
        return false;
    }
    if (memchr(text, '\0', len) != NULL) {
        return true;
    }
    struct server_report *t = &s->reported[server];
    char *line = alloc_checked(strndup(text, len));
    struct server_setting *settings = alloc_zeroed(lines, sizeof *settings);
    *t = (struct server_report){.settings = settings, .text = line};
    char *next = cut(line);
    t->version = part_after(line, TOLD_VERSION);
    while (--lines > 0) {
        line = next;
        next = cut(line);
        char *name = line + sizeof STAT - 1, *space = strchr(name, ' ');
        if (space != NULL) {
            *space = '\0';
            settings[t->len++] = (struct server_setting){name, space + 1};
        }
    }
    return true;
}

bool
server_settings_are_known(const struct server_settings *s)
{
    for (unsigned i = 0; s != NULL && i < s->servers; i++) {
        if (s->reported[i].version != NULL || s->reported[i].len > 0) {
            return true;
        }
    }
    return false;
}
