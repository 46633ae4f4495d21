/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A build without TLS: there is no struct ltls, so the rest is never reached.
 */
#include "loadgen/wire/ltls.h"

struct ltls *
ltls_open(const struct ltls_conf *conf, char *err, size_t err_len)
{
    (void)conf;
    snprintf(err, err_len, "this mcload is not built with TLS support");
    return NULL;
}

void
ltls_close(struct ltls *t)
{
    must(t == NULL);
}

const struct ltls_ops ltls_ops = {.begin = NULL};
