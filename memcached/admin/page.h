/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The pages of the HTTP server: what each path is answered with. A page is made by the HTTP
 * server's thread while it holds the view's lock, so the workers and their counters stay where
 * they are meanwhile. A page only reads.
 */
#pragma once

#include "admin/http.h"

struct health;
struct recorder;
struct stats;

enum admin_state { ADMIN_STARTING, ADMIN_SERVING, ADMIN_STOPPING };

/* What pages are made of. */
struct admin_view {
    enum admin_state state;
    struct stats *stats; /* of ADMIN_SERVING, else NULL */
    struct health *health;
    struct recorder *recorder;
};

typedef void admin_page(struct admin_view *view, struct http_exchange *x);

struct admin_route {
    const char *path;
    const char *type; /* of the content; NULL: plain text, or what the page says */
    admin_page *make;
    bool
        is_always_there; /* also while the server starts and stops, when others are 503 */
};

/* ---- pages --------------------------------------------------------------------------- */

/* /metrics: statistics by the names that dashboards know (those of the Prometheus exporter for
 * memcached), and those of quality of service beside them. What is a line of "stats" or of one
 * of its groups is a row of metrics.def; histograms are read from the workers. */
admin_page metrics_page;

/* /stats.json: what "stats" and its groups tell, an object each. "items:5:number" is
 * {"5": {"number": ...}} there, and "31:addr" of a connection {"31": {"addr": ...}}.
 * "?groups=qos,conns" chooses, "?groups=all" takes all; by default all but those of which there
 * may be many. */
admin_page stats_json_page;

/* /history.json: what the live page shows, for it and for programs. A member that changes its
 * meaning makes a new version of the schema, an added one does not. null: not known, or not set.
 *
 *     schema, version, time             what this is; seconds since 1970
 *     step_seconds, steps               of the samples; as many as are kept
 *     server                            version, uptime, and what is set, in words
 *     hits, misses, classes             counts since the start; limits, tokens and SLO
 *     workers                           where each is bound; its last step
 *     memory                            by slab class; pages_then: 15 minutes ago
 *     samples                           one value of each step in each row, the oldest first
 */
admin_page history_page;

/* The live page, one document, made of live.html at build time. */
extern const unsigned char live_html[];
extern const size_t live_html_len;

/* All of them; the last one has no path. */
extern const struct admin_route admin_routes[];

/* Answers x by the page of its path, 404 or 503. */
void admin_answer(struct admin_view *view, struct http_exchange *x);
/* Once a second, while the server serves. */
void admin_second(struct admin_view *view);
