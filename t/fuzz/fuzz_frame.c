/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a leader and an agent read from each other: frames, hellos, deltas. The first byte
 * says whether frames end with a MAC.
 */
#include "fuzz.h"

#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

static struct counters sum;

static void
look(const struct frame *f)
{
    struct message_hello hello;
    struct frame_field field;
    char text[MESSAGE_TEXT_MAX];
    uint64_t number;
    size_t cursor = 0, bytes = 0;
    while (frame_next(f, &cursor, &field)) {
        bytes += FRAME_FIELD_HEAD + field.len;
        if (frame_number(f, field.tag, 10, 1000, &number)) {
            must(number >= 10 && number <= 1000);
        }
        if (frame_text(f, field.tag, text, sizeof text)) {
            must(strlen(text) == field.len);
        }
    }
    must(bytes == f->fields_len);
    if (message_get_hello(f, &hello) == NULL) {
        must(f->type == MESSAGE_HELLO);
    }
    uint64_t digest = delta_digest(&sum);
    if (!delta_add(&sum, f)) {
        must(delta_digest(&sum) == digest);
    }
    counters_reset(&sum);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;
    if (!is_ready) {
        counters_init(&sum);
        is_ready = true;
    }
    if (size < 2) {
        return 0;
    }
    size_t mac_len = data[0] % 2 == 1 ? FRAME_MAC : 0;
    size_t len = size - 1, at = 0, taken;
    uint8_t *bytes = (uint8_t *)exact_copy(data + 1, len);
    struct frame f;
    while (frame_parse(bytes + at, len - at, FRAME_MAX, mac_len, &f, &taken) ==
           FRAME_DONE) {
        must(taken <= len - at && taken >= FRAME_HEAD + mac_len);
        look(&f);
        at += taken;
    }
    free(bytes);
    return 0;
}
