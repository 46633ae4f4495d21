/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/threadstat.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define TEXT_LEN 4096 /* what of a file is looked at */
#define TIMES_LEN 128

static bool
parse_word(const char **text, uint64_t *number)
{
    size_t len = strspn(*text, "0123456789");
    if (!num_u64(*text, len, number)) {
        return false;
    }
    *text += len;
    *text += strspn(*text, " ");
    return true;
}

bool
threadstat_parse_times(const char *text, struct threadstat *t)
{
    uint64_t run, wait;
    if (!parse_word(&text, &run) || !parse_word(&text, &wait)) {
        return false;
    }
    t->run_ns = run;
    t->wait_ns = wait;
    return true;
}

bool
threadstat_parse_migrations(const char *text, struct threadstat *t)
{
    static const char name[] = "\nse.nr_migrations ";
    uint64_t count;
    const char *line = strstr(text, name);
    const char *colon = line != NULL ? strchr(line, ':') : NULL;
    if (colon == NULL) {
        return false;
    }
    colon += 1 + strspn(colon + 1, " ");
    if (!parse_word(&colon, &count)) {
        return false;
    }
    t->migrations = count;
    return true;
}

static int
open_file(pid_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool
read_text(int fd, char *text, size_t len)
{
    ssize_t n = fd >= 0 ? pread(fd, text, len - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

int
threadstat_open_times(pid_t tid)
{
    return open_file(tid, "schedstat");
}

void
threadstat_reread_times(int fd, struct threadstat *t)
{
    char text[TIMES_LEN];
    *t = (struct threadstat){0};
    if (read_text(fd, text, sizeof text)) {
        (void)!threadstat_parse_times(text, t);
    }
}

static void
close_file(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* The clock of the CPU time of a thread of this process: what pthread_getcpuclockid() gives, from
 * a thread id (bits 0-1: the scheduler's count, 2: of one thread). */
static clockid_t
cpu_clock_of(pid_t tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | 6U);
}

void
threadstat_read_times(pid_t tid, struct threadstat *t)
{
    int fd = threadstat_open_times(tid);
    threadstat_reread_times(fd, t);
    struct timespec run;
    if (fd >= 0 && clock_gettime(cpu_clock_of(tid), &run) == 0) {
        t->run_ns = (nsec_t)run.tv_sec * NSEC_PER_SEC + (nsec_t)run.tv_nsec;
    }
    close_file(fd);
}

void
threadstat_read(pid_t tid, struct threadstat *t)
{
    char text[TEXT_LEN];
    threadstat_read_times(tid, t);
    int fd = open_file(tid, "sched");
    if (read_text(fd, text, sizeof text)) {
        (void)!threadstat_parse_migrations(text, t);
    }
    close_file(fd);
}
