/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A whole session over a store of 1 MB: the same bytes, cut differently and executed in
 * pieces of different size, give the same output. The first byte chooses what the server was
 * started with, the limits and the cut.
 */
#include "drive.h"

#define FLAG_PROFILE 1
#define FLAG_NO_CAS 2   /* -C */
#define SHIFT_BINDING 2 /* -B, two bits */
#define SHIFT_LIMITS 6  /* two bits; the cutter has the two between */

static const enum serve_binding bindings[] = {BINDING_AUTO, BINDING_ASCII, BINDING_BINARY,
                                              BINDING_AUTO};
/* How much is done at once. */
static const struct session_limits limits[] = {
    {.keys = 64, .out_bytes = 131072},
    {.keys = 1, .out_bytes = 1},
    {.keys = 3, .out_bytes = 2000, .late_bytes = 100},
    {.keys = 1, .out_bytes = 131072, .late_bytes = 1},
};
static const struct session_limits small = {
    .keys = 1, .out_bytes = 100, .late_bytes = 10};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct drive_conf conf = {
        .profile = data[0] & FLAG_PROFILE ? PROFILE_16 : PROFILE_14,
        .binding = bindings[data[0] >> SHIFT_BINDING & 3],
        .use_cas = (data[0] & FLAG_NO_CAS) == 0,
        .has_log = true,
    };
    struct run whole, cut;
    struct cutter one = {.piece_max = 0}, many;
    cutter_init(&many, data[0], size);
    run_open(&whole, &conf, limits[data[0] >> SHIFT_LIMITS]);
    run_open(&cut, &conf, small);
    run_input(&whole, data + 1, size - 1, &one);
    run_input(&cut, data + 1, size - 1, &many);
    run_compare(&whole, &cut);
    run_close(&whole);
    run_close(&cut);
    return 0;
}
