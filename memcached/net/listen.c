/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/rng.h"
#include "net/shared.h"
#include "sock/addr.h"

#define UNSENT_BYTES 131072 /* that a connection's socket holds and has not sent */

/* ---- statistics ----------------------------------------------------------------------- */

bool
listen_is_accepting(const struct listen *l)
{
    return atomic_load_explicit(&l->is_open, memory_order_relaxed) &&
           atomic_load_explicit(&l->paused, memory_order_relaxed) == 0;
}

static void
add_steered(struct steer_sum *sum, const struct steer *s)
{
    sum->local += ctr_get(&s->local);
    sum->near += ctr_get(&s->near);
    sum->overflow += ctr_get(&s->overflow);
    sum->fallback += ctr_get(&s->fallback);
    sum->unexpected += ctr_get(&s->unexpected);
}

struct steer_sum
listen_steered(const struct listen *l)
{
    struct steer_sum sum = {0};
    add_steered(&sum, &l->main.steer);
    for (unsigned i = 0; l->members != NULL && i < l->shared->worker_count; i++) {
        add_steered(&sum, &l->members[i].steer);
    }
    return sum;
}

/* ---- opening -------------------------------------------------------------------------- */

static bool
add_listener(struct listen *l, int fd, const struct hosts_element *element,
             struct acceptor *acceptor)
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
    one->source.fd = fd;
    one->acceptor = acceptor;
    one->is_further = acceptor != &l->main && acceptor != l->members;
    one->binding = element->binding;
    one->tls = element->tls;
    one->marks = element->marks;
    memcpy(one->tag, element->tag, sizeof one->tag);
    one->entry.fd = fd;
    atomic_init(&one->entry.state, REGISTRY_LISTENING);
    atomic_init(&one->entry.last_cmd, clock_rel(clock_now()));
    addr_format_own("tcp", fd, one->addr, sizeof one->addr);
    one->entry.addr = one->addr;
    if (!registry_add(&l->shared->registry, &one->entry)) {
        free(one);
        return false;
    }
    one->next = acceptor->listeners;
    acceptor->listeners = one;
    l->list[l->count++] = one;
    l->addresses += !one->is_further;
    log_write(LOG_DEBUG, "<%d server listening on %s", fd, one->entry.addr);
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
    /* Of a bulk reply the kernel holds no more than keeps the line busy: what it holds is
     * memory that the classes do not rule. */
    int unsent = UNSENT_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one); /* for core/latency.h */
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    }
}

/* A listening socket of the group of `worker`, the first of which is bound like any other, so
 * that an address in use is noticed; from then on it lets the others join. 0, or the errno. */
static int
open_one(struct listen *l, const struct sockaddr *addr, socklen_t len,
         const struct hosts_element *element, unsigned worker)
{
    int one = 1;
    bool is_group = l->members != NULL;
    const struct steer_map *map = &l->shared->steer;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    set_tcp_options(fd, addr->sa_family);
    if ((worker > 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) ||
        bind(fd, addr, len) != 0 ||
        (is_group && !reuseport_join(fd, l->kind, steer_map_cpu(map, worker))) ||
        listen(fd, l->conf.backlog) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    if (!add_listener(l, fd, element, is_group ? &l->members[worker] : &l->main)) {
        close(fd);
        return ENOMEM;
    }
    return 0;
}

/* Binds one resolved address. 0, or the errno. */
static int
open_address(void *ctx, const struct addrinfo *ai, const struct hosts_element *element)
{
    struct listen *l = ctx;
    int error = open_one(l, ai->ai_addr, ai->ai_addrlen, element, 0);
    if (error != 0 || l->members == NULL) {
        return error;
    }
    struct sockaddr_storage addr; /* with the port that the kernel has chosen */
    socklen_t len = sizeof addr;
    int first = l->list[l->count - 1]->source.fd;
    must(getsockname(first, (struct sockaddr *)&addr, &len) == 0);
    for (unsigned i = 1; i < l->shared->worker_count && error == 0; i++) {
        error = open_one(l, (struct sockaddr *)&addr, len, element, i);
    }
    const struct steer_map *map = &l->shared->steer;
    if (error == 0 && !reuseport_seal(first, l->kind, map->cpus, map->count)) {
        error = errno;
    }
    return error;
}

static int
open_udp_address(void *ctx, const struct addrinfo *ai,
                 const struct hosts_element *element)
{
    struct listen *l = ctx;
    return udp_bind(&l->shared->udp, ai, element->marks.declared);
}

static bool
open_network(struct listen *l, char *err, size_t err_len)
{
    struct hosts_spec ask = {.list = l->conf.addresses,
                             .rules = l->conf.rules,
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
    return l->conf.udp_port == LISTEN_PORT_OFF || hosts_bind(&ask, err, err_len);
}

static bool
open_unix(struct listen *l, char *err, size_t err_len)
{
    struct hosts_element element = {
        .binding = BINDING_DEFAULT, .tls = TLS_OFF, .marks = l->conf.socket_marks};
    int fd = unix_listen(l->conf.socket_path, l->conf.socket_mode, l->conf.backlog, "-s",
                         &l->socket_file, err, err_len);
    if (fd < 0) {
        return false;
    }
    if (!add_listener(l, fd, &element, &l->main)) {
        snprintf(err, err_len, "failed to listen on UNIX socket: %s: out of memory",
                 l->conf.socket_path);
        close(fd);
        return false;
    }
    return true;
}

/* Behind its name the marks of -l may stand. */
static bool
adopt(struct listen *l, const struct inherited_socket *s, char *err, size_t err_len)
{
    bool is_tls = s->kind == INHERITED_TCP && l->conf.rules.has_tls;
    struct hosts_element element = {.binding = BINDING_DEFAULT,
                                    .tls = is_tls ? TLS_DEFAULT : TLS_OFF,
                                    .marks = {.declared = CLASS_NONE}};
    const char *marks = hosts_find_marks(s->name);
    if (!hosts_take_marks(&marks, &element.marks, err, err_len)) {
        return false;
    }
    if (*marks != '\0') {
        return fail_because(
            err, err_len,
            "behind the name of an inherited socket only ;class=NAME and ;control "
            "may stand: %s",
            s->name);
    }
    if (s->kind == INHERITED_UDP && l->shared->serve->auth != NULL) {
        return fail_because(
            err, err_len,
            "inherited descriptor %d is a UDP socket, which has no authentication "
            "(-S, -Y); hand over TCP and UNIX sockets only",
            s->fd);
    }
    int error = 0;
    if (s->kind == INHERITED_UDP) {
        error = udp_adopt(&l->shared->udp, s->fd, element.marks.declared);
    } else {
        if (s->kind == INHERITED_TCP) {
            set_tcp_options(s->fd,
                            AF_INET); /* what is of IPv6 is settled with the port */
        }
        error = add_listener(l, s->fd, &element, &l->main) ? 0 : ENOMEM;
    }
    if (error != 0) {
        snprintf(err, err_len, "failed to listen on inherited descriptor %d: %s", s->fd,
                 strerror(error));
    }
    return error == 0;
}

static bool
adopt_inherited(struct listen *l, char *err, size_t err_len)
{
    const struct inherited *in = l->conf.inherited;
    for (unsigned i = 0; i < in->count; i++) {
        if (!adopt(l, &in->list[i], err, err_len)) {
            return false;
        }
    }
    return true;
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

/* Not of UNIX sockets alone. */
static bool
has_ports(const struct listen_conf *conf)
{
    bool has_any = conf->inherited == NULL && conf->socket_path == NULL;
    for (unsigned i = 0; conf->inherited != NULL && i < conf->inherited->count; i++) {
        has_any = has_any || conf->inherited->list[i].kind != INHERITED_UNIX;
    }
    return has_any;
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
        is_written =
            l->list[i]->is_further || write_port(file, "TCP", l->list[i]->source.fd);
    }
    const struct udp_sockets *udp = &l->shared->udp;
    for (unsigned i = 0; is_written && i < udp->addresses; i++) {
        is_written = write_port(file, "UDP", udp->fds[i * udp->workers]);
    }
    if (file == NULL || fclose(file) != 0 || !is_written ||
        rename(temporary, path) != 0) {
        (void)fail_because(err, err_len, "failed to write the port file %s: %s", path,
                           strerror(errno));
        if (fd >= 0) {
            unlink(temporary);
        }
        return false;
    }
    return true;
}

static void
init_acceptor(struct acceptor *a, struct listen *listen)
{
    *a = (struct acceptor){.listen = listen};
    steer_init(&a->steer, listen->steer_mode, &listen->shared->steer,
               listen->conf.napi_ids, rng_seed());
}

/* With --steer=reuseport and a kernel that steers so, each worker gets an acceptor. */
static bool
open_acceptors(struct listen *l, char *err, size_t err_len)
{
    unsigned workers = l->shared->worker_count;
    l->steer_mode = l->conf.steer;
    if (l->steer_mode == STEER_REUSEPORT && l->conf.inherited != NULL) {
        log_write(LOG_WARNING,
                  "memcached: warning: inherited sockets are shared by the workers; "
                  "--steer=reuseport steers as cpu does");
        l->steer_mode = STEER_CPU;
    }
    if (l->steer_mode == STEER_REUSEPORT && l->conf.socket_path == NULL) {
        l->kind = reuseport_choose(l->shared->steer.cpus, l->shared->steer.count);
        if (l->kind == REUSEPORT_NONE) {
            l->steer_mode = STEER_CPU;
        } else if ((l->members = calloc(workers, sizeof *l->members)) == NULL) {
            return fail_because(err, err_len, "failed to listen: out of memory");
        }
    }
    init_acceptor(&l->main, l);
    for (unsigned i = 0; l->members != NULL && i < workers; i++) {
        init_acceptor(&l->members[i], l);
    }
    return true;
}

bool
listen_open(struct listen *l, const struct listen_conf *conf, struct net_shared *shared,
            char *err, size_t err_len)
{
    *l = (struct listen){.conf = *conf, .shared = shared};
    atomic_init(&l->is_open, true);
    bool is_open = open_acceptors(l, err, err_len) &&
                   (conf->inherited != NULL     ? adopt_inherited(l, err, err_len)
                    : conf->socket_path != NULL ? open_unix(l, err, err_len)
                                                : open_network(l, err, err_len));
    /* Listeners and those of UDP count like connections that never end. */
    ctr_add(&shared->total_conns,
            l->addresses + shared->udp.addresses * shared->udp.workers);
    if (is_open && l->count == 0 && shared->udp.addresses == 0) {
        log_write(LOG_WARNING, "memcached: warning: listening nowhere (port 0)");
    }
    if (!is_open || conf->port_file == NULL || !has_ports(conf) ||
        write_port_file(l, err, err_len)) {
        return is_open;
    }
    if (shared->serve->rules->starts_its_own_way) {
        return false;
    }
    log_write(LOG_WARNING, "memcached: warning: %s", err);
    return true;
}

void
listen_fini(struct listen *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        free(l->list[i]); /* connections name their listener's address until they end */
    }
    free(l->members);
    free(l->list);
}
