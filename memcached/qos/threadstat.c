/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/threadstat.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/num.h"

#define TEXT_LEN 4096 /* what of a file is looked at */

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

static bool
read_file(pid_t tid, const char *name, char text[TEXT_LEN])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, TEXT_LEN - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

void
threadstat_read_times(pid_t tid, struct threadstat *t)
{
    char text[TEXT_LEN];
    *t = (struct threadstat){0};
    if (read_file(tid, "schedstat", text)) {
        (void)!threadstat_parse_times(text, t);
    }
}

void
threadstat_read(pid_t tid, struct threadstat *t)
{
    char text[TEXT_LEN];
    threadstat_read_times(tid, t);
    if (read_file(tid, "sched", text)) {
        (void)!threadstat_parse_migrations(text, t);
    }
}
