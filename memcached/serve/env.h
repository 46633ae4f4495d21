/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a session needs from the outside: one struct env per worker, used by its thread only.
 */
#pragma once

#include "base/chain.h"
#include "base/ctr.h"
#include "base/mbox.h"
#include "proto/req.h"
#include "proto/rules.h"
#include "serve/sink.h"
#include "store/store.h"

struct auth;
struct maint;

/* Which protocol a connection speaks. */
enum serve_binding {
    BINDING_DEFAULT, /* of a session: as serve_conf says; there: AUTO */
    BINDING_AUTO,    /* by the first byte */
    BINDING_ASCII,
    BINDING_BINARY,
};

/* Single-writer: the worker adds, any thread reads. */
struct serve_slab_ctr {
#define COUNTER(field)
#define SLAB_COUNTER(field) ctr_t field;
#define SLAB_COUNTERS(field, count) ctr_t field[count];
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
};

struct serve_ctr {
#define COUNTER(field) ctr_t field;
#define SLAB_COUNTER(field)
#include "serve/serve.def"
#undef COUNTER
#undef SLAB_COUNTER
    struct serve_slab_ctr slab[STORE_SLOTS]; /* of owners but 0, what finds items only */
};

/* How far an answer that is made in pieces has got. `at` is 0 at first; both belong to
 * the function that makes it. */
struct serve_place {
    unsigned at;
    uint32_t ticket; /* of a walk */
};

/* What another thread does for a request; embedded in what that needs. It is the session's again
 * when back.message has come back. */
struct parked {
    struct mbox_back back;
    void (*discard)(
        struct parked *p); /* frees it, when no client is left to be answered */
};

/* A "qos ..." on its way to its hook. */
struct serve_qos {
    const struct slice *words; /* behind "qos" */
    unsigned count;
    bool is_datagram; /* there is no connection that could declare anything */
    bool may_control; /* change how others are served, and its own class for the better */
    bool is_local;    /* from a UNIX socket or loopback: may have files written */
    uint8_t declared; /* of the session that asks; the hook may change it */
    struct serve_place *place; /* as for stats */
    struct mbox_back back;     /* for what is parked */
    /* The hook that waits for another thread sets it and says NONE. When its message is back the
     * hook is called again, has it back, and sets NULL. */
    struct parked *parked;
    struct sink *sink;
};

/* Upward calls; set once by main for the whole process. */
struct serve_hooks {
    /* Answers "stats" with the words behind the command. Returns the closing reply: END,
     * RESET, or an error when the group is unknown; NONE when there is more and the call is
     * to be repeated. A call takes as long as a small statistic does, whatever there is, and
     * writes 32 KiB at most. */
    enum reply (*stats)(void *ctx, const struct slice *words, unsigned count,
                        uint32_t now, struct serve_place *place, struct sink *sink);
    /* Answers "qos ..."; likewise. */
    enum reply (*qos)(void *ctx, struct serve_qos *q);
    void (*shutdown)(void *ctx, bool is_graceful);
    /* False with a line in err. NULL: there is no TLS. */
    bool (*refresh_certs)(void *ctx, uint32_t now, char *err, size_t err_len);
    void *ctx;
};

struct serve_conf {
    const struct rules *rules;
    enum serve_binding binding;
    const char *version; /* as "version" reports it */
    bool use_cas;
    bool allows_flush;
    bool allows_shutdown;
    bool allows_debug; /* debugtime, debugitem */
    bool allows_watch;
    bool allows_dump;
    uint8_t plain_owner; /* of items that plain_serve stores */
    struct maint *maint; /* NULL: no thread in the background; serve/maint.h */
    struct auth *auth;   /* NULL: not required; serve/auth.h */
};

struct watch;
struct watch_ring;
struct prefixes;

struct env {
    struct store *store;
    const struct serve_conf *conf;
    const struct serve_hooks *hooks;
    struct serve_ctr *ctr;
    struct chain_env chain; /* release gives item references back to the store */
    int client_fd;          /* whose request runs: what the live log calls it */
    struct mbox_back
        back;      /* ... and how it goes on when another thread has worked for it */
    uint8_t owner; /* of what it stores: the share of memory that it uses */
    struct watch *watch;       /* NULL: there is no live log */
    struct watch_ring *log;    /* of this thread, NULL: no watcher; serve/key_event.h */
    struct prefixes *prefixes; /* counted in while `log` wants WATCH_PREFIXES */
    struct req *
        *spare;   /* of this thread, one that no session needs; NULL: none is kept */
    uint32_t now; /* relative clock, refreshed once a batch */
    bool
        looks_closer; /* clients must authenticate, or the log shows requests; likewise */
};
