/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/fail.h"
#include "serve/auth_sasl.h"

/* None of these uses what it is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool
auth_sasl_init(char *err, size_t err_len)
{
    return fail_because(err, err_len, "This server is not built with SASL support.");
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
    return AUTH_FAILED;
}

enum auth_status
auth_sasl_step(void *conn, struct slice data, struct slice *challenge)
{
    return AUTH_FAILED;
}

void
auth_sasl_end(void **conn)
{
    *conn = NULL;
}
