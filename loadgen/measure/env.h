/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What this machine is and how it is set up, as far as it bears on latencies: names and
 * values, those that the kernel does not tell left out. One thread.
 */
#pragma once

#include <stddef.h>

#define ENV_FACTS_MAX 64
#define ENV_NAME_MAX 40
#define ENV_VALUE_MAX 256

struct env {
    struct {
        char name[ENV_NAME_MAX], value[ENV_VALUE_MAX];
    } facts[ENV_FACTS_MAX];
    unsigned count;
};

/* Files are looked for below `root`: "" for those of the machine. */
void env_collect(struct env *e, const char *root);
/* Adds one; a value of several lines ends with the first. What is empty is left out. */
void env_add(struct env *e, const char *name, const char *value);
