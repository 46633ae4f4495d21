/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/campaign/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loadgen/report/deflate.h"
#include "loadgen/report/report.h"
#include "loadgen/tools/plot.h"

#define NAME_MAX_LEN 4096

static bool
fail(const struct output *out, const char *name)
{
    fprintf(out->err, "mcload: cannot write %s: %s\n", name, strerror(errno));
    return false;
}

/* False with a line. What the file held stays until there is something to be written to it. */
static bool
open_file(struct output *out, enum output_to what)
{
    struct stat before;
    const char *name = out->names[what];
    if (name == NULL || strcmp(name, "-") == 0) {
        out->to[what] = name != NULL ? stdout : out->to[what];
        return true;
    }
    bool is_new = stat(name, &before) != 0;
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fail(out, name);
    }
    out->to[what] = fdopen(fd, "w");
    must(out->to[what] != NULL);
    out->was_made[what] = is_new;
    return true;
}

/* A name that cannot be written is told before the run, not after it. */
static bool
try_file(const struct output *out, const char *name)
{
    struct stat before;
    bool is_new = stat(name, &before) != 0;
    FILE *f = fopen(name, "a");
    bool is_good = (f != NULL && fclose(f) == 0) || fail(out, name);
    if (is_good && is_new) {
        remove(name);
    }
    return is_good;
}

/* With all above it. False with a line. */
static bool
make_folder(const struct output *out, const char *name)
{
    char path[NAME_MAX_LEN];
    snprintf(path, sizeof path, "%s/", name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            return fail(out, path);
        }
        *slash = '/';
    }
    return true;
}

/* A part of what was to be written is worth nothing. */
static void
remove_file(const char *name)
{
    struct stat file;
    if (stat(name, &file) == 0 && S_ISREG(file.st_mode)) {
        remove(name);
    }
}

/* What a write of long ago failed with is not known any more: the next one says it. */
bool
output_end(FILE *f)
{
    bool is_good = !ferror(f);
    errno = 0;
    if (fclose(f) == 0 && is_good) {
        return true;
    }
    errno = errno != 0 ? errno : EIO;
    return false;
}

static bool
close_file(const struct output *out, FILE *f, const char *name)
{
    if (f == NULL || f == stdout || output_end(f)) {
        return true;
    }
    fail(out, name);
    remove_file(name);
    return false;
}

void
output_begin(struct output *out)
{
    struct stat file;
    for (unsigned i = 0; !out->has_begun && i < OUTPUT_FILES; i++) {
        FILE *f = out->to[i];
        if (f != NULL && f != stdout && fstat(fileno(f), &file) == 0 &&
            S_ISREG(file.st_mode)) {
            must(ftruncate(fileno(f), 0) == 0);
        }
    }
    out->has_begun = true;
}

/* Files that are written at the end. */
static bool
try_drawn(const struct output *out)
{
    char name[NAME_MAX_LEN];
    bool is_good = true;
    if (out->o->hgrm != NULL) {
        snprintf(name, sizeof name, "%s.hgrm", out->o->hgrm);
        is_good = try_file(out, name);
    }
    if (is_good && out->o->plot != NULL && (is_good = make_folder(out, out->o->plot))) {
        snprintf(name, sizeof name, "%s/%s.svg", out->o->plot, plot_kinds[PLOT_CDF]);
        is_good = try_file(out, name);
    }
    return is_good;
}

/* Whether both write to one file; devices may be shared. */
static bool
is_same_file(FILE *a, FILE *b)
{
    struct stat x, y;
    return a != NULL && b != NULL && a != b && fstat(fileno(a), &x) == 0 &&
           fstat(fileno(b), &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Each would write over what the other has written. */
static bool
are_apart(const struct output *out)
{
    for (unsigned i = 0; i < OUTPUT_FILES; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (is_same_file(out->to[i], out->to[k])) {
                fputs("mcload: two of --output, --json, --save and --hlog are the same "
                      "file\n",
                      out->err);
                return false;
            }
        }
    }
    return true;
}

bool
output_open(struct output *out, const struct options *o, int argc, char **argv, FILE *err)
{
    *out = (struct output){
        .o = o,
        .argc = argc,
        .argv = argv,
        .names = {o->output, o->json, o->save, o->hlog},
        .to = {stdout},
        .err = err,
    };
    if (o->hlog != NULL && deflate_bytes == NULL) {
        fputs("mcload: this build has no zlib, which --hlog needs\n", err);
        return false;
    }
    bool is_good = true;
    for (unsigned i = 0; i < OUTPUT_FILES; i++) {
        is_good = is_good && open_file(out, i);
    }
    if (o->format == FORMAT_JSON) {
        out->to[OUTPUT_JSON] = out->to[OUTPUT_REPORT];
    }
    is_good = is_good && are_apart(out) && try_drawn(out);
    machine_collect(&out->env, "");
    machine_add(&out->env, "engine", o->engine->name);
    if (!is_good) {
        (void)!output_close(out); /* nothing was written */
    }
    return is_good;
}

bool
output_close(struct output *out)
{
    bool is_good = true;
    for (unsigned i = 0; i < OUTPUT_FILES; i++) {
        if (out->names[i] != NULL) {
            is_good = close_file(out, out->to[i], out->names[i]) && is_good;
        }
        if (!out->has_begun && out->was_made[i]) {
            remove_file(out->names[i]);
        }
    }
    return is_good;
}

/* ---- files of one result -------------------------------------------------------------- */

static bool
write_hgrm(const struct output *out, const struct result *r, const char *class_name)
{
    static const char *const endings[] = {[FROM_INTENDED] = "", [FROM_ISSUE] = "-issue"};
    char name[NAME_MAX_LEN];
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        snprintf(name, sizeof name, "%s%s%s%s.hgrm", out->o->hgrm,
                 class_name != NULL ? "-" : "", class_name != NULL ? class_name : "",
                 endings[from]);
        FILE *f = fopen(name, "w");
        if (f == NULL) {
            return fail(out, name);
        }
        report_hgrm(r, from, f);
        if (!close_file(out, f, name)) {
            return false;
        }
    }
    return true;
}

static struct saved_point
point_of(const struct result *r, double share)
{
    struct ci ci = r->series != NULL ? series_ci(r->series, share) : (struct ci){0};
    struct quantile q = result_at(r, FROM_INTENDED, share);
    struct quantile high = result_at(r, FROM_INTENDED, ci.high);
    return (struct saved_point){
        .is_measured = !q.is_bound && hist_count(r->all[FROM_INTENDED]) > 0,
        .value = (double)q.ns,
        .has_interval = ci.is_known,
        .low = (double)result_at(r, FROM_INTENDED, ci.low).ns,
        .high = ci.high < 1 && !high.is_bound ? (double)high.ns : INFINITY,
    };
}

/* As it would be read back; its histogram is the result's. */
static struct saved_run
as_saved(const struct result *r, const char *name)
{
    struct saved_run run = {
        .name = alloc_text(name),
        .is_valid = r->is_valid,
        .latency = r->all[FROM_INTENDED],
        .censored = result_censored(&r->total),
    };
    for (unsigned at = 0; at < SAVED_AT; at++) {
        run.at[at] = point_of(r, saved_shares[at]);
    }
    unsigned rows = r->series != NULL ? r->series->rows_len : 0;
    run.rows = alloc_zeroed(rows, sizeof *run.rows);
    for (unsigned i = 0; i < rows; i++) {
        const struct series_row *row = &r->series->rows[i];
        run.rows[run.rows_len++] = (struct saved_row){
            .start_s = row->start_s,
            .length_s = row->length_s,
            .rate = result_ratio((double)row->requests, row->length_s),
            .p50 = (double)row->p50,
            .p99 = (double)row->p99,
        };
    }
    return run;
}

static bool
draw(const struct output *out, const struct saved *runs, enum plot_kind kind)
{
    char name[NAME_MAX_LEN], missing[SAVED_ERR_MAX];
    struct plot plot = {.kind = kind, .groups = runs, .groups_len = 1};
    snprintf(name, sizeof name, "%s/%s.svg", out->o->plot, plot_kinds[kind]);
    FILE *f = fopen(name, "w");
    if (f == NULL) {
        return fail(out, name);
    }
    bool is_drawn = plot_draw(&plot, f, missing);
    bool is_good = close_file(out, f, name);
    if (!is_drawn) {
        fprintf(out->err, "mcload: no plot in %s: %s\n", name, missing);
        remove_file(name);
    }
    return is_good;
}

/* One curve for each class. */
static bool
write_plots(const struct output *out, const struct result *r)
{
    unsigned count = r->classes_len > 1 ? r->classes_len : 1;
    struct saved runs = {.count = count};
    runs.runs = alloc_zeroed(count, sizeof *runs.runs);
    for (unsigned i = 0; i < count; i++) {
        runs.runs[i] = count > 1 ? as_saved(&r->classes[i], r->classes[i].name)
                                 : as_saved(r, "all requests");
    }
    bool is_good = draw(out, &runs, PLOT_CDF) && draw(out, &runs, PLOT_TIME);
    for (unsigned i = 0; i < count; i++) {
        runs.runs[i].latency = NULL; /* not ours */
    }
    saved_fini(&runs);
    return is_good;
}

/* mutilate's table has numbers only. */
static void
note_bounds(const struct output *out, const struct result *r)
{
    uint64_t censored = result_censored(result_shown(r));
    if (censored > 0) {
        fprintf(
            out->err,
            "mcload: %ju requests were never answered: they count as slower than all, "
            "and a percentile among them is how long they were waited for\n",
            (uintmax_t)censored);
    }
}

/* Of one thread after another; a failure to write shows when the file is closed. */
static void
write_samples(const struct output *out, const struct result *r)
{
    uint64_t dropped = 0;
    for (unsigned i = 0; i < r->samples_len; i++) {
        const struct samples *s = r->samples[i];
        for (uint64_t k = 0; k < s->count; k++) {
            fprintf(out->to[OUTPUT_SAVE], "%.6f %.3f\n", (double)s->all[k].start / 1e9,
                    (double)s->all[k].latency / 1e3);
        }
        dropped += s->dropped;
    }
    if (dropped > 0) {
        fprintf(out->err, "mcload: %ju latencies did not fit and are not in %s\n",
                (uintmax_t)dropped, out->o->save);
    }
}

/* All runs are in one log, each where it began. The wall clock is looked at once. */
static bool
write_hlog(struct output *out, const struct result *r)
{
    if (!out->has_first) {
        out->has_first = true;
        out->first_start = r->series->start;
        report_hlog_head(clock_wall_of(r->series->start), out->to[OUTPUT_HLOG]);
    }
    double offset_s = (double)(r->series->start - out->first_start) / 1e9;
    uint64_t censored = result_censored(&r->total);
    if (censored > 0) {
        fprintf(out->err, "mcload: %ju requests were never answered, and are not in %s\n",
                (uintmax_t)censored, out->o->hlog);
    }
    return report_hlog_rows(r, options_has_classes(out->o), offset_s,
                            out->to[OUTPUT_HLOG]) ||
           fail(out, out->o->hlog);
}

static void
write_report(const struct output *out, const struct result *r, bool is_first)
{
    switch (out->o->format) {
    case FORMAT_MUTILATE_TEXT:
        report_mutilate(r, out->o, out->to[OUTPUT_REPORT]);
        fputc('\n', out->to[OUTPUT_REPORT]);
        report_summary(r, out->o->verbose > 0, out->to[OUTPUT_REPORT]);
        break;
    case FORMAT_TEXT:
        fputs(is_first ? "" : "\n", out->to[OUTPUT_REPORT]);
        report_text(r, out->o, out->to[OUTPUT_REPORT]);
        break;
    case FORMAT_MUTILATE:
        report_mutilate(r, out->o, out->to[OUTPUT_REPORT]);
        if (!out->o->is_quiet) {
            report_verdict(r, out->o->verbose > 0, out->err);
            note_bounds(out, r);
        }
        break;
    case FORMAT_JSON:
        break; /* its writer knows how many results there are */
    case FORMAT_CSV:
        if (is_first) {
            report_csv_head(out->o, out->to[OUTPUT_REPORT]);
        }
        report_csv_rows(r, out->o, r->qps, out->to[OUTPUT_REPORT]);
        break;
    }
}

bool
output_report(struct output *out, const struct result *r, bool is_first)
{
    bool is_good = true;
    output_begin(out);
    write_report(out, r, is_first);
    if (out->o->hgrm != NULL) {
        is_good = write_hgrm(out, r, NULL);
        for (unsigned i = 0; r->classes_len > 1 && i < r->classes_len && is_good; i++) {
            is_good = write_hgrm(out, &r->classes[i], r->classes[i].name);
        }
    }
    if (out->to[OUTPUT_SAVE] != NULL) {
        write_samples(out, r);
    }
    if (out->to[OUTPUT_HLOG] != NULL) {
        is_good = write_hlog(out, r) && is_good;
    }
    if (out->o->plot != NULL) {
        is_good = write_plots(out, r) && is_good;
    }
    return is_good;
}
