/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/page.h"

#include "admin/collect.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/part.h"
#include "config.h"

#define STATS_JSON_SCHEMA "memcached-qos-stats/1"
#define PREFIX_MAX 64

static const struct {
    const char *name;  /* of the object */
    const char *group; /* of "stats" */
    bool may_be_long;  /* a line for each connection or size */
} groups[] = {
    {"general", "", false},    {"settings", "settings", false},
    {"items", "items", false}, {"slabs", "slabs", false},
    {"qos", "qos", false},     {"classes", "classes", false},
    {"fair", "fair", false},   {"latency", "latency", false},
    {"pin", "pin", false},     {"resctrl", "resctrl", false},
    {"sizes", "sizes", true},  {"conns", "conns", true},
};
#define GROUP_COUNT (sizeof groups / sizeof groups[0])

/* ---- which groups --------------------------------------------------------------------- */

/* list: "qos,conns"; NULL: those that are not long. False: it names a group that there is not. */
static bool
choose(const char *list, bool chosen[GROUP_COUNT])
{
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        chosen[i] = list == NULL && !groups[i].may_be_long;
    }
    for (const char *p = list != NULL ? list : ""; *p != '\0';) {
        size_t len = strcspn(p, ",");
        bool is_all = part_is(p, len, "all"), is_known = is_all;
        for (size_t i = 0; i < GROUP_COUNT; i++) {
            if (is_all || part_is(p, len, groups[i].name)) {
                chosen[i] = is_known = true;
            }
        }
        if (!is_known) {
            return false;
        }
        p += len + (p[len] == ',');
    }
    return true;
}

/* ---- writing -------------------------------------------------------------------------- */

/* The objects within a group: its lines come in order. */
struct nest {
    struct json *json;
    char prefix[PREFIX_MAX]; /* of the object that is open; empty: none */
};

static void
close_nest(struct nest *n)
{
    if (n->prefix[0] != '\0') {
        json_close(n->json, '}');
        n->prefix[0] = '\0';
    }
}

/* A name of "items:5:number" is in the object "5", as is that of "5:chunk_size". */
static const char *
enter_nest(struct nest *n, const char *name)
{
    const char *last = strrchr(name, ':');
    char prefix[PREFIX_MAX] = "";
    if (last != NULL) {
        const char *first = memchr(name, ':', (size_t)(last - name));
        const char *begin = first != NULL ? first + 1 : name;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(last - begin), begin);
        name = last + 1;
    }
    if (strcmp(prefix, n->prefix) != 0) {
        close_nest(n);
        memcpy(n->prefix, prefix, sizeof prefix);
        if (prefix[0] != '\0') {
            json_open(n->json, prefix, '{');
        }
    }
    return name;
}

/* False: no memory. */
static bool
put_group(struct stats *st, size_t i, struct json *json)
{
    struct collected lines;
    struct nest nest = {.json = json};
    if (!collect_group(st, groups[i].group, &lines)) {
        return false;
    }
    json_open(json, groups[i].name, '{');
    for (size_t at = 0; at < lines.count; at++) {
        const char *name = enter_nest(&nest, lines.lines[at].name);
        json_put(json, json_of_value(name, lines.lines[at].value));
    }
    close_nest(&nest);
    json_close(json, '}');
    collect_free(&lines);
    return true;
}

void
stats_json_page(struct admin_view *view, struct http_exchange *x)
{
    bool chosen[GROUP_COUNT];
    struct json json;
    if (!choose(http_parameter(x, "groups"), chosen)) {
        x->status = HTTP_BADREQUEST;
        x->type = HTTP_PLAIN;
        fputs("?groups= takes a list of: all", x->out);
        for (size_t i = 0; i < GROUP_COUNT; i++) {
            fprintf(x->out, ", %s", groups[i].name);
        }
        fputc('\n', x->out);
        return;
    }
    json_init(&json, x->out);
    json_open(&json, NULL, '{');
    json_put(&json, JSON("schema", STATS_JSON_SCHEMA), JSON("server", PACKAGE_STRING),
             JSON("time", (uint64_t)clock_wall()));
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        if (chosen[i] && !put_group(view->stats, i, &json)) {
            x->has_failed = true;
            return;
        }
    }
    json_close(&json, '}');
}
