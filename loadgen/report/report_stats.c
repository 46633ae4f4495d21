/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report_stats.h"

#include "loadgen/report/report.h"

void
report_stats_text(const struct server_stats *s, FILE *out)
{
    if (s == NULL) {
        return;
    }
    struct server_change c = server_stats_change(s);
    if (c.servers == 0) {
        fputs("Server stats = none came\n", out);
        return;
    }
    fprintf(out,
            "Server stats = CPU %.1f%% of a core, %.0f evictions, %.0f connections, %.0f "
            "items, %.1f MB",
            100 * c.cpu, c.after[STAT_EVICTIONS] - c.before[STAT_EVICTIONS],
            c.after[STAT_CONNECTIONS], c.after[STAT_ITEMS],
            c.after[STAT_BYTES] / REPORT_MEGABYTE);
    if (c.servers < s->servers) {
        fprintf(out, " (%u of %u servers)", c.servers, s->servers);
    }
    fputc('\n', out);
}

static void
write_values(struct json *j, const double values[SERVER_STATS])
{
    for (unsigned i = 0; i < SERVER_STATS; i++) {
        json_number(j, server_stat_name(i), values[i]);
    }
}

void
report_stats_json(const struct server_stats *s, const char *const *names, struct json *j)
{
    if (s == NULL) {
        json_nothing(j, "server_stats");
        return;
    }
    struct server_change c = server_stats_change(s);
    json_open(j, "server_stats", '{');
    json_u64(j, "servers", c.servers);
    if (c.servers > 0) {
        json_number(j, "cpu", c.cpu);
        json_open(j, "before", '{');
        write_values(j, c.before);
        json_close(j, '}');
        json_open(j, "after", '{');
        write_values(j, c.after);
        json_close(j, '}');
    }
    json_open(j, "series", '[');
    for (size_t i = 0; i < s->len; i++) {
        json_open(j, NULL, '{');
        json_text(j, "server", names[s->samples[i].server]);
        json_number(j, "at", s->samples[i].at_s);
        write_values(j, s->samples[i].values);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}
