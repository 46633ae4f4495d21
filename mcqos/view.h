/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What statistics mean: rates between two samples, and findings: what waits or is refused, why, and
 * what would help. Pure but for the streams; one thread.
 */
#pragma once

#include <stdio.h>

#include "base/json.h"
#include "mcqos/facts.h"

#define VIEW_CLASSES 5
#define VIEW_WORKERS_MAX 4096
#define VIEW_FINDINGS_MAX 16
#define VIEW_NUMBER 32 /* bytes of a number as text */

/* Rates are a second, times microseconds; NAN where the server does not say. */
struct view_class {
    const char *name;
    bool is_used; /* ever */
    double served, queued, delayed, refused;
    double turn_p99,
        stage_p99;     /* since the start: the wait for a turn; the longest stage */
    const char *stage; /* NULL: none was followed */
};

struct view_worker {
    unsigned number;
    int cpu; /* -1: not pinned */
    double busy_pct, waiting_pct, conns, capacity;
    const char *place; /* "pinned", "free", "moved", "crowded", "error" */
};

struct view_finding {
    const char *what; /* a word for programs */
    char text[256];
};

struct view {
    const struct facts *before, *now; /* before NULL: since the start of the server */
    double seconds;
    double requests, hit_pct, evictions, headroom_pct, capacity;
    struct view_class classes[VIEW_CLASSES];
    struct view_worker *workers; /* owned: view_fini */
    unsigned worker_count;
    struct view_finding findings[VIEW_FINDINGS_MAX];
    unsigned finding_count;
};

/* All that views are made of. A server of another make has the plain "stats" only. */
must_check enum outcome view_sample(struct facts *f, struct link *l);

/* The facts must live as long. */
void view_init(struct view *v, const struct facts *before, const struct facts *now);
void view_fini(struct view *v);
bool view_has_qos(const struct view *v);

/* What a person reads: a dozen lines, and the tables. */
void view_summary(const struct view *v, const char *server, FILE *out);
/* is_all: also classes without requests. */
void view_classes(const struct view *v, bool is_all, FILE *out);
void view_workers(const struct view *v, FILE *out);

/* Members of the object that is open. */
void view_put(const struct view *v, struct json *j);
void view_put_classes(const struct view *v, struct json *j);
void view_put_workers(const struct view *v, struct json *j);

/* ---- for findings ---------------------------------------------------------------------- */

/* How fast a counter grew, a second. */
__attribute__((format(printf, 2, 3))) double view_rate(const struct view *v,
                                                       const char *format, ...);
/* "51,230"; "-": not known. Returns dst. */
const char *view_count(double n, char dst[VIEW_NUMBER]);
/* "38 us", "4.1 ms". */
const char *view_time(double us, char dst[VIEW_NUMBER]);
