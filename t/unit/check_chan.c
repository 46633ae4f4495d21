/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A leader and an agent at both ends of a socket, and somebody who changes what passes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_main.h"
#include "loadgen/swarm/chan.h"
#include "loadgen/swarm/greet.h"
#include "loadgen/swarm/message.h"

#define SOON (60 * NSEC_PER_SEC)
#define KEY "0123456789abcdef"

static struct seal_key
key_of(const char *text)
{
    struct seal_key key = {.len = strlen(text)};
    memcpy(key.bytes, text, key.len);
    return key;
}

struct end {
    struct chan chan;
    struct seal_key key;
    enum greet status;
    char err[MESSAGE_TEXT_MAX];
    pthread_t thread;
};

static void *
agent_main(void *arg)
{
    struct end *e = arg;
    e->status = greet_agent(&e->chan, &e->key, e->err, sizeof e->err);
    return NULL;
}

static void
introduce(struct end *l, struct end *a, const char *leader_key, const char *agent_key)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    *l = (struct end){.key = key_of(leader_key)};
    *a = (struct end){.key = key_of(agent_key)};
    chan_init(&l->chan, fds[0], SEAL_LEADER);
    chan_init(&a->chan, fds[1], SEAL_AGENT);
    ck_assert_int_eq(pthread_create(&a->thread, NULL, agent_main, a), 0);
    l->status = greet_leader(&l->chan, &l->key, l->err, sizeof l->err);
    if (l->status != GREET_GOOD) {
        shutdown(fds[0], SHUT_WR); /* as closing would: the agent need not wait */
    }
    ck_assert_int_eq(pthread_join(a->thread, NULL), 0);
}

static void
part(struct end *l, struct end *a)
{
    chan_fini(&l->chan);
    chan_fini(&a->chan);
}

/* The two of a test; they part at its end, or when they meet anew. */
static struct end leader, agent;
static bool have_met;

static void
tear_down(void)
{
    if (have_met) {
        part(&leader, &agent);
    }
    have_met = false;
}

static void
meet(const char *leader_key, const char *agent_key)
{
    tear_down();
    introduce(&leader, &agent, leader_key, agent_key);
    have_met = true;
}

/* Where there are seals. */
#define TEST_SEALED(id)                                                                  \
    static void id##_sealed(void);                                                       \
    TEST(id)                                                                             \
    {                                                                                    \
        if (seal_ops != NULL) {                                                          \
            id##_sealed();                                                               \
        }                                                                                \
    }                                                                                    \
    static void id##_sealed(void)

static void
say(struct chan *c, uint64_t number)
{
    frame_put_number(chan_begin(c, MESSAGE_STAMP), FIELD_SENT, number);
    ck_assert(chan_send(c));
}

static void
hear(struct chan *c, uint64_t number)
{
    struct frame f;
    uint64_t got = 0;
    ck_assert_int_eq(chan_await(c, clock_now() + SOON, &f), CHAN_FRAME);
    ck_assert(frame_number(&f, FIELD_SENT, 0, UINT64_MAX, &got));
    ck_assert_uint_eq(got, number);
}

static void
talk(void)
{
    for (unsigned i = 0; i < 20; i++) {
        say(&leader.chan, i);
        say(&leader.chan, i + 100);
        hear(&agent.chan, i);
        hear(&agent.chan, i + 100);
        say(&agent.chan, i + 200);
        hear(&leader.chan, i + 200);
    }
}

FIXTURE(NULL, tear_down);

TEST(without_a_key)
{
    meet("", "");
    ck_assert_int_eq(leader.status, GREET_GOOD);
    ck_assert_int_eq(agent.status, GREET_GOOD);
    ck_assert(!leader.chan.seal.is_on && !agent.chan.seal.is_on);
    ck_assert_uint_eq(leader.chan.session, agent.chan.session);
    ck_assert_uint_ne(leader.chan.session, 0);
    talk();
}

TEST_SEALED(with_the_same_key)
{
    meet(KEY, KEY);
    ck_assert_msg(leader.status == GREET_GOOD, "%s", leader.err);
    ck_assert_msg(agent.status == GREET_GOOD, "%s", agent.err);
    ck_assert(leader.chan.seal.is_on && agent.chan.seal.is_on);
    ck_assert_mem_eq(leader.chan.seal.keys, agent.chan.seal.keys,
                     sizeof agent.chan.seal.keys);
    ck_assert_mem_ne(agent.chan.seal.keys[0], agent.chan.seal.keys[1], SEAL_CHANNEL_KEY);
    talk();
}

TEST_SEALED(with_another_key)
{
    meet(KEY, "0123456789abcdeF");
    ck_assert_int_eq(leader.status, GREET_FAILED);
    ck_assert_str_eq(leader.err, "refuses: that is not its key");
    ck_assert_int_eq(agent.status, GREET_WRONG);
    ck_assert_str_eq(agent.err, "has another key");
}

TEST_SEALED(with_a_key_on_one_side)
{
    meet(KEY, "");
    ck_assert_int_eq(leader.status, GREET_FAILED);
    ck_assert_str_eq(leader.err, "has no key");
    ck_assert_int_ne(agent.status, GREET_GOOD);
    meet("", KEY);
    ck_assert_int_eq(leader.status, GREET_FAILED);
    ck_assert_str_eq(leader.err, "wants a key: --key-file");
    ck_assert_int_ne(agent.status, GREET_GOOD);
}

/* ---- frames that were not sent so --------------------------------------------------- */

/* What the leader has on the wire, taken off it. */
static size_t
intercept(struct end *from, uint8_t *p, size_t size)
{
    ssize_t n = recv(from->chan.fd, p, size, 0);
    ck_assert_int_gt(n, 0);
    return (size_t)n;
}

static void
inject(const uint8_t *p, size_t n)
{
    ck_assert_int_eq(send(leader.chan.fd, p, n, 0), (ssize_t)n);
}

static void
is_refused(struct end *by, const char *why)
{
    struct frame f;
    ck_assert_int_eq(chan_await(&by->chan, clock_now() + SOON, &f), CHAN_LOST);
    ck_assert_str_eq(by->chan.error, why);
    ck_assert_int_eq(chan_next(&by->chan, &f), CHAN_LOST);
    frame_put_number(chan_begin(&by->chan, MESSAGE_STAMP), FIELD_SENT, 1);
    ck_assert(!chan_send(&by->chan));
}

static void
check_replay(const char *key)
{
    uint8_t wire[256];
    meet(key, key);
    say(&leader.chan, 1);
    size_t n = intercept(&agent, wire, sizeof wire);
    inject(wire, n);
    inject(wire, n);
    hear(&agent.chan, 1);
    is_refused(&agent, "sent a frame out of its turn");
}

TEST_SEALED(a_replayed_frame)
{
    check_replay(KEY);
}

TEST(without_seals_the_order_counts_too)
{
    check_replay("");
}

TEST_SEALED(frames_in_another_order)
{
    uint8_t wire[512];
    meet(KEY, KEY);
    say(&leader.chan, 1);
    size_t first = intercept(&agent, wire, sizeof wire);
    say(&leader.chan, 2);
    size_t second = intercept(&agent, wire + first, sizeof wire - first);
    inject(wire + first, second);
    inject(wire, first);
    is_refused(&agent, "sent a frame out of its turn");
}

/* Any bit. */
TEST_SEALED(a_changed_frame)
{
    uint8_t wire[256];
    for (unsigned bit = 4 * 8;; bit += 37) { /* behind the length */
        meet(KEY, KEY);
        say(&leader.chan, 1);
        size_t n = intercept(&agent, wire, sizeof wire);
        if (bit >= n * 8) {
            break;
        }
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        inject(wire, n);
        struct frame f;
        expect(chan_await(&agent.chan, clock_now() + SOON, &f) == CHAN_LOST);
    }
}

TEST_SEALED(a_frame_of_another_session)
{
    struct end other, other_agent;
    uint8_t wire[256];
    meet(KEY, KEY);
    introduce(&other, &other_agent, KEY, KEY);
    say(&other.chan, 1);
    size_t n = intercept(&other_agent, wire, sizeof wire);
    inject(wire, n);
    is_refused(&agent, "sent a frame with a wrong seal");
    part(&other, &other_agent);
}

TEST_SEALED(a_frame_sent_back)
{
    uint8_t wire[256];
    meet(KEY, KEY);
    say(&leader.chan, 1);
    size_t n = intercept(&agent, wire, sizeof wire);
    ck_assert_int_eq(send(agent.chan.fd, wire, n, 0), (ssize_t)n);
    is_refused(&leader, "sent a frame with a wrong seal");
}

TEST_SEALED(what_came_before_the_end_is_read)
{
    struct frame f;
    meet(KEY, KEY);
    say(&leader.chan, 1);
    say(&leader.chan, 2);
    shutdown(leader.chan.fd, SHUT_WR);
    hear(&agent.chan, 1);
    hear(&agent.chan, 2);
    ck_assert_int_eq(chan_await(&agent.chan, clock_now() + SOON, &f), CHAN_LOST);
    ck_assert_str_eq(agent.chan.error, "closed the connection");
}

TEST(a_stranger_gets_no_memory)
{
    int fds[2];
    struct end host = {.key = key_of(KEY)};
    static const uint8_t huge[] = {0, 63, 255, 255, 0, 1};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    chan_init(&host.chan, fds[1], SEAL_AGENT);
    ck_assert_int_eq(send(fds[0], huge, sizeof huge, 0), sizeof huge);
    agent_main(&host);
    ck_assert_int_eq(host.status, GREET_FAILED);
    ck_assert_str_eq(host.err, "sent something that is no frame");
    chan_fini(&host.chan);
    close(fds[0]);
}

TEST(nothing_comes_in_time)
{
    int fds[2];
    struct chan c;
    struct frame f;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    chan_init(&c, fds[0], SEAL_LEADER);
    ck_assert_int_eq(chan_await(&c, clock_now() + NSEC_PER_MSEC, &f), CHAN_NONE);
    chan_fini(&c);
    close(fds[1]);
}

/* ---- the key's file ----------------------------------------------------------------- */

static char dir[SCRATCH_PATH];

static bool
read_key(struct seal_key *key, const char *text, mode_t mode, char *err)
{
    char path[SCRATCH_PATH + 8];
    snprintf(path, sizeof path, "%s/key", dir);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    bool is_good = seal_read_key(key, path, err, MESSAGE_TEXT_MAX);
    unlink(path);
    return is_good;
}

TEST_SEALED(a_key_is_kept_secret)
{
    struct seal_key key;
    char err[MESSAGE_TEXT_MAX];
    scratch_name(dir, "check_chan");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(read_key(&key, KEY, 0600, err));
    ck_assert_uint_eq(key.len, 16);
    ck_assert(!read_key(&key, "0123456789abcde", 0600, err));
    expect_part(err, "shorter than 16 bytes");
    ck_assert(!read_key(&key, KEY, 0640, err));
    expect_part(err, "open to others");
    ck_assert(!read_key(&key, KEY, 0604, err));
    ck_assert(!seal_read_key(&key, dir, err, sizeof err));
    ck_assert(!seal_read_key(&key, "/nonexistent/key", err, sizeof err));
    ck_assert_uint_eq(key.len, 0);
    rmdir(dir);
}

TEST(comparing)
{
    uint8_t a[4] = {1, 2, 3, 4}, b[4] = {1, 2, 3, 4};
    ck_assert(seal_equals(a, b, 4));
    for (unsigned i = 0; i < 4; i++) {
        b[i] ^= 0x80;
        ck_assert(!seal_equals(a, b, 4));
        b[i] ^= 0x80;
    }
    seal_forget(a, sizeof a);
    ck_assert(a[0] == 0 && a[3] == 0);
}
