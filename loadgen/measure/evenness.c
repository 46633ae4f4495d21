/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/evenness.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/measure/counters.h"

static void
destroy_hists(struct hist **all, unsigned count)
{
    for (unsigned i = 0; all != NULL && i < count; i++) {
        hist_destroy(&all[i]);
    }
    free(all);
}

static struct hist **
create_hists(unsigned count)
{
    struct hist **all = calloc(count, sizeof(struct hist *));
    for (unsigned i = 0; all != NULL && i < count; i++) {
        all[i] = hist_create(EVENNESS_SUB_BITS, COUNTERS_MAX_NS);
        if (all[i] == NULL) {
            destroy_hists(all, count);
            return NULL;
        }
    }
    return all;
}

bool
evenness_log_init(struct evenness_log *l, unsigned conns)
{
    *l = (struct evenness_log){.len = conns < EVENNESS_CONNS_MAX ? conns
                                                                 : EVENNESS_CONNS_MAX};
    l->conns = create_hists(l->len);
    l->server = calloc(l->len, sizeof *l->server);
    if (l->conns == NULL || l->server == NULL) {
        evenness_log_fini(l);
        return false;
    }
    return true;
}

void
evenness_log_fini(struct evenness_log *l)
{
    destroy_hists(l->conns, l->len);
    free(l->server);
    *l = (struct evenness_log){0};
}

void
evenness_log_reset(struct evenness_log *l)
{
    for (unsigned i = 0; i < l->len; i++) {
        hist_reset(l->conns[i]);
    }
}

struct evenness *
evenness_create(unsigned servers)
{
    struct evenness *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->servers_len = servers;
        s->servers = create_hists(servers);
        if (s->servers == NULL) {
            evenness_destroy(&s);
        }
    }
    return s;
}

void
evenness_destroy(struct evenness **evenness)
{
    struct evenness *s = *evenness;
    if (s != NULL) {
        destroy_hists(s->servers, s->servers_len);
        free(s->conns);
        free(s);
        *evenness = NULL;
    }
}

static bool
make_room(struct evenness *s, unsigned more)
{
    unsigned room = s->conns_len + more;
    if (room <= s->conns_room) {
        return true;
    }
    struct evenness_conn *grown = reallocarray(s->conns, room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    s->conns = grown;
    s->conns_room = room;
    return true;
}

bool
evenness_add(struct evenness *s, const struct evenness_log *l)
{
    if (!make_room(s, l->len)) {
        return false;
    }
    for (unsigned i = 0; i < l->len; i++) {
        const struct hist *h = l->conns[i];
        must(l->server[i] < s->servers_len);
        if (hist_count(h) > 0) {
            hist_merge(s->servers[l->server[i]], h);
            s->conns[s->conns_len++] = (struct evenness_conn){
                {hist_count(h), hist_quantile(h, .50), hist_quantile(h, .99)}};
        }
    }
    return true;
}

bool
evenness_merge(struct evenness *s, const struct evenness *from)
{
    must(s->servers_len == from->servers_len);
    if (!make_room(s, from->conns_len)) {
        return false;
    }
    if (from->conns_len > 0) {
        memcpy(s->conns + s->conns_len, from->conns, from->conns_len * sizeof *s->conns);
    }
    s->conns_len += from->conns_len;
    for (unsigned i = 0; i < s->servers_len; i++) {
        hist_merge(s->servers[i], from->servers[i]);
    }
    return true;
}

static int
by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct evenness_range
evenness_range(const struct evenness *s, enum evenness_of what)
{
    uint64_t *values = calloc(s->conns_len, sizeof *values);
    if (s->conns_len == 0 || values == NULL) {
        free(values);
        return (struct evenness_range){0};
    }
    for (unsigned i = 0; i < s->conns_len; i++) {
        values[i] = s->conns[i].value[what];
    }
    qsort(values, s->conns_len, sizeof *values, by_size);
    struct evenness_range range = {values[0], values[(s->conns_len - 1) / 2],
                                   values[s->conns_len - 1]};
    free(values);
    return range;
}
