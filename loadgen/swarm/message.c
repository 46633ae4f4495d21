/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/message.h"

#include "base/must.h"
#include "loadgen/measure/series.h"

const char *const message_role_names[ROLES] = {
    [ROLE_LOAD] = "load",
    [ROLE_MEASURE] = "measure",
    [ROLE_OBSERVE] = "observe",
};

void
message_put_hello(struct frame_out *o, const struct message_hello *h)
{
    frame_put_text(o, FIELD_MAGIC, MESSAGE_MAGIC);
    frame_put_number(o, FIELD_VERSION, MESSAGE_VERSION);
    frame_put_number(o, FIELD_FEATURES, h->features);
    frame_put_number(o, FIELD_SHAPE, h->shape);
    frame_put_number(o, FIELD_IS_OPEN, h->is_open ? 1 : 0);
    frame_put_bytes(o, FIELD_NONCE, h->nonce, sizeof h->nonce);
}

const char *
message_get_hello(const struct frame *f, struct message_hello *h)
{
    char magic[sizeof MESSAGE_MAGIC];
    uint64_t version, is_open;
    struct frame_field nonce;
    if (f->type != MESSAGE_HELLO || !frame_text(f, FIELD_MAGIC, magic, sizeof magic) ||
        strcmp(magic, MESSAGE_MAGIC) != 0) {
        return "does not speak mcload's protocol";
    }
    if (!frame_number(f, FIELD_VERSION, 0, UINT64_MAX, &version) ||
        version != MESSAGE_VERSION) {
        return "speaks another version of mcload's protocol";
    }
    if (!frame_number(f, FIELD_FEATURES, 0, UINT64_MAX, &h->features) ||
        !frame_number(f, FIELD_SHAPE, 0, UINT64_MAX, &h->shape) ||
        !frame_number(f, FIELD_IS_OPEN, 0, 1, &is_open) ||
        !frame_bytes(f, FIELD_NONCE, SEAL_NONCE, SEAL_NONCE, &nonce)) {
        return "does not speak mcload's protocol";
    }
    h->is_open = is_open == 1;
    memcpy(h->nonce, nonce.p, sizeof h->nonce);
    return NULL;
}

/* ---- interval ---------------------------------------------------------------------- */

#define LENGTH_MIN (10 * NSEC_PER_MSEC)
#define LENGTH_SHORT (100 * NSEC_PER_MSEC)
#define LENGTH_MAX NSEC_PER_SEC
#define LOOKS (SERIES_PIECES / 2) /* enough for its confidence */

nsec_t
interval_length(nsec_t time, nsec_t row_length)
{
    nsec_t length = time / LOOKS;
    length = length < LENGTH_SHORT ? LENGTH_SHORT
             : length > LENGTH_MAX ? LENGTH_MAX
                                   : length;
    if (row_length > length) {
        return row_length / ((row_length + length - 1) / length);
    }
    row_length = row_length < LENGTH_MIN ? LENGTH_MIN : row_length;
    return row_length < length ? row_length : length;
}

uint64_t
interval_last(nsec_t time, nsec_t length)
{
    must(length > 0);
    return time == 0 ? 1 : (time + length - 1) / length;
}

uint64_t
interval_number(nsec_t since, nsec_t time, nsec_t length)
{
    uint64_t last = interval_last(time, length), n = (since + length / 2) / length;
    return n < last ? n : last - 1;
}
