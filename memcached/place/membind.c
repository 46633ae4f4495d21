/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/membind.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"
#include "base/part.h"
#include "place/topo.h"

#define WORD_BITS (8 * sizeof(unsigned long))

static const char *const names[] = {
    [MEMBIND_DEFAULT] = "default",
    [MEMBIND_NONE] = "none",
    [MEMBIND_INTERLEAVE] = "interleave",
    [MEMBIND_LOCAL] = "local",
    [MEMBIND_NODE] = "node",
};

const char *
membind_parse(void *to, const char *text)
{
    struct membind_spec *spec = to;
    static const char node[] = "node:";
    uint32_t number;
    unsigned policy = part_find(names, MEMBIND_NODE, text, strlen(text));
    if (policy > MEMBIND_DEFAULT && policy < MEMBIND_NODE) {
        *spec = (struct membind_spec){.policy = (enum membind_policy)policy};
        return NULL;
    }
    if (strncmp(text, node, sizeof node - 1) != 0 ||
        !num_u32(text + sizeof node - 1, strlen(text + sizeof node - 1), &number)) {
        return "membind must be interleave, local, node:K or none";
    }
    *spec = (struct membind_spec){.policy = MEMBIND_NODE, .node = number};
    return NULL;
}

const char *
membind_name(const struct membind_spec *spec)
{
    static _Thread_local char text[32];
    if (spec->policy != MEMBIND_NODE) {
        return names[spec->policy];
    }
    snprintf(text, sizeof text, "node:%u", spec->node);
    return text;
}

/* The memory nodes that the process may use; returns how many, 0: the kernel does not tell. */
static unsigned
read_nodes(unsigned long nodes[MEMBIND_WORDS])
{
    static const char key[] = "Mems_allowed_list:";
    int numbers[CPUMASK_CPUS];
    unsigned listed, count = 0;
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && count == 0 && getline(&line, &room, file) > 0) {
        const char *list = line + sizeof key - 1;
        if (strncmp(line, key, sizeof key - 1) != 0) {
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        if (topo_parse_list(list + strspn(list, " \t"), numbers, &listed) != NULL) {
            break;
        }
        while (count < listed && (unsigned)numbers[count] < MEMBIND_NODES) {
            unsigned node = (unsigned)numbers[count++];
            nodes[node / WORD_BITS] |= 1UL << node % WORD_BITS;
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/* Leaves this one of the nodes. False: it is not among them. */
static bool
choose_node(unsigned long nodes[MEMBIND_WORDS], unsigned node)
{
    if (node >= MEMBIND_NODES) {
        return false;
    }
    unsigned long bit = 1UL << node % WORD_BITS;
    bool is_there = (nodes[node / WORD_BITS] & bit) != 0;
    memset(nodes, 0, MEMBIND_WORDS * sizeof nodes[0]);
    nodes[node / WORD_BITS] = bit;
    return is_there;
}

void
membind_open(struct membind *m, const struct membind_spec *spec, bool is_pinned)
{
    bool is_default = spec->policy == MEMBIND_DEFAULT;
    *m = (struct membind){.spec = *spec};
    if (is_default) {
        m->spec.policy = is_pinned ? MEMBIND_INTERLEAVE : MEMBIND_NONE;
    }
    if (m->spec.policy == MEMBIND_NONE) {
        return;
    }
    unsigned count = read_nodes(m->nodes);
    if (is_default ? count < 2 : count == 0) {
        m->spec.policy = MEMBIND_NONE;
        snprintf(m->why, sizeof m->why, "%s",
                 is_default ? "" : "the kernel does not tell the memory nodes");
    } else if (m->spec.policy == MEMBIND_NODE && !choose_node(m->nodes, spec->node)) {
        m->spec.policy = MEMBIND_NONE;
        snprintf(m->why, sizeof m->why,
                 "there is no memory node %u, or it is not allowed", spec->node);
    }
}

void
membind_area(void *ctx, void *area, size_t bytes)
{
    static const int modes[] = {
        [MEMBIND_INTERLEAVE] = MPOL_INTERLEAVE,
        [MEMBIND_LOCAL] = MPOL_LOCAL,
        [MEMBIND_NODE] = MPOL_PREFERRED,
    };
    struct membind *m = ctx;
    if (m->spec.policy == MEMBIND_NONE) {
        return;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)area & ~(page - 1), end = (uintptr_t)area + bytes;
    bool has_nodes = m->spec.policy != MEMBIND_LOCAL;
    bool is_bound =
        syscall(SYS_mbind, first, end - first, modes[m->spec.policy],
                has_nodes ? m->nodes : NULL, has_nodes ? MEMBIND_NODES + 1 : 0, 0) == 0;
    atomic_fetch_add_explicit(is_bound ? &m->areas : &m->errors, 1, memory_order_relaxed);
}
