/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/http.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/text_out.h"
#include "front/settings.h"
#include "net/hosts.h"
#include "sock/addr.h"
#include "sock/unix_listen.h"

#define BACKLOG 128
#define LISTENERS_MAX 8 /* addresses of one name */
#define HEAD_MAX 1024

enum client_state {
    CLIENT_FREE,
    CLIENT_READS,  /* its request is read */
    CLIENT_WRITES, /* its reply is written */
    CLIENT_LEAVES, /* it has all, and what it still sends is thrown away */
};

struct client {
    struct http *server;
    enum client_state state;
    int fd;
    struct event event;
    nsec_t idle_at, ends_at; /* it is closed at the earlier of the two */
    size_t len;
    char in[HTTP_HEADER_BYTES + 1];
    char head[HEAD_MAX];
    char *content;
    size_t head_len, content_len, sent;
};

struct http {
    struct event_base *base;
    http_handler *handle;
    void *ctx;
    struct unix_file file; /* path NULL: there is none */
    bool is_remote;
    bool is_paused; /* nothing is accepted */
    unsigned listeners;
    struct listening {
        int fd;
        struct event event;
    } listening[LISTENERS_MAX];
    struct event tick;
    struct client clients[HTTP_CONNECTIONS];
};

/* ---- accepting ------------------------------------------------------------------------ */

static void
pause_accepting(struct http *h)
{
    h->is_paused = true;
    for (unsigned i = 0; i < h->listeners; i++) {
        event_del(&h->listening[i].event);
    }
}

/* What cannot be had now is tried again at the next tick. */
static void
resume_accepting(struct http *h)
{
    bool is_good = true;
    for (unsigned i = 0; h->is_paused && i < h->listeners; i++) {
        is_good = event_add(&h->listening[i].event, NULL) == 0 && is_good;
    }
    h->is_paused = h->is_paused && !is_good;
}

static void
close_client(struct client *c)
{
    event_del(&c->event);
    close(c->fd);
    free(c->content);
    c->content = NULL;
    c->state = CLIENT_FREE;
    resume_accepting(c->server);
}

static void on_client(evutil_socket_t fd, short what, void *arg);

/* Waits for what it can do next; there is nothing else to be done if that fails. */
static void
await(struct client *c, enum client_state state, short what)
{
    c->state = state;
    if (event_initialized(&c->event)) {
        event_del(&c->event);
    }
    if (event_assign(&c->event, c->server->base, c->fd, (short)(what | EV_PERSIST),
                     on_client, c) != 0 ||
        event_add(&c->event, NULL) != 0) {
        close_client(c);
    }
}

/* One that is free. If all are in use, the oldest is closed: slow clients do not keep others
 * out. */
static struct client *
free_client(struct http *h)
{
    struct client *oldest = h->clients;
    for (struct client *c = h->clients; c < h->clients + HTTP_CONNECTIONS; c++) {
        if (c->state == CLIENT_FREE) {
            return c;
        }
        oldest = c->ends_at < oldest->ends_at ? c : oldest;
    }
    close_client(oldest);
    return oldest;
}

static void
stay(struct client *c)
{
    c->idle_at = clock_now() + HTTP_IDLE_SECONDS * NSEC_PER_SEC;
}

static void
on_connection(evutil_socket_t fd, short what, void *arg)
{
    struct http *h = arg;
    int its = accept4((int)fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    (void)what;
    if (its >= 0) {
        struct client *c = free_client(h);
        c->server = h;
        c->fd = its;
        c->len = 0;
        c->ends_at = clock_now() + HTTP_CONNECTION_SECONDS * NSEC_PER_SEC;
        stay(c);
        await(c, CLIENT_READS, EV_READ);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
        static struct log_rate rate;
        log_write_limited(LOG_WARNING, &rate, clock_now(), "memcached: --admin: %s",
                          strerror(errno));
        pause_accepting(h);
    }
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct http *h = arg;
    nsec_t now = clock_now();
    (void)fd;
    (void)what;
    for (struct client *c = h->clients; c < h->clients + HTTP_CONNECTIONS; c++) {
        if (c->state != CLIENT_FREE && (now >= c->idle_at || now >= c->ends_at)) {
            close_client(c);
        }
    }
    resume_accepting(h);
}

/* ---- requests ------------------------------------------------------------------------- */

/* Takes the text up to `end`, which becomes its '\0', off *rest. NULL: there is no such end. */
static char *
take_until(char **rest, const char *end)
{
    char *text = *rest;
    char *at = strstr(text, end);
    if (at == NULL) {
        return NULL;
    }
    *at = '\0';
    *rest = at + strlen(end);
    return text;
}

/* "%2C" becomes ',', in place; what is no escape, or that of '\0', stays. */
static char *
unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        const char hex[] = {p[1], p[1] != '\0' ? p[2] : '\0', '\0'};
        bool is_escape = *p == '%' && strspn(hex, "0123456789abcdefABCDEF") == 2;
        unsigned long byte = is_escape ? strtoul(hex, NULL, 16) : 0;
        *to++ = byte != 0 ? (char)byte : *p;
        p += byte != 0 ? strlen(hex) : 0;
    }
    *to = '\0';
    return text;
}

const char *
http_parameter(struct http_exchange *x, const char *name)
{
    while (x->query != NULL) {
        char *value = strsep(&x->query, "&");
        if (strcmp(strsep(&value, "="), name) == 0) {
            return value != NULL ? unescape(value) : "";
        }
    }
    return NULL;
}

/* "/path?query", or the same behind "http://host", where an empty path is "/". False: it is neither. */
static bool
parse_target(char *target, struct http_exchange *x)
{
    static const char scheme[] = "http://";
    bool has_host = strncasecmp(target, scheme, strlen(scheme)) == 0;
    if (has_host) {
        const char *host = target + strlen(scheme);
        target += strlen(scheme) + strcspn(host, "/?");
        if (target == host) {
            return false;
        }
    }
    if (!has_host && *target != '/') {
        return false;
    }
    x->query = target;
    char *path = strsep(&x->query, "?");
    x->path = *path != '\0' ? unescape(path) : "/";
    return true;
}

static void
parse_headers(char *rest, struct http_exchange *x)
{
    for (char *line; (line = take_until(&rest, "\r\n")) != NULL && *line != '\0';) {
        const char *name = take_until(&line, ":");
        if (name != NULL && strcasecmp(name, "Accept") == 0) {
            x->accept = line + strspn(line, " \t");
        }
    }
}

/* Parses a request, which ends in an empty line. The status: HTTP_OK, or why it is refused. */
static int
parse(char *text, struct http_exchange *x, bool *is_head)
{
    char *line = take_until(&text, "\r\n");
    const char *method = line != NULL ? take_until(&line, " ") : NULL;
    char *target = method != NULL ? take_until(&line, " ") : NULL;
    bool is_http = target != NULL && strncmp(line, "HTTP/1.", strlen("HTTP/1.")) == 0;
    *is_head = is_http && strcmp(method, "HEAD") == 0;
    if (!is_http) {
        return HTTP_BADREQUEST;
    }
    if (!*is_head && strcmp(method, "GET") != 0) {
        return HTTP_BADMETHOD;
    }
    if (!parse_target(target, x)) {
        return HTTP_BADREQUEST;
    }
    parse_headers(text, x);
    return HTTP_OK;
}

static const char *
reason_of(int status)
{
    switch (status) {
    case HTTP_OK:
        return "OK";
    case HTTP_BADREQUEST:
        return "Bad Request";
    case HTTP_NOTFOUND:
        return "Not Found";
    case HTTP_BADMETHOD:
        return "Method Not Allowed";
    case HTTP_TOO_LONG:
        return "Request Header Fields Too Large";
    case HTTP_SERVUNAVAIL:
        return "Service Unavailable";
    default:
        unreachable();
    }
}

static void
refuse(struct http_exchange *x, int status)
{
    x->status = status;
    fputs(status == HTTP_BADMETHOD  ? "only GET and HEAD: nothing can be changed here\n"
          : status == HTTP_TOO_LONG ? "the request is too long\n"
                                    : "this is not a request of HTTP/1.x\n",
          x->out);
}

static void
make_head(struct client *c, const struct http_exchange *x)
{
    char date[64];
    struct tm tm;
    time_t now = time(NULL);
    must(gmtime_r(&now, &tm) != NULL &&
         strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
    int len =
        snprintf(c->head, sizeof c->head,
                 "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n"
                 "Content-Length: %zu\r\nCache-Control: no-store\r\n"
                 "Vary: Accept\r\nX-Content-Type-Options: nosniff\r\n"
                 "Content-Security-Policy: %s\r\n%sConnection: close\r\n\r\n",
                 x->status, reason_of(x->status), date, x->type, c->content_len,
                 x->policy, x->status == HTTP_BADMETHOD ? "Allow: GET, HEAD\r\n" : "");
    must(len > 0 && (size_t)len < sizeof c->head);
    c->head_len = (size_t)len;
}

/* The reply to a request of this status so far. */
static void
make_reply(struct client *c, struct http_exchange *x, bool is_head)
{
    struct text_out out;
    bool is_whole = text_out_open(&out);
    if (is_whole) {
        x->out = out.file;
        if (x->status == HTTP_OK) {
            c->server->handle(c->server->ctx, x);
        } else {
            refuse(x, x->status);
        }
        is_whole = text_out_close(&out) && !x->has_failed;
    }
    c->content = out.bytes;
    c->content_len = is_whole ? out.len : 0;
    c->sent = 0;
    x->status = is_whole ? x->status : HTTP_SERVUNAVAIL; /* no memory */
    make_head(c, x);
    if (is_head) {
        c->content_len = 0;
    }
}

/* ---- a client ------------------------------------------------------------------------- */

/* Writes what the socket takes. */
static void
write_reply(struct client *c)
{
    size_t total = c->head_len + c->content_len;
    while (c->sent < total) {
        bool is_head = c->sent < c->head_len;
        const char *from =
            is_head ? c->head + c->sent : c->content + c->sent - c->head_len;
        ssize_t n = send(c->fd, from, (is_head ? c->head_len : total) - c->sent,
                         MSG_NOSIGNAL | (is_head ? MSG_MORE : 0));
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            await(c, CLIENT_WRITES, EV_WRITE);
            return;
        }
        if (n < 0 && errno != EINTR) {
            close_client(c);
            return;
        }
        c->sent += n > 0 ? (size_t)n : 0;
        stay(c);
    }
    /* A socket that is closed before it has been emptied takes the reply back. */
    shutdown(c->fd, SHUT_WR);
    await(c, CLIENT_LEAVES, EV_READ);
}

static void
answer(struct client *c, int status)
{
    struct http_exchange x = {
        .status = status, .type = HTTP_PLAIN, .policy = HTTP_LOAD_NOTHING};
    bool is_head = false;
    if (status == HTTP_OK) {
        x.status = parse(c->in, &x, &is_head);
    }
    make_reply(c, &x, is_head);
    write_reply(c);
}

static void
read_request(struct client *c)
{
    ssize_t n = recv(c->fd, c->in + c->len, HTTP_HEADER_BYTES - c->len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        close_client(c);
        return;
    }
    stay(c);
    c->len += (size_t)n;
    c->in[c->len] = '\0';
    if (strlen(c->in) != c->len) {
        answer(c, HTTP_BADREQUEST);
    } else if (strstr(c->in, "\r\n\r\n") != NULL) {
        answer(c, HTTP_OK);
    } else if (c->len == HTTP_HEADER_BYTES) {
        answer(c, HTTP_TOO_LONG);
    }
}

static void
drain(struct client *c)
{
    ssize_t n = recv(c->fd, c->in, sizeof c->in, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        close_client(c);
    }
}

static void
on_client(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd;
    (void)what;
    switch (c->state) {
    case CLIENT_READS:
        read_request(c);
        break;
    case CLIENT_WRITES:
        write_reply(c);
        break;
    case CLIENT_LEAVES:
        drain(c);
        break;
    case CLIENT_FREE:
        unreachable();
    }
}

/* ---- life ----------------------------------------------------------------------------- */

/* Takes the descriptor. 0, or the errno. */
static int
listen_on(struct http *h, int fd)
{
    struct listening *l = &h->listening[h->listeners];
    if (h->listeners == LISTENERS_MAX ||
        event_assign(&l->event, h->base, fd, EV_READ | EV_PERSIST, on_connection, h) !=
            0 ||
        event_add(&l->event, NULL) != 0) {
        close(fd);
        return ENOMEM;
    }
    l->fd = fd;
    h->listeners++;
    return 0;
}

static void
tell_address(int fd)
{
    char text[128];
    addr_format_own("tcp", fd, text, sizeof text);
    log_write(LOG_INFO, "memcached: HTTP on %s", text);
}

static int
bind_address(void *ctx, const struct addrinfo *ai, const struct hosts_element *element)
{
    struct http *h = ctx;
    int one = 1;
    (void)element;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (ai->ai_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    }
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    struct peer self = addr_peer(ai->ai_addr, ai->ai_addrlen, 0);
    h->is_remote |= !addr_is_local(&self);
    tell_address(fd);
    return listen_on(h, fd);
}

static bool
bind_all(struct http *h, const char *where, unsigned socket_mode, char *err,
         size_t err_len)
{
    size_t prefix = strlen(SETTINGS_ADMIN_UNIX);
    if (strncmp(where, SETTINGS_ADMIN_UNIX, prefix) != 0) {
        struct hosts_spec ask = {.list = where,
                                 .socket_type = SOCK_STREAM,
                                 .protocol = "TCP",
                                 .bind = bind_address,
                                 .ctx = h};
        return hosts_bind(&ask, err, err_len);
    }
    int fd = unix_listen(where + prefix, socket_mode, BACKLOG, "--admin", &h->file, err,
                         err_len);
    if (fd < 0) {
        h->file.path = NULL;
        return false;
    }
    if (listen_on(h, fd) != 0) {
        return fail_because(err, err_len, "out of memory");
    }
    return true;
}

struct http *
http_open(struct event_base *base, const char *where, unsigned socket_mode,
          http_handler *handle, void *ctx, char *err, size_t err_len)
{
    struct timeval second = {.tv_sec = 1};
    struct http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        snprintf(err, err_len, "out of memory");
        return NULL;
    }
    h->base = base;
    h->handle = handle;
    h->ctx = ctx;
    must(event_assign(&h->tick, base, -1, EV_PERSIST, on_tick, h) == 0);
    if (event_add(&h->tick, &second) != 0) {
        snprintf(err, err_len, "out of memory");
        http_close(&h);
    } else if (!bind_all(h, where, socket_mode, err, err_len)) {
        http_close(&h);
    }
    return h;
}

bool
http_is_remote(const struct http *h)
{
    return h->is_remote;
}

void
http_close(struct http **h)
{
    struct http *self = *h;
    *h = NULL;
    self->is_paused = false; /* it does not accept any more */
    for (struct client *c = self->clients; c < self->clients + HTTP_CONNECTIONS; c++) {
        if (c->state != CLIENT_FREE) {
            close_client(c);
        }
    }
    for (unsigned i = 0; i < self->listeners; i++) {
        event_del(&self->listening[i].event);
        close(self->listening[i].fd);
    }
    event_del(&self->tick);
    if (self->file.path != NULL) {
        unix_remove(&self->file);
    }
    free(self);
}
