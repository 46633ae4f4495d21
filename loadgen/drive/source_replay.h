/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The part of a trace that one thread sends, in place of requests that are drawn: taken from
 * its book when they are due, each sent on the connection that its key (or its client) has,
 * behind those before it. One that cannot be sent yet waits for its connection and holds up
 * none of other connections; of several servers, one that is gone is not waited for. Its thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "loadgen/wire/lconn.h"
#include "loadgen/work/book.h"

struct drive;

struct replay {
    struct book *book;      /* NULL: no trace */
    uint32_t *first, *last; /* each connection's pages that wait; BOOK_NONE */
    uint32_t waiting;       /* all of them */
    bool *
        is_gone; /* each server: others are not to wait for it, its requests are given up */
    nsec_t dry_at; /* when there was last nothing to take, 0: never */
    bool is_dry, is_over;
    bool has_ended; /* the window, before its time */
    bool has_more;  /* connections may have room again and nobody looked */
};

/* False when memory is short; also what has no trace. */
must_check bool replay_init(struct drive *d);
void replay_fini(struct drive *d);

/* Takes what is due. */
void replay_send_due(struct drive *d, nsec_t now);
/* c may have room: what waits for it goes. */
void replay_offer(struct drive *d, struct lconn *c);
/* The same, later: at the next replay_send_due. */
void replay_note(struct drive *d, const struct lconn *c);
/* c was lost, or could not be made: of several servers, one that no connection reaches any
 * more holds up none of the others. */
void replay_lose(struct drive *d, const struct lconn *c);
/* c is up again. */
void replay_find(struct drive *d, const struct lconn *c);
/* When replay_send_due is to be called again; ALARMS_NEVER. */
nsec_t replay_next_due(struct drive *d);
/* Ends the window when the trace is over and all of it has been answered. */
void replay_look(struct drive *d, nsec_t now);
/* Nothing more is sent. */
void replay_stop(struct drive *d);
/* After the run: what was due and not sent. */
void replay_end(struct drive *d, nsec_t now);
