/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What servers say of themselves before a run: their version, and how they are set up. Pure
 * but for memory; one thread. Results share it, so users are counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

/* The replies to these two are what is parsed. */
#define SERVER_SETTINGS_REQUEST "version\r\nstats settings\r\n"

struct server_setting {
    const char *name, *value;
};

/* By one server; all zero: it said nothing. */
struct server_told {
    const char *version;             /* NULL: not told */
    struct server_setting *settings; /* in the server's order */
    size_t len;
    char *text; /* that the others point into */
};

struct server_settings {
    unsigned users;
    unsigned servers;
    struct server_told told[];
};

/* With one user; NULL when memory is short. */
must_check struct server_settings *server_settings_create(unsigned servers);
/* For one user more; also of NULL. */
struct server_settings *server_settings_get(struct server_settings *s);
/* Forgets it; the last one frees. Also of NULL. */
void server_settings_release(struct server_settings **s);

/* Whether `text` is all that the server number `server` answers; keeps it then, as far as it
 * is no error and memory suffices. Once a server. */
must_check bool server_settings_take(struct server_settings *s, unsigned server,
                                     const char *text, size_t len);
/* Whether a server told anything. Also of NULL: no. */
bool server_settings_are_told(const struct server_settings *s);
