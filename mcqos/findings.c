/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/view.h"

#include <math.h>
#include <stdarg.h>

#include "base/cpumask.h"

#define LOW_HEADROOM_PCT 10
#define LONG_WAIT_PCT 5 /* of the time, without the CPU that a worker wants */
#define LIST_BYTES 100

__attribute__((format(printf, 3, 4))) static void
add(struct view *v, const char *what, const char *format, ...)
{
    must(v->finding_count < VIEW_FINDINGS_MAX);
    struct view_finding *f = &v->findings[v->finding_count++];
    va_list args;
    va_start(args, format);
    f->what = what;
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

/* "bulk 1,200, small 30": the classes with a rate of this counter; the sum of them. */
static double
find_classes(const struct view *v, const char *counter, char dst[LIST_BYTES])
{
    char n[VIEW_NUMBER];
    size_t len = 0;
    double sum = 0;
    for (unsigned i = 0; i < v->classes.count; i++) {
        const char *name = v->classes.rows[i].name;
        double rate = view_rate(v, "%s_%s", counter, name);
        if (rate > 0 && len < LIST_BYTES) {
            len += (size_t)snprintf(dst + len, LIST_BYTES - len, "%s%s %s",
                                    len > 0 ? ", " : "", name, view_count(rate, n));
            sum += rate;
        }
    }
    return sum;
}

/* What a higher limit would change. Refusals take time, too, which is there for what is admitted in
 * their place; what waits has taken none yet. */
static const char *
if_raised(const struct view *v, double refused, char dst[LIST_BYTES])
{
    char n[VIEW_NUMBER];
    bool has_room = v->headroom_pct >= LOW_HEADROOM_PCT;
    double room = v->capacity - v->requests;
    double more = refused > 0 ? fmin(room, refused) : room;
    if (!has_room && refused == 0) {
        return "a higher limit would not help: the workers have no time left";
    }
    if (more > 0) {
        snprintf(dst, LIST_BYTES, "a higher one (mcqos limit) would admit up to %s more",
                 view_count(more, n));
        return dst;
    }
    return "a higher one (mcqos limit) would admit more";
}

static void
check_limits(struct view *v)
{
    char classes[LIST_BYTES], more[LIST_BYTES], n[VIEW_NUMBER];
    double refused = find_classes(v, "qps_rejected", classes);
    if (refused > 0) {
        add(v, "limit_refuses", "requests are refused by a limit: %s a second; %s",
            classes, if_raised(v, refused, more));
    }
    if (find_classes(v, "qps_delayed", classes) > 0) {
        double p99 = facts_number(v->now, "qps_delay_p99_us");
        add(v, "limit_delays", "requests wait for a limit: %s a second (p99 %s); %s",
            classes, view_time(p99, n), if_raised(v, 0, more));
    }
    if (find_classes(v, "qps_would_limit", classes) > 0) {
        add(v, "limit_would", "dry run: the limits would hold %s a second", classes);
    }
    if (find_classes(v, "slo_shed", classes) > 0) {
        add(v, "slo_refuses",
            "requests are refused to keep the target of waiting times: %s a second; a "
            "longer target (mcqos slo) or more CPU admits them",
            classes);
    }
}

static void
check_room(struct view *v)
{
    if (v->headroom_pct < LOW_HEADROOM_PCT) {
        add(v, "no_headroom",
            "the workers have %.1f %% of their time left: requests queue; more workers "
            "(-t), CPUs or servers help",
            fmax(0, v->headroom_pct));
    }
    if (view_rate(v, "rejected_connections") > 0 ||
        view_rate(v, "listen_disabled_num") > 0) {
        /* But for the descriptors that the server keeps for itself, and one. */
        double most = facts_number(v->now, "max_connections") -
                      facts_number(v->now, "reserved_fds") - 1;
        char text[32] = "the";
        if (isfinite(most)) {
            snprintf(text, sizeof text, "%.0f", most);
        }
        add(v, "connections_refused",
            "clients are refused: all %s connections are in use (-c)", text);
    }
}

/* "worker 3 waits", "workers 0-2,5 wait" */
static const char *
with_verb(const struct cpumask *workers, const char *one, const char *several,
          char dst[LIST_BYTES])
{
    char list[LIST_BYTES / 2];
    bool is_one = cpumask_count(workers) == 1;
    cpumask_describe(workers, list, sizeof list);
    snprintf(dst, LIST_BYTES, "%s %s %s", is_one ? "worker" : "workers", list,
             is_one ? one : several);
    return dst;
}

/* All workers of a kind in one sentence: there may be many. */
static void
check_workers(struct view *v)
{
    struct cpumask waiting = {0}, moved = {0}; /* numbers of workers */
    char list[LIST_BYTES];
    double longest = 0;
    for (unsigned i = 0; i < v->workers.count; i++) {
        const struct view_row *w = &v->workers.rows[i];
        if (w->cells[WORKER_WAITING] > LONG_WAIT_PCT) {
            longest = fmax(longest, w->cells[WORKER_WAITING]);
            cpumask_add(&waiting, i);
        }
        if (strcmp(w->note, "moved") == 0) {
            cpumask_add(&moved, i);
        }
    }
    if (cpumask_count(&waiting) > 0) {
        add(v, "cpu_wait",
            "%s for a CPU, up to %.0f %% of the time: other programs run there; "
            "move them, or see --sched, --balance",
            with_verb(&waiting, "waits", "wait", list), longest);
    }
    if (cpumask_count(&moved) > 0) {
        bool is_one = cpumask_count(&moved) == 1;
        add(v, "moved", "%s moved off %s from outside (taskset, cpuset)",
            with_verb(&moved, "was", "were", list), is_one ? "its CPU" : "their CPUs");
    }
}

/* Counters of `stats pin` that should be 0. */
static void
check_placement(struct view *v)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"pin_errors",
         "threads could not be bound to their CPUs: is the cpuset smaller than "
         "--pin wants? (mcqos pin)"},
        {"pin_oversubscribed",
         "the workers share CPUs: more workers than CPUs (-t auto)"},
        {"sched_errors",
         "the kernel refuses --sched: it needs CAP_SYS_NICE, LimitNICE= or "
         "LimitRTPRIO="},
        {"pin_membind_errors", "memory could not be bound as --membind asks (mcqos pin)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (facts_number(v->now, "%s", rows[i].name) > 0) {
            add(v, rows[i].name, "%s", rows[i].text);
        }
    }
}

void
view_find(struct view *v)
{
    check_limits(v);
    check_room(v);
    check_workers(v);
    check_placement(v);
}
