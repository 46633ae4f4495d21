/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Groups of listeners on this kernel: the table of CPUs decides, also where workers share a
 * CPU, and the thread that tries it out is back on its CPUs afterwards. What the kernel says of
 * a connection's CPU.
 */
#include "sock/reuseport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check_main.h"
#include "sock/incoming.h"

#define CPUS_MAX 4

/* The first CPUs that this process may use. */
static unsigned
own_cpus(int cpus[CPUS_MAX], cpu_set_t *set)
{
    unsigned count = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof *set, set), 0);
    for (int i = 0; i < CPU_SETSIZE && count < CPUS_MAX; i++) {
        if (CPU_ISSET(i, set)) {
            cpus[count++] = i;
        }
    }
    return count;
}

TEST(the_kernel_chooses_by_cpu)
{
    int own[CPUS_MAX];
    cpu_set_t before, after;
    _Atomic int cpus[3 * CPUS_MAX];
    unsigned count = own_cpus(own, &before);
    for (unsigned i = 0; i < 3 * count; i++) {
        atomic_init(&cpus[i], own[i % count]);
    }
    for (unsigned each = 1; each <= 3; each++) {
        unsigned workers = each * count;
        enum reuseport_kind kind = reuseport_choose(cpus, workers);
        ck_assert_uint_ne(kind, REUSEPORT_HASH);
        if (kind != REUSEPORT_NONE) {
            ck_assert(reuseport_works(cpus, workers, kind));
        }
        /* Receives elsewhere (RPS on loopback), or knows one way at least. */
        ck_assert(kind == REUSEPORT_NONE || kind == REUSEPORT_TABLE ||
                  reuseport_works(cpus, workers, REUSEPORT_TABLE));
    }
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
}

TEST(unpinned_is_by_hash)
{
    _Atomic int none[] = {-1, -1, -1};
    ck_assert_uint_eq(reuseport_choose(none, 3), REUSEPORT_HASH);
}

/* Over loopback the sender's CPU receives; there is no card, and so no queue. */
TEST(the_cpu_of_a_connection_is_told)
{
    int own[CPUS_MAX];
    cpu_set_t set;
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    ck_assert_uint_gt(own_cpus(own, &set), 0);
    CPU_ZERO(&set);
    CPU_SET((unsigned)own[0], &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0),
        client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&addr, len), 0);
    int fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(incoming_cpu(fd), 0);
    ck_assert_uint_eq(incoming_queue(fd), 0);
    close(fd);
    close(client);
    close(listener);
    ck_assert_int_eq(incoming_cpu(-1), -1);
    ck_assert_uint_eq(incoming_queue(-1), 0);
}

TEST_LOOP(flows_are_read, 4)
{
    static const struct {
        const char *text;
        bool is_on;
    } cases[] = {{"0\n", false}, {"32768\n", true}, {"", false}, {"x", false}};
    char path[SCRATCH_PATH];
    scratch_file(path, cases[_i].text, strlen(cases[_i].text));
    ck_assert_int_eq(incoming_has_flows(path), cases[_i].is_on);
    unlink(path);
    ck_assert(!incoming_has_flows(path));
}
