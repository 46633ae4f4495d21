/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/cost.h"

#include "base/clock.h"
#include "base/file.h"
#include "place/cpustat.h"

#define TEXT_MAX 128

/* Time on the CPU, time waited for one, slices; kernels without schedstats say 0. */
static double
waited(void)
{
    char text[TEXT_MAX];
    unsigned long long ran, wait;
    (void)!file_read_line("/proc/thread-self/schedstat", text, sizeof text);
    return sscanf(text, "%llu %llu", &ran, &wait) == 2 ? (double)wait / 1e9 : 0;
}

struct cost
cost_now(void)
{
    return (struct cost){.cpu_s = (double)clock_of_thread() / 1e9, .wait_s = waited()};
}

/* ---- steal ------------------------------------------------------------------------- */

#define EDGE_TICKS 2

bool
steal_parse(struct steal *s, const char *text, const cpu_set_t *set)
{
    bool found = false;
    *s = (struct steal){0, 0};
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        struct cpustat one;
        if (CPU_ISSET(cpu, set) && cpustat_parse(text, cpu, &one)) {
            s->stolen += one.stolen;
            s->all += one.all;
            found = true;
        }
    }
    return found;
}

/* False when the kernel does not say. */
static bool
now(struct steal *s, const cpu_set_t *set)
{
    char *text = NULL;
    size_t room = 0;
    FILE *f = fopen(CPUSTAT_PATH, "re");
    bool is_good =
        f != NULL && getdelim(&text, &room, '\0', f) > 0 && steal_parse(s, text, set);
    if (f != NULL) {
        fclose(f);
    }
    free(text);
    return is_good;
}

double
steal_share(const struct steal *before, const struct steal *after)
{
    uint64_t stolen = after->stolen - before->stolen, all = after->all - before->all;
    return after->stolen > before->stolen + EDGE_TICKS && after->all > before->all
               ? (double)(stolen - EDGE_TICKS) / (double)all
               : 0;
}

void
steal_begin(struct steal_watch *w)
{
    w->is_known = now(&w->from, &w->cpus);
    w->share = 0;
}

void
steal_end(struct steal_watch *w)
{
    struct steal after;
    w->is_known = w->is_known && now(&after, &w->cpus);
    w->share = w->is_known ? steal_share(&w->from, &after) : 0;
}
