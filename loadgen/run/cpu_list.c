/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/cpu_list.h"

#include "base/alloc.h"

#define NODES_MAX 1024
#define PATH_MAX_LEN 4096

/* "0-3,8,10-11" as far as it is one: those that are allowed too. */
static void
add_cpus(FILE *f, const cpu_set_t *allowed, cpu_set_t *cpus)
{
    int first, last;
    char next;
    while (fscanf(f, "%d", &first) == 1) {
        last = first;
        next = (char)fgetc(f);
        if (next == '-' && fscanf(f, "%d", &last) == 1) {
            next = (char)fgetc(f);
        }
        for (int cpu = first; cpu >= 0 && cpu <= last && cpu < CPU_SETSIZE; cpu++) {
            if (CPU_ISSET(cpu, allowed)) {
                CPU_SET(cpu, cpus);
            }
        }
        if (next != ',') {
            return;
        }
    }
}

static bool
read_node(const char *nodes, int node, const cpu_set_t *allowed, cpu_set_t *cpus)
{
    char path[PATH_MAX_LEN];
    CPU_ZERO(cpus);
    snprintf(path, sizeof path, "%s/node%d/cpulist", nodes, node);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    add_cpus(f, allowed, cpus);
    fclose(f);
    return true;
}

/* Takes the first CPU out of the set; -1: there is none. */
static int
take_cpu(cpu_set_t *cpus)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, cpus)) {
            CPU_CLR(cpu, cpus);
            return cpu;
        }
    }
    return -1;
}

/* Deals out the CPUs of the sets in turn. */
static const char *
deal(cpu_set_t *sets, unsigned count, char *text, size_t len)
{
    size_t n = (size_t)snprintf(text, len, "list:");
    const char *comma = "";
    for (bool is_over = false; !is_over && n < len;) {
        is_over = true;
        for (unsigned i = 0; i < count && n < len; i++) {
            int cpu = take_cpu(&sets[i]);
            if (cpu >= 0) {
                n += (size_t)snprintf(text + n, len - n, "%s%d", comma, cpu);
                comma = ",";
                is_over = false;
            }
        }
    }
    if (comma[0] == '\0') {
        return "there is no such memory node, or none of its CPUs may be used";
    }
    return n < len ? NULL : "too many CPUs";
}

const char *
cpu_list_of_nodes(const char *nodes, int numa, const cpu_set_t *allowed, char *text,
                  size_t len)
{
    cpu_set_t *sets = alloc_zeroed(NODES_MAX + 1, sizeof *sets);
    unsigned count = 0;
    if (numa >= 0) {
        count = read_node(nodes, numa, allowed, &sets[0]) ? 1 : 0;
    }
    for (int node = 0; numa == CPU_LIST_AUTO && node < NODES_MAX; node++) {
        count += read_node(nodes, node, allowed, &sets[count]) ? 1 : 0;
    }
    if (count == 0 && numa < 0) {
        sets[count++] = *allowed;
    }
    const char *wrong = deal(sets, count, text, len);
    free(sets);
    return wrong;
}

const char *
cpu_list_wanted(const struct options *o, char *text, size_t len)
{
    cpu_set_t allowed;
    text[0] = '\0';
    if (o->cpus != NULL) {
        return (size_t)snprintf(text, len, "list:%s", o->cpus) < len ? NULL
                                                                     : "too many CPUs";
    }
    if (!o->has_affinity && !o->has_numa) {
        return NULL;
    }
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0
               ? cpu_list_of_nodes(CPU_LIST_NODES, o->has_numa ? o->numa : CPU_LIST_ANY,
                                   &allowed, text, len)
               : "cannot tell which CPUs may be used";
}
