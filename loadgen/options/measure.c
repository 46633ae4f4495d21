/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long, and what is made of it: the window of a run and its latencies.
 */
#include "loadgen/options/group.h"

#include "base/num.h"
#include "base/rng.h"
#include "loadgen/work/form.h"

#define TIMEOUT_DEFAULT_S 10
#define WARMUP_QPS_MAX 100000000
#define TIME_MIN_S 0.001
#define INTERVAL_DEFAULT_S 1
#define UNTIL_TIME_MAX_S 300
#define INTERVAL_MIN_S 0.01

static const char *
call_time(void *conf, const char *text)
{
    struct options *o = conf;
    if (strcmp(text, "auto") == 0) {
        if (!until_is_given(&o->until)) {
            until_auto(&o->until);
        }
        o->has_time = false;
        return NULL;
    }
    o->has_time = true;
    return value_time(text, TIME_MIN_S, &o->time_s,
                      "the time must be above 0: 1 ms to 1000000 s");
}

static const char *
call_warmup(void *conf, const char *text)
{
    struct options *o = conf;
    o->has_auto_warmup = strcmp(text, "auto") == 0;
    o->warmup_s = 0;
    return o->has_auto_warmup ? NULL
                              : value_time(text, 0, &o->warmup_s,
                                           "a warm-up is a time, 0 or more, or auto");
}

/* IX's: a time, and perhaps a rate of its own. */
static const char *
call_qps_warmup(void *conf, const char *text)
{
    static const char shape[] = "a warm-up is TIME or TIME:RATE";
    struct options *o = conf;
    size_t len = strcspn(text, ":");
    uint64_t rate = 0;
    o->has_auto_warmup = false;
    if (!duration_parse(text, len, &o->warmup_s) || o->warmup_s > VALUE_TIME_MAX_S) {
        return shape;
    }
    if (text[len] == ':' &&
        (!num_scaled(text + len + 1, strlen(text + len + 1), 1000, &rate) || rate == 0 ||
         rate > WARMUP_QPS_MAX)) {
        return shape;
    }
    o->warmup_qps = (double)rate;
    return NULL;
}

static const char *
call_interval(void *conf, const char *text)
{
    struct options *o = conf;
    o->shows_intervals = true;
    return value_time(text, INTERVAL_MIN_S, &o->interval_s,
                      "an interval is a time, 0.01 seconds or more");
}

static const char *
parse_poll(void *field, const char *text)
{
    return value_time(text, INTERVAL_MIN_S, field,
                      "--server-stats takes a time, 0.01 seconds or more");
}

static const char *
parse_seed(void *field, const char *text)
{
    if (strcmp(text, "random") == 0) {
        *(uint64_t *)field = rng_seed();
        return NULL;
    }
    return num_u64(text, strlen(text), field) ? NULL : "a seed is a number or random";
}

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 't', .name = "time", SCOPE(SHARED), CALL(call_time), .common = 6,
     .arg = "SECONDS|auto",
     .help = "length of the run (5); auto: --until=p95:5%,p99:5%"},
    {.name = "until", SCOPE(ALONE), PARSE(until_parse), OF_RUN(until),
     .arg = "pP:WIDTH%|n:N,...",
     .help = "end when the 95% intervals are as narrow as this, or N requests answered, "
             "at the latest after --time (300)"},
    {.letter = 'w', .name = "warmup", SCOPE(SHARED), CALL(call_warmup),
     .arg = "SECONDS|auto",
     .help = "load before the run that is not measured (0); auto: until latency and hits are "
             "steady"},
    {.name = "qps-warmup", SCOPE(ALONE), CALL(call_qps_warmup), .arg = "SECONDS[:QPS]",
     .help = "the same as --warmup, at a rate of its own"},
    {.name = "warmup-drain", SCOPE(SHARED), PARSE(value_pause),
     OF_RUN(warmup_drain_s), .arg = "SECONDS",
     .help = "end of the warm-up in which nothing is sent, so that queues drain (0)"},
    {.name = "timeout", SCOPE(SHARED), PARSE(value_span), OF_RUN(timeout_s),
     .error = "the time-out must be above 0", .arg = "SECONDS",
     .help = "give up a connection after this time without a reply (10)"},
    {.name = "interval", SCOPE(LEADER), CALL(call_interval), .arg = "SECONDS",
     .help = "show rate, latencies and hits per interval (1 s, in JSON only)"},
    {.name = "report-stats", SCOPE(LEADER), CALL(call_interval), .arg = "SECONDS",
     .help = "the same as --interval"},
    {.name = "by-size", SCOPE(SHARED), KIND(FLAG), OF_RUN(by_size),
     .help = "show latencies of gets by the bytes of the values that came"},
    {.name = "server-stats", SCOPE(OBSERVE), PARSE(parse_poll), OF_RUN(server_stats_s),
     .arg = "SECONDS",
     .help = "query the servers' stats at this interval, for the report"},
    {.name = "latency-from", SCOPE(SHARED), KIND(CHOICE), OF_RUN(from),
     OPT_CHOICES(counters_from_names), .arg = "intended|issue",
     .error = "latency is taken from intended or issue",
     .help = "what latencies are measured from (intended)"},
    {.name = "check", SCOPE(LEADER), PARSE(check_limits_parse), OF_RUN(limits),
     .arg = "NAME:LIMIT|off,...", .help = "change or disable a check of the verdict"},
    {.name = "seed", SCOPE(SHARED), PARSE(parse_seed), OF_RUN(seed), .arg = "N|random",
     .help = "random seed (1)"},
    {.name = "loadonly", SCOPE(SHARED), KIND(FLAG), OF_RUN(load_only),
     .help = "store the records and end"},
    {.letter = 'W', .name = "wait", SCOPE(LEADER), PARSE(value_pause), OF_RUN(wait_s),
     .error = "a pause is a time, 0 or more", .arg = "SECONDS",
     .help = "pause before the first run, when connections and records are there (0)"},
};
/* clang-format on */

static void
init(struct options *o)
{
    o->time_s = 5;
    o->interval_s = INTERVAL_DEFAULT_S;
    o->timeout_s = TIMEOUT_DEFAULT_S;
    o->seed = 1;
    check_limits_init(&o->limits);
}

bool
options_have_stats(const struct options *o)
{
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        if (!c->codec->has_stats || c->password != NULL) {
            return false;
        }
    }
    return true;
}

/* What a class contradicts. */
static const char *
check_class(const struct options *o, const struct lclass *c)
{
    bool varies = schedule_varies(&c->traffic.schedule),
         has_trace = c->workload.is_replay;
    if (until_is_given(&o->until) && varies) {
        return "--until and --time=auto need a load that does not vary";
    }
    if (o->warmup_qps > 0 && c->traffic.is_timed) {
        return "a trace with its own times says when: --qps-warmup contradicts it";
    }
    if (o->warmup_qps > 0 && has_trace) {
        return "--trace says when: --qps-warmup contradicts it";
    }
    if (o->warmup_qps > 0 && !varies && c->qps == 0 && c->qps_share == 0 &&
        !o->goal.is_given && !o->scan.is_given) {
        return "--qps-warmup is for an open loop: it needs a rate (--qps)";
    }
    if (o->warmup_drain_s > 0 && has_trace) {
        return "--trace says when: --warmup-drain contradicts it";
    }
    if (o->has_auto_warmup && varies) {
        return "--warmup=auto waits for a steady load, and this one varies";
    }
    if (o->load_only && (c->codec->verbs & CODEC_BIT(CODEC_SET)) == 0) {
        return "the protocol has no words for what is to be asked for";
    }
    if (o->load_only && has_trace && c->trace.load_max == 0) {
        return "--loadonly with a trace requires --trace-load";
    }
    return o->load_only && c->no_load ? "--noload and --loadonly are mutually exclusive"
                                      : NULL;
}

static const char *
check_run(const struct options *o)
{
    bool is_auto = until_is_given(&o->until);
    if (is_auto && (o->goal.is_given || o->agents_len > 0 || o->is_agent)) {
        return "--until and --time=auto are for runs of one process, and no search";
    }
    if (o->warmup_drain_s > o->warmup_s) {
        return "--warmup-drain is a part of --warmup, which is shorter";
    }
    if (o->warmup_qps > 0 && (o->classes_len > 1 || o->agents_len > 0)) {
        return "a rate of the warm-up's own is for one class and one process";
    }
    if (o->warmup_qps > 0 && o->warmup_s == 0) {
        return "--qps-warmup: a rate needs a time above 0";
    }
    return o->has_auto_warmup && (o->goal.is_given || o->scan.is_given)
               ? "--warmup=auto is for one load"
               : NULL;
}

static const char *
settle(struct options *o)
{
    const char *wrong = check_run(o);
    for (unsigned i = 0; wrong == NULL && i < o->classes_len; i++) {
        wrong = check_class(o, &o->classes[i]);
    }
    if (wrong == NULL && o->server_stats_s > 0 && !options_have_stats(o)) {
        wrong = "--server-stats asks memcached in its text protocol, without a password";
    }
    if (until_is_given(&o->until) && !o->has_time) {
        o->time_s = UNTIL_TIME_MAX_S;
    }
    return wrong;
}

const struct run_group group_measure = {ROWS(rows), .init = init, .settle = settle};
