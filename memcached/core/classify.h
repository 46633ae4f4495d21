/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The class of a request: what was declared for it, else what it shows. The worker's thread only.
 *
 * A value's size is known only after the look-up, so a get begins as small and goes on as bulk
 * once it has found a large one: by service attained rather than foretold (multi-level feedback,
 * Corbato et al. 1962). What it has done until then is one look-up, and is kept.
 */
#pragma once

#include "qos/class_rules.h"
#include "serve/session.h"

struct core;
struct core_shared;

/* What the client's address or else its listener declares, as session.declared. A rule for the
 * address goes before what the listener says. ip: of 16 bytes; NULL: it has none. */
uint8_t classify_place(const struct class_rules *rules, const uint8_t *ip,
                       enum req_class listener);
/* The class of the request at the head. *is_told: it was declared, not judged. */
enum req_class classify_request(const struct core_shared *shared, const struct session *s,
                                bool *is_declared);
/* Counts what has just run, which made so many bytes of output, as the class that it turned
 * out to be of; that is returned. */
enum req_class classify_account(struct core *k, const struct session *s,
                                enum req_class class, bool is_declared,
                                enum session_ran ran, size_t bytes);
