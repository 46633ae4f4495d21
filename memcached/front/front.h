/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A front is what a feature shows of itself outside: its options, its run-time commands, its
 * statistics, and its way into the modules; one file each. The tables of all (options and
 * --help, "qos" and "qos help", "stats ...") are made of the fronts' rows, in the order of the
 * list in front.c. To add an option: its row in its front, its field in the module's conf
 * struct or in struct settings, a paragraph in doc/memcached.1.
 */
#pragma once

#include "base/opt.h"
#include "base/phrase.h"
#include "front/settings.h"
#include "front/stats.h"
#include "serve/env.h"

/* ---- rows ----------------------------------------------------------------------------- */

/* Sections of the help. */
enum front_section {
    NETWORK,
    MEMORY,
    LRU,
    THREADS,
    QOS,
    AUTH,
    COMMANDS,
    PROCESS,
    COMPAT,
};

#define FRONT_USAGE 64 /* exit status for what is wrong with options */

/* A row's field in struct settings. */
#define OF(field) OPT_FIELD(struct settings, field)
/* What a CALL of struct settings does. */
#define SET(function) .kind = OPT_CALL, .call = function
/* And of a field alone, which function(the field, text) fills. */
#define PARSE(function, field) .kind = OPT_PARSE, .call = function, OF(field)

/* Runs one sub-command; q->words begin behind its own word, and their number is within the
 * row's bounds. Returns the reply. REPLY_BAD_FORMAT stands for the row's usage; front_refuse
 * tells more. Any worker. */
typedef enum reply qos_handler(struct stats *st, struct serve_qos *q);

struct qos_row {
    const char *word;
    const char *arguments; /* as the usage reply shows them */
    unsigned least, most;  /* words behind its own */
    bool is_control;       /* changes how others are served: where --control allows it */
    qos_handler *run;
    const char *meaning;
    const char *after; /* the word that it follows; NULL: the one before it */
};

/* A question for statistics; the answer may be told in pieces, as the hooks of serve/env.h. */
struct stats_query {
    const struct slice *words; /* behind the group's name */
    unsigned count;
    uint32_t now;
    struct serve_place *place;
    struct sink *sink;
};

/* "stats NAME". Returns the closing reply, NONE when it is to be called again. Any worker. */
struct stats_group {
    const char *name;
    enum reply (*show)(struct stats *st, const struct stats_query *ask);
};

/* A counter of each worker that is told as the sum of all. */
struct stats_counter {
    const char *name;
    size_t offset; /* of a ctr_t in struct worker */
};
#define COUNTER_OF(field) offsetof(struct worker, field)

#define ROWS_OF(table) (table), sizeof(table) / sizeof(table)[0]
#define OPTIONS(table)                                                                   \
    .options = (table), .option_count = sizeof(table) / sizeof(table)[0]
#define COMMANDS(table)                                                                  \
    .commands = (table), .command_count = sizeof(table) / sizeof(table)[0]
#define GROUPS(table) .groups = (table), .group_count = sizeof(table) / sizeof(table)[0]

/* What options that go together are told. */
struct settling {
    int status; /* exit status of what is wrong: FRONT_USAGE, or what is put here */
    FILE *err;  /* for warnings */
};

/* Members that a feature does not need are left out. */
struct front {
    const struct opt *options;
    size_t option_count;
    const struct qos_row *commands;
    size_t command_count;
    const struct stats_group *groups;
    size_t group_count;
    const char *missing; /* why this build refuses all of its options */
    int usage;           /* exit status on a bad value, where a row has none; 0: 1 */
    size_t state_bytes;  /* of its own, zeroed at the start: front_state() */
    /* Defaults that are no row's. Start-up thread, as the next three. */
    void (*init)(struct settings *s);
    /* All options are known: checks, and fills in what follows from others. NULL, or a
     * sentence. */
    const char *(*settle)(struct settings *s, struct settling *to);
    void (*wire)(const struct settings *s, struct net_shared *shared);
    /* The workers have started, and have no connections yet. False: no memory. */
    bool (*start)(struct stats *st);
    void (*second)(struct stats *st); /* once a second, by the thread in the background */
    void (*stop)(struct stats *st);
    /* Its lines of "stats qos". Any worker. */
    void (*show)(struct stats *st, struct sink *sink);
};

extern const struct front front_server, front_limit, front_slo, front_headroom,
    front_threads, front_steer, front_pin, front_class, front_class_memory, front_fair,
    front_latency, front_udp, front_network, front_memory, front_lru, front_items,
    front_auth, front_tls, front_process, front_config, front_doctor, front_admin,
    front_compat;

/* ---- the tables made of them ---------------------------------------------------------- */

/* All options in the order of the help. Start-up thread. */
struct opt_table front_options(enum profile profile);
/* The n-th front; NULL: there are no more. */
const struct front *front_at(unsigned n);
/* The state of its own that a front has; *s may be const, the state is not. */
void *front_state(const struct settings *s, const struct front *front);

/* The hooks of serve/env.h; ctx is the struct stats. */
enum reply front_qos(void *ctx, struct serve_qos *q);
enum reply front_stats(void *ctx, const struct slice *words, unsigned count, uint32_t now,
                       struct serve_place *place, struct sink *sink);
/* The lines of "stats qos" of all, a front at a time. */
enum reply front_show_qos(struct stats *st, struct serve_place *place, struct sink *sink);
/* "qos help" and "qos help WORD". */
qos_handler front_qos_help;

/* ---- for handlers --------------------------------------------------------------------- */

/* Answers "CLIENT_ERROR <text>". To be returned by a handler. */
__attribute__((format(printf, 2, 3))) enum reply front_refuse(struct serve_qos *q,
                                                              const char *fmt, ...);
/* What is refused to a connection or datagram that may not control; says what would allow it. */
enum reply front_refuse_control(const struct stats *st, struct serve_qos *q);
/* A sentence with values in it; valid until the next one. Start-up thread. */
__attribute__((format(printf, 1, 2))) const char *front_say(const char *fmt, ...);
/* "option: error"; NULL: nothing is wrong. */
const char *front_blame(const char *option, const char *error);

/* ---- of features, for others ---------------------------------------------------------- */

/* Where --threads leaves their number to --pin and the machine. Start-up thread. */
void threads_count(struct settings *s);
struct limit_counts {
    uint64_t admitted, delayed, rejected, would_limit;
};
/* Of all classes. */
struct limit_counts limit_counts(const struct stats *st);
/* What a class has of the memory: lines of "stats classes". */
void class_memory_show(struct stats *st, enum req_class class, struct sink *sink);
uint64_t slo_shed(const struct stats *st);
/* The share of requests that the targets let through now. */
double slo_level_pct(const struct stats *st);
/* How much room there was in the last whole second, asking the kernel nothing; below 0: not known
 * yet. */
double headroom_pct(struct stats *st);

/* ---- for statistics ------------------------------------------------------------------- */

struct hist;
uint64_t front_sum(const struct stats *st, size_t offset);
/* Adds the histogram that each worker points at from there. */
void front_merge(const struct stats *st, size_t offset, struct hist *sum);
/* "name value" of each row. */
void front_put_counters(const struct stats *st, struct sink *sink,
                        const struct stats_counter *rows, size_t count);
/* "<name>" or "<name>_<suffix>". */
#define FRONT_NAME_MAX 64
const char *front_name(const char *name, const char *suffix, char to[FRONT_NAME_MAX]);
/* "<name>_p50_us", p95, p99 and max. */
void front_put_quantiles(struct sink *sink, const char *name, const struct hist *h);
static inline double
front_us(uint64_t ns)
{
    return (double)ns / (double)NSEC_PER_USEC;
}
static inline uint64_t
front_relaxed(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}
static inline const char *
front_on(bool is_on)
{
    return is_on ? "on" : "off";
}
