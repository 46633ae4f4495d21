/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Execution of parsed requests, one function a verb family. Private to serve/.
 */
#pragma once

#include "serve/session.h"

must_check enum session_ran exec_retrieve(struct session *s, const struct env *env,
                                          struct chain *out,
                                          const struct session_limits *limits);
/* First half of a store: takes memory for the value. DONE when it was refused. */
must_check enum session_ran exec_store_begin(struct session *s, const struct env *env,
                                             struct chain *out);
/* Second half: the body is complete. */
must_check enum session_ran exec_store_end(struct session *s, const struct env *env,
                                           struct chain *out);
must_check enum session_ran exec_arith(struct session *s, const struct env *env,
                                       struct chain *out);
must_check enum session_ran exec_touch(struct session *s, const struct env *env,
                                       struct chain *out);
must_check enum session_ran exec_delete(struct session *s, const struct env *env,
                                        struct chain *out);
must_check enum session_ran exec_admin(struct session *s, const struct env *env,
                                       struct chain *out);

/* Writes a fixed reply unless the request is noreply; RAN_DONE or RAN_NO_MEMORY. */
must_check enum session_ran exec_reply(const struct session *s, const struct env *env,
                                       struct chain *out, enum reply reply);
