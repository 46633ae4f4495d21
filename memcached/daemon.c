/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
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
        fprintf(stderr, "memcached: failed to ensure that core files can be written\n");
        return STATUS_OS_ERROR;
    }
    return 0;
}

int
daemon_drop_root(const char *user)
{
    if (getuid() != 0 && geteuid() != 0) {
        return 0;
    }
    if (user == NULL || *user == '\0') {
        fprintf(stderr, "memcached: can't run as root without the -u switch\n");
        return STATUS_USAGE;
    }
    const struct passwd *pw = getpwnam(user);
    if (pw == NULL) {
        fprintf(stderr, "memcached: can't find the user %s to switch to\n", user);
        return STATUS_NO_USER;
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

static bool
silence_output(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool is_silent = null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
                     dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0;
    if (null > STDERR_FILENO) {
        close(null);
    }
    return is_silent;
}

int
daemon_detach(bool keeps_directory, bool keeps_output)
{
    pid_t pid = fork();
    if (pid < 0) {
        return fail(STATUS_FAILURE, "failed to go to the background");
    }
    if (pid > 0) {
        _exit(0);
    }
    if (setsid() < 0 || (!keeps_directory && chdir("/") != 0) ||
        (!keeps_output && !silence_output())) {
        return fail(STATUS_FAILURE, "failed to go to the background");
    }
    signal(SIGHUP, SIG_IGN);
    return 0;
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
        fprintf(stderr, "memcached: warning: -k invalid, only %llu bytes may be locked\n",
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

/* Says so when the file names another process that is alive. */
static void
warn_about_running(const char *path)
{
    char text[32];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    uint32_t pid;
    len = strcspn(text, "\n");
    if (num_u32(text, len, &pid) && pid > 0 && kill((pid_t)pid, 0) == 0) {
        fprintf(stderr,
                "memcached: warning: the pid file contained the (now overwritten) "
                "pid of a running process.\n");
    }
}

int
daemon_write_pid(const char *path)
{
    char temporary[4096];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.tmp", path) >=
        sizeof temporary) {
        errno = ENAMETOOLONG;
        return fail(STATUS_OS_ERROR, path);
    }
    warn_about_running(path);
    /* A link under the foreseeable name must not lead us to another file. */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        return fail(STATUS_OS_ERROR, temporary);
    }
    bool is_written = fprintf(file, "%ld\n", (long)getpid()) > 0;
    is_written &= fclose(file) == 0;
    if (!is_written || rename(temporary, path) != 0) {
        return fail(STATUS_OS_ERROR, path);
    }
    return 0;
}

void
daemon_remove_pid(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT) {
        fprintf(stderr, "memcached: warning: could not remove the pid file %s: %s\n",
                path, strerror(errno));
    }
}
