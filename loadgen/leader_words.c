/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/leader_words.h"

#include <stdlib.h>

#include "loadgen/swarm/words.h"

#define SEED "seed"

static const char *
add(struct leader_words *w, const char *name, const char *value)
{
    char word[MESSAGE_WORD_MAX];
    int n = snprintf(word, sizeof word, value != NULL ? "--%s=%s" : "--%s", name, value);
    if (n < 0 || (size_t)n >= sizeof word || w->count == MESSAGE_WORDS_MAX) {
        return "too long for agents";
    }
    w->words[w->count] = strdup(word);
    must(w->words[w->count] != NULL);
    w->count++;
    return NULL;
}

static const char *
visit(void *arg, const struct opt *row, const char *value)
{
    if (row->name == NULL || strcmp(row->name, SEED) == 0) {
        return NULL; /* the seed is sent as what it came to */
    }
    switch (words_use_of(row->name, value)) {
    case WORDS_SHARED:
        return add(arg, row->name, value);
    case WORDS_FILE:
        return "names a file, which agents do not read";
    case WORDS_SECRET:
        return "is secret, and not sent to agents";
    case WORDS_UNKNOWN:
        return "agents take classes of long options, --NAME=VALUE, that are theirs too";
    case WORDS_LOCAL:
        break;
    }
    return NULL;
}

enum exit_status
leader_words_make(struct leader_words *w, const struct options *o, int argc, char **argv,
                  FILE *err)
{
    char seed[32];
    *w = (struct leader_words){.count = 0};
    if (opt_each(options_table(), visit, w, argc, argv, err) != OPT_DONE) {
        return EXIT_USAGE;
    }
    snprintf(seed, sizeof seed, "%ju", (uintmax_t)o->seed);
    const char *wrong = add(w, SEED, seed);
    if (wrong != NULL) {
        fprintf(err, "mcload: %s\n", wrong);
        return EXIT_USAGE;
    }
    return EXIT_VALID;
}

void
leader_words_free(struct leader_words *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        free(w->words[i]);
    }
    w->count = 0;
}
