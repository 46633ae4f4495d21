/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/page.h"

#include "admin/health.h"
#include "admin/recorder.h"

/* What may run in the live page: its own script and style, named by their SHA-256. t/74-live.t
 * says what they are after a change. */
#define LIVE_SCRIPT_HASH "sha256-txnfm4Py0HqvwTD4TrSJcQGaIm8uIj2djlPox0DLdwo="
#define LIVE_STYLE_HASH "sha256-ZLmXBrsgG+uvZsgfBUp5R2A2v+dJ2FVvM9h6di8Ze6s="

static void
live_page(struct admin_view *view, struct http_exchange *x)
{
    (void)view;
    x->policy = "default-src 'none'; connect-src 'self'; img-src data:; "
                "script-src '" LIVE_SCRIPT_HASH "'; style-src '" LIVE_STYLE_HASH "'; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    fwrite(live_html, 1, live_html_len, x->out);
}

/* clang-format off */
const struct admin_route admin_routes[] = {
    {.path = "/", .type = "text/html; charset=utf-8", .make = live_page,
     .is_always_there = true},
    {.path = "/history.json", .type = "application/json", .make = history_page},
    {.path = "/health", .make = health_ready, .is_always_there = true},
    {.path = "/health/live", .make = health_live, .is_always_there = true},
    {.path = "/health/ready", .make = health_ready, .is_always_there = true},
    {.path = "/metrics", .make = metrics_page},
    {.path = "/stats.json", .type = "application/json", .make = stats_json_page},
    {.path = NULL},
};
/* clang-format on */

static const struct admin_route *
find_route(const char *path)
{
    const struct admin_route *route = admin_routes;
    while (route->path != NULL && strcmp(route->path, path) != 0) {
        route++;
    }
    return route->path != NULL ? route : NULL;
}

static void
list_paths(FILE *out)
{
    fputs("nothing is here; there are", out);
    for (const struct admin_route *route = admin_routes; route->path != NULL; route++) {
        fprintf(out, " %s", route->path);
    }
    fputc('\n', out);
}

void
admin_answer(struct admin_view *view, struct http_exchange *x)
{
    const struct admin_route *route = find_route(x->path);
    if (route == NULL) {
        x->status = HTTP_NOTFOUND;
        list_paths(x->out);
    } else if (view->state != ADMIN_SERVING && !route->is_always_there) {
        health_ready(view, x);
    } else {
        x->type = route->type != NULL ? route->type : x->type;
        route->make(view, x);
    }
}

void
admin_second(struct admin_view *view)
{
    health_second(view);
    recorder_second(view->recorder);
}
