/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Letters arrive once, in each sender's order, and never without a wake-up.
 */
#include "base/mbox.h"

#include <poll.h>
#include <pthread.h>

#include "check_main.h"

#define SENDERS 6
#define LETTERS 20000 /* of each sender */

struct message {
    struct mbox_message head; /* first, so that the one is the other */
    unsigned sender, number;
};

static struct mbox box;

static void
set_up(void)
{
    ck_assert(mbox_init(&box));
}

static void
tear_down(void)
{
    mbox_fini(&box);
}

static bool
is_readable(int timeout_ms)
{
    struct pollfd poll_fd = {.fd = box.fd, .events = POLLIN};
    return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* As the reader does on a wake-up. */
static struct mbox_message *
take(void)
{
    mbox_clear(&box);
    return mbox_take(&box);
}

FIXTURE(set_up, tear_down);

TEST(test_empty)
{
    ck_assert(!is_readable(0));
    ck_assert_ptr_null(take());
}

TEST(test_oldest_first)
{
    struct message messages[5] = {0};
    for (unsigned i = 0; i < 5; i++) {
        messages[i].number = i;
        mbox_push(&box, &messages[i].head);
        ck_assert(is_readable(0));
    }
    unsigned count = 0;
    for (struct mbox_message *l = take(); l != NULL; l = l->next) {
        ck_assert_uint_eq(((struct message *)l)->number, count);
        count++;
    }
    ck_assert_uint_eq(count, 5);
    ck_assert(!is_readable(0));
    ck_assert_ptr_null(take());
}

TEST(test_letters_may_be_used_again)
{
    struct message message = {.number = 1};
    for (int i = 0; i < 100; i++) {
        mbox_push(&box, &message.head);
        struct mbox_message *l = take();
        ck_assert_ptr_eq(l, &message.head);
        ck_assert_ptr_null(l->next);
    }
}

TEST(test_wake_without_letter)
{
    mbox_wake(&box);
    mbox_wake(&box);
    ck_assert(is_readable(0));
    ck_assert_ptr_null(take());
    ck_assert(!is_readable(0));
    struct message message = {0};
    mbox_push(&box, &message.head);
    mbox_wake(&box);
    ck_assert_ptr_eq(take(), &message.head);
    ck_assert(!is_readable(0));
}

/* What comes after the wake-up was consumed wakes again, whether it is taken now or not. */
TEST(test_nothing_is_slept_over)
{
    struct message message = {0};
    mbox_wake(&box);
    mbox_clear(&box);
    mbox_push(&box, &message.head);
    ck_assert_ptr_eq(mbox_take(&box), &message.head);
    ck_assert(is_readable(0));
}

TEST_ABORTS(test_letter_left_behind)
{
    struct message message = {0};
    mbox_push(&box, &message.head);
    mbox_fini(&box);
}

static void *
send_letters(void *arg)
{
    struct message *messages = arg;
    for (unsigned i = 0; i < LETTERS; i++) {
        messages[i].number = i; /* published by the push alone */
        mbox_push(&box, &messages[i].head);
        if (i % 1000 == 0) {
            mbox_wake(&box);
        }
    }
    return NULL;
}

/* The reader sleeps before every take: a lost wake-up is a test that never ends. */
TEST(test_many_senders)
{
    struct message *messages[SENDERS];
    pthread_t threads[SENDERS];
    unsigned next[SENDERS] = {0};
    unsigned total = 0;
    for (unsigned i = 0; i < SENDERS; i++) {
        messages[i] = calloc(LETTERS, sizeof *messages[i]);
        ck_assert_ptr_nonnull(messages[i]);
        for (unsigned j = 0; j < LETTERS; j++) {
            messages[i][j].sender = i;
        }
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        PTHREAD_OK(pthread_create(&threads[i], NULL, send_letters, messages[i]));
    }
    while (total < SENDERS * LETTERS) {
        expect(is_readable(SUITE_TIMEOUT_S * 1000));
        for (struct mbox_message *l = take(); l != NULL; l = l->next) {
            struct message *message = (struct message *)l;
            expect(message->sender < SENDERS);
            expect(message->number == next[message->sender]);
            next[message->sender]++;
            total++;
        }
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        PTHREAD_OK(pthread_join(threads[i], NULL));
        ck_assert_uint_eq(next[i], LETTERS);
        free(messages[i]);
    }
    ck_assert_ptr_null(take());
}
