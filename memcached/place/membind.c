/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/membind.h"

#include <stdint.h>

#include "base/num.h"
#include "place/topo.h"

static const char *const names[] = {
    [MEMBIND_DEFAULT] = "default",
    [MEMBIND_NONE] = "none",
    [MEMBIND_INTERLEAVE] = "interleave",
    [MEMBIND_LOCAL] = "local",
    [MEMBIND_NODE] = "node",
};

const char *
membind_parse(struct membind_spec *spec, const char *text)
{
    static const char node[] = "node:";
    uint32_t number;
    for (unsigned policy = MEMBIND_NONE; policy < MEMBIND_NODE; policy++) {
        if (strcmp(text, names[policy]) == 0) {
            *spec = (struct membind_spec){.policy = (enum membind_policy)policy};
            return NULL;
        }
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

void
membind_open(struct membind *m, const struct membind_spec *spec, bool is_pinned)
{
    enum topo_memory memory = spec->policy == MEMBIND_LOCAL  ? TOPO_MEMORY_LOCAL
                              : spec->policy == MEMBIND_NODE ? TOPO_MEMORY_NODE
                                                             : TOPO_MEMORY_INTERLEAVE;
    *m = (struct membind){.spec = *spec};
    bool is_default = spec->policy == MEMBIND_DEFAULT;
    if (spec->policy != MEMBIND_NONE && (!is_default || is_pinned)) {
        m->nodes = topo_nodes_open(memory, spec->node, m->why, sizeof m->why);
    }
    if (is_default) {
        m->why[0] = '\0'; /* nobody has asked */
        m->spec.policy = MEMBIND_INTERLEAVE;
        if (m->nodes != NULL && topo_nodes_count(m->nodes) == 1) {
            topo_nodes_close(&m->nodes);
        }
    }
    if (m->nodes == NULL) {
        m->spec.policy = MEMBIND_NONE;
    }
}

void
membind_close(struct membind *m)
{
    topo_nodes_close(&m->nodes);
}

void
membind_area(void *ctx, void *area, size_t bytes)
{
    struct membind *m = ctx;
    if (m->nodes == NULL) {
        return;
    }
    int error = topo_nodes_bind(m->nodes, area, bytes);
    if (error == 0) {
        atomic_fetch_add_explicit(&m->areas, 1, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(&m->errors, 1, memory_order_relaxed);
        atomic_store_explicit(&m->last_error, error, memory_order_relaxed);
    }
}
