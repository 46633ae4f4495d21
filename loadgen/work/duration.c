/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/duration.h"

#include <string.h>

#include "base/num.h"

bool
duration_parse(const char *text, size_t len, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    size_t digits = len;
    double value;
    while (digits > 0 && strchr("umsh", text[digits - 1]) != NULL) {
        digits--;
    }
    if (!num_double(text, digits, &value) || value < 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].unit) == len - digits &&
            memcmp(units[i].unit, text + digits, len - digits) == 0) {
            *seconds = value * units[i].seconds;
            return true;
        }
    }
    return false;
}
