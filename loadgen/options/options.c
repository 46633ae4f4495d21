/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/options/options.h"

#include <stdarg.h>

#include "base/part.h"
#include "loadgen/options/group.h"

#define ROWS_MAX 256
#define PROGRAM "mcload"
#define CLASS_ALONE "all"

enum exit_status
options_fail(FILE *err, enum exit_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs(PROGRAM ": ", err);
    vfprintf(err, format, args);
    fputc('\n', err);
    va_end(args);
    return status;
}

/* Sections of the help, in its order. */
enum section {
    TARGET,
    LOAD,
    WORKLOAD,
    TRACE,
    MEASURE,
    SEARCH,
    CLASSES,
    SWARM,
    HOST,
    OUTPUT
};

static const struct opt_section sections[] = {
    [TARGET] = {"target", "Servers and protocol"},
    [LOAD] = {"load", "Load: connections, rate, arrivals"},
    [WORKLOAD] = {"workload", "Workload: keys, values, mix"},
    [TRACE] = {"trace", "Replay of traces"},
    [MEASURE] = {"measure", "Measurement"},
    [SEARCH] = {"search", "Searches and scans"},
    [CLASSES] = {"classes", "Classes of load and objectives"},
    [SWARM] = {"swarm", "Several machines"},
    [HOST] = {"host", "This machine"},
    [OUTPUT] = {"output", "Output and help"},
};

static const struct {
    const struct class_group *group;
    enum section section;
} of_class[] = {
    {&group_protocol, TARGET}, {&group_load, LOAD},         {&group_traffic, LOAD},
    {&group_trace, TRACE},     {&group_workload, WORKLOAD}, {&group_slo, CLASSES},
    {&group_antagonist, LOAD},
};
static const struct {
    const struct run_group *group;
    enum section section;
} of_run[] = {
    {&group_target, TARGET}, {&group_classes, CLASSES}, {&group_measure, MEASURE},
    {&group_host, HOST},     {&group_search, SEARCH},   {&group_swarm, SWARM},
    {&group_output, OUTPUT},
};
#define OF_CLASS_LEN (sizeof of_class / sizeof of_class[0])
#define OF_RUN_LEN (sizeof of_run / sizeof of_run[0])

/* mutilate's names, which it takes abbreviated. */
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
add_rows(struct opt *all, size_t count, const struct opt *rows, size_t len,
         enum section section)
{
    must(count + len <= ROWS_MAX);
    for (size_t i = 0; i < len; i++) {
        all[count + i] = rows[i];
        all[count + i].section = section;
    }
    return count + len;
}

static size_t
add_class_rows(struct opt *all, size_t count)
{
    for (size_t i = 0; i < OF_CLASS_LEN; i++) {
        count = add_rows(all, count, of_class[i].group->rows, of_class[i].group->count,
                         of_class[i].section);
    }
    return count;
}

const struct opt_table *
options_table(void)
{
    static struct opt all[ROWS_MAX];
    static struct opt_table table = {.rows = all,
                                     .program = PROGRAM,
                                     .elders = mutilates,
                                     .sections = sections,
                                     .section_count = sizeof sections / sizeof *sections};
    if (table.count == 0) {
        size_t n = 0;
        for (size_t i = 0; i < OF_RUN_LEN; i++) {
            n = add_rows(all, n, of_run[i].group->rows, of_run[i].group->count,
                         of_run[i].section);
        }
        table.count = foreign_add(all, add_class_rows(all, n), ROWS_MAX);
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
        if (of_class[i].group->init != NULL) {
            of_class[i].group->init(c);
        }
    }
}

static void
class_fini(struct lclass *c)
{
    for (size_t i = 0; i < OF_CLASS_LEN; i++) {
        if (of_class[i].group->fini != NULL) {
            of_class[i].group->fini(c);
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
        wrong = of_class[i].group->settle != NULL ? of_class[i].group->settle(c) : NULL;
    }
    return wrong;
}

static void
init(struct options *o)
{
    *o = (struct options){0};
    class_init(&o->base);
    for (size_t i = 0; i < OF_RUN_LEN; i++) {
        if (of_run[i].group->init != NULL) {
            of_run[i].group->init(o);
        }
    }
}

void
options_fini(struct options *o)
{
    for (size_t i = 0; i < OF_RUN_LEN; i++) {
        if (of_run[i].group->fini != NULL) {
            of_run[i].group->fini(o);
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
        wrong = of_run[i].group->settle != NULL ? of_run[i].group->settle(o) : NULL;
    }
    return wrong;
}

bool
options_apply_names(struct lclass *c, struct models *models, FILE *err)
{
    c->has_update = c->has_ops = false;
    if (c->workload_word != NULL) {
        c->model = models_get(models, c->workload_word, err);
        if (c->model == NULL || !models_apply(c->model, c, err)) {
            return false;
        }
    }
    if (c->antagonist != NULL) {
        antagonist_apply(c);
    }
    c->has_update = c->has_ops = false;
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
    const char *workload = o->base.workload_word;
    const struct antagonist *a = o->base.antagonist;
    if (workload == NULL && a == NULL) {
        return true;
    }
    options_fini(o);
    init(o);
    o->base.workload_word = workload;
    o->base.antagonist = a;
    return options_apply_names(&o->base, models, err) &&
           opt_parse(options_table(), o, argc, argv, err, &status) == OPT_DONE;
}

bool
options_replay(const struct options *o)
{
    bool does = false;
    for (unsigned i = 0; i < o->classes_len; i++) {
        does = does || o->classes[i].trace.file.path != NULL;
    }
    return does;
}

int
options_class_named(const struct options *o, const char *name)
{
    const struct lclass *c =
        part_row(o->classes, o->classes_len, sizeof *c, name, strlen(name));
    return c != NULL ? (int)(c - o->classes) : -1;
}

bool
options_has_classes(const struct options *o)
{
    return o->classes_len > 1 || o->class_texts_len > 0;
}

static bool
parse(struct options *o, bool is_told, int argc, char **argv, FILE *err)
{
    struct models models = {.count = 0};
    bool is_good = options_parse_outside(o, &models, argc, argv, err);
    o->models = models;
    o->is_told = is_told;
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

bool
options_parse(struct options *o, int argc, char **argv, FILE *err)
{
    return parse(o, false, argc, argv, err);
}

bool
options_parse_told(struct options *o, int argc, char **argv, FILE *err)
{
    return parse(o, true, argc, argv, err);
}
