/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/view.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "mcqos/findings.h"

#define NAME_BYTES 80
#define LINE_WIDTH 79
#define NS_PER_SECOND 1e9

static const char *const class_names[VIEW_CLASSES] = {"control", "small", "write", "bulk",
                                                      "background"};

/* ---- samples -------------------------------------------------------------------------- */

enum outcome
view_sample(struct facts *f, struct link *l)
{
    static const char *const groups[] = {"qos", "classes", "latency", "pin"};
    f->at = clock_now();
    enum outcome outcome = facts_ask(f, l, "");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && outcome == DONE; i++) {
        outcome = facts_ask(f, l, groups[i]);
        if (outcome != UNREACHABLE && facts_text(f, "server_version") == NULL) {
            return DONE; /* another memcached */
        }
    }
    return outcome;
}

double
view_rate(const struct view *v, const char *format, ...)
{
    char name[NAME_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    double grown = facts_number(v->now, "%s", name);
    if (v->before != NULL) {
        grown -= facts_number(v->before, "%s", name);
    }
    return grown < 0 ? 0 : grown / v->seconds; /* less: the server was started again */
}

/* ---- one view ------------------------------------------------------------------------- */

static double
or_zero(double x)
{
    return isnan(x) ? 0 : x;
}

static void
add_class(struct view *v, struct view_class *c)
{
    static const char *const stages[] = {"kernel", "loop", "read", "execute", "write"};
    c->served = view_rate(v, "class_%s_served", c->name);
    c->queued = view_rate(v, "class_%s_queued", c->name);
    c->delayed = view_rate(v, "qps_delayed_%s", c->name);
    c->refused = view_rate(v, "qps_rejected_%s", c->name) +
                 or_zero(view_rate(v, "slo_shed_%s", c->name));
    c->is_used = facts_number(v->now, "class_%s_served", c->name) > 0 || c->refused > 0;
    c->turn_p99 = facts_number(v->now, "class_%s_queued", c->name) > 0
                      ? facts_number(v->now, "class_%s_wait_p99_us", c->name)
                      : NAN;
    c->stage_p99 = NAN;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        double p99 = facts_number(v->now, "latency_%s_%s_p99_us", c->name, stages[i]);
        if (facts_number(v->now, "latency_%s_%s_count", c->name, stages[i]) > 0 &&
            (c->stage == NULL || p99 > c->stage_p99)) {
            c->stage = stages[i];
            c->stage_p99 = p99;
        }
    }
}

static void
add_worker(const struct view *v, struct view_worker *w)
{
    unsigned n = w->number;
    double cpu = facts_number(v->now, "pin_worker_%u_cpu", n);
    const char *crowded = facts_text(v->now, "worker_%u_crowded", n);
    w->cpu = cpu >= 0 ? (int)cpu : -1;
    w->busy_pct = 100 * view_rate(v, "pin_worker_%u_sched_run_ns", n) / NS_PER_SECOND;
    w->waiting_pct = 100 * view_rate(v, "pin_worker_%u_sched_wait_ns", n) / NS_PER_SECOND;
    w->conns = facts_number(v->now, "worker_%u_conns", n);
    w->capacity = facts_number(v->now, "qos_worker_%u_capacity", n);
    w->place = facts_number(v->now, "pin_worker_%u_errno", n) > 0 ? "error"
               : view_rate(v, "pin_worker_%u_drift", n) > 0       ? "moved"
               : crowded != NULL && strcmp(crowded, "yes") == 0   ? "crowded"
               : w->cpu >= 0                                      ? "pinned"
                                                                  : "free";
}

static void
add_workers(struct view *v)
{
    double count = facts_number(v->now, "threads");
    v->worker_count = count > 0 && count <= VIEW_WORKERS_MAX ? (unsigned)count : 0;
    v->workers = calloc(v->worker_count + 1, sizeof *v->workers);
    must(v->workers != NULL);
    for (unsigned i = 0; i < v->worker_count; i++) {
        v->workers[i].number = i;
        add_worker(v, &v->workers[i]);
    }
}

/* Of a server that does not count requests by class: what there is of commands. */
static double
plain_requests(const struct view *v)
{
    static const char *const names[] = {"cmd_get",     "cmd_set",       "cmd_touch",
                                        "delete_hits", "delete_misses", "incr_hits",
                                        "incr_misses", "decr_hits",     "decr_misses"};
    double sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sum += or_zero(view_rate(v, "%s", names[i]));
    }
    return sum;
}

bool
view_has_qos(const struct view *v)
{
    return facts_text(v->now, "server_version") != NULL;
}

void
view_init(struct view *v, const struct facts *before, const struct facts *now)
{
    double uptime = facts_number(now, "uptime");
    *v = (struct view){.before = before, .now = now};
    v->seconds = before != NULL ? (double)(now->at - before->at) / (double)NSEC_PER_SEC
                                : fmax(1, or_zero(uptime));
    double hits = view_rate(v, "get_hits"), misses = view_rate(v, "get_misses");
    v->hit_pct = 100 * hits / (hits + misses);
    v->evictions = view_rate(v, "evictions");
    v->headroom_pct = facts_number(now, "qos_headroom_pct");
    v->capacity = facts_number(now, "qos_capacity_now");
    for (unsigned i = 0; i < VIEW_CLASSES; i++) {
        v->classes[i].name = class_names[i];
        add_class(v, &v->classes[i]);
        v->requests += or_zero(v->classes[i].served);
    }
    v->requests = view_has_qos(v) ? v->requests : plain_requests(v);
    add_workers(v);
    findings_add(v);
}

void
view_fini(struct view *v)
{
    free(v->workers);
    *v = (struct view){0};
}

/* ---- numbers for people --------------------------------------------------------------- */

const char *
view_count(double n, char dst[VIEW_NUMBER])
{
    if (isnan(n)) {
        return strcpy(dst, "-");
    }
    if (n > 0 && n < 10 && n != floor(n)) {
        snprintf(dst, VIEW_NUMBER, "%.1f", n);
        return dst;
    }
    char digits[VIEW_NUMBER];
    int len = snprintf(digits, sizeof digits, "%.0f", fmin(n, 1e15)), at = 0;
    for (int i = 0; i < len; i++) {
        dst[at++] = digits[i];
        if ((len - i) % 3 == 1 && i + 1 < len) {
            dst[at++] = ',';
        }
    }
    dst[at] = '\0';
    return dst;
}

const char *
view_time(double us, char dst[VIEW_NUMBER])
{
    if (isnan(us)) {
        return strcpy(dst, "-");
    }
    snprintf(dst, VIEW_NUMBER,
             us < 1e3   ? "%.0f us"
             : us < 1e6 ? "%.1f ms"
                        : "%.1f s",
             us < 1e3   ? us
             : us < 1e6 ? us / 1e3
                        : us / 1e6);
    return dst;
}

static char *
percent(double pct, char dst[VIEW_NUMBER])
{
    if (isnan(pct)) {
        return strcpy(dst, "-");
    }
    snprintf(dst, VIEW_NUMBER, "%.*f %%", pct < 10 ? 1 : 0, pct);
    return dst;
}

/* ---- text ----------------------------------------------------------------------------- */

static void
put_uptime(const struct view *v, FILE *out)
{
    double s = or_zero(facts_number(v->now, "uptime"));
    unsigned long minutes = (unsigned long)s / 60, hours = minutes / 60,
                  days = hours / 24;
    if (days > 0) {
        fprintf(out, ", up %lu d %lu h", days, hours % 24);
    } else if (hours > 0) {
        fprintf(out, ", up %lu h %lu min", hours, minutes % 60);
    } else if (minutes > 0) {
        fprintf(out, ", up %lu min", minutes);
    } else {
        fprintf(out, ", up %.0f s", s);
    }
}

static const char *
text_or(const struct facts *f, const char *name, const char *other)
{
    const char *text = facts_text(f, "%s", name);
    return text != NULL ? text : other;
}

static void
put_head(const struct view *v, const char *server, FILE *out)
{
    const char *version = text_or(v->now, "version", "?");
    if (view_has_qos(v)) {
        fprintf(out, "%s: memcached-qos %s (memcached %s)", server,
                facts_text(v->now, "server_version"), version);
    } else {
        fprintf(out, "%s: memcached %s, without QoS", server, version);
    }
    put_uptime(v, out);
    fprintf(out, ", %s connections\n", text_or(v->now, "curr_connections", "?"));
}

static void
put_load(const struct view *v, FILE *out)
{
    char a[VIEW_NUMBER], b[VIEW_NUMBER], over[40] = "since the start";
    if (v->before != NULL) {
        snprintf(over, sizeof over, "over %.1f s", v->seconds);
    }
    fprintf(out, "load      %s requests a second (%s); %s\n", view_count(v->requests, a),
            over,
            isnan(v->hit_pct) ? "no gets"
                              : strcat(percent(v->hit_pct, b), " of gets hit"));
    fprintf(out, "memory    %s of %s MB in use; %s evictions a second\n",
            view_count(facts_number(v->now, "bytes") / 1048576, a),
            view_count(facts_number(v->now, "limit_maxbytes") / 1048576, b),
            view_count(v->evictions, (char[VIEW_NUMBER]){0}));
}

/* "50000 a second in all, bulk 1000; above: delay; SLO p95:500us". */
static void
put_limits(const struct view *v, FILE *out)
{
    const char *total = text_or(v->now, "qps_limit", "off");
    const char *cpu = text_or(v->now, "cpu_limit", "off");
    bool has_limit = strcmp(total, "off") != 0;
    fprintf(out, "limits    %s%s", has_limit ? total : "",
            has_limit ? " a second in all" : "");
    for (unsigned i = 0; i <= VIEW_CLASSES; i++) {
        const char *name = i < VIEW_CLASSES ? class_names[i] : "peer";
        const char *limit = facts_text(v->now, "qps_limit_%s", name);
        if (limit != NULL && strcmp(limit, "off") != 0) {
            fprintf(out, "%s%s %s", has_limit ? ", " : "", name, limit);
            has_limit = true;
        }
    }
    if (strcmp(cpu, "off") != 0) {
        fprintf(out, "%scpu %s", has_limit ? ", " : "", cpu);
        has_limit = true;
    }
    if (has_limit) {
        bool is_dry = strcmp(text_or(v->now, "qps_dry_run", "off"), "on") == 0;
        fprintf(out, "; above: %s",
                is_dry ? "counted only (dry run)" : text_or(v->now, "qps_action", "?"));
    } else {
        fputs("none", out);
    }
    fprintf(out, "; SLO %s\n", text_or(v->now, "slo", "off"));
}

static const struct view_worker *
busiest(const struct view *v)
{
    const struct view_worker *most = NULL;
    for (unsigned i = 0; i < v->worker_count; i++) {
        if (most == NULL || v->workers[i].busy_pct + v->workers[i].waiting_pct >
                                most->busy_pct + most->waiting_pct) {
            most = &v->workers[i];
        }
    }
    return most;
}

static void
put_workers_line(const struct view *v, FILE *out)
{
    char a[VIEW_NUMBER], b[VIEW_NUMBER];
    const struct view_worker *most = busiest(v);
    const char *policy = text_or(v->now, "pin_policy", "none");
    fprintf(out, "headroom  %s of the workers' time", percent(v->headroom_pct, a));
    if (v->capacity > 0) { /* 0: there is too little load to tell */
        fprintf(out, "; about %s requests a second at most", view_count(v->capacity, b));
    }
    fputc('\n', out);
    fprintf(out, "workers   %u, ", v->worker_count);
    if (strcmp(policy, "none") == 0) {
        fputs("not pinned", out);
    } else {
        fprintf(out, "pinned (%s, %s)", policy, text_or(v->now, "pin_layout", "?"));
    }
    if (most != NULL) {
        fprintf(out, "; busiest: %u (%s busy, %s without CPU)", most->number,
                percent(most->busy_pct, a), percent(most->waiting_pct, b));
    }
    fputc('\n', out);
}

/* Broken between words, the lines behind the first one indented. */
static void
put_folded(const char *mark, const char *text, FILE *out)
{
    size_t room = LINE_WIDTH - strlen(mark);
    fputs(mark, out);
    while (strlen(text) > room) {
        size_t len = room;
        while (len > 0 && text[len] != ' ') {
            len--;
        }
        len = len > 0 ? len : room;
        fprintf(out, "%.*s\n%*s", (int)len, text, (int)strlen(mark), "");
        text += len + (text[len] == ' ');
    }
    fprintf(out, "%s\n", text);
}

void
view_summary(const struct view *v, const char *server, FILE *out)
{
    put_head(v, server, out);
    for (unsigned i = 0; i < v->finding_count; i++) {
        put_folded("! ", v->findings[i].text, out);
    }
    if (v->finding_count == 0 && view_has_qos(v)) {
        fputs("OK: nothing waits for a limit, nothing is refused, every worker has its "
              "CPU\n",
              out);
    }
    put_load(v, out);
    if (view_has_qos(v)) {
        put_limits(v, out);
        put_workers_line(v, out);
    }
}

void
view_classes(const struct view *v, bool is_all, FILE *out)
{
    char n[6][VIEW_NUMBER];
    fprintf(out, "%-10s %10s %9s %9s %9s %9s  %s\n", "class", "requests/s", "queued/s",
            "limited/s", "refused/s", "turn p99", "longest p99");
    for (unsigned i = 0; i < VIEW_CLASSES; i++) {
        const struct view_class *c = &v->classes[i];
        /* Without what is asked here, and what was never asked for. */
        if (is_all || (i > 0 && c->is_used)) {
            fprintf(out, "%-10s %10s %9s %9s %9s %9s  %s %s\n", c->name,
                    view_count(c->served, n[0]), view_count(c->queued, n[1]),
                    view_count(c->delayed, n[2]), view_count(c->refused, n[3]),
                    view_time(c->turn_p99, n[4]), c->stage != NULL ? c->stage : "",
                    view_time(c->stage_p99, n[5]));
        }
    }
}

void
view_workers(const struct view *v, FILE *out)
{
    char n[4][VIEW_NUMBER], cpu[VIEW_NUMBER];
    fprintf(out, "%-10s %11s %11s %11s %11s %11s  %s\n", "worker", "CPU", "busy",
            "waits CPU", "connections", "capacity/s", "place");
    for (unsigned i = 0; i < v->worker_count; i++) {
        const struct view_worker *w = &v->workers[i];
        snprintf(cpu, sizeof cpu, "%d", w->cpu);
        fprintf(out, "%-10u %11s %11s %11s %11s %11s  %s\n", w->number,
                w->cpu >= 0 ? cpu : "any", percent(w->busy_pct, n[0]),
                percent(w->waiting_pct, n[1]), view_count(w->conns, n[2]),
                view_count(w->capacity, n[3]), w->place);
    }
}

/* ---- JSON ----------------------------------------------------------------------------- */

void
view_put(const struct view *v, struct json *j)
{
    const struct facts *f = v->now;
    json_put(j, JSON("version", text_or(f, "version", "")),
             JSON("server_version", text_or(f, "server_version", "")),
             JSON("has_qos", view_has_qos(v)), JSON("since_start", v->before == NULL),
             JSON("seconds", v->seconds), JSON("uptime_s", facts_number(f, "uptime")),
             JSON("connections", facts_number(f, "curr_connections")),
             JSON("requests_per_s", v->requests), JSON("hit_pct", v->hit_pct),
             JSON("evictions_per_s", v->evictions),
             JSON("bytes", facts_number(f, "bytes")),
             JSON("limit_bytes", facts_number(f, "limit_maxbytes")),
             JSON("headroom_pct", v->headroom_pct), JSON("capacity_per_s", v->capacity),
             JSON("qps_limit", text_or(f, "qps_limit", "off")),
             JSON("qps_action", text_or(f, "qps_action", "")),
             JSON("cpu_limit", text_or(f, "cpu_limit", "off")),
             JSON("slo", text_or(f, "slo", "off")),
             JSON("slo_level_pct", facts_number(f, "slo_level_pct")));
    json_open(j, "findings", '[');
    for (unsigned i = 0; i < v->finding_count; i++) {
        json_object_of(j, NULL, JSON("what", v->findings[i].what),
                       JSON("text", (const char *)v->findings[i].text));
    }
    json_close(j, ']');
}

void
view_put_classes(const struct view *v, struct json *j)
{
    json_open(j, "classes", '[');
    for (unsigned i = 0; i < VIEW_CLASSES; i++) {
        const struct view_class *c = &v->classes[i];
        json_object_of(j, NULL, JSON("class", c->name), JSON("requests_per_s", c->served),
                       JSON("queued_per_s", c->queued), JSON("limited_per_s", c->delayed),
                       JSON("refused_per_s", c->refused),
                       JSON("turn_p99_us", c->turn_p99),
                       JSON("longest_stage", c->stage != NULL ? c->stage : ""),
                       JSON("longest_stage_p99_us", c->stage_p99));
    }
    json_close(j, ']');
}

void
view_put_workers(const struct view *v, struct json *j)
{
    json_open(j, "workers", '[');
    for (unsigned i = 0; i < v->worker_count; i++) {
        const struct view_worker *w = &v->workers[i];
        json_object_of(j, NULL, JSON("worker", w->number), JSON("cpu", (double)w->cpu),
                       JSON("busy_pct", w->busy_pct), JSON("waiting_pct", w->waiting_pct),
                       JSON("connections", w->conns), JSON("capacity_per_s", w->capacity),
                       JSON("place", w->place));
    }
    json_close(j, ']');
}
