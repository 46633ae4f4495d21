/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/tool.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/opt.h"
#include "base/part.h"
#include "loadgen/tools/compare.h"
#include "loadgen/tools/convert.h"
#include "loadgen/tools/plot.h"
#include "loadgen/tools/saved.h"

#define FILES_MAX 1024
#define CONVERT_NEEDS "convert needs a format and two files: trace IN OUT"

struct tool {
    const char *files[FILES_MAX];
    unsigned files_len;
    const char *output; /* NULL: stdout */
    const char *title;
    const char *class;   /* NULL: all of a run */
    enum plot_kind kind; /* PLOT_KINDS: by what is to be seen */
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

#define AT(field) .offset = offsetof(struct tool, field)
#define HELP_ROW                                                                         \
    {                                                                                    \
        .letter = 'h', .name = "help", .kind = OPT_FLAG, AT(wants_help),                 \
        .help = "print this and end"                                                     \
    }

/* clang-format off */
static const struct opt plot_rows[] = {
    {.letter = 'k', .name = "kind", .kind = OPT_CHOICE, AT(kind),
     OPT_CHOICES(plot_kinds), .arg = "cdf|load|time|bars",
     .error = "a plot is of kind cdf, load, time or bars",
     .help = "latency by percentile, by rate, over time, side by side (cdf; of a scan load)"},
    {.letter = 'o', .name = "output", .kind = OPT_TEXT, AT(output), .arg = "FILE",
     .help = "where to write the SVG (stdout)"},
    {.name = "title", .kind = OPT_TEXT, AT(title), .arg = "TEXT", .help = "above the plot"},
    {.name = "percentile", .kind = OPT_CHOICE, AT(at), OPT_CHOICES(saved_names),
     .arg = "pN", .error = "the percentile is p50, p95, p99 or p99.9",
     .help = "bars, and load with several curves (p99)"},
    {.name = "class", .kind = OPT_TEXT, AT(class), .arg = "NAME",
     .help = "only this class of each result (all)"},
    HELP_ROW,
};
static const struct opt compare_rows[] = {
    HELP_ROW,
};
static const struct opt convert_rows[] = {
    {.name = "trace-format", .kind = OPT_PARSE, .call = trace_format_parse, AT(trace),
     .arg = "twitter|cachelib|csv:COLUMNS|binary",
     .help = "what the lines are (auto: as they begin)"},
    {.name = "trace-bad", .kind = OPT_CHOICE, AT(trace.skips_bad),
     OPT_CHOICES(trace_bads), .arg = "error|skip", .error = TRACE_BAD_WRONG,
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

/* "[NAME=]a.json,b.json": the runs of all. The group of one file is called as its runs are. */
static bool
read_group(struct saved *group, const char *word, const char *class, char *err)
{
    const char *files = access(word, F_OK) != 0 ? strchr(word, '=') : NULL;
    files = files != NULL ? files + 1 : word;
    char *list = alloc_text(files), *rest;
    if (files > word) {
        group->name = alloc_checked(strndup(word, (size_t)(files - 1 - word)));
    }
    bool is_good = true;
    for (char *name = strtok_r(list, ",", &rest); name != NULL && is_good;
         name = strtok_r(NULL, ",", &rest)) {
        is_good = saved_reader->read(group, name, class, err);
    }
    free(list);
    if (is_good && group->count == 0) {
        snprintf(err, SAVED_ERR_MAX, "no file is named");
        is_good = false;
    }
    return is_good;
}

/* Results of a scan are points of a curve, unless asked for otherwise. */
static enum plot_kind
kind_of(const struct tool *t, const struct saved *groups)
{
    for (unsigned i = 0; i < t->files_len && t->kind == PLOT_KINDS; i++) {
        if (groups[i].is_scan) {
            return PLOT_LOAD;
        }
    }
    return t->kind < PLOT_KINDS ? t->kind : PLOT_CDF;
}

static enum tool_status
write_plot(const struct tool *t, const struct saved *groups)
{
    struct plot plot = {kind_of(t, groups), t->title, t->at, groups, t->files_len};
    char *text, err[SAVED_ERR_MAX];
    size_t len;
    FILE *out = open_memstream(&text, &len);
    must(out != NULL);
    bool is_good = plot_draw(&plot, out, err);
    must(fclose(out) == 0); /* of memory only */
    is_good = is_good && saved_write(t->output, text, err);
    enum tool_status status = is_good ? TOOL_DONE : fail(t, TOOL_UNREADABLE, err);
    free(text);
    return status;
}

static enum tool_status
with_groups(const struct tool *t,
            enum tool_status (*use)(const struct tool *, const struct saved *))
{
    char err[SAVED_ERR_MAX];
    struct saved *groups = alloc_zeroed(t->files_len, sizeof *groups);
    bool is_good = true;
    for (unsigned i = 0; i < t->files_len && is_good; i++) {
        is_good = read_group(&groups[i], t->files[i], t->class, err);
    }
    enum tool_status status = is_good ? use(t, groups) : fail(t, TOOL_UNREADABLE, err);
    for (unsigned i = 0; i < t->files_len; i++) {
        saved_fini(&groups[i]);
    }
    free(groups);
    return status;
}

static enum tool_status
write_comparison(const struct tool *t, const struct saved *groups)
{
    if (groups[0].is_scan || groups[1].is_scan) {
        return fail(t, TOOL_USAGE,
                    "a scan has several loads, and one mean of all says nothing: "
                    "mcload plot -k load draws both");
    }
    compare_print(&groups[0], &groups[1], t->out);
    return TOOL_DONE;
}

static enum tool_status
run_merge(const struct tool *t)
{
    char err[SAVED_ERR_MAX];
    return saved_reader->merge(t->files, t->files_len, t->in_turn, t->output, err)
               ? TOOL_DONE
               : fail(t, TOOL_UNREADABLE, err);
}

static enum tool_status
run_convert(const struct tool *t)
{
    char err[TRACE_ERR_MAX];
    struct trace_conf conf = t->trace;
    if (strcmp(t->files[0], "trace") != 0) {
        return fail(t, TOOL_USAGE, CONVERT_NEEDS);
    }
    conf.path = t->files[1];
    return convert_trace(&conf, t->files[2], t->err, err) == NULL
               ? TOOL_DONE
               : fail(t, TOOL_UNREADABLE, err);
}

#define ROWS(table) (table), sizeof(table) / sizeof(table)[0]

static const struct kind {
    const char *name, *what;
    unsigned files_min, files_max;
    const char *needs; /* the sentence for less or more of them */
    const struct opt *rows;
    size_t rows_len;
    enum tool_status (*use)(const struct tool *t, const struct saved *groups);
    enum tool_status (*run)(const struct tool *t); /* of those that use no groups */
} tools[] = {
    {"plot", "plot [options] A.json[,A2.json...] ...", 1, FILES_MAX,
     "plot needs results (JSON files)", ROWS(plot_rows), write_plot, NULL},
    {"compare", "compare A.json[,A2.json...] B.json[,B2.json...]", 2, 2,
     "compare needs two results: A.json B.json", ROWS(compare_rows), write_comparison,
     NULL},
    {"convert", "convert [options] trace IN OUT[.zst]", 3, 3, CONVERT_NEEDS,
     ROWS(convert_rows), NULL, run_convert},
    {"merge", "merge [options] A.json B.json ...", 1, FILES_MAX,
     "merge needs results (JSON files)", ROWS(merge_rows), NULL, run_merge},
};

bool
tool_is(const char *name)
{
    return part_row(PART_ROWS(tools), name, strlen(name)) != NULL;
}

enum tool_status
tool_run(int argc, char **argv, FILE *out, FILE *err)
{
    struct tool t = {.out = out, .err = err, .kind = PLOT_KINDS, .at = SAVED_P99};
    const struct kind *k = part_row(PART_ROWS(tools), argv[0], strlen(argv[0]));
    must(k != NULL);
    struct opt_table table = {
        .rows = k->rows, .count = k->rows_len, .program = "mcload", .operand = take_file};
    int status = 0;
    if (opt_parse(&table, &t, argc, argv, err, &status) != OPT_DONE) {
        return TOOL_USAGE;
    }
    if (t.wants_help) {
        fprintf(out, "usage: mcload %s\n\n", k->what);
        opt_help(&table, out);
        return TOOL_DONE;
    }
    if (t.files_len < k->files_min || t.files_len > k->files_max) {
        return fail(&t, TOOL_USAGE, k->needs);
    }
    if (saved_reader == NULL && k->run != run_convert) {
        return fail(&t, TOOL_UNREADABLE, "results cannot be read: built without jansson");
    }
    return k->use != NULL ? with_groups(&t, k->use) : k->run(&t);
}
