/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which options of a leader's command line are its agents' too. What an agent takes is a
 * list of names: an option that is not on it, or a value that names a file, cannot reach it.
 * Pure.
 */
#pragma once

#include "base/must.h"

enum words_use {
    WORDS_SHARED, /* the agents' too */
    WORDS_LOCAL,  /* the leader's own */
    WORDS_FILE,   /* names a file: agents read none for a leader */
    WORDS_SECRET, /* frames are not encrypted */
    WORDS_UNKNOWN, /* a class with an option that is none of the agents', or is abbreviated */
};

/* `name` is the long one with '-'; `value` NULL: none. */
enum words_use words_use_of(const char *name, const char *value);
