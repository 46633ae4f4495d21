/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/gets.h"

#include "base/probe.h"
#include "proto/ascii.h"
#include "proto/ascii_cut.h"
#include "serve/exec.h"

#define END "END\r\n"
#define END_BYTES (sizeof END - 1)

/* Writes head and value. Where they end; NULL: no space. */
static inline char *
put_value(const struct gets *g, struct key key, const struct store_hit *hit)
{
    size_t total = (size_t)hit->value_len + LINE_END_BYTES;
    char *to = g->to;
    if (unlikely((size_t)(g->end - to) < ASCII_VALUE_HEAD_MAX + total)) {
        return NULL;
    }
    if (unlikely(g->binary != NULL)) {
        to += binary_value_head(to, g->binary, key.p, key.len, hit->flags, hit->value_len,
                                hit->cas);
        total -= LINE_END_BYTES; /* which a packet has not */
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

/* Behind the last key of a line. False: its replies are too much. */
static inline bool
end_line(struct gets *g)
{
    if (unlikely((size_t)(g->to - g->line) + END_BYTES > g->line_bytes)) {
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
hold(struct gets *g, struct key key, struct item *item, uint32_t value_len, uint64_t cas)
{
    if (!g->may_hold) {
        return STORE_TAKE_STOP;
    }
    if (item != NULL) {
        g->held = item;
        PROBE(command__get, g->env->client_fd, key.p, key.len, value_len, cas);
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
            return hold(g, key, hit->item, hit->value_len, hit->cas);
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
        if (unlikely((size_t)(g->end - g->to) < END_BYTES)) {
            /* A hit leaves as much: what is kept for its head has room for three numbers of 64
             * bits, and flags and length have 32. */
            return STORE_TAKE_STOP;
        }
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
    g->count = 0;
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

/* Cuts the line at p, keys[from..most) taking its keys, of which it has one, and `few` at most; *n:
 * behind the last one. Where the next line begins; NULL: it is none of these. */
static inline const char *
cut_line(const char *p, const char *end, struct store_read *keys, unsigned from,
         unsigned few, unsigned most, unsigned *n)
{
    struct slice key;
    p = ascii_cut_get(p, end);
    if (unlikely(p == NULL)) {
        return NULL;
    }
    *n = from;
    do {
        if (unlikely(!ascii_cut_key(&p, &key))) {
            return NULL;
        }
        keys[(*n)++].key = (struct key){key.p, key.len};
    } while (*p == ' ' && *n < most && *n - from < few);
    return ascii_line_end(p, end);
}

/* Behind a key of a line that was cut. */
static inline const char *
behind_key(const struct store_read *read)
{
    return read->key.p + read->key.len;
}

/* Lines whose keys are in one batch. */
struct batch {
    struct gets gets;
    struct store_read keys[GETS_KEYS];
    unsigned lines;
};

/* As many lines as there is room for, and are good; of at most so many keys each. Where the next one
 * begins. */
static const char *
gather(struct batch *b, const char *p, const char *end, unsigned keys, unsigned requests)
{
    struct gets *g = &b->gets;
    unsigned n;
    b->lines = 0;
    g->count = 0;
    g->line_ends = 0;
    while (p < end && b->lines < requests && g->count < GETS_KEYS) {
        const char *next = cut_line(p, end, b->keys, g->count, keys, GETS_KEYS, &n);
        if (unlikely(next == NULL)) {
            break;
        }
        g->count = n;
        g->line_ends |= UINT32_C(1) << (n - 1);
        b->lines++;
        p = next;
    }
    return p;
}

/* Of the lines that were answered; *next: where the first other one begins. */
static __attribute__((noinline)) unsigned
keys_answered(const struct batch *b, const char *end, const char **next)
{
    uint32_t line_ends = b->gets.line_ends;
    unsigned keys = 0;
    for (unsigned i = 0; i < b->gets.lines; i++) {
        keys = (unsigned)__builtin_ctz(line_ends) + 1;
        line_ends &= line_ends - 1;
    }
    if (keys > 0) {
        *next = ascii_line_end(behind_key(&b->keys[keys - 1]), end);
    }
    return keys;
}

struct gets_served
gets_serve(const struct env *env, const char *in, size_t len, char *to, size_t room,
           const struct gets_limits *limits)
{
    struct batch b; /* its arrays are not worth being cleared */
    struct gets *g = &b.gets;
    struct gets_served served = {0};
    gets_begin(g, env, to, room);
    g->keys = b.keys;
    g->value_bytes = limits->value_bytes;
    g->line_bytes = limits->line_bytes;
    const char *p = in;
    do {
        const char *rest =
            gather(&b, p, in + len, limits->keys, limits->requests - served.requests);
        if (g->count == 0) {
            break;
        }
        (void)gets_run(g);
        if (likely(g->lines == b.lines)) {
            gets_count(g, g->count);
            p = rest;
        } else {
            gets_count(g, keys_answered(&b, in + len, &p));
        }
        served.requests += g->lines;
        g->to = g->line; /* a line that was not answered in whole begins anew */
    } while (p < in + len && g->lines == b.lines);
    served.consumed = (size_t)(p - in);
    served.made = (size_t)(g->line - to);
    return served;
}

/* ---- a line of many keys --------------------------------------------------------------- */

bool
gets_line_begin(struct gets_line *line, const struct env *env, const char *in, size_t len,
                unsigned few, char *to, size_t room)
{
    line->rest = in;
    line->at = 0;
    line->next = cut_line(in, in + len, line->keys, 0, GETS_LINE_KEYS, GETS_LINE_KEYS,
                          &line->count);
    gets_begin(&line->gets, env, to, room);
    line->gets.value_bytes = GETS_COPY_MAX;
    line->gets.line_bytes = SIZE_MAX;
    return line->next != NULL && line->count > few;
}

enum gets_line_step
gets_line_step(struct gets_line *line)
{
    struct gets *g = &line->gets;
    unsigned left = line->count - line->at;
    g->keys = line->keys + line->at;
    g->count = left < GETS_KEYS ? left : GETS_KEYS;
    unsigned done = gets_run(g);
    gets_count(g, done);
    line->at += done;
    if (done > 0) {
        line->rest = behind_key(&g->keys[done - 1]);
    }
    if (done < g->count) {
        return GETS_LINE_STUCK;
    }
    if (done < left) {
        return GETS_LINE_MORE;
    }
    return end_line(g) ? GETS_LINE_DONE : GETS_LINE_STUCK;
}
