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

static void
print_json(const struct view *v, const struct options *o, bool is_class, bool is_pin)
{
    struct json j;
    command_open_json(&j, o);
    if (!is_class && !is_pin) {
        view_put(v, &j);
    }
    if (!is_pin) {
        view_put_classes(v, &j);
    }
    if (!is_class) {
        view_put_workers(v, &j);
    }
    json_close(&j, '}');
}

static void
print(const struct view *v, const struct options *o)
{
    bool is_class = strcmp(o->words[0], "class") == 0;
    bool is_pin = strcmp(o->words[0], "pin") == 0;
    if (o->is_json) {
        print_json(v, o, is_class, is_pin);
    } else if (is_pin) {
        view_workers(v, stdout);
    } else {
        if (!is_class) {
            view_summary(v, o->server, stdout);
        }
        if (is_class || view_has_qos(v)) {
            view_classes(v, is_class, stdout);
        }
    }
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
        print(&v, o);
        view_fini(&v);
    }
    facts_fini(&before);
    facts_fini(&now);
    return outcome;
}
