/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Since when the input of a connection has waited to be read, as far as that is known. It is kept
 * while there is an SLO. Pure; the worker's thread.
 */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "base/sojourn.h"

struct pass;

struct arrival {
    nsec_t since;     /* the oldest of the last input; 0: not known */
    nsec_t empty_at;  /* what is unread arrived later */
    bool has_rest;    /* the last read has not emptied the socket */
    bool was_blocked; /* input may have waited for the client to take its replies */
};

/* A read, and what is known of it. */
struct arrival_read {
    const char *bytes; /* that were read */
    size_t len;
    bool has_rest; /* more may be unread */
    bool
        is_own_delay; /* the client is slow itself: that says nothing of the worker's queue */
    struct sojourn_times times; /* ready_mono: when the socket was reported */
};

void arrival_note(struct arrival *a, const struct pass *pass,
                  const struct arrival_read *r);
/* A request has waited for a limit, which is no queue, and what came meanwhile was left unread. */
void arrival_resume(struct arrival *a, nsec_t now);
/* A read that was not measured. */
void arrival_note_unmeasured(struct arrival *a, const struct pass *pass, bool has_rest);
/* A read that found nothing. */
void arrival_note_empty(struct arrival *a, const struct pass *pass);
/* Since when a message has waited that was read with these times. */
nsec_t arrival_of(const struct sojourn_times *times);
