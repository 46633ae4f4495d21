/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The command "qos": a table of sub-commands (qos_command.def). Any worker may call.
 */
#pragma once

#include "serve/env.h"

struct stats;

/* Runs one sub-command; q->words begin behind its own word, and their number is within the
 * row's bounds. Returns the reply. REPLY_BAD_FORMAT stands for the row's usage; qos_refuse
 * tells more. */
typedef enum reply qos_handler(struct stats *st, struct serve_qos *q);

#define QOS(word, arguments, least, most, is_control, handler, meaning)                  \
    qos_handler handler;
#include "front/command.def"
#undef QOS

/* Answers "CLIENT_ERROR <text>". To be returned by a handler. */
__attribute__((format(printf, 2, 3))) enum reply qos_refuse(struct serve_qos *q,
                                                            const char *fmt, ...);

/* What is refused to a connection or datagram that may not control; says what would allow it. */
enum reply qos_refuse_control(struct serve_qos *q);

/* The hook of serve/env.h; ctx is the struct stats. */
enum reply qos_command(void *ctx, struct serve_qos *q);
