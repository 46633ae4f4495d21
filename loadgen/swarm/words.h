/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whose an option of the command line is, when several processes send one load. There is one
 * table with all of them: an option that is not in it, or a value that names a file, cannot
 * reach an agent, and a leader refuses what it can neither do alone nor pass on. Pure.
 */
#pragma once

#include "base/must.h"

enum words_use {
    WORDS_SHARED,  /* all processes': it travels */
    WORDS_LEADER,  /* the leader does it, for all, */
    WORDS_MEASURE, /* unless there are agents that measure, which do it, */
    WORDS_OBSERVE, /* or observe */
    WORDS_HOST,    /* concerns one machine: each process has its own */
    WORDS_AGENT,   /* what an agent allows: said to the agent */
    WORDS_FILE,    /* names a file: agents read none for a leader, but for traces */
    WORDS_SECRET,  /* frames are not encrypted */
    WORDS_ALONE,   /* of one process alone, without agents */
    WORDS_UNKNOWN, /* none of them; or a class with an option that is not shared, or is
                      abbreviated */
};

/* `name` is the long one with '-'; `value` NULL: none. */
enum words_use words_use_of(const char *name, const char *value);
