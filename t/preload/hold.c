/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into the server, holds what it waits for outside: a step of libsasl2, or the end of writing
 * a file. A held call opens the FIFO that $HOLD_LOGIN or $HOLD_FILE names, which ends when the test opens
 * it, too, and waits until the test has closed it. A login is held when what the client has sent ends in
 * "hold".
 */
#include <string.h>

#include "preload.h"

static int (*real_fsync)(int);
static int (*real_sasl_server_start)(void *, const char *, const char *, unsigned,
                                     const char **, unsigned *);

static void
hold(const char *variable)
{
    char byte;
    const char *name = getenv(variable);
    int fd = name != NULL ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && read(fd, &byte, 1) > 0) {
    }
    if (fd >= 0) {
        close(fd);
    }
}

int
fsync(int fd)
{
    FIND(fsync);
    hold("HOLD_FILE");
    return real_fsync(fd);
}

int
sasl_server_start(void *conn, const char *mechanism, const char *data, unsigned len,
                  const char **challenge, unsigned *challenge_len)
{
    FIND(sasl_server_start);
    if (len >= 4 && memcmp(data + len - 4, "hold", 4) == 0) {
        hold("HOLD_LOGIN");
    }
    return real_sasl_server_start(conn, mechanism, data, len, challenge, challenge_len);
}
