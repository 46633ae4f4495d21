/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The command line and the file of --config as values: the modules' conf structs, and what is of
 * several modules or of none. Filled once by main before any thread starts; read-only after.
 */
#pragma once

#include "base/must.h"
#include "control/maintenance.h"
#include "front/config.h"
#include "net/listen.h"
#include "net/shared.h"
#include "net/udp.h"
#include "place/placement.h"
#include "proto/rules.h"
#include "qos/class_rules.h"
#include "qos/fair.h"
#include "qos/limiter.h"
#include "qos/slo.h"
#include "qos/steer.h"
#include "serve/env.h"
#include "serve/maint.h"
#include "sock/busypoll.h"
#include "sock/tls.h"
#include "store/store.h"

#define SETTINGS_LOCKED_TIMES 2     /* of -m, what -k needs the right to lock */
#define SETTINGS_FILES_PER_WORKER 5 /* descriptors that a worker needs for itself */
#define SETTINGS_SLAB_SIZES_MAX 62
#define SETTINGS_FRONTS_MAX 32
#define SETTINGS_ADMIN_UNIX "unix:" /* before the path of a UNIX socket in --admin */

enum settings_action {
    ACTION_SERVE,
    ACTION_HELP,
    ACTION_SHORT_HELP,
    ACTION_VERSION,
    ACTION_LICENSE,
    ACTION_PIN_DRY_RUN,
    ACTION_DOCTOR,
    ACTION_CHECK,
};

struct settings {
    enum profile profile;
    enum settings_action action;
    struct config config;
    const char *help_topic;           /* of ACTION_HELP; NULL: all */
    void *state[SETTINGS_FRONTS_MAX]; /* front_state(), which is not read-only */
    /* network */
    struct listen_conf listen;
    struct udp_conf udp;
    int64_t max_conns;
    unsigned requests_per_event;
    uint32_t idle_seconds;
    uint64_t buffer_bytes;
    char *addresses;   /* all -l lists, joined by commas; NULL: all */
    char *socket_text; /* what listen.socket_path points at */
    bool uses_tls;
    struct tls_conf tls;
    /* memory and background work */
    struct store_conf store;
    struct maint_conf maint;
    struct store_automove automove;
    int64_t memory_mb, item_max, chunk_max; /* chunk_max 0: not given */
    uint32_t hash_power;                    /* 0: not given */
    bool has_whole_items;                   /* no chained items */
    uint32_t slab_sizes[SETTINGS_SLAB_SIZES_MAX];
    unsigned slab_size_count; /* 0: by min_space and growth_factor */
    const char *hash_algorithm;
    const char *memory_file; /* slab memory, kept for the next start; NULL: none */
    bool has_temp, tracks_sizes;
    int64_t temp_ttl;
    /* process */
    int64_t threads;
    unsigned verbosity;
    const char *user, *pid_file;
    const char *admin; /* where the HTTP server listens; NULL: there is none */
    bool is_daemon, wants_core, locks_memory;
    /* commands */
    struct serve_conf serve;
    bool is_binding_given;
    uint64_t watcher_log_bytes, worker_log_bytes;
    char prefix_delimiter;
    bool counts_prefixes;
    bool uses_sasl;
    const char *password_file; /* of SASL; NULL: libsasl2 */
    const char *token_file;    /* NULL: none */
    /* quality of service */
    bool is_pinned;
    struct pin_spec pin;
    bool is_steered; /* --steer was given; else it follows from --pin */
    struct membind_spec membind;
    struct limiter_conf limits;
    enum fair_by fair_by;
    struct slo_target slo[SLO_RULES];
    unsigned cpu_percent; /* 0: no limit */
    bool balances;
    struct prio_spec sched;
    struct class_conf classes;
    struct class_rules class_rules;
    struct class_shares class_shares;
    nsec_t class_max_wait;
    struct resctrl_conf resctrl;
    struct busypoll busy_poll;
};

/* Fills *s from argv and the file that it names; prints one line, of a file one for each error,
 * and returns false with *exit_status when something is wrong. *s is to be ended in any case.
 * argv must live as long as *s. */
must_check bool settings_parse(struct settings *s, int argc, char **argv,
                               int *exit_status);
/* The same again, as the files are now; path: in place of the file of --config, or NULL. What is
 * wrong goes to err. Main thread. */
must_check bool settings_parse_again(struct settings *s, const struct settings *old,
                                     const char *path, FILE *err);
void settings_fini(struct settings *s);

/* False, with a line on stderr: there is nothing about the topic. */
must_check bool settings_help(const struct settings *s);
/* --doctor: looks, and prints what was found. Returns the exit status. */
int settings_doctor(struct settings *s);
/* 1.4.39 or 1.6.45: what clients are told. */
const char *settings_version(const struct settings *s);
/* Each front's part of what workers share. */
void settings_wire(const struct settings *s, struct net_shared *shared);

/* How many descriptors there will be, roughly: those of -c, of --admin and of workers, their sockets of
 * UDP, listeners and statistics of the kernel. *least: without these the server does not start. */
unsigned settings_files(const struct settings *s, unsigned *least);
struct maintenance_conf settings_maintenance(void); /* by the environment */
struct placement_conf settings_placement(const struct settings *s);
