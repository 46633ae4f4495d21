/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "net/addr.h"
#include "net/worker.h"

#define ACCEPTS_PER_EVENT 64
#define RESUME_MS 10 /* how often a paused listener looks whether it may go on */
#define HOST_MAX 256

static const char refusal[] = "ERROR Too many open connections\r\n";

/* ---- accepting ------------------------------------------------------------------------ */

static void
pause_accepting(struct listen *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        event_del(&l->list[i]->event);
    }
    l->is_paused = true;
    l->paused_at = clock_now();
    ctr_add(&l->disabled_times, 1);
    atomic_store_explicit(&l->is_accepting, false, memory_order_relaxed);
    struct timeval delay = {.tv_usec = RESUME_MS * 1000};
    must(event_add(&l->resume_event, &delay) == 0);
}

static bool
is_full(const struct listen *l)
{
    return atomic_load_explicit(&l->shared->open_conns, memory_order_relaxed) >=
           l->conf.max_conns;
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct listen *l = arg;
    if (is_full(l)) {
        struct timeval delay = {.tv_usec = RESUME_MS * 1000};
        must(event_add(&l->resume_event, &delay) == 0);
        return;
    }
    l->is_paused = false;
    ctr_add(&l->disabled_us, (clock_now() - l->paused_at) / NSEC_PER_USEC);
    atomic_store_explicit(&l->is_accepting, true, memory_order_relaxed);
    for (unsigned i = 0; i < l->count; i++) {
        must(event_add(&l->list[i]->event, NULL) == 0);
    }
}

static void
reject(struct listen *l, int fd)
{
    /* A full socket buffer on a fresh connection cannot happen; a vanished peer can. */
    if (send(fd, refusal, sizeof refusal - 1, MSG_NOSIGNAL) < 0) {
        log_write(LOG_DEBUG, "<%d refused connection went away: %s", fd, strerror(errno));
    }
    close(fd);
    ctr_add(&l->rejected, 1);
}

static void
hand_over(struct listen *l, const struct listener *from, int fd)
{
    struct handoff *handoff = malloc(sizeof *handoff);
    if (handoff == NULL) {
        reject(l, fd);
        return;
    }
    handoff->fd = fd;
    handoff->listen_addr = from->entry.addr;
    atomic_fetch_add(&l->shared->open_conns, 1);
    ctr_add(&l->shared->total_conns, 1);
    struct worker *w = &l->workers[l->next_worker];
    l->next_worker = (l->next_worker + 1) % l->worker_count;
    worker_give(w, handoff);
}

/* True when another connection may be waiting. */
static bool
accept_one(struct listener *from)
{
    struct listen *l = from->owner;
    if (!l->conf.rejects_fast && is_full(l)) {
        pause_accepting(l);
        return false;
    }
    int fd = accept4(from->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        if (is_full(l)) {
            reject(l, fd);
        } else {
            hand_over(l, from, fd);
        }
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return false;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        static struct log_rate rate;
        log_write_limited(LOG_WARNING, &rate, clock_now(),
                          "too many open connections: %s", strerror(errno));
        pause_accepting(l);
        return false;
    }
    return true; /* this one went away before it was accepted */
}

static void
on_connection(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    for (int i = 0; i < ACCEPTS_PER_EVENT && accept_one(arg); i++) {
    }
}

/* ---- opening -------------------------------------------------------------------------- */

static bool
add_listener(struct listen *l, int fd)
{
    struct listener *one = calloc(1, sizeof *one);
    struct listener **list = realloc(l->list, (l->count + 1) * sizeof *list);
    if (list != NULL) {
        l->list = list;
    }
    if (one == NULL || list == NULL) {
        free(one);
        return false;
    }
    one->fd = fd;
    one->owner = l;
    one->entry.fd = fd;
    atomic_init(&one->entry.state, REGISTRY_LISTENING);
    atomic_init(&one->entry.last_cmd, clock_rel(clock_now()));
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    addr_format((struct sockaddr *)&addr, len, one->entry.addr, sizeof one->entry.addr);
    if (!registry_add(&l->shared->registry, &one->entry)) {
        free(one);
        return false;
    }
    l->list[l->count++] = one;
    return true;
}

static void
set_tcp_options(int fd, int family)
{
    /* Accepted sockets inherit these. None is essential, so a refusal is not an error. */
    int one = 1;
    struct linger linger = {0, 0};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    }
}

/* Binds one resolved address. 0, or the errno. */
static int
open_address(struct listen *l, const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    set_tcp_options(fd, ai->ai_family);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, l->conf.backlog) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    if (!add_listener(l, fd)) {
        close(fd);
        return ENOMEM;
    }
    return 0;
}

/* Opens all addresses of a host (NULL: any). An address in use is tolerated when another of
 * the same host could be bound; a family that the machine does not have is passed over. */
static bool
open_host(struct listen *l, const char *host, int port, char *err, size_t err_len)
{
    char service[8];
    struct addrinfo hints = {
        .ai_flags = AI_PASSIVE, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    snprintf(service, sizeof service, "%d", port == LISTEN_PORT_ANY ? 0 : port);
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0) {
        snprintf(err, err_len, "failed to listen on %s: %s", host != NULL ? host : "*",
                 gai_strerror(rc));
        return false;
    }
    unsigned opened = 0;
    int error = 0;
    for (const struct addrinfo *ai = found; ai != NULL; ai = ai->ai_next) {
        int e = open_address(l, ai);
        if (e == 0) {
            opened++;
        } else if (e != EAFNOSUPPORT && e != EADDRNOTAVAIL) {
            error = e;
            if (e != EADDRINUSE) {
                opened = 0;
                break;
            }
        } else if (error == 0) {
            error = e;
        }
    }
    freeaddrinfo(found);
    if (opened == 0) {
        snprintf(err, err_len, "failed to listen on TCP port %s: %s", service,
                 strerror(error));
    }
    return opened > 0;
}

/* Splits "host", "host:port", "[v6]", "[v6]:port" or a bare v6 address. */
static bool
split_element(const char *text, size_t len, char host[HOST_MAX], int *port)
{
    const char *end = text + len;
    const char *host_end = end;
    const char *port_text = NULL;
    if (len > 0 && text[0] == '[') {
        host_end = memchr(text, ']', len);
        if (host_end == NULL || (host_end + 1 < end && host_end[1] != ':')) {
            return false;
        }
        text++;
        port_text = host_end + 1 < end ? host_end + 2 : NULL;
    } else {
        const char *first = memchr(text, ':', len);
        if (first != NULL && memrchr(text, ':', len) == first) {
            host_end = first;
            port_text = first + 1;
        }
    }
    uint32_t number;
    if (port_text != NULL) {
        if (!num_u32(port_text, (size_t)(end - port_text), &number) ||
            number > UINT16_MAX) {
            return false;
        }
        *port = (int)number;
    }
    if (host_end == text || host_end - text >= HOST_MAX) {
        return false;
    }
    memcpy(host, text, (size_t)(host_end - text));
    host[host_end - text] = '\0';
    return true;
}

static bool
open_tcp(struct listen *l, char *err, size_t err_len)
{
    const char *p = l->conf.addresses;
    if (p == NULL) {
        return l->conf.port == LISTEN_PORT_OFF ||
               open_host(l, NULL, l->conf.port, err, err_len);
    }
    while (*p != '\0') {
        size_t len = strcspn(p, ",;");
        char host[HOST_MAX];
        int port = l->conf.port;
        if (!split_element(p, len, host, &port)) {
            snprintf(err, err_len, "not an address to listen on: \"%.*s\"", (int)len, p);
            return false;
        }
        if (port != LISTEN_PORT_OFF &&
            !open_host(l, strcmp(host, "*") == 0 ? NULL : host, port, err, err_len)) {
            return false;
        }
        p += len;
        p += *p != '\0';
    }
    return true;
}

static bool
open_unix(struct listen *l, char *err, size_t err_len)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *path = l->conf.socket_path;
    if (strlen(path) >= sizeof addr.sun_path) {
        snprintf(err, err_len, "failed to listen on UNIX socket: path is too long: %s",
                 path);
        return false;
    }
    memcpy(addr.sun_path, path, strlen(path) + 1);
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        unlink(path); /* left by an earlier run; bind says so if it cannot be removed */
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t old_mask = umask(~(mode_t)l->conf.socket_mode & 0777);
    bool is_bound = fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    int error = errno;
    umask(old_mask);
    if (!is_bound || listen(fd, l->conf.backlog) != 0 || !add_listener(l, fd)) {
        snprintf(err, err_len, "failed to listen on UNIX socket: %s: %s", path,
                 strerror(is_bound ? errno : error));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    if (lstat(path, &st) == 0) {
        l->socket_dev = st.st_dev;
        l->socket_ino = st.st_ino;
    }
    return true;
}

static void
remove_socket_file(const struct listen *l)
{
    struct stat st;
    const char *path = l->conf.socket_path;
    if (lstat(path, &st) == 0 && st.st_dev == l->socket_dev &&
        st.st_ino == l->socket_ino) {
        unlink(path);
    }
}

/* "TCP INET: 11211" a line, written under another name first so that a reader sees all. */
static bool
write_port_file(const struct listen *l, char *err, size_t err_len)
{
    char temporary[4096];
    const char *path = l->conf.port_file;
    int fd = -1;
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.lck", path) <
        sizeof temporary) {
        fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    }
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool is_written = file != NULL;
    for (unsigned i = 0; is_written && i < l->count; i++) {
        struct sockaddr_storage addr;
        socklen_t len = sizeof addr;
        must(getsockname(l->list[i]->fd, (struct sockaddr *)&addr, &len) == 0);
        if (addr.ss_family == AF_INET || addr.ss_family == AF_INET6) {
            bool is_v6 = addr.ss_family == AF_INET6;
            unsigned port = is_v6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                                  : ((struct sockaddr_in *)&addr)->sin_port;
            is_written = fprintf(file, "TCP %s: %u\n", is_v6 ? "INET6" : "INET",
                                 ntohs((uint16_t)port)) > 0;
        }
    }
    if (file == NULL || fclose(file) != 0 || !is_written ||
        rename(temporary, path) != 0) {
        snprintf(err, err_len, "failed to write the port file %s: %s", path,
                 strerror(errno));
        return false;
    }
    return true;
}

bool
listen_open(struct listen *l, const struct listen_conf *conf, struct net_shared *shared,
            char *err, size_t err_len)
{
    *l = (struct listen){.conf = *conf, .shared = shared};
    atomic_init(&l->is_accepting, true);
    bool is_open = conf->socket_path != NULL ? open_unix(l, err, err_len)
                                             : open_tcp(l, err, err_len);
    if (is_open && l->count == 0) {
        log_write(LOG_WARNING, "memcached: warning: listening nowhere (port 0)");
    }
    return is_open && (conf->port_file == NULL || write_port_file(l, err, err_len));
}

void
listen_start(struct listen *l, struct event_base *base, struct worker *workers,
             unsigned count)
{
    l->base = base;
    l->workers = workers;
    l->worker_count = count;
    must(evtimer_assign(&l->resume_event, base, on_resume, l) == 0);
    for (unsigned i = 0; i < l->count; i++) {
        struct listener *one = l->list[i];
        must(event_assign(&one->event, base, one->fd, EV_READ | EV_PERSIST, on_connection,
                          one) == 0);
        must(event_add(&one->event, NULL) == 0);
    }
}

void
listen_close(struct listen *l)
{
    if (l->is_closed) {
        return;
    }
    l->is_closed = true;
    atomic_store_explicit(&l->is_accepting, false, memory_order_relaxed);
    for (unsigned i = 0; i < l->count; i++) {
        struct listener *one = l->list[i];
        if (l->base != NULL) {
            event_del(&one->event);
        }
        registry_remove(&l->shared->registry, &one->entry);
        close(one->fd);
    }
    if (l->base != NULL) {
        event_del(&l->resume_event);
    }
    if (l->conf.socket_path != NULL && l->count > 0) {
        remove_socket_file(l);
    }
}

void
listen_fini(struct listen *l)
{
    listen_close(l);
    for (unsigned i = 0; i < l->count; i++) {
        free(l->list[i]); /* connections name their listener's address until they end */
    }
    free(l->list);
}
