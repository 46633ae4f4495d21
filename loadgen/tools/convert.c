/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/convert.h"

#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/work/trace_file.h"

/* Lines that come late may have the finest times: looks through all of it. */
static const char *
find_step(const struct trace_conf *from, uint64_t *step, char err[TRACE_ERR_MAX])
{
    struct trace_record record;
    struct trace *t;
    if (trace_open(&t, from, err) != NULL) {
        return err;
    }
    enum trace_status status = trace_next(t, &record);
    while (status == TRACE_RECORD && !trace_has_fixed_step(t)) {
        status = trace_next(t, &record);
    }
    if (status == TRACE_FAILED) {
        snprintf(err, TRACE_ERR_MAX, "%s", trace_error(t));
    }
    *step = trace_step(t) > 0 ? trace_step(t) : 1;
    trace_close(&t);
    return status == TRACE_FAILED ? err : NULL;
}

/* *from_input: what is wrong is so with what is read. */
static const char *
convert(struct trace *in, struct trace_file *out, struct trace_binary *binary,
        bool *from_input)
{
    char bytes[TRACE_BINARY_RECORD_MAX];
    struct trace_record record;
    enum trace_status status = trace_next(in, &record);
    const char *wrong =
        trace_file_write(out, bytes, trace_binary_put_header(binary, bytes));
    for (; wrong == NULL && status == TRACE_RECORD; status = trace_next(in, &record)) {
        wrong = trace_file_write(out, bytes, trace_binary_put(binary, &record, bytes));
    }
    *from_input = wrong == NULL && status == TRACE_FAILED;
    if (wrong != NULL || *from_input) {
        return wrong != NULL ? wrong : trace_error(in);
    }
    wrong = trace_file_write(out, bytes, trace_binary_put_end(binary, bytes));
    return wrong != NULL ? wrong : trace_file_finish(out);
}

static bool
is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Not a device, and not a link to one. */
static bool
is_plain(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

const char *
convert_trace(const struct trace_conf *from, const char *to, FILE *log,
              char err[TRACE_ERR_MAX])
{
    if (is_same_file(from->path, to)) {
        snprintf(err, TRACE_ERR_MAX, "%s: read and written at once", to);
        return err;
    }
    struct trace *in = NULL;
    struct trace_file out = {.file = NULL};
    struct trace_binary binary = {.records = 0};
    bool from_input = true, is_made = false;
    const char *wrong = find_step(from, &binary.step_ns, err);
    wrong = wrong == NULL ? trace_open(&in, from, err) : wrong;
    if (wrong == NULL) {
        from_input = false;
        binary.has_no_times = !trace_has_times(in);
        wrong = trace_file_create(&out, to);
        is_made = wrong == NULL;
        wrong = is_made ? convert(in, &out, &binary, &from_input) : wrong;
    }
    if (wrong == NULL) {
        trace_notes_print(trace_notes(in), from->path, log);
        fprintf(log, "mcload: %ju records\n", (uintmax_t)binary.records);
    } else if (wrong != err) {
        snprintf(err, TRACE_ERR_MAX, "%s%s%s", from_input ? "" : to,
                 from_input ? "" : ": ", wrong);
    }
    if (wrong != NULL && is_made && is_plain(to)) {
        unlink(to);
    }
    trace_file_close(&out);
    trace_close(&in);
    return wrong != NULL ? err : NULL;
}
