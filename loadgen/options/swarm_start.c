/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/swarm_start.h"

#include <stdio.h>

#include "loadgen/swarm/message.h"

enum exit_status
swarm_fail(const char *what)
{
    fprintf(stderr, "mcload: %s\n", what);
    return EXIT_UNREACHABLE;
}

enum exit_status
swarm_read_key(struct seal_key *key, const char *file)
{
    char err[MESSAGE_TEXT_MAX] = "this build has no OpenSSL, and so no --key-file";
    key->len = 0;
    if (file != NULL &&
        (!seal_is_there() || !seal_read_key(key, file, err, sizeof err))) {
        fprintf(stderr, "mcload: %s\n", err);
        return EXIT_USAGE;
    }
    return EXIT_VALID;
}

void
swarm_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
}
