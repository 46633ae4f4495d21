/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The workloads that a command line names (--workload): those with a name, files, which are
 * read once however often they are named, and texts. Start-up thread.
 */
#pragma once

#include "base/must.h"
#include "loadgen/work/model.h"

struct lclass;

/* A file or a text that was read. */
struct models_entry {
    struct model model;
    char *word; /* what it was named by; owned */
    char *text; /* what `model` points into; owned */
};

/* All zero: none so far. */
struct models {
    struct models_entry **entries; /* owned */
    unsigned count;
};

/* The workload that `word` names, which is a name, MODEL_TEXT and a text, or a file. NULL with a line in `err`. */
must_check const struct model *models_get(struct models *all, const char *word,
                                          FILE *err);
/* Sets what the model tells, as its options would. False with a line in `err`, which a text
 * of the user's own can be the cause of. */
must_check bool models_apply(const struct model *m, struct lclass *c, FILE *err);
/* The same of a file or a text that was read before; NULL when it is none. */
const struct model *models_known(const struct models *all, const char *word);
void models_fini(struct models *all);
