/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Option-table engine: one row describes an option once; parsing, bounds, uniform errors,
 * help and the check of the manual all come from the rows. POSIX letters and GNU long names;
 * not on getopt_long, which cannot tell an unknown name from an ambiguous one and takes any
 * abbreviation. Start-up thread.
 */
#pragma once

#include "base/must.h"

enum opt_kind {
    OPT_FLAG,   /* bool: set to true */
    OPT_OFF,    /* bool: set to false */
    OPT_SWITCH, /* bool: "on" or "off" */
    OPT_SET,    /* unsigned, or an enum: set to `value` */
    OPT_COUNT,  /* unsigned: one more each time */
    OPT_INT,    /* int64_t within [min, max] */
    OPT_OCTAL,  /* int64_t written in octal */
    OPT_BYTES,  /* int64_t with suffix k, m, g of 1024 */
    OPT_RATE,   /* int64_t with suffix k, m, g of 1000 */
    OPT_MEGS, /* int64_t in megabytes: suffix m or mb, which changes nothing, g or gb: 1024 */
    OPT_DOUBLE, /* double within [min, max] */
    OPT_CHOICE, /* an enum: the place of the text among `choices` */
    OPT_TEXT,   /* const char *, points into argv or a copy of it that lives on */
    OPT_CALL,   /* call(conf, text) decides */
    OPT_PARSE,  /* call(the field, text) decides */
    OPT_WORDS,  /* a comma-separated list of the rows' words, with values */
    OPT_IGNORE, /* accepted for compatibility, without effect */
    OPT_REFUSE, /* known, but this build or version cannot do it */
};

/* How a row's setting changes while the program runs. */
struct opt_live {
    void (*read)(void *program, void *conf); /* what is in force, into conf's fields */
    /* False: not now, but by a restart. */
    bool (*apply)(void *program, const void *conf);
    /* The field as it would be written, for rows that are no number or switch. */
    void (*tell)(const void *conf, char *to, size_t size);
    /* Why the setting waits for a restart, as one that it goes with does; NULL: it need not. The
     * function may be NULL, too. */
    const char *(*waits)(const void *now, const void *next);
};

/* Where the row may be written; a row may have several spellings at once. */
struct opt {
    char letter;      /* 0: none */
    const char *name; /* long option without dashes; NULL: none */
    const char *word; /* word of the list of OPT_WORDS; NULL: none */
    enum opt_kind kind;
    size_t offset;     /* of the field in the caller's conf struct */
    double min, max;   /* inclusive bounds, both 0: none */
    int exit_status;   /* on a bad value */
    const char *error; /* sentence on a bad value; NULL: made from name and bounds */
    const char *arg;   /* what the help calls the argument, alternatives with '|'; NULL:
                          * takes none; a '?' at the end: may be left out (NULL to call) */
    const char *help;  /* one sentence; NULL: left out of the help */
    unsigned section;  /* of the help: a place in the table's sections */
    unsigned scope;    /* the caller's: what the option concerns */
    unsigned common;   /* its place in the short help, from 1; 0: not there */
    bool may_follow;   /* a value that may be left out can also be the next argument */
    bool adds_up;      /* given several times all count, not the last alone */
    bool is_argv_only; /* not in a file of options */
    const struct opt_live *live; /* NULL: it takes a restart */
    /* OPT_CALL, OPT_PARSE: NULL when good, else the sentence to print; may be a static buffer. */
    const char *(*call)(void *to, const char *text);
    const char *const *choices; /* NULL among them: has no name */
    unsigned choice_count;
    size_t size;             /* of a field of numbers; 0: as its kind says */
    unsigned value;          /* of OPT_SET */
    int64_t unit;            /* what a whole number counts, in those of the field; 0: 1 */
    const char *preset;      /* its default, as it would be written; the help shows it */
    const char *old_preset;  /* the same in the table's old version; NULL: no other */
    const char *preset_help; /* what the help shows in place of them */
    const char *after;       /* for making one table of several: the name or word of
                                the row that it follows; NULL: that before it */
};

/* A field of the conf struct `type`; OPT_INT and the like also of other sizes. */
#define OPT_FIELD(type, field)                                                           \
    .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field)

#define OPT_CHOICES(names)                                                               \
    .choices = (names), .choice_count = sizeof(names) / sizeof(names)[0]

/* Hears of an option: its row and its value, NULL without one. NULL, or a sentence that ends
 * it. */
typedef const char *opt_visit(void *arg, const struct opt *row, const char *value);

struct opt_section {
    const char *topic; /* the word that asks for it */
    const char *title;
};

struct opt_table {
    const struct opt *rows;
    size_t count;
    const char *program;        /* for messages */
    bool tells_words_on_stdout; /* unknown words are reported there, not on err */
    bool tells_as_getopt;       /* of an unknown letter, as a memcached does */
    bool skips_operands;        /* what is no option is reported, and that is all */
    /* What is no option: NULL when good, else the sentence to print. NULL: an error. */
    const char *(*operand)(void *conf, const char *text);
    /* Long names that may be abbreviated, because the program that this one stands for takes
     * abbreviations; the last one NULL. The others are written in full: a new option never
     * changes what a command line means. NULL: none. */
    const char *const *elders;
    const struct opt_section *sections; /* NULL: the help has none */
    size_t section_count;
    const char *old_version; /* how the help calls that of old_preset */
    bool is_file; /* what is parsed are lines of a file: rows may be is_argv_only */
    opt_visit
        *heard; /* of each option, words one by one, once it is applied; NULL: none */
    void *heard_arg;
};

enum opt_result {
    OPT_DONE, /* all parsed */
    OPT_BAD,  /* message printed; *exit_status says how to end */
};

/* Sets the rows' defaults. is_old: those of the old version, where they differ. */
void opt_preset(const struct opt_table *t, void *conf, bool is_old);

/* Evaluates argv left to right into conf. One option argument may start with blanks ("-m 64"
 * as one argument): they are skipped. '_' and '-' are alike inside long names.
 * Operands that are no options are an error, unless the table says otherwise. Messages go to
 * `err`, one line each. */
must_check enum opt_result opt_parse(const struct opt_table *t, void *conf, int argc,
                                     char **argv, FILE *err, int *exit_status);

/* One option of a file: a long name or a word, without dashes; value NULL: none. */
must_check enum opt_result opt_set(const struct opt_table *t, void *conf,
                                   const char *name, char *value, FILE *err,
                                   int *exit_status);

#define OPT_TOLD_MAX 512
/* What the row's field says, as a file would: "on" or "off" for a row without a value. Rows with
 * `live`. */
void opt_tell(const struct opt *row, const void *conf, char to[OPT_TOLD_MAX]);
/* Whether the row would take that. */
must_check bool opt_takes(const struct opt *row, const void *conf);

/* Walks argv as opt_parse does, but only reports what stands there. */
must_check enum opt_result opt_each(const struct opt_table *t, opt_visit *visit,
                                    void *arg, int argc, char **argv, FILE *err);

/* The rows that have help, each section in table order. */
void opt_help(const struct opt_table *t, FILE *out);
/* Those of them that are common. */
void opt_help_common(const struct opt_table *t, FILE *out);
/* The section of this topic, or the rows whose name or word contains it. False, with a line in
 * `err`: there is neither. */
must_check bool opt_help_topic(const struct opt_table *t, const char *topic, FILE *out,
                               FILE *err);
/* "network, memory, ..." */
void opt_help_topics(const struct opt_table *t, FILE *out);
