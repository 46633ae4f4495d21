/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * --config: options from a file, before those of the command line, and what becomes of the file
 * while the server runs: SIGHUP and "qos reload" read it again, "qos save" writes it.
 *
 * The files are read and written by the main thread. A worker that wants it done asks, and wakes
 * main; the client's request is parked until main has done it.
 */
#pragma once

#include "base/opt.h"
#include "front/config_file.h"

struct settings;
struct stats;

#define CONFIG_STATUS 78 /* exit status for what is wrong with a file */

/* An option that was applied, in this order. */
struct config_given {
    const struct opt *row;
    const char *value; /* NULL: none */
    const char *file;  /* NULL: the command line */
    unsigned line;
};

/* Part of struct settings, which owns what it points to. */
struct config {
    char *path; /* absolute; NULL: no file */
    struct config_file file;
    struct config_given *given;
    size_t given_count;
    const char *from; /* of what is being applied */
    unsigned line;
    bool is_seen; /* --config has been applied */
    int argc;     /* the command line, as the program was given it */
    char **argv;
    char **words; /* the same, to be cut and pointed into */
};

/* ---- start-up thread, or main --------------------------------------------------------- */

/* The value of a long option that must be known before the others are understood: its last on
 * the command line. NULL: it is not there. */
const char *config_find(int argc, char **argv, const char *name);
/* The same of the lines of the file. */
const char *config_find_line(const struct config *c, const char *name);
/* Reads the file of --config, or the one at `path` where that is not NULL. False with lines in
 * err; no file is right, too. */
must_check bool config_open(struct config *c, int argc, char **argv, const char *path,
                            FILE *err);
void config_fini(struct config *c);
/* Applies the lines of the file to *s, and then the command line. False with lines in err. */
must_check bool config_apply(struct settings *s, const struct opt_table *table, FILE *err,
                             int *exit_status);
/* Those of the options that count, as lines of a file; not what is the default anyway. */
void config_print(const struct config *c, FILE *out);

/* ---- main, while the server runs ------------------------------------------------------ */

/* From here on workers are served: `wake` makes main call config_work, and is called by
 * them. */
void config_serve(struct stats *st, void (*wake)(void *ctx), void *ctx);
/* What workers have asked for. */
void config_work(struct stats *st);
/* Reads the file again, if there is one; what comes of it is logged. */
void config_hangup(struct stats *st);
/* No more is done; workers that ask, or have asked, are refused. */
void config_close(struct stats *st);
