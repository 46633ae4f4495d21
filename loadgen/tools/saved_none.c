/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * In place of saved.c where jansson is missing.
 */
#include "loadgen/tools/saved.h"

#include <stdio.h>

static bool
refuse(char *err)
{
    snprintf(err, SAVED_ERR_MAX, "results cannot be read: built without jansson");
    return false;
}

bool
saved_read(struct saved *s, const char *path, const char *class, char *err)
{
    (void)s;
    (void)path;
    (void)class;
    return refuse(err);
}

bool
saved_merge(const char *const *paths, unsigned count, bool in_turn, const char *out_path,
            char *err)
{
    (void)paths;
    (void)count;
    (void)in_turn;
    (void)out_path;
    return refuse(err);
}
