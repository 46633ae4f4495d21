/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The frames of the swarm: what goes over the wire between a leader and its agents. All
 * numbers are in network byte order:
 *
 *     bytes  4        2      8         8          ...       16 or none
 *            length   type   session   sequence   fields    MAC
 *
 * `length` counts what follows it. A field is a tag (2 bytes), a length (4) and a value.
 * Numbers in fields are 8 bytes. Fields of unknown tags are skipped, so that a later version
 * may add some. Pure; parsing neither allocates nor copies.
 */
#pragma once

#include "base/must.h"

#define FRAME_HEAD 22
#define FRAME_MAC 16
#define FRAME_MAX (4u << 20) /* bytes of a frame, its length included */
#define FRAME_FIELD_HEAD 6

struct frame {
    uint16_t type;
    uint64_t session, sequence;
    const uint8_t *fields;
    size_t fields_len;
    const uint8_t *whole; /* what the MAC covers */
    size_t whole_len;
    const uint8_t *mac; /* NULL: none */
};

struct frame_field {
    uint16_t tag;
    const uint8_t *p;
    size_t len;
};

enum frame_status {
    FRAME_DONE,
    FRAME_MORE,
    FRAME_BAD, /* no frame, or longer than allowed: the connection is of no more use */
};

/* Looks for a frame at the start of p[0..n). `max` bounds its length, `mac_len` (0 or
 * FRAME_MAC) is what a frame of this connection ends with. DONE: *f points into p, *taken
 * bytes are its own, and its fields are whole. */
must_check enum frame_status frame_parse(const uint8_t *p, size_t n, size_t max,
                                         size_t mac_len, struct frame *f, size_t *taken);

/* Walks the fields; *cursor starts at 0. False at the end. */
bool frame_next(const struct frame *f, size_t *cursor, struct frame_field *field);
/* Whether there is a field with this tag at all: else what is optional is left out. */
bool frame_has(const struct frame *f, uint16_t tag);
/* The number of the only field with this tag. False: none, several, or out of bounds. */
must_check bool frame_number(const struct frame *f, uint16_t tag, uint64_t min,
                             uint64_t max, uint64_t *value);
/* The same of a field that is so many numbers, for values[0..n). */
must_check bool frame_numbers(const struct frame *f, uint16_t tag, size_t n,
                              uint64_t *values);
/* The only field with this tag, between min and max bytes long. */
must_check bool frame_bytes(const struct frame *f, uint16_t tag, size_t min, size_t max,
                            struct frame_field *field);
/* The same as a terminated copy; false also when it has bytes below the blank. `size` is of
 * the buffer. */
must_check bool frame_text(const struct frame *f, uint16_t tag, char *text, size_t size);
/* A field's bytes are text: none below the blank, none above 0x7e. */
bool frame_is_text(const struct frame_field *field);

/* A frame in the making. Grows; too long a one shows at the end only. */
struct frame_out {
    uint8_t *p;
    size_t len, cap;
    bool has_failed;
};

void frame_begin(struct frame_out *o, uint16_t type, uint64_t session, uint64_t sequence);
void frame_put_number(struct frame_out *o, uint16_t tag, uint64_t value);
void frame_put_numbers(struct frame_out *o, uint16_t tag, const uint64_t *values,
                       size_t n);
void frame_put_bytes(struct frame_out *o, uint16_t tag, const void *p, size_t len);
void frame_put_text(struct frame_out *o, uint16_t tag, const char *text);
/* A field of unknown length: what is added until frame_close. Returns its place. */
size_t frame_open(struct frame_out *o, uint16_t tag);
void frame_add(struct frame_out *o, const void *p, size_t len);
void frame_add_u64(struct frame_out *o, uint64_t value);
/* Seven bits a byte, lowest first, the eighth says that more follow. */
void frame_add_varint(struct frame_out *o, uint64_t value);
void frame_close(struct frame_out *o, size_t place);
/* Writes the length, with room for a MAC of mac_len behind. False when it has failed. */
must_check bool frame_end(struct frame_out *o, size_t mac_len);
void frame_out_fini(struct frame_out *o);

#define FRAME_NUMBER_BYTES 8 /* of a number (be_get, be_put) */

/* Reads a varint at *at of p[0..n). False at the end, above 64 bits, or written longer than
 * needed. */
must_check bool frame_varint(const uint8_t *p, size_t n, size_t *at, uint64_t *value);
