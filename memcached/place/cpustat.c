/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/cpustat.h"

#include "base/num.h"

/* The columns of a CPU's line. Guests are counted in user and nice, too. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

bool
cpustat_parse(const char *text, int cpu, struct cpustat *stat)
{
    char name[24];
    int len = cpu < 0 ? snprintf(name, sizeof name, "cpu  ")
                      : snprintf(name, sizeof name, "cpu%d ", cpu);
    const char *line = text;
    uint64_t columns[COLUMNS];
    while (line != NULL && strncmp(line, name, (size_t)len) != 0) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    if (line == NULL) {
        return false;
    }
    const char *at = line + len;
    struct cpustat sum = {0};
    for (unsigned i = 0; i < COLUMNS; i++) {
        size_t digits = strspn(at, "0123456789");
        if (!num_u64(at, digits, &columns[i])) {
            return false;
        }
        at += digits;
        at += *at == ' ';
        sum.all += columns[i];
    }
    sum.busy = columns[USER] + columns[NICE] + columns[SYSTEM];
    sum.stolen = columns[STEAL];
    *stat = sum;
    return true;
}
