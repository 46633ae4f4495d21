/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Limits on requests a second and on CPU time. The policy: qos/limiter.h, control/governor.h.
 */
#include <ctype.h>
#include <inttypes.h>

#include "base/hist.h"
#include "front/front.h"
#include "control/governor.h"
#include "qos/limit_text.h"

/* ---- options -------------------------------------------------------------------------- */

static const char *
set_total(void *conf, const char *text)
{
    struct settings *s = conf;
    return front_blame("qps-limit", limit_text_rules(text, strlen(text), &s->limits));
}

static const char *
set_peer(void *conf, const char *text)
{
    struct settings *s = conf;
    return front_blame("qps-limit-peer",
                       limit_text_peer(text, strlen(text), &s->limits.peer));
}

static const char *
set_action(void *conf, const char *text)
{
    struct settings *s = conf;
    return front_blame(
        "qps-limit-action",
        limit_text_action(text, strlen(text), &s->limits.action, &s->limits.max_delay));
}

static const char *
set_unit(void *conf, const char *text)
{
    struct settings *s = conf;
    return front_blame("qps-limit-unit",
                       limit_text_unit(text, strlen(text), &s->limits.counts_keys));
}

static const char *
set_cpu(void *conf, const char *text)
{
    struct settings *s = conf;
    return front_blame("cpu-limit",
                       limit_text_percent(text, strlen(text), &s->cpu_percent));
}

/* ---- at run time ---------------------------------------------------------------------- */

static void
read_limits(void *program, void *conf)
{
    struct stats *st = program;
    struct settings *s = conf;
    struct limiter *l = &st->shared->core.limiter;
    uint64_t ignored;
    s->limits = (struct limiter_conf){
        .total = limiter_total(l),
        .peer = {front_relaxed(&l->peers.rate), front_relaxed(&l->peers.burst)},
        .action = (enum limiter_action)atomic_load(&l->action),
        .max_delay = front_relaxed(&l->max_delay),
        .counts_keys = atomic_load(&l->counts_keys),
        .is_dry = atomic_load(&l->is_dry),
    };
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        s->limits.by_class[c] = (struct limiter_rule){
            front_relaxed(&l->by_class[c].rate), front_relaxed(&l->by_class[c].burst)};
    }
    s->cpu_percent = governor_get(st->shared->governor, &ignored);
}

/* Workers that sleep until an earlier time look again. */
static enum reply
relimit(struct stats *st)
{
    workers_order(st->workers, st->worker_count, ORDER_RELIMIT);
    return REPLY_OK;
}

/* A class that no request is of has a limit. */
static bool
limits_nothing(const struct settings *s, const struct class_conf *classes)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (s->limits.by_class[c].rate != 0 &&
            !class_occurs(classes, (enum req_class)c)) {
            return true;
        }
    }
    return false;
}

static bool
apply_rates(void *program, const void *conf)
{
    struct stats *st = program;
    const struct settings *s = conf;
    struct limiter *l = &st->shared->core.limiter;
    if (limits_nothing(s, &st->shared->core.classes)) {
        return false;
    }
    limiter_set_total(l, s->limits.total, clock_now());
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        limiter_set_class(l, (enum req_class)c, s->limits.by_class[c], clock_now());
    }
    return relimit(st) == REPLY_OK;
}

static bool
apply_peer(void *program, const void *conf)
{
    struct stats *st = program;
    limiter_set_peer(&st->shared->core.limiter,
                     ((const struct settings *)conf)->limits.peer, clock_now());
    return relimit(st) == REPLY_OK;
}

static bool
apply_handling(void *program, const void *conf)
{
    struct stats *st = program;
    const struct limiter_conf *to = &((const struct settings *)conf)->limits;
    struct limiter *l = &st->shared->core.limiter;
    limiter_set_action(l, to->action, to->max_delay);
    limiter_set_unit(l, to->counts_keys);
    atomic_store_explicit(&l->is_dry, to->is_dry, memory_order_relaxed);
    return relimit(st) == REPLY_OK;
}

static bool
apply_cpu(void *program, const void *conf)
{
    struct stats *st = program;
    governor_set(st->shared->governor, ((const struct settings *)conf)->cpu_percent);
    return true;
}

/* "50000,burst=500"; a burst that is the default is left out. */
static void
add_rule(struct phrase *t, const char *name, struct limiter_rule rule)
{
    if (rule.rate == 0) {
        phrase_add(t, "%soff", name);
        return;
    }
    phrase_add(t, "%s%" PRIu64, name, rule.rate);
    if (rule.burst != 0 && rule.burst != limit_default_burst(rule.rate)) {
        phrase_add(t, ",burst=%" PRIu64, rule.burst);
    }
}

static void
tell_rates(const void *conf, char *to, size_t size)
{
    const struct limiter_conf *limits = &((const struct settings *)conf)->limits;
    struct phrase t = {to, size, 0};
    add_rule(&t, "", limits->total);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        char name[32];
        snprintf(name, sizeof name, ",%s=", class_name((enum req_class)c));
        if (limits->by_class[c].rate > 0) {
            add_rule(&t, name, limits->by_class[c]);
        }
    }
}

static void
tell_peer(const void *conf, char *to, size_t size)
{
    add_rule(&(struct phrase){to, size, 0}, "",
             ((const struct settings *)conf)->limits.peer);
}

static void
tell_action(const void *conf, char *to, size_t size)
{
    const struct limiter_conf *limits = &((const struct settings *)conf)->limits;
    must(size >= LIMIT_TEXT_ACTION_MAX);
    limit_text_describe(limits->action, limits->max_delay, to);
}

static void
tell_unit(const void *conf, char *to, size_t size)
{
    snprintf(to, size, "%s",
             ((const struct settings *)conf)->limits.counts_keys ? "key" : "cmd");
}

static void
tell_cpu(const void *conf, char *to, size_t size)
{
    unsigned percent = ((const struct settings *)conf)->cpu_percent;
    snprintf(to, size, percent > 0 ? "%u%%" : "off", percent);
}

static const struct opt_live live_rates = {read_limits, apply_rates, tell_rates, NULL},
                             live_peer = {read_limits, apply_peer, tell_peer, NULL},
                             live_action = {read_limits, apply_handling, tell_action,
                                            NULL},
                             live_unit = {read_limits, apply_handling, tell_unit, NULL},
                             live_cpu = {read_limits, apply_cpu, tell_cpu, NULL},
                             live_dry = {read_limits, apply_handling, NULL, NULL};

/* clang-format off */
static const struct opt options[] = {
    {.name = "qps-limit", SET(set_total), .arg = "N[,CLASS=N...]", .section = QOS,
     .common = 16, .adds_up = true, .live = &live_rates, .preset_help = "off",
     .help = "requests a second; those above wait"},
    {.name = "qps-limit-peer", SET(set_peer), .arg = "N[,burst=B]", .section = QOS,
     .live = &live_peer, .preset_help = "off",
     .help = "requests a second of each client address"},
    {.name = "qps-limit-action", SET(set_action), .arg = "delay|error|miss|delay:TIME+error",
     .section = QOS, .preset = "delay", .live = &live_action,
     .help = "what happens to requests above a limit"},
    {.name = "qps-limit-unit", SET(set_unit), .arg = "cmd|key", .section = QOS,
     .preset = "cmd", .live = &live_unit, .help = "what limits count: requests, or the keys of gets"},
    {.name = "cpu-limit", SET(set_cpu), .arg = "N%", .section = QOS, .live = &live_cpu,
     .help = "limit requests so that the process uses N% of one CPU"},
    {.name = "qps-limit-dry-run", .kind = OPT_FLAG, OF(limits.is_dry), .section = QOS,
     .after = "slo", .live = &live_dry, .help = "count requests that would be limited, but admit them"},
};
/* clang-format on */

/* A default burst that is more than a second's worth surprises its user. */
static void
tell_burst(FILE *err, const char *option, const char *name, struct limiter_rule rule)
{
    uint64_t burst = limit_default_burst(rule.rate);
    if (rule.rate > 0 && rule.burst == 0 && burst > rule.rate) {
        fprintf(err,
                "memcached: warning: --%s=%s%llu lets %llu requests through at once "
                "after a pause; burst=N behind it sets another number\n",
                option, name, (unsigned long long)rule.rate, (unsigned long long)burst);
    }
}

static const char *
settle(struct settings *s, struct settling *to)
{
    char name[32];
    tell_burst(to->err, "qps-limit", "", s->limits.total);
    tell_burst(to->err, "qps-limit-peer", "", s->limits.peer);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        snprintf(name, sizeof name, "%s=", class_name((enum req_class)c));
        tell_burst(to->err, "qps-limit", name, s->limits.by_class[c]);
    }
    return limits_nothing(s, &s->classes) ? "a class's --qps-limit needs --classes=on"
                                          : NULL;
}

static void
wire(const struct settings *s, struct net_shared *shared)
{
    limiter_init(&shared->core.limiter, &s->limits, (unsigned)s->threads, clock_now());
}

/* ---- statistics ----------------------------------------------------------------------- */

static void
show_delay(const struct stats *st, struct sink *sink)
{
    struct hist *all = hist_create(ADMISSION_SUB_BITS, ADMISSION_MAX_NS);
    if (all == NULL) {
        sink->has_failed = true;
        return;
    }
    front_merge(st, COUNTER_OF(core.admission.delay), all);
    sink_statf(sink, "qps_delay_count", "%" PRIu64, hist_count(all));
    sink_statf(sink, "qps_delay_avg_us", "%.1f", front_us((uint64_t)hist_mean(all)));
    front_put_quantiles(sink, "qps_delay", all);
    hist_destroy(&all);
}

static void
show_rule(struct sink *sink, const char *suffix, uint64_t rate, uint64_t burst)
{
    char name[FRONT_NAME_MAX];
    if (rate == 0) {
        sink_stat(sink, front_name("qps_limit", suffix, name), "off");
    } else {
        sink_statf(sink, front_name("qps_limit", suffix, name), "%" PRIu64, rate);
    }
    sink_statf(sink, front_name("qps_burst", suffix, name), "%" PRIu64,
               rate == 0 ? 0 : burst);
}

static void
show_rules(struct limiter *l, struct sink *sink)
{
    char action[LIMIT_TEXT_ACTION_MAX];
    struct limiter_rule total = limiter_total(l);
    uint64_t burst = total.burst != 0 ? total.burst : limit_default_burst(total.rate);
    show_rule(sink, "", total.rate, burst);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (class_is_limited((enum req_class)c)) {
            show_rule(sink, class_name((enum req_class)c),
                      front_relaxed(&l->by_class[c].rate),
                      front_relaxed(&l->by_class[c].burst));
        }
    }
    show_rule(sink, "peer", front_relaxed(&l->peers.rate),
              front_relaxed(&l->peers.burst));
    limit_text_describe((enum limiter_action)atomic_load(&l->action),
                        front_relaxed(&l->max_delay), action);
    sink_stat(sink, "qps_action", action);
    sink_stat(sink, "qps_unit", atomic_load(&l->counts_keys) ? "key" : "cmd");
    sink_stat(sink, "qps_dry_run", front_on(atomic_load(&l->is_dry)));
}

static void
show_cpu(struct governor *g, struct sink *sink)
{
    uint64_t rate;
    unsigned percent = governor_get(g, &rate);
    if (percent == 0) {
        sink_stat(sink, "cpu_limit", "off");
    } else {
        sink_statf(sink, "cpu_limit", "%u%%", percent);
    }
    sink_statf(sink, "cpu_limit_rate", "%" PRIu64, rate);
}

/* Of each class. */
static const struct stats_counter counters[] = {
    {"qps_admitted", COUNTER_OF(core.admission.limits.ctr[0].admitted)},
    {"qps_delayed", COUNTER_OF(core.admission.limits.ctr[0].delayed)},
    {"qps_rejected", COUNTER_OF(core.admission.limits.ctr[0].rejected)},
    {"qps_would_limit", COUNTER_OF(core.admission.limits.ctr[0].would_limit)},
};
#define COUNTERS (sizeof counters / sizeof counters[0])

static uint64_t
count_class(const struct stats *st, size_t counter, unsigned class)
{
    return front_sum(st, counters[counter].offset + class * sizeof(struct limiter_ctr));
}

static uint64_t
count_all(const struct stats *st, size_t counter)
{
    uint64_t sum = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        sum += count_class(st, counter, c);
    }
    return sum;
}

struct limit_counts
limit_counts(const struct stats *st)
{
    return (struct limit_counts){count_all(st, 0), count_all(st, 1), count_all(st, 2),
                                 count_all(st, 3)};
}

static void
show_counts(const struct stats *st, struct sink *sink)
{
    char name[FRONT_NAME_MAX];
    for (size_t i = 0; i < COUNTERS; i++) {
        sink_statf(sink, counters[i].name, "%" PRIu64, count_all(st, i));
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const char *class = class_name((enum req_class)c);
        for (size_t i = 0; i < COUNTERS && class_is_limited((enum req_class)c); i++) {
            sink_statf(sink, front_name(counters[i].name, class, name), "%" PRIu64,
                       count_class(st, i, c));
        }
    }
}

static void
show(struct stats *st, struct sink *sink)
{
    struct limiter *l = &st->shared->core.limiter;
    uint64_t retries = front_relaxed(&l->total.cas_retries);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        retries += front_relaxed(&l->by_class[c].cas_retries);
    }
    show_rules(l, sink);
    show_cpu(st->shared->governor, sink);
    show_counts(st, sink);
    sink_statf(sink, "lease_cas_retries", "%" PRIu64, retries);
    sink_statf(sink, "qps_peer_shared", "%" PRIu64, front_relaxed(&l->peers.shared));
    show_delay(st, sink);
}

/* ---- commands ------------------------------------------------------------------------- */

/* "<n|off> [burst]" in words. */
static const char *
parse_rule(const struct slice *words, unsigned count, uint64_t max,
           struct limiter_rule *rule)
{
    const char *error = limit_text_rate(words[0].p, words[0].len, max, &rule->rate);
    if (error == NULL && count > 1) {
        error = limit_text_burst(words[1].p, words[1].len, &rule->burst);
    }
    return error;
}

static enum reply
run_limit(struct stats *st, struct serve_qos *q)
{
    struct limiter *l = &st->shared->core.limiter;
    struct limiter_rule rule = {0};
    enum req_class class = CLASS_NONE;
    bool has_class = limit_text_class(q->words[0].p, q->words[0].len, &class);
    bool has_name = has_class || req_word_is(q->words[0], "total");
    unsigned count = q->count - has_name;
    if (!has_name && count > 1 && isalpha((unsigned char)*q->words[0].p) &&
        !req_word_is(q->words[0], "off")) {
        return front_refuse(q, "%s", LIMIT_TEXT_NO_CLASS);
    }
    if (count < 1 || count > 2) {
        return REPLY_BAD_FORMAT;
    }
    const char *error = parse_rule(q->words + has_name, count, LIMIT_RATE_MAX, &rule);
    if (error != NULL) {
        return front_refuse(q, "%s", error);
    }
    if (has_class && rule.rate != 0 && !class_occurs(&st->shared->core.classes, class)) {
        return front_refuse(q, "classes are off: start the server with --classes=on");
    }
    if (has_class) {
        limiter_set_class(l, class, rule, clock_now());
    } else {
        limiter_set_total(l, rule, clock_now());
    }
    return relimit(st);
}

static enum reply
run_peer(struct stats *st, struct serve_qos *q)
{
    struct limiter_rule rule = {0};
    const char *error = parse_rule(q->words, q->count, PEERS_RATE_MAX, &rule);
    if (error != NULL) {
        return front_refuse(q, "%s", error);
    }
    limiter_set_peer(&st->shared->core.limiter, rule, clock_now());
    return relimit(st);
}

static enum reply
run_action(struct stats *st, struct serve_qos *q)
{
    enum limiter_action action;
    nsec_t max_delay;
    const char *error =
        limit_text_action(q->words[0].p, q->words[0].len, &action, &max_delay);
    if (error != NULL) {
        return front_refuse(q, "%s", error);
    }
    limiter_set_action(&st->shared->core.limiter, action, max_delay);
    return relimit(st);
}

static enum reply
run_unit(struct stats *st, struct serve_qos *q)
{
    bool counts_keys;
    if (limit_text_unit(q->words[0].p, q->words[0].len, &counts_keys) != NULL) {
        return REPLY_BAD_FORMAT;
    }
    limiter_set_unit(&st->shared->core.limiter, counts_keys);
    return REPLY_OK;
}

static enum reply
run_dry_run(struct stats *st, struct serve_qos *q)
{
    bool is_on = req_word_is(q->words[0], "on");
    if (!is_on && !req_word_is(q->words[0], "off")) {
        return REPLY_BAD_FORMAT;
    }
    atomic_store_explicit(&st->shared->core.limiter.is_dry, is_on, memory_order_relaxed);
    return relimit(st);
}

static enum reply
run_cpu_limit(struct stats *st, struct serve_qos *q)
{
    unsigned percent;
    const char *error = limit_text_percent(q->words[0].p, q->words[0].len, &percent);
    if (error != NULL) {
        return front_refuse(q, "%s", error);
    }
    governor_set(st->shared->governor, percent);
    return REPLY_OK;
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "qps_limit", .arguments = "[class] <n|off> [burst]", .least = 1, .most = 3,
     .is_control = true, .run = run_limit,
     .meaning = "limit requests a second, in all or of a class"},
    {.word = "peer", .arguments = "<n|off> [burst]", .least = 1, .most = 2,
     .is_control = true, .run = run_peer,
     .meaning = "limit requests a second of each client address"},
    {.word = "action", .arguments = "<delay|error|miss|delay:TIME+error>", .least = 1,
     .most = 1, .is_control = true, .run = run_action,
     .meaning = "what happens to requests above a limit"},
    {.word = "unit", .arguments = "<cmd|key>", .least = 1, .most = 1, .is_control = true,
     .run = run_unit, .meaning = "what limits count: requests, or keys of gets"},
    {.word = "cpu_limit", .arguments = "<N%|off>", .least = 1, .most = 1,
     .is_control = true, .run = run_cpu_limit,
     .meaning = "bound the CPU time of the process by a limit"},
    {.word = "dry_run", .arguments = "<on|off>", .least = 1, .most = 1,
     .is_control = true, .run = run_dry_run,
     .meaning = "count what would be limited, but admit it", .after = "slo"},
};
/* clang-format on */

const struct front front_limit = {OPTIONS(options),     COMMANDS(commands),
                                  .usage = FRONT_USAGE, .settle = settle,
                                  .wire = wire,         .show = show};
