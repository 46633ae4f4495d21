/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The option table is made of groups, one file each: rows with their defaults and what they
 * demand of each other. To add an option: a row in its group, with its scope (scope.h), a field
 * in struct lclass (when each class can have its own) or struct options (when there is one a
 * run), a paragraph in doc/mcload.1. Start-up thread.
 */
#pragma once

#include "loadgen/options/options.h"
#include "loadgen/options/scope.h"

/* Options that each class has; conf of a row's call is its struct lclass. */
struct class_group {
    const struct opt *rows;
    size_t count;
    void (*init)(struct lclass *c); /* defaults; NULL: all zero */
    /* Checks, and fills in what follows from others: NULL, or a sentence. May be NULL. */
    const char *(*settle)(struct lclass *c);
    void (*fini)(struct lclass *c); /* NULL: nothing is owned */
};

/* Options that a run has once; conf of a row's call is struct options. */
struct run_group {
    const struct opt *rows;
    size_t count;
    void (*init)(struct options *o);
    const char *(*settle)(struct options *o); /* classes are settled */
    void (*fini)(struct options *o);
};

extern const struct class_group group_protocol, group_load, group_traffic, group_trace,
    group_workload, group_slo, group_antagonist;
extern const struct run_group group_target, group_classes, group_measure, group_host,
    group_search, group_swarm, group_output;

/* Defaults, and all of argv on top, into o->base and the rest; no classes, no checks between
 * options. False with a line in `err`; options_fini in any case. */
must_check bool options_parse_outside(struct options *o, struct models *models, int argc,
                                      char **argv, FILE *err);

/* Finds the workload that c names, where it does, and applies it and an antagonist. False with
 * a line in `err`. */
must_check bool options_apply_names(struct lclass *c, struct models *models, FILE *err);

/* What a class's traffic needs of its rate, which a search or a scan may vary; is_told: or a
 * leader, which has looked. */
must_check const char *traffic_check(const struct lclass *c, bool is_varied,
                                     bool is_target, bool is_told);
/* The options that an antagonist's name stands for, in place of what was set before. */
void antagonist_apply(struct lclass *c);

/* What rows are made of, each with its scope. */
#define SCOPE(whose) .scope = SCOPE_##whose
#define KIND(kind_of_row) .kind = OPT_##kind_of_row
#define CALL(function) .kind = OPT_CALL, .call = (function)
#define PARSE(function) .kind = OPT_PARSE, .call = (function)
#define OF_CLASS(field) .offset = offsetof(struct lclass, field)
#define OF_RUN(field) .offset = offsetof(struct options, field)
#define ROWS(table) .rows = (table), .count = sizeof(table) / sizeof(table)[0]

/* ---- value.c: what rows of several groups make of their texts; pure ---------------------- */

#define VALUE_TIME_MAX_S 1e6

/* Seconds, or a number with its unit, from `min` to VALUE_TIME_MAX_S. NULL; or `wrong` when it
 * is none of these. */
must_check const char *value_time(const char *text, double min, double *seconds,
                                  const char *wrong);

/* For rows whose field is of this kind: seconds above 0; 0 or more of them; a law (struct dist);
 * one of seconds, or one length of time with its unit. They take the place of what was there.
 * NULL, or a sentence. */
must_check const char *value_span(void *field, const char *text);
must_check const char *value_pause(void *field, const char *text);
must_check const char *value_dist(void *field, const char *text);
must_check const char *value_seconds(void *field, const char *text);

/* All of a file, at most so many bytes, with a 0 behind, for the caller to free. NULL; or a
 * sentence, and no text. */
must_check const char *value_file(const char *path, size_t max, const char *too_long,
                                  char **text, size_t *len);

/* Calls `keep` with each address of a list with commas; an address that is a path may hold
 * commas itself and stands alone. NULL, or what the first that `keep` refuses is told. */
must_check const char *value_addresses(void *conf, const char *text,
                                       const char *(*keep)(void *conf, const char *one));

/* ---- classes.c: the classes of a run, of what stands outside and what each says of itself --- */

/* Fills o->classes, which are not settled yet. False with a line in `err`; what is there is
 * freed by options_fini. */
must_check bool classes_make(struct options *o, int argc, char **argv, FILE *err);

/* ---- foreign.c: words of wrk, wrk2 and memtier_benchmark --------------------------------- */

/* Adds a row behind the `count` rows of `all` for each such word: another name of one of them
 * where that means exactly the same, else a row that refuses and says what to write. Words for
 * rows that are not there are left out. Returns how many rows there are; `max` has room. */
size_t foreign_add(struct opt *all, size_t count, size_t max);

/* ---- words.c ---------------------------------------------------------------------- */

/* The text of a class, "NAME:{--connections=4 getcount=50 -q 1k}", as a command line for the
 * option table. Start-up thread. */
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
