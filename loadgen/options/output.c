/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Output: reports, files, progress, verbosity.
 */
#include "loadgen/options/group.h"

#include <math.h>

#include "base/num.h"
#include "base/part.h"

static const char *
ordinal_ending(unsigned n)
{
    unsigned last = n % 10;
    if (n / 10 % 10 == 1) {
        return "th";
    }
    return last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
}

void
options_percentile_name(double q, char name[OPTIONS_NAME_MAX])
{
    double percent = q * 100;
    if (q >= 1) {
        snprintf(name, OPTIONS_NAME_MAX, "max");
    } else if (fabs(percent - round(percent)) < 1e-9) {
        unsigned n = (unsigned)round(percent);
        snprintf(name, OPTIONS_NAME_MAX, "%u%s", n, ordinal_ending(n));
    } else {
        /* 99.9 -> p999: a point would end the header for existing parsers. */
        snprintf(name, OPTIONS_NAME_MAX, "p%.10g", percent);
        char *point = strchr(name, '.');
        if (point != NULL) {
            memmove(point, point + 1, strlen(point));
        }
    }
}

static const char *
add_percentile(void *conf, const char *p, size_t len)
{
    struct options *o = conf;
    double percent;
    if (o->percentiles_len == OPTIONS_PERCENTILES_MAX) {
        return "too many percentiles";
    }
    if (!num_double(p, len, &percent) || percent <= 0 || percent >= 100) {
        return "percentiles are numbers above 0 and below 100, with commas";
    }
    char name[OPTIONS_NAME_MAX], other[OPTIONS_NAME_MAX];
    options_percentile_name(percent / 100, name);
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        options_percentile_name(o->percentiles[i], other);
        if (strcmp(name, other) == 0) {
            return "two percentiles have the same name in tables, where 9.99 and 99.9 "
                   "are p999";
        }
    }
    o->percentiles[o->percentiles_len++] = percent / 100;
    return NULL;
}

static const char *
call_percentiles(void *conf, const char *text)
{
    ((struct options *)conf)->percentiles_len = 0;
    return part_each(text, strlen(text), ',', add_percentile, conf);
}

static const char *
call_help(void *conf, const char *text)
{
    struct options *o = conf;
    o->help = HELP_ALL;
    o->help_topic = text;
    return NULL;
}

static const char *
call_short_help(void *conf, const char *text)
{
    struct options *o = conf;
    (void)text;
    o->help = HELP_COMMON;
    return NULL;
}

static const char *
call_sample(void *conf, const char *text)
{
    struct options *o = conf;
    o->has_sample = true;
    return num_double(text, strlen(text), &o->sample) && o->sample > 0 && o->sample <= 1
               ? NULL
               : "a sample is a share of the requests, above 0 and at most 1";
}

static const char *const formats[] = {
    [FORMAT_TEXT] = "text",
    [FORMAT_MUTILATE] = "mutilate",
    [FORMAT_MUTILATE_TEXT] = "mutilate,text",
    [FORMAT_JSON] = "json",
    [FORMAT_CSV] = "csv",
};

static const char *const progresses[] = {
    [PROGRESS_AUTO] = "auto",
    [PROGRESS_NONE] = "none",
    [PROGRESS_ALWAYS] = "always",
};

/* clang-format off */
static const struct opt rows[] = {
    {.name = "json", SCOPE(LEADER), KIND(TEXT), OF_RUN(json), .arg = "FILE",
     .help = "write the result as JSON too; - is stdout, without the report"},
    {.name = "format", SCOPE(LEADER), KIND(CHOICE), OF_RUN(format), OPT_CHOICES(formats),
     .arg = "text|mutilate|mutilate,text|json|csv",
     .error = "the format is text, mutilate, mutilate,text, json or csv",
     .help = "form of the report (text)"},
    {.name = "output", SCOPE(LEADER), KIND(TEXT), OF_RUN(output), .arg = "FILE",
     .help = "where the report goes (stdout)"},
    {.name = "percentiles", SCOPE(LEADER), CALL(call_percentiles), .arg = "P,P,...",
     .help = "columns of the table (5,10,50,90,95,99,99.9,99.99)"},
    {.name = "hgrm", SCOPE(LEADER), KIND(TEXT), OF_RUN(hgrm), .arg = "PREFIX",
     .help = "write PREFIX.hgrm and PREFIX-issue.hgrm, for HdrHistogram's plotters"},
    {.name = "hlog", SCOPE(LEADER), KIND(TEXT), OF_RUN(hlog), .arg = "FILE",
     .help = "log each interval's histogram, as HdrHistogram's HistogramLogProcessor reads"},
    {.name = "plot", SCOPE(LEADER), KIND(TEXT), OF_RUN(plot), .arg = "DIR",
     .help = "draw DIR/cdf.svg and DIR/time.svg"},
    {.name = "progress", SCOPE(LEADER), KIND(CHOICE), OF_RUN(progress),
     OPT_CHOICES(progresses), .arg = "auto|none|always",
     .error = "progress is auto, none or always",
     .help = "a line a second on stderr (auto: on a terminal)"},
    {.letter = 'v', .name = "verbose", SCOPE(EACH), KIND(COUNT), OF_RUN(verbose),
     .help = "details in the report; twice: what is being done, on stderr"},
    {.name = "quiet", SCOPE(EACH), KIND(FLAG), OF_RUN(is_quiet),
     .help = "nothing on stderr but errors"},
    {.letter = 'h', SCOPE(EACH), CALL(call_short_help),
     .help = "print the options that are used most"},
    {.name = "help", SCOPE(EACH), CALL(call_help), .arg = "TOPIC?", .may_follow = true,
     .help = "print this, one section or the options with TOPIC in their name"},
    {.name = "version", SCOPE(EACH), KIND(FLAG), OF_RUN(wants_version),
     .help = "print the version and end"},
    {.name = "save", SCOPE(ALONE), KIND(TEXT), OF_RUN(save), .arg = "FILE",
     .help = "write each request's start (s) and latency (us), a line each"},
    {.name = "sample", SCOPE(ALONE), CALL(call_sample), .arg = "F",
     .help = "share of the requests that --save writes, chosen at random by the seed (1)"},
    {.name = "env-report", SCOPE(LEADER), KIND(FLAG), OF_RUN(shows_env),
     .help = "say what this machine is and how it is set up (JSON: always)"},
};
/* clang-format on */

static void
init(struct options *o)
{
    static const double usual[] = {.05, .10, .50, .90, .95, .99, .999, .9999};
    memcpy(o->percentiles, usual, sizeof usual);
    o->percentiles_len = sizeof usual / sizeof usual[0];
    o->sample = 1;
}

/* What there would be to see of a run. */
static bool
wants_report(const struct options *o)
{
    const char *const files[] = {o->json, o->output, o->save, o->hgrm, o->hlog, o->plot};
    bool wants =
        o->format != FORMAT_TEXT || o->shows_intervals || o->by_size || o->shows_env;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        wants = wants || files[i] != NULL;
    }
    return wants;
}

static const char *
settle(struct options *o)
{
    if (o->load_only && wants_report(o)) {
        return "--loadonly stores records and measures nothing: without options of the "
               "report and its files, which are for the run that follows with --noload";
    }
    if (o->save != NULL && (o->agents_len > 0 || o->is_agent)) {
        return "--save is for one process, without agents";
    }
    if ((o->hgrm != NULL && o->hgrm[0] == '\0') ||
        (o->plot != NULL && o->plot[0] == '\0')) {
        return "--hgrm and --plot need a name";
    }
    if (o->has_sample && o->save == NULL) {
        return "--sample is the share of the requests that --save writes";
    }
    bool has_rows = o->json != NULL || o->hlog != NULL || o->plot != NULL;
    if (o->format == FORMAT_CSV && o->shows_intervals && !has_rows) {
        return "--format=csv has no rows for --interval: --format=text, or --json=FILE "
               "beside";
    }
    if (o->format == FORMAT_CSV && o->by_size && o->json == NULL) {
        return "--format=csv has no rows for --by-size: --format=text, or --json=FILE "
               "beside";
    }
    if (o->scan.is_given && (o->hgrm != NULL || o->plot != NULL)) {
        return "--hgrm and --plot show one run, not a scan: mcload plot --kind=load its "
               "JSON";
    }
    if (o->scan.is_given && (o->hlog != NULL || o->save != NULL)) {
        return "--hlog and --save are of one run, not of a scan";
    }
    bool is_json_out = o->json != NULL && strcmp(o->json, "-") == 0;
    bool is_report_out = o->output == NULL || strcmp(o->output, "-") == 0;
    if (is_json_out && is_report_out && o->format == FORMAT_TEXT) {
        o->format = FORMAT_JSON; /* and nothing else */
        o->json = NULL;
    } else if (is_json_out && is_report_out) {
        return "--json=- and the report both go to the standard output: --output=FILE";
    }
    return o->format == FORMAT_JSON && o->json != NULL
               ? "--format=json and --json are mutually exclusive"
               : NULL;
}

const struct run_group group_output = {ROWS(rows), .init = init, .settle = settle};
