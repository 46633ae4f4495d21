/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/value.h"

#include <stdio.h>
#include <string.h>

#include "loadgen/work/dist.h"
#include "loadgen/work/duration.h"

#define ADDRESS_MAX 512

unsigned
value_find(const char *text, const char *const *names, unsigned count)
{
    unsigned i = 0;
    while (i < count && strcmp(text, names[i]) != 0) {
        i++;
    }
    return i;
}

const char *
value_time(const char *text, double min, double *seconds, const char *wrong)
{
    return duration_parse(text, strlen(text), seconds) && *seconds >= min &&
                   *seconds <= VALUE_TIME_MAX_S
               ? NULL
               : wrong;
}

const char *
value_addresses(void *conf, const char *text,
                const char *(*keep)(void *conf, const char *one))
{
    char one[ADDRESS_MAX];
    const char *wrong = NULL;
    if (strncmp(text, "unix:", strlen("unix:")) == 0 || text[0] == '/') {
        return keep(conf, text);
    }
    for (const char *p = text; wrong == NULL; p++) {
        size_t len = strcspn(p, ",");
        if (len >= sizeof one) {
            return "address too long";
        }
        snprintf(one, sizeof one, "%.*s", (int)len, p);
        wrong = keep(conf, one);
        p += len;
        if (*p == '\0') {
            break;
        }
    }
    return wrong;
}

const char *
value_seconds(struct dist *d, const char *text)
{
    double seconds;
    dist_fini(d);
    if (duration_parse(text, strlen(text), &seconds)) {
        *d = dist_fixed(seconds);
        return NULL;
    }
    return dist_parse(d, text);
}
