/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Conversations with libsasl2 in their thread. The library is one of the test's own: it says what it
 * was asked and by which thread, and a step of it takes as long as the test wants.
 */
#include "serve/login.h"

#include <poll.h>
#include <semaphore.h>

#include "base/await.h"
#include "base/fail.h"
#include "base/owner_of.h"
#include "check_main.h"
#include "serve/auth_sasl.h"

#define LOGINS 3
#define HELD "held"

/* ---- the library ---------------------------------------------------------------------- */

static sem_t entered, may_leave;
static pthread_t entered_by;
static unsigned starts, steps, ends;
static char seen[64]; /* mechanism, data */

static void
note(struct slice mechanism, struct slice data)
{
    entered_by = pthread_self();
    snprintf(seen, sizeof seen, "%.*s %.*s", (int)mechanism.len, mechanism.p,
             (int)data.len, data.p);
    if (data.len == sizeof HELD - 1 && memcmp(data.p, HELD, data.len) == 0) {
        must(sem_post(&entered) == 0);
        await(&may_leave);
    }
}

bool
auth_sasl_init(char *to, size_t size)
{
    return fail_because(to, size, "there is none");
}

void
auth_sasl_fini(void)
{
}

char *
auth_sasl_mechanisms(void)
{
    return NULL;
}

enum auth_status
auth_sasl_start(void **conn, struct slice mechanism, struct slice data,
                struct slice *challenge)
{
    must(*conn == NULL);
    *conn = &starts;
    starts++;
    note(mechanism, data);
    *challenge = (struct slice){"who?", 4};
    return mechanism.len > 0 ? AUTH_CONTINUE : AUTH_FAILED;
}

enum auth_status
auth_sasl_step(void *conn, struct slice data, struct slice *challenge)
{
    must(conn == &starts);
    steps++;
    note((struct slice){"", 0}, data);
    *challenge = (struct slice){"", 0};
    return AUTH_DONE;
}

void
auth_sasl_end(void **conn)
{
    must(*conn == &starts);
    entered_by = pthread_self();
    *conn = NULL;
    ends++;
}

/* ---- a worker ------------------------------------------------------------------------- */

static const struct timespec never = {.tv_sec = INT32_MAX};
static struct logins logins;
static struct mbox box;
static struct client {
    struct mbox_message message;
    struct login *login;
} clients[LOGINS];

static void
setup(void)
{
    must(sem_init(&entered, 0, 0) == 0 && sem_init(&may_leave, 0, 0) == 0);
    expect(mbox_init(&box) && logins_start(&logins));
    starts = steps = ends = 0;
    for (unsigned i = 0; i < LOGINS; i++) {
        clients[i].login = calloc(1, sizeof *clients[i].login);
        ck_assert_ptr_nonnull(clients[i].login);
    }
}

static void
teardown(void)
{
    for (unsigned i = 0; i < LOGINS; i++) {
        login_end(&logins, &clients[i].login);
        ck_assert_ptr_null(clients[i].login);
    }
    expect(logins_stop(&logins, &never));
    ck_assert_ptr_null(mbox_take(&box));
    mbox_fini(&box);
}

static void
ask(struct client *c, enum login_step step, const char *mechanism, const char *text)
{
    char data[16];
    size_t len = strlen(text);
    memcpy(data, text, len);
    struct mbox_back back = {&box, &c->message};
    expect(login_ask(&logins, c->login, step,
                     (struct slice){mechanism, strlen(mechanism)},
                     (struct slice){data, len}, &back));
    memset(data, '#', sizeof data); /* the input of a connection does not wait */
}

/* Waits for the next one that comes back. */
static struct client *
next_back(void)
{
    static struct mbox_message *left;
    while (left == NULL) {
        struct pollfd fd = {.fd = box.fd, .events = POLLIN};
        ck_assert_int_eq(poll(&fd, 1, -1), 1);
        mbox_clear(&box);
        left = mbox_take(&box);
    }
    struct client *c = OWNER_OF(left, struct client, message);
    left = left->next;
    return c;
}

FIXTURE(setup, teardown);

TEST(a_conversation)
{
    struct client *c = clients;
    ask(c, LOGIN_STEP, "", "early");
    ck_assert_ptr_eq(next_back(), c);
    ck_assert_int_eq(c->login->status, AUTH_FAILED);
    ck_assert_uint_eq(steps, 0);

    ask(c, LOGIN_START, "SCRAM", "n,,n=me");
    ck_assert_ptr_eq(next_back(), c);
    ck_assert_int_eq(c->login->status, AUTH_CONTINUE);
    ck_assert_str_eq(seen, "SCRAM n,,n=me");
    ck_assert_mem_eq(c->login->challenge.p, "who?", c->login->challenge.len);
    ck_assert_uint_eq(c->login->challenge.len, 4);

    ask(c, LOGIN_STEP, "", "me");
    ck_assert_ptr_eq(next_back(), c);
    ck_assert_int_eq(c->login->status, AUTH_DONE);
    ck_assert_str_eq(seen, " me");
    ck_assert_uint_eq(ends, 1); /* nothing of it is kept */
    expect(!pthread_equal(entered_by, pthread_self()));
}

TEST(one_that_begins_anew)
{
    ask(clients, LOGIN_START, "SCRAM", "a");
    (void)next_back();
    ask(clients, LOGIN_START, "SCRAM", "b");
    (void)next_back();
    ck_assert_uint_eq(starts, 2);
    ck_assert_uint_eq(ends, 1);
    ask(clients, LOGIN_START, "", "c");
    ck_assert_int_eq(next_back()->login->status, AUTH_FAILED);
    ck_assert_uint_eq(ends, 3);
}

TEST(others_wait_and_their_worker_does_not)
{
    for (unsigned i = 0; i < LOGINS; i++) {
        ask(&clients[i], LOGIN_START, "SCRAM", i == 0 ? HELD : "x");
    }
    await(&entered);
    ck_assert_uint_eq(starts, 1);
    ck_assert_ptr_null(mbox_take(&box));
    must(sem_post(&may_leave) == 0);
    for (unsigned i = 0; i < LOGINS; i++) {
        ck_assert_ptr_eq(next_back(), &clients[i]);
    }
    ck_assert_uint_eq(starts, LOGINS);
}

TEST(what_is_abandoned_does_not_begin)
{
    ask(&clients[0], LOGIN_START, "SCRAM", HELD);
    ask(&clients[1], LOGIN_START, "SCRAM", "x");
    await(&entered);
    login_abandon(clients[0].login);
    login_abandon(clients[1].login);
    must(sem_post(&may_leave) == 0);
    ck_assert_ptr_eq(next_back(), &clients[0]);
    ck_assert_ptr_eq(next_back(), &clients[1]);
    ck_assert_uint_eq(starts, 1);
}

TEST(conversations_end_in_the_thread)
{
    ask(&clients[0], LOGIN_START, "SCRAM", "x");
    (void)next_back();
    entered_by = pthread_self();
    login_end(&logins, &clients[0].login);
    ask(&clients[1], LOGIN_START, "", "behind it");
    (void)next_back();
    ck_assert_uint_eq(ends, 2);
    expect(!pthread_equal(entered_by, pthread_self()));
}

/* Its thread is there until the end of the program. */
TEST(a_step_that_does_not_end)
{
    static struct logins left;
    static struct login *login;
    struct mbox_back back = {&box, &clients[0].message};
    struct slice held = {HELD, sizeof HELD - 1};
    login = calloc(1, sizeof *login);
    ck_assert_ptr_nonnull(login);
    expect(logins_start(&left));
    expect(login_ask(&left, login, LOGIN_START, held, held, &back));
    await(&entered);
    expect(!logins_stop(&left, &(struct timespec){0}));
    must(sem_post(&may_leave) == 0);
}

TEST(all_come_back_at_the_end)
{
    for (unsigned i = 0; i < LOGINS; i++) {
        ask(&clients[i], LOGIN_START, "SCRAM", i == 0 ? HELD : "x");
    }
    await(&entered);
    must(sem_post(&may_leave) == 0);
    expect(logins_stop(&logins, &never));
    for (unsigned i = 0; i < LOGINS; i++) {
        ck_assert_ptr_eq(next_back(), &clients[i]);
        login_end(&logins, &clients[i].login);
    }
    ck_assert_uint_eq(starts, ends);
}
