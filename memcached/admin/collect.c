/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_out.h"
#include "front/front.h"

static void
take(void *ctx, const char *name, const char *value)
{
    FILE *out = ctx;
    fwrite(name, 1, strlen(name) + 1, out);
    fwrite(value, 1, strlen(value) + 1, out);
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
    struct sink sink = {.take = take, .ctx = out.file};
    uint32_t now = clock_rel(clock_now());
    enum reply reply = REPLY_NONE;
    while (reply == REPLY_NONE && !sink.is_complete && !sink.has_failed) {
        reply = front_stats(st, &word, *group != '\0', now, &place, &sink);
    }
    bool is_good = text_out_close(&out) && !sink.has_failed;
    *c = (struct collected){out.bytes, out.len};
    if (!is_good) {
        collect_free(c);
    }
    return is_good;
}

void
collect_free(struct collected *c)
{
    free(c->text);
    *c = (struct collected){.text = NULL};
}

bool
collect_next(const struct collected *c, size_t *at, const char **name, const char **value)
{
    if (*at >= c->len) {
        return false;
    }
    *name = c->text + *at;
    *value = *name + strlen(*name) + 1;
    *at = (size_t)(*value - c->text) + strlen(*value) + 1;
    return true;
}
