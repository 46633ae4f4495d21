/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "loadgen/tools/compare.h"
#include "loadgen/tools/convert.h"
#include "loadgen/tools/plot.h"
#include "loadgen/tools/saved.h"

#define FILES_MAX 1024

struct tool {
    const char *files[FILES_MAX];
    unsigned files_len;
    const char *output; /* NULL: stdout */
    const char *title;
    enum plot_kind kind;
    enum saved_at at;
    bool in_turn;
    struct trace_conf trace;
    bool wants_help;
    FILE *out, *err;
};

static const char *
take_file(void *conf, const char *text)
{
    struct tool *t = conf;
    if (t->files_len == FILES_MAX) {
        return "too many files";
    }
    t->files[t->files_len++] = text;
    return NULL;
}

static const char *
call_kind(void *conf, const char *text)
{
    for (unsigned kind = 0; kind < PLOT_KINDS; kind++) {
        if (strcmp(text, plot_kind_name(kind)) == 0) {
            ((struct tool *)conf)->kind = (enum plot_kind)kind;
            return NULL;
        }
    }
    return "a plot is of kind cdf, load or time";
}

static const char *
call_percentile(void *conf, const char *text)
{
    for (unsigned at = 0; at < SAVED_AT; at++) {
        if (strcmp(text, saved_at_name(at)) == 0) {
            ((struct tool *)conf)->at = (enum saved_at)at;
            return NULL;
        }
    }
    return "the percentile is p50, p95, p99 or p99.9";
}

static const char *
call_format(void *conf, const char *text)
{
    return trace_format_parse(&((struct tool *)conf)->trace, text);
}

static const char *
call_bad(void *conf, const char *text)
{
    return trace_bad_parse(&((struct tool *)conf)->trace, text);
}

#define AT(field) .offset = offsetof(struct tool, field)
#define HELP_ROW                                                                         \
    {                                                                                    \
        .letter = 'h', .name = "help", .kind = OPT_FLAG, AT(wants_help),                 \
        .help = "print this and end"                                                     \
    }

/* clang-format off */
static const struct opt plot_rows[] = {
    {.letter = 'k', .name = "kind", .kind = OPT_CALL, .call = call_kind,
     .arg = "cdf|load|time",
     .help = "latency by percentile, by rate, or rate and latency by time (cdf)"},
    {.letter = 'o', .name = "output", .kind = OPT_TEXT, AT(output), .arg = "FILE",
     .help = "where to write the SVG (stdout)"},
    {.name = "title", .kind = OPT_TEXT, AT(title), .arg = "TEXT", .help = "above the plot"},
    {.name = "percentile", .kind = OPT_CALL, .call = call_percentile, .arg = "pN",
     .help = "load: of several curves (p99)"},
    HELP_ROW,
};
static const struct opt compare_rows[] = {
    HELP_ROW,
};
static const struct opt convert_rows[] = {
    {.name = "trace-format", .kind = OPT_CALL, .call = call_format,
     .arg = "twitter|cachelib|csv:COLUMNS|binary",
     .help = "what the lines are (auto: as they begin)"},
    {.name = "trace-bad", .kind = OPT_CALL, .call = call_bad, .arg = "error|skip",
     .help = "lines that make no sense: an error, or passed over and counted (error)"},
    HELP_ROW,
};
static const struct opt merge_rows[] = {
    {.letter = 'o', .name = "output", .kind = OPT_TEXT, AT(output), .arg = "FILE",
     .help = "where to write the result (stdout)"},
    {.name = "in-turn", .kind = OPT_FLAG, AT(in_turn),
     .help = "the runs came one after another (they ran at the same time)"},
    HELP_ROW,
};
/* clang-format on */

/* ---- the tools ---------------------------------------------------------------------- */

static enum tool_status
fail(const struct tool *t, enum tool_status status, const char *what)
{
    fprintf(t->err, "mcload: %s\n", what);
    return status;
}

/* "a.json,b.json": the runs of all. */
static bool
read_group(struct saved *group, const char *word, char *err)
{
    char *list = strdup(word), *rest;
    must(list != NULL);
    bool is_good = true;
    for (char *name = strtok_r(list, ",", &rest); name != NULL && is_good;
         name = strtok_r(NULL, ",", &rest)) {
        is_good = saved_read(group, name, err);
    }
    free(list);
    if (is_good && group->count == 0) {
        snprintf(err, SAVED_ERR_MAX, "no file is named");
        is_good = false;
    }
    return is_good;
}

static bool
read_groups(const struct tool *t, struct saved *groups, char *err)
{
    for (unsigned i = 0; i < t->files_len; i++) {
        if (!read_group(&groups[i], t->files[i], err)) {
            return false;
        }
    }
    return true;
}

static enum tool_status
write_plot(const struct tool *t, const struct saved *groups)
{
    struct plot plot = {t->kind, t->title, t->at, groups, t->files_len};
    FILE *out = t->output == NULL ? t->out : fopen(t->output, "w");
    char text[SAVED_ERR_MAX];
    if (out == NULL) {
        snprintf(text, sizeof text, "cannot write %s: %s", t->output, strerror(errno));
        return fail(t, TOOL_UNREADABLE, text);
    }
    const char *missing = plot_draw(&plot, out);
    bool is_written = fflush(out) == 0 && !ferror(out);
    is_written = (out == t->out || fclose(out) == 0) && is_written;
    if (missing != NULL) {
        return fail(t, TOOL_UNREADABLE, missing);
    }
    return is_written ? TOOL_DONE : fail(t, TOOL_UNREADABLE, "cannot write the plot");
}

static enum tool_status
with_groups(const struct tool *t,
            enum tool_status (*use)(const struct tool *, const struct saved *))
{
    char err[SAVED_ERR_MAX];
    struct saved *groups = calloc(t->files_len, sizeof *groups);
    must(groups != NULL);
    enum tool_status status =
        read_groups(t, groups, err) ? use(t, groups) : fail(t, TOOL_UNREADABLE, err);
    for (unsigned i = 0; i < t->files_len; i++) {
        saved_fini(&groups[i]);
    }
    free(groups);
    return status;
}

static enum tool_status
run_plot(const struct tool *t)
{
    if (t->files_len == 0) {
        return fail(t, TOOL_USAGE, "plot needs results (JSON files)");
    }
    return with_groups(t, write_plot);
}

static enum tool_status
write_comparison(const struct tool *t, const struct saved *groups)
{
    compare_print(&groups[0], &groups[1], t->out);
    return TOOL_DONE;
}

static enum tool_status
run_compare(const struct tool *t)
{
    if (t->files_len != 2) {
        return fail(t, TOOL_USAGE, "compare needs two results: A.json B.json");
    }
    return with_groups(t, write_comparison);
}

static enum tool_status
run_merge(const struct tool *t)
{
    char err[SAVED_ERR_MAX];
    if (t->files_len == 0) {
        return fail(t, TOOL_USAGE, "merge needs results (JSON files)");
    }
    return saved_merge(t->files, t->files_len, t->in_turn, t->output, err)
               ? TOOL_DONE
               : fail(t, TOOL_UNREADABLE, err);
}

static enum tool_status
run_convert(const struct tool *t)
{
    char err[TRACE_ERR_MAX];
    if (t->files_len != 3 || strcmp(t->files[0], "trace") != 0) {
        return fail(t, TOOL_USAGE, "convert needs what and two files: trace IN OUT");
    }
    struct trace_conf conf = t->trace;
    conf.path = t->files[1];
    return convert_trace(&conf, t->files[2], t->err, err) == NULL
               ? TOOL_DONE
               : fail(t, TOOL_UNREADABLE, err);
}

#define ROWS(table) (table), sizeof(table) / sizeof(table)[0]

static const struct {
    const char *name, *what;
    const struct opt *rows;
    size_t rows_len;
    enum tool_status (*run)(const struct tool *t);
} tools[] = {
    {"plot", "plot [options] A.json[,A2.json...] ...", ROWS(plot_rows), run_plot},
    {"compare", "compare A.json[,A2.json...] B.json[,B2.json...]", ROWS(compare_rows),
     run_compare},
    {"convert", "convert [options] trace IN OUT[.zst]", ROWS(convert_rows), run_convert},
    {"merge", "merge [options] A.json B.json ...", ROWS(merge_rows), run_merge},
};
#define TOOLS (sizeof tools / sizeof tools[0])

bool
tool_is(const char *name)
{
    for (size_t i = 0; i < TOOLS; i++) {
        if (strcmp(name, tools[i].name) == 0) {
            return true;
        }
    }
    return false;
}

enum tool_status
tool_run(int argc, char **argv, FILE *out, FILE *err)
{
    struct tool t = {.out = out, .err = err, .at = SAVED_P99};
    for (size_t i = 0; i < TOOLS; i++) {
        if (strcmp(argv[0], tools[i].name) != 0) {
            continue;
        }
        struct opt_table table = {.rows = tools[i].rows,
                                  .count = tools[i].rows_len,
                                  .program = "mcload",
                                  .operand = take_file};
        int status = 0;
        if (opt_parse(&table, &t, argc, argv, err, &status) != OPT_DONE) {
            return TOOL_USAGE;
        }
        if (t.wants_help) {
            fprintf(out, "usage: mcload %s\n\n", tools[i].what);
            opt_help(&table, out);
            return TOOL_DONE;
        }
        return tools[i].run(&t);
    }
    unreachable();
}
