/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "scripts/bench/hits/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
    /* Requests sent at once: so few that their order among each other is of no
     * account. */
    BATCH_MIN = 16,
    BATCH = 512,
    KEYS_A_REQUEST = 1000,
    SLOTS =
        4 * BATCH, /* fills of what was new or put off, what was put off, and new ones */
    OUTPUT_ENOUGH = 1 << 18,
    INPUT = 1 << 16,
    LINE_END = 2,
    LINE_MAX = 512,
    VALUE_MAX = 1 << 24,
};

/* A request of a batch: what its reply is to be, and what it was. */
struct slot {
    struct request request;
    bool is_counted, is_hit;
};

struct client {
    const struct recording *r;
    struct client_score *score;
    enum client_protocol protocol;
    int fd;
    uint32_t at; /* of the recording */
    uint32_t batch_size;
    uint32_t batch; /* its number, from 1 */
    /* Of each key, the last batch with a get of it whose reply is open, the last that
     * stores it after a miss, the last that deletes it. */
    uint32_t *asked, *filled, *deleted;
    struct slot slots[SLOTS];
    unsigned count, answered;
    struct slot put_off[BATCH]; /* to the next batch */
    unsigned put_off_count;
    char *out;
    size_t out_len, out_sent, out_room;
    char in[INPUT];
    size_t in_len, skip; /* bytes of a value that are still to come */
    char *value;
};

static _Noreturn void
refuse(const char *what)
{
    fprintf(stderr, "hits: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
put(struct client *c, const void *bytes, size_t len)
{
    if (c->out_len + len > c->out_room) {
        c->out_room = 2 * (c->out_len + len);
        c->out = alloc_more(c->out, c->out_room, 1);
    }
    memcpy(c->out + c->out_len, bytes, len);
    c->out_len += len;
}

static void
put_memcached(struct client *c, const struct request *q, const char *key, int key_len)
{
    static const char *const words[] = {
        [RECORDING_GET] = "get", [RECORDING_SET] = "set", [RECORDING_DELETE] = "delete"};
    char line[LINE_MAX];
    int len = snprintf(line, sizeof line, "%s %.*s", words[q->verb], key_len, key);
    if (q->verb == RECORDING_SET) {
        len +=
            snprintf(line + len, sizeof line - (size_t)len, " 0 0 %u\r\n", q->value_len);
        put(c, line, (size_t)len);
        put(c, c->value, q->value_len);
        len = 0;
    }
    put(c, line, (size_t)len);
    put(c, "\r\n", LINE_END);
}

static void
put_redis(struct client *c, const struct request *q, const char *key, int key_len)
{
    static const char *const words[] = {
        [RECORDING_GET] = "GET", [RECORDING_SET] = "SET", [RECORDING_DELETE] = "DEL"};
    bool is_set = q->verb == RECORDING_SET;
    char line[LINE_MAX];
    int len = snprintf(line, sizeof line, "*%d\r\n$3\r\n%s\r\n$%d\r\n%.*s\r\n",
                       is_set ? 3 : 2, words[q->verb], key_len, key_len, key);
    if (is_set) {
        len += snprintf(line + len, sizeof line - (size_t)len, "$%u\r\n", q->value_len);
        put(c, line, (size_t)len);
        put(c, c->value, q->value_len);
        put(c, "\r\n", LINE_END);
        return;
    }
    put(c, line, (size_t)len);
}

static void
ask(struct client *c, const struct slot *slot)
{
    char key[RECORDING_KEY_MAX];
    int len = (int)recording_put_key(c->r, &slot->request, key);
    c->slots[c->count++] = *slot;
    (c->protocol == CLIENT_REDIS ? put_redis : put_memcached)(c, &slot->request, key,
                                                              len);
}

/* A request for a key whose get is under way is put off: whether it is there, is not
 * known. What was put off once finds it, unless the key was deleted after that. */
static void
ask_or_put_off(struct client *c, const struct slot *slot, bool was_put_off)
{
    uint32_t key = slot->request.key;
    if (c->asked[key] == c->batch) {
        c->put_off[c->put_off_count++] = *slot;
        return;
    }
    if (slot->request.verb == RECORDING_DELETE) {
        c->deleted[key] = c->batch;
    }
    if (slot->request.verb == RECORDING_GET &&
        (!was_put_off || c->deleted[key] == c->batch)) {
        c->asked[key] = c->batch;
    }
    ask(c, slot);
}

/* What misses in the last batch are to store. */
static void
ask_fills(struct client *c, const struct slot *last, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct slot fill = {.request = last[i].request};
        uint32_t key = fill.request.key;
        if (fill.request.verb == RECORDING_GET && !last[i].is_hit &&
            c->filled[key] != c->batch) {
            c->filled[key] = c->batch;
            fill.request.verb = RECORDING_SET;
            ask(c, &fill);
        }
    }
}

/* Fills, then what the last batch put off, and then the next requests. */
static void
make_batch(struct client *c)
{
    struct slot last[SLOTS], put_off[BATCH];
    unsigned last_count = c->count, put_off_count = c->put_off_count;
    memcpy(last, c->slots, last_count * sizeof *last);
    memcpy(put_off, c->put_off, put_off_count * sizeof *put_off);
    c->count = c->answered = c->put_off_count = 0;
    c->out_len = c->out_sent = 0;
    c->batch++;
    ask_fills(c, last, last_count);
    for (unsigned i = 0; i < put_off_count; i++) {
        ask_or_put_off(c, &put_off[i], true);
    }
    for (unsigned i = c->put_off_count;
         i < c->batch_size && c->at < c->r->count && c->out_len < OUTPUT_ENOUGH; i++) {
        struct slot slot = {.request = c->r->requests[c->at]};
        slot.is_counted = c->at++ >= c->r->counted_from && !slot.request.is_aside;
        ask_or_put_off(c, &slot, false);
    }
}

static void
count(struct client *c, const struct slot *s)
{
    struct client_score *score = c->score;
    if (s->request.verb == RECORDING_GET && s->is_counted) {
        score->gets++;
        score->bytes += s->request.value_len;
        score->hits += s->is_hit;
        score->hit_bytes += s->is_hit ? s->request.value_len : 0;
    }
}

/* One line of a reply; whether it is the last one. */
static bool
take_line(struct client *c, struct slot *s, const char *line)
{
    unsigned long len;
    if (s->request.verb == RECORDING_GET) {
        if (sscanf(line, "VALUE %*s %*u %lu", &len) == 1) {
            s->is_hit = true;
            c->skip = len + LINE_END;
            return false;
        }
        if (sscanf(line, "$%lu", &len) == 1 && line[1] != '-') {
            s->is_hit = true;
            c->skip = len + LINE_END;
            return true;
        }
        if (strcmp(line, "END") == 0 || strcmp(line, "$-1") == 0) {
            return true;
        }
    } else if (strncmp(line, "SERVER_ERROR", 12) == 0 || strncmp(line, "-OOM", 4) == 0) {
        c->score->refused++;
        return true;
    } else if (strcmp(line, "STORED") == 0 || strcmp(line, "DELETED") == 0 ||
               strcmp(line, "NOT_FOUND") == 0 || line[0] == '+' || line[0] == ':') {
        return true;
    }
    fprintf(stderr, "hits: the server answers '%s'\n", line);
    exit(1);
}

static void
take_input(struct client *c)
{
    size_t at = 0;
    while (c->answered < c->count) {
        size_t passed = c->skip < c->in_len - at ? c->skip : c->in_len - at;
        at += passed;
        c->skip -= passed;
        char *end = memchr(c->in + at, '\n', c->in_len - at);
        if (c->skip > 0 || end == NULL) {
            break;
        }
        struct slot *s = &c->slots[c->answered];
        char *line = c->in + at;
        end[end > line ? -1 : 0] = '\0';
        at = (size_t)(end + 1 - c->in);
        if (take_line(c, s, line)) {
            count(c, s);
            c->answered++;
        }
    }
    memmove(c->in, c->in + at, c->in_len - at);
    c->in_len -= at;
}

static void
exchange(struct client *c)
{
    bool is_sending = c->out_sent < c->out_len;
    struct pollfd p = {.fd = c->fd,
                       .events = (short)(POLLIN | (is_sending ? POLLOUT : 0))};
    if (poll(&p, 1, -1) < 0) {
        refuse("poll");
    }
    if ((p.revents & POLLOUT) != 0) {
        ssize_t n =
            send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) {
            refuse("send");
        }
        c->out_sent += n > 0 ? (size_t)n : 0;
    }
    if ((p.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        ssize_t n = recv(c->fd, c->in + c->in_len, sizeof c->in - c->in_len, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            refuse("the server closed the connection");
        }
        c->in_len += n > 0 ? (size_t)n : 0;
        take_input(c);
    }
}

static int
connect_to(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        refuse("connect");
    }
    return fd;
}

void
client_play(const struct recording *r, enum client_protocol protocol, int port,
            struct client_score *score)
{
    struct client *c = alloc_zeroed(1, sizeof *c);
    *score = (struct client_score){.gets = 0};
    c->r = r;
    c->score = score;
    c->protocol = protocol;
    c->fd = connect_to(port);
    c->batch_size = r->keys / KEYS_A_REQUEST;
    c->batch_size = c->batch_size < BATCH_MIN ? BATCH_MIN : c->batch_size;
    c->batch_size = c->batch_size > BATCH ? BATCH : c->batch_size;
    c->asked = alloc_zeroed(r->keys, sizeof *c->asked);
    c->filled = alloc_zeroed(r->keys, sizeof *c->filled);
    c->deleted = alloc_zeroed(r->keys, sizeof *c->deleted);
    c->value = alloc_bytes(VALUE_MAX);
    memset(c->value, 'v', VALUE_MAX);
    do {
        make_batch(c);
        while (c->answered < c->count) {
            exchange(c);
        }
    } while (c->count > 0);
    close(c->fd);
    free(c->asked);
    free(c->filled);
    free(c->deleted);
    free(c->value);
    free(c->out);
    free(c);
}
