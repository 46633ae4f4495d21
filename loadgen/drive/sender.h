/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Requests of a drive on their way out: which is due, which connection takes it, when it was
 * given to the kernel. Its thread only.
 */
#pragma once

#include <stdbool.h>

#include "loadgen/drive/drive.h"

/* Whether c may have another request. */
bool flow_has_room(const struct drive *d, const struct lconn *c);
/* No connection of that server is up. */
bool flow_is_unreachable(const struct drive *d, unsigned server);
/* c is given one, to be flushed. */
void flow_count_push(struct drive *d, struct lconn *c);
/* Not closed: c takes one of the next requests, if it has room. */
void flow_offer(struct drive *d, struct lconn *c);
/* What follows from answers, and in a closed loop new requests up to the depth. False when
 * the connection is gone. */
bool flow_fill(struct drive *d, struct lconn *c, nsec_t now);
/* Sends the connection's output. False when the connection is gone. */
bool flow_flush(struct drive *d, struct lconn *c);
/* The same for all that were given something. */
void flow_flush_all(struct drive *d);

/* Hands out what is due: requests of the schedule and of sessions, of users who have thought. */
void flow_send_due(struct drive *d, nsec_t now);
/* When that is to be called again, events aside. */
nsec_t flow_next_due(struct drive *d);

/* The request is answered, whatever with: its user thinks, its session goes on. */
void flow_answered(struct drive *d, struct lconn *c, const struct request_op *op,
                   nsec_t now);
/* It was given to the kernel: answers may overtake the end of the system call. */
void flow_issued(struct drive *d, struct request_op *op, unsigned outstanding,
                 nsec_t now);
/* All that is on its way on c will not be answered; `sent` counts those that were sent. */
void flow_forget(struct drive *d, struct lconn *c, ctr_t *sent, nsec_t now);
/* The run is over: what was due and could not be sent. */
void flow_end(struct drive *d, nsec_t now);
