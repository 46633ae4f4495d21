/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/automove.h"

#define OLD_PAGES_MIN 3 /* fewer are not taken away from a class for another one */
#define NEEDY_SHARE 4   /* a quarter of all evictions */

void
automove_fini(struct automove *a)
{
    free(a->records);
    *a = (struct automove){.records = NULL};
}

static bool
resize(struct automove *a, unsigned window)
{
    struct automove_record *records;

    if (a->window == window) {
        return true;
    }
    records = calloc((size_t)STORE_CLASSES * window, sizeof(*records));
    if (records == NULL) {
        return false;
    }
    automove_fini(a);
    a->records = records;
    a->window = window;
    return true;
}

static uint64_t
grown(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void
add_class(struct automove *a, unsigned id, const struct automove_class *now)
{
    struct automove_ring *ring = &a->rings[id];
    struct automove_record *slot = &a->records[(size_t)id * a->window + a->at];
    struct automove_record record = {.age = now->age};

    if (a->filled > 0) { /* the first sample has nothing to be compared with */
        record.evictions = grown(now->evicted, ring->last.evicted);
        record.is_dirty = record.evictions > 0 ||
                          now->outofmemory > ring->last.outofmemory ||
                          now->pages > ring->last.pages;
    }
    if (a->filled == a->window) {
        ring->age -= slot->age;
        ring->evictions -= slot->evictions;
        ring->dirty -= slot->is_dirty;
        ring->evicting -= slot->evictions > 0;
    }
    ring->age += record.age;
    ring->evictions += record.evictions;
    ring->dirty += record.is_dirty;
    ring->evicting += record.evictions > 0;
    ring->last = *now;
    *slot = record;
}

bool
automove_add(struct automove *a, const struct automove_conf *conf,
             const struct automove_sample *sample)
{
    if (!resize(a, conf->window)) {
        return false;
    }
    for (unsigned id = 1; id <= sample->class_count; id++) {
        add_class(a, id, &sample->class[id]);
    }
    a->at = (a->at + 1) % a->window;
    a->filled += a->filled < a->window;
    return true;
}

static bool
find_spare(const struct automove *a, const struct automove_conf *conf,
           const struct automove_sample *sample, struct automove_move *move)
{
    for (unsigned id = 1; id <= sample->class_count; id++) {
        const struct automove_class *c = &sample->class[id];

        if (a->rings[id].dirty == 0 && c->pages > 1 &&
            c->free_chunks * 2 > (uint64_t)conf->spare_half_pages * c->chunks_per_page) {
            *move = (struct automove_move){.from = id, .to = 0};
            return true;
        }
    }
    return false;
}

static bool
is_needy(const struct automove *a, const struct automove_conf *conf, unsigned id,
         uint64_t evictions)
{
    const struct automove_ring *ring = &a->rings[id];

    return ring->evicting * 2 > a->window ||
           (conf->counts_shares && ring->evictions * NEEDY_SHARE > evictions);
}

static bool
find_unfair(const struct automove *a, const struct automove_conf *conf,
            const struct automove_sample *sample, struct automove_move *move)
{
    unsigned last = (a->at + a->window - 1) % a->window;
    uint64_t evictions = 0;
    unsigned oldest = 0;
    unsigned youngest = 0;

    for (unsigned id = 1; id <= sample->class_count; id++) {
        evictions += a->rings[id].evictions;
    }
    for (unsigned id = 1; id <= sample->class_count; id++) {
        uint64_t age = a->rings[id].age;

        if (sample->class[id].pages >= OLD_PAGES_MIN && !sample->class[id].keeps_most &&
            (oldest == 0 || age > a->rings[oldest].age)) {
            oldest = id;
        }
        if (is_needy(a, conf, id, evictions) &&
            (youngest == 0 || age < a->rings[youngest].age)) {
            youngest = id;
        }
    }
    if (oldest == 0 || youngest == 0 || oldest == youngest ||
        a->records[(size_t)youngest * a->window + last].evictions == 0 ||
        (double)a->rings[youngest].age >= conf->ratio * (double)a->rings[oldest].age) {
        return false;
    }
    *move = (struct automove_move){.from = oldest, .to = youngest};
    return true;
}

bool
automove_decide(const struct automove *a, const struct automove_conf *conf,
                const struct automove_sample *sample, struct automove_move *move)
{
    if (a->window == 0 || a->filled < a->window) {
        return false;
    }
    if ((!conf->waits_until_full || sample->is_full) &&
        find_spare(a, conf, sample, move)) {
        return true;
    }
    return !conf->ignores_ages && find_unfair(a, conf, sample, move);
}
