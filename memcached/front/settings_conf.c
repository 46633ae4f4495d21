/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the modules are told of the options: their conf structs.
 */
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "front/settings.h"

#define HASH_POWER_DEFAULT 16

/* The charged bytes of a test that wants to see more than 32 bits. */
static uint64_t
initial_malloced(void)
{
    const char *text = getenv("T_MEMD_INITIAL_MALLOC");
    uint64_t bytes;
    return text != NULL && num_u64(text, strlen(text), &bytes) ? bytes : 0;
}

struct store_conf
settings_store(const struct settings *s)
{
    return (struct store_conf){
        .limit_bytes = (uint64_t)s->memory_mb << 20,
        .growth_factor = s->growth_factor,
        .min_space = (uint32_t)s->min_space,
        .item_max = (uint32_t)s->item_max,
        .chunk_max = (uint32_t)s->chunk_max,
        .hash_power = s->hash_power != 0 ? (unsigned)s->hash_power : HASH_POWER_DEFAULT,
        .threads = (unsigned)s->threads,
        .hash_seed = rng_seed(),
        .initial_malloced = initial_malloced(),
        .use_cas = !s->no_cas,
        .can_evict = !s->never_evicts,
        .can_grow_hash = !s->no_hash_growth,
        .whole_pages = s->can_reassign || s->chunk_max != SETTINGS_CHUNK_MAX_14,
        .inline_suffix = !s->no_inline_suffix,
        .sizes = s->slab_size_count > 0 ? s->slab_sizes : NULL,
        .size_count = s->slab_size_count,
        .preallocates = s->preallocates,
        .can_reassign = s->can_reassign,
        .keeps_pages_when_full = !rules_of(s->profile)->mover_may_evict,
        .tail_repair_seconds = (uint32_t)s->tail_repair_s,
        .lru = {.is_segmented = s->is_segmented,
                .hot_pct = (unsigned)s->hot_pct,
                .warm_pct = (unsigned)s->warm_pct,
                .hot_factor = s->hot_factor,
                .warm_factor = s->warm_factor,
                .temp_ttl = s->has_temp ? s->temp_ttl : -1},
    };
}

struct listen_conf
settings_listen(const struct settings *s)
{
    return (struct listen_conf){
        .addresses = s->addresses,
        .rules = {.has_prefixes = rules_of(s->profile)->has_listen_prefixes,
                  .has_tls = s->uses_tls},
        .port = (int)s->port,
        .udp_port = (int)s->udp_port,
        .socket_path = s->socket_path,
        .socket_marks = s->socket_marks,
        .control = s->control,
        .socket_mode = (unsigned)s->socket_mode,
        .backlog = (int)s->backlog,
        /* What the workers need for themselves is counted as upstream counts it. */
        .max_conns =
            (unsigned)(s->max_conns - s->threads * SETTINGS_FILES_PER_WORKER - 1),
        .rejects_fast = s->rejects_fast,
        .port_file = getenv("MEMCACHED_PORT_FILENAME"),
        .steer = s->steer,
        .napi_ids = (unsigned)s->napi_ids,
    };
}

struct tls_conf
settings_tls(const struct settings *s)
{
    return (struct tls_conf){
        .chain_cert = s->tls_chain_cert,
        .key = s->tls_key,
        .ca_cert = s->tls_ca_cert,
        .ciphers = s->tls_ciphers,
        .key_format = (int)s->tls_key_format,
        .verify_mode = (unsigned)s->tls_verify_mode,
        .min_version = (unsigned)s->tls_min_version,
        .record_bytes = (size_t)s->tls_record_kb * 1024,
        .caches_sessions = s->tls_caches_sessions,
        .wants_kernel = s->tls_wants_kernel,
    };
}

struct udp_conf
settings_udp(const struct settings *s)
{
    return (struct udp_conf){.guard = s->udp_guard, .is_shared = s->shares_udp};
}

unsigned
settings_udp_workers(const struct settings *s)
{
    bool is_list = s->addresses != NULL && strchr(s->addresses, ',') != NULL;
    return is_list && rules_of(s->profile)->udp_lists_have_one_worker
               ? 1
               : (unsigned)s->threads;
}

unsigned
settings_worker_files(const struct settings *s)
{
    unsigned addresses = 2; /* a host may have one of each family */
    for (const char *p = s->addresses; p != NULL && *p != '\0'; p++) {
        addresses += *p == ',' || *p == ';' ? 2 : 0;
    }
    unsigned kinds = (s->udp_port != LISTEN_PORT_OFF) + (s->steer == STEER_REUSEPORT);
    unsigned sockets = s->socket_path != NULL ? 0 : kinds * addresses;
    unsigned schedstats = s->balances + (s->sched.policy == PRIO_SLICE);
    return (sockets + schedstats) * (unsigned)s->threads;
}

void
settings_shared(const struct settings *s, struct net_shared *shared)
{
    shared->busy_poll = s->busy_poll;
    shared->core.requests_per_event = (unsigned)s->requests_per_event;
    shared->buffer_bytes = (uint64_t)s->buffer_mb << 20;
    shared->worker_count = (unsigned)s->threads;
    shared->idle_seconds = (uint32_t)s->idle_timeout;
    shared->core.classes =
        class_conf_make(s->has_classes, (uint32_t)s->bulk_keys, (uint64_t)s->bulk_bytes);
    shared->core.class_rules = s->class_rules;
    shared->core.class_shares = s->class_shares;
    shared->core.class_max_wait = s->class_max_wait;
}

struct placement_conf
settings_placement(const struct settings *s)
{
    return (struct placement_conf){
        .workers = (unsigned)s->threads,
        .items_mb = (uint64_t)s->memory_mb,
        .pin = s->pin,
        .membind = s->membind,
        .sched = s->sched,
        .resctrl = s->resctrl,
    };
}

struct serve_conf
settings_serve(const struct settings *s)
{
    return (struct serve_conf){
        .rules = rules_of(s->profile),
        .binding = s->binding,
        .version = settings_version(s),
        .use_cas = !s->no_cas,
        .allows_flush = !s->no_flush,
        .allows_shutdown = s->allows_shutdown,
        .allows_debug = s->allows_debug,
        .allows_dump = !s->no_dump,
        .allows_watch = !s->no_watch,
    };
}

struct orders_conf
settings_orders(const struct settings *s)
{
    return (struct orders_conf){
        .has_maintainer = s->has_maintainer,
        .has_crawler = s->has_crawler,
        .crawler_sleep_us = (uint32_t)s->crawler_sleep_us,
        .crawler_tocrawl = (uint32_t)s->crawler_items,
    };
}

struct store_automove
settings_automove(const struct settings *s)
{
    return (struct store_automove){.level = (unsigned)s->automove_level,
                                   .ratio = s->automove_ratio,
                                   .window = (unsigned)s->automove_window};
}

/* A variable of upstream: a step's size. What is no number, or 0, is 1, as there. */
static unsigned
step_of(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    uint32_t step;
    if (text == NULL) {
        return otherwise;
    }
    if (!num_u32(text, strlen(text), &step) || step == 0) {
        return 1;
    }
    return step < MAINTENANCE_STEP_MAX ? step : MAINTENANCE_STEP_MAX;
}

struct maintenance_conf
settings_maintenance(void)
{
    return (struct maintenance_conf){
        .grow_buckets = step_of("MEMCACHED_HASH_BULK_MOVE", MAINTENANCE_GROW_BUCKETS),
        .move_chunks = step_of("MEMCACHED_SLAB_BULK_CHECK", MAINTENANCE_MOVE_CHUNKS),
    };
}
