/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/relink.h"

#include "base/phrase.h"
#include "store/census.h"

/* ---- describing ------------------------------------------------------------------------- */

static void
describe_sizes(const struct store_conf *conf, char *text)
{
    struct phrase t = {text, SNAPSHOT_CONFIG_BYTES, 0};

    if (conf->sizes == NULL) {
        phrase_add(&t, "%.17g", conf->growth_factor);
        return;
    }
    for (unsigned i = 0; i < conf->size_count; i++) {
        phrase_add(&t, "%s%u", i > 0 ? "-" : "", conf->sizes[i]);
    }
}

void
relink_describe_conf(const struct store_conf *conf, struct snapshot *snap)
{
    describe_sizes(conf, snap->slab_config);
    snap->maxbytes = conf->limit_bytes;
    snap->chunk_size = conf->min_space;
    snap->item_size_max = conf->item_max;
    snap->slab_chunk_size_max = conf->chunk_max;
    snap->slab_page_size = STORE_PAGE_BYTES;
    snap->use_cas = conf->use_cas;
    snap->counts_suffix = conf->inline_suffix;
    snap->lean_items = conf->is_lean;
    snap->slab_reassign = conf->can_reassign;
}

static uint32_t
page_number(const struct slab *sl, const void *page)
{
    return (uint32_t)(((const char *)page - (const char *)sl->pages.arena) /
                      STORE_PAGE_BYTES);
}

static bool
describe_pool(const struct slab *sl, struct snapshot *snap)
{
    for (void *page = sl->pages.pool; page != NULL; page = *(void **)page) {
        if (!snapshot_add_page(snap, 0, page_number(sl, page))) {
            return false;
        }
    }
    return true;
}

static bool
describe_class(const struct store *s, unsigned id, struct snapshot *snap)
{
    const struct slab_class *c = &s->slab.classes[id];
    struct snapshot_class *out = &snap->classes[id];

    out->cut_count = c->cut_count;
    out->fresh_count = c->fresh_count;
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        snap->items += s->lru.classes[id].lists[list].number;
    }
    for (uint32_t i = 0; i < c->page_count; i++) {
        if (!snapshot_add_page(snap, id, page_number(&s->slab, c->pages[i]))) {
            return false;
        }
    }
    return true;
}

/* Its items and their sum. What is wrong with them is a bug. False: no memory. */
static bool
describe_items(struct store *s, struct snapshot *snap)
{
    struct census *c = census_open(s, snap, false, 0);
    uint64_t items;

    if (c == NULL) {
        return false;
    }
    must(census_count(c, &items, &snap->contents) && items == snap->items);
    census_close(&c);
    return true;
}

bool
relink_describe(struct store *s, struct snapshot *snap)
{
    snap->current_cas = atomic_load_explicit(&s->cas, memory_order_relaxed);
    snap->hashpower = atomic_load_explicit(&s->table.power, memory_order_relaxed);
    snap->oldest_live = s->flush.latest;
    snap->flush_epoch = atomic_load_explicit(&s->flush.epoch, memory_order_relaxed);
    snap->flush_below = atomic_load_explicit(&s->flush.time_below, memory_order_relaxed);
    snap->flush_at = atomic_load_explicit(&s->flush.at, memory_order_relaxed);
    if (!describe_pool(&s->slab, snap)) {
        return false;
    }
    for (unsigned id = 1; id <= s->slab.class_count; id++) {
        if (!describe_class(s, id, snap)) {
            return false;
        }
    }
    return describe_items(s, snap);
}

/* ---- pages ------------------------------------------------------------------------------ */

static bool
is_class_good(const struct slab *sl, unsigned id, const struct snapshot_class *c)
{
    if (id > sl->class_count) {
        return c->page_count == 0;
    }
    return id == 0 || (c->cut_count <= c->page_count &&
                       c->fresh_count <= sl->classes[id].chunks_per_page &&
                       (c->cut_count > 0 || c->fresh_count == 0));
}

/* Pages leave the arena in turn and never come back to it: their numbers are all those below
 * how many they are. */
bool
relink_check_pages(const struct store *s, const struct snapshot *snap, bool *are_good)
{
    const struct slab *sl = &s->slab;

    *are_good = snap->page_count <= sl->pages.arena_left;
    uint8_t *seen = *are_good ? calloc(snap->page_count + 1, 1) : NULL;

    if (seen == NULL) {
        return !*are_good;
    }
    for (unsigned id = 0; id < STORE_CLASSES; id++) {
        *are_good &= is_class_good(sl, id, &snap->classes[id]);
    }
    for (size_t i = 0; i < snap->page_count && *are_good; i++) {
        *are_good = snap->pages[i] < snap->page_count && !seen[snap->pages[i]];
        if (*are_good) {
            seen[snap->pages[i]] = true;
        }
    }
    free(seen);
    return true;
}

/* ---- all of it -------------------------------------------------------------------------- */

/* Hands the pages out as they were. False: no memory. */
static bool
adopt_pages(struct slab *sl, const struct snapshot *snap)
{
    for (unsigned id = 0; id <= sl->class_count; id++) {
        const struct snapshot_class *c = &snap->classes[id];

        for (size_t i = 0; i < c->page_count; i++) {
            if (!slab_adopt_page(sl, id, snap->pages[c->first_page + i])) {
                return false;
            }
        }
        if (id != 0) {
            slab_adopt_cut(sl, id, (uint32_t)c->cut_count, (uint32_t)c->fresh_count);
        }
    }
    return true;
}

static void
restore_counters(struct store *s, const struct snapshot *snap)
{
    struct flush *f = &s->flush;

    atomic_store_explicit(&s->cas, snap->current_cas, memory_order_relaxed);
    f->latest = (uint32_t)snap->oldest_live;
    atomic_store_explicit(&f->epoch, (uint16_t)snap->flush_epoch, memory_order_relaxed);
    atomic_store_explicit(&f->time_below, snap->flush_below, memory_order_relaxed);
    atomic_store_explicit(&f->at, (uint32_t)snap->flush_at, memory_order_relaxed);
}

static void
free_chunk(struct store *s, uint32_t now, unsigned class_id, void *chunk)
{
    (void)now;
    slab_give(&s->slab, class_id, chunk, 0);
}

bool
relink_items(struct store *s, const struct snapshot *snap, uint32_t now,
             struct census **census, const char **wrong)
{
    uint64_t items, sum;
    bool are_good;

    *census = NULL;
    *wrong = NULL;
    if (!relink_check_pages(s, snap, &are_good)) {
        return false;
    }
    if (!are_good) {
        *wrong = "its pages do not fit";
        return true;
    }
    restore_counters(s, snap);
    *census = census_open(s, snap, true, now);
    if (*census == NULL || !adopt_pages(&s->slab, snap)) {
        return false;
    }
    if (!census_count(*census, &items, &sum) || items != snap->items ||
        sum != snap->contents || !census_link(*census)) {
        *wrong = "it has changed since it was saved";
        return true;
    }
    census_each(*census, CENSUS_FREE, free_chunk); /* the lowest is to be taken first */
    return true;
}

static void
settle(struct store *s, uint32_t now, unsigned class_id, void *chunk)
{
    struct item *it = chunk;

    (void)class_id;
    if (item_time(it) > now) {
        item_set_time(it, now);
    }
    if (is_flushed(s, it, now) || is_expired(it, now)) {
        core_drop(s, it, hash_of(s, item_key_of(it)));
    }
}

void
relink_settle(struct store *s, struct census *census)
{
    census_each(census, CENSUS_UNSETTLED, settle);
    if (lru_policy(&s->lru) == STORE_LRU_FLAT) {
        lru_flatten(s);
    }
}
