/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What of a command line goes further: from a leader to its agents, or from an agent's own
 * into the runs that it does for leaders. Start-up thread.
 */
#pragma once

#include "loadgen/options/options.h"
#include "loadgen/swarm/message.h"

struct agent_words {
    char *words[MESSAGE_WORDS_MAX]; /* "--name" or "--name=value", long names */
    unsigned count;
};

/* Who is told: of several that observe, number `index` of `count` has its part of the servers,
 * those whose numbers are `index` modulo `count`. */
struct agent_words_reader {
    enum message_role role;
    unsigned index, count;
};

/* What an agent of a leader's is told: servers one by one and the seed as what they came to,
 * and what its role needs. EXIT_VALID, or a line in `err`: also when there is an option that
 * neither the leader can do alone nor agents can be told. */
must_check enum exit_status agent_words_shared(struct agent_words *w,
                                               const struct options *o,
                                               const struct agent_words_reader *reader,
                                               int argc, char **argv, FILE *err);
/* What of an agent's own command line holds for each run: what concerns its machine. What an
 * agent has no use for has a line. */
must_check enum exit_status agent_words_host(struct agent_words *w, int argc, char **argv,
                                             FILE *err);
/* Also after a failure. */
void agent_words_fini(struct agent_words *w);
