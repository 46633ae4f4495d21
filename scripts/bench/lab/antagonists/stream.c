/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A TCP stream over loopback from a child to this process, at MBITS a second or less. `stream MBITS
 * SECONDS`; work: bytes received. Prints allowed=, those that the rate allows.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "antagonist.h"

enum { PIECE_BYTES = 65536 };

static _Noreturn void
stream_to(struct sockaddr_in to, double bytes_per_ns)
{
    static char piece[PIECE_BYTES];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        fail("connect");
    }
    /* What the connection had not taken in time is not made up for. */
    int64_t due = now_ns(CLOCK_MONOTONIC);
    for (;;) {
        int64_t now = now_ns(CLOCK_MONOTONIC);
        due = (due > now ? due : now) + (int64_t)(PIECE_BYTES / bytes_per_ns);
        struct timespec at = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        if (send(fd, piece, sizeof piece, MSG_NOSIGNAL) <= 0) {
            _exit(0);
        }
    }
}

int
main(int argc, char **argv)
{
    double bytes_per_ns = argc == 3 ? atof(argv[1]) / 8e3 : 0;
    if (bytes_per_ns <= 0) {
        usage("stream MBITS SECONDS");
    }
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        fail("listen");
    }
    pid_t child = fork();
    if (child == 0) {
        stream_to(address, bytes_per_ns);
    }
    int fd = accept(listener, NULL, NULL);
    if (child < 0 || fd < 0) {
        fail("stream");
    }
    static char piece[PIECE_BYTES];
    uint64_t work = 0;
    begin(argv[2]);
    do {
        ssize_t got = recv(fd, piece, sizeof piece, 0);
        work += got > 0 ? (uint64_t)got : 0;
    } while (goes_on());
    finish(work, "allowed=%.0f",
           (double)(now_ns(CLOCK_MONOTONIC) - began_ns) * bytes_per_ns);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
