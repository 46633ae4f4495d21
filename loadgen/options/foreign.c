/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/group.h"

/* doc/mcload.1 has the same table. */
static const struct {
    const char *name;
    const char *same; /* the row that means exactly this; NULL: none */
    const char *hint; /* else what to write */
} words[] = {
    /* memtier_benchmark; --threads and --key-prefix are the same */
    {"clients", "connections", NULL},
    {"data-size", "valuesize", NULL},
    {"json-out-file", "json", NULL},
    {"pipeline", "depth", NULL},
    {"run-count", "repeat", NULL},
    {"test-time", "time", NULL},
    {"authenticate", NULL, "write --username and --password, or --auth-file"},
    {"data-size-list", NULL, "write --valuesize=discrete:SIZE=WEIGHT,..."},
    {"data-size-range", NULL, "write --valuesize=uniform:MIN,MAX"},
    {"expiry-range", NULL, "write --expiry=uniform:MIN,MAX"},
    {"hide-histogram", NULL, "only its percentiles are printed: leave it out"},
    {"key-maximum", NULL, "keys are numbered from 0 on: write --records=N"},
    {"key-pattern", NULL, "write --popularity=uniform, seq, normal or zipf:EXPONENT"},
    {"multi-key-get", NULL, "write --getcount=N"},
    {"port", NULL, "write --server=HOST:PORT"},
    {"rate-limiting", NULL, "write --qps=N, which is of all connections together"},
    {"requests", NULL, "write --time=SECONDS, or --until=n:N to end after N answers"},
    {"tls", NULL, "write --transport=tls"},
    {"unix-socket", NULL, "write --server=unix:PATH"},
    /* wrk, wrk2; its letters are others' here */
    {"duration", "time", NULL},
    {"rate", "qps", NULL},
    {"latency", NULL, "percentiles are always printed: leave it out"},
    {"script", NULL, "write --ops=VERB:SHARE,... or --workload=FILE"},
    /* as the long names of mutilate are often spelt */
    {"key-size", "keysize", NULL},
    {"value-size", "valuesize", NULL},
};

static const struct opt *
find(const struct opt *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].name != NULL && strcmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

size_t
foreign_add(struct opt *all, size_t count, size_t max)
{
    size_t rows = count;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct opt row = {.kind = OPT_REFUSE, .arg = "VALUE?", .error = words[i].hint};
        if (words[i].same != NULL) {
            const struct opt *same = find(all, rows, words[i].same);
            if (same == NULL) {
                continue;
            }
            row = *same;
        }
        must(count < max);
        row.name = words[i].name;
        row.letter = '\0';
        row.help = NULL;
        all[count++] = row;
    }
    return count;
}
