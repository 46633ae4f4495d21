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

#include "check_unit.h"
#include "loadgen/swarm/chan.h"
#include "loadgen/swarm/greet.h"
#include "loadgen/swarm/message.h"

#define SOON (60 * NSEC_PER_SEC)

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
meet(struct end *leader, struct end *agent, const char *leader_key, const char *agent_key)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    *leader = (struct end){.key = key_of(leader_key)};
    *agent = (struct end){.key = key_of(agent_key)};
    chan_init(&leader->chan, fds[0], SEAL_LEADER);
    chan_init(&agent->chan, fds[1], SEAL_AGENT);
    ck_assert_int_eq(pthread_create(&agent->thread, NULL, agent_main, agent), 0);
    leader->status =
        greet_leader(&leader->chan, &leader->key, leader->err, sizeof leader->err);
    if (leader->status != GREET_GOOD) {
        shutdown(fds[0], SHUT_WR); /* as closing would: the agent need not wait */
    }
    ck_assert_int_eq(pthread_join(agent->thread, NULL), 0);
}

static void
part(struct end *leader, struct end *agent)
{
    chan_fini(&leader->chan);
    chan_fini(&agent->chan);
}

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
talk(struct end *leader, struct end *agent)
{
    for (unsigned i = 0; i < 20; i++) {
        say(&leader->chan, i);
        say(&leader->chan, i + 100);
        hear(&agent->chan, i);
        hear(&agent->chan, i + 100);
        say(&agent->chan, i + 200);
        hear(&leader->chan, i + 200);
    }
}

START_TEST(without_a_key)
{
    struct end leader, agent;
    meet(&leader, &agent, "", "");
    ck_assert_int_eq(leader.status, GREET_GOOD);
    ck_assert_int_eq(agent.status, GREET_GOOD);
    ck_assert(!leader.chan.seal.is_on && !agent.chan.seal.is_on);
    ck_assert_uint_eq(leader.chan.session, agent.chan.session);
    ck_assert_uint_ne(leader.chan.session, 0);
    talk(&leader, &agent);
    part(&leader, &agent);
}
END_TEST

START_TEST(with_the_same_key)
{
    struct end leader, agent;
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
    ck_assert_msg(leader.status == GREET_GOOD, "%s", leader.err);
    ck_assert_msg(agent.status == GREET_GOOD, "%s", agent.err);
    ck_assert(leader.chan.seal.is_on && agent.chan.seal.is_on);
    ck_assert_mem_eq(leader.chan.seal.keys, agent.chan.seal.keys,
                     sizeof agent.chan.seal.keys);
    ck_assert_mem_ne(agent.chan.seal.keys[0], agent.chan.seal.keys[1], SEAL_CHANNEL_KEY);
    talk(&leader, &agent);
    part(&leader, &agent);
}
END_TEST

START_TEST(with_another_key)
{
    struct end leader, agent;
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdeF");
    ck_assert_int_eq(leader.status, GREET_FAILED);
    ck_assert_str_eq(leader.err, "refuses: that is not its key");
    ck_assert_int_eq(agent.status, GREET_WRONG);
    ck_assert_str_eq(agent.err, "has another key");
    part(&leader, &agent);
}
END_TEST

START_TEST(with_a_key_on_one_side)
{
    struct end leader, agent;
    meet(&leader, &agent, "0123456789abcdef", "");
    ck_assert_int_eq(leader.status, GREET_FAILED);
    ck_assert_str_eq(leader.err, "has no key");
    ck_assert_int_ne(agent.status, GREET_GOOD);
    part(&leader, &agent);
    meet(&leader, &agent, "", "0123456789abcdef");
    ck_assert_int_eq(leader.status, GREET_FAILED);
    ck_assert_str_eq(leader.err, "wants a key: --key-file");
    ck_assert_int_ne(agent.status, GREET_GOOD);
    part(&leader, &agent);
}
END_TEST

/* ---- frames that were not sent so --------------------------------------------------- */

/* What the leader has on the wire, taken off it. */
static size_t
intercept(struct end *agent, uint8_t *p, size_t size)
{
    ssize_t n = recv(agent->chan.fd, p, size, 0);
    ck_assert_int_gt(n, 0);
    return (size_t)n;
}

static void
inject(struct end *leader, const uint8_t *p, size_t n)
{
    ck_assert_int_eq(send(leader->chan.fd, p, n, 0), (ssize_t)n);
}

static void
is_refused(struct end *agent, const char *why)
{
    struct frame f;
    ck_assert_int_eq(chan_await(&agent->chan, clock_now() + SOON, &f), CHAN_LOST);
    ck_assert_str_eq(agent->chan.error, why);
    ck_assert_int_eq(chan_next(&agent->chan, &f), CHAN_LOST);
    frame_put_number(chan_begin(&agent->chan, MESSAGE_STAMP), FIELD_SENT, 1);
    ck_assert(!chan_send(&agent->chan));
}

START_TEST(a_replayed_frame)
{
    struct end leader, agent;
    uint8_t wire[256];
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
    say(&leader.chan, 1);
    size_t n = intercept(&agent, wire, sizeof wire);
    inject(&leader, wire, n);
    inject(&leader, wire, n);
    hear(&agent.chan, 1);
    is_refused(&agent, "sent a frame out of its turn");
    part(&leader, &agent);
}
END_TEST

START_TEST(frames_in_another_order)
{
    struct end leader, agent;
    uint8_t wire[512];
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
    say(&leader.chan, 1);
    size_t first = intercept(&agent, wire, sizeof wire);
    say(&leader.chan, 2);
    size_t second = intercept(&agent, wire + first, sizeof wire - first);
    inject(&leader, wire + first, second);
    inject(&leader, wire, first);
    is_refused(&agent, "sent a frame out of its turn");
    part(&leader, &agent);
}
END_TEST

/* Any bit. */
START_TEST(a_changed_frame)
{
    struct end leader, agent;
    uint8_t wire[256];
    for (unsigned bit = 4 * 8;; bit += 37) { /* behind the length */
        meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
        say(&leader.chan, 1);
        size_t n = intercept(&agent, wire, sizeof wire);
        if (bit >= n * 8) {
            part(&leader, &agent);
            break;
        }
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        inject(&leader, wire, n);
        struct frame f;
        expect(chan_await(&agent.chan, clock_now() + SOON, &f) == CHAN_LOST);
        part(&leader, &agent);
    }
}
END_TEST

START_TEST(a_frame_of_another_session)
{
    struct end leader, agent, other, other_agent;
    uint8_t wire[256];
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
    meet(&other, &other_agent, "0123456789abcdef", "0123456789abcdef");
    say(&other.chan, 1);
    size_t n = intercept(&other_agent, wire, sizeof wire);
    inject(&leader, wire, n);
    is_refused(&agent, "sent a frame with a wrong seal");
    part(&leader, &agent);
    part(&other, &other_agent);
}
END_TEST

START_TEST(a_frame_sent_back)
{
    struct end leader, agent;
    uint8_t wire[256];
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
    say(&leader.chan, 1);
    size_t n = intercept(&agent, wire, sizeof wire);
    ck_assert_int_eq(send(agent.chan.fd, wire, n, 0), (ssize_t)n);
    is_refused(&leader, "sent a frame with a wrong seal");
    part(&leader, &agent);
}
END_TEST

START_TEST(without_seals_the_order_counts_too)
{
    struct end leader, agent;
    uint8_t wire[256];
    meet(&leader, &agent, "", "");
    say(&leader.chan, 1);
    size_t n = intercept(&agent, wire, sizeof wire);
    inject(&leader, wire, n);
    inject(&leader, wire, n);
    hear(&agent.chan, 1);
    is_refused(&agent, "sent a frame out of its turn");
    part(&leader, &agent);
}
END_TEST

START_TEST(what_came_before_the_end_is_read)
{
    struct end leader, agent;
    struct frame f;
    meet(&leader, &agent, "0123456789abcdef", "0123456789abcdef");
    say(&leader.chan, 1);
    say(&leader.chan, 2);
    shutdown(leader.chan.fd, SHUT_WR);
    hear(&agent.chan, 1);
    hear(&agent.chan, 2);
    ck_assert_int_eq(chan_await(&agent.chan, clock_now() + SOON, &f), CHAN_LOST);
    ck_assert_str_eq(agent.chan.error, "closed the connection");
    part(&leader, &agent);
}
END_TEST

START_TEST(a_stranger_gets_no_memory)
{
    int fds[2];
    struct end agent = {.key = key_of("0123456789abcdef")};
    static const uint8_t huge[] = {0, 63, 255, 255, 0, 1};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    chan_init(&agent.chan, fds[1], SEAL_AGENT);
    ck_assert_int_eq(send(fds[0], huge, sizeof huge, 0), sizeof huge);
    agent_main(&agent);
    ck_assert_int_eq(agent.status, GREET_FAILED);
    ck_assert_str_eq(agent.err, "sent something that is no frame");
    chan_fini(&agent.chan);
    close(fds[0]);
}
END_TEST

START_TEST(nothing_comes_in_time)
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
END_TEST

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

START_TEST(a_key_is_kept_secret)
{
    struct seal_key key;
    char err[MESSAGE_TEXT_MAX];
    scratch_name(dir, "check_chan");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(read_key(&key, "0123456789abcdef", 0600, err));
    ck_assert_uint_eq(key.len, 16);
    ck_assert(!read_key(&key, "0123456789abcde", 0600, err));
    ck_assert_ptr_nonnull(strstr(err, "shorter than 16 bytes"));
    ck_assert(!read_key(&key, "0123456789abcdef", 0640, err));
    ck_assert_ptr_nonnull(strstr(err, "open to others"));
    ck_assert(!read_key(&key, "0123456789abcdef", 0604, err));
    ck_assert(!seal_read_key(&key, dir, err, sizeof err));
    ck_assert(!seal_read_key(&key, "/nonexistent/key", err, sizeof err));
    ck_assert_uint_eq(key.len, 0);
    rmdir(dir);
}
END_TEST

START_TEST(comparing)
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
END_TEST

int
main(void)
{
    Suite *suite = suite_create("chan");
    TCase *open_tc = tcase_create("open"), *sealed = tcase_create("sealed");
    tcase_set_timeout(open_tc, SUITE_TIMEOUT_S);
    tcase_set_timeout(sealed, SUITE_TIMEOUT_S);
    tcase_add_test(open_tc, without_a_key);
    tcase_add_test(open_tc, without_seals_the_order_counts_too);
    tcase_add_test(open_tc, a_stranger_gets_no_memory);
    tcase_add_test(open_tc, nothing_comes_in_time);
    tcase_add_test(open_tc, a_key_is_kept_secret);
    tcase_add_test(open_tc, comparing);
    suite_add_tcase(suite, open_tc);
    if (seal_is_there()) {
        tcase_add_test(sealed, with_the_same_key);
        tcase_add_test(sealed, with_another_key);
        tcase_add_test(sealed, with_a_key_on_one_side);
        tcase_add_test(sealed, a_replayed_frame);
        tcase_add_test(sealed, frames_in_another_order);
        tcase_add_test(sealed, a_changed_frame);
        tcase_add_test(sealed, a_frame_of_another_session);
        tcase_add_test(sealed, a_frame_sent_back);
        tcase_add_test(sealed, what_came_before_the_end_is_read);
    }
    suite_add_tcase(suite, sealed);
    return run_suite(suite);
}
