/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/series.h"

#include "base/alloc.h"

#define NUMBER_MAX 9 /* bytes */

static void
put(struct packed *p, int64_t number)
{
    uint64_t left = number < 0 ? ~((uint64_t)number << 1) : (uint64_t)number << 1;
    unsigned bytes = 1;
    for (; left > 0x7f && bytes < NUMBER_MAX; left >>= 7, bytes++) {
        p->bytes[p->len++] = (uint8_t)(left | 0x80);
    }
    p->bytes[p->len++] = (uint8_t)left;
}

void
packed_make(struct packed *p, const struct hist *h)
{
    uint32_t at = 0, used = 0;
    uint64_t left = hist_count(h), low, high, n;
    int64_t empty = 0;
    while (hist_next(h, &at, &low, &high, &n)) {
        used++;
    }
    /* A run of empty ones before each; readers want one number at least. */
    *p = (struct packed){alloc_bytes((2 * (size_t)used + 1) * NUMBER_MAX), 0};
    for (at = 0; left > 0 && at < hist_buckets(h); at++) {
        n = hist_bucket(h, at);
        if (n == 0) {
            empty++;
            continue;
        }
        if (empty > 0) {
            put(p, empty > 1 ? -empty : 0);
            empty = 0;
        }
        put(p, (int64_t)n);
        left -= n < left ? n : left;
    }
    if (p->len == 0) {
        put(p, 0);
    }
    p->bytes = alloc_more(p->bytes, p->len, 1);
}

void
packed_fini(struct packed *p)
{
    free(p->bytes);
    *p = (struct packed){NULL, 0};
}
