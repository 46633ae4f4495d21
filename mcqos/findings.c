/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/findings.h"

#include <math.h>
#include <stdarg.h>

#define LOW_HEADROOM_PCT 10
#define LONG_WAIT_PCT 5 /* of the time, without the CPU that a worker wants */

__attribute__((format(printf, 3, 4))) static void
add(struct view *v, const char *what, const char *format, ...)
{
    if (v->finding_count == VIEW_FINDINGS_MAX) {
        return;
    }
    struct view_finding *f = &v->findings[v->finding_count++];
    va_list args;
    va_start(args, format);
    f->what = what;
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

/* "bulk 1,200, small 30": the classes with a rate of this counter. Returns their sum. */
static double
classes_of(const struct view *v, const char *counter, char *dst, size_t cap)
{
    char n[VIEW_NUMBER];
    double sum = 0;
    size_t len = 0;
    *dst = '\0';
    for (unsigned i = 0; i < VIEW_CLASSES; i++) {
        double rate = view_rate(v, "%s_%s", counter, v->classes[i].name);
        if (rate > 0) {
            len += (size_t)snprintf(dst + len, cap - len, "%s%s %s", len > 0 ? ", " : "",
                                    v->classes[i].name, view_count(rate, n));
            sum += rate;
        }
    }
    return sum;
}

/* What a higher limit would change. */
static const char *
if_raised(const struct view *v, char dst[128])
{
    char n[VIEW_NUMBER];
    if (isnan(v->headroom_pct) || v->headroom_pct < LOW_HEADROOM_PCT) {
        return "a higher limit would not help: the workers have no time left";
    }
    snprintf(dst, 128, "a higher one (mcqos limit) would admit up to %s more",
             view_count(fmax(0, v->capacity - v->requests), n));
    return dst;
}

static void
check_limits(struct view *v)
{
    char classes[100], more[128], n[VIEW_NUMBER];
    if (classes_of(v, "qps_rejected", classes, sizeof classes) > 0) {
        add(v, "limit_refuses", "requests are refused by a limit: %s a second; %s",
            classes, if_raised(v, more));
    }
    if (classes_of(v, "qps_delayed", classes, sizeof classes) > 0) {
        double p99 = facts_number(v->now, "qps_delay_p99_us");
        add(v, "limit_delays", "requests wait for a limit: %s a second (p99 %s); %s",
            classes, view_time(p99, n), if_raised(v, more));
    }
    if (classes_of(v, "qps_would_limit", classes, sizeof classes) > 0) {
        add(v, "limit_would", "dry run: the limits would hold %s a second", classes);
    }
}

static void
check_slo(struct view *v)
{
    char classes[100];
    if (classes_of(v, "slo_shed", classes, sizeof classes) > 0) {
        add(v, "slo_refuses",
            "requests are refused to keep the target of waiting times: %s a second; a "
            "longer "
            "target (mcqos slo) or more CPU admits them",
            classes);
    }
}

static void
check_room(struct view *v)
{
    if (v->headroom_pct < LOW_HEADROOM_PCT) {
        add(v, "no_headroom",
            "the workers have %.1f %% of their time left: requests queue; more workers "
            "(-t), "
            "CPUs or servers help",
            fmax(0, v->headroom_pct));
    }
    if (view_rate(v, "rejected_connections") > 0 ||
        view_rate(v, "listen_disabled_num") > 0) {
        const char *most = facts_text(v->now, "max_connections");
        add(v, "connections_refused",
            "clients are refused: all %s connections are in use (-c)",
            most != NULL ? most : "the");
    }
}

static void
check_workers(struct view *v)
{
    for (unsigned i = 0; i < v->worker_count; i++) {
        const struct view_worker *w = &v->workers[i];
        char cpu[VIEW_NUMBER] = "a CPU";
        if (w->cpu >= 0) {
            snprintf(cpu, sizeof cpu, "CPU %d", w->cpu);
        }
        if (w->waiting_pct > LONG_WAIT_PCT) {
            add(v, "cpu_wait",
                "worker %u waits for %s %.0f %% of the time: other programs run there; "
                "move "
                "them, or see --sched, --balance",
                w->number, cpu, w->waiting_pct);
        }
        if (strcmp(w->place, "moved") == 0) {
            add(v, "moved", "worker %u was moved off %s from outside (taskset, cpuset)",
                w->number, cpu);
        }
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
findings_add(struct view *v)
{
    check_limits(v);
    check_slo(v);
    check_room(v);
    check_workers(v);
    check_placement(v);
}
