/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos status, and its tables alone: class, pin.
 */
#include <time.h>

#include "mcqos/command.h"
#include "mcqos/view.h"

static void
wait_seconds(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) *
                                                 (double)NSEC_PER_SEC)};
    while (nanosleep(&t, &t) != 0) {
    }
}

/* All of it, or one of its tables. */
struct parts {
    bool has_summary, has_classes, has_workers;
};

static struct parts
parts_of(const struct options *o)
{
    bool is_class = strcmp(o->words[0], "class") == 0;
    bool is_pin = strcmp(o->words[0], "pin") == 0;
    return (struct parts){!is_class && !is_pin, !is_pin,
                          is_pin || (o->is_json && !is_class)};
}

static void
print_json(const struct view *v, const struct options *o, struct parts parts)
{
    struct json j;
    command_open_json(&j, o);
    if (parts.has_summary) {
        view_put(v, &j);
    }
    if (parts.has_classes) {
        view_put_classes(v, &j);
    }
    if (parts.has_workers) {
        view_put_workers(v, &j);
    }
    json_close(&j, '}');
}

static void
print_text(const struct view *v, const struct options *o, struct parts parts)
{
    if (parts.has_summary) {
        view_summary(v, o->server, stdout);
    }
    if (parts.has_classes && view_has_qos(v)) {
        view_classes(v, !parts.has_summary, stdout);
    }
    if (parts.has_workers) {
        view_workers(v, stdout);
    }
}

static enum outcome
print(const struct view *v, const struct options *o, struct link *l)
{
    struct parts parts = parts_of(o);
    if (!parts.has_summary && !view_has_qos(v)) {
        snprintf(l->why, sizeof l->why,
                 "%s is another memcached: it has no classes, and does not say where its "
                 "workers "
                 "are",
                 o->server);
        return REFUSED;
    }
    if (o->is_json) {
        print_json(v, o, parts);
    } else {
        print_text(v, o, parts);
    }
    return DONE;
}

enum outcome
status_run(const struct options *o, struct link *l)
{
    struct facts before = {0}, now = {0};
    bool has_interval = o->interval > 0;
    enum outcome outcome = has_interval ? view_sample(&before, l) : DONE;
    if (outcome == DONE && has_interval) {
        wait_seconds(o->interval);
    }
    if (outcome == DONE) {
        outcome = view_sample(&now, l);
    }
    if (outcome == DONE) {
        struct view v;
        view_init(&v, has_interval ? &before : NULL, &now);
        outcome = print(&v, o, l);
        view_fini(&v);
    }
    facts_fini(&before);
    facts_fini(&now);
    return outcome;
}
