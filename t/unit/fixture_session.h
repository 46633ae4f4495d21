/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One client and what it sends; the tests that the scripts of both protocols go through.
 */
#pragma once

#include "check_main.h"
#include "check_session.h"

static struct client client;
static enum profile profile;
static struct store_conf conf;
static struct text input;    /* a whole script */
static struct text expected; /* and all its output */

static inline void
set_up_session(void)
{
    clock_init();
    conf = small_store_conf();
}

static inline void
tear_down_script(void)
{
    text_free(&input);
    text_free(&expected);
}

static inline void
open_client(void)
{
    client_open(&client, profile, &conf);
}

/* Ends the connection and begins another one to the same store. */
static inline void
reconnect(void)
{
    client_hang_up(&client);
    session_init(&client.session);
}

static inline void
expect_ready(void)
{
    ck_assert_int_eq(session_peek(&client.session, &client.env, &client.in),
                     SESSION_READY);
}

static inline enum session_ran
run_within(const struct session_limits *limits)
{
    return session_run(&client.session, &client.env, &client.in, &client.out, limits);
}

/* The script in reads and pieces of any size, under any limits; whether those hold it up. */
static inline void
check_random_pieces(uint64_t seed, bool is_held_up)
{
    static const size_t piece_max[] = {1, 3, 20, 300, 5000, 100000};
    for (unsigned round = 0; round < 60; round++) {
        open_client();
        rng_init(&client.rng, seed, round);
        client.varies = round % 3 != 0;
        client.recv_max = round % 4 == 0 ? 0 : piece_max[(round / 6) % 6];
        client.keeps_all = round % 5 == 0;
        for (size_t at = 0; at < input.len;) {
            size_t n = 1 + (size_t)rng_below(&client.rng, piece_max[round % 6]);
            n = n < input.len - at ? n : input.len - at;
            client_write(&client, input.p + at, n);
            at += n;
        }
        client_send(&client, SIZE_MAX);
        client_check_sent(&client, &expected, round);
        if (client.varies && is_held_up) {
            ck_assert_uint_gt(client.agains, 0);
            ck_assert_uint_gt(client.lates, 0);
            ck_assert_uint_gt(client.rewinds, 0);
        }
        client_close(&client);
    }
}

/* The connection ends in whatever state it is: when all keys are swept away, nothing is left. */
static inline void
check_sweep(const char *sweep, size_t len)
{
    reconnect();
    client.runs_max = 0;
    client.has_quit = false;
    client_write(&client, sweep, len);
    expect(session_is_quiescent(&client.session, &client.in));
    client_hang_up(&client);
    assert_empty(client.store);
    client_close(&client);
}
