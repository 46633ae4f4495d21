/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The command line as values. Filled once by main before any thread starts; read-only after.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "control/maintenance.h"
#include "net/listen.h"
#include "net/shared.h"
#include "net/udp.h"
#include "place/placement.h"
#include "proto/rules.h"
#include "qos/class_rules.h"
#include "qos/limiter.h"
#include "qos/slo.h"
#include "qos/steer.h"
#include "serve/env.h"
#include "serve/orders.h"
#include "sock/busypoll.h"
#include "sock/tls.h"
#include "store/store.h"

#define SETTINGS_FILES_PER_WORKER 5 /* descriptors that a worker needs for itself */
#define SETTINGS_CHUNK_MAX_14 STORE_PAGE_BYTES /* the largest chunk of 1.4 */
#define SETTINGS_PORT_UNSET (-2)               /* while the options are read */
#define SETTINGS_THREADS_MAX 1024
#define SETTINGS_THREADS_DEFAULT 4
#define SETTINGS_THREADS_UNSET (-1) /* while the options are read */
#define SETTINGS_THREADS_AUTO 0     /* likewise: as many as there are CPUs */
#define SETTINGS_PORT_DEFAULT 11211
#define SETTINGS_SLAB_SIZES_MAX 62

/* For rows of options that a build without TLS refuses. */
#define TLS_KIND(kind) (HAVE_TLS ? (kind) : OPT_REFUSE)
#define TLS_ERROR(text) (HAVE_TLS ? (text) : "This server is not built with TLS support.")
#define IF_TLS(text) (HAVE_TLS ? (text) : NULL)

enum settings_action {
    ACTION_SERVE,
    ACTION_HELP,
    ACTION_SHORT_HELP,
    ACTION_VERSION,
    ACTION_LICENSE,
    ACTION_PIN_DRY_RUN,
};

struct settings {
    enum profile profile;
    enum settings_action action;
    const char *help_topic; /* of ACTION_HELP; NULL: all */
    /* network */
    enum serve_binding binding;
    bool is_binding_given;
    int64_t port, udp_port, backlog, max_conns, requests_per_event, idle_timeout;
    int64_t buffer_mb;
    char *addresses; /* all -l lists, joined by commas; NULL: all */
    const char *socket_path;
    char *socket_text; /* what socket_path points at */
    struct hosts_marks socket_marks;
    enum listen_control control;
    int64_t socket_mode;
    bool rejects_fast;
    bool shares_udp;
    struct guard_conf udp_guard;
    bool uses_tls, tls_caches_sessions, tls_wants_kernel;
    const char *tls_chain_cert, *tls_key, *tls_ca_cert, *tls_ciphers; /* NULL: none */
    int64_t tls_verify_mode, tls_key_format, tls_record_kb, tls_min_version;
    /* memory */
    int64_t memory_mb, min_space, item_max, chunk_max, hash_power;
    double growth_factor;
    bool never_evicts, no_cas, no_hash_growth, no_inline_suffix, preallocates;
    bool has_whole_items; /* no chained items */
    uint32_t slab_sizes[SETTINGS_SLAB_SIZES_MAX];
    unsigned slab_size_count; /* 0: by min_space and growth_factor */
    const char *hash_algorithm;
    const char *memory_file; /* slab memory, kept for the next start; NULL: none */
    int64_t tail_repair_s;   /* 0: never */
    /* LRU and background work */
    bool has_maintainer, is_segmented, has_temp, has_crawler, can_reassign, tracks_sizes;
    int64_t hot_pct, warm_pct, temp_ttl;
    double hot_factor, warm_factor;
    int64_t crawler_sleep_us, crawler_items;
    int64_t automove_level, automove_window;
    double automove_ratio;
    /* process */
    int64_t threads;
    unsigned verbosity;
    const char *user, *pid_file;
    bool is_daemon, wants_core, locks_memory;
    /* commands */
    int64_t watcher_log_kb, worker_log_kb;
    char prefix_delimiter;
    bool counts_prefixes, no_watch;
    bool no_flush, no_dump, allows_shutdown, allows_debug;
    bool uses_sasl;
    const char *password_file; /* of SASL; NULL: libsasl2 */
    const char *token_file;    /* NULL: none */
    /* quality of service */
    bool is_pinned;
    struct pin_spec pin;
    bool is_steered; /* --steer was given; else it follows from --pin */
    enum steer_mode steer;
    int64_t napi_ids; /* -N: receive queues that are told apart; 0: no such option */
    struct membind_spec membind;
    struct limiter_conf limits;
    struct slo_target slo[SLO_RULES];
    unsigned cpu_percent; /* 0: no limit */
    bool balances;
    struct prio_spec sched;
    bool has_classes;
    int64_t bulk_keys, bulk_bytes;
    struct class_rules class_rules;
    struct class_shares class_shares;
    nsec_t class_max_wait;
    struct resctrl_conf resctrl;
    struct busypoll busy_poll;
};

/* Fills *s from argv; prints one line and returns false with *exit_status when something is
 * wrong. argv's strings must live as long as *s. */
must_check bool settings_parse(struct settings *s, int argc, char **argv,
                               int *exit_status);
void settings_fini(struct settings *s);
/* The part of settings_parse that looks at several options together; fills in what one
 * leaves to another. */
must_check bool settings_check(struct settings *s, int *exit_status);

/* False, with a line on stderr: there is nothing about the topic. */
must_check bool settings_help(const struct settings *s);
/* 1.4.39 or 1.6.45: what clients are told. */
const char *settings_version(const struct settings *s);
/* The lines of "stats settings" that the table alone can tell. `hook` is asked for the
 * values that change at run time: returns false when it does not know the name. */
void settings_stats(const struct settings *s, struct sink *sink,
                    bool (*hook)(void *ctx, const char *name, struct sink *sink),
                    void *ctx);

/* The modules' own conf structs. */
struct store_conf settings_store(const struct settings *s);
struct listen_conf settings_listen(const struct settings *s);
struct tls_conf settings_tls(const struct settings *s);
struct udp_conf settings_udp(const struct settings *s);
/* How many workers serve each UDP address. */
unsigned settings_udp_workers(const struct settings *s);
/* How many descriptors there will be for each worker beside SETTINGS_FILES_PER_WORKER, roughly
 * and for all of them: sockets of UDP, listeners, statistics of the kernel. */
unsigned settings_worker_files(const struct settings *s);
struct serve_conf settings_serve(const struct settings *s);
/* The part of what workers share that the options say. */
void settings_shared(const struct settings *s, struct net_shared *shared);
/* The background thread's part, and that of the automover. */
struct orders_conf settings_orders(const struct settings *s);
struct store_automove settings_automove(const struct settings *s);
struct maintenance_conf settings_maintenance(void); /* by the environment */
struct placement_conf settings_placement(const struct settings *s);
