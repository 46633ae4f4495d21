/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/dgram.h"

#include "base/alloc.h"
#include "base/be.h"

#define SERVER_PART_MIN 1000 /* what servers put into one at least, but for the last */
#define MEMORY_MAX (16U << 20)

struct dgram_partial {
    bool is_used;
    uint16_t id, total, come;
    uint16_t *lens; /* of each part, 0: has not come */
};

void
dgram_init(struct dgram *d, size_t reply_max, unsigned requests)
{
    unsigned parts = (unsigned)(reply_max / SERVER_PART_MIN) + 2;
    parts = parts > UINT16_MAX ? UINT16_MAX : parts;
    unsigned fit = MEMORY_MAX / (parts * DGRAM_PART_MAX);
    *d = (struct dgram){.parts_max = parts};
    d->len = fit < 1 ? 1 : fit < requests ? fit : requests;
    d->partials = alloc_zeroed(d->len, sizeof *d->partials);
    d->bytes = alloc_bytes((size_t)d->len * parts * DGRAM_PART_MAX);
    d->past = alloc_zeroed(DGRAM_IDS, sizeof *d->past);
    for (unsigned i = 0; i < d->len; i++) {
        d->partials[i].lens = alloc_zeroed(parts, sizeof(uint16_t));
    }
}

void
dgram_fini(struct dgram *d)
{
    for (unsigned i = 0; i < d->len; i++) {
        free(d->partials[i].lens);
    }
    free(d->partials);
    free(d->bytes);
    free(d->past);
    *d = (struct dgram){0};
}

void
dgram_reset(struct dgram *d)
{
    for (unsigned i = 0; i < d->len; i++) {
        d->partials[i].is_used = false;
    }
    d->used = 0;
}

static struct dgram_partial *
find(struct dgram *d, uint16_t id)
{
    for (unsigned i = 0; i < d->len; i++) {
        if (d->partials[i].is_used && d->partials[i].id == id) {
            return &d->partials[i];
        }
    }
    return NULL;
}

void
dgram_forget(struct dgram *d, uint16_t id)
{
    struct dgram_partial *p = d->used > 0 ? find(d, id) : NULL;
    if (p != NULL) {
        p->is_used = false;
        d->used--;
    }
}

void
dgram_remember(struct dgram *d, uint16_t id, enum dgram_past past)
{
    if (d->past[id] != past) { /* what is never written to takes no memory */
        d->past[id] = (uint8_t)past;
    }
}

enum dgram_past
dgram_past(const struct dgram *d, uint16_t id)
{
    return d->past[id];
}

size_t
dgram_put_header(struct dgram *d, char *dst, uint16_t id)
{
    dgram_remember(d, id, DGRAM_UNKNOWN);
    be_put(dst, (uint64_t)id << 48 | 1 << 16, DGRAM_HEADER); /* the first of one */
    return DGRAM_HEADER;
}

bool
dgram_id(const char *datagram, size_t len, uint16_t *id)
{
    if (len < DGRAM_HEADER) {
        return false;
    }
    *id = (uint16_t)be_get(datagram, 2);
    return true;
}

/* A free one, or the one whose turn it is. */
static struct dgram_partial *
begin(struct dgram *d, uint16_t id, uint16_t total)
{
    struct dgram_partial *p = NULL;
    for (unsigned i = 0; i < d->len && p == NULL; i++) {
        p = d->partials[i].is_used ? NULL : &d->partials[i];
    }
    if (p == NULL) {
        p = &d->partials[d->turn++ % d->len];
        d->used--;
    }
    d->used++;
    p->is_used = true;
    p->id = id;
    p->total = total;
    p->come = 0;
    memset(p->lens, 0, total * sizeof *p->lens);
    return p;
}

/* Closes the gaps between the parts. */
static size_t
join(const struct dgram_partial *p, char *bytes)
{
    size_t len = 0;
    for (unsigned i = 0; i < p->total; i++) {
        memmove(bytes + len, bytes + (size_t)i * DGRAM_PART_MAX, p->lens[i]);
        len += p->lens[i];
    }
    return len;
}

/* One of several parts. */
static enum dgram_outcome
take_part(struct dgram *d, struct dgram_partial *p, unsigned number, const char **reply,
          size_t *reply_len)
{
    if (p->lens[number] != 0) {
        return DGRAM_DUPLICATE;
    }
    char *bytes = d->bytes + (size_t)(p - d->partials) * d->parts_max * DGRAM_PART_MAX;
    memcpy(bytes + (size_t)number * DGRAM_PART_MAX, *reply, *reply_len);
    p->lens[number] = (uint16_t)*reply_len;
    if (++p->come < p->total) {
        return DGRAM_PART;
    }
    p->is_used = false;
    d->used--;
    *reply = bytes;
    *reply_len = join(p, bytes);
    return DGRAM_WHOLE;
}

enum dgram_outcome
dgram_take(struct dgram *d, const char *datagram, size_t len, const char **reply,
           size_t *reply_len)
{
    must(len >= DGRAM_HEADER);
    uint16_t id = (uint16_t)be_get(datagram, 2),
             total = (uint16_t)be_get(datagram + 4, 2);
    uint16_t number = (uint16_t)be_get(datagram + 2, 2);
    *reply = datagram + DGRAM_HEADER;
    *reply_len = len - DGRAM_HEADER;
    bool is_bad = number >= total || *reply_len == 0;
    if (!is_bad && total > 1 && total <= d->parts_max && len <= DGRAM_PART_MAX) {
        struct dgram_partial *p = find(d, id);
        p = p != NULL ? p : begin(d, id, total);
        if (p->total == total) {
            return take_part(d, p, number, reply, reply_len);
        }
        is_bad = true;
    }
    /* The request is over: parts left here would be taken for those of the next one with this
     * number. */
    dgram_forget(d, id);
    /* Nearly all are one part: read where it lies. */
    return is_bad || total > 1 ? DGRAM_BAD : DGRAM_WHOLE;
}
