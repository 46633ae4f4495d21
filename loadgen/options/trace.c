/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What was recorded, in place of what is drawn: a trace, and what is made of it.
 */
#include "loadgen/options/group.h"

#include "base/num.h"
#include "base/part.h"

#define SPEED_MAX 1e6
#define REMAP_MAX UINT64_C(1000000000000)
#define LOAD_DEFAULT 10000000
#define LOAD_MAX 1000000000

static const char *
call_time(void *conf, const char *text)
{
    struct lclass_trace *t = &((struct lclass *)conf)->trace;
    const char *scaled = part_after(text, "scaled:");
    t->has_time = true;
    t->speed = strcmp(text, "original") == 0 ? 1 : 0;
    if (scaled != NULL) {
        return num_double(scaled, strlen(scaled), &t->speed) && t->speed > 0 &&
                       t->speed <= SPEED_MAX
                   ? NULL
                   : "scaled:F is F times as fast, F above 0 and at most 1000000";
    }
    return t->speed == 1 || strcmp(text, "rate") == 0
               ? NULL
               : "the times of a trace are original, scaled:F or those of a rate (rate)";
}

static const char *
call_remap(void *conf, const char *text)
{
    struct lclass_trace *t = &((struct lclass *)conf)->trace;
    const char *mod = part_after(text, "mod:");
    return mod != NULL && num_scaled(mod, strlen(mod), 1000, &t->remap) && t->remap > 0 &&
                   t->remap <= REMAP_MAX
               ? NULL
               : "keys become numbers below N with mod:N, N between 1 and 1000000000000";
}

static const char *
call_load(void *conf, const char *text)
{
    uint64_t *most = &((struct lclass *)conf)->trace.load_max;
    *most = LOAD_DEFAULT;
    return text == NULL || (num_scaled(text, strlen(text), 1000, most) && *most > 0 &&
                            *most <= LOAD_MAX)
               ? NULL
               : "the number of keys is between 1 and 1000000000";
}

static const char *const orders[] = {
    [READER_BY_KEY] = "key",
    [READER_BY_CLIENT] = "client",
};

static const char *const spreads[] = {
    [TRACE_SPREAD_EXPONENTIAL] = "exponential",
    [TRACE_SPREAD_UNIFORM] = "uniform",
    [TRACE_SPREAD_NONE] = "none",
};

/* clang-format off */
static const struct opt rows[] = {
    {.name = "trace", SCOPE(SHARED), KIND(TEXT), OF_CLASS(trace.file.path), .arg = "FILE",
     .help = "send what was recorded there, plain or compressed by zstd"},
    {.name = "trace-format", SCOPE(SHARED), PARSE(trace_format_parse),
     OF_CLASS(trace.file), .arg = "twitter|cachelib|csv:COLUMNS|binary",
     .help = "what its lines are (auto: as it begins)"},
    {.name = "trace-time", SCOPE(SHARED), CALL(call_time),
     .arg = "original|scaled:F|rate",
     .help = "when: as recorded, F times as fast, at --qps (original; rate with --qps)"},
    {.name = "trace-remap", SCOPE(SHARED), CALL(call_remap), .arg = "mod:N[k|m]",
     .help = "only N keys: the hash of each modulo N"},
    {.name = "trace-spread", SCOPE(SHARED), KIND(CHOICE), OF_CLASS(trace.spread),
     OPT_CHOICES(spreads), .arg = "exponential|uniform|none",
     .error = "requests of one second are spread exponential, uniform or none",
     .help = "how the requests of one second are spread over it (exponential)"},
    {.name = "trace-order", SCOPE(SHARED), KIND(CHOICE), OF_CLASS(trace.order),
     OPT_CHOICES(orders), .arg = "key|client",
     .error = "a connection has the requests of a key or a client",
     .help = "requests of one key, or client, share a connection, in their order (key)"},
    {.name = "trace-bad", SCOPE(SHARED), KIND(CHOICE),
     OF_CLASS(trace.file.skips_bad), OPT_CHOICES(trace_bads), .arg = "error|skip",
     .error = TRACE_BAD_WRONG,
     .help = "lines that make no sense: an error, or passed over and counted (error)"},
    {.name = "trace-load", SCOPE(SHARED), CALL(call_load), .arg = "N[k|m]?",
     .help = "store the trace's keys before the run, at most N (10m; without: none)"},
};
/* clang-format on */

static void
init(struct lclass *c)
{
    c->trace.speed = 1;
}

/* What draws requests, or decides when they start, has no say. */
static const char *
check(const struct lclass *c)
{
    const struct traffic *t = &c->traffic;
    const struct workload_conf *w = &c->workload;
    if (c->model != NULL || c->antagonist != NULL || mix_share(&w->mix, MIX_GET) != 1 ||
        dist_size_max(&w->getcount, 1, WORKLOAD_GETCOUNT_MAX) > 1 ||
        c->multiget_share >= 0 || w->miss_ratio > 0 || w->one_hit > 0 || w->churn > 0 ||
        w->sizes_per_set) {
        return "--trace says what is asked for: workloads, --ops, --update, --getcount, "
               "--getq-freq, --miss-ratio, --one-hit, --churn and --value-size-per "
               "contradict it";
    }
    if (w->verify > 0) {
        return "--trace does not say what values hold: there is nothing to --verify";
    }
    if ((c->has_mode && t->mode == TRAFFIC_PARTLY) || c->has_sessions ||
        traffic_thinks(t) || schedule_varies(&t->schedule) || t->late != LATE_SEND ||
        c->skips || t->max_outstanding > 0) {
        return "--trace says when: sessions, --think, --schedule, --late and "
               "--max-outstanding contradict it";
    }
    if (c->trace.speed > 0 && c->has_mode && t->mode == TRAFFIC_CLOSED) {
        return "a trace with its own times is an open loop: --trace-time=rate without "
               "--qps is a closed one";
    }
    return NULL;
}

static const char *
settle(struct lclass *c)
{
    bool has_rate = c->qps > 0 || c->qps_share > 0;
    if (c->trace.file.path == NULL) {
        const struct lclass_trace *t = &c->trace;
        return t->has_time || t->remap > 0 || t->load_max > 0 ||
                       t->file.format != TRACE_AUTO || t->order != READER_BY_KEY ||
                       t->spread != TRACE_SPREAD_EXPONENTIAL || t->file.skips_bad
                   ? "--trace-... needs a trace (--trace)"
                   : NULL;
    }
    if (!c->trace.has_time && has_rate) {
        c->trace.speed = 0;
    }
    if (c->trace.speed > 0 && has_rate) {
        return "--qps needs --trace-time=rate";
    }
    c->traffic.is_timed = c->trace.speed > 0;
    c->workload.is_replay = true;
    if (c->trace.load_max > 0 && (c->codec->verbs & CODEC_BIT(CODEC_SET)) == 0) {
        return "--trace-load stores keys, for which the protocol has no words";
    }
    c->no_load = c->no_load || c->trace.load_max == 0;
    return check(c);
}

const struct class_group group_trace = {ROWS(rows), .init = init, .settle = settle};
