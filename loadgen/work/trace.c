/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace.h"

#include <math.h>

#include "base/alloc.h"
#include "base/part.h"
#include "loadgen/work/trace_file.h"

#define BUFFER 262144
#define LINE_MAX_BYTES 65536

struct trace {
    struct trace_conf conf;
    struct trace_file file;
    enum trace_format format; /* not AUTO */
    struct trace_binary binary;
    struct trace_notes notes;
    uint64_t line; /* number of the last one */
    uint64_t step_ns, last_ns;
    bool has_records, is_over;
    char err[TRACE_ERR_MAX];
    size_t at, len; /* buf[at..len) is not used yet */
    char buf[BUFFER];
};

/* ---- words ---------------------------------------------------------------------------- */

const char *
trace_format_parse(void *trace_conf, const char *text)
{
    const char *columns = part_after(text, "csv:");
    struct trace_conf *conf = trace_conf;
    static const char *const names[] = {
        [TRACE_AUTO] = "auto",
        [TRACE_TWITTER] = "twitter",
        [TRACE_CACHELIB] = "cachelib",
        [TRACE_BINARY] = "binary",
    };
    if (columns != NULL) {
        conf->format = TRACE_CSV;
        return trace_layout_parse(&conf->layout, columns, strlen(columns), false);
    }
    conf->format =
        (enum trace_format)part_find(names, TRACE_BINARY + 1, text, strlen(text));
    return conf->format <= TRACE_BINARY ? NULL
                                        : "the format of a trace is auto, twitter, "
                                          "cachelib, csv:COLUMNS or binary";
}

const char *const trace_bads[TRACE_BADS] = {"error", "skip"};

static void
print_note(const char *path, uint64_t count, const char *what, const char *name,
           FILE *out)
{
    if (count > 0) {
        fprintf(out, "mcload: %s: %ju %s%s\n", path, (uintmax_t)count, what, name);
    }
}

void
trace_notes_print(const struct trace_notes *n, const char *path, FILE *out)
{
    print_note(path, n->bad, "lines that make no sense were passed over", "", out);
    print_note(path, n->backwards,
               "times are before that of the request before, which they got", "", out);
    for (unsigned i = 0; i < TRACE_NAMES_MAX; i++) {
        print_note(path, n->unknown[i].count, "requests were left out: unknown verb ",
                   n->unknown[i].name, out);
    }
    print_note(path, n->unknown_other, "requests of more unknown verbs were left out", "",
               out);
}

/* ---- bytes -------------------------------------------------------------------------- */

static enum trace_status
fail(struct trace *t, const char *what)
{
    if (t->line > 0) {
        snprintf(t->err, sizeof t->err, "%s, line %ju: %s", t->conf.path,
                 (uintmax_t)t->line, what);
    } else {
        snprintf(t->err, sizeof t->err, "%s: %s", t->conf.path, what);
    }
    return TRACE_FAILED;
}

static bool
is_stopped(const struct trace *t)
{
    return t->conf.stop != NULL &&
           atomic_load_explicit(t->conf.stop, memory_order_relaxed);
}

/* Moves what is left to the front and reads behind it. */
static bool
read_more(struct trace *t)
{
    size_t n = 0;
    memmove(t->buf, t->buf + t->at, t->len - t->at);
    t->len -= t->at;
    t->at = 0;
    const char *wrong = trace_file_read(&t->file, t->buf + t->len, BUFFER - t->len, &n);
    t->len += n;
    t->is_over = t->len < BUFFER;
    if (wrong != NULL) {
        t->line = 0;
        fail(t, wrong);
    }
    return wrong == NULL;
}

/* Passes over what is left of a line. False: it cannot be read. */
static bool
pass_line(struct trace *t)
{
    const char *end;
    while ((end = memchr(t->buf + t->at, '\n', t->len - t->at)) == NULL && !t->is_over &&
           !is_stopped(t)) {
        t->at = t->len;
        if (!read_more(t)) {
            return false;
        }
    }
    t->at = end != NULL ? (size_t)(end + 1 - t->buf) : t->len;
    return true;
}

/* The next line, without its end; an empty one in place of what is too long for a line and is
 * skipped. END when there is none. */
static enum trace_status
take_line(struct trace *t, const char **line, size_t *len)
{
    const char *end = memchr(t->buf + t->at, '\n', t->len - t->at);
    if (end == NULL && !t->is_over && t->len - t->at <= LINE_MAX_BYTES) {
        if (!read_more(t)) {
            return TRACE_FAILED;
        }
        end = memchr(t->buf, '\n', t->len);
    }
    if (end == NULL && t->at == t->len) {
        return TRACE_END;
    }
    t->line++;
    *line = t->buf + t->at;
    *len = (size_t)((end != NULL ? end : t->buf + t->len) - *line);
    if (*len > LINE_MAX_BYTES && !t->conf.skips_bad) {
        return fail(t, "longer than 65536 bytes");
    }
    if (*len > LINE_MAX_BYTES) {
        *len = 0;
        t->notes.bad++;
        return pass_line(t) ? TRACE_RECORD : TRACE_FAILED;
    }
    t->at += *len + (end != NULL ? 1 : 0);
    *len -= *len > 0 && (*line)[*len - 1] == '\r' ? 1 : 0;
    return TRACE_RECORD;
}

/* ---- lines -------------------------------------------------------------------------- */

static void
note_unknown(struct trace *t, const char *name, size_t len)
{
    struct trace_notes *n = &t->notes;
    char plain[TRACE_NAME_MAX + 1] = "";
    for (size_t i = 0; i < len && i < TRACE_NAME_MAX; i++) {
        plain[i] = name[i] > ' ' && name[i] < 0x7f ? name[i] : '?';
    }
    for (unsigned i = 0; i < TRACE_NAMES_MAX; i++) {
        if (n->unknown[i].count == 0) {
            memcpy(n->unknown[i].name, plain, sizeof plain);
        }
        if (strcmp(n->unknown[i].name, plain) == 0) {
            n->unknown[i].count++;
            return;
        }
    }
    n->unknown_other++;
}

/* Seconds with three digits behind the point are told apart by the millisecond. */
static void
refine_step(struct trace *t, unsigned digits)
{
    uint64_t step = t->conf.layout.unit_ns;
    for (unsigned i = 0; i < digits; i++) {
        step /= 10;
    }
    step = step > 0 ? step : 1;
    t->step_ns = !t->has_records || step < t->step_ns ? step : t->step_ns;
}

static enum trace_status
next_line(struct trace *t, struct trace_record *r)
{
    struct trace_line_note note;
    const char *line;
    size_t len;
    while (!is_stopped(t)) {
        enum trace_status status = take_line(t, &line, &len);
        if (status != TRACE_RECORD) {
            return status;
        }
        if (len == 0) {
            continue;
        }
        switch (trace_line_parse(&t->conf.layout, line, len, r, &note)) {
        case TRACE_LINE_GOOD:
            refine_step(t, note.fine_digits);
            return TRACE_RECORD;
        case TRACE_LINE_UNKNOWN:
            note_unknown(t, note.verb, note.verb_len);
            break;
        case TRACE_LINE_BAD:
            if (!t->conf.skips_bad) {
                return fail(t, note.wrong);
            }
            t->notes.bad++;
            break;
        }
    }
    return TRACE_END;
}

/* ---- the binary form ------------------------------------------------------------------ */

static enum trace_status
next_binary(struct trace *t, struct trace_record *r)
{
    size_t taken;
    if (t->len - t->at < TRACE_BINARY_RECORD_MAX && !t->is_over && !read_more(t)) {
        return TRACE_FAILED;
    }
    enum trace_binary_take how =
        trace_binary_take(&t->binary, t->buf + t->at, t->len - t->at, r, &taken);
    t->at += taken;
    switch (how) {
    case TRACE_BINARY_TAKEN:
        return TRACE_RECORD;
    case TRACE_BINARY_OVER:
        return t->at == t->len ? TRACE_END : fail(t, "something stands behind its end");
    case TRACE_BINARY_CUT:
        return fail(t, "it is cut: the end is missing");
    default:
        snprintf(t->err, sizeof t->err, "%s, record %ju: it makes no sense", t->conf.path,
                 (uintmax_t)t->binary.records + 1);
        return TRACE_FAILED;
    }
}

/* ---- any ------------------------------------------------------------------------------ */

/* NULL, or a sentence. */
static const char *
begin(struct trace *t)
{
    t->format = t->conf.format;
    if (t->format == TRACE_AUTO) {
        static const char name[] = "op_time,";
        size_t n = sizeof name - 1;
        t->format = trace_binary_is(t->buf, t->len)               ? TRACE_BINARY
                    : t->len >= n && memcmp(t->buf, name, n) == 0 ? TRACE_CACHELIB
                                                                  : TRACE_TWITTER;
    }
    if (t->format == TRACE_BINARY) {
        const char *wrong = trace_binary_take_header(&t->binary, t->buf, t->len);
        t->at = wrong == NULL ? TRACE_BINARY_HEADER : 0;
        t->step_ns = t->binary.step_ns;
        return wrong;
    }
    if (t->format == TRACE_CACHELIB) {
        const char *line;
        size_t len;
        enum trace_status status = take_line(t, &line, &len);
        return status == TRACE_RECORD
                   ? trace_layout_parse(&t->conf.layout, line, len, true)
                   : "the line with the names of the columns is missing";
    }
    if (t->format == TRACE_TWITTER) {
        trace_layout_twitter(&t->conf.layout);
    }
    return NULL;
}

const char *
trace_open(struct trace **trace, const struct trace_conf *conf, char err[TRACE_ERR_MAX])
{
    struct trace *t = alloc_zeroed(1, sizeof *t);
    t->conf = *conf;
    const char *wrong =
        trace_file_open(&t->file, conf->opened != NULL ? conf->opened : conf->path);
    bool is_good = wrong == NULL && read_more(t);
    if (is_good) {
        wrong = begin(t);
        is_good = wrong == NULL;
    }
    *trace = t;
    if (!is_good) {
        if (wrong != NULL) {
            fail(t, wrong);
        }
        memcpy(err, t->err, TRACE_ERR_MAX);
        trace_close(trace);
        return err;
    }
    return NULL;
}

void
trace_close(struct trace **trace)
{
    if (*trace != NULL) {
        trace_file_close(&(*trace)->file);
        free(*trace);
        *trace = NULL;
    }
}

enum trace_status
trace_next(struct trace *t, struct trace_record *r)
{
    enum trace_status status = is_stopped(t)               ? TRACE_END
                               : t->format == TRACE_BINARY ? next_binary(t, r)
                                                           : next_line(t, r);
    if (status == TRACE_RECORD) {
        t->notes.records++;
        if (t->has_records && r->time_ns < t->last_ns) {
            t->notes.backwards++;
            r->time_ns = t->last_ns;
        }
        t->last_ns = r->time_ns;
        t->has_records = true;
    }
    return status;
}

const char *
trace_error(const struct trace *t)
{
    return t->err;
}

const struct trace_notes *
trace_notes(const struct trace *t)
{
    return &t->notes;
}

bool
trace_has_times(const struct trace *t)
{
    return t->format == TRACE_BINARY ? !t->binary.has_no_times : t->conf.layout.has_time;
}

bool
trace_has_fixed_step(const struct trace *t)
{
    return !trace_has_times(t) || t->format == TRACE_BINARY ||
           t->conf.layout.unit_ns == 1;
}

uint64_t
trace_step(const struct trace *t)
{
    return t->step_ns;
}

/* ---- the clock -------------------------------------------------------------------------- */

void
trace_clock_begin(struct trace_clock *c, uint64_t begin_ns, uint64_t count)
{
    must(count > 0);
    c->begin_ns = begin_ns;
    c->count = c->left = count;
    c->at = 0;
}

uint64_t
trace_clock_next(struct trace_clock *c)
{
    must(c->left > 0);
    if (c->spread == TRACE_SPREAD_EXPONENTIAL) {
        /* The smallest of `left` uniform numbers on what is left of the step. */
        c->at += (1 - c->at) * (1 - pow(rng_unit(c->rng), 1 / (double)c->left));
    } else if (c->spread == TRACE_SPREAD_UNIFORM) {
        c->at = ((double)(c->count - c->left) + 0.5) / (double)c->count;
    }
    c->left--;
    uint64_t in_step = (uint64_t)(c->at * (double)c->step_ns);
    return c->begin_ns + (in_step < c->step_ns ? in_step : c->step_ns - 1);
}
