/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/view.h"

#include <stdarg.h>

#include "base/fold.h"

#define NAME_BYTES 80
#define VIEW_LINE 1100
#define LINE_WIDTH 79
#define NAME_WIDTH 10

static const char *const class_names[VIEW_CLASSES] = {"control", "small", "write", "bulk",
                                                      "background"};

/* ---- samples -------------------------------------------------------------------------- */

/* The first lines of "qos": limits and targets, as the server puts them at its start, too. */
static enum outcome
ask_brief(struct facts *f, struct link *l)
{
    static const char *const names[] = {"brief_limits", "brief_targets"};
    unsigned n = 0;
    char *line = link_word(l, "qos");
    for (; line != NULL && strcmp(line, "END") != 0 && strcmp(line, "ERROR") != 0;
         line = link_line(l)) {
        if (n < sizeof names / sizeof names[0]) {
            facts_add(f, names[n++], line);
        }
    }
    return line != NULL ? DONE : UNREACHABLE;
}

enum outcome
view_sample(struct facts *f, struct link *l)
{
    static const char *const groups[] = {"qos", "classes", "latency", "pin"};
    f->at = clock_now();
    enum outcome outcome = facts_ask(f, l, "");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && outcome == DONE; i++) {
        if (strcmp(groups[i], "classes") == 0) {
            f->asked = l->asked;
            f->login_asked = l->login_asked;
        }
        outcome = facts_ask(f, l, groups[i]);
        if (outcome != UNREACHABLE && facts_text(f, "server_version") == NULL) {
            return DONE; /* another memcached */
        }
    }
    return outcome == DONE ? ask_brief(f, l) : outcome;
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
    return grown < 0 ? 0 : grown / v->seconds; /* less: "stats reset" */
}

/* ---- tables --------------------------------------------------------------------------- */

enum column_kind { RATE, SHARE, LEVEL, TIME, CPU };

/* clang-format off */
static const struct view_form {
    const char *title, *key;           /* of the table, and of each row's name */
    const char *note, *note_key;
    int width;                         /* of a column */
    struct column {
        const char *title, *key;
        enum column_kind kind;
        const char *stat;              /* '*' is the row's name */
    } columns[VIEW_COLUMNS_MAX + 1];
} class_form = {"classes", "class", "stage", "longest_stage", 9, {
    [CLASS_SERVED] = {"served/s", "requests_per_s", RATE, "class_*_served"},
    [CLASS_QUEUED] = {"queued/s", "queued_per_s", RATE, "class_*_queued"},
    [CLASS_LIMITED] = {"limited/s", "limited_per_s", RATE, "qps_delayed_*"},
    [CLASS_REFUSED] = {"refused/s", "refused_per_s", RATE, "qps_rejected_*"},
    [CLASS_TURN] = {"turn p99", "turn_p99_us", TIME, "class_*_wait_p99_us"},
    [CLASS_STAGE] = {"stage p99", "longest_stage_p99_us", TIME, ""},
}}, worker_form = {"workers", "worker", "place", "place", 11, {
    [WORKER_CPU] = {"CPU", "cpu", CPU, "pin_worker_*_cpu"},
    [WORKER_BUSY] = {"busy", "busy_pct", SHARE, "pin_worker_*_sched_run_ns"},
    [WORKER_WAITING] = {"waits CPU", "waiting_pct", SHARE, "pin_worker_*_sched_wait_ns"},
    [WORKER_CONNS] = {"connections", "connections", LEVEL, "worker_*_conns"},
    [WORKER_CAPACITY] = {"capacity/s", "capacity_per_s", LEVEL, "qos_worker_*_capacity"},
}};
/* clang-format on */

static double
or_zero(double x)
{
    return isnan(x) ? 0 : x;
}

/* Percent of the time. The kernel accounts a wait when it is over: one second may have more. */
static double
share(double ns_per_s)
{
    return isnan(ns_per_s) ? NAN : fmin(100, 100 * ns_per_s / (double)NSEC_PER_SEC);
}

static double
cell_of(const struct view *v, const struct column *c, const char *row)
{
    char name[NAME_BYTES];
    const char *star = strchrnul(c->stat, '*');
    snprintf(name, sizeof name, "%.*s%s%s", (int)(star - c->stat), c->stat, row,
             star + (*star != '\0'));
    double level = facts_number(v->now, "%s", name);
    return c->kind == RATE    ? view_rate(v, "%s", name)
           : c->kind == SHARE ? share(view_rate(v, "%s", name))
           : c->kind == CPU   ? (view_has_qos(v) ? fmax(-1, level) : level)
                              : level;
}

static void
fill(struct view *v, struct view_table *t, const struct view_form *form, unsigned count)
{
    *t = (struct view_table){form, calloc(count + 1, sizeof *t->rows), count};
    must(t->rows != NULL);
    for (unsigned i = 0; i < count; i++) {
        struct view_row *row = &t->rows[i];
        row->number = i;
        if (form == &class_form) {
            snprintf(row->name, sizeof row->name, "%s", class_names[i]);
        } else {
            snprintf(row->name, sizeof row->name, "%u", i);
        }
        for (unsigned c = 0; form->columns[c].title != NULL; c++) {
            row->cells[c] = cell_of(v, &form->columns[c], row->name);
        }
    }
}

/* What is no statistic as it stands. */
static void
finish_class(const struct view *v, struct view_row *c)
{
    static const char *const stages[] = {"kernel", "loop", "read", "execute", "write"};
    c->cells[CLASS_REFUSED] += or_zero(view_rate(v, "slo_shed_%s", c->name));
    if (!(facts_number(v->now, "class_%s_queued", c->name) > 0)) {
        c->cells[CLASS_TURN] = NAN;
    }
    c->note = "";
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        double p99 = facts_number(v->now, "latency_%s_%s_p99_us", c->name, stages[i]);
        if (facts_number(v->now, "latency_%s_%s_count", c->name, stages[i]) > 0 &&
            !(p99 <= c->cells[CLASS_STAGE])) {
            c->note = stages[i];
            c->cells[CLASS_STAGE] = p99;
        }
    }
}

static void
finish_worker(const struct view *v, struct view_row *w)
{
    const char *crowded = facts_text(v->now, "worker_%s_crowded", w->name);
    w->note = facts_number(v->now, "pin_worker_%s_errno", w->name) > 0 ? "error"
              : view_rate(v, "pin_worker_%s_drift", w->name) > 0       ? "moved"
              : crowded != NULL && strcmp(crowded, "yes") == 0         ? "crowded"
              : w->cells[WORKER_CPU] >= 0                              ? "pinned"
              : view_has_qos(v)                                        ? "free"
                                                                       : "";
}

/* ---- one view ------------------------------------------------------------------------- */

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

/* What it counts has begun anew where it was started again between the two; in a container it has the
 * same number then. */
static bool
is_same_process(const struct facts *before, const struct facts *now)
{
    return facts_number(before, "pid") == facts_number(now, "pid") &&
           facts_number(before, "uptime") <= facts_number(now, "uptime");
}

/* By "stats reset", between the two. */
static bool
has_reset_hits(const struct view *v)
{
    return v->before != NULL &&
           (facts_number(v->now, "get_hits") < facts_number(v->before, "get_hits") ||
            facts_number(v->now, "get_misses") < facts_number(v->before, "get_misses"));
}

/* What was asked here is no load: an idle server has none. */
static void
forget_own(const struct view *v, double *served, unsigned own)
{
    double rate = own / v->seconds;
    *served = *served < rate ? 0 : *served - rate;
}

void
view_init(struct view *v, const struct facts *before, const struct facts *now)
{
    double uptime = facts_number(now, "uptime"), workers = facts_number(now, "threads");
    unsigned asked = before != NULL ? before->asked : 0;
    unsigned login_asked = before != NULL ? before->login_asked : 0;
    if (before != NULL && !is_same_process(before, now)) {
        before = NULL;
    }
    *v = (struct view){.before = before, .now = now};
    v->seconds = before != NULL ? (double)(now->at - before->at) / (double)NSEC_PER_SEC
                                : fmax(1, or_zero(uptime));
    double hits = view_rate(v, "get_hits"), misses = view_rate(v, "get_misses");
    v->hit_pct = has_reset_hits(v) ? NAN : 100 * hits / (hits + misses);
    v->evictions = view_rate(v, "evictions");
    v->headroom_pct = facts_number(now, "qos_headroom_pct");
    v->capacity = facts_number(now, "qos_capacity_now");
    fill(v, &v->classes, &class_form, VIEW_CLASSES);
    fill(v, &v->workers, &worker_form,
         workers > 0 && workers <= VIEW_WORKERS_MAX ? (unsigned)workers : 0);
    forget_own(v, &v->classes.rows[0].cells[CLASS_SERVED], now->asked - asked);
    forget_own(v, &v->classes.rows[1].cells[CLASS_SERVED],
               now->login_asked - login_asked);
    for (unsigned i = 0; i < VIEW_CLASSES; i++) {
        finish_class(v, &v->classes.rows[i]);
        v->requests += or_zero(v->classes.rows[i].cells[CLASS_SERVED]);
    }
    for (unsigned i = 0; i < v->workers.count; i++) {
        finish_worker(v, &v->workers.rows[i]);
    }
    v->requests = view_has_qos(v) ? v->requests : plain_requests(v);
    view_find(v);
}

void
view_fini(struct view *v)
{
    free(v->classes.rows);
    free(v->workers.rows);
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
    int step = us < 1e3 ? 0 : us < 1e6 ? 1 : 2;
    snprintf(dst, VIEW_NUMBER, "%.*f %s", step > 0, us / pow(1e3, step),
             (const char *[]){"us", "ms", "s"}[step]);
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

/* "2 d 3 h", "41 s". */
static const char *
duration(double seconds, char dst[VIEW_NUMBER])
{
    unsigned long s = (unsigned long)or_zero(seconds), days = s / 86400;
    unsigned long hours = s / 3600 % 24, minutes = s / 60 % 60;
    if (days + hours > 0) {
        snprintf(dst, VIEW_NUMBER, days > 0 ? "%lu d %lu h" : "%lu h %lu min",
                 days > 0 ? days : hours, days > 0 ? hours : minutes);
    } else {
        snprintf(dst, VIEW_NUMBER, minutes > 0 ? "%lu min" : "%lu s",
                 minutes > 0 ? minutes : s);
    }
    return dst;
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
    char up[VIEW_NUMBER];
    const char *version = text_or(v->now, "version", "?");
    const char *conns = text_or(v->now, "curr_connections", "?");
    if (view_has_qos(v)) {
        fprintf(out, "%s: memcached-qos %s (memcached %s)", server,
                facts_text(v->now, "server_version"), version);
    } else {
        fprintf(out, "%s: memcached %s, without QoS", server, version);
    }
    fprintf(out, ", up %s, %s connection%s\n",
            duration(facts_number(v->now, "uptime"), up), conns,
            strcmp(conns, "1") == 0 ? "" : "s");
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
            has_reset_hits(v)   ? "hits were reset"
            : isnan(v->hit_pct) ? "no gets"
                                : strcat(percent(v->hit_pct, b), " of gets hit"));
    fprintf(out, "memory    %s of %s MB in use; %s evictions a second\n",
            view_count(facts_number(v->now, "bytes") / 1048576, a),
            view_count(facts_number(v->now, "limit_maxbytes") / 1048576, b),
            view_count(v->evictions, (char[VIEW_NUMBER]){0}));
}

static double
load_of(const struct view_row *w)
{
    return or_zero(w->cells[WORKER_BUSY]) + or_zero(w->cells[WORKER_WAITING]);
}

static void
put_qos(const struct view *v, FILE *out)
{
    char a[VIEW_NUMBER], b[VIEW_NUMBER], limits[VIEW_LINE];
    const char *policy = text_or(v->now, "pin_policy", "none");
    const struct view_row *most = v->workers.rows, *w = most;
    for (unsigned i = 0; i < v->workers.count; i++) {
        most = load_of(w + i) > load_of(most) ? w + i : most;
    }
    snprintf(limits, sizeof limits, "%s; %s", text_or(v->now, "brief_limits", "?"),
             text_or(v->now, "brief_targets", "?"));
    fputs("QoS       ", out);
    fold_text(out, limits, NAME_WIDTH, LINE_WIDTH);
    fprintf(out, "headroom  %s of the workers' time", percent(v->headroom_pct, a));
    if (v->capacity > v->requests) {
        fprintf(out, "; about %s requests a second at most", view_count(v->capacity, a));
    }
    fprintf(out, "\nworkers   %u, ", v->workers.count);
    if (strcmp(policy, "none") == 0) {
        fputs("not pinned", out);
    } else {
        fprintf(out, "pinned (%s, %s)", policy, text_or(v->now, "pin_layout", "?"));
    }
    fprintf(out, "; busiest: %u (%s busy, %s without CPU)\n", most->number,
            percent(most->cells[WORKER_BUSY], a),
            percent(most->cells[WORKER_WAITING], b));
}

void
view_summary(const struct view *v, const char *server, FILE *out)
{
    put_head(v, server, out);
    for (unsigned i = 0; i < v->finding_count; i++) {
        fputs("! ", out);
        fold_text(out, v->findings[i].text, strlen("! "), LINE_WIDTH);
    }
    if (v->finding_count == 0 && view_has_qos(v)) {
        fputs("OK: nothing waits for a limit, nothing is refused, every worker has its "
              "CPU\n",
              out);
    }
    put_load(v, out);
    if (view_has_qos(v)) {
        put_qos(v, out);
    }
}

static const char *
cell_text(enum column_kind kind, double cell, char dst[VIEW_NUMBER])
{
    return kind == TIME                  ? view_time(cell, dst)
           : kind == SHARE               ? percent(cell, dst)
           : kind == CPU && !(cell >= 0) ? "any"
                                         : view_count(cell, dst);
}

void
view_print(const struct view *v, const struct view_table *t, bool is_all, FILE *out)
{
    char n[VIEW_NUMBER];
    const struct column *columns = t->form->columns;
    fprintf(out, "%-*s", NAME_WIDTH, t->form->key);
    for (unsigned c = 0; columns[c].title != NULL; c++) {
        fprintf(out, " %*s", t->form->width, columns[c].title);
    }
    fprintf(out, "  %s\n", t->form->note);
    for (const struct view_row *row = t->rows; row < t->rows + t->count; row++) {
        /* Without what is asked here, and what was never asked for. */
        bool is_used =
            row->number > 0 && (facts_number(v->now, "class_%s_served", row->name) > 0 ||
                                row->cells[CLASS_REFUSED] > 0);
        if (!is_all && !is_used) {
            continue;
        }
        fprintf(out, "%-*s", NAME_WIDTH, row->name);
        for (unsigned c = 0; columns[c].title != NULL; c++) {
            fprintf(out, " %*s", t->form->width,
                    cell_text(columns[c].kind, row->cells[c], n));
        }
        fprintf(out, "%s%s\n", *row->note != '\0' ? "  " : "", row->note);
    }
}

/* ---- JSON ----------------------------------------------------------------------------- */

/* With all digits; null where the server does not tell it. */
static struct json_member
json_bytes(const char *key, double bytes)
{
    struct json_member exact = JSON_EXACT(key, bytes), none = JSON_NULL(key);
    return isfinite(bytes) ? exact : none;
}

/* Likewise. */
static struct json_member
json_told(const char *key, const char *text)
{
    struct json_member told = JSON(key, text), none = JSON_NULL(key);
    return text != NULL ? told : none;
}

void
view_put(const struct view *v, struct json *j)
{
    const struct facts *f = v->now;
    json_put(j, JSON("version", text_or(f, "version", "")),
             JSON("server_version", text_or(f, "server_version", "")),
             JSON("has_qos", view_has_qos(v)),
             JSON("since_start", (bool)(v->before == NULL)), JSON("seconds", v->seconds),
             JSON("uptime_s", facts_number(f, "uptime")),
             JSON("connections", facts_number(f, "curr_connections")),
             JSON("requests_per_s", v->requests), JSON("hit_pct", v->hit_pct),
             JSON("evictions_per_s", v->evictions),
             json_bytes("bytes", facts_number(f, "bytes")),
             json_bytes("limit_bytes", facts_number(f, "limit_maxbytes")),
             JSON("headroom_pct", v->headroom_pct), JSON("capacity_per_s", v->capacity),
             json_told("qps_limit", facts_text(f, "qps_limit")),
             json_told("qps_action", facts_text(f, "qps_action")),
             json_told("cpu_limit", facts_text(f, "cpu_limit")),
             json_told("slo", facts_text(f, "slo")),
             JSON("slo_level_pct", facts_number(f, "slo_level_pct")));
    json_open(j, "findings", '[');
    for (unsigned i = 0; i < v->finding_count; i++) {
        json_object_of(j, NULL, JSON("what", v->findings[i].what),
                       JSON("text", v->findings[i].text));
    }
    json_close(j, ']');
}

void
view_put_table(const struct view_table *t, struct json *j)
{
    json_open(j, t->form->title, '[');
    for (const struct view_row *row = t->rows; row < t->rows + t->count; row++) {
        json_open(j, NULL, '{');
        json_put(j, json_of_value(t->form->key, row->name));
        for (unsigned c = 0; t->form->columns[c].title != NULL; c++) {
            json_put(j, JSON(t->form->columns[c].key, row->cells[c]));
        }
        json_put(j, JSON(t->form->note_key, row->note));
        json_close(j, '}');
    }
    json_close(j, ']');
}
