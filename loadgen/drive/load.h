/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Stores the records before a run: each server gets every record, each thread sends its
 * slice, pipelined, and waits for STORED to each. Of a trace the thread sends what a reader
 * delivers (drive/reader.h), until that ends. The thread that owns the connections.
 */
#pragma once

#include "loadgen/drive/pacing.h"
#include "loadgen/measure/counters.h"
#include "loadgen/wire/lset.h"

/* Outstanding requests on each connection while loading. */
#define LOAD_DEPTH 32

struct load_slice {
    uint64_t first, end; /* keys [first, end) */
};

/* The part of thread `index` of `threads`; together they are all records. */
struct load_slice load_slice_of(uint64_t records, unsigned index, unsigned threads);

/* NULL when every record is stored, else a sentence (err): then what a reader delivers is
 * not taken any more. A workload with a book has no slice. `cap` NULL: none. Counts into
 * counters->loaded. */
must_check const char *load_run(struct lset *s, struct load_slice slice, struct cap *cap,
                                struct counters *counters, char *err, size_t err_len);
