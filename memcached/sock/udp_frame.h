/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The eight bytes in front of every datagram, big-endian: request id, sequence number,
 * datagrams in this message, reserved (0). Pure.
 */
#pragma once

#include "base/must.h"

#define UDP_FRAME_HEADER_BYTES 8
#define UDP_FRAME_DATAGRAM_MAX 1400 /* of a reply, header included */
#define UDP_FRAME_PAYLOAD_MAX (UDP_FRAME_DATAGRAM_MAX - UDP_FRAME_HEADER_BYTES)
#define UDP_FRAME_TOTAL_MAX 65535 /* datagrams that the header can count */
#define UDP_FRAME_REPLY_MAX ((size_t)UDP_FRAME_TOTAL_MAX * UDP_FRAME_PAYLOAD_MAX)

struct udp_frame {
    uint16_t id;
    uint16_t sequence;
    uint16_t total;
};

/* The payload p[0..len) begins as replies do and no request does. Two servers that answered
 * each other's replies, after one forged datagram, would do so for ever. */
bool udp_frame_is_reply(const char *p, size_t len);
/* False when the datagram p[0..len) holds no more than a header. */
must_check bool udp_frame_decode(const char *p, size_t len, struct udp_frame *frame);
void udp_frame_encode(const struct udp_frame *frame, char to[UDP_FRAME_HEADER_BYTES]);
/* Datagrams for a reply of 1..UDP_FRAME_REPLY_MAX bytes: all but the last are full. */
uint16_t udp_frame_total(size_t reply_bytes);
