/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Thread pinning: a plan (which CPU for which worker) and its application. Planning is a
 * pure function of topology, policy and thread count. topo.c is the only file that includes
 * hwloc; built without it, every policy but "none" and "list:" is unsupported.
 *
 * CPUs are OS numbers everywhere in this interface (what taskset and SO_INCOMING_CPU show),
 * never hwloc's logical indexes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/must.h"

enum pin_policy {
    PIN_NONE,
    PIN_SPREAD,  /* (thread of core, core of LLC, LLC of package, package) */
    PIN_COMPACT, /* (package, LLC, core, thread) */
    PIN_CORES,   /* (thread of core, package, core) */
    PIN_LIST,    /* as given, "0,2,4-7" */
};

#define PIN_CPUS_MAX 4096

struct pin_spec {
    enum pin_policy policy;
    unsigned list_len;
    int *list; /* PIN_LIST: OS numbers in the given order; owned, pin_spec_fini */
};

/* One worker's place. Numbers are -1 where unknown. */
struct pin_place {
    int cpu;     /* OS number; -1: not pinned */
    int package; /* hwloc logical numbers */
    int llc;     /* last-level cache domain */
    int numa;
    int core;
};

struct pin_plan {
    enum pin_policy policy;
    unsigned count; /* workers */
    struct pin_place *places;
    unsigned allowed;       /* CPUs that the process may use */
    bool is_oversubscribed; /* more workers than CPUs: the plan wraps around */
    char layout[32];        /* the papers' notation, e.g. "2s6c1t" */
    char allowed_list[256]; /* e.g. "0-3,8" (cut short with "..." when longer) */
};

/* Parses "spread", "compact", "cores", "none", "list:0,2,4-7"; NULL means "spread".
 * Returns NULL or a sentence saying what is wrong (static storage). */
must_check const char *pin_spec_parse(struct pin_spec *spec, const char *text);
void pin_spec_fini(struct pin_spec *spec);
const char *pin_policy_name(enum pin_policy policy);

/* Plans for this machine inside the inherited affinity mask and cpuset, without moving the
 * calling thread. False with a sentence in err when it cannot be done (hwloc missing, listed
 * CPU not allowed). On success the caller owns *plan (pin_plan_fini). */
must_check bool pin_plan(const struct pin_spec *spec, unsigned workers,
                         struct pin_plan *plan, char *err, size_t err_len);

/* The same for a described machine, for tests: `synthetic` is hwloc's synthetic notation
 * ("pack:2 l3:1 core:6 pu:2") or the path of an hwloc XML file; `allowed` an OS number list
 * that stands for the affinity mask, or NULL for all. */
must_check bool pin_plan_synthetic(const struct pin_spec *spec, unsigned workers,
                                   const char *synthetic, const char *allowed,
                                   struct pin_plan *plan, char *err, size_t err_len);
void pin_plan_fini(struct pin_plan *plan);

/* Binds the calling thread to worker i's CPU and reads the binding back. 0, or the errno. */
must_check int pin_apply(const struct pin_plan *plan, unsigned i);

/* Human-readable plan, one line a worker after a summary line. */
void pin_describe(const struct pin_plan *plan, FILE *out);
