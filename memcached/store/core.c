/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/core.h"

void
core_set_cas(struct store *s, struct item *it, uint64_t cas)
{
    if (!s->conf.use_cas) {
        return;
    }
    if (cas == 0) {
        cas = atomic_fetch_add_explicit(&s->cas, 1, memory_order_relaxed) + 1;
    }
    atomic_store_explicit(item_cas_slot(it), cas, memory_order_relaxed);
}

static void
stamp(struct store *s, struct item *it, uint64_t cas)
{
    core_set_cas(s, it, cas);
    it->epoch = atomic_load_explicit(&s->flush.epoch, memory_order_relaxed);
    item_mark(it, ITEM_LINKED);
}

void
core_link(struct store *s, struct item *it, uint64_t cas, uint64_t hash, uint32_t now)
{
    stamp(s, it, cas);
    lru_link(s, it, hash, now);
    table_insert(&s->table, it, hash);
}

void
core_unlink(struct store *s, struct item *it, uint64_t hash)
{
    table_remove(&s->table, it, hash);
    lru_unlink(s, it);
    item_unmark(it, ITEM_LINKED);
}

void
core_drop(struct store *s, struct item *it, uint64_t hash)
{
    core_unlink(s, it, hash);
    item_unref(s, it);
}

void
core_replace(struct store *s, struct item *old, struct item *it, uint64_t cas,
             uint64_t hash, uint32_t now)
{
    stamp(s, it, cas);
    table_remove(&s->table, old, hash);
    lru_replace(s, old, it, hash, now);
    table_insert(&s->table, it, hash);
    item_unmark(old, ITEM_LINKED);
}

void
core_relocate(struct store *s, struct item *it, struct item *to, uint64_t hash)
{
    must(item_is(it, ITEM_LINKED) && item_refs(it) == 1);
    item_move_head(to, it);
    lru_relocate(s, it, to);
    table_relocate(&s->table, it, to, hash);
}

__attribute__((cold, noinline)) enum store_status
core_remove_gone(struct store *s, struct item *it, uint64_t hash, uint32_t now)
{
    enum store_status status =
        is_flushed(s, it, now) ? STORE_GONE_FLUSHED : STORE_GONE_EXPIRED;

    core_drop(s, it, hash);
    return status;
}
