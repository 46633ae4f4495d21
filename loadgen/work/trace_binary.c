/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace_file.h"

#define MAGIC "MCTRACE\n"
#define MAGIC_LEN (sizeof MAGIC - 1)
#define REPEATED 0x80
#define NO_TIMES 1
#define VARINT_MAX 10

static size_t
put_number(char *dst, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        dst[i] = (char)(number >> 8 * i & 0xff);
    }
    return bytes;
}

static uint64_t
number_at(const char *p, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = bytes; i > 0; i--) {
        number = number << 8 | (unsigned char)p[i - 1];
    }
    return number;
}

static size_t
put_varint(char *dst, uint64_t number)
{
    size_t n = 0;
    for (; number >= 0x80; number >>= 7) {
        dst[n++] = (char)(number | 0x80);
    }
    dst[n++] = (char)number;
    return n;
}

/* What is being read. */
struct input {
    const char *p, *end;
    bool is_cut, is_bad;
};

static unsigned
take_byte(struct input *in)
{
    if (in->p == in->end) {
        in->is_cut = true;
        return 0;
    }
    return (unsigned char)*in->p++;
}

static uint64_t
take_varint(struct input *in, uint64_t max)
{
    uint64_t number = 0;
    unsigned byte = 0x80;
    for (unsigned i = 0; (byte & 0x80) != 0 && !in->is_cut; i++) {
        byte = take_byte(in);
        if (i + 1 >= VARINT_MAX && byte > 1) {
            in->is_bad = true; /* beyond 64 bits */
            return 0;
        }
        number |= (uint64_t)(byte & 0x7f) << 7 * i;
    }
    in->is_bad = in->is_bad || number > max;
    return number;
}

bool
trace_binary_is(const char *buf, size_t len)
{
    return len >= MAGIC_LEN && memcmp(buf, MAGIC, MAGIC_LEN) == 0;
}

size_t
trace_binary_put_header(const struct trace_binary *b, char *dst)
{
    must(b->step_ns > 0);
    memcpy(dst, MAGIC, MAGIC_LEN);
    size_t n = MAGIC_LEN;
    n += put_number(dst + n, TRACE_BINARY_VERSION, 4);
    n += put_number(dst + n, b->has_no_times ? NO_TIMES : 0, 4);
    n += put_number(dst + n, b->step_ns, 8);
    must(n == TRACE_BINARY_HEADER);
    return n;
}

size_t
trace_binary_put(struct trace_binary *b, const struct trace_record *r, char *dst)
{
    must(r->key_len >= 1 && r->key_len <= TRACE_KEY_MAX && r->repeat >= 1);
    uint64_t before = b->time_ns / b->step_ns, now = r->time_ns / b->step_ns;
    size_t n = 1;
    dst[0] = (char)(r->verb | (r->repeat > 1 ? REPEATED : 0));
    n += put_varint(dst + n, now > before ? now - before : 0);
    n += put_varint(dst + n, r->client);
    n += put_varint(dst + n, r->value_len);
    n += put_varint(dst + n, r->ttl);
    n += r->repeat > 1 ? put_varint(dst + n, r->repeat) : 0;
    dst[n++] = (char)r->key_len;
    memcpy(dst + n, r->key, r->key_len);
    b->time_ns = now > before ? now * b->step_ns : b->time_ns;
    b->records++;
    return n + r->key_len;
}

size_t
trace_binary_put_end(const struct trace_binary *b, char *dst)
{
    dst[0] = 0;
    return 1 + put_number(dst + 1, b->records, 8);
}

const char *
trace_binary_take_header(struct trace_binary *b, const char *buf, size_t len)
{
    *b = (struct trace_binary){.step_ns = 1};
    if (!trace_binary_is(buf, len)) {
        return "not a trace in binary form";
    }
    if (len < TRACE_BINARY_HEADER) {
        return "it ends within its header";
    }
    if (number_at(buf + MAGIC_LEN, 4) != TRACE_BINARY_VERSION) {
        return "written by another version of mcload";
    }
    uint64_t flags = number_at(buf + MAGIC_LEN + 4, 4);
    b->has_no_times = flags == NO_TIMES;
    b->step_ns = number_at(buf + MAGIC_LEN + 8, 8);
    return flags <= NO_TIMES && b->step_ns > 0 && b->step_ns <= UINT64_C(1000000000)
               ? NULL
               : "its header makes no sense";
}

static enum trace_binary_take
take_end(const struct trace_binary *b, struct input *in)
{
    if (in->end - in->p < TRACE_BINARY_END - 1) {
        return TRACE_BINARY_CUT;
    }
    uint64_t records = number_at(in->p, 8);
    in->p += 8;
    return records == b->records ? TRACE_BINARY_OVER : TRACE_BINARY_BAD;
}

static void
take_key(struct input *in, struct trace_record *r)
{
    size_t len = take_byte(in);
    if (in->is_cut || in->is_bad) {
        return;
    }
    if (len == 0 || len > TRACE_KEY_MAX) {
        in->is_bad = true;
        return;
    }
    if ((size_t)(in->end - in->p) < len) {
        in->is_cut = true;
        return;
    }
    memcpy(r->key, in->p, len);
    r->key_len = len;
    in->p += len;
    for (size_t i = 0; i < len; i++) {
        in->is_bad = in->is_bad || (unsigned char)r->key[i] <= ' ' || r->key[i] == 0x7f;
    }
}

enum trace_binary_take
trace_binary_take(struct trace_binary *b, const char *buf, size_t len,
                  struct trace_record *r, size_t *taken)
{
    struct input in = {buf, buf + len, false, false};
    enum trace_binary_take how;
    unsigned first = take_byte(&in), verb = first & ~(unsigned)REPEATED;
    *taken = 0;
    if (!in.is_cut && first == 0) {
        how = take_end(b, &in);
        *taken = how == TRACE_BINARY_CUT ? 0 : (size_t)(in.p - buf);
        return how;
    }
    in.is_bad = !in.is_cut && (verb == 0 || verb >= TRACE_VERBS_END);
    *r = (struct trace_record){.verb = (enum trace_verb)verb};
    uint64_t steps_max = (UINT64_MAX - b->time_ns) / b->step_ns;
    uint64_t steps = take_varint(&in, steps_max);
    r->client = take_varint(&in, UINT64_MAX);
    r->value_len = (uint32_t)take_varint(&in, TRACE_VALUE_MAX);
    r->ttl = (uint32_t)take_varint(&in, UINT32_MAX);
    r->repeat =
        (first & REPEATED) != 0 ? (uint32_t)take_varint(&in, TRACE_REPEAT_MAX) : 1;
    in.is_bad = in.is_bad || (!in.is_cut && r->repeat == 0);
    take_key(&in, r);
    if (in.is_bad || in.is_cut) {
        return in.is_bad ? TRACE_BINARY_BAD : TRACE_BINARY_CUT;
    }
    b->time_ns += steps * b->step_ns;
    b->records++;
    r->time_ns = b->time_ns;
    *taken = (size_t)(in.p - buf);
    return TRACE_BINARY_TAKEN;
}
