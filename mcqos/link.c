/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/link.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_PORT "11211"
#define HOST_MAX 256
#define PORT_MAX 16
#define SHOWN_MAX 120 /* bytes of an answer that a message shows */

/* Ends the link, with the sentence why. */
__attribute__((format(printf, 2, 3))) static bool
fail(struct link *l, const char *format, ...)
{
    va_list args;
    link_close(l);
    va_start(args, format);
    vsnprintf(l->why, sizeof l->why, format, args);
    va_end(args);
    return false;
}

void
link_close(struct link *l)
{
    if (l->fd >= 0) {
        close(l->fd);
    }
    l->fd = -1;
}

/* True when the descriptor is ready before the deadline. */
static bool
wait_for(struct link *l, short events)
{
    struct pollfd p = {.fd = l->fd, .events = events};
    for (;;) {
        nsec_t now = clock_now();
        if (l->deadline != 0 && now >= l->deadline) {
            return fail(l,
                        "no answer from %s within %g s: it is overloaded, stopped or not "
                        "a memcached (--timeout=SECONDS waits longer)",
                        l->server, (double)l->timeout / (double)NSEC_PER_SEC);
        }
        int ms = l->deadline == 0 ? -1 : (int)((l->deadline - now) / NSEC_PER_MSEC) + 1;
        int ready = poll(&p, 1, ms);
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return fail(l, "poll: %s", strerror(errno));
        }
    }
}

/* ---- connecting ----------------------------------------------------------------------- */

static int
finish_connect(struct link *l)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (!wait_for(l, POLLOUT)) {
        return ETIMEDOUT;
    }
    return getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 ? errno : error;
}

/* 0, or the errno. */
static int
connect_to(struct link *l, int family, const struct sockaddr *address, socklen_t len)
{
    l->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0) {
        return errno;
    }
    int error = connect(l->fd, address, len) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        error = finish_connect(l);
    }
    if (error != 0) {
        link_close(l);
    }
    return error;
}

static bool
open_path(struct link *l, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return fail(l, "%s: the path of a UNIX socket has at most %zu bytes", path,
                    sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, strlen(path));
    int error = connect_to(l, AF_UNIX, (struct sockaddr *)&address, sizeof address);
    return error == 0 ||
           fail(
               l,
               "cannot connect to %s: %s; is the server running with -s %s, and may this "
               "user open it?",
               path, strerror(error), path);
}

/* "host", "host:port", "[v6]", "[v6]:port" or "v6". */
static bool
split(const char *server, char host[HOST_MAX], char port[PORT_MAX])
{
    const char *colon = strrchr(server, ':'), *begin = server;
    const char *end = server + strlen(server);
    if (*server == '[') {
        begin = server + 1;
        end = strchr(begin, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
        colon = end[1] == ':' ? end + 1 : NULL;
    } else if (colon != NULL && strchr(server, ':') == colon) {
        end = colon;
    } else {
        colon = NULL;
    }
    const char *service = colon != NULL ? colon + 1 : DEFAULT_PORT;
    if (end == begin || end - begin >= HOST_MAX || *service == '\0' ||
        strlen(service) >= PORT_MAX) {
        return false;
    }
    snprintf(host, HOST_MAX, "%.*s", (int)(end - begin), begin);
    snprintf(port, PORT_MAX, "%s", service);
    return true;
}

static bool
open_host(struct link *l, const char *server)
{
    char host[HOST_MAX], port[PORT_MAX];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    if (!split(server, host, port)) {
        return fail(
            l,
            "%s is no server: write HOST, HOST:PORT, [V6]:PORT or the path of a UNIX "
            "socket",
            server);
    }
    int rc = getaddrinfo(host, port, &hints, &list);
    if (rc != 0) {
        return fail(l, "%s port %s: %s", host, port, gai_strerror(rc));
    }
    int error = 0;
    for (const struct addrinfo *a = list; a != NULL && l->fd < 0; a = a->ai_next) {
        error = connect_to(l, a->ai_family, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(list);
    return l->fd >= 0 ||
           fail(
               l,
               "cannot connect to %s port %s: %s; is the server running, and is this its "
               "address? (-s HOST:PORT or -s /PATH)",
               host, port, strerror(error));
}

bool
link_open(struct link *l, const char *server, nsec_t timeout)
{
    l->fd = -1;
    l->server = server;
    l->timeout = timeout;
    l->deadline = clock_now() + timeout;
    l->len = l->at = 0;
    l->why[0] = '\0';
    return strchr(server, '/') != NULL ? open_path(l, server) : open_host(l, server);
}

/* ---- questions and answers ------------------------------------------------------------ */

bool
link_ask(struct link *l, const char *format, ...)
{
    char line[LINK_WHY_MAX];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 2, format, args);
    va_end(args);
    if (l->fd < 0) {
        return false; /* why is known */
    }
    if (len < 0 || (size_t)len >= sizeof line - 2 || strpbrk(line, "\r\n") != NULL) {
        return fail(l, "the command is too long, or has a line end in it");
    }
    memcpy(line + len, "\r\n", 2);
    l->deadline = clock_now() + l->timeout;
    for (size_t sent = 0, all = (size_t)len + 2; sent < all;) {
        ssize_t n = send(l->fd, line + sent, all - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return fail(l, "%s does not take a command: %s", l->server, strerror(errno));
        } else if (!wait_for(l, POLLOUT)) {
            return false;
        }
    }
    return true;
}

void
link_wait_forever(struct link *l)
{
    l->deadline = 0;
}

static bool
fill(struct link *l)
{
    for (;;) {
        ssize_t n = recv(l->fd, l->buf + l->len, sizeof l->buf - l->len, 0);
        if (n > 0) {
            l->len += (size_t)n;
            return true;
        }
        if (n == 0) {
            return fail(
                l,
                "%s closed the connection before the end of its answer (a port for "
                "TLS or the binary protocol? use a UNIX socket or a plain port)",
                l->server);
        }
        if (errno != EAGAIN && errno != EINTR) {
            return fail(l, "%s does not answer: %s", l->server, strerror(errno));
        }
        if (!wait_for(l, POLLIN)) {
            return false;
        }
    }
}

/* Nothing that a terminal obeys. */
static char *
clean(char *line, char *end)
{
    if (end > line && end[-1] == '\r') {
        end--;
    }
    *end = '\0';
    for (char *p = line; p < end; p++) {
        if (*p < ' ' || *p > '~') {
            *p = '?';
        }
    }
    return line;
}

char *
link_line(struct link *l)
{
    size_t searched = l->at;
    while (l->fd >= 0) {
        char *end = memchr(l->buf + searched, '\n', l->len - searched);
        if (end != NULL) {
            char *line = l->buf + l->at;
            l->at = (size_t)(end - l->buf) + 1;
            return clean(line, end);
        }
        searched = l->len - l->at;
        memmove(l->buf, l->buf + l->at, searched);
        l->len = searched;
        l->at = 0;
        if (l->len == sizeof l->buf) {
            fail(l, "%s answers with a line of more than %d bytes: it is no memcached",
                 l->server, LINK_LINE_MAX);
        } else if (!fill(l)) {
            break;
        }
    }
    return NULL;
}

char *
link_word(struct link *l, const char *question)
{
    return link_ask(l, "%s", question) ? link_line(l) : NULL;
}

enum outcome
link_refused(struct link *l, const char *question, const char *answer)
{
    if (strncmp(answer, "CLIENT_ERROR ", strlen("CLIENT_ERROR ")) == 0) {
        snprintf(l->why, sizeof l->why, "%s refuses \"%s\": %.*s", l->server, question,
                 SHOWN_MAX * 3, answer + strlen("CLIENT_ERROR "));
    } else if (strcmp(answer, "ERROR") == 0) {
        snprintf(
            l->why, sizeof l->why,
            "%s does not know \"%s\": it is not memcached-qos, or too old for this mcqos",
            l->server, question);
    } else {
        snprintf(l->why, sizeof l->why, "%s answers \"%s\" with: %.*s", l->server,
                 question, SHOWN_MAX, answer);
    }
    return REFUSED;
}
