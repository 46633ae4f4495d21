/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/health.h"

#include "base/clock.h"
#include "front/stats.h"

#define REASON_MAX 128
#define STARTING "starting"

struct health *
health_create(unsigned count, uint32_t now)
{
    struct health *h = calloc(1, sizeof *h + count * sizeof h->alive_at[0]);
    if (h == NULL) {
        return NULL;
    }
    h->count = count;
    for (unsigned i = 0; i < count; i++) {
        h->alive_at[i] = now;
    }
    return h;
}

void
health_second(struct admin_view *view)
{
    struct health *h = view->health;
    uint32_t now = clock_rel(clock_now());
    for (unsigned i = 0; i < h->count; i++) {
        if (worker_ping(&view->stats->workers[i])) {
            h->alive_at[i] = now;
        }
    }
}

/* The reason in text; false: there is none. */
static bool
is_stuck(struct admin_view *view, char text[REASON_MAX])
{
    uint32_t now = clock_rel(clock_now());
    const struct health *h = view->health;
    if (view->state != ADMIN_SERVING) {
        return false;
    }
    health_second(view);
    for (unsigned i = 0; i < h->count; i++) {
        if (now >= h->alive_at[i] + HEALTH_STUCK_SECONDS) {
            snprintf(text, REASON_MAX, "worker %u has not responded for %u s", i,
                     now - h->alive_at[i]);
            return true;
        }
    }
    return false;
}

static bool
is_full(const struct admin_view *view, char text[REASON_MAX])
{
    const struct listen *l = view->stats->listen;
    unsigned open =
        atomic_load_explicit(&view->stats->shared->open_conns, memory_order_relaxed);
    if (open >= l->conf.max_conns) {
        snprintf(text, REASON_MAX, "all %u connections of clients are in use (-c)",
                 l->conf.max_conns);
        return true;
    }
    if (!listen_is_accepting(l)) {
        bool is_open = atomic_load_explicit(&l->is_open, memory_order_relaxed);
        snprintf(text, REASON_MAX, "%s", is_open ? "out of file descriptors" : STARTING);
        return true;
    }
    return false;
}

static bool
is_unready(struct admin_view *view, char text[REASON_MAX])
{
    switch (view->state) {
    case ADMIN_STARTING:
        snprintf(text, REASON_MAX, STARTING);
        return true;
    case ADMIN_STOPPING:
        snprintf(text, REASON_MAX, "stopping");
        return true;
    case ADMIN_SERVING:
        return is_stuck(view, text) || is_full(view, text);
    }
    unreachable();
}

static void
reply(struct http_exchange *x, bool is_bad, const char *reason)
{
    x->status = is_bad ? HTTP_SERVUNAVAIL : HTTP_OK;
    fprintf(x->out, "%s\n", is_bad ? reason : "ok");
}

void
health_ready(struct admin_view *view, struct http_exchange *x)
{
    char text[REASON_MAX];
    reply(x, is_unready(view, text), text);
}

void
health_live(struct admin_view *view, struct http_exchange *x)
{
    char text[REASON_MAX];
    reply(x, is_stuck(view, text), text);
}
