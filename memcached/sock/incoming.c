/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/incoming.h"

#include <sys/socket.h>

#include "base/file.h"

static int
option_of(int fd, int option)
{
    int value;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

int
incoming_cpu(int fd)
{
    return option_of(fd, SO_INCOMING_CPU);
}

unsigned
incoming_queue(int fd)
{
    int id = option_of(fd, SO_INCOMING_NAPI_ID);
    return id > 0 ? (unsigned)id : 0;
}

bool
incoming_has_flows(const char *path)
{
    char text[32];
    return file_read_line(path, text, sizeof text) && strtoul(text, NULL, 10) > 0;
}
