/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"

#define TEXT_MAX 1024
#define PATIENCE_S                                                                       \
    1 /* for a manager whose socket is full: clients and signals wait meanwhile */

static const char variable[] = "NOTIFY_SOCKET";

void
notify_open(struct notify *n)
{
    *n = (struct notify){.addr.sun_family = AF_UNIX};
    const char *path = getenv(variable);
    if (path == NULL) {
        return;
    }
    size_t len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof n->addr.sun_path) {
        log_write(
            LOG_WARNING,
            "memcached: warning: %s must be a path or @NAME of less than %zu bytes: "
            "%s; the service manager is told nothing",
            variable, sizeof n->addr.sun_path, path);
    } else {
        memcpy(n->addr.sun_path, path, len + 1);
        n->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
        if (path[0] == '@') { /* abstract: its length is that of the name */
            n->addr.sun_path[0] = '\0';
            n->len--;
        }
    }
    must(unsetenv(variable) == 0);
}

__attribute__((format(printf, 2, 3))) static void
send_text(const struct notify *n, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;
    if (n->len == 0) {
        return;
    }
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    must(len >= 0 && (size_t)len < sizeof text);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = PATIENCE_S};
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        sendto(fd, text, (size_t)len, MSG_NOSIGNAL, (const struct sockaddr *)&n->addr,
               n->len) != len) {
        log_write(LOG_WARNING,
                  "memcached: warning: the service manager cannot be told (%s): %s",
                  variable, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

void
notify_ready(const struct notify *n, const char *status)
{
    send_text(n, "READY=1\nSTATUS=%s", status);
}

void
notify_reloading(const struct notify *n, nsec_t now)
{
    send_text(n, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now / NSEC_PER_USEC);
}

void
notify_stopping(const struct notify *n)
{
    send_text(n, "STOPPING=1");
}
