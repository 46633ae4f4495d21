/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/options/classes.h"
#include "loadgen/options/foreign.h"
#include "loadgen/options/group.h"

#define ROWS_MAX 256
#define PROGRAM "mcload"
#define CLASS_ALONE "all"

/* The help shows the first of a run's, those of classes, the rest of a run's. */
static const struct class_group *const of_class[] = {
    &group_protocol, &group_load, &group_traffic,    &group_trace,
    &group_workload, &group_slo,  &group_antagonist,
};
static const struct run_group *const of_run[] = {
    &group_target, &group_classes, &group_measure, &group_host,
    &group_search, &group_swarm,   &group_output,
};
#define OF_CLASS_LEN (sizeof of_class / sizeof of_class[0])
#define OF_RUN_LEN (sizeof of_run / sizeof of_run[0])

/* mutilate's names: whoever abbreviates them there means the same here. */
static const char *const mutilates[] = {
    "help",        "version",       "verbose",    "quiet",
    "server",      "binary",        "qps",        "time",
    "keysize",     "valuesize",     "records",    "update",
    "username",    "password",      "threads",    "affinity",
    "connections", "depth",         "roundrobin", "iadist",
    "skip",        "moderate",      "noload",     "loadonly",
    "blocking",    "no-nodelay",    "warmup",     "wait",
    "save",        "search",        "scan",       "agentmode",
    "agent",       "agent-port",    "lambda-mul", "measure-connections",
    "measure-qps", "measure-depth", NULL,
};

static size_t
add_rows(struct opt *all, size_t count, const struct opt *rows, size_t len)
{
    must(count + len <= ROWS_MAX);
    memcpy(all + count, rows, len * sizeof *rows);
    return count + len;
}

static size_t
add_class_rows(struct opt *all, size_t count)
{
    for (size_t i = 0; i < OF_CLASS_LEN; i++) {
        count = add_rows(all, count, of_class[i]->rows, of_class[i]->count);
    }
    return count;
}

const struct opt_table *
options_table(void)
{
    static struct opt all[ROWS_MAX];
    static struct opt_table table = {
        .rows = all, .program = PROGRAM, .elders = mutilates};
    if (table.count == 0) {
        size_t n = add_rows(all, 0, of_run[0]->rows, of_run[0]->count);
        n = add_class_rows(all, n);
        for (size_t i = 1; i < OF_RUN_LEN; i++) {
            n = add_rows(all, n, of_run[i]->rows, of_run[i]->count);
        }
        table.count = foreign_add(all, n, ROWS_MAX);
    }
    return &table;
}

const struct opt_table *
options_class_table(void)
{
    static struct opt all[ROWS_MAX];
    static struct opt_table table = {.rows = all, .program = PROGRAM};
    if (table.count == 0) {
        table.count = foreign_add(all, add_class_rows(all, 0), ROWS_MAX);
    }
    return &table;
}

static void
class_init(struct lclass *c)
{
    *c = (struct lclass){.name = CLASS_ALONE};
    for (size_t i = 0; i < OF_CLASS_LEN; i++) {
        if (of_class[i]->init != NULL) {
            of_class[i]->init(c);
        }
    }
}

static void
class_fini(struct lclass *c)
{
    for (size_t i = 0; i < OF_CLASS_LEN; i++) {
        if (of_class[i]->fini != NULL) {
            of_class[i]->fini(c);
        }
    }
    free(c->words);
    c->words = NULL;
}

static const char *
class_settle(struct lclass *c)
{
    const char *wrong = NULL;
    for (size_t i = 0; wrong == NULL && i < OF_CLASS_LEN; i++) {
        wrong = of_class[i]->settle != NULL ? of_class[i]->settle(c) : NULL;
    }
    return wrong;
}

static void
init(struct options *o)
{
    *o = (struct options){0};
    class_init(&o->base);
    for (size_t i = 0; i < OF_RUN_LEN; i++) {
        if (of_run[i]->init != NULL) {
            of_run[i]->init(o);
        }
    }
}

void
options_fini(struct options *o)
{
    for (size_t i = 0; i < OF_RUN_LEN; i++) {
        if (of_run[i]->fini != NULL) {
            of_run[i]->fini(o);
        }
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        class_fini(&o->classes[i]);
    }
    free(o->classes);
    class_fini(&o->base);
    models_fini(&o->models);
    *o = (struct options){0};
}

static const char *
settle(struct options *o)
{
    const char *wrong = NULL;
    for (unsigned i = 0; wrong == NULL && i < o->classes_len; i++) {
        wrong = class_settle(&o->classes[i]);
    }
    for (size_t i = 0; wrong == NULL && i < OF_RUN_LEN; i++) {
        wrong = of_run[i]->settle != NULL ? of_run[i]->settle(o) : NULL;
    }
    return wrong;
}

bool
options_apply_names(struct lclass *c, struct models *models, FILE *err)
{
    if (c->workload != NULL) {
        c->model = models_get(models, c->workload, err);
        if (c->model == NULL || !models_apply(models, c->model, c, err)) {
            return false;
        }
    }
    if (c->antagonist != NULL) {
        antagonist_apply(c);
    }
    return true;
}

/* Workloads and antagonists are words for options: what is given beside them counts more,
 * wherever it stands. */
bool
options_parse_outside(struct options *o, struct models *models, int argc, char **argv,
                      FILE *err)
{
    int status = 0;
    init(o);
    if (opt_parse(options_table(), o, argc, argv, err, &status) != OPT_DONE) {
        return false;
    }
    const char *workload = o->base.workload;
    const struct antagonist *a = o->base.antagonist;
    if (workload == NULL && a == NULL) {
        return true;
    }
    options_fini(o);
    init(o);
    o->base.workload = workload;
    o->base.antagonist = a;
    return options_apply_names(&o->base, models, err) &&
           opt_parse(options_table(), o, argc, argv, err, &status) == OPT_DONE;
}

bool
options_has_classes(const struct options *o)
{
    return o->classes_len > 1 || o->class_texts_len > 0;
}

bool
options_parse(struct options *o, int argc, char **argv, FILE *err)
{
    struct models models = {.count = 0};
    bool is_good = options_parse_outside(o, &models, argc, argv, err);
    o->models = models;
    if (!is_good || !classes_make(o, argc, argv, err)) {
        return false;
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        o->wants_models = o->wants_models || c->wants_models;
        o->shown = c->shows_model ? c->model : o->shown;
    }
    const char *wrong = settle(o);
    if (wrong != NULL) {
        fprintf(err, PROGRAM ": %s\n", wrong);
    }
    return wrong == NULL;
}
