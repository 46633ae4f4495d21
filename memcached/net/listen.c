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
#include "net/addr.h"
#include "net/worker.h"

#define ACCEPTS_PER_EVENT 64
#define RESUME_MS 10 /* how often a paused listener looks whether it may go on */

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
hand_over(struct listen *l, const struct listener *from, int fd, const struct peer *peer)
{
    struct handoff *handoff = malloc(sizeof *handoff);
    if (handoff == NULL) {
        reject(l, fd);
        return;
    }
    handoff->fd = fd;
    handoff->listen_addr = from->entry.addr;
    handoff->tag = from->tag;
    handoff->binding = from->binding;
    handoff->declared = from->declared;
    handoff->peer = *peer;
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
    struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof addr;
    int fd =
        accept4(from->fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        if (is_full(l)) {
            reject(l, fd);
        } else {
            struct peer peer =
                addr_peer((struct sockaddr *)&addr, len, l->shared->peer_seed);
            hand_over(l, from, fd, &peer);
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
add_listener(struct listen *l, int fd, const struct hosts_element *element)
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
    one->binding = element->binding;
    one->declared = CLASS_NONE;
    memcpy(one->tag, element->tag, sizeof one->tag);
    one->entry.fd = fd;
    atomic_init(&one->entry.state, REGISTRY_LISTENING);
    atomic_init(&one->entry.last_cmd, clock_rel(clock_now()));
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    addr_format("tcp", (struct sockaddr *)&addr, len, one->entry.addr,
                sizeof one->entry.addr);
    if (!registry_add(&l->shared->registry, &one->entry)) {
        free(one);
        return false;
    }
    l->list[l->count++] = one;
    return true;
}

static int
port_to_bind(int port)
{
    return port == LISTEN_PORT_ANY ? 0 : port;
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
open_address(void *ctx, const struct addrinfo *ai, const struct hosts_element *element)
{
    struct listen *l = ctx;
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
    if (!add_listener(l, fd, element)) {
        close(fd);
        return ENOMEM;
    }
    return 0;
}

static int
open_udp_address(void *ctx, const struct addrinfo *ai,
                 const struct hosts_element *element)
{
    struct listen *l = ctx;
    (void)element;
    return udp_bind(&l->shared->udp, ai);
}

static bool
open_network(struct listen *l, char *err, size_t err_len)
{
    struct hosts_ask ask = {.list = l->conf.addresses,
                            .has_prefixes = l->conf.has_prefixes,
                            .port = port_to_bind(l->conf.port),
                            .socket_type = SOCK_STREAM,
                            .protocol = "TCP",
                            .bind = open_address,
                            .ctx = l};
    if (l->conf.port != LISTEN_PORT_OFF && !hosts_bind(&ask, err, err_len)) {
        return false;
    }
    ask.port = port_to_bind(l->conf.udp_port);
    ask.socket_type = SOCK_DGRAM;
    ask.protocol = "UDP";
    ask.bind = open_udp_address;
    if (l->conf.udp_port != LISTEN_PORT_OFF && !hosts_bind(&ask, err, err_len)) {
        return false;
    }
    /* They count like connections that never end. */
    ctr_add(&l->shared->total_conns, l->shared->udp.addresses * l->shared->udp.workers);
    return true;
}

static bool
open_unix(struct listen *l, char *err, size_t err_len)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct hosts_element element = {.binding = BINDING_DEFAULT};
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
    if (!is_bound || listen(fd, l->conf.backlog) != 0 || !add_listener(l, fd, &element)) {
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

static bool
write_port(FILE *file, const char *protocol, int fd)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    if (addr.ss_family != AF_INET && addr.ss_family != AF_INET6) {
        return true;
    }
    bool is_v6 = addr.ss_family == AF_INET6;
    unsigned port = is_v6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                          : ((struct sockaddr_in *)&addr)->sin_port;
    return fprintf(file, "%s %s: %u\n", protocol, is_v6 ? "INET6" : "INET",
                   ntohs((uint16_t)port)) > 0;
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
        is_written = write_port(file, "TCP", l->list[i]->fd);
    }
    const struct udp_sockets *udp = &l->shared->udp;
    for (unsigned i = 0; is_written && i < udp->addresses; i++) {
        is_written = write_port(file, "UDP", udp->fds[i * udp->workers]);
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
                                             : open_network(l, err, err_len);
    if (is_open && l->count == 0 && shared->udp.addresses == 0) {
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
