/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A class of load as asked for: what one set of threads, with connections of its own, sends.
 * A run has one or several. Filled by the option table at start; constant afterwards.
 */
#pragma once

#include "loadgen/drive/reader.h"
#include "loadgen/drive/traffic.h"
#include "loadgen/measure/check.h"
#include "loadgen/wire/codec.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/mix.h"
#include "loadgen/work/model.h"
#include "loadgen/work/popularity.h"
#include "loadgen/work/workload.h"

#define LCLASS_NAME_MAX 32

/* A line of --auth-file: name, colon, password and its end. */
#define CLASS_SECRET_BYTES (2 * CODEC_AUTH_MAX + 4)

struct antagonist;

/* Moved as a whole only while its name and prefix are not its own. */
struct lclass {
    const char *name;  /* "all" when it is the only one and has none */
    bool is_measuring; /* its latencies are those of the run */
    char *words;       /* the text of its options; owned, NULL: none */
    char own_name[LCLASS_NAME_MAX + 1];
    char own_prefix[WORKLOAD_PREFIX_MAX + LCLASS_NAME_MAX + 2];

    /* ---- options/protocol.c */
    const struct codec *codec;
    bool is_binary;
    const char *username, *password; /* password NULL: no authentication */
    const char *auth_file;           /* NULL: none */
    char secret[CLASS_SECRET_BYTES]; /* what it says */

    /* ---- options/load.c */
    int64_t threads, connections, depth, qps; /* qps 0: closed loop, */
    double qps_share; /* or this share of the peak, which is measured before; 0: none */
    double spin_us;
    bool is_blocking, no_nodelay;
    bool is_roundrobin; /* servers are dealt out to the threads */

    /* ---- options/traffic.c */
    struct traffic traffic; /* as parsed: rate and schedule are settled for each run */
    bool has_mode, has_sessions, is_moderate;
    bool skips; /* late requests are dropped where there is a rate */

    /* ---- options/trace.c */
    struct lclass_trace {
        struct trace_conf file; /* path NULL: no trace */
        enum reader_order order;
        enum trace_spread spread;
        double speed; /* as struct reader_conf has it */
        bool has_time;
        uint64_t remap;
        uint64_t load_max; /* keys stored before the run; 0: none */
    } trace;

    /* ---- options/workload.c */
    struct workload_conf workload; /* its `verify` is below 0 where it is not given */
    /* as given; what has a name, a file or a text; NULL: none */
    const char *workload_word;
    const struct model *model; /* which that is */
    bool wants_models;         /* only their list */
    bool shows_model;          /* only what it says */
    const char *getcount_text; /* as given; NULL: not given */
    double multiget_share;     /* of gets that have so many keys; below 0: all */
    bool no_load;
    bool has_update, has_ops; /* of what is being parsed */

    /* ---- options/antagonist.c */
    const struct antagonist *antagonist; /* NULL: none */

    /* ---- options/slo.c */
    struct objective slo; /* all zero: none */
};
