/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/tenants.h"

#include "base/changes.h"
#include "base/log.h"
#include "core/core.h"
#include "serve/prefix.h"
#include "serve/session.h"

void
tenants_set(struct core_shared *shared, enum fair_by by)
{
    bool reads_keys = shared->class_rules.key_count > 0 || by == FAIR_PREFIX;
    atomic_store_explicit(&shared->reads_keys, reads_keys, memory_order_relaxed);
    atomic_store_explicit(&shared->fair_by, by, memory_order_relaxed);
    changes_note();
}

/* Work that is queued already keeps its line. */
void
tenants_apply(struct core *k)
{
    struct tenants *t = &k->tenants;
    t->by = (enum fair_by)atomic_load_explicit(&k->shared->fair_by, memory_order_relaxed);
    t->last_at = t->mixed_at = 0;
    struct fair_table *table = atomic_load_explicit(&t->table, memory_order_relaxed);
    if (t->by != FAIR_OFF && table == NULL) {
        table = fair_table_create();
        if (table == NULL) {
            log_write(LOG_WARNING,
                      "no memory for the tenants of a worker: they are not told "
                      "apart; set --fair again when there is some");
        } else {
            sched_set_tenants(&k->queue.sched, table);
            limiter_set_tenants(&k->admission.limits, table);
            atomic_store_explicit(&t->table, table, memory_order_release);
        }
    }
    t->is_on = t->by != FAIR_OFF && table != NULL;
}

void
tenants_fini(struct core *k)
{
    struct fair_table *table = atomic_load(&k->tenants.table);
    fair_table_destroy(&table);
    atomic_store(&k->tenants.table, NULL);
}

static struct fair_table *
table_of(struct core *k)
{
    return atomic_load_explicit(&k->tenants.table, memory_order_relaxed);
}

/* ---- whose it is ----------------------------------------------------------------------- */

static uint32_t
fold(uint64_t hash)
{
    uint32_t key = (uint32_t)(hash ^ hash >> 32);
    return key != 0 ? key : 1;
}

uint32_t
tenants_of(const struct core *k, const struct work *work, enum req_class class)
{
    switch (k->tenants.by) {
    case FAIR_PEER:
        return work->peer != 0 ? fold(work->peer) : 0;
    case FAIR_PREFIX:
        return work->node.tenant;
    case FAIR_CLASS:
        return 1 + (uint32_t) class;
    default:
        return 0;
    }
}

void
tenants_note_key(struct core *k, struct work *work, const struct session *s)
{
    char decoded[REQ_KEY_MAX];
    struct slice key = session_key(s, decoded);
    uint64_t hash;
    bool has_prefix = prefixes_cut(k->env.prefixes, &key, &hash);
    work->node.tenant = has_prefix ? fold(hash) : 0;
    uint8_t place = fair_place(table_of(k), work->node.tenant);
    if (place != 0 && !fair_has_name(table_of(k), place)) {
        fair_set_name(table_of(k), place, key.p, key.len);
    }
}

void
tenants_name(struct core *k, const struct work *work, const struct fair_node *n)
{
    char name[FAIR_NAME_MAX + 1] = "";
    if (n->place == 0 || fair_has_name(table_of(k), n->place)) {
        return;
    }
    if (k->tenants.by == FAIR_CLASS) {
        const char *class = class_name((enum req_class)(n->tenant - 1));
        fair_set_name(table_of(k), n->place, class, strlen(class));
    } else if (k->tenants.by == FAIR_PEER && work->type->describe_peer != NULL) {
        work->type->describe_peer(work, name, sizeof name);
        fair_set_name(table_of(k), n->place, name, strlen(name));
    }
}

/* ---- whether it waits ------------------------------------------------------------------ */

static bool
is_recent(nsec_t at, nsec_t now)
{
    return at != 0 && now < at + TENANTS_RECENT_NS;
}

/* Do requests of several tenants come? */
static bool
are_mixed(struct tenants *t, uint32_t tenant, nsec_t now)
{
    if (tenant != t->last && is_recent(t->last_at, now)) {
        t->mixed_at = now;
    }
    t->last = tenant;
    t->last_at = now;
    return is_recent(t->mixed_at, now);
}

bool
tenants_defer(struct core *k, const struct work *work)
{
    struct tenants *t = &k->tenants;
    nsec_t now = k->pass.woke_at;
    if (!are_mixed(t, tenants_of(k, work, CLASS_SMALL), now)) {
        return false;
    }
    if (t->pass != now) {
        t->pass = now;
        t->is_inline = 0;
    }
    bool waits = k->queue.sched.queues[CLASS_SMALL].waiting.length > 0 ||
                 t->is_inline >= TENANTS_INLINE;
    t->is_inline += !waits;
    ctr_add(&t->deferred, waits);
    return waits;
}

/* ---- counting -------------------------------------------------------------------------- */

void
tenants_count(struct core *k, uint8_t place, unsigned requests, nsec_t used)
{
    struct fair_tenant *tenant = &table_of(k)->tenants[place];
    ctr_add(&tenant->turns, 1);
    ctr_add(&tenant->requests, requests);
    ctr_add(&tenant->used_ns, used);
}

void
tenants_count_tokens(struct core *k, struct work *work)
{
    struct fair_table *table = table_of(k);
    struct waitq_node *wait = &work->ticket.wait;
    /* It has waited for tokens of its address alone, in no tenant's line. */
    if (wait->node.place == 0) {
        wait->node.place = fair_place(table, wait->node.tenant);
        tenants_name(k, work, &wait->node);
    }
    ctr_add(&table->tenants[wait->node.place].tokens, wait->cost);
}
