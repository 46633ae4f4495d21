/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/udp_frame.h"

#include "base/be.h"

#define BINARY_REPLY_MAGIC 0x81

enum offset { OFFSET_ID = 0, OFFSET_SEQUENCE = 2, OFFSET_TOTAL = 4, OFFSET_RESERVED = 6 };

bool
udp_frame_decode(const char *p, size_t len, struct udp_frame *frame)
{
    if (len <= UDP_FRAME_HEADER_BYTES) {
        return false;
    }
    *frame = (struct udp_frame){.id = (uint16_t)be_get(p + OFFSET_ID, 2),
                                .sequence = (uint16_t)be_get(p + OFFSET_SEQUENCE, 2),
                                .total = (uint16_t)be_get(p + OFFSET_TOTAL, 2)};
    return true;
}

/* The words of commands begin with small letters, those of replies with capitals, or they are
 * numbers. */
bool
udp_frame_is_reply(const char *p, size_t len)
{
    uint8_t first = len > 0 ? (uint8_t)p[0] : 0;
    return first == BINARY_REPLY_MAGIC || (first >= 'A' && first <= 'Z') ||
           (first >= '0' && first <= '9');
}

void
udp_frame_encode(const struct udp_frame *frame, char to[UDP_FRAME_HEADER_BYTES])
{
    be_put(to + OFFSET_ID, frame->id, 2);
    be_put(to + OFFSET_SEQUENCE, frame->sequence, 2);
    be_put(to + OFFSET_TOTAL, frame->total, 2);
    be_put(to + OFFSET_RESERVED, 0, 2);
}

uint16_t
udp_frame_total(size_t reply_bytes)
{
    must(reply_bytes > 0 && reply_bytes <= UDP_FRAME_REPLY_MAX);
    return (uint16_t)((reply_bytes + UDP_FRAME_PAYLOAD_MAX - 1) / UDP_FRAME_PAYLOAD_MAX);
}
