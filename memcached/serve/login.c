/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/login.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/await.h"
#include "base/owner_of.h"
#include "serve/auth_sasl.h"

/* ---- the thread ----------------------------------------------------------------------- */

/* What was asked may hold a password. */
static void
forget_asked(struct login *login)
{
    if (login->asked != NULL) {
        explicit_bzero(login->asked, login->mechanism_len + login->data_len);
        free(login->asked);
        login->asked = NULL;
    }
}

static void
destroy(struct login *login)
{
    if (login->sasl != NULL) {
        auth_sasl_end(&login->sasl);
    }
    free(login);
}

static enum auth_status
converse(struct login *login)
{
    struct slice mechanism = {login->asked, login->mechanism_len};
    struct slice data = {login->asked + login->mechanism_len, login->data_len};
    if (login->step == LOGIN_START) {
        if (login->sasl != NULL) {
            auth_sasl_end(&login->sasl);
        }
        return auth_sasl_start(&login->sasl, mechanism, data, &login->challenge);
    }
    return login->sasl != NULL ? auth_sasl_step(login->sasl, data, &login->challenge)
                               : AUTH_FAILED;
}

/* A thread that main has not waited for stays here: the mailboxes are gone. */
static void
answer(struct logins *l, struct login *login)
{
    PTHREAD_OK(pthread_mutex_lock(&l->lock));
    while (l->is_left) {
        pause();
    }
    mbox_push(login->back.to, login->back.message);
    PTHREAD_OK(pthread_mutex_unlock(&l->lock));
}

static void
serve(struct logins *l, struct login *login)
{
    if (login->step == LOGIN_END) {
        destroy(login);
        return;
    }
    login->challenge = (struct slice){.p = "", .len = 0};
    bool is_wanted = !atomic_load(&l->is_ending) && !atomic_load(&login->is_abandoned);
    login->status = is_wanted ? converse(login) : AUTH_FAILED;
    if (login->status != AUTH_CONTINUE && login->sasl != NULL) {
        auth_sasl_end(&login->sasl);
    }
    forget_asked(login);
    answer(l, login);
}

static void
serve_all(struct logins *l)
{
    struct mbox_message *link = mbox_take(&l->box);
    while (link != NULL) {
        struct login *login = OWNER_OF(link, struct login, message);
        link = link->next;
        serve(l, login);
    }
}

static void *
login_main(void *arg)
{
    struct logins *l = arg;
    struct pollfd box = {.fd = l->box.fd, .events = POLLIN};
    PTHREAD_OK(pthread_setname_np(pthread_self(), "mc-login"));
    while (!atomic_load(&l->is_ending)) {
        must(poll(&box, 1, -1) >= 0 || errno == EINTR);
        mbox_clear(&l->box);
        serve_all(l);
    }
    must(sem_post(&l->has_ended) == 0);
    return NULL;
}

static void
fini(struct logins *l)
{
    mbox_fini(&l->box);
    must(sem_destroy(&l->has_ended) == 0);
    PTHREAD_OK(pthread_mutex_destroy(&l->lock));
}

bool
logins_start(struct logins *l)
{
    if (!mbox_init(&l->box)) {
        return false;
    }
    atomic_init(&l->is_ending, false);
    must(sem_init(&l->has_ended, 0, 0) == 0);
    PTHREAD_OK(pthread_mutex_init(&l->lock, NULL));
    errno = pthread_create(&l->thread, NULL, login_main, l);
    l->is_running = errno == 0;
    if (!l->is_running) {
        fini(l);
    }
    return l->is_running;
}

bool
logins_stop(struct logins *l, const struct timespec *until)
{
    if (!l->is_running) {
        return true;
    }
    atomic_store(&l->is_ending, true);
    mbox_wake(&l->box);
    if (!await_until(&l->has_ended, until)) {
        PTHREAD_OK(pthread_mutex_lock(&l->lock));
        l->is_left = true;
        PTHREAD_OK(pthread_mutex_unlock(&l->lock));
        return false;
    }
    PTHREAD_OK(pthread_join(l->thread, NULL));
    l->is_running = false;
    serve_all(l);
    fini(l);
    return true;
}

/* ---- workers -------------------------------------------------------------------------- */

bool
login_ask(struct logins *l, struct login *login, enum login_step step,
          struct slice mechanism, struct slice data, const struct mbox_back *back)
{
    login->asked = malloc(mechanism.len + data.len + 1);
    if (login->asked == NULL) {
        return false;
    }
    if (mechanism.len > 0) {
        memcpy(login->asked, mechanism.p, mechanism.len);
    }
    if (data.len > 0) {
        memcpy(login->asked + mechanism.len, data.p, data.len);
    }
    login->mechanism_len = mechanism.len;
    login->data_len = data.len;
    login->step = step;
    login->back = *back;
    mbox_push(&l->box, &login->message);
    return true;
}

void
login_abandon(struct login *login)
{
    atomic_store(&login->is_abandoned, true);
}

void
login_end(struct logins *l, struct login **login)
{
    struct login *old = *login;
    *login = NULL;
    if (old == NULL) {
        return;
    }
    if (old->sasl == NULL || !l->is_running) {
        destroy(old);
        return;
    }
    old->step = LOGIN_END;
    mbox_push(&l->box, &old->message);
}
