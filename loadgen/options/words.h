/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The text of a class, "NAME:{--connections=4 getcount=50 -q 1k}", as a command line for the
 * option table. Start-up thread.
 */
#pragma once

#include "base/opt.h"

#define WORDS_MAX 128
#define WORDS_NAME_MAX 32
#define WORDS_ERR_MAX 256

struct words {
    char name[WORDS_NAME_MAX + 1];
    int argc;
    char *argv[WORDS_MAX + 2]; /* argv[0] is a program's name; NULL at the end */
    char *text;                /* what argv points into; owned */
};

/* Words are options of `own`, long ones with or without dashes; what is in `all` only is
 * refused by name. Values are not looked at. NULL, or a sentence (in err, or constant) saying
 * what is wrong. words_fini in any case. */
must_check const char *words_parse(struct words *w, const char *text,
                                   const struct opt_table *own,
                                   const struct opt_table *all, char err[WORDS_ERR_MAX]);
void words_fini(struct words *w);
