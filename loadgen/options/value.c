/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/value.h"

#include <string.h>

#include "loadgen/work/duration.h"

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
