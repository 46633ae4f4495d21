/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What must hold of a store in which nobody is just now and of which nobody holds an item:
 *
 *   lists, table and counters name the same items, each once and in its place;
 *   what each owner has in a class is the sum of its items there;
 *   every chunk of every page is exactly one of free, never used, on its way out, the head of
 *   a linked item, a further chunk of one;
 *   the accounted bytes are those of the items, the charged ones those of the pages.
 *
 * Stops the process at the first thing that is not so.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/core.h"

#define AUDIT_PAGE_MAX (STORE_PAGE_BYTES / sizeof(struct item) + 1)

struct audit_page {
    char *start;
    unsigned class_id;
    bool *seen; /* by chunk */
};

struct audit {
    struct store *store;
    struct audit_page *pages; /* by address */
    size_t page_count;
    uint64_t used[STORE_CLASSES], requested[STORE_CLASSES];
    uint64_t sized;
};

static inline int
audit_compare(const void *a, const void *b)
{
    const struct audit_page *x = a;
    const struct audit_page *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static inline void
audit_collect_pages(struct audit *a)
{
    struct slab *sl = &a->store->slab;
    size_t n = 0;

    for (unsigned id = 1; id <= sl->class_count; id++) {
        n += sl->classes[id].page_count;
    }
    a->pages = calloc(n + 1, sizeof(*a->pages));
    must(a->pages != NULL);
    for (unsigned id = 1; id <= sl->class_count; id++) {
        for (uint32_t i = 0; i < sl->classes[id].page_count; i++) {
            struct audit_page *page = &a->pages[a->page_count++];

            page->start = sl->classes[id].pages[i];
            page->class_id = id;
            page->seen = calloc(AUDIT_PAGE_MAX, sizeof(*page->seen));
            must(page->seen != NULL);
        }
    }
    qsort(a->pages, n, sizeof(*a->pages), audit_compare);
    for (size_t i = 1; i < n; i++) {
        must(a->pages[i].start - a->pages[i - 1].start >= STORE_PAGE_BYTES);
    }
}

/* The chunk at p, of the class, has not come yet. */
static inline void
audit_see(struct audit *a, unsigned class_id, const void *p)
{
    struct slab_class *c = &a->store->slab.classes[class_id];
    const char *at = p;
    size_t lo = 0;
    size_t hi = a->page_count;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (a->pages[mid].start <= at) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    must(lo > 0);
    struct audit_page *page = &a->pages[lo - 1];
    size_t offset = (size_t)(at - page->start);
    must(page->class_id == class_id && offset < STORE_PAGE_BYTES);
    must(offset % c->chunk_size == 0 && offset / c->chunk_size < c->chunks_per_page);
    must(!page->seen[offset / c->chunk_size]);
    page->seen[offset / c->chunk_size] = true;
}

static inline void
audit_use(struct audit *a, unsigned class_id, const void *p, uint32_t requested)
{
    audit_see(a, class_id, p);
    must(requested <= a->store->slab.classes[class_id].chunk_size);
    a->used[class_id]++;
    a->requested[class_id] += requested;
}

/* ---- items ---------------------------------------------------------------------------- */

static inline void
audit_chunks(struct audit *a, const struct item *it)
{
    const struct chunk *first = item_first_chunk(it);
    const struct chunk *prev = first;
    uint64_t bytes = 0;

    must(first->owner == it && first->prev == NULL && first->next != NULL);
    for (const struct chunk *ch = first->next; ch != NULL; prev = ch, ch = ch->next) {
        must(ch->owner == it && ch->prev == prev && ch->used > 0);
        must(atomic_load(&((struct chunk *)(uintptr_t)ch)->layout) ==
             (ITEM_CHUNK | ITEM_KNOWN));
        must(ch->size ==
             a->store->slab.classes[ch->class_id].chunk_size - sizeof(struct chunk));
        must(ch->used <= ch->size);
        audit_use(a, ch->class_id, ch, item_chunk_bytes(ch));
        bytes += ch->used;
    }
    must(bytes == (uint64_t)it->value_len + 2);
}

static inline void
audit_item(struct audit *a, const struct item *it)
{
    struct store *s = a->store;
    uint64_t hash = table_hash(&s->table, item_key(it), it->key_len);
    const char *end;
    size_t n = item_bytes(it, (size_t)it->value_len + 1, &end);

    must(n == 1 && *end == '\n');
    must(item_refs(it) == 1 && item_is(it, ITEM_LINKED));
    must((it->layout & (ITEM_CHUNK | ITEM_FREE | ITEM_OUT)) == 0);
    must((it->layout & ITEM_KNOWN) != 0);
    must(table_find(&s->table, (struct key){item_key(it), it->key_len}, hash) == it);
    const bool is_chained = it->layout & ITEM_CHAINED;
    audit_use(a, is_chained ? item_first_chunk(it)->class_id : it->class_id, it,
              item_head_bytes(&s->conf, it));
    if (it->layout & ITEM_CHAINED) {
        must(it->class_id == s->slab.class_count);
        audit_chunks(a, it);
    }
    a->sized += (it->layout & ITEM_SIZED) != 0;
}

static inline uint64_t
audit_lists(struct audit *a)
{
    struct store *s = a->store;
    uint64_t all = 0;

    for (unsigned id = 0; id < STORE_CLASSES; id++) {
        struct lru_class *c = &s->lru.classes[id];
        struct {
            uint64_t bytes, items;
        } uses[STORE_OWNERS] = {{0, 0}};
        uint64_t class_number = 0;

        for (unsigned l = 0; l < STORE_LISTS; l++) {
            const struct lru_list *list = &c->lists[l];
            const struct item *prev = NULL;
            uint64_t number = 0;
            uint64_t bytes = 0;

            for (const struct item *it = list->head; it != NULL;
                 it = link_item(&s->table.range, it->next)) {
                must(link_item(&s->table.range, it->prev) == prev && it->class_id == id &&
                     item_list(it) == l);
                audit_item(a, it);
                number++;
                bytes += item_total_of(&s->conf, it);
                uses[it->owner].bytes += item_total_of(&s->conf, it);
                uses[it->owner].items++;
                prev = it;
            }
            must(list->tail == prev);
            must(list->number == number && list->bytes == bytes);
            must(s->walk.is_open || list->cursors == NULL);
            class_number += number;
        }
        must(atomic_load(&c->number) == class_number);
        for (unsigned o = 0; o < STORE_OWNERS; o++) {
            must(atomic_load(&c->uses[o].bytes) == uses[o].bytes);
            must(atomic_load(&c->uses[o].items) == uses[o].items);
        }
        all += class_number;
    }
    return all;
}

static inline uint64_t
audit_array(const struct link_range *range, const uint32_t *buckets, uint64_t from,
            uint64_t to)
{
    uint64_t number = 0;

    for (uint64_t i = from; i < to; i++) {
        for (const struct item *it = link_item(range, buckets[i]); it != NULL;
             it = link_item(range, it->h_next)) {
            must(item_is(it, ITEM_LINKED));
            number++;
        }
    }
    return number;
}

static inline uint64_t
audit_table(struct audit *a)
{
    struct table *t = &a->store->table;
    struct generation *g = atomic_load(&t->current);
    uint64_t number = audit_array(&t->range, g->buckets, 0, g->mask + 1);

    if (atomic_load(&t->is_growing)) { /* what has moved is not wiped out there */
        number +=
            audit_array(&t->range, g[-1].buckets, atomic_load(&g->pos), g[-1].mask + 1);
    }
    return number;
}

static inline void
audit_sizes(struct audit *a)
{
    struct sizes *z = &a->store->sizes;
    uint64_t sum = 0;

    for (size_t i = 0; z->counts != NULL && i < z->buckets; i++) {
        sum += atomic_load(&z->counts[i]);
    }
    must(sum == a->sized);
}

/* ---- memory --------------------------------------------------------------------------- */

static inline void
audit_free(struct audit *a, unsigned class_id)
{
    struct slab_class *c = &a->store->slab.classes[class_id];
    const struct item *prev = NULL;
    uint64_t n = 0;

    const struct link_range *range = &a->store->slab.pages.range;
    for (struct item *it = c->free_list; it != NULL;
         prev = it, it = link_item(range, it->next)) {
        must(it->layout == ITEM_FREE &&
             (prev == NULL || link_item(range, it->prev) == prev));
        audit_see(a, class_id, it);
        n++;
    }
    must(n == c->free_count);
    must(c->cut_count <= c->page_count && c->page_count <= c->page_room);
    for (uint32_t i = 0; i < c->fresh_count; i++) {
        must(c->fresh + (size_t)i * c->chunk_size <
             (char *)c->pages[c->cut_count - 1] + STORE_PAGE_BYTES);
        audit_see(a, class_id, c->fresh + (size_t)i * c->chunk_size);
    }
    for (uint32_t page = c->cut_count; page < c->page_count; page++) {
        for (uint32_t i = 0; i < c->chunks_per_page; i++) {
            audit_see(a, class_id, (char *)c->pages[page] + (size_t)i * c->chunk_size);
        }
    }
}

static inline void
audit_out(struct audit *a)
{
    struct slab *sl = &a->store->slab;
    uint32_t out = 0;

    for (uint32_t i = 0; sl->move.page != NULL && i < sl->move.chunks; i++) {
        struct item *it = slab_move_chunk(sl, i);

        if (it->layout & ITEM_OUT) {
            audit_see(a, sl->move.from, it);
            out++;
        }
    }
    must(sl->move.page == NULL || sl->move.left == sl->move.chunks - out);
}

static inline void
audit_memory(struct audit *a)
{
    struct slab *sl = &a->store->slab;
    uint64_t charged = a->store->conf.initial_malloced;
    uint64_t pool = 0;

    audit_out(a);
    for (unsigned id = 1; id <= sl->class_count; id++) {
        struct slab_class *c = &sl->classes[id];

        audit_free(a, id);
        must(c->requested_bytes + a->store->lru.classes[id].recharged ==
             a->requested[id]);
        must(slab_free_chunks(sl, id) + a->used[id] ==
             (uint64_t)c->page_count * c->chunks_per_page);
        charged += c->page_count * (sl->whole_pages
                                        ? STORE_PAGE_BYTES
                                        : (uint64_t)c->chunk_size * c->chunks_per_page);
    }
    for (void *page = sl->pages.pool; page != NULL; page = *(void **)page) {
        pool++;
    }
    must(pool == sl->pages.pool_count);
    must(sl->pages.malloced_bytes == charged + pool * STORE_PAGE_BYTES);
    for (size_t i = 0; i < a->page_count; i++) {
        uint32_t chunks = sl->classes[a->pages[i].class_id].chunks_per_page;

        for (uint32_t n = 0; n < chunks; n++) {
            must(a->pages[i].seen[n]);
        }
        free(a->pages[i].seen);
    }
}

static inline void
audit_store(struct store *s)
{
    struct audit a = {.store = s};

    audit_collect_pages(&a);
    uint64_t number = audit_lists(&a);
    must(number == audit_table(&a));
    must(number == lru_number(&s->lru));
    audit_sizes(&a);
    audit_memory(&a);
    free(a.pages);
}

/* ---- values ---------------------------------------------------------------------------- */

/* Fills a reserved item through item_space with value and CR LF. */
static inline void
fill_value(struct item *it, const char *value, size_t len)
{
    for (size_t done = 0; done < len + 2;) {
        char *p;
        size_t n = item_space(it, done, &p);

        must(n > 0);
        for (size_t i = 0; i < n; i++, done++) {
            p[i] = done < len ? value[done] : "\r\n"[done - len];
        }
    }
}

/* The value and CR LF. */
static inline void
copy_value(const struct item *it, char *dst)
{
    size_t len = item_value_len(it);

    for (size_t done = 0; done < len + 2;) {
        const char *p;
        size_t n = item_bytes(it, done, &p);

        must(n > 0 && done + n <= len + 2);
        memcpy(dst + done, p, n);
        done += n;
    }
    must(memcmp(dst + len, "\r\n", 2) == 0);
}
