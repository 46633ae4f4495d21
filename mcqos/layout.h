/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Several servers on one machine, each with CPUs of its own, in the papers' notation: 2s3c2t is two
 * sockets, three cores of each, two threads of each core. One thread; the owner ends a layout with
 * layout_fini.
 */
#pragma once

#include "base/cpumask.h"
#include "mcqos/link.h"
#include "mcqos/options.h"

#define LAYOUT_CPUS_MAX 512
#define LAYOUT_OWN_MAX (LAYOUT_CPUS_MAX + 96)
#define LAYOUT_ARGS_MAX (OPTIONS_WORDS_MAX + 11)
#define LAYOUT_WHY_MAX 256

struct layout_instance {
    int socket, core, node; /* hwloc's numbers of the first CPU, -1: unknown */
    unsigned threads, share, port;
    uint64_t memory_mb;
    struct cpumask cpus;
    char list[LAYOUT_CPUS_MAX]; /* the same as text */
};

struct layout {
    const struct options *options;
    const char *shape;
    unsigned more; /* place of the first word that is passed on to the servers */
    struct layout_instance *instances;
    unsigned count;
    bool has_shares; /* which differ */
    uint64_t memory_mb;
};

/* Plans what the options ask for. False, with a sentence in `why`: it cannot be. */
must_check bool layout_plan(struct layout *layout, const struct options *o, bool is_run,
                            char why[LAYOUT_WHY_MAX]);
void layout_fini(struct layout *layout);

/* The arguments that an instance has for itself, in text of the caller's; their words are separated
 * by single blanks. */
void layout_own_args(const struct layout_instance *i, char dst[LAYOUT_OWN_MAX]);

/* Lines of a service that the packages have, too: its limits, and what it may not do. */
extern const char units_hardening[];
/* Writes units of systemd to the folder. False, with a sentence in `why`. */
must_check bool units_write(const struct layout *layout, char why[LAYOUT_WHY_MAX]);
/* Starts all, passes on what they print, and ends them all at SIGINT, SIGTERM or when one ends. DONE
 * when all ended well after a signal; else REFUSED, with lines on standard error. */
must_check enum outcome launch(const struct layout *layout);
