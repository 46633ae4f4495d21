/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The command line: one table of options, mutilate's names, meanings and defaults where it
 * has them. What concerns a class of load stands in struct lclass, the rest, once a run, in
 * struct options. Start-up thread; constant afterwards.
 */
#pragma once

#include "base/opt.h"
#include "loadgen/options/lclass.h"
#include "loadgen/measure/check.h"
#include "loadgen/measure/until.h"
#include "loadgen/search/goal.h"
#include "loadgen/search/scan.h"
#include "loadgen/wire/engine.h"
#include "loadgen/wire/ltls.h"
#include "loadgen/wire/shard.h"
#include "loadgen/wire/stamps.h"
#include "loadgen/wire/target.h"
#include "loadgen/swarm/allow.h"
#include "loadgen/swarm/message.h"

/* ---- models ----------------------------------------------------------------------- */

/* The workloads that a command line names (--workload): those with a name, files, which are
 * read once however often they are named, and texts. Start-up thread. */
/* A file or a text that was read. */
struct models_entry {
    struct model model;
    char *word; /* what it was named by; owned */
    char *text; /* what `model` points into; owned */
};

/* All zero: none so far. */
struct models {
    struct models_entry **entries; /* owned */
    unsigned count;
};

/* The workload that `word` names, which is a name, MODEL_TEXT and a text, or a file. NULL with a line in `err`. */
must_check const struct model *models_get(struct models *all, const char *word,
                                          FILE *err);
/* Sets what the model tells, as its options would. False with a line in `err`, which a text
 * of the user's own can be the cause of. */
must_check bool models_apply(const struct model *m, struct lclass *c, FILE *err);
/* The same of a file or a text that was read before; NULL when it is none. */
const struct model *models_known(const struct models *all, const char *word);
void models_fini(struct models *all);

/* ---- options ----------------------------------------------------------------------- */

#define OPTIONS_SERVERS_MAX 1024
#define OPTIONS_CLASSES_MAX 32
#define OPTIONS_THREADS_MAX 1024

/* Exit statuses of mcload. */
enum exit_status {
    EXIT_VALID = 0,
    EXIT_USAGE = 1,
    EXIT_UNREACHABLE = 2, /* could not connect, load or set up */
    EXIT_INVALID = 3,     /* the run says nothing about the server */
    EXIT_MISSED = 4,      /* it does: an objective is not met (--assert) */
};

/* A line on `err`, after the program's name; returns the status. */
enum exit_status options_fail(FILE *err, enum exit_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum options_progress {
    PROGRESS_AUTO, /* when stderr is a terminal */
    PROGRESS_NONE,
    PROGRESS_ALWAYS,
};

enum options_help {
    HELP_NONE,
    HELP_ALL,
    HELP_COMMON,
};

enum options_format {
    FORMAT_TEXT,
    FORMAT_MUTILATE,
    FORMAT_MUTILATE_TEXT, /* its table, then the summary of the text */
    FORMAT_JSON,
    FORMAT_CSV,
};

#define OPTIONS_PERCENTILES_MAX 32
#define OPTIONS_NAME_MAX 24

/* What becomes of a run that loses an agent. */
enum options_loss {
    LOSS_DEFAULT,
    LOSS_ABORT,
    LOSS_CONTINUE,
    LOSS_ACCEPT, /* continue, and the run may be valid all the same */
    LOSS_REPEAT,
};

/* What a rate is shared out by. */
enum options_split {
    SPLIT_WEIGHT,
    SPLIT_CAPACITY,
};

#define OPTIONS_AGENT_MAX 256
#define OPTIONS_TRACES_MAX 16

struct options_agent {
    char at[OPTIONS_AGENT_MAX]; /* HOST[:PORT] and the like */
    enum message_role role;
};

#define BUSY_POLL_ALWAYS (-1)

struct options {
    /* What stands outside of classes, as it was written: rows of classes work on it here, so
     * it is first. What is sent is in the classes. */
    struct lclass base;
    struct lclass *classes;
    unsigned classes_len; /* at least 1 */
    struct models models; /* what their workloads are, if no name's */

    /* ---- options/classes.c */
    const char *class_texts[OPTIONS_CLASSES_MAX];
    unsigned class_texts_len;
    int64_t measure_connections, measure_qps, measure_depth; /* below 0: not given */
    bool asserts;

    /* ---- options/target.c */
    char *servers[OPTIONS_SERVERS_MAX]; /* each one address; owned */
    unsigned servers_len;
    enum transport transport; /* of those that do not say */
    enum shard_law shard;     /* how they share the keys */
    struct ltls_conf tls;
    int64_t src_port; /* of the first connection, the next ones follow; 0: any */

    /* ---- options/measure.c */
    double time_s, warmup_s, warmup_drain_s, timeout_s, wait_s;
    bool has_auto_warmup; /* then warmup_s is 0 */
    double warmup_qps;    /* of all its requests; 0: as the schedule begins */
    double interval_s;    /* between rows of the report */
    bool shows_intervals, by_size;
    double server_stats_s; /* between questions for stats; 0: none */
    bool load_only;
    enum counters_from from;
    uint64_t seed;
    struct check_limits limits;
    struct until until;
    bool has_time; /* given: else one that ends by itself has longer */

    /* ---- options/host.c */
    const struct engine *engine;
    bool wants_engines; /* only their list */
    bool has_affinity;
    const char *cpus;
    int fifo_priority; /* 0: ordinary scheduling */
    /* of threads without anything to do; BUSY_POLL_ALWAYS: they never sleep */
    int64_t busy_poll_us;
    enum stamps_by stamps;
    const char *interface; /* STAMPS_CARD */
    bool has_numa;
    int numa; /* memory node, below 0: all in turn */

    /* ---- options/search.c */
    struct goal goal;           /* of a search */
    double tolerance, budget_s; /* budget_s 0: so many runs */
    struct scan_range scan;
    enum scan_order scan_order;
    struct goal stop_goal; /* stops a scan at the first load above it */
    unsigned varied;       /* class whose rate a search or a scan varies */
    bool is_told;          /* they are a leader's, which says each run's rates */
    int64_t repeat;

    /* ---- options/swarm.c */
    bool is_agent, is_insecure_agent, allows_udp;
    const char *agent_address; /* NULL: not given */
    struct options_agent agents[MESSAGE_AGENTS_MAX];
    unsigned agents_len;
    int64_t agent_port, weight;
    enum options_split split;
    double agent_wait_s;  /* for an agent's results */
    const char *key_file; /* NULL: no key */
    struct allow agent_allow;
    const char *agent_traces[OPTIONS_TRACES_MAX]; /* directories */
    unsigned agent_traces_len;
    int64_t agent_max_qps, agent_max_conns, agent_max_bytes; /* 0: no limit */
    double agent_max_time;
    enum options_loss on_agent_loss;

    /* ---- options/output.c */
    const char *json, *output, *hgrm, *hlog, *plot, *save;
    double sample; /* share of requests that save has */
    bool has_sample, shows_env;
    enum options_format format;
    double percentiles[OPTIONS_PERCENTILES_MAX]; /* of the table, shares */
    unsigned percentiles_len;
    enum options_progress progress;
    unsigned verbose;
    bool is_quiet;
    enum options_help help;
    const char *help_topic; /* NULL: all */
    bool wants_version, wants_models;
    const struct model *shown; /* only this one's text; NULL: none */
};
_Static_assert(offsetof(struct options, base) == 0, "one conf for rows of both kinds");

const struct opt_table *options_table(void);
/* The rows among them that a class may have, for a struct lclass. */
const struct opt_table *options_class_table(void);

/* The column of a percentile, 0.95 or 0.999, in tables: "95th", "p999"; letters and digits only. */
void options_percentile_name(double q, char name[OPTIONS_NAME_MAX]);

/* Whether servers that speak the protocols of all classes can be asked for `stats` in text. */
bool options_have_stats(const struct options *o);

/* Whether a class has a trace. */
bool options_replay(const struct options *o);

/* The number of the class of that name; below 0: there is none. */
int options_class_named(const struct options *o, const char *name);

/* How many agents have this role. */
unsigned options_agents_in(const struct options *o, enum message_role role);

/* Whether classes were asked for: else there is one, which is the whole run. */
bool options_has_classes(const struct options *o);

/* Fills in defaults, parses argv, checks options against each other. False with a line in
 * `err`. */
must_check bool options_parse(struct options *o, int argc, char **argv, FILE *err);
/* The same of what a leader tells an agent. */
must_check bool options_parse_told(struct options *o, int argc, char **argv, FILE *err);
/* Also after a failed options_parse. */
void options_fini(struct options *o);
