/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Targets for the queueing delay. The policy: qos/slo.h.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "front/front.h"
#include "qos/limit_text.h"

static const char *
set_slo(void *conf, const char *text)
{
    struct settings *s = conf;
    return front_blame("slo", slo_parse(text, strlen(text), s->slo));
}

static void
read_targets(void *program, void *conf)
{
    struct stats *st = program;
    for (unsigned i = 0; i < SLO_RULES; i++) {
        ((struct settings *)conf)->slo[i] = slo_get(&st->shared->core.slo, i);
    }
}

/* A class that no request is of has a target. */
static bool
bounds_nothing(const struct settings *s, const struct class_conf *classes)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (s->slo[c].ns > 0 && !class_occurs(classes, (enum req_class)c)) {
            return true;
        }
    }
    return false;
}

static bool
apply_targets(void *program, const void *conf)
{
    struct stats *st = program;
    if (bounds_nothing(conf, &st->shared->core.classes)) {
        return false;
    }
    for (unsigned i = 0; i < SLO_RULES; i++) {
        slo_set(&st->shared->core.slo, i, ((const struct settings *)conf)->slo[i]);
    }
    return true;
}

/* "p95:500us,bulk=p99:20000us". */
static void
tell_targets(const void *conf, char *to, size_t size)
{
    const struct slo_target *targets = ((const struct settings *)conf)->slo;
    char text[SLO_TEXT_MAX];
    struct phrase t = {to, size, 0};
    phrase_add(&t, "%s", slo_describe(targets[SLO_TOTAL], text));
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (targets[c].ns > 0) {
            phrase_add(&t, ",%s=%s", class_name((enum req_class)c),
                       slo_describe(targets[c], text));
        }
    }
}

static const struct opt_live live = {read_targets, apply_targets, tell_targets, NULL};

static const struct opt options[] = {
    {.name = "slo",
     SET(set_slo),
     .arg = "pNN:TIME[,CLASS=...]",
     .section = QOS,
     .common = 17,
     .adds_up = true,
     .live = &live,
     .help = "bound the queueing delay, e.g. p95:500us"},
};

static const char *
settle(struct settings *s, struct settling *to)
{
    (void)to;
    return bounds_nothing(s, &s->classes) ? "a class's --slo needs --classes=on" : NULL;
}

static void
wire(const struct settings *s, struct net_shared *shared)
{
    slo_init(&shared->core.slo);
    for (unsigned i = 0; i < SLO_RULES; i++) {
        slo_set(&shared->core.slo, i, s->slo[i]);
    }
}

/* ---- statistics ----------------------------------------------------------------------- */

static const struct stats_counter counters[] = {
    {"slo_shed_late", COUNTER_OF(core.admission.slo.late)},
    {"slo_held", COUNTER_OF(core.coalesce.kept)},
};

static uint64_t
shed_of(const struct stats *st, unsigned class)
{
    return front_sum(st, COUNTER_OF(core.admission.slo.shed) + class * sizeof(ctr_t));
}

uint64_t
slo_shed(const struct stats *st)
{
    uint64_t sum = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        sum += shed_of(st, c);
    }
    return sum;
}

/* Of the worker with the lowest. */
double
slo_level_pct(const struct stats *st)
{
    uint64_t level = SLO_PARTS; /* nothing is refused */
    nsec_t now = clock_now();
    for (unsigned i = 0; slo_is_on(&st->shared->core.slo) && i < st->worker_count; i++) {
        uint64_t its = slo_level(&st->workers[i].core.admission.slo, now);
        level = its < level ? its : level;
    }
    return (double)level * 100 / SLO_PARTS;
}

static void
show_times(const struct stats *st, struct sink *sink)
{
    nsec_t patience = UINT64_MAX, serving = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct slo_watch *w = &st->workers[i].core.admission.slo;
        nsec_t waits = slo_wait_budget(w, CLASS_SMALL);
        nsec_t takes = waits > 0 ? ctr_get(&w->serving[CLASS_SMALL]) : 0;
        patience = waits < patience ? waits : patience;
        serving = takes > serving ? takes : serving;
    }
    sink_statf(sink, "slo_patience_us", "%.1f", front_us(patience));
    sink_statf(sink, "slo_serving_us", "%.1f", front_us(serving));
}

static void
show_target(struct sink *sink, const char *suffix, struct slo_target target)
{
    char name[FRONT_NAME_MAX];
    char text[SLO_TEXT_MAX];
    sink_stat(sink, front_name("slo", suffix, name), slo_describe(target, text));
}

static void
show(struct stats *st, struct sink *sink)
{
    const struct slo *slo = &st->shared->core.slo;
    show_target(sink, "", slo_get(slo, SLO_TOTAL));
    sink_statf(sink, "slo_level_pct", "%.1f", slo_level_pct(st));
    sink_statf(sink, "slo_shed", "%" PRIu64, slo_shed(st));
    front_put_counters(st, sink, ROWS_OF(counters));
    show_times(st, sink);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const char *class = class_name((enum req_class)c);
        char name[FRONT_NAME_MAX];
        if (class_is_limited((enum req_class)c)) {
            show_target(sink, class, slo_get(slo, c));
            sink_statf(sink, front_name("slo_shed", class, name), "%" PRIu64,
                       shed_of(st, c));
        }
    }
}

/* ---- command -------------------------------------------------------------------------- */

static enum reply
run_slo(struct stats *st, struct serve_qos *q)
{
    struct slo_target target;
    enum req_class class = CLASS_NONE;
    const struct slice *last = &q->words[q->count - 1];
    if (q->count == 2 && !req_word_is(q->words[0], "total") &&
        !limit_text_class(q->words[0].p, q->words[0].len, &class)) {
        return front_refuse(q, "%s", LIMIT_TEXT_NO_CLASS);
    }
    const char *error = slo_parse_target(last->p, last->len, &target);
    if (error != NULL) {
        return front_refuse(q, "%s", error);
    }
    if (class != CLASS_NONE && target.ns > 0 &&
        !class_occurs(&st->shared->core.classes, class)) {
        return front_refuse(q, "classes are off: start the server with --classes=on");
    }
    slo_set(&st->shared->core.slo, class == CLASS_NONE ? SLO_TOTAL : (unsigned)class,
            target);
    return REPLY_OK;
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "slo", .arguments = "[class] <pNN:TIME|off>", .least = 1, .most = 2,
     .is_control = true, .run = run_slo,
     .meaning = "bound the queueing delay, in all or of a class"},
};
/* clang-format on */

const struct front front_slo = {OPTIONS(options),     COMMANDS(commands),
                                .usage = FRONT_USAGE, .settle = settle,
                                .wire = wire,         .show = show};
