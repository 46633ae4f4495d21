/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/servers.h"

#include "base/alloc.h"

enum exit_status
servers_open(struct servers *s, const struct options *o, char *err, size_t err_len)
{
    bool speaks_tls = false;
    *s = (struct servers){.all = alloc_zeroed(o->servers_len, sizeof *s->all)};
    for (; s->count < o->servers_len; s->count++) {
        struct target *t = &s->all[s->count];
        if (!target_resolve(t, o->servers[s->count], o->transport, err, err_len)) {
            return t->is_malformed ? EXIT_USAGE : EXIT_UNREACHABLE;
        }
        if (t->transport == TRANSPORT_UDP && options_replay(o)) {
            snprintf(err, err_len, "%s: a trace is not sent in datagrams (--trace)",
                     t->name);
            return EXIT_USAGE;
        }
        speaks_tls = speaks_tls || t->transport == TRANSPORT_TLS;
    }
    /* A build without TLS does without, unless a server speaks it. */
    if (speaks_tls && (s->tls = ltls_open(&o->tls, err, err_len)) == NULL) {
        return EXIT_USAGE;
    }
    s->share_keys = o->shard != SHARD_NONE && s->count > 1;
    if (s->share_keys) {
        shard_init(&s->keys, o->shard, s->all, s->count);
    }
    return EXIT_VALID;
}

const struct shard *
servers_shard(const struct servers *s)
{
    return s->share_keys ? &s->keys : NULL;
}

void
servers_close(struct servers *s)
{
    if (s->share_keys) {
        shard_fini(&s->keys);
    }
    ltls_close(s->tls);
    free(s->all);
    *s = (struct servers){.all = NULL};
}
