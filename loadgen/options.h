/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The command line: one table of options, mutilate's names, meanings and defaults where it
 * has them. Start-up thread; constant afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/opt.h"
#include "loadgen/work/arrival.h"
#include "loadgen/wire/codec.h"
#include "loadgen/work/dist.h"
#include "loadgen/drive/drive.h"
#include "loadgen/work/mix.h"
#include "loadgen/work/model.h"
#include "loadgen/work/popularity.h"

#define OPTIONS_SERVERS_MAX 64
#define OPTIONS_THREADS_MAX 1024

/* Exit statuses of mcload. */
enum exit_status {
    EXIT_VALID = 0,
    EXIT_USAGE = 1,
    EXIT_UNREACHABLE = 2, /* could not connect, load or set up */
    EXIT_INVALID = 3,     /* the run says nothing about the server */
};

enum options_progress {
    PROGRESS_AUTO, /* when stderr is a terminal */
    PROGRESS_NONE,
    PROGRESS_ALWAYS,
};

struct options {
    const char *servers[OPTIONS_SERVERS_MAX];
    unsigned servers_len;
    const struct codec *codec;
    bool is_binary;
    const char *username, *password; /* password NULL: no authentication */
    double time_s, warmup_s, timeout_s, spin_us;
    int64_t threads, connections, depth, qps, records, getcount;
    const struct model *model; /* NULL: none */
    bool wants_models;
    struct mix mix;
    bool fills;
    double verify; /* below 0: not given */
    struct dist key_size, value_size, expiry;
    struct arrival_law arrivals;
    enum drive_scope scope;
    struct popularity popularity;
    const char *key_prefix;
    bool is_blocking, no_load, load_only, no_nodelay;
    bool drops_late, from_issue;
    bool has_affinity;
    const char *cpus;
    int fifo_priority; /* 0: ordinary scheduling */
    uint64_t seed;
    const char *json;
    enum options_progress progress;
    unsigned verbose;
    bool is_quiet;
    bool wants_help, wants_version;
};

const struct opt_table *options_table(void);

/* Fills in defaults, parses argv, checks options against each other. False with a line in
 * `err`. */
must_check bool options_parse(struct options *o, int argc, char **argv, FILE *err);
/* Also after a failed options_parse. */
void options_fini(struct options *o);
