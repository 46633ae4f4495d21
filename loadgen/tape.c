/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tape.h"

#include <stdlib.h>

const char *
tape_open(struct tape *t, const struct lclass *c, const struct workload *w,
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
        .key_prefix = c->key_prefix,
        .verbs = c->codec->verbs,
        .threads = threads,
    };
    if (reader_open(&t->reader, &conf, err) != NULL) {
        return err;
    }
    t->workloads = calloc(threads, sizeof *t->workloads);
    must(t->workloads != NULL);
    for (unsigned i = 0; i < threads; i++) {
        t->workloads[i] = *w;
        t->workloads[i].book = reader_book(t->reader, i);
    }
    return NULL;
}

void
tape_close(struct tape *t)
{
    reader_close(&t->reader);
    free(t->workloads);
    t->workloads = NULL;
}

const char *
tape_start(struct tape *t, const struct traffic *traffic, const struct tape_cue *cue,
           char err[TRACE_ERR_MAX])
{
    struct reader_run run = {
        .law = &traffic->arrivals,
        .rate = traffic_is_open(traffic) ? traffic->rate : 0,
        .seed = cue->seed,
        .stream = cue->stream,
        .slice = cue->slice,
    };
    return t->reader != NULL ? reader_start(t->reader, &run, err) : NULL;
}

bool
tape_is_primed(const struct tape *t)
{
    return t->reader == NULL || reader_is_primed(t->reader);
}

const char *
tape_stop(struct tape *t, const struct lclass *c, FILE *log)
{
    struct reader_notes notes;
    const char *path = c->trace.file.path;
    const char *wrong = t->reader != NULL ? reader_stop(t->reader, &notes) : NULL;
    if (wrong != NULL || t->reader == NULL) {
        return wrong;
    }
    trace_notes_print(&notes.trace, path, log);
    if (notes.unsupported > 0) {
        fprintf(log,
                "mcload: %s: %ju requests were left out: the protocol has no words for "
                "them\n",
                path, (uintmax_t)notes.unsupported);
    }
    if (notes.cut_values > 0) {
        fprintf(log, "mcload: %s: %ju values were cut to %d bytes\n", path,
                (uintmax_t)notes.cut_values, WORKLOAD_TRACE_VALUE_MAX);
    }
    return NULL;
}
