/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/num.h"
#include "sock/sys.h"

#define COUNT_MAX 1024 /* sockets */

static const char pid_variable[] = "LISTEN_PID";
static const char count_variable[] = "LISTEN_FDS";
static const char names_variable[] = "LISTEN_FDNAMES";

static bool
has_port(int fd)
{
    union {
        struct sockaddr_storage any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr;
    socklen_t len = sizeof addr;
    return getsockname(fd, (struct sockaddr *)&addr.any, &len) == 0 &&
           (addr.any.ss_family == AF_INET6 ? addr.v6.sin6_port : addr.v4.sin_port) != 0;
}

/* NULL, or what is wrong with it. */
static const char *
judge(struct inherited_socket *s)
{
    int type = sys_option(s->fd, SO_TYPE);
    int family = sys_option(s->fd, SO_DOMAIN);
    bool is_ip = family == AF_INET || family == AF_INET6;
    if (type < 0) {
        return errno == EBADF ? "is not open" : "is not a socket";
    }
    if (!is_ip && family != AF_UNIX) {
        return "is neither an IPv4, an IPv6 nor a UNIX socket";
    }
    if (type == SOCK_DGRAM && is_ip) {
        s->kind = INHERITED_UDP;
        return has_port(s->fd) ? NULL : "is a UDP socket without a port";
    }
    if (type != SOCK_STREAM) {
        return "is neither a TCP, a UDP nor a UNIX stream socket (ListenStream=, "
               "ListenDatagram=)";
    }
    s->kind = is_ip ? INHERITED_TCP : INHERITED_UNIX;
    return sys_option(s->fd, SO_ACCEPTCONN) == 1
               ? NULL
               : "does not listen; connections are not taken over (Accept=no)";
}

static bool
set_flags(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* The next of the names, which colons separate; "" behind the last. */
static const char *
next_name(char **names)
{
    const char *name = *names != NULL ? strsep(names, ":") : NULL;
    return name != NULL ? name : "";
}

static bool
take_sockets(struct inherited *in, unsigned count, const char *names, char *err,
             size_t err_len)
{
    in->list = calloc(count, sizeof *in->list);
    in->names = names != NULL ? strdup(names) : NULL;
    if (in->list == NULL || (names != NULL && in->names == NULL)) {
        return fail_because(err, err_len, "no memory for %u inherited sockets", count);
    }
    char *rest = in->names;
    for (in->count = 0; in->count < count; in->count++) {
        struct inherited_socket *s = &in->list[in->count];
        *s = (struct inherited_socket){.fd = INHERITED_FIRST + (int)in->count,
                                       .name = next_name(&rest)};
        const char *wrong = judge(s);
        if (wrong == NULL && !set_flags(s->fd)) {
            wrong = strerror(errno);
        }
        if (wrong != NULL) {
            return fail_because(err, err_len, "inherited descriptor %d of %u (%s=%u) %s",
                                s->fd, count, count_variable, count, wrong);
        }
    }
    return true;
}

static bool
read_number(const char *variable, const char *text, uint32_t most, uint32_t *out,
            char *err, size_t err_len)
{
    if (num_u32(text, strlen(text), out) && *out >= 1 && *out <= most) {
        return true;
    }
    return fail_because(
        err, err_len,
        "%s must be a number from 1 to %u: \"%s\"; it is set by what starts the "
        "process with sockets",
        variable, most, text);
}

static bool
read_variables(struct inherited *in, char *err, size_t err_len)
{
    const char *pid_text = getenv(pid_variable);
    const char *count_text = getenv(count_variable);
    uint32_t pid, count;
    if (pid_text == NULL || count_text == NULL) {
        return true;
    }
    if (!read_number(pid_variable, pid_text, INT32_MAX, &pid, err, err_len)) {
        return false;
    }
    if ((pid_t)pid != getpid()) {
        return true;
    }
    return read_number(count_variable, count_text, COUNT_MAX, &count, err, err_len) &&
           take_sockets(in, count, getenv(names_variable), err, err_len);
}

bool
inherited_open(struct inherited *in, char *err, size_t err_len)
{
    *in = (struct inherited){.count = 0};
    bool is_good = read_variables(in, err, err_len);
    must(unsetenv(pid_variable) == 0 && unsetenv(count_variable) == 0 &&
         unsetenv(names_variable) == 0);
    return is_good;
}

void
inherited_close(struct inherited *in)
{
    free(in->list);
    free(in->names);
    *in = (struct inherited){.count = 0};
}
