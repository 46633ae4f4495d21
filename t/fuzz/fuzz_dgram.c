/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The load generator's datagrams: each six bytes are one, and what comes of it is compared with
 * a model that keeps every part of every reply.
 *
 *     request | number of the part | how many | length, 2 | whether the request is given up
 */
#include "fuzz.h"

#include "loadgen/wire/dgram.h"

#define OP_BYTES 6
#define REQUESTS 4 /* all of them fit */
#define PARTS_MAX 6
#define REPLY_MAX ((PARTS_MAX - 2) * 1000)
#define LEN_MASK 4095

struct model {
    unsigned total, come; /* total 0: nothing has come */
    struct text parts[PARTS_MAX];
};

static struct model models[REQUESTS];

static void
forget(struct model *m)
{
    for (unsigned i = 0; i < PARTS_MAX; i++) {
        free(m->parts[i].p);
    }
    *m = (struct model){.total = 0};
}

static enum dgram_outcome
expected(struct model *m, unsigned number, unsigned total, const char *bytes, size_t len,
         struct text *reply)
{
    bool is_one = total == 1 && number == 0;
    bool fits = total > 1 && total <= PARTS_MAX && number < total &&
                len + DGRAM_HEADER <= DGRAM_PART_MAX;
    if (len == 0 || !(is_one || fits) || (fits && m->total != 0 && m->total != total)) {
        forget(m);
        return DGRAM_BAD;
    }
    if (is_one) {
        forget(m);
        text_add(reply, bytes, len);
        return DGRAM_WHOLE;
    }
    m->total = total;
    if (m->parts[number].len > 0) {
        return DGRAM_DUPLICATE;
    }
    text_add(&m->parts[number], bytes, len);
    if (++m->come < total) {
        return DGRAM_PART;
    }
    for (unsigned i = 0; i < total; i++) {
        text_add(reply, m->parts[i].p, m->parts[i].len);
    }
    forget(m);
    return DGRAM_WHOLE;
}

static void
check(struct dgram *d, const uint8_t *op)
{
    unsigned id = op[0] % REQUESTS;
    size_t len = (op[3] << 8 | op[4]) & LEN_MASK;
    if (op[5] % 16 == 0) {
        dgram_forget(d, (uint16_t)id);
        forget(&models[id]);
        return;
    }
    char *datagram = malloc(DGRAM_HEADER + len);
    must(datagram != NULL);
    size_t header = dgram_put_header(d, datagram, (uint16_t)id);
    datagram[3] = (char)op[1];
    datagram[5] = (char)op[2];
    memset(datagram + header, op[5], len);
    const char *reply;
    size_t reply_len;
    struct text whole = {0};
    enum dgram_outcome want =
        expected(&models[id], op[1], op[2], datagram + header, len, &whole);
    must(dgram_take(d, datagram, header + len, &reply, &reply_len) == want);
    must(want != DGRAM_WHOLE ||
         (reply_len == whole.len && memcmp(reply, whole.p, reply_len) == 0));
    free(whole.p);
    free(datagram);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dgram d;
    dgram_init(&d, REPLY_MAX, REQUESTS);
    for (size_t at = 0; at + OP_BYTES <= size; at += OP_BYTES) {
        check(&d, data + at);
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        forget(&models[i]);
    }
    dgram_fini(&d);
    return 0;
}
