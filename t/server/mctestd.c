/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A server of known behaviour, to test load generators with: what it does to which reply is
 * asked for on the command line, and its log says what it did and when.
 *
 *   mctestd [--port=N] [--udp] [--log=FILE] [--value=BYTES] [--http=HEADER]
 *           [--delay=US] [--exp=US] [--seed=N] [--stall=MS:PERIOD_MS]
 *           [--fault=NAME[:N]]... [--from=N] [--late=MS] [--fragment=BYTES]
 *           [--dribble=BYTES:US]
 *
 * It prints "port N" when it listens. Requests are served after `delay`; with --exp one after
 * the other, each for an exponentially distributed time (an M/M/1 queue when requests come as
 * a Poisson process). It stalls for MS in each period, counted from the first read: nothing is
 * received or sent meanwhile. A fault happens to every N-th reply (1) after the first --from.
 *
 * Log: "R CONNECTION RECEIVED_NS SENT_NS VERB FAULT" a reply (monotonic clock; 0 when it was
 * never sent), and at the end "N FAULT COUNT". SIGTERM ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "speak.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_US INT64_C(1000)
#define EVENTS 64
#define UDP_HEADER 8
#define UDP_PAYLOAD 1400
#define DATAGRAM_MAX 65536
#define FILLERS 4 /* connections that keep a listener's queue full */

typedef int64_t ns_t;

enum fault {
    NONE,
    LOSE,         /* no reply */
    WRONG,        /* a byte of the value is another */
    GARBAGE,      /* bytes of no protocol instead of the reply */
    FAIL,         /* an error reply */
    SHORT,        /* half the reply, then the end */
    HALF_CLOSE,   /* the reply, then no further byte, but the connection stays */
    CLOSE,        /* no reply, the end */
    RESET,        /* no reply, a reset */
    DUPLICATE,    /* the reply twice */
    LATE,         /* the reply later by --late; over UDP others overtake it */
    LOSE_PART,    /* UDP: the last fragment */
    REVERSE,      /* UDP: fragments in the other order */
    FOREIGN_PART, /* UDP: the first fragment also with another id */
    REFUSE,       /* all connections are closed, new ones refused */
    DEAF,         /* all connections are closed, new ones never come about */
    FAULTS,
};

static const char *const fault_names[FAULTS] = {
    [NONE] = "-",
    [LOSE] = "lose",
    [WRONG] = "wrong",
    [GARBAGE] = "garbage",
    [FAIL] = "error",
    [SHORT] = "short",
    [HALF_CLOSE] = "half-close",
    [CLOSE] = "close",
    [RESET] = "reset",
    [DUPLICATE] = "duplicate",
    [LATE] = "late",
    [LOSE_PART] = "lose-part",
    [REVERSE] = "reverse",
    [FOREIGN_PART] = "foreign-part",
    [REFUSE] = "refuse",
    [DEAF] = "deaf",
};

struct client {
    int fd; /* -1: closed, kept while replies point to it */
    unsigned id;
    unsigned pending;
    bool is_udp, is_silent; /* silent: will never send again */
    bool wants_write;
    struct sockaddr_storage peer; /* of the datagram being answered */
    struct bytes in, out;
    ns_t last_due;
};

/* A reply that waits for its time. */
struct pending {
    ns_t received, due;
    uint64_t order;
    struct client *client;
    struct bytes reply;
    enum fault fault;
    bool closes, is_last_piece;
    char verb[16];
    char udp[UDP_HEADER];
    struct sockaddr_storage peer;
    socklen_t peer_len;
};

static struct {
    int port;
    bool has_udp;
    ns_t delay, exp, stall, period, dribble_ns, late;
    size_t fragment, dribble;
    uint64_t every[FAULTS], from;
    uint64_t seed;
    struct speak_conf speak;
    const char *log;
} conf = {.fragment = UDP_PAYLOAD, .seed = 1, .late = 200 * NS_PER_MS};

static volatile sig_atomic_t is_over;
static FILE *log_file;
static int epoll_fd, listen_fd = -1;
static struct client **clients;
static unsigned clients_len;
static uint64_t replies, counts[FAULTS], order;
static ns_t origin, busy_until; /* of stalls; of the only server of --exp */
static struct pending **heap;
static size_t heap_len, heap_cap;

static void
die(const char *what)
{
    fprintf(stderr, "mctestd: %s: %s\n", what, strerror(errno));
    exit(1);
}

static ns_t
now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Uniform on (0, 1): splitmix64. */
static double
unit(void)
{
    uint64_t z = conf.seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

/* ---- replies in the order of their times ------------------------------------------- */

static bool
is_before(const struct pending *a, const struct pending *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void
heap_push(struct pending *p)
{
    if (heap_len == heap_cap) {
        heap_cap = 2 * heap_cap + 64;
        heap = realloc(heap, heap_cap * sizeof(struct pending *));
        if (heap == NULL) {
            die("memory");
        }
    }
    size_t i = heap_len++;
    while (i > 0 && is_before(p, heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = p;
}

static struct pending *
heap_pop(void)
{
    struct pending *top = heap[0], *last = heap[--heap_len];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < heap_len && is_before(heap[child + 1], heap[child])) {
            child++;
        }
        if (child >= heap_len || is_before(last, heap[child])) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---- connections ------------------------------------------------------------------- */

static struct client *
add_client(int fd, bool is_udp)
{
    struct client *c = calloc(1, sizeof *c);
    clients = realloc(clients, (clients_len + 1) * sizeof(struct client *));
    if (c == NULL || clients == NULL) {
        die("memory");
    }
    *c = (struct client){.fd = fd, .id = clients_len, .is_udp = is_udp};
    clients[clients_len++] = c;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
        die("epoll_ctl");
    }
    return c;
}

static void
close_client(struct client *c, bool resets)
{
    if (c->fd != -1 && !c->is_udp) {
        struct linger hard = {1, 0};
        if (resets) {
            setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        }
        close(c->fd);
        c->fd = -1;
        c->in.len = c->out.len = 0;
    }
}

static void
drop_front(struct bytes *b, size_t n)
{
    if (n > 0) {
        memmove(b->p, b->p + n, b->len - n);
        b->len -= n;
    }
}

static void
flush(struct client *c)
{
    size_t sent = 0;
    while (c->fd != -1 && sent < c->out.len) {
        ssize_t n =
            send(c->fd, c->out.p + sent, c->out.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            close_client(c, false);
            return;
        }
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    if (c->fd == -1) {
        return;
    }
    drop_front(&c->out, sent);
    if (c->wants_write != (c->out.len > 0)) {
        c->wants_write = c->out.len > 0;
        struct epoll_event ev = {.events = EPOLLIN | (c->wants_write ? EPOLLOUT : 0),
                                 .data.ptr = c};
        epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
    }
}

static struct sockaddr_in
loopback(void)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)conf.port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
}

/* Nobody is served any more. */
static void
shut_door(bool refuses)
{
    for (unsigned i = 0; i < clients_len; i++) {
        close_client(clients[i], false);
    }
    if (refuses && listen_fd != -1) {
        close(listen_fd);
        listen_fd = -1;
    }
    if (!refuses && listen_fd != -1) {
        struct sockaddr_in at = loopback();
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, listen_fd, NULL);
        listen(listen_fd, 0);
        for (int i = 0; i < FILLERS; i++) {
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            connect(fd, (struct sockaddr *)&at, sizeof at);
        }
    }
}

/* ---- sending ----------------------------------------------------------------------- */

static void
send_datagram(const struct pending *p, unsigned number, unsigned total, bool is_foreign)
{
    char frame[DATAGRAM_MAX];
    size_t at = number * conf.fragment;
    size_t len = p->reply.len - at < conf.fragment ? p->reply.len - at : conf.fragment;
    memcpy(frame, p->udp, 2);
    frame[0] = (char)(frame[0] ^ (is_foreign ? 0x55 : 0));
    frame[2] = (char)(number >> 8);
    frame[3] = (char)number;
    frame[4] = (char)(total >> 8);
    frame[5] = (char)total;
    frame[6] = frame[7] = 0;
    memcpy(frame + UDP_HEADER, p->reply.p + at, len);
    sendto(p->client->fd, frame, UDP_HEADER + len, MSG_DONTWAIT,
           (const struct sockaddr *)&p->peer, p->peer_len);
}

static void
send_datagrams(const struct pending *p)
{
    unsigned total = (unsigned)((p->reply.len + conf.fragment - 1) / conf.fragment);
    unsigned times = p->fault == DUPLICATE ? 2 : 1;
    if (p->fault == FOREIGN_PART) {
        send_datagram(p, 0, total, true);
    }
    for (unsigned time = 0; time < times; time++) {
        for (unsigned i = 0; i < total; i++) {
            unsigned number = p->fault == REVERSE ? total - 1 - i : i;
            if (p->fault != LOSE_PART || number + 1 < total) {
                send_datagram(p, number, total, false);
            }
        }
    }
}

static void
send_stream(const struct pending *p)
{
    struct client *c = p->client;
    size_t len = p->fault == SHORT ? p->reply.len / 2 : p->reply.len;
    if (c->fd == -1 || c->is_silent) {
        return;
    }
    bytes_add(&c->out, p->reply.p, len);
    if (p->fault == DUPLICATE) {
        bytes_add(&c->out, p->reply.p, len);
    }
    flush(c);
    if (p->fault == HALF_CLOSE && c->fd != -1) {
        shutdown(c->fd, SHUT_WR);
        c->is_silent = true;
    } else if (p->fault == SHORT || p->closes) {
        close_client(c, false);
    }
}

static void
release(struct pending *p)
{
    bool is_sent = p->fault != LOSE && p->fault != CLOSE && p->fault != RESET &&
                   p->fault != REFUSE && p->fault != DEAF;
    ns_t sent = is_sent ? now_ns() : 0; /* before: the peer's clock must not be ahead */
    if (is_sent && p->client->is_udp) {
        send_datagrams(p);
    } else if (is_sent) {
        send_stream(p);
    } else if (p->fault == CLOSE || p->fault == RESET) {
        close_client(p->client, p->fault == RESET);
    } else if (p->fault != LOSE) {
        shut_door(p->fault == REFUSE);
    }
    if (log_file != NULL && p->is_last_piece) {
        fprintf(log_file, "R %u %" PRId64 " %" PRId64 " %s %s\n", p->client->id,
                p->received, sent, p->verb, fault_names[p->fault]);
    }
    p->client->pending--;
    free(p->reply.p);
    free(p);
}

/* ---- serving ----------------------------------------------------------------------- */

static enum fault
choose_fault(const struct spoken *what)
{
    uint64_t n = ++replies > conf.from ? replies - conf.from : 0;
    for (int i = NONE + 1; n > 0 && i < FAULTS; i++) {
        if (conf.every[i] != 0 && n % conf.every[i] == 0 &&
            (i != WRONG || what->value_len > 0)) {
            counts[i]++;
            return (enum fault)i;
        }
    }
    return NONE;
}

static ns_t
due_time(struct client *c, enum fault fault, ns_t now)
{
    ns_t due = now + conf.delay;
    if (conf.exp > 0) {
        busy_until = busy_until > now ? busy_until : now;
        busy_until += (ns_t)(-log(unit()) * (double)conf.exp);
        due = busy_until;
    }
    due += fault == LATE ? conf.late : 0;
    if (!c->is_udp) { /* a stream keeps its order */
        due = due > c->last_due ? due : c->last_due;
        c->last_due = due;
    }
    return due;
}

static struct pending *
pending_of(struct client *c, const struct spoken *what, enum fault fault, ns_t now)
{
    struct pending *p = calloc(1, sizeof *p);
    if (p == NULL) {
        die("memory");
    }
    p->received = now;
    p->client = c;
    p->fault = fault;
    p->closes = what->closes;
    p->is_last_piece = true;
    p->order = order++;
    memcpy(p->verb, what->verb, sizeof p->verb);
    c->pending++;
    return p;
}

/* In small pieces, each at its own time. */
static void
dribble(struct client *c, const struct spoken *what, const struct bytes *reply,
        enum fault fault, ns_t now)
{
    size_t step = conf.dribble > 0 ? conf.dribble : reply->len;
    for (size_t at = 0; at < reply->len; at += step) {
        size_t len = reply->len - at < step ? reply->len - at : step;
        struct pending *p = pending_of(c, what, fault, now);
        p->due = c->last_due += conf.dribble_ns;
        p->is_last_piece = at + len == reply->len;
        p->closes = p->closes && p->is_last_piece;
        bytes_add(&p->reply, reply->p + at, len);
        heap_push(p);
    }
}

/* What was asked is answered later; the reply is made now. */
static void
answer(struct client *c, const char *request, const struct spoken *what,
       struct bytes *reply, ns_t now, const char *udp, socklen_t peer_len)
{
    if (what->is_read && origin == 0) {
        origin = now;
    }
    enum fault fault = choose_fault(what);
    if (fault == WRONG) {
        reply->p[what->value_at] = (char)(reply->p[what->value_at] ^ 1);
    } else if (fault == GARBAGE) {
        reply->len = 0;
        bytes_addf(reply, "\x7f what is this?\r\n");
    } else if (fault == FAIL) {
        reply->len = 0;
        speak_error(request, reply);
    }
    ns_t due = due_time(c, fault, now);
    if (conf.dribble > 0 && !c->is_udp) {
        dribble(c, what, reply, fault, now);
        return;
    }
    struct pending *p = pending_of(c, what, fault, now);
    bytes_add(&p->reply, reply->p, reply->len);
    p->due = due;
    if (udp != NULL) {
        memcpy(p->udp, udp, UDP_HEADER);
        p->peer = c->peer;
        p->peer_len = peer_len;
    }
    heap_push(p);
}

static void
read_stream(struct client *c, ns_t now)
{
    char buf[65536];
    ssize_t n = recv(c->fd, buf, sizeof buf, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            close_client(c, false);
        }
        return;
    }
    bytes_add(&c->in, buf, (size_t)n);
    size_t at = 0;
    struct spoken what;
    struct bytes reply = {0};
    ssize_t used;
    while ((used = speak(&conf.speak, c->in.p + at, c->in.len - at, &reply, &what)) > 0) {
        if (reply.len > 0 || what.closes) {
            answer(c, c->in.p + at, &what, &reply, now, NULL, 0);
        }
        reply.len = 0;
        at += (size_t)used;
    }
    free(reply.p);
    if (used < 0) {
        close_client(c, false);
        return;
    }
    drop_front(&c->in, at);
}

/* All of a datagram's replies are one. */
static void
read_datagram(struct client *c, ns_t now)
{
    char buf[DATAGRAM_MAX];
    socklen_t peer_len = sizeof c->peer;
    ssize_t n = recvfrom(c->fd, buf, sizeof buf, MSG_DONTWAIT,
                         (struct sockaddr *)&c->peer, &peer_len);
    if (n <= UDP_HEADER) {
        return;
    }
    struct spoken what = {0}, first = {0};
    struct bytes reply = {0};
    ssize_t used = 0;
    for (size_t at = UDP_HEADER; at < (size_t)n; at += (size_t)used) {
        used = speak(&conf.speak, buf + at, (size_t)n - at, &reply, &what);
        if (used <= 0) {
            break;
        }
        if (first.verb[0] == '\0' || first.value_len == 0) {
            first = what;
        }
    }
    if (reply.len > 0) {
        answer(c, buf + UDP_HEADER, &first, &reply, now, buf, peer_len);
    }
    free(reply.p);
}

static void
accept_client(void)
{
    int on = 1;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd != -1) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        add_client(fd, false);
    }
}

/* Sleeps when a stall has begun. */
static void
stall(void)
{
    ns_t now = now_ns();
    if (conf.stall == 0 || origin == 0) {
        return;
    }
    ns_t phase = (now - origin) % conf.period;
    if (phase >= conf.period - conf.stall) {
        ns_t left = conf.period - phase;
        struct timespec ts = {left / NS_PER_S, left % NS_PER_S};
        nanosleep(&ts, NULL);
    }
}

/* How long to wait for events: 0 when the next reply is so near that it is polled for. */
static int
wait_ms(void)
{
    if (heap_len == 0) {
        return 1000;
    }
    ns_t left = heap[0]->due - now_ns();
    return left <= NS_PER_MS ? 0 : (int)(left / NS_PER_MS);
}

static void
serve(void)
{
    struct epoll_event events[EVENTS];
    while (!is_over) {
        int n = epoll_wait(epoll_fd, events, EVENTS, wait_ms());
        stall();
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (c == NULL) {
                accept_client();
                continue;
            }
            if (c->fd != -1 && (events[i].events & EPOLLOUT) != 0) {
                flush(c);
            }
            if (c->fd != -1 && (events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                (c->is_udp ? read_datagram : read_stream)(c, now_ns());
            }
        }
        while (heap_len > 0 && heap[0]->due <= now_ns()) {
            release(heap_pop());
        }
    }
}

/* ---- start ------------------------------------------------------------------------- */

static void
open_sockets(void)
{
    int on = 1;
    struct sockaddr_in at = loopback();
    socklen_t len = sizeof at;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listen_fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(listen_fd, (struct sockaddr *)&at, &len) != 0) {
        die("bind");
    }
    conf.port = ntohs(at.sin_port);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    if (conf.every[REFUSE] != 1 || conf.from > 0) {
        if (listen(listen_fd, 1024) != 0 ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &ev) != 0) {
            die("listen");
        }
    }
    if (conf.has_udp) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
            die("bind (UDP)");
        }
        add_client(fd, true);
    }
}

static void
add_fault(const char *text)
{
    const char *colon = strchrnul(text, ':');
    for (int i = NONE + 1; i < FAULTS; i++) {
        if (strlen(fault_names[i]) == (size_t)(colon - text) &&
            strncmp(fault_names[i], text, (size_t)(colon - text)) == 0) {
            conf.every[i] = *colon == ':' ? strtoull(colon + 1, NULL, 10) : 1;
            return;
        }
    }
    fprintf(stderr, "mctestd: no such fault: %s\n", text);
    exit(1);
}

/* "A:B" */
static void
take_pair(const char *text, ns_t *a, ns_t *b)
{
    char *end;
    *a = strtoll(text, &end, 10);
    *b = *end == ':' ? strtoll(end + 1, NULL, 10) : 0;
    if (*a <= 0 || *b <= 0) {
        fprintf(stderr, "mctestd: two numbers above 0 are wanted: %s\n", text);
        exit(1);
    }
}

static void
take_option(int name, const char *text)
{
    ns_t a, b;
    switch (name) {
    case 'p':
        conf.port = atoi(text);
        break;
    case 'u':
        conf.has_udp = true;
        break;
    case 'l':
        conf.log = text;
        break;
    case 'v':
        conf.speak.invented = strtoul(text, NULL, 10);
        break;
    case 'h':
        conf.speak.http = text;
        break;
    case 'd':
        conf.delay = strtoll(text, NULL, 10) * NS_PER_US;
        break;
    case 'e':
        conf.exp = strtoll(text, NULL, 10) * NS_PER_US;
        break;
    case 's':
        conf.seed = strtoull(text, NULL, 10);
        break;
    case 'S':
        take_pair(text, &a, &b);
        conf.stall = a * NS_PER_MS;
        conf.period = b * NS_PER_MS;
        break;
    case 'f':
        add_fault(text);
        break;
    case 'F':
        conf.from = strtoull(text, NULL, 10);
        break;
    case 'L':
        conf.late = strtoll(text, NULL, 10) * NS_PER_MS;
        break;
    case 'g':
        conf.fragment = strtoul(text, NULL, 10);
        break;
    case 'D':
        take_pair(text, &a, &b);
        conf.dribble = (size_t)a;
        conf.dribble_ns = b * NS_PER_US;
        break;
    default:
        exit(1);
    }
}

static void
take_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},    {"udp", 0, NULL, 'u'},  {"log", 1, NULL, 'l'},
        {"value", 1, NULL, 'v'},   {"http", 1, NULL, 'h'}, {"delay", 1, NULL, 'd'},
        {"exp", 1, NULL, 'e'},     {"seed", 1, NULL, 's'}, {"stall", 1, NULL, 'S'},
        {"fault", 1, NULL, 'f'},   {"from", 1, NULL, 'F'}, {"fragment", 1, NULL, 'g'},
        {"dribble", 1, NULL, 'D'}, {"late", 1, NULL, 'L'}, {NULL, 0, NULL, 0},
    };
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        take_option(name, optarg);
    }
    if (optind < argc || conf.fragment == 0) {
        fprintf(stderr, "mctestd: what is %s?\n", optind < argc ? argv[optind] : "0");
        exit(1);
    }
}

static void
on_signal(int number)
{
    (void)number;
    is_over = 1;
}

int
main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    take_options(argc, argv);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (conf.log != NULL && (log_file = fopen(conf.log, "w")) == NULL) {
        die(conf.log);
    }
    open_sockets();
    printf("port %d\n", conf.port);
    fflush(stdout);
    serve();
    for (int i = NONE + 1; log_file != NULL && i < FAULTS; i++) {
        fprintf(log_file, "N %s %" PRIu64 "\n", fault_names[i], counts[i]);
    }
    if (log_file != NULL && fclose(log_file) != 0) {
        die(conf.log);
    }
    return 0;
}
