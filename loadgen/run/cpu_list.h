/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * CPUs for the sending threads, by the memory nodes that they belong to. Start-up thread.
 */
#pragma once

#include <sched.h>

#include "base/must.h"
#include "loadgen/options/options.h"

#define CPU_LIST_NODES "/sys/devices/system/node"
#define CPU_LIST_ANY (-2)  /* all that may be used, in order */
#define CPU_LIST_AUTO (-1) /* those of the memory nodes in turn */

/* The CPUs of `allowed` in the order in which threads take them, "list:0,2,1,3" for
 * pin_spec_parse: of memory node `numa` only, or one of the two above. Where the machine tells
 * of no nodes (in directory `nodes`), all CPUs are one. NULL, or a sentence (constant). */
must_check const char *cpu_list_of_nodes(const char *nodes, int numa,
                                         const cpu_set_t *allowed, char *text,
                                         size_t len);

/* The CPUs that threads take in turn by the options, for pin_spec_parse; "" when they are not
 * pinned. As above. */
must_check const char *cpu_list_wanted(const struct options *o, char *text, size_t len);
