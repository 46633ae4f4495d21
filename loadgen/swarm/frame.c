/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/frame.h"

#include "base/alloc.h"
#include "base/be.h"

#define LENGTH_BYTES 4
#define TYPE_AT 4
#define SESSION_AT 6
#define SEQUENCE_AT 14
#define FIRST_CAP 256
#define VARINT_BITS 7
#define VARINT_MORE 0x80u

/* ---- parsing ------------------------------------------------------------------------ */

static bool
are_fields_whole(const uint8_t *p, size_t len)
{
    size_t at = 0;
    while (at < len) {
        if (len - at < FRAME_FIELD_HEAD) {
            return false;
        }
        size_t size = (size_t)be_get(p + at + 2, 4);
        at += FRAME_FIELD_HEAD;
        if (size > len - at) {
            return false;
        }
        at += size;
    }
    return true;
}

enum frame_status
frame_parse(const uint8_t *p, size_t n, size_t max, size_t mac_len, struct frame *f,
            size_t *taken)
{
    if (n < LENGTH_BYTES) {
        return FRAME_MORE;
    }
    size_t len = LENGTH_BYTES + (size_t)be_get(p, LENGTH_BYTES);
    if (len > max || len < FRAME_HEAD + mac_len) {
        return FRAME_BAD;
    }
    if (n < len) {
        return FRAME_MORE;
    }
    *f = (struct frame){
        .type = (uint16_t)be_get(p + TYPE_AT, 2),
        .session = be_get(p + SESSION_AT, FRAME_NUMBER_BYTES),
        .sequence = be_get(p + SEQUENCE_AT, FRAME_NUMBER_BYTES),
        .fields = p + FRAME_HEAD,
        .fields_len = len - FRAME_HEAD - mac_len,
        .whole = p,
        .whole_len = len - mac_len,
        .mac = mac_len > 0 ? p + len - mac_len : NULL,
    };
    *taken = len;
    return are_fields_whole(f->fields, f->fields_len) ? FRAME_DONE : FRAME_BAD;
}

bool
frame_next(const struct frame *f, size_t *cursor, struct frame_field *field)
{
    if (*cursor >= f->fields_len) {
        return false;
    }
    const uint8_t *p = f->fields + *cursor;
    *field = (struct frame_field){
        .tag = (uint16_t)be_get(p, 2),
        .p = p + FRAME_FIELD_HEAD,
        .len = (size_t)be_get(p + 2, 4),
    };
    *cursor += FRAME_FIELD_HEAD + field->len;
    return true;
}

bool
frame_bytes(const struct frame *f, uint16_t tag, size_t min, size_t max,
            struct frame_field *field)
{
    size_t cursor = 0;
    unsigned found = 0;
    struct frame_field next;
    while (frame_next(f, &cursor, &next)) {
        if (next.tag == tag) {
            *field = next;
            found++;
        }
    }
    return found == 1 && field->len >= min && field->len <= max;
}

bool
frame_has(const struct frame *f, uint16_t tag)
{
    struct frame_field field;
    size_t cursor = 0;
    bool has = false;
    while (!has && frame_next(f, &cursor, &field)) {
        has = field.tag == tag;
    }
    return has;
}

bool
frame_number(const struct frame *f, uint16_t tag, uint64_t min, uint64_t max,
             uint64_t *value)
{
    struct frame_field field;
    if (!frame_bytes(f, tag, FRAME_NUMBER_BYTES, FRAME_NUMBER_BYTES, &field)) {
        return false;
    }
    uint64_t number = be_get(field.p, FRAME_NUMBER_BYTES);
    if (number < min || number > max) {
        return false;
    }
    *value = number;
    return true;
}

bool
frame_numbers(const struct frame *f, uint16_t tag, size_t n, uint64_t *values)
{
    struct frame_field field;
    bool is_there =
        frame_bytes(f, tag, FRAME_NUMBER_BYTES * n, FRAME_NUMBER_BYTES * n, &field);
    for (size_t i = 0; is_there && i < n; i++) {
        values[i] = be_get(field.p + FRAME_NUMBER_BYTES * i, FRAME_NUMBER_BYTES);
    }
    return is_there;
}

bool
frame_is_text(const struct frame_field *field)
{
    for (size_t i = 0; i < field->len; i++) {
        if (field->p[i] < ' ' || field->p[i] > '~') {
            return false;
        }
    }
    return true;
}

bool
frame_text(const struct frame *f, uint16_t tag, char *text, size_t size)
{
    struct frame_field field;
    if (!frame_bytes(f, tag, 0, size - 1, &field) || !frame_is_text(&field)) {
        return false;
    }
    memcpy(text, field.p, field.len);
    text[field.len] = '\0';
    return true;
}

bool
frame_varint(const uint8_t *p, size_t n, size_t *at, uint64_t *value)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && *at < n; shift += VARINT_BITS) {
        uint8_t byte = p[(*at)++];
        uint64_t bits = byte & (VARINT_MORE - 1);
        if (bits << shift >> shift != bits || (byte == 0 && shift > 0)) {
            return false;
        }
        v |= bits << shift;
        if ((byte & VARINT_MORE) == 0) {
            *value = v;
            return true;
        }
    }
    return false;
}

/* ---- making ------------------------------------------------------------------------- */

static uint8_t *
room(struct frame_out *o, size_t len)
{
    if (o->has_failed || len > FRAME_MAX - o->len) {
        o->has_failed = true;
        return NULL;
    }
    if (o->cap - o->len < len) {
        o->cap = o->cap * 2 > o->len + len ? o->cap * 2 : o->len + len + FIRST_CAP;
        o->p = alloc_more(o->p, o->cap, 1);
    }
    o->len += len;
    return o->p + o->len - len;
}

void
frame_begin(struct frame_out *o, uint16_t type, uint64_t session, uint64_t sequence)
{
    o->len = 0;
    o->has_failed = false;
    uint8_t *p = room(o, FRAME_HEAD);
    if (p != NULL) {
        be_put(p, 0, LENGTH_BYTES);
        be_put(p + TYPE_AT, type, 2);
        be_put(p + SESSION_AT, session, FRAME_NUMBER_BYTES);
        be_put(p + SEQUENCE_AT, sequence, FRAME_NUMBER_BYTES);
    }
}

size_t
frame_open(struct frame_out *o, uint16_t tag)
{
    uint8_t *p = room(o, FRAME_FIELD_HEAD);
    if (p != NULL) {
        be_put(p, tag, 2);
        be_put(p + 2, 0, 4);
    }
    return o->len;
}

void
frame_close(struct frame_out *o, size_t place)
{
    if (!o->has_failed) {
        must(place >= FRAME_HEAD + FRAME_FIELD_HEAD && place <= o->len);
        be_put(o->p + place - 4, o->len - place, 4);
    }
}

void
frame_add(struct frame_out *o, const void *p, size_t len)
{
    uint8_t *to = room(o, len);
    if (to != NULL && len > 0) {
        memcpy(to, p, len);
    }
}

void
frame_add_u64(struct frame_out *o, uint64_t value)
{
    uint8_t bytes[FRAME_NUMBER_BYTES];
    be_put(bytes, value, FRAME_NUMBER_BYTES);
    frame_add(o, bytes, sizeof bytes);
}

void
frame_add_varint(struct frame_out *o, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (uint8_t)(value & (VARINT_MORE - 1));
        value >>= VARINT_BITS;
        bytes[n] |= value > 0 ? VARINT_MORE : 0;
        n++;
    } while (value > 0);
    frame_add(o, bytes, n);
}

void
frame_put_bytes(struct frame_out *o, uint16_t tag, const void *p, size_t len)
{
    size_t place = frame_open(o, tag);
    frame_add(o, p, len);
    frame_close(o, place);
}

void
frame_put_number(struct frame_out *o, uint16_t tag, uint64_t value)
{
    frame_put_numbers(o, tag, &value, 1);
}

void
frame_put_numbers(struct frame_out *o, uint16_t tag, const uint64_t *values, size_t n)
{
    size_t place = frame_open(o, tag);
    for (size_t i = 0; i < n; i++) {
        frame_add_u64(o, values[i]);
    }
    frame_close(o, place);
}

void
frame_put_text(struct frame_out *o, uint16_t tag, const char *text)
{
    frame_put_bytes(o, tag, text, strlen(text));
}

bool
frame_end(struct frame_out *o, size_t mac_len)
{
    if (room(o, mac_len) == NULL) {
        return false;
    }
    be_put(o->p, o->len - LENGTH_BYTES, LENGTH_BYTES);
    return true;
}

void
frame_out_fini(struct frame_out *o)
{
    free(o->p);
    *o = (struct frame_out){0};
}
