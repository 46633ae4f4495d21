/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/campaign/campaign.h"

#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loadgen/campaign/runner.h"
#include "loadgen/report/report.h"
#include "loadgen/report/schema.h"
#include "loadgen/run/servers.h"
#include "loadgen/search/scan.h"

#define BUDGET_RUNS 40  /* of a search, when no time is given */
#define RUN_SPARE_S 0.1 /* a run takes more than its window: connecting, draining */
#define RUNS_HEAD "{\"schema\":\"" REPORT_SCHEMA "\",\"tool\":\"mcload\",\"runs\":[\n"
#define STREAM_SCAN 0x7363616e

struct campaign {
    const struct options *o;
    struct runner runner;
    struct output *output; /* reports */
    FILE *err;             /* failures */
    FILE *log;             /* how a search goes on; NULL: not wanted */
    double *rates;         /* of the next run, one a class */
    bool has_rates;        /* that are not the options' */
    double peak_qps;       /* 0: not measured */
    double varied_peak;    /* likewise, of the class whose rate is varied */
    struct result_warmup warmup;
    unsigned reported; /* runs */
};

static enum exit_status
run_one(struct campaign *c, const struct run_spec *spec, struct result *result)
{
    enum exit_status status = runner_once(&c->runner, spec, result);
    if (status == EXIT_VALID) {
        result->peak_qps = c->peak_qps;
        result->warmup = c->warmup;
        result->env = &c->output->env;
    }
    return status;
}

static double
qps_of(const struct result *r)
{
    return result_ratio((double)counters_done(&r->total), r->elapsed_s);
}

static enum exit_status
status_of(const struct campaign *c, const struct result *r)
{
    return !r->is_valid                      ? EXIT_INVALID
           : c->o->asserts && !r->is_slo_met ? EXIT_MISSED
                                             : EXIT_VALID;
}

/* The worse of two: EXIT_VALID is the best, of the others the lower number is the worse. */
static enum exit_status
worse(enum exit_status a, enum exit_status b)
{
    return a == EXIT_VALID || (b != EXIT_VALID && b < a) ? b : a;
}

/* Several runs are an array in an object. */
static void
write_json(struct campaign *c, const struct result *r, bool is_one_of_many)
{
    FILE *json = c->output->to[OUTPUT_JSON];
    if (json == NULL) {
        return;
    }
    if (is_one_of_many) {
        fputs(c->reported > 0 ? ",\n" : RUNS_HEAD, json);
    }
    report_json(r, c->o, c->output->argc, c->output->argv, json);
}

static void
end_json(struct campaign *c)
{
    if (c->output->to[OUTPUT_JSON] != NULL) {
        fputs(c->reported > 0 ? "]}\n" : RUNS_HEAD "]}\n", c->output->to[OUTPUT_JSON]);
    }
}

/* In full, wherever it was asked for. */
static enum exit_status
report(struct campaign *c, const struct result *r, bool is_one_of_many)
{
    bool is_written = output_report(c->output, r, c->reported == 0);
    write_json(c, r, is_one_of_many);
    c->reported++;
    return is_written ? status_of(c, r) : EXIT_UNREACHABLE;
}

/* Otherwise the report is the JSON. */
static bool
has_text(const struct campaign *c)
{
    return c->o->format != FORMAT_JSON;
}

/* ---- the peak ------------------------------------------------------------------------ */

static enum exit_status
peak_status(const struct campaign *c, bool was_interrupted)
{
    if (was_interrupted || !(c->peak_qps > 0)) {
        return options_fail(c->err, EXIT_INVALID, "no peak: %s",
                            was_interrupted ? "interrupted" : "no request was answered");
    }
    return EXIT_VALID;
}

/* Classes whose rate is a share of their peak: what they come to in a closed loop, all at
 * once. */
static enum exit_status
settle_shares(struct campaign *c)
{
    struct result r;
    for (unsigned i = 0; i < c->o->classes_len; i++) {
        c->has_rates = c->has_rates || c->o->classes[i].qps_share > 0;
        c->rates[i] = c->o->classes[i].qps_share > 0 ? 0 : (double)c->o->classes[i].qps;
    }
    if (!c->has_rates) {
        return EXIT_VALID;
    }
    struct run_spec spec = {.rates = c->rates, .is_probe = true};
    enum exit_status status = run_one(c, &spec, &r);
    if (status != EXIT_VALID) {
        return status;
    }
    for (unsigned i = 0; i < c->o->classes_len; i++) {
        double share = c->o->classes[i].qps_share;
        double peak = qps_of(&r.classes[i]);
        c->peak_qps += share > 0 ? peak : 0;
        c->varied_peak = share > 0 && i == c->o->varied ? peak : c->varied_peak;
        c->rates[i] = share > 0 ? fmax(1, floor(share * peak)) : c->rates[i];
    }
    bool was_interrupted = r.was_interrupted;
    result_fini(&r);
    return peak_status(c, was_interrupted);
}

/* ---- runs that are alike --------------------------------------------------------------- */

/* How far apart they are says more than the confidence of each. */
struct spread {
    unsigned runs, invalid;
    unsigned failed; /* besides: what they came to is not known */
    double qps[2];   /* least, largest */
    struct quantile p50[2], p99[2];
};

static void
widen(double range[2], double value, bool is_first)
{
    range[0] = is_first ? value : fmin(range[0], value);
    range[1] = is_first ? value : fmax(range[1], value);
}

static void
widen_quantile(struct quantile range[2], struct quantile q, bool is_first)
{
    bool may_be_above = q.is_bound || (!is_first && range[1].is_bound);
    range[0] = is_first || q.ns < range[0].ns ? q : range[0];
    range[1] = is_first || q.ns > range[1].ns ? q : range[1];
    range[1].is_bound = may_be_above;
}

static void
spread_add(struct spread *s, const struct result *r)
{
    bool is_first = s->runs == 0;
    widen(s->qps, qps_of(r), is_first);
    widen_quantile(s->p50, result_at(r, r->from, .5), is_first);
    widen_quantile(s->p99, result_at(r, r->from, .99), is_first);
    s->runs++;
    s->invalid += r->is_valid ? 0 : 1;
}

static void
print_range(const char *name, const struct quantile range[2], FILE *out)
{
    fprintf(out, ", %s %s%.1f to %s%.1f us", name, range[0].is_bound ? ">" : "",
            (double)range[0].ns / 1e3, range[1].is_bound ? ">" : "",
            (double)range[1].ns / 1e3);
}

static void
spread_print(const struct spread *s, FILE *out)
{
    fprintf(out, "\nRepeats = %u: QPS %.1f to %.1f", s->runs, s->qps[0], s->qps[1]);
    print_range("p50", s->p50, out);
    print_range("p99", s->p99, out);
    fputc('\n', out);
    if (s->invalid + s->failed > 0) {
        fprintf(out, "INVALID: %u of %u runs\n", s->invalid + s->failed,
                s->runs + s->failed);
    } else {
        fputs("VALID\n", out);
    }
}

/* Below the last table; other forms have tables and nothing else. */
static void
print_spread(const struct campaign *c, const struct spread *s)
{
    if (c->o->format == FORMAT_TEXT || c->o->format == FORMAT_MUTILATE_TEXT) {
        spread_print(s, c->output->to[OUTPUT_REPORT]);
    } else if (!c->o->is_quiet) {
        spread_print(s, c->err);
    }
}

/* A run that fails is the last one: those before it are told all the same. */
static enum exit_status
run_plain(struct campaign *c)
{
    struct result r;
    struct spread spread = {0};
    enum exit_status worst = EXIT_VALID;
    bool is_many = c->o->repeat > 1, is_over = false;
    const double *rates = c->has_rates ? c->rates : NULL;
    if (c->o->has_auto_warmup) {
        enum exit_status status = warmup_run(&c->runner, rates, &c->warmup);
        if (status != EXIT_VALID) {
            return status;
        }
    }
    while (spread.runs < c->o->repeat && !is_over) {
        struct run_spec spec = {
            .rates = rates,
            .is_fresh = spread.runs > 0,
            .stops_early = true,
        };
        enum exit_status status = run_one(c, &spec, &r);
        if (status == EXIT_VALID) {
            is_over = r.was_interrupted;
            status = report(c, &r, is_many);
            spread_add(&spread, &r);
            result_fini(&r);
        } else {
            is_over = true;
            spread.failed++;
        }
        worst = worse(worst, status);
    }
    if (is_many && spread.runs > 0) {
        print_spread(c, &spread);
        end_json(c);
    }
    return worst;
}

/* ---- scans ----------------------------------------------------------------------------- */

/* Whether the load was the last one to be measured. */
static bool
is_over(const struct campaign *c, const struct result *r)
{
    if (!c->o->stop_goal.is_given) {
        return r->was_interrupted;
    }
    const struct goal *g = &c->o->stop_goal;
    struct search_outcome out = outcome_of_run(r, c->o, g, 0);
    return r->was_interrupted || out.value > g->limit_ns;
}

static enum exit_status
scan_point(struct campaign *c, double target, bool is_fresh, bool *ends)
{
    struct result r;
    c->rates[c->o->varied] = target;
    struct run_spec spec = {.rates = c->rates, .is_fresh = is_fresh, .stops_early = true};
    enum exit_status status = run_one(c, &spec, &r);
    if (status != EXIT_VALID) {
        *ends = true;
        return status;
    }
    *ends = is_over(c, &r);
    status = status_of(c, &r);
    if (has_text(c)) {
        report_scan_row(&r, c->o, target, c->output->to[OUTPUT_REPORT]);
        fflush(c->output->to[OUTPUT_REPORT]); /* each point is shown at once */
    }
    if (status != EXIT_VALID && !c->o->is_quiet) {
        fprintf(c->err, "mcload: %.0f/s: ", target);
        report_verdict(&r, false, c->err);
    }
    write_json(c, &r, true);
    c->reported++;
    result_fini(&r);
    return status;
}

static enum exit_status
scan_points(struct campaign *c, const double *points, unsigned count)
{
    enum exit_status worst = EXIT_VALID;
    bool ends = false;
    output_begin(c->output);
    if (has_text(c)) {
        report_scan_head(c->o, c->output->to[OUTPUT_REPORT]);
    }
    for (unsigned i = 0; i < count && !ends; i++) {
        double target = points[i] * (c->o->scan.is_share ? c->peak_qps : 1);
        for (int64_t n = 0; n < c->o->repeat && !ends; n++) {
            enum exit_status status = scan_point(c, fmax(1, floor(target)), n > 0, &ends);
            worst = worse(worst, status);
        }
    }
    end_json(c);
    return worst;
}

/* What 100 % is: measured before when the class's own rate is a share of it, or else now, beside
 * the other classes at their rates. */
static enum exit_status
settle_scan(struct campaign *c)
{
    bool was_interrupted = false;
    if (c->varied_peak == 0) {
        struct result r;
        c->rates[c->o->varied] = 0;
        struct run_spec spec = {.rates = c->rates, .is_probe = true};
        enum exit_status status = run_one(c, &spec, &r);
        if (status != EXIT_VALID) {
            return status;
        }
        was_interrupted = r.was_interrupted;
        c->varied_peak = qps_of(&r.classes[c->o->varied]);
        result_fini(&r);
    }
    c->peak_qps = c->varied_peak;
    return peak_status(c, was_interrupted);
}

static enum exit_status
run_scan(struct campaign *c)
{
    struct rng rng;
    unsigned count = scan_count(&c->o->scan);
    enum exit_status status = c->o->scan.is_share ? settle_scan(c) : EXIT_VALID;
    if (status != EXIT_VALID) {
        return status;
    }
    double *points = alloc_zeroed(count, sizeof *points);
    rng_init(&rng, c->o->seed, STREAM_SCAN);
    scan_fill(&c->o->scan, c->o->scan_order, &rng, points);
    status = scan_points(c, points, count);
    free(points);
    return status;
}

/* ---- searches -------------------------------------------------------------------------- */

static void
log_probe(const struct campaign *c, const struct search_probe *p,
          const struct search_outcome *out)
{
    static const char *const stages[] = {
        [SEARCH_PEAK] = "peak",       [SEARCH_CEILING] = "ceiling",
        [SEARCH_BRACKET] = "bracket", [SEARCH_BISECT] = "bisect",
        [SEARCH_CONFIRM] = "confirm", [SEARCH_DONE] = "answer",
    };
    if (c->log != NULL) {
        fprintf(c->log,
                "mcload: %s: %.0f/s: answered %.1f/s, %.2f%% of offered, latency %.1f us "
                "(%.1f to %.1f)%s\n",
                stages[p->stage], p->rate, out->qps, 100 * out->achieved,
                out->value / 1e3, out->low / 1e3, out->high / 1e3,
                out->is_valid ? "" : ", client too busy");
    }
}

/* A run in the place of the last one, which stays when it fails. */
static enum exit_status
run_next(struct campaign *c, const struct run_spec *spec, struct result *last)
{
    struct result next;
    enum exit_status status = run_one(c, spec, &next);
    if (status == EXIT_VALID) {
        result_fini(last);
        *last = next;
    }
    return status;
}

static enum exit_status
probe(struct campaign *c, struct search *s, struct result *last, bool *is_over)
{
    struct search_probe p = search_next(s);
    struct run_spec spec = {
        .rates = c->rates,
        .time_s = c->o->time_s * p.length,
        .is_fresh = p.is_fresh,
    };
    nsec_t before = clock_now();
    c->rates[c->o->varied] = p.rate > 0 ? fmax(1, p.rate) : 0;
    enum exit_status status = run_next(c, &spec, last);
    if (status != EXIT_VALID) {
        return status;
    }
    double seconds = (double)(clock_now() - before) / (double)NSEC_PER_SEC;
    struct search_outcome out = outcome_of_run(last, c->o, &c->o->goal, seconds);
    log_probe(c, &p, &out);
    search_tell(s, &out);
    *is_over = last->was_interrupted || search_next(s).stage == SEARCH_DONE;
    return EXIT_VALID;
}

/* The table is that of a run at the answer; without one, or when it fails, that of the last
 * run. Ends `last`. */
static enum exit_status
report_answer(struct campaign *c, struct search *s, bool is_over, struct result *last)
{
    struct search_answer a = search_answer(s);
    enum exit_status status = EXIT_VALID;
    c->peak_qps = a.peak;
    if (a.is_met && is_over && !last->was_interrupted) {
        c->rates[c->o->varied] = a.qps;
        status = run_next(c, &(struct run_spec){.rates = c->rates}, last);
    }
    last->peak_qps = c->peak_qps;
    last->search = s;
    last->checks[CHECK_SEARCH] = (struct check){
        true, a.is_found && a.bound != SEARCH_BY_CLIENT, a.is_found ? a.qps : 0, 1};
    last->is_valid = last->is_valid && last->checks[CHECK_SEARCH].is_good;
    status = worse(status, report(c, last, false));
    result_fini(last);
    return status;
}

static enum exit_status
run_search(struct campaign *c)
{
    const struct options *o = c->o;
    struct result last = {0};
    bool is_over = false;
    struct search *s = alloc_zeroed(1, sizeof *s);
    double run_s = o->time_s + o->warmup_s + RUN_SPARE_S;
    search_init(s, &(struct search_conf){
                       .limit = o->goal.limit_ns,
                       .limit_times = o->goal.times,
                       .errors_max = o->goal.errors_max,
                       .tolerance = o->tolerance,
                       .budget_s = o->budget_s > 0 ? o->budget_s : BUDGET_RUNS * run_s,
                       .rate_max = c->rates[c->o->varied],
                   });
    enum exit_status status = EXIT_VALID;
    while (status == EXIT_VALID && !is_over) {
        status = probe(c, s, &last, &is_over);
    }
    if (last.classes_len > 0) { /* a run was made: what is known is told */
        status = worse(status, report_answer(c, s, is_over, &last));
    }
    free(s);
    return status;
}

/* ---- all ------------------------------------------------------------------------------- */

static enum exit_status
run_all(struct campaign *c)
{
    c->rates = alloc_zeroed(c->o->classes_len, sizeof *c->rates);
    enum exit_status status = settle_shares(c);
    if (status == EXIT_VALID) {
        status = c->o->goal.is_given   ? run_search(c)
                 : c->o->scan.is_given ? run_scan(c)
                                       : run_plain(c);
    }
    free(c->rates);
    return status;
}

/* Before it is known what the schedule says. */
static const char *
mode_of(const struct lclass *c)
{
    bool has_rate =
        c->qps > 0 || c->qps_share > 0 || schedule_varies(&c->traffic.schedule);
    return traffic_mode_names[has_rate ? c->traffic.mode : TRAFFIC_CLOSED];
}

static void
print_banner(const struct campaign *c)
{
    for (unsigned i = 0; i < c->o->classes_len; i++) {
        const struct lclass *class = &c->o->classes[i];
        fprintf(c->err,
                "mcload: %s: %s loop, %jd x %jd connections to each of %u servers\n",
                class->name, mode_of(class), (intmax_t) class->threads,
                (intmax_t) class->connections, c->o->servers_len);
    }
}

static enum exit_status
open_and_run(struct campaign *c, const struct run_conf *conf)
{
    enum exit_status status =
        runner_open(&c->runner, conf, c->output->argc, c->output->argv);
    if (status != EXIT_VALID) {
        return status;
    }
    if (!c->o->load_only) {
        status = run_all(c);
    } else if (!c->o->is_quiet) {
        fprintf(c->err, "mcload: %ju records stored\n",
                (uintmax_t)runner_loaded(&c->runner));
    }
    runner_close(&c->runner);
    return status;
}

enum exit_status
campaign_run(const struct options *o, struct output *output)
{
    struct campaign c = {.o = o, .output = output, .err = output->err};
    struct servers servers;
    char err[512];
    enum exit_status status = servers_open(&servers, o, err, sizeof err);
    if (status != EXIT_VALID) {
        servers_close(&servers);
        return options_fail(c.err, status, "%s", err);
    }
    struct run_conf conf = {
        .options = o,
        .targets = servers.all,
        .tls = servers.tls,
        .shard = servers_shard(&servers),
        .has_progress =
            !o->is_quiet && (o->progress == PROGRESS_ALWAYS ||
                             (o->progress == PROGRESS_AUTO && isatty(STDERR_FILENO))),
        .err = c.err,
    };
    c.log = !o->is_quiet && (o->verbose > 1 || conf.has_progress) ? c.err : NULL;
    if (o->verbose > 1 && !o->is_quiet) {
        print_banner(&c);
    }
    status = open_and_run(&c, &conf);
    servers_close(&servers);
    return status;
}
