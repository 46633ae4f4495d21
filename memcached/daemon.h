/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The process around the server: limits, user, background, pid file. Start-up thread. Each
 * function returns 0, or the exit status after having printed one line.
 */
#pragma once

#include "base/must.h"

/* /dev/null where stdin, stdout or stderr is closed: else a socket would be opened there, which
 * gets messages, and which daemon_ready would replace. Before any file is opened. */
must_check int daemon_open_streams(void);
/* Room for `needed` open files; where the hard limit is lower, for what it allows, if that is
 * `least` at least. */
must_check int daemon_raise_files(unsigned needed, unsigned least);
must_check int daemon_allow_core(void);
/* Whether root finds a user that is given. 0, or the exit status with a line on stderr. */
must_check int daemon_check_user(const char *user);
/* As root: become `user`, which must be given. Otherwise nothing. */
must_check int daemon_drop_root(const char *user);

/* A child that goes on, between the fork and its first service. */
struct daemon {
    int parent; /* where the parent waits for word; -1: there is none */
    int null;   /* /dev/null; -1: the output stays */
};

/* Goes on in a child without terminal, which keeps its output until daemon_ready. The parent
 * exits with status 0 at that, or, when the child ends before, with its status. */
must_check int daemon_detach(struct daemon *d, bool keeps_directory, bool keeps_output);
/* The child serves. Without a parent that waits nothing happens. */
void daemon_ready(struct daemon *d);

/* As root, before it is dropped: lifts the limit on locked memory. */
void daemon_allow_locking(void);
/* A failure only warns; so does a limit that `bytes` of memory would meet later. */
void daemon_lock_memory(uint64_t bytes);
/* No core file, and no other process of the user looks inside: there are secrets. After
 * daemon_drop_root. A failure only warns. */
void daemon_hide_memory(void);
/* `is_needed`: a failure ends the start; else it warns. The first one looks at the name alone. */
must_check int daemon_check_pid(const char *path, bool is_needed);
must_check int daemon_write_pid(const char *path, bool is_needed);
/* Not when it has another process's id by now. */
void daemon_remove_pid(const char *path);
