/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where to: the servers under test.
 */
#include "loadgen/options/group.h"

static const char *
call_server(void *conf, const char *text)
{
    struct options *o = conf;
    if (o->servers_len == OPTIONS_SERVERS_MAX) {
        return "too many servers";
    }
    o->servers[o->servers_len++] = text;
    return NULL;
}

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 's', .name = "server", .kind = OPT_CALL, .call = call_server,
     .arg = "HOST[:PORT]",
     .help = "server, also unix:PATH and [v6]:PORT; repeat for several (127.0.0.1)"},
};
/* clang-format on */

static const char *
settle(struct options *o)
{
    if (o->servers_len == 0) {
        o->servers[o->servers_len++] = "127.0.0.1";
    }
    return NULL;
}

const struct run_group group_target = {ROWS(rows), .settle = settle};
