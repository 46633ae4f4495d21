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
    nsec_t ns = clock_seconds(seconds);
    struct timespec t = {(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};
    while (nanosleep(&t, &t) != 0) {
    }
}

static enum outcome
print(const struct view *v, const struct options *o, struct link *l)
{
    bool is_class = strcmp(o->words[0], "class") == 0;
    bool is_pin = strcmp(o->words[0], "pin") == 0, is_all = !is_class && !is_pin;
    struct json room, *j;
    if (!is_all && !view_has_qos(v)) {
        return link_explain(
            l, REFUSED,
            "%s is another memcached: it has no classes, and does not say "
            "where its workers are",
            o->server);
    }
    if ((j = command_open(&room, o, NULL, '\0')) != NULL) {
        if (is_all) {
            view_put(v, j);
        }
        if (!is_pin) {
            view_put_table(&v->classes, j);
        }
        if (!is_class) {
            view_put_table(&v->workers, j);
        }
        json_close(j, '}');
        return DONE;
    }
    if (is_all) {
        view_summary(v, o->server, stdout);
    }
    if (view_has_qos(v)) {
        view_print(v, is_pin ? &v->workers : &v->classes, !is_all, stdout);
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
        link_close(l); /* the server may have closed it since (idle_timeout) */
        outcome = link_open(l, o);
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
