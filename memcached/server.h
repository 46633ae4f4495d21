/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The server: set-up in order, the main loop, tear-down in reverse. The main thread.
 */
#pragma once

struct settings;

/* Reads the certificates, tokens and passwords that it names, and opens nothing else. Returns the
 * exit status of the process. */
int server_check(struct settings *s);
/* Serves until a signal ends it. Takes s over. Returns the exit status of the process. */
int server_run(struct settings *s);
