/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/threadstat.h"

#include <fcntl.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define TEXT_LEN 4096 /* what of a file is looked at */
#define TIMES_LEN 128
#define FIELD_STATE 3 /* as proc(5) counts those of .../stat */
#define FIELD_CPU 39

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

/* The name of the thread, in brackets, may have any characters: fields are counted from the last one. */
bool
threadstat_parse_state(const char *text, char *state, int *cpu)
{
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') {
        return false;
    }
    at += 2;
    *state = *at;
    for (unsigned field = FIELD_STATE; field < FIELD_CPU; field++) {
        at = strchr(at, ' ');
        if (at == NULL) {
            return false;
        }
        at++;
    }
    uint64_t number;
    if (!parse_word(&at, &number) || number > INT_MAX) {
        return false;
    }
    *cpu = (int)number;
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

bool
threadstat_waits_for(pid_t tid, int cpu)
{
    char text[TEXT_LEN];
    char state;
    int at;
    int fd = open_file(tid, "stat");
    bool is_known =
        read_text(fd, text, sizeof text) && threadstat_parse_state(text, &state, &at);
    close_file(fd);
    return is_known && state == 'R' && at == cpu;
}
