/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run_state.h"

#include "base/alloc.h"

const char *
trace_feed_open(struct trace_feed *t, const struct lclass *c, const struct workload *w,
                unsigned threads, char err[TRACE_ERR_MAX])
{
    if (c->trace.file.path == NULL) {
        return NULL;
    }
    struct reader_conf conf = {
        .trace = c->trace.file,
        .order = c->trace.order,
        .spread = c->trace.spread,
        .speed = c->trace.speed,
        .remap = c->trace.remap,
        .key_prefix = c->workload.key_prefix,
        .verbs = c->codec->verbs,
        .threads = threads,
    };
    if (reader_open(&t->reader, &conf, err) != NULL) {
        return err;
    }
    t->workloads = alloc_zeroed(threads, sizeof *t->workloads);
    for (unsigned i = 0; i < threads; i++) {
        t->workloads[i] = *w;
        t->workloads[i].trace_buffer = reader_buffer(t->reader, i);
    }
    return NULL;
}

void
trace_feed_close(struct trace_feed *t)
{
    reader_close(&t->reader);
    free(t->workloads);
    t->workloads = NULL;
}

/* What was met in the trace. */
static void
print_notes(const struct reader_notes *notes, const char *path, FILE *log)
{
    trace_notes_print(&notes->trace, path, log);
    if (notes->unsupported > 0) {
        fprintf(log,
                "mcload: %s: %ju requests were left out: the protocol has no words for "
                "them\n",
                path, (uintmax_t)notes->unsupported);
    }
    if (notes->cut_values > 0) {
        fprintf(log, "mcload: %s: %ju values were cut to %d bytes\n", path,
                (uintmax_t)notes->cut_values, WORKLOAD_TRACE_VALUE_MAX);
    }
}

/* ---- before the run -------------------------------------------------------------------- */

static bool
has_same_layout(const struct trace_layout *a, const struct trace_layout *b)
{
    return a->count == b->count && a->unit_ns == b->unit_ns &&
           memcmp(a->columns, b->columns, a->count * sizeof *a->columns) == 0;
}

bool
trace_feed_has_same_keys(const struct lclass *a, const struct lclass *b)
{
    const struct lclass_trace *s = &a->trace, *t = &b->trace;
    const struct workload_conf *v = &a->workload, *w = &b->workload;
    return s->file.path != NULL && t->file.path != NULL &&
           strcmp(s->file.path, t->file.path) == 0 && s->file.format == t->file.format &&
           has_same_layout(&s->file.layout, &t->file.layout) &&
           s->file.skips_bad == t->file.skips_bad && s->remap == t->remap &&
           s->load_max == t->load_max && a->codec->verbs == b->codec->verbs &&
           v->flags == w->flags && strcmp(v->key_prefix, w->key_prefix) == 0 &&
           dist_is_same(&v->expiry, &w->expiry);
}

const char *
trace_feed_end_load(struct trace_feed *t, const struct lclass *c, bool has_replay,
                    FILE *log)
{
    struct reader_notes notes;
    const char *path = c->trace.file.path;
    const char *wrong = reader_stop(t->reader, &notes);
    if (wrong != NULL) {
        return wrong;
    }
    if (!has_replay) {
        print_notes(&notes, path, log);
    }
    if (notes.is_cut) {
        fprintf(log,
                "mcload: %s: only the first %ju keys are stored, there are more "
                "(--trace-load)\n",
                path, (uintmax_t)notes.stocked);
    } else if (notes.stocked == 0) {
        fprintf(log,
                "mcload: %s: nothing is stored: it tells no lengths of values "
                "(--trace-load)\n",
                path);
    }
    return NULL;
}

/* ---- runs ------------------------------------------------------------------------------ */

bool
trace_feed_is_primed(const struct trace_feed *t)
{
    return t->reader == NULL || reader_is_primed(t->reader);
}

const char *
trace_feed_stop(struct trace_feed *t, const struct lclass *c, FILE *log)
{
    struct reader_notes notes;
    const char *path = c->trace.file.path;
    const char *wrong = t->reader != NULL ? reader_stop(t->reader, &notes) : NULL;
    if (wrong != NULL || t->reader == NULL) {
        return wrong;
    }
    print_notes(&notes, path, log);
    return NULL;
}
