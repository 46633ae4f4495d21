/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * libsasl2 behind a few calls; a build without it has auth_nosasl.c instead. Private to
 * serve/auth.c and, for conversations, to the thread of serve/login.c: the library is entered by one
 * thread at a time.
 */
#pragma once

#include "serve/auth.h"

/* Once a process. False with a line in err. */
must_check bool auth_sasl_init(char *err, size_t err_len);
void auth_sasl_fini(void);
/* Names separated by blanks, to be freed; NULL when the library names none. */
char *auth_sasl_mechanisms(void);

/* *conn is the library's own state of one client; NULL at first. */
must_check enum auth_status auth_sasl_start(void **conn, struct slice mechanism,
                                            struct slice data, struct slice *challenge);
must_check enum auth_status auth_sasl_step(void *conn, struct slice data,
                                           struct slice *challenge);
void auth_sasl_end(void **conn);
