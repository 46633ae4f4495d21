/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Requests and replies in the log, with -vv; without values and passwords. The worker's thread.
 */
#pragma once

#include <sys/uio.h>

#include "proto/req.h"

#define VERBOSE_LINE_MAX 600 /* bytes of a reply's line that are looked at */

/* The request whose line or packet begins at p. */
void verbose_request(int fd, const struct req *req, const char *p, size_t len);

/* Of one connection's output. */
struct verbose {
    uint32_t shown; /* bytes at the front of what is unsent */
    uint32_t skip;  /* bytes of a value that come next */
};

/* The replies in the runs at the front of what is unsent, as far as they are whole. A line
 * that is cut there, and sent in part, is not known again. */
void verbose_replies(struct verbose *t, int fd, bool is_binary, const struct iovec *runs,
                     unsigned count);
/* n bytes of them have been sent. */
static inline void
verbose_sent(struct verbose *t, size_t n)
{
    t->shown -= n < t->shown ? n : t->shown;
}
