/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the workers run, as what, and where memory is: --pin, --sched, --busy-poll, --membind,
 * --resctrl. The mechanisms: place/placement.h, place/scheduling.h, sock/busypoll.h.
 */
#include <inttypes.h>

#include "front/front.h"
#include "net/stint.h"
#include "place/cgroup.h"
#include "place/membind.h"
#include "place/pinner.h"
#include "place/prio.h"
#include "place/resctrl.h"
#include "place/scheduling.h"
#include "place/threadstat.h"

#define WORKERS_PER_CALL 2 /* of each the kernel is asked */

/* ---- options -------------------------------------------------------------------------- */

static const char *
set_pin(void *conf, const char *text)
{
    struct settings *s = conf;
    pin_spec_fini(&s->pin);
    s->is_pinned = true;
    return pin_spec_parse(&s->pin, text);
}

static const char *
set_resctrl(void *conf, const char *text)
{
    ((struct settings *)conf)->resctrl.group = text;
    return resctrl_check_group(text);
}

static const char *
set_schemata(void *conf, const char *text)
{
    ((struct settings *)conf)->resctrl.schemata = text;
    return resctrl_check_schemata(text);
}

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'T', .name = "pin", SET(set_pin), .section = THREADS, .common = 15,
     .arg = "spread|compact|cores|llc|2s6c1t|list:CPUS|none?", .preset_help = "off; no value: spread",
     .help = "pin workers to CPUs"},
    {.name = "sched", PARSE(prio_parse, sched), .arg = "other:N|slice:T|fifo[:P]|rr[:P]|bvt|batch",
     .section = THREADS, .help = "scheduling policy of workers; other:N is a nice value"},
    {.name = "irq-suspend", .kind = OPT_FLAG, OF(busy_poll.prefers), .section = THREADS,
     .help = "workers prefer polling, so that the NIC's interrupts can stay off"},
    {.name = "busy-poll", PARSE(busypoll_parse, busy_poll), .arg = "USECS[:BUDGET]",
     .section = THREADS, .preset = "0", .help = "busy-poll the NIC for USECS before sleeping; 0: off"},
    {.name = "resctrl", SET(set_resctrl), .arg = "GROUP", .section = THREADS,
     .help = "workers join this group of resctrl (cache and memory bandwidth)"},
    {.name = "resctrl-schemata", SET(set_schemata), .arg = "LIMITS", .section = THREADS,
     .help = "create the group with these limits, such as L3:0=ff0;MB:0=70"},
    {.name = "resctrl-root", .kind = OPT_TEXT, OF(resctrl.root), .arg = "DIR",
     .section = THREADS, .preset = RESCTRL_ROOT, .help = "mount point of resctrl"},
    {.name = "membind", PARSE(membind_parse, membind), .arg = "interleave|local|node:K|none",
     .section = THREADS, .help = "memory nodes of the items"},
    {.name = "pin-dry-run", .kind = OPT_SET, OF(action), .value = ACTION_PIN_DRY_RUN,
     .section = THREADS, .after = "balance", .is_argv_only = true,
     .help = "print the pin plan and exit"},
};
/* clang-format on */

static const char *
settle(struct settings *s, struct settling *to)
{
    (void)to;
    return s->resctrl.schemata != NULL && s->resctrl.group == NULL
               ? "resctrl-schemata are the limits of a group: --resctrl names it"
               : NULL;
}

struct placement_conf
settings_placement(const struct settings *s)
{
    return (struct placement_conf){
        .workers = (unsigned)s->threads,
        .items_mb = (uint64_t)s->memory_mb,
        .pin = s->pin,
        .membind = s->membind,
        .sched = s->sched,
        .resctrl = s->resctrl,
    };
}

static void
wire(const struct settings *s, struct net_shared *shared)
{
    shared->busy_poll = s->busy_poll;
}

/* ---- statistics ----------------------------------------------------------------------- */

static void
show_worker(struct pinner *p, unsigned i, struct sink *sink)
{
    struct pinner_seat seat;
    struct threadstat stat;
    struct prio_seen seen;
    char prefix[24];
    snprintf(prefix, sizeof prefix, "pin_worker_%u_", i);
    pinner_seat(p, i, &seat);
    threadstat_read(seat.tid, &stat);
    uint64_t migrations = stat.migrations > seat.migrations_before
                              ? stat.migrations - seat.migrations_before
                              : 0;
    sink_stat_of(sink, prefix, "tid", "%d", (int)seat.tid);
    sink_stat_of(sink, prefix, "cpu", "%d", seat.error == 0 ? seat.place.cpu : -1);
    sink_stat_of(sink, prefix, "package", "%d", seat.place.package);
    sink_stat_of(sink, prefix, "llc", "%d", seat.place.llc);
    sink_stat_of(sink, prefix, "core", "%d", seat.place.core);
    sink_stat_of(sink, prefix, "numa", "%d", seat.place.numa);
    sink_stat_of(sink, prefix, "errno", "%d", seat.error);
    sink_stat_of(sink, prefix, "drift", "%" PRIu64, seat.drifts);
    sink_stat_of(sink, prefix, "migrations", "%" PRIu64, migrations);
    if (prio_read(seat.tid, &seen) == 0) {
        sink_stat_of(sink, prefix, "sched_policy", "%s", seen.policy);
        sink_stat_of(sink, prefix, "sched_nice", "%d", seen.nice);
        sink_stat_of(sink, prefix, "sched_priority", "%u", seen.priority);
        sink_stat_of(sink, prefix, "sched_slice_ns", "%" PRIu64, seen.slice_ns);
    }
    sink_stat_of(sink, prefix, "sched_run_ns", "%" PRIu64, stat.run_ns);
    sink_stat_of(sink, prefix, "sched_wait_ns", "%" PRIu64, stat.wait_ns);
}

static void
show_busy_poll(const struct stats *st, struct sink *sink)
{
    unsigned errors = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        errors += atomic_load(&st->workers[i].busy_poll_error) != 0;
    }
    sink_statf(sink, "busy_poll_usecs", "%u", st->shared->busy_poll.usecs);
    sink_statf(sink, "busy_poll_budget", "%u", st->shared->busy_poll.budget);
    sink_stat(sink, "irq_suspend", st->shared->busy_poll.prefers ? "on" : "off");
    sink_statf(sink, "busy_poll_errors", "%u", errors);
}

static uint64_t
gave_way(const struct stats *st)
{
    uint64_t times = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        times += ctr_get(&st->shared->stints[i].gave_way);
    }
    return times;
}

/* Of the workers, as the kernel tells. */
static void
show_sched(struct stats *st, struct sink *sink)
{
    const struct scheduling *schedule = st->shared->schedule;
    struct prio_seen seen;
    struct pinner_seat seat;
    char autogroup[32];
    /* All workers have the same, unless one was changed from outside: "stats pin" shows
     * it. */
    pinner_seat(st->shared->pinner, 0, &seat);
    prio_autogroup(autogroup, sizeof autogroup);
    bool is_seen = prio_read(seat.tid, &seen) == 0;
    sink_stat(sink, "sched", prio_name(&schedule->spec));
    sink_stat(sink, "sched_policy", is_seen ? seen.policy : "unknown");
    sink_statf(sink, "sched_nice", "%d", seen.nice);
    sink_statf(sink, "sched_priority", "%u", seen.priority);
    sink_statf(sink, "sched_slice_ns", "%" PRIu64, seen.slice_ns);
    sink_stat(sink, "sched_autogroup", autogroup);
    sink_statf(sink, "sched_errors", "%u", schedule->errors);
    sink_statf(sink, "sched_gave_way", "%" PRIu64, gave_way(st));
    sink_statf(sink, "sched_nudges", "%" PRIu64, scheduling_nudges(schedule));
    sink_statf(sink, "sched_nudgers_refused", "%u", scheduling_nudgers_refused(schedule));
}

static void
show_membind(const struct membind *m, struct sink *sink)
{
    sink_stat(sink, "pin_membind", membind_name(&m->spec));
    sink_statf(sink, "pin_membind_areas", "%lu",
               atomic_load_explicit(&m->areas, memory_order_relaxed));
    sink_statf(sink, "pin_membind_errors", "%lu",
               atomic_load_explicit(&m->errors, memory_order_relaxed) +
                   (m->why[0] != '\0'));
}

static void
show_plan(struct stats *st, struct sink *sink)
{
    struct pinner_summary s;
    unsigned quota = cgroup_quota_milli("", CGROUP_SELF, NULL);
    pinner_summary(st->shared->pinner, &s);
    sink_stat(sink, "pin_policy", pin_policy_name(s.policy));
    sink_stat(sink, "pin_layout", s.layout);
    sink_stat(sink, "pin_allowed", s.allowed_list);
    sink_statf(sink, "pin_allowed_cpus", "%u", s.allowed);
    if (quota > 0) {
        sink_statf(sink, "pin_quota", "%u.%03u", quota / 1000, quota % 1000);
    } else {
        sink_stat(sink, "pin_quota", "none");
    }
    sink_statf(sink, "pin_oversubscribed", "%d", s.is_oversubscribed);
    sink_stat(sink, "pin_background", s.background_list[0] ? s.background_list : "any");
    sink_statf(sink, "pin_replans", "%" PRIu64, s.replans);
    sink_statf(sink, "pin_errors", "%" PRIu64, s.errors);
    show_sched(st, sink);
    show_busy_poll(st, sink);
    show_membind(st->shared->membind, sink);
}

/* The plan first, then some workers a call. */
static enum reply
show_pin(struct stats *st, const struct stats_query *ask)
{
    if (ask->place->at++ == 0) {
        show_plan(st, ask->sink);
        return REPLY_NONE;
    }
    unsigned first = (ask->place->at - 2) * WORKERS_PER_CALL;
    unsigned end = first + WORKERS_PER_CALL;
    end = end < st->worker_count ? end : st->worker_count;
    for (unsigned i = first; i < end; i++) {
        show_worker(st->shared->pinner, i, ask->sink);
    }
    return end < st->worker_count ? REPLY_NONE : REPLY_END;
}

static void
show_measure(void *ctx, const char *domain, const char *event, const char *value)
{
    char name[RESCTRL_TEXT_MAX];
    snprintf(name, sizeof name, "resctrl_%s_%s", domain, event);
    sink_stat(ctx, name, value);
}

static enum reply
show_resctrl(struct stats *st, const struct stats_query *ask)
{
    struct sink *sink = ask->sink;
    const struct resctrl *r = st->shared->resctrl;
    char schemata[RESCTRL_TEXT_MAX];
    if (r->conf.group == NULL) {
        return REPLY_END;
    }
    resctrl_schemata(r, schemata, sizeof schemata);
    sink_stat(sink, "resctrl_group", r->conf.group);
    sink_statf(sink, "resctrl_workers", "%u", r->joined);
    sink_statf(sink, "resctrl_errors", "%u", r->errors);
    sink_stat(sink, "resctrl_schemata", schemata);
    resctrl_measure(r, show_measure, sink);
    return REPLY_END;
}

static enum reply
run_repin(struct stats *st, struct serve_qos *q)
{
    (void)q;
    pinner_repin(st->shared->pinner);
    return REPLY_OK;
}

static const struct stats_group groups[] = {
    {"pin", show_pin},
    {"resctrl", show_resctrl},
};

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "repin", .arguments = "", .is_control = true, .run = run_repin,
     .meaning = "plan and pin the threads again"},
};
/* clang-format on */

const struct front front_pin = {OPTIONS(options),     COMMANDS(commands), GROUPS(groups),
                                .usage = FRONT_USAGE, .settle = settle,   .wire = wire,
                                .show = show_sched};
