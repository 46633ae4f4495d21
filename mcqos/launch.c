/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A layout in the foreground, without systemd.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mcqos/layout.h"

#define LINE_MAX_BYTES 1024
#define EXIT_NOT_STARTED 127

/* The kernel ends a server with this process (PR_SET_PDEATHSIG), but not one that has changed its user. So
 * each signal that would end this process stops the servers first. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD};

struct process {
    pid_t pid; /* 0: it has ended, or never began */
    size_t len;
    char line[LINE_MAX_BYTES]; /* what it prints */
};

struct launched {
    const struct layout *layout;
    struct process *processes;
    struct pollfd *polls; /* of their pipes; the last one: of the signals */
    unsigned left;        /* processes and pipes */
    sigset_t before;
    bool is_stopping, has_failed;
};

/* ---- starting ------------------------------------------------------------------------- */

static void
make_arguments(const struct layout *l, const struct layout_instance *i, char *own,
               char *port, const char *args[LAYOUT_ARGS_MAX])
{
    const struct options *o = l->options;
    unsigned count = 0;
    args[count++] = o->layout.program;
    args[count++] = "-l";
    args[count++] = o->layout.listen;
    args[count++] = "-p";
    args[count++] = port;
    for (char *word = strtok(own, " "); word != NULL; word = strtok(NULL, " ")) {
        args[count++] = word;
    }
    for (unsigned n = l->more; n < o->count; n++) {
        args[count++] = o->words[n];
    }
    must(count < LAYOUT_ARGS_MAX);
    args[count] = NULL;
    sprintf(port, "%u", i->port);
}

/* In the child: all of it on its CPUs, not only its workers. */
__attribute__((noreturn)) static void
become(const struct launched *all, const struct layout_instance *i, pid_t parent, int out)
{
    const char *args[LAYOUT_ARGS_MAX];
    char own[LAYOUT_OWN_MAX], port[16];
    layout_own_args(i, own);
    make_arguments(all->layout, i, own, port, args);
    int error = cpumask_bind(0, &i->cpus);
    if (error != 0) {
        dprintf(out, "cannot be bound to CPU %s: %s\n", i->list, strerror(error));
        _exit(EXIT_NOT_STARTED);
    }
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &all->before, NULL);
    setpgid(0, 0); /* Ctrl-C is the parent's */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) {
        execvp(args[0], (char *const *)args);
        fprintf(stderr, "cannot start %s: %s; --memcached=PATH says where it is\n",
                args[0], strerror(errno));
    }
    _exit(EXIT_NOT_STARTED);
}

static bool
start(struct launched *all, unsigned n)
{
    struct process *p = &all->processes[n];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fprintf(stderr, "mcqos: pipe: %s\n", strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    p->pid = fork();
    if (p->pid == 0) {
        become(all, &all->layout->instances[n], parent, ends[1]);
    }
    close(ends[1]);
    all->polls[n].fd = ends[0];
    all->left += 2;
    if (p->pid < 0) {
        fprintf(stderr, "mcqos: fork: %s\n", strerror(errno));
        p->pid = 0;
        all->left--;
        return false;
    }
    return true;
}

/* ---- running -------------------------------------------------------------------------- */

static void
put_line(struct launched *all, unsigned n)
{
    struct process *p = &all->processes[n];
    printf("%u| %.*s\n", all->layout->instances[n].port, (int)p->len, p->line);
    fflush(stdout);
    p->len = 0;
}

static void
pass_on(struct launched *all, unsigned n)
{
    struct process *p = &all->processes[n];
    char buf[LINE_MAX_BYTES];
    ssize_t got = read(all->polls[n].fd, buf, sizeof buf);
    for (ssize_t i = 0; i < got; i++) {
        if (buf[i] != '\n') {
            p->line[p->len++] = buf[i];
        }
        if (buf[i] == '\n' || p->len == sizeof p->line) {
            put_line(all, n);
        }
    }
    if (got == 0 || (got < 0 && errno != EINTR)) {
        if (p->len > 0) {
            put_line(all, n);
        }
        close(all->polls[n].fd);
        all->polls[n].fd = -1;
        all->left--;
    }
}

static void
stop_all(struct launched *all)
{
    all->is_stopping = true;
    for (unsigned n = 0; n < all->layout->count; n++) {
        if (all->processes[n].pid > 0) {
            kill(all->processes[n].pid, SIGTERM);
        }
    }
}

static void
tell_end(struct launched *all, unsigned n, int status)
{
    bool is_killed = WIFSIGNALED(status);
    int number = is_killed ? WTERMSIG(status) : WEXITSTATUS(status);
    if (number == 0 && all->is_stopping) {
        return;
    }
    fprintf(stderr, "mcqos: the server on port %u %s %d%s\n",
            all->layout->instances[n].port,
            is_killed ? "was ended by signal" : "ended with status", number,
            all->is_stopping ? "" : "; stopping the others");
    all->has_failed = true;
    if (!all->is_stopping) {
        stop_all(all);
    }
}

static void
hear_signals(struct launched *all, int fd)
{
    struct signalfd_siginfo info;
    int status;
    if (read(fd, &info, sizeof info) != sizeof info) {
        return;
    }
    if (info.ssi_signo != SIGCHLD) {
        stop_all(all);
        return;
    }
    for (unsigned n = 0; n < all->layout->count; n++) {
        struct process *p = &all->processes[n];
        if (p->pid > 0 && waitpid(p->pid, &status, WNOHANG) == p->pid) {
            p->pid = 0;
            all->left--;
            tell_end(all, n, status);
        }
    }
}

static void
loop(struct launched *all)
{
    unsigned count = all->layout->count;
    while (all->left > 0) {
        if (poll(all->polls, count + 1, -1) < 0) {
            must(errno == EINTR);
            continue;
        }
        for (unsigned n = 0; n < count; n++) {
            if (all->polls[n].revents != 0) {
                pass_on(all, n);
            }
        }
        if (all->polls[count].revents != 0) {
            hear_signals(all, all->polls[count].fd);
        }
    }
}

enum outcome
launch(const struct layout *layout)
{
    unsigned count = layout->count;
    struct launched all = {
        .layout = layout,
        .processes = calloc(count, sizeof *all.processes),
        .polls = calloc(count + 1, sizeof *all.polls),
    };
    sigset_t heard;
    must(all.processes != NULL && all.polls != NULL);
    sigemptyset(&heard);
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        /* What is ignored (nohup, SIGPIPE of a service) stays ignored. */
        struct sigaction action;
        must(sigaction(signals[i], NULL, &action) == 0);
        if (signals[i] == SIGCHLD || action.sa_handler != SIG_IGN) {
            sigaddset(&heard, signals[i]);
        }
    }
    must(sigprocmask(SIG_BLOCK, &heard, &all.before) == 0);
    for (unsigned n = 0; n <= count; n++) {
        all.polls[n] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    all.polls[count].fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    must(all.polls[count].fd >= 0);
    for (unsigned n = 0; n < count && !all.has_failed; n++) {
        all.has_failed = !start(&all, n);
    }
    if (all.has_failed) {
        stop_all(&all);
    }
    loop(&all);
    close(all.polls[count].fd);
    free(all.processes);
    free(all.polls);
    return all.has_failed ? REFUSED : DONE;
}
