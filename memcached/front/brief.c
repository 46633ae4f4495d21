/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/brief.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/phrase.h"
#include "front/front.h"
#include "control/governor.h"
#include "net/shared.h"
#include "qos/limit_text.h"

/* "limit 50000 (burst 100)" or, of a class, ", bulk 1000 (burst 16)". */
static void
add_rule(struct phrase *line, const char *name, uint64_t rate, uint64_t burst)
{
    if (rate > 0) {
        phrase_add(line, "%s %" PRIu64 " (burst %" PRIu64 ")", name, rate, burst);
    }
}

static void
add_limits(struct phrase *line, const struct stats *st)
{
    struct limiter *l = &st->shared->core.limiter;
    struct limiter_rule total = limiter_total(l);
    char action[LIMIT_TEXT_ACTION_MAX], name[32];
    uint64_t cpu_rate;
    unsigned cpu = governor_get(st->shared->governor, &cpu_rate);
    add_rule(line, "limit", total.rate,
             total.burst != 0 ? total.burst : limit_default_burst(total.rate));
    phrase_add(line, "%s", total.rate > 0 ? "" : "limit off");
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (class_is_limited((enum req_class)c)) {
            snprintf(name, sizeof name, ", %s", class_name((enum req_class)c));
            add_rule(line, name, front_relaxed(&l->by_class[c].rate),
                     front_relaxed(&l->by_class[c].burst));
        }
    }
    add_rule(line, ", peer", front_relaxed(&l->peers.rate),
             front_relaxed(&l->peers.burst));
    if (cpu > 0) {
        phrase_add(line, ", cpu %u%%", cpu);
    }
    limit_text_describe((enum limiter_action)atomic_load(&l->action),
                        front_relaxed(&l->max_delay), action);
    phrase_add(line, "; action %s, unit %s%s", action,
               atomic_load(&l->counts_keys) ? "key" : "cmd",
               atomic_load(&l->is_dry) ? ", dry run" : "");
}

static void
add_targets(struct phrase *line, const struct stats *st)
{
    const struct slo *slo = &st->shared->core.slo;
    char text[SLO_TEXT_MAX];
    phrase_add(line, "slo %s", slo_describe(slo_get(slo, SLO_TOTAL), text));
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (class_is_limited((enum req_class)c) && slo_get(slo, c).ns > 0) {
            phrase_add(line, ", %s %s", class_name((enum req_class)c),
                       slo_describe(slo_get(slo, c), text));
        }
    }
}

void
brief_settings(const struct stats *st, char lines[BRIEF_LINES][BRIEF_MAX])
{
    struct phrase limits = {lines[0], BRIEF_MAX, 0}, targets = {lines[1], BRIEF_MAX, 0},
                  rest = {lines[2], BRIEF_MAX, 0};
    const struct settings *s = st->settings;
    add_limits(&limits, st);
    add_targets(&targets, st);
    phrase_add(&rest, "classes %s; steer %s, sched %s, balance %s",
               front_on(st->shared->core.classes.is_on),
               steer_mode_name(st->listen->steer_mode), prio_name(&s->sched),
               front_on(s->balances));
}
