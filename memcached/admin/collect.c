/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/collect.h"

#include "base/clock.h"
#include "base/text_out.h"
#include "front/front.h"

struct writing {
    FILE *out;
    size_t count; /* of lines */
};

static void
take(void *ctx, const char *name, const char *value)
{
    struct writing *w = ctx;
    fwrite(name, 1, strlen(name) + 1, w->out);
    fwrite(value, 1, strlen(value) + 1, w->out);
    w->count++;
}

/* The text is names and values in turn, each with its '\0'. False: no memory. */
static bool
find_lines(struct collected *c)
{
    const char *at = c->text;
    c->lines = calloc(c->count + 1, sizeof *c->lines);
    for (size_t i = 0; c->lines != NULL && i < c->count; i++) {
        c->lines[i].name = at;
        c->lines[i].value = at + strlen(at) + 1;
        at = c->lines[i].value + strlen(c->lines[i].value) + 1;
    }
    return c->lines != NULL;
}

bool
collect_group(struct stats *st, const char *group, struct collected *c)
{
    struct text_out out;
    *c = (struct collected){.text = NULL};
    if (!text_out_open(&out)) {
        return false;
    }
    struct slice word = {group, strlen(group)};
    struct serve_place place = {0};
    struct writing w = {.out = out.file};
    struct sink sink = {.take = take, .ctx = &w};
    uint32_t now = clock_rel(clock_now());
    enum reply reply = REPLY_NONE;
    while (reply == REPLY_NONE && !sink.is_complete && !sink.has_failed) {
        reply = front_stats(st, &word, *group != '\0', now, &place, &sink);
    }
    bool is_good = text_out_close(&out) && !sink.has_failed;
    *c = (struct collected){.text = out.bytes, .count = w.count};
    is_good = is_good && find_lines(c);
    if (!is_good) {
        collect_free(c);
    }
    return is_good;
}

void
collect_free(struct collected *c)
{
    free(c->lines);
    free(c->text);
    *c = (struct collected){.text = NULL};
}
