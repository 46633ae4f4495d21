/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report_parts.h"

/* With these letters the table of latencies begins. */
#define TABLE_LETTERS "read"
#define TOLD_CPU (1U << STAT_CPU_USER | 1U << STAT_CPU_SYSTEM)

void
report_stats_text(const struct server_stats *s, FILE *out)
{
    if (s == NULL) {
        return;
    }
    struct server_change c = server_stats_change(s);
    if (c.servers == 0) {
        fputs(c.restarted > 0 ? "Server stats = left out: restarted or reset in the run\n"
                              : "Server stats = none came\n",
              out);
        return;
    }
    const struct {
        unsigned reported;
        const char *what, *unit;
        double value;
        int digits;
    } parts[] = {
        {TOLD_CPU, "CPU ", "% of a core", 100 * c.cpu, 1},
        {1U << STAT_EVICTIONS, "", " evictions",
         c.after[STAT_EVICTIONS] - c.before[STAT_EVICTIONS], 0},
        {1U << STAT_CONNECTIONS, "", " connections", c.after[STAT_CONNECTIONS], 0},
        {1U << STAT_ITEMS, "", " items", c.after[STAT_ITEMS], 0},
        {1U << STAT_BYTES, "", " MB", c.after[STAT_BYTES] / REPORT_MEGABYTE, 1},
    };
    const char *before = "Server stats = ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if ((c.reported & parts[i].reported) == parts[i].reported) {
            fprintf(out, "%s%s%.*f%s", before, parts[i].what, parts[i].digits,
                    parts[i].value, parts[i].unit);
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? "" : "Server stats = none that is known here", out);
    if (c.servers < s->servers) {
        fprintf(out, " (%u of %u servers", c.servers, s->servers);
        if (c.restarted > 0) {
            fprintf(out, "; restarted or reset: %u", c.restarted);
        }
        fputc(')', out);
    }
    fputc('\n', out);
}

static void
write_values(struct json *j, const double values[SERVER_STATS], unsigned reported)
{
    for (unsigned i = 0; i < SERVER_STATS; i++) {
        json_put(j, JSON_IF(server_stats_has(reported, i),
                            JSON(server_stat_names[i], values[i])));
    }
}

void
report_stats_json(const struct server_stats *s, const char *const *names, struct json *j)
{
    if (s == NULL) {
        json_put(j, JSON_NULL("server_stats"));
        return;
    }
    struct server_change c = server_stats_change(s);
    json_open(j, "server_stats", '{');
    json_put(j, JSON("servers", c.servers),
             JSON_IF(c.restarted > 0, JSON("restarted", c.restarted)));
    if (c.servers > 0) {
        json_put(j, JSON_IF((c.reported & TOLD_CPU) == TOLD_CPU, JSON("cpu", c.cpu)));
        json_open(j, "before", '{');
        write_values(j, c.before, c.reported);
        json_close(j, '}');
        json_open(j, "after", '{');
        write_values(j, c.after, c.reported);
        json_close(j, '}');
    }
    json_open(j, "series", '[');
    for (size_t i = 0; i < s->len; i++) {
        const struct server_sample *sample = &s->samples[i];
        json_open(j, NULL, '{');
        json_put(j, JSON("server", names[sample->server]), JSON("at", sample->at_s));
        write_values(j, sample->values, sample->reported);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

/* Bytes that are no text do not reach a terminal. */
void
report_fact(const char *server, const char *name, const char *value, FILE *out)
{
    const char *whose = server != NULL ? server : "", *gap = server != NULL ? " " : "";
    if (strstr(whose, TABLE_LETTERS) != NULL || strstr(name, TABLE_LETTERS) != NULL ||
        strstr(value, TABLE_LETTERS) != NULL) {
        return;
    }
    fprintf(out, "Env %s%s", whose, gap);
    const char *const parts[] = {name, " = ", value};
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (const char *p = parts[i]; *p != '\0'; p++) {
            fputc(*p >= ' ' && *p <= '~' ? *p : '?', out);
        }
    }
    fputc('\n', out);
}

void
report_settings_text(const struct server_settings *s, const char *const *names, FILE *out)
{
    for (unsigned i = 0; s != NULL && i < s->servers; i++) {
        const struct server_report *t = &s->reported[i];
        if (t->version != NULL) {
            report_fact(names[i], "version", t->version, out);
        }
        for (size_t k = 0; k < t->len; k++) {
            report_fact(names[i], t->settings[k].name, t->settings[k].value, out);
        }
    }
}

void
report_settings_json(const struct server_settings *s, const char *const *names,
                     struct json *j)
{
    if (!server_settings_are_known(s)) {
        return;
    }
    json_open(j, "settings", '[');
    for (unsigned i = 0; i < s->servers; i++) {
        const struct server_report *t = &s->reported[i];
        json_open(j, NULL, '{');
        json_put(j, JSON("server", names[i]),
                 JSON_IF(t->version != NULL, JSON("version", t->version)));
        json_open(j, "values", '{');
        for (size_t k = 0; k < t->len; k++) {
            json_put(j, JSON(t->settings[k].name, t->settings[k].value));
        }
        json_close(j, '}');
        json_close(j, '}');
    }
    json_close(j, ']');
}
