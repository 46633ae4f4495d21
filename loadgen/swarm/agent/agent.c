/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/agent/agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen/run/run.h"
#include "loadgen/swarm/agent/service.h"
#include "loadgen/swarm/endpoint.h"
#include "loadgen/swarm/message.h"

#define CHILDREN_MAX 8 /* connections at a time, that of the leader included */
#define ANY_ADDRESS "0.0.0.0"
#define LOOPBACK "127.0.0.1"

struct agent {
    const struct options *o;
    struct scope_words host; /* what concerns this machine */
    struct seal_key key;
    struct target at;
    int listen_fd, signal_fd;
    struct agent_shared *shared;
    pid_t children[CHILDREN_MAX]; /* oldest first */
    unsigned count;
};

/* Without a key any process that reaches the agent commands it: so it must be out of
 * reach. */
static enum exit_status
listen_where_allowed(struct agent *a)
{
    char err[MESSAGE_TEXT_MAX];
    bool is_open = a->key.len == 0 && !a->o->is_insecure_agent;
    const char *where = a->o->agent_address;
    if (where == NULL) {
        where = is_open ? LOOPBACK : ANY_ADDRESS;
    }
    if (!endpoint_resolve(&a->at, where, (unsigned)a->o->agent_port, err, sizeof err)) {
        return options_fail(stderr, EXIT_UNREACHABLE, "%s", err);
    }
    if (is_open && !a->at.is_local) {
        return options_fail(stderr, EXIT_USAGE,
                            "without --key-file an agent listens on loopback only "
                            "(--insecure-agent)");
    }
    a->listen_fd = endpoint_listen(&a->at, err, sizeof err);
    return a->listen_fd != -1 ? EXIT_VALID
                              : options_fail(stderr, EXIT_UNREACHABLE, "%s", err);
}

static enum exit_status
set_up(struct agent *a)
{
    sigset_t signals;
    char err[MESSAGE_TEXT_MAX];
    if (!seal_read_key(&a->key, a->o->key_file, err, sizeof err)) {
        return options_fail(stderr, EXIT_USAGE, "%s", err);
    }
    enum exit_status status = listen_where_allowed(a);
    if (status != EXIT_VALID) {
        return status;
    }
    a->shared = mmap(NULL, sizeof *a->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_signals(&signals);
    sigaddset(&signals, SIGCHLD);
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &signals, NULL));
    a->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (a->shared == MAP_FAILED || a->signal_fd == -1) {
        a->shared = a->shared == MAP_FAILED ? NULL : a->shared;
        return options_fail(stderr, EXIT_UNREACHABLE, "cannot set up the agent");
    }
    cap_init(&a->shared->cap, (double)a->o->agent_max_qps, (double)a->o->agent_max_bytes);
    return EXIT_VALID;
}

/* ---- children ----------------------------------------------------------------------- */

static void
forget_child(struct agent *a, pid_t pid, int status)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (a->children[i] == pid) {
            memmove(&a->children[i], &a->children[i + 1],
                    (a->count - i - 1) * sizeof a->children[0]);
            a->count--;
            break;
        }
    }
    int owner = (int)pid;
    atomic_compare_exchange_strong(&a->shared->owner, &owner, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SERVICE_WRONG_KEY) {
        atomic_fetch_add(&a->shared->failures, 1);
    }
}

static void
reap(struct agent *a)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        forget_child(a, pid, status);
    }
}

static void
end_child(struct agent *a, pid_t pid)
{
    int status = 0;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) {
    }
    forget_child(a, pid, status);
}

/* Strangers that only hold their places give way; the leader does not. */
static void
make_place(struct agent *a)
{
    for (unsigned i = 0; a->count == CHILDREN_MAX && i < a->count; i++) {
        if ((int)a->children[i] != atomic_load(&a->shared->owner)) {
            end_child(a, a->children[i]);
        }
    }
}

static void
serve(struct agent *a, int fd)
{
    pid_t parent = getpid();
    make_place(a);
    pid_t pid = fork();
    if (pid == 0) {
        /* No orphan ever sends: not even when this process is killed. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(SERVICE_ENDED);
        }
        close(a->listen_fd);
        close(a->signal_fd);
        struct service_conf conf = {a->o, &a->host, &a->key, a->shared,
                                    lease_pause(atomic_load(&a->shared->failures))};
        _exit(service_run(&conf, fd));
    }
    if (pid > 0) {
        a->children[a->count++] = pid;
    }
    close(fd);
}

/* True when it is time to end. */
static bool
take_signals(struct agent *a)
{
    struct signalfd_siginfo info;
    bool is_over = false;
    while (read(a->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        is_over = is_over || info.ssi_signo != SIGCHLD;
    }
    reap(a);
    return is_over;
}

static void
accept_all(struct agent *a)
{
    char err[MESSAGE_TEXT_MAX];
    int fd = endpoint_accept(a->listen_fd, err, sizeof err);
    if (fd != -1) {
        serve(a, fd);
    } else if (err[0] != '\0') {
        fprintf(stderr, "mcload: %s\n", err);
    }
}

static void
wait_for_leaders(struct agent *a)
{
    struct pollfd fds[] = {
        {.fd = a->listen_fd, .events = POLLIN},
        {.fd = a->signal_fd, .events = POLLIN},
    };
    for (;;) {
        int rc = poll(fds, 2, -1);
        must(rc >= 0 || errno == EINTR);
        if (take_signals(a)) {
            return;
        }
        if (rc > 0 && fds[0].revents != 0) {
            accept_all(a);
        }
    }
}

static void
tear_down(struct agent *a)
{
    while (a->count > 0) {
        end_child(a, a->children[0]);
    }
    if (a->at.addr.ss_family == AF_UNIX && a->listen_fd != -1) {
        unlink(strchr(a->at.name, ':') + 1);
    }
    if (a->listen_fd != -1) {
        close(a->listen_fd);
    }
    if (a->signal_fd != -1) {
        close(a->signal_fd);
    }
    if (a->shared != NULL) {
        munmap(a->shared, sizeof *a->shared);
    }
    seal_forget(&a->key, sizeof a->key);
    scope_words_fini(&a->host);
}

enum exit_status
agent_run(const struct options *o, int argc, char **argv)
{
    struct agent a = {.o = o, .listen_fd = -1, .signal_fd = -1};
    enum exit_status status =
        scope_keep_host(&a.host, argc, argv, stderr) ? set_up(&a) : EXIT_USAGE;
    if (status == EXIT_VALID) {
        if (!o->is_quiet) {
            fprintf(stderr, "mcload: agent listens on %s%s\n", a.at.name,
                    a.key.len > 0 ? "" : ", without authentication");
        }
        wait_for_leaders(&a);
    }
    tear_down(&a);
    return status;
}
