/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What of a leader's command line its agents are told.
 */
#pragma once

#include "loadgen/options/options.h"
#include "loadgen/swarm/message.h"

struct leader_words {
    char *words[MESSAGE_WORDS_MAX]; /* "--name" or "--name=value", long names */
    unsigned count;
};

/* EXIT_VALID, or a line in `err`. */
must_check enum exit_status leader_words_make(struct leader_words *w,
                                              const struct options *o, int argc,
                                              char **argv, FILE *err);
/* Also after a failed leader_words_make. */
void leader_words_free(struct leader_words *w);
