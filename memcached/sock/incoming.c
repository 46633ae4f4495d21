/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/incoming.h"

#include "base/file.h"
#include "sock/sys.h"

int
incoming_cpu(int fd)
{
    return sys_option(fd, SO_INCOMING_CPU);
}

unsigned
incoming_queue(int fd)
{
    int id = sys_option(fd, SO_INCOMING_NAPI_ID);
    return id > 0 ? (unsigned)id : 0;
}

bool
incoming_has_flows(const char *path)
{
    char text[32];
    return file_read_line(path, text, sizeof text) && strtoul(text, NULL, 10) > 0;
}
