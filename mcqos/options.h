/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The command line: options anywhere, the other words in their order. Start-up thread.
 */
#pragma once

#include "base/opt.h"

#define OPTIONS_WORDS_MAX 64
#define OPTIONS_LINE_MAX 300 /* bytes of a command to a server */

/* What each process of a layout has. */
enum layout_per { PER_THREAD, PER_CORE, PER_SOCKET };

struct options {
    const char *server;
    const char *auth_file;    /* NULL: there is no password */
    double timeout, interval; /* seconds */
    bool is_json, wants_help, wants_version;
    const char *help_topic;
    const char *words[OPTIONS_WORDS_MAX];
    unsigned count;
    struct layout_options {
        int64_t memory_mb, port;
        const char *listen, *share, *machine, *program, *units;
        enum layout_per per;
    } layout;
};

const struct opt_table *options_table(void);
/* False, with a line on standard error. */
must_check bool options_parse(struct options *o, int argc, char **argv);
/* Words from `from` on with blanks between. False: they are too long, or have a line end in them. */
must_check bool options_join(const struct options *o, unsigned from,
                             char dst[OPTIONS_LINE_MAX]);
