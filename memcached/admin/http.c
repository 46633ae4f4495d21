/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "front/settings.h"
#include "net/hosts.h"
#include "sock/addr.h"
#include "sock/unix_listen.h"

#define BACKLOG 128
#define LOOK_MS 20 /* how often connections are looked at, while there are any */
#define ALL_METHODS                                                                      \
    (EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |               \
     EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT |    \
     EVHTTP_REQ_PATCH)

/* libevent neither counts connections nor tells of their end. So each has a reference of ours,
 * and has ended when libevent has taken its callbacks back. */
struct place {
    struct bufferevent *bev; /* NULL: free */
    nsec_t ends_at;
};

struct http {
    struct event_base *base;
    struct evhttp *server;
    http_handler *handle;
    void *ctx;
    struct unix_file file; /* path NULL: there is none */
    bool is_remote;
    bool is_paused; /* nothing is accepted */
    unsigned used;
    struct place places[HTTP_CONNECTIONS];
    struct event look;
};

/* ---- places --------------------------------------------------------------------------- */

static void
pause_one(struct evhttp_bound_socket *bound, void *arg)
{
    const struct http *h = arg;
    struct evconnlistener *listener = evhttp_bound_socket_get_listener(bound);
    must((h->is_paused ? evconnlistener_disable(listener)
                       : evconnlistener_enable(listener)) == 0);
}

static void
set_paused(struct http *h, bool is_paused)
{
    if (h->is_paused != is_paused) {
        h->is_paused = is_paused;
        evhttp_foreach_bound_socket(h->server, pause_one, h);
    }
}

static void
look_later(struct http *h)
{
    struct timeval delay = {.tv_usec = LOOK_MS * 1000};
    must(event_add(&h->look, &delay) == 0);
}

static bool
has_ended(struct bufferevent *bev)
{
    bufferevent_event_cb on_event;
    bufferevent_getcb(bev, NULL, NULL, &on_event, NULL);
    return on_event == NULL;
}

static void
leave(struct http *h, struct place *place)
{
    bufferevent_decref(place->bev);
    place->bev = NULL;
    h->used--;
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
    struct http *h = arg;
    nsec_t now = clock_now();
    (void)fd;
    (void)what;
    for (struct place *p = h->places; p < h->places + HTTP_CONNECTIONS; p++) {
        if (p->bev != NULL && has_ended(p->bev)) {
            leave(h, p);
        } else if (p->bev != NULL && now >= p->ends_at) {
            shutdown(bufferevent_getfd(p->bev), SHUT_RDWR); /* libevent ends it */
        }
    }
    set_paused(h, h->used == HTTP_CONNECTIONS);
    if (h->used > 0) {
        look_later(h);
    }
}

static struct place *
free_place(struct http *h)
{
    for (struct place *p = h->places; p < h->places + HTTP_CONNECTIONS; p++) {
        if (p->bev == NULL) {
            return p;
        }
    }
    return NULL;
}

/* A connection comes. NULL: no memory; libevent tries, too. */
static struct bufferevent *
on_accept(struct event_base *base, void *arg)
{
    struct http *h = arg;
    struct place *place = free_place(h);
    struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (bev == NULL || place == NULL) {
        return bev;
    }
    bufferevent_incref(bev);
    *place = (struct place){bev, clock_now() + HTTP_CONNECTION_SECONDS * NSEC_PER_SEC};
    if (h->used++ == 0) {
        look_later(h);
    }
    set_paused(h, h->used == HTTP_CONNECTIONS);
    return bev;
}

static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
    static struct log_rate rate;
    struct http *h = arg;
    (void)listener;
    log_write_limited(LOG_WARNING, &rate, clock_now(), "memcached: --admin: %s",
                      strerror(errno));
    set_paused(h, true);
    look_later(h);
}

/* ---- requests ------------------------------------------------------------------------- */

static void
free_content(const void *data, size_t len, void *content)
{
    (void)data;
    (void)len;
    free(content);
}

/* The content is libevent's from here on. */
static bool
add_content(struct evbuffer *buf, char *content, size_t len, bool is_head)
{
    if (is_head || len == 0) {
        free(content);
        return true;
    }
    if (evbuffer_add_reference(buf, content, len, free_content, content) != 0) {
        free(content);
        return false;
    }
    return true;
}

static bool
add_headers(struct evhttp_request *req, const struct http_exchange *x, size_t len)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    char text[24];
    snprintf(text, sizeof text, "%zu", len);
    return evhttp_add_header(headers, "Content-Type", x->type) == 0 &&
           evhttp_add_header(headers, "Content-Length", text) == 0 &&
           evhttp_add_header(headers, "Cache-Control", "no-store") == 0 &&
           evhttp_add_header(headers, "X-Content-Type-Options", "nosniff") == 0 &&
           evhttp_add_header(headers, "Vary", "Accept") == 0 &&
           evhttp_add_header(headers, "Connection", "close") == 0 &&
           (x->status != HTTP_BADMETHOD ||
            evhttp_add_header(headers, "Allow", "GET, HEAD") == 0);
}

static void
send_reply(struct evhttp_request *req, const struct http_exchange *x, char *content,
           size_t len)
{
    struct evbuffer *buf = evbuffer_new();
    bool is_head = evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
    bool has_content = false;
    if (buf == NULL) {
        free(content);
    } else {
        has_content = add_content(buf, content, len, is_head);
    }
    if (has_content && add_headers(req, x, len)) {
        evhttp_send_reply(req, x->status, NULL, buf);
    } else {
        evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL);
    }
    if (buf != NULL) {
        evbuffer_free(buf);
    }
}

static void
answer(struct http *h, struct evhttp_request *req, struct http_exchange *x)
{
    enum evhttp_cmd_type command = evhttp_request_get_command(req);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
    if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
        x->status = HTTP_BADMETHOD;
        fputs("only GET and HEAD: nothing can be changed here\n", x->out);
        return;
    }
    x->path = path != NULL ? path : "";
    x->query = uri != NULL ? evhttp_uri_get_query(uri) : NULL;
    x->accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
    h->handle(h->ctx, x);
}

static void
on_request(struct evhttp_request *req, void *arg)
{
    char *content = NULL;
    size_t len = 0;
    struct http_exchange x = {
        .status = HTTP_OK, .type = HTTP_PLAIN, .out = open_memstream(&content, &len)};
    bool is_whole = x.out != NULL;
    if (is_whole) {
        answer(arg, req, &x);
        is_whole = !x.has_failed && ferror(x.out) == 0;
        is_whole = fclose(x.out) == 0 && is_whole;
    }
    if (is_whole) {
        send_reply(req, &x, content, len);
    } else {
        free(content);
        evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL); /* no memory */
    }
}

/* ---- life ----------------------------------------------------------------------------- */

/* Takes the descriptor. 0, or the errno. */
static int
listen_on(struct http *h, int fd)
{
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(h->server, fd);
    if (bound == NULL) {
        close(fd);
        return ENOMEM;
    }
    evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), on_accept_error);
    return 0;
}

static void
tell_address(int fd)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    char text[128];
    must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    addr_format("tcp", (struct sockaddr *)&addr, len, text, sizeof text);
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
        struct hosts_ask ask = {.list = where,
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
        snprintf(err, err_len, "out of memory");
        return false;
    }
    return true;
}

struct http *
http_open(struct event_base *base, const char *where, unsigned socket_mode,
          http_handler *handle, void *ctx, char *err, size_t err_len)
{
    struct http *h = calloc(1, sizeof *h);
    struct evhttp *server = evhttp_new(base);
    if (h == NULL || server == NULL) {
        snprintf(err, err_len, "out of memory");
        free(h);
        if (server != NULL) {
            evhttp_free(server);
        }
        return NULL;
    }
    *h = (struct http){.base = base, .server = server, .handle = handle, .ctx = ctx};
    must(evtimer_assign(&h->look, base, on_look, h) == 0);
    evhttp_set_allowed_methods(server, ALL_METHODS); /* the others get 405 */
    evhttp_set_max_headers_size(server, HTTP_HEADER_BYTES);
    evhttp_set_max_body_size(server, HTTP_BODY_BYTES);
    evhttp_set_timeout(server, HTTP_IDLE_SECONDS);
    evhttp_set_bevcb(server, on_accept, h);
    evhttp_set_gencb(server, on_request, h);
    if (!bind_all(h, where, socket_mode, err, err_len)) {
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
    evhttp_free(self->server);
    for (struct place *p = self->places; p < self->places + HTTP_CONNECTIONS; p++) {
        if (p->bev != NULL) {
            leave(self, p);
        }
    }
    event_del(&self->look);
    if (self->file.path != NULL) {
        unix_remove(&self->file);
    }
    free(self);
}
