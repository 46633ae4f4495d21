/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What servers say of themselves: samples of some of what `stats` tells while a run lasts, and
 * before it their version, and how they are set up. Pure but for memory; one thread.
 */
#pragma once

#include "base/must.h"

enum server_stat {
    STAT_ITEMS,
    STAT_BYTES,
    STAT_CONNECTIONS,
    STAT_EVICTIONS,
    STAT_GETS,
    STAT_SETS,
    STAT_HITS,
    STAT_MISSES,
    STAT_CPU_USER,   /* seconds */
    STAT_CPU_SYSTEM, /* seconds */
    SERVER_STATS,
};

/* As memcached calls it. */
extern const char *const server_stat_names[SERVER_STATS];

struct server_sample {
    unsigned server;
    double at_s;                 /* when it was asked for, from the start of the window */
    double values[SERVER_STATS]; /* 0: the server does not tell */
    unsigned reported;           /* a bit each, of those that it does tell */
};

#define SERVER_STATS_ALL ((1U << SERVER_STATS) - 1)
static inline bool
server_stats_has(unsigned reported, enum server_stat stat)
{
    return (reported >> stat & 1) != 0;
}

/* Items that servers have thrown out to make room. */
struct server_evictions {
    bool is_known, knows_loading;
    double total;   /* since each began; sum over servers */
    double loading; /* while records were stored */
};

struct server_stats {
    unsigned servers;
    double end_s; /* of the window, from its start */
    struct server_evictions evictions;
    struct server_sample *samples; /* those of each server in their order */
    size_t len;
};

must_check struct server_stats *server_stats_create(unsigned servers);
void server_stats_destroy(struct server_stats **s);
void server_stats_add(struct server_stats *s, const struct server_sample *sample);

/* Whether `text` is a whole reply to `stats`; its values then. */
must_check bool server_sample_parse(struct server_sample *sample, const char *text,
                                    size_t len);

/* Sums over servers of the first and the last sample of each with two at least, but for those
 * whose counters began anew in between. */
struct server_change {
    unsigned servers;   /* so many */
    unsigned restarted; /* those that are left out; or `stats reset` was asked of them */
    unsigned reported;  /* by all of them, both times */
    double before[SERVER_STATS], after[SERVER_STATS];
    double cpu; /* of one core, between the two, all servers together */
};

struct server_change server_stats_change(const struct server_stats *s);
/* Of the last sample of each; unknown unless all tell it at the end of the window or later. */
struct server_evictions server_stats_evictions(const struct server_stats *s);

/* ---- settings: results share them, so users are counted --------------------------------- */

/* The replies to these two are what is parsed. */
#define SERVER_SETTINGS_REQUEST "version\r\nstats settings\r\n"

struct server_setting {
    const char *name, *value;
};

/* By one server; all zero: it said nothing. */
struct server_report {
    const char *version;             /* NULL: not told */
    struct server_setting *settings; /* in the server's order */
    size_t len;
    char *text; /* that the others point into */
};

struct server_settings {
    unsigned users;
    unsigned servers;
    struct server_report reported[];
};

/* With one user. */
must_check struct server_settings *server_settings_create(unsigned servers);
/* For one user more; also of NULL. */
struct server_settings *server_settings_get(struct server_settings *s);
/* Forgets it; the last one frees. Also of NULL. */
void server_settings_release(struct server_settings **s);

/* Whether `text` is all that the server number `server` answers; keeps it then, as far as it
 * is no error. Once a server. */
must_check bool server_settings_take(struct server_settings *s, unsigned server,
                                     const char *text, size_t len);
/* Whether a server told anything. Also of NULL: no. */
bool server_settings_are_known(const struct server_settings *s);
