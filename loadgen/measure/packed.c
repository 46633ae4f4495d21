/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/packed.h"

#include <stdlib.h>

#define NUMBER_MAX 9 /* bytes */
#define ROOM_FIRST 256

struct writer {
    struct packed *p;
    size_t room;
};

static bool
has_room(struct writer *w)
{
    if (w->p->len + 2 * NUMBER_MAX <= w->room) {
        return true;
    }
    size_t room = w->room == 0 ? ROOM_FIRST : 2 * w->room;
    uint8_t *bytes = realloc(w->p->bytes, room);
    if (bytes == NULL) {
        return false;
    }
    w->p->bytes = bytes;
    w->room = room;
    return true;
}

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

bool
packed_make(struct packed *p, const struct hist *h)
{
    struct writer w = {p, 0};
    uint32_t at = 0, buckets = hist_buckets(h);
    uint64_t left = hist_count(h), n;
    int64_t empty = 0;
    *p = (struct packed){NULL, 0};
    for (; left > 0 && at < buckets; at++) {
        n = hist_bucket(h, at);
        if (n == 0) {
            empty++;
            continue;
        }
        if (!has_room(&w)) {
            packed_fini(p);
            return false;
        }
        if (empty > 0) {
            put(p, empty > 1 ? -empty : 0);
            empty = 0;
        }
        put(p, (int64_t)n);
        left -= n < left ? n : left;
    }
    if (p->len == 0 && has_room(&w)) {
        put(p, 0); /* readers want one at least */
    }
    return p->len > 0;
}

void
packed_fini(struct packed *p)
{
    free(p->bytes);
    *p = (struct packed){NULL, 0};
}
