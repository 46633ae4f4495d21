/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "mcqos/link.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/part.h"

#define UNAUTHENTICATED "CLIENT_ERROR unauthenticated"
#define DEFAULT_PORT "11211"
#define HOST_MAX 256
#define SHOWN_MAX 120 /* bytes of an answer that a message shows */

#define USEC_PER_SEC (NSEC_PER_SEC / NSEC_PER_USEC)

/* Ends the link, with the sentence why; false. */
#define fail(l, ...)                                                                     \
    ((void)link_explain(l, UNREACHABLE, __VA_ARGS__), link_close(l), false)

enum outcome
link_explain(struct link *l, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->why, sizeof l->why, format, args);
    va_end(args);
    return outcome;
}

void
link_close(struct link *l)
{
    if (l->fd >= 0) {
        close(l->fd);
    }
    l->fd = -1;
}

/* How long the next call may wait. False: the deadline is over. */
static bool
limit_wait(struct link *l, int direction)
{
    struct timeval left = {0}; /* for ever */
    if (l->deadline != 0) {
        nsec_t now = clock_now();
        if (now >= l->deadline) {
            return fail(l,
                        "no answer from %s within %g s: it is overloaded or stopped "
                        "(--timeout=SECONDS waits longer), or does not speak the text "
                        "protocol (-S, -B binary: see the listener of --admin)",
                        l->server, (double)l->timeout / (double)NSEC_PER_SEC);
        }
        nsec_t us = (l->deadline - now) / NSEC_PER_USEC + 1;
        left = (struct timeval){(time_t)(us / USEC_PER_SEC),
                                (suseconds_t)(us % USEC_PER_SEC)};
    }
    return setsockopt(l->fd, SOL_SOCKET, direction, &left, sizeof left) == 0 ||
           fail(l, "a time limit of a socket: %s", strerror(errno));
}

/* ---- connecting ----------------------------------------------------------------------- */

/* 0, or the errno. */
static int
connect_to(struct link *l, int family, const struct sockaddr *address, socklen_t len)
{
    l->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0) {
        return errno;
    }
    int error;
    do { /* a signal, as that of a terminal's new size, ends the call and not what it began */
        error = ETIMEDOUT;
        if (limit_wait(l, SO_SNDTIMEO)) {
            error = connect(l->fd, address, len) == 0 || errno == EISCONN ? 0 : errno;
        }
    } while (error == EINTR);
    if (error != 0) {
        link_close(l);
    }
    /* What is still under way when the time is over. */
    bool is_late = error == EINPROGRESS || error == EALREADY || error == EAGAIN;
    return is_late ? ETIMEDOUT : error;
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

static bool
open_host(struct link *l, const char *server)
{
    char host[HOST_MAX];
    const char *port = DEFAULT_PORT;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    bool is_one =
        part_host(server, host, HOST_MAX, &port) && num_may_be_port(port, strlen(port));
    int error = 0, rc = is_one ? getaddrinfo(host, port, &hints, &list) : 0;
    if (!is_one || rc != 0) {
        return fail(
            l,
            "%s is no server%s%s: write HOST, HOST:PORT, [V6]:PORT or the path of a "
            "UNIX socket, with a slash",
            server, rc != 0 ? ", " : "", rc != 0 ? gai_strerror(rc) : "");
    }
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

/* ---- questions and answers ------------------------------------------------------------ */

/* At once: a part that is sent alone waits for the acknowledgement of the part before it. */
static bool
put(struct link *l, const char *text)
{
    size_t len = strlen(text);
    if (l->fd < 0) {
        return false; /* why is known */
    }
    l->deadline = clock_now() + l->timeout;
    for (size_t sent = 0; sent < len;) {
        if (!limit_wait(l, SO_SNDTIMEO)) {
            return false;
        }
        ssize_t n = send(l->fd, text + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            l->is_closed = errno == EPIPE || errno == ECONNRESET;
            return fail(l, "%s does not take a command: %s", l->server, strerror(errno));
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

enum outcome
link_no_line(struct link *l)
{
    return link_explain(l, USAGE,
                        "a command has less than %d bytes, and no line end in it",
                        OPTIONS_LINE_MAX);
}

bool
link_ask(struct link *l, const char *question)
{
    char line[LINK_WHY_MAX];
    int len = snprintf(line, sizeof line, "%s\r\n", question);
    must(len >= 0 && (size_t)len < sizeof line &&
         strcspn(line, "\r\n") + 2 == (size_t)len);
    l->asked++;
    return put(l, line);
}

static bool
fill(struct link *l)
{
    while (limit_wait(l, SO_RCVTIMEO)) {
        ssize_t n = recv(l->fd, l->buf + l->len, sizeof l->buf - l->len, 0);
        if (n > 0) {
            l->len += (size_t)n;
            l->has_answered = true;
            return true;
        }
        l->is_closed = n == 0 || errno == ECONNRESET;
        if (n == 0) {
            return fail(l, "%s closed the connection before the end of its answer%s",
                        l->server,
                        l->has_answered ? ""
                                        : " (a port for TLS? ask on one without, such as "
                                          "-l notls:127.0.0.1:11212)");
        }
        if (errno != EAGAIN && errno != EINTR) {
            return fail(l, "%s does not answer: %s", l->server, strerror(errno));
        }
    }
    return false;
}

char *
link_clean(char *text, size_t len)
{
    for (char *p = text; p < text + len; p++) {
        *p = *p < ' ' || *p > '~' ? '?' : *p;
    }
    return text;
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
            end -= end > line && end[-1] == '\r';
            *end = '\0';
            return link_clean(line, (size_t)(end - line));
        }
        searched = l->len - l->at;
        memmove(l->buf, l->buf + l->at, searched);
        l->len = searched;
        l->at = 0;
        bool has_more =
            l->len < sizeof l->buf
                ? fill(l)
                : fail(l,
                       "%s answers with a line of more than %d bytes: it is no memcached",
                       l->server, LINK_LINE_MAX);
        if (!has_more) {
            break;
        }
    }
    return NULL;
}

char *
link_word(struct link *l, const char *question)
{
    return link_ask(l, question) ? link_line(l) : NULL;
}

/* The address of one end, as text. */
static bool
name_of(const struct link *l, int (*ask)(int, struct sockaddr *, socklen_t *),
        char host[NI_MAXHOST])
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    return ask(l->fd, (struct sockaddr *)&address, &len) == 0 &&
           getnameinfo((struct sockaddr *)&address, len, host, NI_MAXHOST, NULL, 0,
                       NI_NUMERICHOST) == 0;
}

bool
link_is_local(const struct link *l)
{
    char here[NI_MAXHOST], there[NI_MAXHOST];
    return strchr(l->server, '/') != NULL ||
           (name_of(l, getsockname, here) && name_of(l, getpeername, there) &&
            (strcmp(here, there) == 0 || strncmp(there, "127.", strlen("127.")) == 0));
}

enum outcome
link_refused(struct link *l, const char *question, const char *answer)
{
    const char *server = l->server, *refusal = answer + strlen("CLIENT_ERROR ");
    if (strcmp(answer, UNAUTHENTICATED) == 0) {
        return link_explain(
            l, REFUSED,
            "%s wants a password (-Y): --auth-file=FILE, whose first line "
            "is USER:PASSWORD; statistics are on the listener of --admin, "
            "too",
            server);
    }
    if (strncmp(answer, "CLIENT_ERROR ", strlen("CLIENT_ERROR ")) == 0) {
        return link_explain(l, REFUSED, "%s refuses \"%s\": %.*s", server, question,
                            SHOWN_MAX * 3, refusal);
    }
    if (strcmp(answer, "ERROR") == 0) {
        return link_explain(
            l, REFUSED,
            "%s does not know \"%s\": it is not memcached-qos, or too old "
            "for this mcqos",
            server, question);
    }
    return link_explain(l, REFUSED, "%s answers \"%s\" with: %.*s", server, question,
                        SHOWN_MAX, answer);
}

/* ---- opening -------------------------------------------------------------------------- */

/* With the first line of the file. A server that asks for no password gets none: to it, this would
 * be an item to store. */
static enum outcome
authenticate(struct link *l, const char *path)
{
    char user[LINK_WHY_MAX], login[LINK_WHY_MAX + 64];
    const char *answer = link_word(l, "version");
    if (answer == NULL || strcmp(answer, UNAUTHENTICATED) != 0) {
        return answer != NULL ? DONE : UNREACHABLE;
    }
    l->asked--; /* this is of another class */
    char *colon = file_read_line(path, user, sizeof user) ? strchr(user, ':') : NULL;
    if (colon == NULL) {
        return link_explain(l, USAGE,
                            "%s wants a password, and %s has none: its first line is "
                            "USER:PASSWORD, as in the file of -Y",
                            l->server, path);
    }
    *colon = ' ';
    size_t len = strlen(user);
    len -= user[len - 1] == '\r';
    snprintf(login, sizeof login, "set mcqos 0 0 %zu\r\n%.*s\r\n", len, (int)len, user);
    answer = put(l, login) ? link_line(l) : NULL;
    l->login_asked += 2;
    return answer == NULL                  ? UNREACHABLE
           : strcmp(answer, "STORED") == 0 ? DONE
                                           : link_refused(l, path, answer);
}

enum outcome
link_open(struct link *l, const struct options *o)
{
    l->fd = -1;
    l->server = o->server;
    l->timeout = clock_seconds(o->timeout);
    l->deadline = clock_now() + l->timeout;
    l->has_answered = l->is_closed = false;
    l->len = l->at = 0;
    l->why[0] = '\0';
    bool is_open = strchr(o->server, '/') != NULL ? open_path(l, o->server)
                                                  : open_host(l, o->server);
    enum outcome outcome = !is_open               ? UNREACHABLE
                           : o->auth_file == NULL ? DONE
                                                  : authenticate(l, o->auth_file);
    if (outcome != DONE) {
        link_close(l);
    }
    return outcome;
}
