/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define NAME_MAX_LEN 64
#define BLANKS " \t\n"
#define LEN(a) (sizeof(a) / sizeof(a)[0])

static const char *const shared[] = {
    "arrival-scope",
    "arrivals",
    "binary",
    "blocking",
    "churn",
    "connect-rate",
    "connections",
    "depth",
    "expiry",
    "flags",
    "getcount",
    "getq-freq",
    "getq-size",
    "hash",
    "iadist",
    "key-format",
    "key-prefix",
    "keyorder",
    "keysize",
    "late",
    "latency-from",
    "loadonly",
    "max-outstanding",
    "miss-ratio",
    "mode",
    "moderate",
    "no-nodelay",
    "noload",
    "numreqperconn",
    "on-miss",
    "one-hit",
    "ops",
    "popularity",
    "protocol",
    "qps",
    "qps-function",
    "reconnect",
    "records",
    "requests-per-connection",
    "schedule",
    "seed",
    "server",
    "session",
    "skip",
    "slo",
    "spin",
    "src-port",
    "think",
    "threads",
    "time",
    "timeout",
    "transport",
    "update",
    "value-size-per",
    "valuesize",
    "verify",
    "warmup",
    "workload",
};

/* Of the others, those that agents cannot do without: a run without them is another run. */
static const char *const files[] = {
    "auth-file", "servers-file", "tls-ca", "tls-cert", "tls-key", "trace",
};
static const char *const secrets[] = {"password", "username"};

/* What stands before names of files in values, wherever it stands in them. */
static const char *const file_values[] = {"file:", "cdf:", "gaps:", "times:", "trace:"};

static bool
is_among(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

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

static enum words_use
use_of_name(const char *name)
{
    if (is_among(shared, LEN(shared), name)) {
        return WORDS_SHARED;
    }
    if (is_among(files, LEN(files), name)) {
        return WORDS_FILE;
    }
    return is_among(secrets, LEN(secrets), name) ? WORDS_SECRET : WORDS_LOCAL;
}

/* The name of an option in a class: with or without dashes, up to its value. Returns where
 * the next one may stand. */
static const char *
take_name(const char *p, char name[NAME_MAX_LEN])
{
    size_t n = 0;
    p += strspn(p, BLANKS "{}-");
    for (; *p != '\0' && *p != '=' && *p != '}' && !isspace((unsigned char)*p); p++) {
        if (n + 1 < NAME_MAX_LEN) {
            name[n++] = *p == '_' ? '-' : *p;
        }
    }
    name[n] = '\0';
    return p + strcspn(p, BLANKS);
}

/* "NAME:{--connections=50 --getcount=50}": each of its options counts, a value that stands
 * for itself as well. A class cannot be left out, nor can a part of it. */
static enum words_use
use_of_class(const char *value)
{
    const char *p = value != NULL ? strchr(value, '{') : NULL;
    while (p != NULL && *p != '\0') {
        char name[NAME_MAX_LEN];
        p = take_name(p, name);
        enum words_use use = name[0] == '\0' ? WORDS_SHARED : use_of_name(name);
        if (use != WORDS_SHARED) {
            return use == WORDS_LOCAL ? WORDS_UNKNOWN : use;
        }
    }
    return p != NULL ? WORDS_SHARED : WORDS_UNKNOWN;
}

enum words_use
words_use_of(const char *name, const char *value)
{
    enum words_use use =
        strcmp(name, "class") == 0 ? use_of_class(value) : use_of_name(name);
    return use == WORDS_SHARED && names_a_file(value) ? WORDS_FILE : use;
}
