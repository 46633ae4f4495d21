/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a poller reports, and what it does not report any more.
 */
#include "sock/poller.h"

#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check_main.h"

#define PAIRS 4

struct watched {
    struct poll_source source;
    unsigned ready, times;
};

static struct poller poller;
static struct watched watched[PAIRS];
static int peers[PAIRS];
static struct watched *removed; /* by whichever is reported first */
static bool breaks;

static void
on_ready(struct poll_source *source, unsigned ready)
{
    struct watched *w = (struct watched *)(void *)source;
    w->ready = ready;
    w->times++;
    if (removed != NULL && removed != w) {
        poller_remove(&poller, &removed->source);
    }
    if (breaks) {
        poller_break(&poller);
    }
}

static void
set_up(void)
{
    removed = NULL;
    breaks = false;
    ck_assert(poller_open(&poller));
    for (unsigned i = 0; i < PAIRS; i++) {
        int fds[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        watched[i] = (struct watched){.source = {fds[0], on_ready}};
        peers[i] = fds[1];
    }
}

static void
tear_down(void)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        close(watched[i].source.fd);
        close(peers[i]);
    }
    poller_close(&poller);
}

static void
watch(unsigned i, unsigned what)
{
    ck_assert(poller_add(&poller, &watched[i].source, what));
}

static void
speak(unsigned i)
{
    ck_assert_int_eq(send(peers[i], "x", 1, 0), 1);
}

static unsigned
reported(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        sum += watched[i].times;
    }
    return sum;
}

FIXTURE(set_up, tear_down);

TEST(what_is_ready_already)
{
    speak(0);
    watch(0, POLLER_READ | POLLER_WRITE | POLLER_EDGE);
    poller_wait(&poller, true);
    ck_assert_uint_eq(watched[0].ready, POLLER_READ | POLLER_WRITE);
    poller_wait(&poller, false);
    ck_assert_uint_eq(watched[0].times, 1); /* an edge is reported once */
}

TEST(a_level_is_reported_again)
{
    watch(0, POLLER_READ);
    poller_wait(&poller, false);
    ck_assert_uint_eq(reported(), 0);
    speak(0);
    poller_wait(&poller, true);
    poller_wait(&poller, true);
    ck_assert_uint_eq(watched[0].times, 2);
    ck_assert_uint_eq(watched[0].ready, POLLER_READ);
}

TEST(a_peer_that_leaves)
{
    watch(0, POLLER_READ | POLLER_HANGUP | POLLER_EDGE);
    ck_assert_int_eq(shutdown(peers[0], SHUT_WR), 0);
    poller_wait(&poller, true);
    ck_assert_uint_eq(watched[0].ready, POLLER_READ | POLLER_HANGUP);
    watch(1, POLLER_READ | POLLER_HANGUP | POLLER_EDGE);
    close(peers[1]);
    poller_wait(&poller, true);
    ck_assert_uint_eq(watched[1].ready & (POLLER_READ | POLLER_WRITE | POLLER_HANGUP),
                      POLLER_READ | POLLER_WRITE | POLLER_HANGUP);
}

/* Also when the kernel has reported it in the same batch. */
TEST(what_is_removed_is_not_reported)
{
    watch(0, POLLER_READ);
    watch(1, POLLER_READ);
    speak(0);
    speak(1);
    removed = &watched[1];
    poller_wait(&poller, true);
    if (watched[1].times == 1) { /* it came first, and removed itself after that */
        removed = &watched[0];
    }
    unsigned before = reported();
    poller_remove(&poller, &watched[0].source);
    poller_remove(&poller, &watched[1].source); /* need not be there */
    poller_wait(&poller, false);
    ck_assert_uint_eq(reported(), before);
    ck_assert_uint_eq(before, 1);
}

/* The rest of a batch comes with the next wait, which does not sleep, and what was removed meanwhile
 * does not. */
TEST(a_break_keeps_the_rest)
{
    breaks = true;
    for (unsigned i = 0; i < PAIRS; i++) {
        watch(i, POLLER_READ | POLLER_EDGE);
        speak(i);
    }
    for (unsigned i = 1; i < PAIRS; i++) {
        poller_wait(&poller, true);
        ck_assert_uint_eq(reported(), i);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        poller_remove(&poller, &watched[i].source);
    }
    poller_wait(&poller, false);
    ck_assert_uint_eq(reported(), PAIRS - 1);
}
