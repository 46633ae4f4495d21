/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Bytes that grow at the end, for unit tests and fuzz targets.
 */
#pragma once

#include <sys/uio.h>

#include "base/must.h"

struct text {
    char *p;
    size_t len, cap;
};

static inline void
text_add(struct text *t, const void *p, size_t n)
{
    if (t->cap - t->len < n) {
        t->cap = (t->len + n) * 2;
        t->p = realloc(t->p, t->cap);
        must(t->p != NULL);
    }
    if (n > 0) {
        memcpy(t->p + t->len, p, n);
        t->len += n;
    }
}

/* Returns how many bytes these are. */
static inline size_t
text_add_runs(struct text *t, const struct iovec *iov, unsigned runs)
{
    size_t before = t->len;
    for (unsigned i = 0; i < runs; i++) {
        text_add(t, iov[i].iov_base, iov[i].iov_len);
    }
    return t->len - before;
}
