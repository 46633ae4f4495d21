/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/words.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/work/model.h"

#define NAME_MAX_LEN 64
#define VALUE_MAX_LEN 1024
#define BLANKS " \t\n"
#define LEN(a) (sizeof(a) / sizeof(a)[0])

/* Every option of the command line, sorted: one that is not here is refused by leaders and
 * agents alike. */
/* clang-format off */
static const struct words_option {
    const char *name; /* first: compare() */
    enum words_use use;
} options[] = {
    {"affinity", WORDS_HOST},
    {"agent", WORDS_LEADER},
    {"agent-allow", WORDS_AGENT},
    {"agent-allow-udp", WORDS_AGENT},
    {"agent-max-bandwidth", WORDS_AGENT},
    {"agent-max-conns", WORDS_AGENT},
    {"agent-max-qps", WORDS_AGENT},
    {"agent-max-time", WORDS_AGENT},
    {"agent-mode", WORDS_AGENT},
    {"agent-port", WORDS_LEADER},
    {"agent-traces", WORDS_AGENT},
    {"agentmode", WORDS_AGENT},
    {"antagonist", WORDS_SHARED},
    {"arrival-scope", WORDS_SHARED},
    {"arrivals", WORDS_SHARED},
    {"assert", WORDS_LEADER},
    {"auth-file", WORDS_HOST},
    {"binary", WORDS_SHARED},
    {"blocking", WORDS_SHARED},
    {"busy-poll", WORDS_HOST},
    {"by-size", WORDS_SHARED},
    {"check", WORDS_LEADER},
    {"churn", WORDS_SHARED},
    {"class", WORDS_SHARED},
    {"clients", WORDS_SHARED},
    {"connect-rate", WORDS_SHARED},
    {"connections", WORDS_SHARED},
    {"cpus", WORDS_HOST},
    {"data-size", WORDS_SHARED},
    {"depth", WORDS_SHARED},
    {"duration", WORDS_SHARED},
    {"engine", WORDS_HOST},
    {"env-report", WORDS_LEADER},
    {"expiry", WORDS_SHARED},
    {"flags", WORDS_SHARED},
    {"format", WORDS_LEADER},
    {"getcount", WORDS_SHARED},
    {"getq-freq", WORDS_SHARED},
    {"getq-size", WORDS_SHARED},
    {"hash", WORDS_SHARED},
    {"help", WORDS_LEADER},
    {"hgrm", WORDS_LEADER},
    {"hlog", WORDS_LEADER},
    {"iadist", WORDS_SHARED},
    {"insecure-agent", WORDS_AGENT},
    {"interval", WORDS_LEADER},
    {"json", WORDS_LEADER},
    {"json-out-file", WORDS_LEADER},
    {"key-file", WORDS_LEADER},
    {"key-format", WORDS_SHARED},
    {"key-prefix", WORDS_SHARED},
    {"key-size", WORDS_SHARED},
    {"keyorder", WORDS_SHARED},
    {"keysize", WORDS_SHARED},
    {"lambda-mul", WORDS_LEADER},
    {"late", WORDS_SHARED},
    {"latency-from", WORDS_SHARED},
    {"loadonly", WORDS_SHARED},
    {"max-outstanding", WORDS_SHARED},
    {"measure-connections", WORDS_MEASURE},
    {"measure-depth", WORDS_MEASURE},
    {"measure-qps", WORDS_MEASURE},
    {"miss-ratio", WORDS_SHARED},
    {"mode", WORDS_SHARED},
    {"moderate", WORDS_SHARED},
    {"no-nodelay", WORDS_SHARED},
    {"noload", WORDS_SHARED},
    {"numa", WORDS_HOST},
    {"numreqperconn", WORDS_SHARED},
    {"on-agent-loss", WORDS_LEADER},
    {"on-miss", WORDS_SHARED},
    {"one-hit", WORDS_SHARED},
    {"ops", WORDS_SHARED},
    {"output", WORDS_LEADER},
    {"password", WORDS_SECRET},
    {"percentiles", WORDS_LEADER},
    {"pipeline", WORDS_SHARED},
    {"plot", WORDS_LEADER},
    {"poll-freq", WORDS_LEADER},
    {"poll-max", WORDS_LEADER},
    {"popularity", WORDS_SHARED},
    {"progress", WORDS_LEADER},
    {"protocol", WORDS_SHARED},
    {"qps", WORDS_SHARED},
    {"qps-function", WORDS_SHARED},
    {"qps-warmup", WORDS_ALONE},
    {"quiet", WORDS_LEADER},
    {"rate", WORDS_SHARED},
    {"ratio", WORDS_SHARED},
    {"realtime", WORDS_HOST},
    {"reconnect", WORDS_SHARED},
    {"records", WORDS_SHARED},
    {"repeat", WORDS_LEADER},
    {"report-stats", WORDS_LEADER},
    {"requests-per-connection", WORDS_SHARED},
    {"roundrobin", WORDS_SHARED},
    {"run-count", WORDS_LEADER},
    {"sample", WORDS_ALONE},
    {"save", WORDS_ALONE},
    {"scan", WORDS_LEADER},
    {"scan-order", WORDS_LEADER},
    {"schedule", WORDS_SHARED},
    {"search", WORDS_LEADER},
    {"search-budget", WORDS_LEADER},
    {"search-tolerance", WORDS_LEADER},
    {"seed", WORDS_SHARED},
    {"server", WORDS_SHARED},
    {"server-stats", WORDS_OBSERVE},
    {"servers-file", WORDS_LEADER},
    {"session", WORDS_SHARED},
    {"skip", WORDS_SHARED},
    {"slo", WORDS_SHARED},
    {"spin", WORDS_SHARED},
    {"split", WORDS_LEADER},
    {"src-port", WORDS_HOST},
    {"stop-latency", WORDS_LEADER},
    {"test-time", WORDS_SHARED},
    {"think", WORDS_SHARED},
    {"threads", WORDS_SHARED},
    {"time", WORDS_SHARED},
    {"timeout", WORDS_SHARED},
    {"timestamps", WORDS_HOST},
    {"tls-ca", WORDS_HOST},
    {"tls-cert", WORDS_HOST},
    {"tls-key", WORDS_HOST},
    {"tls-verify", WORDS_HOST},
    {"trace", WORDS_SHARED},
    {"trace-bad", WORDS_SHARED},
    {"trace-format", WORDS_SHARED},
    {"trace-load", WORDS_SHARED},
    {"trace-order", WORDS_SHARED},
    {"trace-remap", WORDS_SHARED},
    {"trace-spread", WORDS_SHARED},
    {"trace-time", WORDS_SHARED},
    {"transport", WORDS_SHARED},
    {"until", WORDS_ALONE},
    {"update", WORDS_SHARED},
    {"username", WORDS_SECRET},
    {"value-size", WORDS_SHARED},
    {"value-size-per", WORDS_SHARED},
    {"valuesize", WORDS_SHARED},
    {"verbose", WORDS_LEADER},
    {"verify", WORDS_SHARED},
    {"version", WORDS_LEADER},
    {"wait", WORDS_LEADER},
    {"warmup", WORDS_SHARED},
    {"warmup-drain", WORDS_SHARED},
    {"workload", WORDS_SHARED},
};
/* clang-format on */

/* What stands before names of files in values, wherever it stands in them. A trace is named
 * as well, but looked for by the agent in its own directories of traces. */
static const char *const file_values[] = {"file:", "cdf:", "gaps:", "times:", "trace:"};

static bool
names_a_file(const char *value)
{
    for (size_t i = 0; value != NULL && i < LEN(file_values); i++) {
        if (strstr(value, file_values[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool
is_known_workload(const char *value)
{
    return value != NULL && (model_find(value) != NULL ||
                             strncmp(value, MODEL_TEXT, sizeof MODEL_TEXT - 1) == 0);
}

static int
compare(const void *name, const void *row)
{
    return strcmp(name, *(const char *const *)row);
}

static enum words_use
use_of_option(const char *name, const char *value)
{
    const struct words_option *o =
        bsearch(name, options, LEN(options), sizeof options[0], compare);
    if (o == NULL) {
        return WORDS_UNKNOWN;
    }
    /* A workload is one that the agent knows by its name, or its text. */
    bool is_file = names_a_file(value) ||
                   (strcmp(name, "workload") == 0 && !is_known_workload(value));
    return o->use == WORDS_SHARED && is_file ? WORDS_FILE : o->use;
}

/* An option in a class, with or without dashes: its name and its value. Returns where the
 * next one may stand. */
static const char *
take_option(const char *p, char name[NAME_MAX_LEN], char value[VALUE_MAX_LEN])
{
    size_t n = 0;
    p += strspn(p, BLANKS "{}-");
    for (; *p != '\0' && *p != '=' && *p != '}' && strchr(BLANKS, *p) == NULL; p++) {
        if (n + 1 < NAME_MAX_LEN) {
            name[n++] = *p == '_' ? '-' : *p;
        }
    }
    name[n] = '\0';
    p += *p == '=' ? 1 : 0;
    size_t len = strcspn(p, BLANKS), used = len;
    while (used > 0 && p[used - 1] == '}' && p[len] == '\0') {
        used--;
    }
    snprintf(value, VALUE_MAX_LEN, "%.*s", (int)used, p);
    return p + len;
}

/* "NAME:{--connections=50 --getcount=50}": each of its options counts, a value that stands
 * for itself as well. A class cannot be left out, nor can a part of it. */
static enum words_use
use_of_class(const char *class)
{
    const char *p = class != NULL ? strchr(class, '{') : NULL;
    while (p != NULL && *p != '\0') {
        char name[NAME_MAX_LEN], value[VALUE_MAX_LEN];
        p = take_option(p, name, value);
        enum words_use use = name[0] == '\0' ? WORDS_SHARED : use_of_option(name, value);
        if (use != WORDS_SHARED) {
            return use == WORDS_SECRET || use == WORDS_FILE ? use
                   : strcmp(name, "auth-file") == 0         ? WORDS_FILE
                                                            : WORDS_UNKNOWN;
        }
    }
    return p == NULL ? WORDS_UNKNOWN : WORDS_SHARED;
}

enum words_use
words_use_of(const char *name, const char *value)
{
    enum words_use use = use_of_option(name, value);
    return use == WORDS_SHARED && strcmp(name, "class") == 0 ? use_of_class(value) : use;
}
