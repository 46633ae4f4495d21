/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Conversations of clients with libsasl2, in a thread of their own. The library is entered by one
 * thread at a time, and a step of one takes as long as its mechanism does: SCRAM derives keys, a
 * remote one waits for another server. No worker waits for that.
 *
 * A struct login is zero-initialised and belongs to its connection's worker; to the thread from
 * login_ask until the message comes back. Private to serve/auth.c.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "base/mbox.h"
#include "serve/auth.h"

enum login_step {
    LOGIN_START, /* what the client had is dropped */
    LOGIN_STEP,
    LOGIN_END,
};

struct login {
    struct mbox_message message; /* first: the thread's mailbox holds it by this */
    struct mbox_back back;
    enum login_step step;
    _Atomic bool is_abandoned; /* any thread */
    char *asked;               /* the mechanism's name, and the client's data */
    size_t mechanism_len, data_len;
    void *sasl; /* the library's state; NULL: there is no conversation */
    enum auth_status status;
    struct slice challenge; /* in the library's memory, until the next step */
};

/* Owner: main. Workers ask while it is_running. */
struct logins {
    bool is_running;
    _Atomic bool is_ending;
    pthread_t thread;
    sem_t has_ended;
    pthread_mutex_t lock;
    bool is_left; /* lock: main has not waited for the thread; the mailboxes are gone */
    struct mbox box;
};

/* False: no thread, with errno. */
must_check bool logins_start(struct logins *l);
/* What has been asked comes back, unanswered. False: the library has not come back from a step by
 * the monotonic time `until`; it, the thread and what that has are left as they are. */
must_check bool logins_stop(struct logins *l, const struct timespec *until);

/* Worker. False: no memory, and nothing is asked. */
must_check bool login_ask(struct logins *l, struct login *login, enum login_step step,
                          struct slice mechanism, struct slice data,
                          const struct mbox_back *back);
/* The answer is not wanted: what has not begun does not begin. */
void login_abandon(struct login *login);
/* It is not the thread's; *login may be NULL, and is NULL afterwards. */
void login_end(struct logins *l, struct login **login);
