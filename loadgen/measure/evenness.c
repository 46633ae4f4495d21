/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/evenness.h"

#include "base/alloc.h"
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
    struct hist **all = alloc_zeroed(count, sizeof(struct hist *));
    for (unsigned i = 0; i < count; i++) {
        all[i] = counters_hist(EVENNESS_SUB_BITS);
    }
    return all;
}

void
evenness_log_init(struct evenness_log *l, unsigned conns)
{
    *l = (struct evenness_log){.len = conns < EVENNESS_CONNS_MAX ? conns
                                                                 : EVENNESS_CONNS_MAX};
    l->conns = create_hists(l->len);
    l->server = alloc_zeroed(l->len, sizeof *l->server);
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
    struct evenness *s = alloc_zeroed(1, sizeof *s);
    s->servers_len = servers;
    s->servers = create_hists(servers);
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

static void
make_room(struct evenness *s, unsigned more)
{
    s->conns = alloc_more(s->conns, s->conns_len + more, sizeof *s->conns);
}

void
evenness_add(struct evenness *s, const struct evenness_log *l)
{
    make_room(s, l->len);
    for (unsigned i = 0; i < l->len; i++) {
        const struct hist *h = l->conns[i];
        must(l->server[i] < s->servers_len);
        hist_merge(s->servers[l->server[i]], h);
        s->conns[s->conns_len++] = (struct evenness_conn){
            {hist_count(h), hist_quantile(h, .50), hist_quantile(h, .99)}};
    }
}

void
evenness_merge(struct evenness *s, const struct evenness *from)
{
    must(s->servers_len == from->servers_len);
    make_room(s, from->conns_len);
    for (unsigned i = 0; i < from->conns_len; i++) {
        s->conns[s->conns_len++] = from->conns[i];
    }
    for (unsigned i = 0; i < s->servers_len; i++) {
        hist_merge(s->servers[i], from->servers[i]);
    }
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
    if (s->conns_len == 0) {
        return (struct evenness_range){0};
    }
    uint64_t *values = alloc_zeroed(s->conns_len, sizeof *values);
    unsigned n = 0;
    for (unsigned i = 0; i < s->conns_len; i++) {
        const struct evenness_conn *c = &s->conns[i];
        if (what == EVENNESS_REQUESTS || c->value[EVENNESS_REQUESTS] > 0) {
            values[n++] = c->value[what];
        }
    }
    qsort(values, n, sizeof *values, by_size);
    struct evenness_range range = {0};
    if (n > 0) { /* without requests there is no latency */
        range = (struct evenness_range){values[0], values[(n - 1) / 2], values[n - 1]};
    }
    free(values);
    return range;
}
