/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whose an option is when several processes send one load, and the words by which it travels:
 * from a leader to its agents, or from an agent's own command line into the runs that it does
 * for leaders. The scope is a column of the option rows; an option without one, or a value that
 * names a file, does not reach an agent, and a leader refuses what it can neither do alone nor
 * pass on. Start-up thread.
 */
#pragma once

#include "base/must.h"
#include "loadgen/swarm/message.h"

struct options;

enum scope {
    SCOPE_UNKNOWN, /* none; or a class with an option that is not shared, or is short */
    SCOPE_SHARED,  /* all processes': it travels */
    SCOPE_LAW,     /* of rows only: likewise, unless the value names a file */
    SCOPE_LEADER,  /* the leader does it, for all, */
    SCOPE_MEASURE, /* unless there are agents that measure, which do it, */
    SCOPE_OBSERVE, /* or observe */
    SCOPE_EACH,    /* leader and agent each have one of their own */
    SCOPE_HOST,    /* concerns one machine: likewise, and its runs have it */
    SCOPE_AGENT,   /* what an agent allows: said to the agent */
    SCOPE_FILE,    /* names a file: agents read none for a leader, but for traces */
    SCOPE_SECRET,  /* frames are not encrypted */
    SCOPE_ALONE,   /* of one process alone, without agents */
};

/* `name` is the long one with '-'; `value` NULL: none. */
enum scope scope_of(const char *name, const char *value);

struct scope_words {
    char *words[MESSAGE_WORDS_MAX]; /* "--name" or "--name=value", long names */
    unsigned count;
};

/* The recipient: of several that observe, number `index` of `count` has its part of the servers,
 * those whose numbers are `index` modulo `count`. */
struct scope_reader {
    enum message_role role;
    unsigned index, count;
};

/* What an agent of a leader's is told: servers one by one and the seed as what they came to,
 * and what its role needs. False, with a line in `err`: also when there is an option that
 * neither the leader can do alone nor agents can be told. */
must_check bool scope_tell_agent(struct scope_words *w, const struct options *o,
                                 const struct scope_reader *reader, int argc, char **argv,
                                 FILE *err);
/* What of an agent's own command line holds for each run: what concerns its machine. What an
 * agent has no use for has a line. */
must_check bool scope_keep_host(struct scope_words *w, int argc, char **argv, FILE *err);
/* Also after a failure. */
void scope_words_fini(struct scope_words *w);
