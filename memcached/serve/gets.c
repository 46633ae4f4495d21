/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/gets.h"

#include "base/probe.h"
#include "proto/ascii.h"
#include "proto/ascii_cut.h"
#include "serve/exec.h"

#define LINE_END_BYTES 2
#define END "END\r\n"
#define END_BYTES (sizeof END - 1)

/* Writes head and value. Where they end; NULL: no space. */
static inline char *
put_value(const struct gets *g, struct key key, const struct store_hit *hit)
{
    size_t total = (size_t)hit->value_len + (g->binary == NULL ? LINE_END_BYTES : 0);
    char *to = g->to;
    if (unlikely((size_t)(g->end - to) < ASCII_VALUE_HEAD_MAX + total)) {
        return NULL;
    }
    if (unlikely(g->binary != NULL)) {
        to += binary_value_head(to, g->binary, key.p, key.len, hit->flags, hit->value_len,
                                hit->cas);
    } else {
        to += ascii_value_head(to, key.p, key.len, hit->flags, hit->value_len,
                               g->wants_cas, hit->cas);
    }
    if (likely(hit->value != NULL)) {
        memcpy(to, hit->value, total);
    } else {
        exec_copy(to, hit->item, total);
    }
    return to + total;
}

/* Behind the last key of a line. False: no space, or its replies are too much. */
static inline bool
end_line(struct gets *g)
{
    if (unlikely((size_t)(g->end - g->to) < END_BYTES ||
                 (size_t)(g->to - g->line) + END_BYTES > g->line_bytes)) {
        return false;
    }
    memcpy(g->to, END, END_BYTES);
    g->to += END_BYTES;
    g->line = g->to;
    g->lines++;
    return true;
}

/* Too large to be copied: lent, if it may be, which takes the lock of the item. */
__attribute__((noinline)) static enum store_take
hold(struct gets *g, struct key key, const struct store_hit *hit)
{
    if (!g->may_hold) {
        return STORE_TAKE_STOP;
    }
    if (hit->item != NULL) {
        g->held = hit->item;
        PROBE(command__get, g->env->client_fd, key.p, key.len, hit->value_len, hit->cas);
    }
    return STORE_TAKE_HOLD;
}

static enum store_take
take(void *ctx, unsigned i, enum store_status status, const struct store_hit *hit)
{
    struct gets *g = ctx;
    struct key key = g->keys[i].key;
    struct serve_ctr *ctr = g->env->ctr;
    if (likely(status == STORE_OK)) {
        if (unlikely(g->to >= g->last_begin)) {
            return STORE_TAKE_STOP;
        }
        g->counters[i] = &ctr->slab[hit->slot].get_hits[hit->list];
        if (unlikely(hit->value_len > g->value_bytes)) {
            return hold(g, key, hit);
        }
        char *to = put_value(g, key, hit);
        if (to == NULL) {
            return STORE_TAKE_STOP;
        }
        if (unlikely(!store_hit_holds(hit))) {
            return STORE_TAKE_AGAIN;
        }
        g->to = to;
        PROBE(command__get, g->env->client_fd, key.p, key.len, hit->value_len, hit->cas);
    } else {
        g->counters[i] = &ctr->get_misses;
        g->misses++;
        exec_count_gone(g->env, status); /* it is not found dead again */
        PROBE(command__get, g->env->client_fd, key.p, key.len, -1, 0);
    }
    bool ends_line = (g->line_ends >> i & 1) != 0;
    return ends_line && !end_line(g) ? STORE_TAKE_STOP : STORE_TAKEN;
}

void
gets_begin(struct gets *g, const struct env *env, char *to, size_t room)
{
    g->env = env;
    g->binary = NULL;
    g->wants_cas = false;
    g->may_hold = false;
    g->line_ends = 0;
    g->to = to;
    g->line = to;
    g->end = to + room;
    g->last_begin = g->end;
}

/* The look and what is made of it become one function: calls between them would take a tenth of a
 * key's instructions. */
__attribute__((flatten)) unsigned
gets_run(struct gets *g)
{
    g->held = NULL;
    g->misses = 0;
    g->lines = 0;
    g->line = g->to;
    return store_read(g->env->store, g->keys, g->count, g->env->now, take, g);
}

void
gets_count(const struct gets *g, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ctr_add(g->counters[i], 1);
    }
}

/* ---- whole lines ----------------------------------------------------------------------- */

/* Lines whose keys are in one batch: where each ends in the input, and behind which key. */
struct batch {
    struct gets gets;
    unsigned lines;
    const char *in_end[GETS_KEYS];
    uint8_t keys_end[GETS_KEYS];
};

/* The line at p, of at most `most` keys. Where the next one begins; NULL: it is none of these. */
static inline const char *
gather_line(struct gets *g, const char *p, const char *end, unsigned most)
{
    unsigned n = g->count, last = most < GETS_KEYS - n ? n + most : GETS_KEYS;
    struct slice key;
    p = ascii_cut_get(p, end);
    if (unlikely(p == NULL)) {
        return NULL;
    }
    while (n < last && ascii_cut_key(&p, &key)) {
        g->keys[n++].key = (struct key){key.p, key.len};
    }
    p = ascii_line_end(p, end);
    if (likely(p != NULL)) {
        g->line_ends |= UINT32_C(1) << (n - 1);
        g->count = n;
    }
    return p;
}

/* As many lines as there is room for, and are good. */
static void
gather(struct batch *b, const char *p, const char *end, unsigned keys, unsigned requests)
{
    struct gets *g = &b->gets;
    b->lines = 0;
    g->count = 0;
    g->line_ends = 0;
    while (p < end && b->lines < requests && g->count < GETS_KEYS &&
           (p = gather_line(g, p, end, keys)) != NULL) {
        b->keys_end[b->lines] = (uint8_t)g->count;
        b->in_end[b->lines++] = p;
    }
}

struct gets_served
gets_serve(const struct env *env, const char *in, size_t len, char *to, size_t room,
           const struct gets_limits *limits)
{
    struct batch b; /* its arrays are not worth being cleared */
    struct gets *g = &b.gets;
    struct gets_served served = {0};
    gets_begin(g, env, to, room);
    g->value_bytes = limits->value_bytes;
    g->line_bytes = limits->line_bytes;
    const char *p = in;
    do {
        gather(&b, p, in + len, limits->keys, limits->requests - served.requests);
        if (g->count == 0) {
            break;
        }
        (void)gets_run(g);
        if (g->lines > 0) {
            gets_count(g, b.keys_end[g->lines - 1]);
            p = b.in_end[g->lines - 1];
            served.requests += g->lines;
        }
        g->to = g->line; /* a line that was not answered in whole begins anew */
    } while (g->lines == b.lines);
    served.consumed = (size_t)(p - in);
    served.made = (size_t)(g->line - to);
    return served;
}
