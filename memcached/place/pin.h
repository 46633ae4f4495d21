/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Thread pinning: a plan (which CPU for which worker, which CPUs for the other threads) and
 * its application to the calling thread. Planning is a pure function of topology, policy and
 * thread count; place/pinner.h keeps the threads of a server where the plan has them. topo.c is
 * the only file that includes hwloc; built without it, every policy but "none" and "list:" is
 * unsupported.
 *
 * CPUs are OS numbers everywhere in this interface (what taskset and SO_INCOMING_CPU show),
 * never hwloc's logical indexes.
 */
#pragma once

#include "base/must.h"
#include "base/cpumask.h"

enum pin_policy {
    PIN_NONE,
    PIN_SPREAD,  /* (thread of core, core of LLC, LLC of package, package) */
    PIN_COMPACT, /* (package, LLC, core, thread) */
    PIN_CORES,   /* (thread of core, package, core) */
    PIN_LLC,     /* (thread of core, core of LLC, LLC): the cache domains in turn */
    PIN_SHAPE,   /* "2s6c1t": so many sockets, cores of each, threads of each core */
    PIN_LIST,    /* as given, "0,2,4-7" */
};

#define PIN_SOCKETS_MAX 16

struct pin_shape {
    unsigned sockets, threads;
    unsigned cores[PIN_SOCKETS_MAX]; /* of each socket */
};

struct pin_spec {
    enum pin_policy policy;
    struct pin_shape shape; /* PIN_SHAPE */
    unsigned list_len;
    int *list; /* PIN_LIST: OS numbers in the given order; owned, pin_spec_fini */
};

#define PIN_LAYOUT_LEN 32
#define PIN_LIST_LEN 256 /* lists of CPUs as text, cut short with "..." when longer */

struct pin_plan {
    enum pin_policy policy;
    unsigned count;              /* workers */
    struct cpu_place *places;    /* of each; .cpu is -1 when it is not pinned */
    unsigned allowed;            /* CPUs that the process may use */
    unsigned capacity;           /* of those, what the policy has for workers */
    bool is_oversubscribed;      /* more workers than CPUs: the plan wraps around */
    bool has_background;         /* CPUs are left over */
    struct cpumask background;   /* for the other threads: those, or else all */
    char layout[PIN_LAYOUT_LEN]; /* the papers' notation, e.g. "2s6c1t" */
    char allowed_list[PIN_LIST_LEN];
    char background_list[PIN_LIST_LEN]; /* empty: none are left over */
};

struct topo;

/* ---- the option (pin_spec.c) ----------------------------------------------------------- */

/* Parses "spread", "compact", "cores", "llc", "none", "2s6c1t", "2s3,6c2t", "list:0,2,4-7";
 * NULL means "spread". Returns NULL or a sentence saying what is wrong (static storage). */
must_check const char *pin_spec_parse(struct pin_spec *spec, const char *text);
void pin_spec_fini(struct pin_spec *spec);
const char *pin_policy_name(enum pin_policy policy);

/* ---- planning -------------------------------------------------------------------------- */

/* Plans for this machine inside the inherited affinity mask and cpuset, without moving the
 * calling thread. False with a sentence in err when it cannot be done (hwloc missing, listed
 * CPU not allowed). On success the caller owns *plan (pin_plan_fini). */
must_check bool pin_plan(const struct pin_spec *spec, unsigned workers,
                         struct pin_plan *plan, char *err, size_t err_len);

/* The same inside this mask. */
must_check bool pin_plan_within(const struct pin_spec *spec, unsigned workers,
                                const struct cpumask *mask, struct pin_plan *plan,
                                char *err, size_t err_len);
/* What the policy has to know of CPUs: the topology of the machine, or the numbers in the mask.
 * The caller ends *all with topo_fini, whatever is returned. */
must_check bool pin_topology(const struct pin_spec *spec, const struct cpumask *mask,
                             struct topo *all, char *err, size_t err_len);
/* As pin_plan on a topology that is known, of which only the CPUs of the mask are allowed. */
must_check bool pin_plan_on(const struct pin_spec *spec, unsigned workers,
                            const struct topo *all, const struct cpumask *mask,
                            struct pin_plan *plan, char *err, size_t err_len);

void pin_plan_fini(struct pin_plan *plan);

/* How many workers to start ("-t auto"): one for each CPU that the policy has, not more than
 * the quota of CPUs in thousandths (0: none), at least one. */
unsigned pin_workers(const struct pin_spec *spec, unsigned quota_milli);

/* ---- application ----------------------------------------------------------------------- */

/* Binds the calling thread to worker i's CPU and reads the binding back. 0, or the errno. */
must_check int pin_apply(const struct pin_plan *plan, unsigned i);

/* Human-readable plan, one line a worker after a summary line. */
void pin_describe(const struct pin_plan *plan, FILE *out);
