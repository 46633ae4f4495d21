/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Drives a session the way a connection does, over a store of 1 MB and without a socket: for
 * the targets that fuzz whole sessions. One thread; each run has a store of its own.
 */
#pragma once

#include "fuzz.h"

#include "serve/maint.h"
#include "serve/session.h"

#define DRIVE_VERSION "1.2.3" /* what the server says that it is */

struct run;

/* Called when a request is over, its replies in r->sent from byte `from` on. */
typedef void observe_fn(struct run *r, bool was_authenticated, size_t from);

/* What the server was started with, as far as a session sees it. */
struct drive_conf {
    enum profile profile;
    enum serve_binding binding;
    bool use_cas;
    bool has_log; /* and a background thread: watch, dumps, crawls, pages that move */
    struct auth *auth;   /* NULL: everybody may */
    observe_fn *observe; /* NULL: nobody looks */
};

/* One life of a session and everything beneath. */
struct run {
    struct store *store;
    struct serve_conf conf;
    struct maint maint;
    struct serve_ctr ctr;
    struct pool pool;
    struct env env;
    struct session session;
    struct buf in;
    struct chain out;
    struct session_limits limits;
    observe_fn *observe;
    struct text received;
    struct text sent;
    bool is_closed;         /* by the server, as hostile */
    bool was_authenticated; /* at some time */
    bool is_over;           /* the client asked to be closed, or a reply says why it is */
};

void run_open(struct run *r, const struct drive_conf *conf, struct session_limits limits);
/* Everything that was taken must be back by now. */
void run_close(struct run *r);
/* A client sends these bytes, cut by the cutter; the replies are added to r->sent. Until the
 * run is closed or over. */
void run_input(struct run *r, const uint8_t *data, size_t size, struct cutter *cutter);
/* Another client in place of the one that was there; the store stays. */
void run_reconnect(struct run *r);
/* The same bytes, cut differently, were answered alike. */
void run_compare(const struct run *whole, const struct run *cut);
