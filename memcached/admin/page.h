/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The pages of the HTTP server: what each path is answered with. A page is made by the HTTP
 * server's thread while it holds the view's lock, so the workers and their counters stay where
 * they are meanwhile. A page only reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "admin/http.h"

struct health;
struct sampler;
struct stats;

enum admin_state { ADMIN_STARTING, ADMIN_SERVING, ADMIN_STOPPING };

/* What pages are made of. */
struct admin_view {
    enum admin_state state;
    struct stats *stats; /* of ADMIN_SERVING, else NULL */
    struct health *health;
    struct sampler *sampler;
};

typedef void admin_page(struct admin_view *view, struct http_exchange *x);

struct admin_route {
    const char *path;
    const char *type; /* of the content; NULL: plain text, or what the page says */
    admin_page *make;
    bool
        is_always_there; /* also while the server starts and stops, when others are 503 */
};

/* All of them; the last one has no path. */
extern const struct admin_route admin_routes[];

/* Answers x by the page of its path, 404 or 503. */
void admin_answer(struct admin_view *view, struct http_exchange *x);
/* Once a second, while the server serves. */
void admin_second(struct admin_view *view);
