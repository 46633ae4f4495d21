/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/slab.h"

#include "store/item.h"

#define CHUNK_ALIGN 8u
#define CHUNK_MAX_LEAST 512u /* the head of a chained item with the longest key fits */
#define PAGES_FIRST 16u

static uint32_t
round_up(uint32_t n)
{
    return (n + CHUNK_ALIGN - 1) & ~(CHUNK_ALIGN - 1);
}

static void
add_class(struct slab *sl, uint32_t size)
{
    struct slab_class *c = &sl->classes[++sl->class_count];

    c->chunk_size = size;
    c->chunks_per_page = STORE_PAGE_BYTES / size;
}

/* The list as given, or a geometric series; the largest chunk always ends the table. */
static void
build_classes(struct slab *sl, const struct store_conf *conf)
{
    uint32_t size = STORE_ITEM_HEADER + conf->min_space;

    if (conf->sizes != NULL) {
        for (unsigned i = 0; i < conf->size_count; i++) {
            if (round_up(conf->sizes[i]) < conf->chunk_max) {
                add_class(sl, round_up(conf->sizes[i]));
            }
        }
    } else {
        while (sl->class_count < STORE_CLASS_MAX - 1 &&
               size < conf->chunk_max / conf->growth_factor) {
            size = round_up(size);
            add_class(sl, size);
            size = (uint32_t)(size * conf->growth_factor);
        }
    }
    add_class(sl, conf->chunk_max);
}

static const char *
what_is_wrong(const struct store_conf *conf)
{
    if (conf->chunk_max < CHUNK_MAX_LEAST || conf->chunk_max > STORE_PAGE_BYTES ||
        conf->chunk_max % CHUNK_ALIGN != 0) {
        return "the largest chunk must be a multiple of 8 from 512 bytes to 1 MiB";
    }
    if (conf->item_max < conf->chunk_max || conf->item_max % conf->chunk_max != 0) {
        return "the largest item must be a multiple of the largest chunk";
    }
    if (conf->sizes == NULL && !(conf->growth_factor > 1)) {
        return "the growth factor must be larger than 1";
    }
    if (conf->sizes == NULL && conf->min_space > STORE_PAGE_BYTES) {
        return "the smallest chunk is larger than a page";
    }
    if (conf->sizes != NULL && conf->size_count >= STORE_CLASS_MAX) {
        return "too many slab classes";
    }
    for (unsigned i = 0; conf->sizes != NULL && i < conf->size_count; i++) {
        if (conf->sizes[i] < STORE_ITEM_HEADER || conf->sizes[i] > conf->chunk_max ||
            (i > 0 && round_up(conf->sizes[i]) <= round_up(conf->sizes[i - 1]))) {
            return "slab sizes must increase and lie between an item header and the "
                   "largest chunk";
        }
    }
    return NULL;
}

bool
slab_init(struct slab *sl, const struct store_conf *conf, struct mem *mem, char *err,
          size_t err_len)
{
    const char *wrong = what_is_wrong(conf);

    if (wrong != NULL) {
        snprintf(err, err_len, "%s", wrong);
        return false;
    }
    memset(sl, 0, sizeof(*sl));
    PTHREAD_OK(pthread_mutex_init(&sl->lock, NULL));
    sl->mem = mem;
    sl->limit_bytes = conf->limit_bytes;
    sl->malloced_bytes = conf->initial_malloced;
    sl->chunk_max = conf->chunk_max;
    sl->whole_pages = conf->whole_pages;
    build_classes(sl, conf);
    return true;
}

void
slab_fini(struct slab *sl)
{
    for (unsigned i = 1; i <= sl->class_count; i++) {
        struct slab_class *c = &sl->classes[i];

        for (uint32_t n = 0; n < c->page_count; n++) {
            mem_unmap(c->pages[n], STORE_PAGE_BYTES);
        }
        free(c->pages);
    }
    PTHREAD_OK(pthread_mutex_destroy(&sl->lock));
}

unsigned
slab_class_of(const struct slab *sl, uint64_t bytes)
{
    unsigned lo = 1;
    unsigned hi = sl->class_count;

    must(bytes <= sl->chunk_max);
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (sl->classes[mid].chunk_size < bytes) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool
reserve_page_entry(struct slab *sl, struct slab_class *c)
{
    uint32_t room = c->page_room == 0 ? PAGES_FIRST : c->page_room * 2;
    void **pages;

    if (c->page_count < c->page_room) {
        return true;
    }
    pages = mem_resize(sl->mem, c->pages, room * sizeof(*pages));
    if (pages == NULL) {
        return false;
    }
    c->pages = pages;
    c->page_room = room;
    return true;
}

/* A class always may take its first page; more of them only below the limit. Called when
 * the class has no chunk left, so no fresh ones are forgotten. */
static bool
grow_class(struct slab *sl, struct slab_class *c)
{
    uint64_t charge =
        sl->whole_pages ? STORE_PAGE_BYTES : (uint64_t)c->chunk_size * c->chunks_per_page;
    char *page;

    must(c->fresh_count == 0);
    if (c->page_count > 0 && sl->malloced_bytes + charge > sl->limit_bytes) {
        return false;
    }
    if (!reserve_page_entry(sl, c)) {
        return false;
    }
    page = mem_map(sl->mem, STORE_PAGE_BYTES);
    if (page == NULL) {
        return false;
    }
    c->pages[c->page_count++] = page;
    c->fresh = page;
    c->fresh_count = c->chunks_per_page;
    sl->malloced_bytes += charge;
    return true;
}

static struct item *
take_locked(struct slab *sl, struct slab_class *c)
{
    struct item *it = c->free_list;

    if (it != NULL) {
        c->free_list = it->next;
        c->free_count--;
        return it;
    }
    if (c->fresh_count == 0 && !grow_class(sl, c)) {
        return NULL;
    }
    it = (struct item *)(void *)c->fresh;
    c->fresh += c->chunk_size;
    c->fresh_count--;
    return it;
}

void *
slab_take(struct slab *sl, unsigned class_id, uint32_t requested)
{
    struct slab_class *c = &sl->classes[class_id];
    struct item *it;

    must(class_id >= 1 && class_id <= sl->class_count);
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    it = take_locked(sl, c);
    if (it != NULL) {
        it->layout = 0;
        c->requested_bytes += requested;
    }
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
    return it;
}

void
slab_give(struct slab *sl, unsigned class_id, void *chunk, uint32_t requested)
{
    struct slab_class *c = &sl->classes[class_id];
    struct item *it = chunk;

    must(class_id >= 1 && class_id <= sl->class_count);
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    must(c->requested_bytes >= requested);
    it->layout = ITEM_FREE;
    it->next = c->free_list;
    c->free_list = it;
    c->free_count++;
    c->requested_bytes -= requested;
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
}

void
slab_set_limit(struct slab *sl, uint64_t bytes)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    sl->limit_bytes = bytes;
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
}
