/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Many-to-one mailbox: any thread pushes intrusive messages, one thread takes them all in
 * order of arrival. The reader sleeps on an eventfd, which is written only by the push that
 * finds the box empty.
 */
#pragma once

#include <stdatomic.h>

#include "base/must.h"

struct mbox;

struct mbox_message {
    struct mbox_message *next;
};

/* The way back to what waits for another thread: its message, which that thread pushes when its work
 * is done. */
struct mbox_back {
    struct mbox *to;
    struct mbox_message *message; /* NULL: it cannot wait */
};

struct mbox {
    /* Newest first. Release on push, acquire on take: a message's contents are visible to
     * the thread that takes it. */
    _Atomic(struct mbox_message *) newest;
    int fd; /* readable when messages may be waiting */
};

/* False: no eventfd (errno). */
must_check bool mbox_init(struct mbox *m);
void mbox_fini(struct mbox *m);
void mbox_push(struct mbox *m, struct mbox_message *message);
/* Makes the descriptor readable without a message. Any thread. */
void mbox_wake(struct mbox *m);
/* Consumes the wake-up, before anything that it announces is looked at: what is pushed or
 * set after this wakes again. Owner only. */
void mbox_clear(struct mbox *m);
/* All messages, oldest first, linked by next; NULL when there are none. Owner only. */
struct mbox_message *mbox_take(struct mbox *m);
