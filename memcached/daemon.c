/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"

#define STATUS_FAILURE 1
#define STATUS_USAGE 64
#define STATUS_NO_USER 67
#define STATUS_OS_ERROR 71

static int
fail(int status, const char *what)
{
    fprintf(stderr, "memcached: %s: %s\n", what, strerror(errno));
    return status;
}

int
daemon_open_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
            return fail(STATUS_FAILURE, "cannot open /dev/null for a closed stream");
        }
    }
    return 0;
}

int
daemon_raise_files(unsigned needed, unsigned least)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return fail(STATUS_OS_ERROR, "failed to get the limit on open files");
    }
    if (limit.rlim_cur >= needed) {
        return 0;
    }
    rlim_t hard = limit.rlim_max;
    limit.rlim_cur = needed;
    limit.rlim_max = hard < needed ? needed : hard;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
        return 0;
    }
    limit.rlim_cur = limit.rlim_max = hard;
    if (hard >= least && setrlimit(RLIMIT_NOFILE, &limit) == 0) {
        return 0;
    }
    errno = EPERM;
    return fail(STATUS_OS_ERROR,
                "failed to set rlimit for open files; lower -c, or raise "
                "the limit or start as root");
}

int
daemon_allow_core(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &limit) != 0 && getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_CORE, &limit) != 0) {
            return fail(STATUS_OS_ERROR, "failed to raise the limit on core files");
        }
    }
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur == 0) {
        fprintf(stderr,
                "memcached: failed to ensure that core files can be written; raise "
                "the limit (ulimit -c, LimitCORE=), or leave out -r\n");
        return STATUS_OS_ERROR;
    }
    return 0;
}

static bool
is_root(void)
{
    return getuid() == 0 || geteuid() == 0;
}

/* NULL, with a line on stderr and the exit status: there is none. */
static const struct passwd *
find_user(const char *user, int *status)
{
    if (user == NULL || *user == '\0') {
        fprintf(stderr,
                "memcached: can't run as root without the -u switch; give the user "
                "to run as, such as -u nobody\n");
        *status = STATUS_USAGE;
        return NULL;
    }
    const struct passwd *pw = getpwnam(user);
    if (pw == NULL) {
        fprintf(
            stderr,
            "memcached: can't find the user %s to switch to (-u); see getent passwd\n",
            user);
        *status = STATUS_NO_USER;
    }
    return pw;
}

int
daemon_check_user(const char *user)
{
    int status = 0;
    if (is_root() && user != NULL) {
        (void)find_user(user, &status);
    }
    return status;
}

int
daemon_drop_root(const char *user)
{
    int status;
    if (!is_root()) {
        return 0;
    }
    const struct passwd *pw = find_user(user, &status);
    if (pw == NULL) {
        return status;
    }
    /* In a container root may lack the right to change groups; the ids matter more. */
    if (setgroups(0, NULL) != 0 && errno != EPERM) {
        return fail(STATUS_OS_ERROR, "failed to drop supplementary groups");
    }
    if (setgid(pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0) {
        return fail(STATUS_OS_ERROR, "failed to assume the identity of the user");
    }
    return 0;
}

/* The child's word is a byte; without it the pipe ends with the child. */
__attribute__((noreturn)) static void
wait_for_child(pid_t child, int from)
{
    char word;
    int status;
    ssize_t n;
    do {
        n = read(from, &word, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1) {
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr,
                "memcached: the server was killed by signal %d (%s) at its start\n",
                WTERMSIG(status), strsignal(WTERMSIG(status)));
        _exit(STATUS_FAILURE);
    }
    _exit(WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : STATUS_FAILURE);
}

int
daemon_detach(struct daemon *d, bool keeps_directory, bool keeps_output)
{
    int ends[2];
    *d = (struct daemon){-1, -1};
    if (!keeps_output && (d->null = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0) {
        return fail(STATUS_FAILURE, "cannot open /dev/null for reading and writing (-d)");
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return fail(STATUS_FAILURE, "failed to go to the background");
    }
    pid_t pid = fork();
    if (pid < 0) {
        return fail(STATUS_FAILURE, "failed to go to the background");
    }
    if (pid > 0) {
        close(ends[1]);
        wait_for_child(pid, ends[0]);
    }
    close(ends[0]);
    d->parent = ends[1];
    if (setsid() < 0 || (!keeps_directory && chdir("/") != 0)) {
        return fail(STATUS_FAILURE, "failed to go to the background");
    }
    signal(SIGHUP, SIG_IGN);
    return 0;
}

void
daemon_ready(struct daemon *d)
{
    if (d->null >= 0) {
        must(dup2(d->null, STDIN_FILENO) >= 0 && dup2(d->null, STDOUT_FILENO) >= 0 &&
             dup2(d->null, STDERR_FILENO) >= 0);
        if (d->null > STDERR_FILENO) {
            close(d->null);
        }
    }
    if (d->parent >= 0) {
        /* nothing is lost when the parent was killed meanwhile */
        (void)!write(d->parent, "", 1);
        close(d->parent);
    }
    *d = (struct daemon){-1, -1};
}

void
daemon_allow_locking(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 &&
        getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        /* where it stays too low, daemon_lock_memory says so */
        (void)!setrlimit(RLIMIT_MEMLOCK, &limit);
    }
}

void
daemon_lock_memory(uint64_t bytes)
{
    struct rlimit limit;
    if (geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) {
        /* Locking would succeed now and make later allocations fail. */
        fprintf(
            stderr,
            "memcached: warning: -k invalid, only %llu bytes may be locked; raise that "
            "(ulimit -l, LimitMEMLOCK=) above twice -m\n",
            (unsigned long long)limit.rlim_cur);
        return;
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        fprintf(stderr, "memcached: warning: -k invalid, mlockall() failed: %s\n",
                strerror(errno));
    }
}

void
daemon_hide_memory(void)
{
    if (prctl(PR_SET_DUMPABLE, 0L) != 0) {
        fprintf(
            stderr,
            "memcached: warning: the memory is not hidden from others of the same user "
            "and from core files: %s\n",
            strerror(errno));
    }
}

/* ---- the pid file --------------------------------------------------------------------- */

/* What the file says; 0: nothing. It may be anything, so nothing is waited for. */
static pid_t
read_pid(const char *path)
{
    char text[32];
    uint32_t pid;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (len <= 0) {
        return 0;
    }
    text[len] = '\0';
    return num_u32(text, strcspn(text, "\n"), &pid) ? (pid_t)pid : 0;
}

static bool
is_alive(pid_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

/* Under a name beside it, so that it appears with its content. False: errno says why. */
static bool
write_pid(const char *path, const char *temporary)
{
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EEXIST; /* a device is not replaced */
        return false;
    }
    /* The name can be foreseen: a file that another user has put there is not written
     * to. */
    if (unlink(temporary) != 0 && errno != ENOENT) {
        return false;
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return false;
    }
    bool is_written = dprintf(fd, "%ld\n", (long)getpid()) > 0;
    is_written = close(fd) == 0 && is_written;
    if (is_written && rename(temporary, path) == 0) {
        return true;
    }
    int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

int
daemon_check_pid(const char *path, bool is_needed)
{
    if (*path != '\0') {
        return 0;
    }
    fprintf(stderr, "memcached: %sthere is no name of a pid file (-P)\n",
            is_needed ? "" : "warning: ");
    return is_needed ? STATUS_OS_ERROR : 0;
}

int
daemon_write_pid(const char *path, bool is_needed)
{
    char temporary[PATH_MAX];
    size_t len = (size_t)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (*path == '\0') {
        return daemon_check_pid(path, is_needed);
    }
    if (is_alive(read_pid(path))) {
        fprintf(stderr,
                "memcached: warning: the pid file %s contained the (now overwritten) "
                "pid of a running process.\n",
                path);
    }
    errno = ENAMETOOLONG;
    if (len < sizeof temporary && write_pid(path, temporary)) {
        return 0;
    }
    fprintf(stderr, "memcached: %scannot write the pid file %s (-P): %s\n",
            is_needed ? "" : "warning: ", path, strerror(errno));
    return is_needed ? STATUS_OS_ERROR : 0;
}

void
daemon_remove_pid(const char *path)
{
    if (read_pid(path) == getpid() && unlink(path) != 0) {
        fprintf(stderr, "memcached: warning: could not remove the pid file %s: %s\n",
                path, strerror(errno));
    }
}
