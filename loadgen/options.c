/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "base/num.h"
#include "loadgen/work/workload.h"

#define SPIN_DEFAULT_US 50
#define TIMEOUT_DEFAULT_S 10
/* Only of values that this run has stored itself: others may have another form. */
#define VERIFY_DEFAULT 0.01
#define TIME_MAX_S 1e6
#define RECORDS_MAX 1e12
#define DEPTH_MAX 4096
#define CONNECTIONS_MAX 65536
#define QPS_MAX 1e8
#define NOT_YET "not supported yet"

static const char *
call_server(void *conf, const char *text)
{
    struct options *o = conf;
    if (o->servers_len == OPTIONS_SERVERS_MAX) {
        return "too many servers";
    }
    o->servers[o->servers_len++] = text;
    return NULL;
}

static const char *
call_protocol(void *conf, const char *text)
{
    struct options *o = conf;
    o->codec = codec_find(text);
    return o->codec != NULL ? NULL
                            : "the protocols are ascii, meta, binary, redis and http";
}

static const char *
replace_dist(struct dist *d, const char *text)
{
    dist_fini(d);
    return dist_parse(d, text);
}

static const char *
call_keysize(void *conf, const char *text)
{
    return replace_dist(&((struct options *)conf)->key_size, text);
}

static const char *
call_valuesize(void *conf, const char *text)
{
    return replace_dist(&((struct options *)conf)->value_size, text);
}

static const char *
call_arrivals(void *conf, const char *text)
{
    struct options *o = conf;
    arrival_law_fini(&o->arrivals);
    return arrival_parse(&o->arrivals, text);
}

static const char *
call_scope(void *conf, const char *text)
{
    static const char *const names[] = {
        [DRIVE_TOTAL] = "total",
        [DRIVE_THREAD] = "thread",
        [DRIVE_CONN] = "connection",
    };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            ((struct options *)conf)->scope = (enum drive_scope)i;
            return NULL;
        }
    }
    return "the scope of arrivals is total, thread or connection";
}

static const char *
call_update(void *conf, const char *text)
{
    double share;
    if (!num_double(text, strlen(text), &share) || share < 0 || share > 1) {
        return "the share of sets must be between 0 and 1";
    }
    mix_of_update(&((struct options *)conf)->mix, share);
    return NULL;
}

static const char *
call_ops(void *conf, const char *text)
{
    return mix_parse(&((struct options *)conf)->mix, text);
}

static const char *
call_expiry(void *conf, const char *text)
{
    return replace_dist(&((struct options *)conf)->expiry, text);
}

static const char *
call_on_miss(void *conf, const char *text)
{
    struct options *o = conf;
    o->fills = strcmp(text, "set") == 0;
    return o->fills || strcmp(text, "ignore") == 0
               ? NULL
               : "a miss is ignored or followed by a set";
}

static const char *
call_workload(void *conf, const char *text)
{
    struct options *o = conf;
    o->wants_models = strcmp(text, "help") == 0;
    o->model = model_find(text);
    return o->wants_models || o->model != NULL
               ? NULL
               : "unknown workload: --workload=help lists them";
}

static const char *
call_popularity(void *conf, const char *text)
{
    return popularity_parse(&((struct options *)conf)->popularity, text);
}

static const char *
call_from(void *conf, const char *text)
{
    struct options *o = conf;
    o->from_issue = strcmp(text, "issue") == 0;
    return o->from_issue || strcmp(text, "intended") == 0
               ? NULL
               : "latency is taken from intended or issue";
}

static const char *
call_late(void *conf, const char *text)
{
    struct options *o = conf;
    o->drops_late = strcmp(text, "drop") == 0;
    return o->drops_late || strcmp(text, "send") == 0
               ? NULL
               : "late requests can be sent (send) or dropped (drop)";
}

static const char *
call_seed(void *conf, const char *text)
{
    struct options *o = conf;
    if (strcmp(text, "random") == 0) {
        o->seed = rng_seed();
        return NULL;
    }
    return num_u64(text, strlen(text), &o->seed) ? NULL : "a seed is a number or random";
}

static const char *
call_progress(void *conf, const char *text)
{
    static const char *const names[] = {
        [PROGRESS_AUTO] = "auto",
        [PROGRESS_NONE] = "none",
        [PROGRESS_ALWAYS] = "always",
    };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            ((struct options *)conf)->progress = (enum options_progress)i;
            return NULL;
        }
    }
    return "progress is auto, none or always";
}

static const char *
call_realtime(void *conf, const char *text)
{
    static const char fifo[] = "fifo:";
    size_t n = sizeof fifo - 1;
    int32_t priority;
    if (strncmp(text, fifo, n) != 0 || !num_i32(text + n, strlen(text + n), &priority) ||
        priority < sched_get_priority_min(SCHED_FIFO) ||
        priority > sched_get_priority_max(SCHED_FIFO)) {
        return "real time is fifo:PRIORITY with a priority between 1 and 99";
    }
    ((struct options *)conf)->fifo_priority = priority;
    return NULL;
}

#define AT(field) .offset = offsetof(struct options, field)
#define REFUSED(c, long_name)                                                            \
    {                                                                                    \
        .letter = c, .name = long_name, .kind = OPT_REFUSE, .error = NOT_YET             \
    }
#define REFUSED_VALUE(c, long_name)                                                      \
    {                                                                                    \
        .letter = c, .name = long_name, .kind = OPT_REFUSE, .error = NOT_YET, .arg = "X" \
    }

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 's', .name = "server", .kind = OPT_CALL, .call = call_server,
     .arg = "HOST[:PORT]",
     .help = "server, also unix:PATH and [v6]:PORT; repeat for several (127.0.0.1)"},
    {.name = "protocol", .kind = OPT_CALL, .call = call_protocol, .arg = "NAME",
     .help = "ascii, meta, binary, redis or http (ascii)"},
    {.name = "binary", .kind = OPT_FLAG, AT(is_binary),
     .help = "the same as --protocol=binary"},
    {.letter = 'U', .name = "username", .kind = OPT_TEXT, AT(username), .arg = "NAME",
     .help = "name to authenticate with"},
    {.letter = 'P', .name = "password", .kind = OPT_TEXT, AT(password), .arg = "TEXT",
     .help = "password to authenticate with"},
    {.letter = 't', .name = "time", .kind = OPT_DOUBLE, AT(time_s), .min = 0.001,
     .max = TIME_MAX_S, .error = "the time must be above 0", .arg = "SECONDS",
     .help = "length of the run (5)"},
    {.letter = 'w', .name = "warmup", .kind = OPT_DOUBLE, AT(warmup_s), .min = 0,
     .max = TIME_MAX_S, .arg = "SECONDS",
     .help = "load before it that is not measured (0)"},
    {.letter = 'T', .name = "threads", .kind = OPT_INT, AT(threads), .min = 1,
     .max = OPTIONS_THREADS_MAX, .arg = "N", .help = "threads (1)"},
    {.letter = 'c', .name = "connections", .kind = OPT_INT, AT(connections), .min = 1,
     .max = CONNECTIONS_MAX, .arg = "N",
     .help = "connections to each server, each thread (1)"},
    {.letter = 'd', .name = "depth", .kind = OPT_INT, AT(depth), .min = 1,
     .max = DEPTH_MAX, .arg = "N",
     .help = "requests on their way on each connection (1)"},
    {.letter = 'q', .name = "qps", .kind = OPT_RATE, AT(qps), .min = 0, .max = QPS_MAX,
     .arg = "N[k|m]",
     .help = "requests a second of all threads, open loop; 0: closed loop, peak (0)"},
    {.letter = 'i', .name = "iadist", .kind = OPT_CALL, .call = call_arrivals,
     .arg = "LAW",
     .help = "gaps: exponential fixed uniform normal pareto fb_ia ... (exponential)"},
    {.name = "arrivals", .kind = OPT_CALL, .call = call_arrivals, .arg = "LAW",
     .help = "the same"},
    {.name = "arrival-scope", .kind = OPT_CALL, .call = call_scope,
     .arg = "total|thread|connection",
     .help = "what the law of gaps holds for: all, each thread or connection (total)"},
    {.name = "late", .kind = OPT_CALL, .call = call_late, .arg = "send|drop",
     .help = "what happens to requests more than 5 ms late (send)"},
    {.letter = 'S', .name = "skip", .kind = OPT_FLAG, AT(drops_late),
     .help = "the same as --late=drop"},
    {.letter = 'K', .name = "keysize", .kind = OPT_CALL, .call = call_keysize,
     .arg = "DIST",
     .help = "key length: N or a distribution, e.g. normal:30,5 (30)"},
    {.letter = 'V', .name = "valuesize", .kind = OPT_CALL, .call = call_valuesize,
     .arg = "DIST", .help = "value length: the same and fb_value (200)"},
    {.letter = 'r', .name = "records", .kind = OPT_RATE, AT(records), .min = 1,
     .max = RECORDS_MAX, .arg = "N[k|m]", .help = "keys in use (10000)"},
    {.letter = 'u', .name = "update", .kind = OPT_CALL, .call = call_update,
     .arg = "SHARE", .help = "share of sets, the rest are gets (0.0)"},
    {.name = "workload", .kind = OPT_CALL, .call = call_workload, .arg = "NAME|help",
     .help = "sizes, popularity, mix and gaps by name; other options override"},
    {.name = "ops", .kind = OPT_CALL, .call = call_ops, .arg = "VERB:SHARE,...",
     .help = "the mix: get gets set add cas delete touch incr insert scan rmw (get:1)"},
    {.name = "on-miss", .kind = OPT_CALL, .call = call_on_miss, .arg = "ignore|set",
     .help = "whether a set follows each miss (ignore)"},
    {.name = "expiry", .kind = OPT_CALL, .call = call_expiry, .arg = "DIST",
     .help = "seconds that values live, 0 for ever (0)"},
    {.name = "verify", .kind = OPT_DOUBLE, AT(verify), .min = 0, .max = 1,
     .error = "the share of gets must be between 0 and 1", .arg = "SHARE",
     .help = "share of gets whose values are checked (0.01, with --noload 0)"},
    {.name = "getcount", .kind = OPT_INT, AT(getcount), .min = 1,
     .max = WORKLOAD_GETCOUNT_MAX, .arg = "N", .help = "keys in each get (1)"},
    {.name = "popularity", .kind = OPT_CALL, .call = call_popularity, .arg = "LAW",
     .help = "which keys: uniform zipf:T latest hotset:H:P normal seq etc ... (uniform)"},
    {.name = "key-prefix", .kind = OPT_TEXT, AT(key_prefix), .arg = "TEXT",
     .help = "start of every key (none)"},
    {.name = "noload", .kind = OPT_FLAG, AT(no_load),
     .help = "the records are there, do not store them"},
    {.name = "loadonly", .kind = OPT_FLAG, AT(load_only),
     .help = "store the records and end"},
    {.letter = 'B', .name = "blocking", .kind = OPT_FLAG, AT(is_blocking),
     .help = "always sleep until the next request, never poll"},
    {.name = "spin", .kind = OPT_DOUBLE, AT(spin_us), .min = 0, .max = 1e9,
     .arg = "USECS", .help = "open loop: poll when the next request is so near (50)"},
    {.name = "no-nodelay", .kind = OPT_FLAG, AT(no_nodelay),
     .help = "leave TCP_NODELAY off"},
    {.name = "timeout", .kind = OPT_DOUBLE, AT(timeout_s), .min = 0.001,
     .max = TIME_MAX_S, .error = "the time-out must be above 0", .arg = "SECONDS",
     .help = "a connection without a reply for so long is given up (10)"},
    {.name = "affinity", .kind = OPT_FLAG, AT(has_affinity),
     .help = "pin threads to the CPUs allowed, in turn"},
    {.name = "cpus", .kind = OPT_TEXT, AT(cpus), .arg = "LIST",
     .help = "pin threads to these CPUs, e.g. 0,2,4-7"},
    {.name = "realtime", .kind = OPT_CALL, .call = call_realtime, .arg = "fifo:N",
     .help = "run sending threads at real-time priority N"},
    {.name = "latency-from", .kind = OPT_CALL, .call = call_from,
     .arg = "intended|issue", .help = "where the table's latencies start (intended)"},
    {.name = "seed", .kind = OPT_CALL, .call = call_seed, .arg = "N|random",
     .help = "of all random numbers (1)"},
    {.name = "json", .kind = OPT_TEXT, AT(json), .arg = "FILE",
     .help = "write the result as JSON too"},
    {.name = "progress", .kind = OPT_CALL, .call = call_progress,
     .arg = "auto|none|always",
     .help = "a line a second on stderr (auto: on a terminal)"},
    {.letter = 'v', .name = "verbose", .kind = OPT_COUNT, AT(verbose),
     .help = "say more on stderr"},
    {.name = "quiet", .kind = OPT_FLAG, AT(is_quiet),
     .help = "nothing on stderr but errors"},
    {.letter = 'h', .name = "help", .kind = OPT_FLAG, AT(wants_help),
     .help = "print this and end"},
    {.name = "version", .kind = OPT_FLAG, AT(wants_version),
     .help = "print the version and end"},

    /* mutilate's other options: named, so that none is passed over in silence. */
    REFUSED(0, "moderate"), REFUSED_VALUE('W', "wait"), REFUSED_VALUE(0, "save"),
    REFUSED_VALUE(0, "search"), REFUSED_VALUE(0, "scan"), REFUSED(0, "roundrobin"),
    REFUSED('A', "agentmode"), REFUSED_VALUE('a', "agent"),
    REFUSED_VALUE('p', "agent-port"), REFUSED_VALUE('l', "lambda-mul"),
    REFUSED_VALUE('C', "measure-connections"), REFUSED_VALUE('Q', "measure-qps"),
    REFUSED_VALUE('D', "measure-depth"), REFUSED_VALUE('m', "poll-freq"),
    REFUSED_VALUE('M', "poll-max"),
};
/* clang-format on */

static const struct opt_table table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .program = "mcload",
};

const struct opt_table *
options_table(void)
{
    return &table;
}

static void
set_defaults(struct options *o)
{
    *o = (struct options){
        .codec = codec_at(0),
        .time_s = 5,
        .timeout_s = TIMEOUT_DEFAULT_S,
        .spin_us = SPIN_DEFAULT_US,
        .threads = 1,
        .connections = 1,
        .depth = 1,
        .records = 10000,
        .getcount = 1,
        .key_size = dist_fixed(30),
        .value_size = dist_fixed(200),
        .expiry = dist_fixed(0),
        .verify = -1,
        .key_prefix = "",
        .username = "",
        .seed = 1,
    };
    mix_of_update(&o->mix, 0);
    const char *wrong = arrival_parse(&o->arrivals, "exponential");
    must(wrong == NULL);
}

static bool
can_store(const struct options *o)
{
    return (o->codec->verbs & CODEC_BIT(CODEC_SET)) != 0;
}

/* What is asked for must have words in the protocol. */
static const char *
check_codec(const struct options *o)
{
    static const unsigned needed[MIX_VERBS] = {
        [MIX_GET] = CODEC_BIT(CODEC_GET),
        [MIX_GETS] = CODEC_BIT(CODEC_GETS),
        [MIX_SET] = CODEC_BIT(CODEC_SET),
        [MIX_ADD] = CODEC_BIT(CODEC_ADD),
        [MIX_CAS] = CODEC_BIT(CODEC_GETS) | CODEC_BIT(CODEC_CAS),
        [MIX_DELETE] = CODEC_BIT(CODEC_DELETE),
        [MIX_TOUCH] = CODEC_BIT(CODEC_TOUCH),
        [MIX_INCR] = CODEC_BIT(CODEC_INCR),
        [MIX_INSERT] = CODEC_BIT(CODEC_SET),
        [MIX_SCAN] = CODEC_BIT(CODEC_GET),
        [MIX_RMW] = CODEC_BIT(CODEC_GET) | CODEC_BIT(CODEC_SET),
    };
    unsigned all = o->fills || o->load_only ? CODEC_BIT(CODEC_SET) : 0;
    for (unsigned verb = 0; verb < MIX_VERBS; verb++) {
        all |= mix_share(&o->mix, verb) > 0 ? needed[verb] : 0;
    }
    if ((all & ~o->codec->verbs) != 0) {
        return "the protocol has no words for what is to be asked for";
    }
    if (!o->codec->has_multiget &&
        (o->getcount > 1 || mix_share(&o->mix, MIX_SCAN) > 0)) {
        return "the protocol asks for one key at a time";
    }
    return NULL;
}

static const char *
check_auth(const struct options *o)
{
    if (o->password == NULL) {
        return o->username[0] != '\0' ? "--username needs --password" : NULL;
    }
    if ((o->codec->verbs & CODEC_BIT(CODEC_AUTH)) == 0) {
        return "the protocol has no words for authentication";
    }
    if (o->username[0] == '\0' && o->codec != &codec_redis) {
        return "--password needs --username";
    }
    if (strlen(o->username) > CODEC_AUTH_MAX || strlen(o->password) > CODEC_AUTH_MAX) {
        return "names and passwords are at most 255 bytes long";
    }
    return NULL;
}

static const char *
check(const struct options *o)
{
    if (o->no_load && o->load_only) {
        return "--noload and --loadonly contradict each other";
    }
    if (o->is_binary && o->codec != codec_at(0) && o->codec != &codec_binary) {
        return "--binary and --protocol contradict each other";
    }
    if (o->has_affinity && o->cpus != NULL) {
        return "--affinity and --cpus contradict each other";
    }
    if (o->drops_late && o->qps == 0) {
        return "--late=drop needs a rate (--qps)";
    }
    const char *wrong = check_auth(o);
    return wrong != NULL ? wrong : check_codec(o);
}

/* What follows from others. */
static void
settle(struct options *o)
{
    if (o->servers_len == 0) {
        o->servers[o->servers_len++] = "127.0.0.1";
    }
    if (o->is_binary) {
        o->codec = &codec_binary;
    }
    if (!can_store(o) && !o->load_only) {
        o->no_load = true;
    }
    if (o->verify < 0) {
        o->verify = o->no_load ? 0 : VERIFY_DEFAULT;
    }
}

/* A name is a word for options: what is given beside it counts more, wherever it stands. */
static void
apply_model(struct options *o)
{
    const struct model *m = o->model;
    options_fini(o);
    set_defaults(o);
    o->model = m;
    const char *wrong = call_keysize(o, m->key_size);
    wrong = wrong != NULL ? wrong : call_valuesize(o, m->value_size);
    wrong = wrong != NULL ? wrong : call_popularity(o, m->popularity);
    wrong = wrong != NULL ? wrong : call_ops(o, m->ops);
    wrong = wrong != NULL ? wrong : call_expiry(o, m->expiry);
    wrong = wrong != NULL ? wrong : call_arrivals(o, m->arrivals);
    wrong = wrong != NULL ? wrong : call_on_miss(o, m->on_miss);
    must(wrong == NULL); /* a test goes through the table */
}

bool
options_parse(struct options *o, int argc, char **argv, FILE *err)
{
    int status;
    set_defaults(o);
    if (opt_parse(&table, o, argc, argv, err, &status) != OPT_DONE) {
        return false;
    }
    if (o->model != NULL) {
        apply_model(o);
        if (opt_parse(&table, o, argc, argv, err, &status) != OPT_DONE) {
            return false;
        }
    }
    const char *wrong = check(o);
    if (wrong != NULL) {
        fprintf(err, "mcload: %s\n", wrong);
    }
    settle(o);
    return wrong == NULL;
}

void
options_fini(struct options *o)
{
    dist_fini(&o->key_size);
    dist_fini(&o->value_size);
    dist_fini(&o->expiry);
    arrival_law_fini(&o->arrivals);
}
