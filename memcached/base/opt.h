/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Option-table engine on getopt_long: one row describes an option once; parsing, bounds,
 * uniform errors, help and the check of the manual all come from the rows. Start-up thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/must.h"

enum opt_kind {
    OPT_FLAG,   /* bool: set to true */
    OPT_OFF,    /* bool: set to false */
    OPT_COUNT,  /* unsigned: one more each time */
    OPT_INT,    /* int64_t within [min, max] */
    OPT_OCTAL,  /* int64_t written in octal */
    OPT_BYTES,  /* int64_t with suffix k, m, g of 1024 */
    OPT_RATE,   /* int64_t with suffix k, m, g of 1000 */
    OPT_DOUBLE, /* double within [min, max] */
    OPT_CHOICE, /* an enum: the place of the text among `choices` */
    OPT_TEXT,   /* const char *, points into argv or a copy of it that lives on */
    OPT_CALL,   /* call(conf, text) decides */
    OPT_IGNORE, /* accepted for compatibility, without effect */
    OPT_REFUSE, /* known, but this build or version cannot do it */
};

/* Where the row may be written; a row may have several spellings at once. */
struct opt {
    char letter;      /* 0: none */
    const char *name; /* long option without dashes; NULL: none */
    const char *word; /* word of a comma-separated -o list; NULL: none */
    enum opt_kind kind;
    size_t offset;     /* of the field in the caller's conf struct */
    double min, max;   /* inclusive bounds, both 0: none */
    int exit_status;   /* on a bad value */
    const char *error; /* sentence on a bad value; NULL: made from name and bounds */
    const char *arg;   /* what the help calls the argument; NULL: takes none; a '?' at
                          * the end: may be left out (NULL to call) */
    const char *help;  /* one sentence; NULL: left out of the help */
    /* OPT_CALL: NULL when good, else the sentence to print; may be a static buffer. */
    const char *(*call)(void *conf, const char *text);
    const char *const *choices; /* NULL among them: has no name */
    unsigned choice_count;
};

#define OPT_CHOICES(names)                                                               \
    .choices = (names), .choice_count = sizeof(names) / sizeof(names)[0]

struct opt_table {
    const struct opt *rows;
    size_t count;
    const char *program;        /* for messages */
    bool has_words;             /* -o/--extended takes lists of words */
    bool tells_words_on_stdout; /* unknown words are reported there, not on err */
    bool skips_operands;        /* what is no option is reported, and that is all */
    /* What is no option: NULL when good, else the sentence to print. NULL: an error. */
    const char *(*operand)(void *conf, const char *text);
    /* Long names of another program, the last one NULL: what abbreviates just one of these
     * means it, however many other rows begin so. NULL: none. */
    const char *const *elders;
};

enum opt_result {
    OPT_DONE, /* all parsed */
    OPT_BAD,  /* message printed; *exit_status says how to end */
};

/* Evaluates argv left to right into conf. One option argument may start with blanks ("-m 64"
 * as one argument): they are skipped. '_' and '-' are alike inside long names.
 * Operands that are no options are an error, unless the table says otherwise. Messages go to
 * `err`, one line each. */
must_check enum opt_result opt_parse(const struct opt_table *t, void *conf, int argc,
                                     char **argv, FILE *err, int *exit_status);

/* Hears of an option: its row and its value, NULL without one. NULL, or a sentence that ends
 * it. */
typedef const char *opt_visit(void *arg, const struct opt *row, const char *value);

/* Walks argv as opt_parse does, but only tells of what stands there. */
must_check enum opt_result opt_each(const struct opt_table *t, opt_visit *visit,
                                    void *arg, int argc, char **argv, FILE *err);

/* The help lines of all rows that have help, one option each, in table order. */
void opt_help(const struct opt_table *t, FILE *out);
