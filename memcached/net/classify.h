/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a session's requests are to qos/class.h, over TCP and UDP alike: what was declared for
 * them, else what they show. The worker's thread only.
 */
#pragma once

#include "net/worker.h"
#include "serve/session.h"
#include "sock/addr.h"

/* What the client's address or else its listener declares, as session.declared. A rule for the
 * address goes before what the listener says. */
uint8_t classify_place(const struct class_rules *rules, const struct peer *peer,
                       enum req_class listener);
/* The class of the request at the head. *is_told: it was declared, not judged. */
enum req_class classify_request(const struct net_shared *shared, const struct session *s,
                                bool *is_told);
/* Counts what has just run, which made so many bytes of output, as the class that it turned
 * out to be of; that is returned. */
enum req_class classify_account(struct worker *w, const struct session *s,
                                enum req_class class, bool is_told, enum session_ran ran,
                                size_t bytes);
