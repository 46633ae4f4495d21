/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/prefix.h"

#include <inttypes.h>
#include <stdatomic.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SLOTS_MIN 64

struct prefix_entry {
    uint64_t hash;
    uint64_t counts[PREFIX_COUNTS];
    uint8_t len;
    char text[];
};

void
prefixes_init(struct prefixes *p, char delimiter, bool is_on, uint64_t seed)
{
    *p = (struct prefixes){.delimiter = delimiter, .is_on = is_on, .seed = seed};
    PTHREAD_OK(pthread_mutex_init(&p->lock, NULL));
}

static void
forget(struct prefixes *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        free(p->entries[i]);
    }
    free(p->entries);
    free(p->table);
    p->entries = NULL;
    p->table = NULL;
    p->count = 0;
    p->slots = 0;
}

void
prefixes_fini(struct prefixes *p)
{
    forget(p);
    PTHREAD_OK(pthread_mutex_destroy(&p->lock));
}

/* ---- table ---------------------------------------------------------------------------- */

/* The slot of the prefix, or the free one where it would be. */
static struct prefix_entry **
find(struct prefix_entry **table, unsigned slots, uint64_t hash, const char *text,
     size_t len)
{
    for (unsigned i = (unsigned)hash & (slots - 1);; i = (i + 1) & (slots - 1)) {
        const struct prefix_entry *e = table[i];
        if (e == NULL ||
            (e->hash == hash && e->len == len && memcmp(e->text, text, len) == 0)) {
            return &table[i];
        }
    }
}

/* Makes room for twice as many. */
static bool
grow(struct prefixes *p)
{
    unsigned slots = p->slots > 0 ? 2 * p->slots : SLOTS_MIN;
    struct prefix_entry **entries =
        realloc(p->entries, slots / 2 * sizeof(struct prefix_entry *));
    if (entries == NULL) {
        return false;
    }
    p->entries = entries;
    struct prefix_entry **table = calloc(slots, sizeof(struct prefix_entry *));
    if (table == NULL) {
        return false;
    }
    for (unsigned i = 0; i < p->count; i++) {
        struct prefix_entry *e = entries[i];
        *find(table, slots, e->hash, e->text, e->len) = e;
    }
    free(p->table);
    p->table = table;
    p->slots = slots;
    return true;
}

/* NULL: no memory, or as many prefixes as there may be. */
static struct prefix_entry *
learn(struct prefixes *p, uint64_t hash, const char *text, size_t len)
{
    if (p->count == PREFIX_MAX || (p->count == p->slots / 2 && !grow(p))) {
        return NULL;
    }
    struct prefix_entry *e = calloc(1, sizeof *e + len);
    if (e == NULL) {
        return NULL;
    }
    e->hash = hash;
    e->len = (uint8_t)len;
    memcpy(e->text, text, len);
    *find(p->table, p->slots, hash, text, len) = e;
    p->entries[p->count++] = e;
    return e;
}

/* ---- counting ------------------------------------------------------------------------- */

bool
prefixes_cut(const struct prefixes *p, struct slice *key, uint64_t *hash)
{
    const char *end = key->len > 0 ? memchr(key->p, p->delimiter, key->len) : NULL;
    if (end == NULL) {
        return false;
    }
    key->len = (size_t)(end - key->p);
    must(key->len < REQ_KEY_MAX);
    *hash = XXH3_64bits_withSeed(key->p, key->len, p->seed);
    return true;
}

void
prefixes_count(struct prefixes *p, struct slice key, enum prefix_count what,
               unsigned hits)
{
    uint64_t hash;
    if (!prefixes_cut(p, &key, &hash)) {
        return;
    }
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    struct prefix_entry *e =
        p->slots > 0 ? *find(p->table, p->slots, hash, key.p, key.len) : NULL;
    if (e == NULL) {
        e = learn(p, hash, key.p, key.len);
    }
    if (e != NULL) {
        e->counts[what]++;
        e->counts[PREFIX_HIT] += hits;
    }
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
}

/* ---- commands ------------------------------------------------------------------------- */

void
prefixes_set_on(struct prefixes *p, bool is_on)
{
    atomic_store(&p->is_on, is_on);
}

bool
prefixes_are_on(struct prefixes *p)
{
    return atomic_load(&p->is_on);
}

void
prefixes_clear(struct prefixes *p)
{
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    forget(p);
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
}

uint64_t *
prefixes_counts(struct prefixes *p, unsigned index)
{
    must(index < p->count);
    return p->entries[index]->counts;
}

static bool
is_one_word(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((uint8_t)text[i] <= ' ') {
            return false;
        }
    }
    return true;
}

static size_t
describe(const struct prefix_entry *e, char line[PREFIX_LINE_MAX])
{
    size_t len = 0;
    memcpy(line, "PREFIX ", 7);
    len += 7;
    if (is_one_word(e->text, e->len)) {
        memcpy(line + len, e->text, e->len);
        len += e->len;
    } else {
        len += uri_encode(line + len, e->text, e->len);
    }
    int n =
        snprintf(line + len, PREFIX_LINE_MAX - len,
                 " get %" PRIu64 " hit %" PRIu64 " set %" PRIu64 " del %" PRIu64 "\r\n",
                 e->counts[PREFIX_GET], e->counts[PREFIX_HIT], e->counts[PREFIX_SET],
                 e->counts[PREFIX_DEL]);
    must(n > 0 && (size_t)n < PREFIX_LINE_MAX - len);
    return len + (size_t)n;
}

bool
prefixes_tell(struct prefixes *p, unsigned *cursor, unsigned max,
              void (*tell)(void *ctx, const char *line, size_t len), void *ctx)
{
    PTHREAD_OK(pthread_mutex_lock(&p->lock));
    for (; *cursor < p->count && max > 0; max--) {
        char line[PREFIX_LINE_MAX];
        tell(ctx, line, describe(p->entries[(*cursor)++], line));
    }
    bool has_more = *cursor < p->count;
    PTHREAD_OK(pthread_mutex_unlock(&p->lock));
    return has_more;
}
