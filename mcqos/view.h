/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What statistics mean: rates between two samples, and findings: what waits or is refused, why, and
 * what would help. Pure but for the streams; one thread.
 */
#pragma once

#include "base/json.h"
#include "mcqos/facts.h"

#define VIEW_CLASSES 5
#define VIEW_WORKERS_MAX 4096
#define VIEW_FINDINGS_MAX 16
#define VIEW_NUMBER 32 /* bytes of a number as text */

/* The numbers of a row. Rates are a second, times microseconds; NAN where the server does not say. */
enum view_of_class {
    CLASS_SERVED,
    CLASS_QUEUED,
    CLASS_LIMITED,
    CLASS_REFUSED,
    CLASS_TURN,  /* p99 since the start: the wait for a turn */
    CLASS_STAGE, /* likewise: the longest stage */
};
enum view_of_worker {
    WORKER_CPU, /* -1: not pinned */
    WORKER_BUSY,
    WORKER_WAITING,
    WORKER_CONNS,
    WORKER_CAPACITY,
};
#define VIEW_COLUMNS_MAX 6

struct view_row {
    unsigned number;
    char name[VIEW_NUMBER];
    double cells[VIEW_COLUMNS_MAX];
    const char
        *note; /* the longest stage; "pinned", "free", "moved", "crowded", "error" */
};

struct view_table {
    const struct view_form *form;
    struct view_row *rows; /* owned: view_fini */
    unsigned count;
};

struct view_finding {
    const char *what; /* a word for programs */
    char text[256];
};

struct view {
    const struct facts *before, *now; /* before NULL: since the start of the server */
    double seconds;
    double requests, hit_pct, evictions, headroom_pct, capacity;
    struct view_table classes, workers;
    struct view_finding findings[VIEW_FINDINGS_MAX];
    unsigned finding_count;
};

/* All that views are made of. A server of another make has the plain "stats" only. */
must_check enum outcome view_sample(struct facts *f, struct link *l);

/* The facts must live as long. Those before, of a server that was started again since, do not count. */
void view_init(struct view *v, const struct facts *before, const struct facts *now);
void view_fini(struct view *v);
bool view_has_qos(const struct view *v);

/* What a person reads: a dozen lines. */
void view_summary(const struct view *v, const char *server, FILE *out);
/* is_all: also rows of classes that had no request. */
void view_print(const struct view *v, const struct view_table *t, bool is_all, FILE *out);

/* Members of the object that is open. */
void view_put(const struct view *v, struct json *j);
void view_put_table(const struct view_table *t, struct json *j);

/* ---- between view.c and findings.c ----------------------------------------------------- */

/* Fills v->findings, what a person should hear with its remedy, from the rest of it. */
void view_find(struct view *v);
/* How fast a counter grew, a second. */
__attribute__((format(printf, 2, 3))) double view_rate(const struct view *v,
                                                       const char *format, ...);
/* "51,230"; "-": not known. Returns dst. */
const char *view_count(double n, char dst[VIEW_NUMBER]);
/* "38 us", "4.1 ms". */
const char *view_time(double us, char dst[VIEW_NUMBER]);
