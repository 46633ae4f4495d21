/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/cpustat.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* The columns of a CPU's line. Guests are counted in user and nice, too. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

bool
cpustat_parse(const char *text, int cpu, uint64_t *ticks)
{
    char name[24];
    int len = snprintf(name, sizeof name, "\ncpu%d ", cpu);
    const char *line = strstr(text, name);
    uint64_t columns[COLUMNS];
    if (line == NULL) {
        return false;
    }
    const char *at = line + len;
    for (unsigned i = 0; i < COLUMNS; i++) {
        size_t digits = strspn(at, "0123456789");
        if (!num_u64(at, digits, &columns[i])) {
            return false;
        }
        at += digits;
        at += *at == ' ';
    }
    *ticks = columns[USER] + columns[NICE] + columns[SYSTEM] + columns[STEAL];
    return true;
}
