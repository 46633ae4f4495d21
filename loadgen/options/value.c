/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/group.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/part.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/form.h"

#define ADDRESS_MAX 512
#define SPAN_MIN_S 0.001

const char *
value_time(const char *text, double min, double *seconds, const char *wrong)
{
    return duration_parse(text, strlen(text), seconds) && *seconds >= min &&
                   *seconds <= VALUE_TIME_MAX_S
               ? NULL
               : wrong;
}

const char *
value_file(const char *path, size_t max, const char *too_long, char **text, size_t *len)
{
    *text = NULL;
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return strerror(errno);
    }
    *text = alloc_bytes(max + 1);
    *len = fread(*text, 1, max + 1, f);
    const char *wrong = ferror(f) ? strerror(errno) : *len > max ? too_long : NULL;
    fclose(f);
    if (wrong != NULL) {
        free(*text);
        *text = NULL;
        return wrong;
    }
    (*text)[*len] = '\0';
    return NULL;
}

const char *
value_addresses(void *conf, const char *text,
                const char *(*keep)(void *conf, const char *one))
{
    char one[ADDRESS_MAX];
    const char *wrong = NULL;
    if (part_after(text, "unix:") != NULL || text[0] == '/') {
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
value_span(void *field, const char *text)
{
    return value_time(text, SPAN_MIN_S, field,
                      "a time must be above 0, and at most 1000000 s");
}

const char *
value_pause(void *field, const char *text)
{
    return value_time(text, 0, field, "a time, 0 or more");
}

const char *
value_dist(void *field, const char *text)
{
    dist_fini(field);
    return dist_parse(field, text);
}

const char *
value_seconds(void *field, const char *text)
{
    double seconds;
    if (!duration_parse(text, strlen(text), &seconds)) {
        return value_dist(field, text);
    }
    dist_fini(field);
    *(struct dist *)field = dist_fixed(seconds);
    return NULL;
}
