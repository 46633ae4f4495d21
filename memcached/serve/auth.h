/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Authentication of clients: SASL for the binary protocol (a password database of our
 * own, or libsasl2) or the tokens of -Y for the text protocol.
 *
 * struct auth is one for the process and NULL when none is required; any worker may call.
 * A struct auth_session belongs to one connection and its worker, is NULL until it is
 * needed, and is released by auth_end. libsasl2 is asked in a thread of its own (serve/login.h).
 * Names and passwords are compared in a time that depends on neither: against every entry, over
 * the whole field, whether the name exists or not.
 */
#pragma once

#include <pthread.h>

#include "base/mbox.h"
#include "proto/req.h"

#define AUTH_MECHANISM_MAX 32 /* longest name of a mechanism that is looked at */
#define AUTH_TOKENS_MAX 8     /* entries of a -Y file that count */
#define AUTH_FIELD_MAX 255    /* bytes of a user name or a password in a file */
#define AUTH_TEXT_MAX 16384   /* longest token a text client may announce */

struct auth;
struct auth_session;

enum auth_status {
    AUTH_DONE,     /* this connection is authenticated now */
    AUTH_CONTINUE, /* *challenge goes to the client, whose answer goes to auth_step */
    AUTH_FAILED,   /* the connection is not authenticated; it may try again */
    AUTH_NO_MEMORY,
    AUTH_ASKED, /* libsasl2 was: its answer, by auth_answer, is there when the message comes back */
};

/* ---- start-up thread ------------------------------------------------------------------ */

/* Each returns NULL with one line in err. */
struct auth *auth_open_tokens(const char *path, const pthread_mutexattr_t *lock_attr,
                              char *err, size_t err_len);
/* path: a password database, for PLAIN; NULL: libsasl2 decides, with HAVE_SASL. */
struct auth *auth_open_sasl(const char *path, const pthread_mutexattr_t *lock_attr,
                            char *err, size_t err_len);
/* Reads the file again while workers go on; when it is bad, false with a line in err, and
 * the old entries stay. True when there is no file. */
must_check bool auth_reload(struct auth *a, char *err, size_t err_len);
/* Before the workers serve; a may be NULL. False: no thread, with errno. */
must_check bool auth_serve(struct auth *a);
/* The workers have ended. What they have asked comes back. False: libsasl2 has not by the monotonic
 * time `until`, and is left as it is. */
must_check bool auth_stop(struct auth *a, const struct timespec *until);
void auth_close(struct auth **a);

/* ---- workers: SASL -------------------------------------------------------------------- */

/* Names separated by blanks; valid as long as a. */
const char *auth_mechanisms(const struct auth *a);
/* AUTH: drops what the connection had, authenticated or not, and begins anew. *challenge is
 * set with CONTINUE (it may be empty) and valid until the next call for this session. With ASKED
 * back->message is lent until it comes back. */
must_check enum auth_status auth_start(struct auth *a, struct auth_session **s,
                                       struct slice mechanism, struct slice data,
                                       const struct mbox_back *back,
                                       struct slice *challenge);
/* STEP. FAILED when there is nothing to continue. */
must_check enum auth_status auth_step(struct auth *a, struct auth_session **s,
                                      struct slice data, const struct mbox_back *back,
                                      struct slice *challenge);
/* ASKED was returned, and auth_answer was not called since. s may be NULL. */
must_check bool auth_is_asked(const struct auth_session *s);
/* The message has come back. */
must_check enum auth_status auth_answer(struct auth_session *s, struct slice *challenge);
/* The answer is not needed any more; the message comes back all the same. s may be NULL. */
void auth_abandon(struct auth_session *s);
/* Closes, and nothing is lent; *s may be NULL and is NULL afterwards. */
void auth_end(struct auth_session **s);

/* ---- workers: text -------------------------------------------------------------------- */

/* Whether user and password are one of the entries. An empty password never matches. */
bool auth_check_token(struct auth *a, struct slice user, struct slice password);

enum auth_gate {
    AUTH_GATE_MORE,  /* nothing to say yet */
    AUTH_GATE_REPLY, /* *reply is the answer; STORED: the client is authenticated */
    AUTH_GATE_CLOSE,
};

/* What a text client without a name sends goes here and nowhere else. Takes *consumed bytes
 * of p[0..len), as many as it needs at the moment. */
must_check enum auth_gate auth_gate(struct auth *a, struct auth_session **s,
                                    const char *p, size_t len, size_t *consumed,
                                    enum reply *reply);
