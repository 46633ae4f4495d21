/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The limits in "stats qos", and the sub-commands of "qos" that change them.
 */
#include <inttypes.h>

#include "base/hist.h"
#include "control/governor.h"
#include "qos/limit_text.h"
#include "front/command.h"
#include "front/stats.h"
#include "front/stats_qos.h"

#define NAME_MAX_BYTES 64

/* ---- shown ---------------------------------------------------------------------------- */

static double
us(uint64_t ns)
{
    return (double)ns / (double)NSEC_PER_USEC;
}

static void
show_delay(const struct stats *st, struct sink *sink)
{
    struct hist *all = hist_create(ADMISSION_SUB_BITS, ADMISSION_MAX_NS);
    if (all == NULL) {
        sink->has_failed = true;
        return;
    }
    for (unsigned i = 0; i < st->worker_count; i++) {
        hist_merge(all, st->workers[i].core.admission.delay);
    }
    sink_statf(sink, "qps_delay_count", "%" PRIu64, hist_count(all));
    sink_statf(sink, "qps_delay_avg_us", "%.1f", us((uint64_t)hist_mean(all)));
    sink_statf(sink, "qps_delay_p50_us", "%.1f", us(hist_quantile(all, 0.50)));
    sink_statf(sink, "qps_delay_p95_us", "%.1f", us(hist_quantile(all, 0.95)));
    sink_statf(sink, "qps_delay_p99_us", "%.1f", us(hist_quantile(all, 0.99)));
    sink_statf(sink, "qps_delay_max_us", "%.1f", us(hist_max(all)));
    hist_destroy(&all);
}

/* "<name>" or "<name>_<suffix>". */
static const char *
name_of(const char *name, const char *suffix, char to[NAME_MAX_BYTES])
{
    snprintf(to, NAME_MAX_BYTES, "%s%s%s", name, *suffix != '\0' ? "_" : "", suffix);
    return to;
}

static void
show_rule(struct sink *sink, const char *suffix, uint64_t rate, uint64_t burst)
{
    char name[NAME_MAX_BYTES];
    if (rate == 0) {
        sink_stat(sink, name_of("qps_limit", suffix, name), "off");
    } else {
        sink_statf(sink, name_of("qps_limit", suffix, name), "%" PRIu64, rate);
    }
    sink_statf(sink, name_of("qps_burst", suffix, name), "%" PRIu64,
               rate == 0 ? 0 : burst);
}

static uint64_t
relaxed(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
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
            show_rule(sink, class_name((enum req_class)c), relaxed(&l->by_class[c].rate),
                      relaxed(&l->by_class[c].burst));
        }
    }
    show_rule(sink, "peer", relaxed(&l->peers.rate), relaxed(&l->peers.burst));
    limit_text_describe((enum limiter_action)atomic_load(&l->action),
                        relaxed(&l->max_delay), action);
    sink_stat(sink, "qps_action", action);
    sink_stat(sink, "qps_unit", atomic_load(&l->counts_keys) ? "key" : "cmd");
    sink_stat(sink, "qps_dry_run", atomic_load(&l->is_dry) ? "on" : "off");
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

struct counts {
    uint64_t admitted, delayed, rejected, would_limit;
};

static void
show_counts(struct sink *sink, const char *suffix, const struct counts *n)
{
    char name[NAME_MAX_BYTES];
    sink_statf(sink, name_of("qps_admitted", suffix, name), "%" PRIu64, n->admitted);
    sink_statf(sink, name_of("qps_delayed", suffix, name), "%" PRIu64, n->delayed);
    sink_statf(sink, name_of("qps_rejected", suffix, name), "%" PRIu64, n->rejected);
    sink_statf(sink, name_of("qps_would_limit", suffix, name), "%" PRIu64,
               n->would_limit);
}

static struct counts
sum_counts(const struct stats *st, struct counts by_class[CLASS_COUNT])
{
    struct counts all = {0};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct counts *n = &by_class[c];
        *n = (struct counts){0};
        for (unsigned i = 0; i < st->worker_count; i++) {
            const struct limiter_ctr *ctr = &st->workers[i].core.admission.limits.ctr[c];
            n->admitted += ctr_get(&ctr->admitted);
            n->delayed += ctr_get(&ctr->delayed);
            n->rejected += ctr_get(&ctr->rejected);
            n->would_limit += ctr_get(&ctr->would_limit);
        }
        all.admitted += n->admitted;
        all.delayed += n->delayed;
        all.rejected += n->rejected;
        all.would_limit += n->would_limit;
    }
    return all;
}

static void
show_all_counts(const struct stats *st, struct sink *sink)
{
    struct counts by_class[CLASS_COUNT];
    struct counts all = sum_counts(st, by_class);
    show_counts(sink, "", &all);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (class_is_limited((enum req_class)c)) {
            show_counts(sink, class_name((enum req_class)c), &by_class[c]);
        }
    }
}

void
stats_show_limit(struct stats *st, struct sink *sink)
{
    struct limiter *l = &st->shared->core.limiter;
    uint64_t retries = relaxed(&l->total.cas_retries);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        retries += relaxed(&l->by_class[c].cas_retries);
    }
    show_rules(l, sink);
    show_cpu(st->shared->governor, sink);
    show_all_counts(st, sink);
    sink_statf(sink, "lease_cas_retries", "%" PRIu64, retries);
    sink_statf(sink, "qps_peer_shared", "%" PRIu64, relaxed(&l->peers.shared));
    show_delay(st, sink);
}

static void
show_target(struct sink *sink, const char *suffix, struct slo_target target)
{
    char name[NAME_MAX_BYTES];
    char text[SLO_TEXT_MAX];
    sink_stat(sink, name_of("slo", suffix, name), slo_describe(target, text));
}

struct slo_sum {
    uint64_t level; /* of the worker with the lowest; SLO_PARTS: nothing is refused */
    uint64_t late, held, all, shed[CLASS_COUNT];
    nsec_t patience, serving;
};

static struct slo_sum
sum_slo(const struct stats *st)
{
    const struct slo *slo = &st->shared->core.slo;
    struct slo_sum sum = {.level = SLO_PARTS, .patience = UINT64_MAX};
    nsec_t now = clock_now();
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct slo_watch *w = &st->workers[i].core.admission.slo;
        uint64_t its = slo_is_on(slo) ? slo_level(w, now) : SLO_PARTS;
        nsec_t waits = slo_patience(w, CLASS_SMALL);
        nsec_t takes = waits > 0 ? ctr_get(&w->serving[CLASS_SMALL]) : 0;
        sum.level = its < sum.level ? its : sum.level;
        sum.patience = waits < sum.patience ? waits : sum.patience;
        sum.serving = takes > sum.serving ? takes : sum.serving;
        sum.late += ctr_get(&w->late);
        sum.held += ctr_get(&st->workers[i].core.coalesce.kept);
        for (unsigned c = 0; c < CLASS_COUNT; c++) {
            sum.shed[c] += ctr_get(&w->shed[c]);
            sum.all += ctr_get(&w->shed[c]);
        }
    }
    return sum;
}

static double
level_pct(const struct slo_sum *sum)
{
    return (double)sum->level * 100 / SLO_PARTS;
}

struct stats_qos_summary
stats_sum_qos(struct stats *st)
{
    struct counts by_class[CLASS_COUNT];
    struct counts counts = sum_counts(st, by_class);
    struct slo_sum slo = sum_slo(st);
    return (struct stats_qos_summary){
        .limit = limiter_total(&st->shared->core.limiter).rate,
        .admitted = counts.admitted,
        .delayed = counts.delayed,
        .refused = counts.rejected + slo.all,
        .level_pct = level_pct(&slo),
        .headroom_pct = stats_headroom_pct(st),
    };
}

void
stats_show_slo(struct stats *st, struct sink *sink)
{
    const struct slo *slo = &st->shared->core.slo;
    struct slo_sum sum = sum_slo(st);
    show_target(sink, "", slo_get(slo, SLO_TOTAL));
    sink_statf(sink, "slo_level_pct", "%.1f", level_pct(&sum));
    sink_statf(sink, "slo_shed", "%" PRIu64, sum.all);
    sink_statf(sink, "slo_shed_late", "%" PRIu64, sum.late);
    sink_statf(sink, "slo_held", "%" PRIu64, sum.held);
    sink_statf(sink, "slo_patience_us", "%.1f", us(sum.patience));
    sink_statf(sink, "slo_serving_us", "%.1f", us(sum.serving));
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const char *class = class_name((enum req_class)c);
        char name[NAME_MAX_BYTES];
        if (class_is_limited((enum req_class)c)) {
            show_target(sink, class, slo_get(slo, c));
            sink_statf(sink, name_of("slo_shed", class, name), "%" PRIu64, sum.shed[c]);
        }
    }
}

/* ---- changed -------------------------------------------------------------------------- */

/* Workers that sleep until an earlier time look again. */
static enum reply
relimit(struct stats *st)
{
    for (unsigned i = 0; i < st->worker_count; i++) {
        worker_relimit(&st->workers[i]);
    }
    return REPLY_OK;
}

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

/* qos qps_limit [class] <n|off> [burst] */
enum reply
qos_set_limit(struct stats *st, struct serve_qos *q)
{
    struct limiter *l = &st->shared->core.limiter;
    struct limiter_rule rule = {0};
    enum req_class class = CLASS_NONE;
    bool has_class = limit_text_class(q->words[0].p, q->words[0].len, &class);
    bool has_name = has_class || req_word_is(q->words[0], "total");
    unsigned count = q->count - has_name;
    if (count < 1 || count > 2) {
        return REPLY_BAD_FORMAT;
    }
    const char *error = parse_rule(q->words + has_name, count, LIMIT_RATE_MAX, &rule);
    if (error != NULL) {
        return qos_refuse(q, "%s", error);
    }
    if (has_class) {
        limiter_set_class(l, class, rule, clock_now());
    } else {
        limiter_set_total(l, rule, clock_now());
    }
    return relimit(st);
}

/* qos peer <n|off> [burst] */
enum reply
qos_set_peer(struct stats *st, struct serve_qos *q)
{
    struct limiter_rule rule = {0};
    const char *error = parse_rule(q->words, q->count, PEERS_RATE_MAX, &rule);
    if (error != NULL) {
        return qos_refuse(q, "%s", error);
    }
    limiter_set_peer(&st->shared->core.limiter, rule, clock_now());
    return relimit(st);
}

/* qos action <delay|error|miss|delay:TIME+error> */
enum reply
qos_set_action(struct stats *st, struct serve_qos *q)
{
    enum limiter_action action;
    nsec_t max_delay;
    const char *error =
        limit_text_action(q->words[0].p, q->words[0].len, &action, &max_delay);
    if (error != NULL) {
        return qos_refuse(q, "%s", error);
    }
    limiter_set_action(&st->shared->core.limiter, action, max_delay);
    return relimit(st);
}

/* qos unit <cmd|key> */
enum reply
qos_set_unit(struct stats *st, struct serve_qos *q)
{
    bool counts_keys;
    if (limit_text_unit(q->words[0].p, q->words[0].len, &counts_keys) != NULL) {
        return REPLY_BAD_FORMAT;
    }
    limiter_set_unit(&st->shared->core.limiter, counts_keys);
    return REPLY_OK;
}

/* qos dry_run <on|off> */
enum reply
qos_set_dry_run(struct stats *st, struct serve_qos *q)
{
    bool is_on = req_word_is(q->words[0], "on");
    if (!is_on && !req_word_is(q->words[0], "off")) {
        return REPLY_BAD_FORMAT;
    }
    atomic_store_explicit(&st->shared->core.limiter.is_dry, is_on, memory_order_relaxed);
    return relimit(st);
}

/* qos slo [class] <pNN:TIME|off> */
enum reply
qos_set_slo(struct stats *st, struct serve_qos *q)
{
    struct slo_target target;
    enum req_class class = CLASS_NONE;
    const struct slice *last = &q->words[q->count - 1];
    if (q->count == 2 && !req_word_is(q->words[0], "total") &&
        !limit_text_class(q->words[0].p, q->words[0].len, &class)) {
        return REPLY_BAD_FORMAT;
    }
    const char *error = slo_parse_target(last->p, last->len, &target);
    if (error != NULL) {
        return qos_refuse(q, "%s", error);
    }
    slo_set(&st->shared->core.slo, class == CLASS_NONE ? SLO_TOTAL : (unsigned)class,
            target);
    return REPLY_OK;
}

/* qos cpu_limit <N%|off> */
enum reply
qos_set_cpu_limit(struct stats *st, struct serve_qos *q)
{
    unsigned percent;
    const char *error = limit_text_percent(q->words[0].p, q->words[0].len, &percent);
    if (error != NULL) {
        return qos_refuse(q, "%s", error);
    }
    governor_set(st->shared->governor, percent);
    return REPLY_OK;
}
