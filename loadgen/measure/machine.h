/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What this machine is and how it is set up, as far as it bears on latencies: names and
 * values, those that the kernel does not tell left out. One thread.
 */
#pragma once

#define MACHINE_FACTS_MAX 64
#define MACHINE_NAME_MAX 40
#define MACHINE_VALUE_MAX 256

struct machine {
    struct {
        char name[MACHINE_NAME_MAX], value[MACHINE_VALUE_MAX];
    } facts[MACHINE_FACTS_MAX];
    unsigned count;
};

/* Files are looked for below `root`: "" for those of the machine. */
void machine_collect(struct machine *e, const char *root);
/* Adds one; a value of several lines ends with the first. What is empty is left out. */
void machine_add(struct machine *e, const char *name, const char *value);
