/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Several classes in one run: those written out, and mutilate's measuring client.
 */
#include "loadgen/options/group.h"

#include "base/alloc.h"

#define CONNECTIONS_MAX 65536
#define DEPTH_MAX 4096
#define QPS_MAX 1e8
#define NOT_GIVEN (-1)
#define MEASURE_QPS 1000 /* of agents that measure, at most, unless it is given */

static const char *
call_class(void *conf, const char *text)
{
    struct options *o = conf;
    if (o->class_texts_len == OPTIONS_CLASSES_MAX) {
        return "too many classes";
    }
    o->class_texts[o->class_texts_len++] = text;
    return NULL;
}

/* clang-format off */
static const struct opt rows[] = {
    {.name = "class", SCOPE(SHARED), CALL(call_class), .arg = "NAME:{OPTIONS}",
     .help = "threads of its own with these options; repeat for several"},
    {.name = "assert", SCOPE(LEADER), KIND(FLAG), OF_RUN(asserts),
     .help = "exit status 4 when an objective (--slo) is not met"},
    {.letter = 'C', .name = "measure-connections", SCOPE(MEASURE), KIND(INT),
     OF_RUN(measure_connections), .min = 1, .max = CONNECTIONS_MAX, .arg = "N",
     .help = "a measuring client beside the load, connections to each server, each thread"},
    {.letter = 'Q', .name = "measure-qps", SCOPE(MEASURE), KIND(RATE),
     OF_RUN(measure_qps), .min = 0, .max = QPS_MAX, .arg = "N[k|m]",
     .help = "its part of the rate (by connections)"},
    {.letter = 'D', .name = "measure-depth", SCOPE(MEASURE), KIND(INT),
     OF_RUN(measure_depth), .min = 1, .max = DEPTH_MAX, .arg = "N",
     .help = "pipeline depth of the measuring client"},
};
/* clang-format on */

static void
init(struct options *o)
{
    o->measure_connections = o->measure_qps = o->measure_depth = NOT_GIVEN;
}

static bool
wants_measuring(const struct options *o)
{
    return o->measure_connections != NOT_GIVEN || o->measure_qps != NOT_GIVEN ||
           o->measure_depth != NOT_GIVEN || options_agents_in(o, ROLE_MEASURE) > 0;
}

/* Classes with the same keys and other values would overwrite each other's. */
static bool
has_other_values(const struct workload_conf *a, const struct workload_conf *b)
{
    return strcmp(a->key_prefix, b->key_prefix) == 0 &&
           (mix_share(&a->mix, MIX_INCR) != mix_share(&b->mix, MIX_INCR) ||
            a->sizes_per_set != b->sizes_per_set || a->flags != b->flags ||
            a->key_format != b->key_format ||
            !dist_is_same(&a->value_size, &b->value_size) ||
            !dist_is_same(&a->expiry, &b->expiry));
}

/* A class whose values are others than those of a class before has keys of its own, unless
 * it names them. */
static void
part_keys(struct options *o, const char *prefix)
{
    for (unsigned i = 1; i < o->classes_len; i++) {
        struct lclass *c = &o->classes[i];
        bool has_clash = false;
        for (unsigned j = 0; j < i; j++) {
            has_clash =
                has_clash || has_other_values(&c->workload, &o->classes[j].workload);
        }
        if (has_clash && strcmp(c->workload.key_prefix, prefix) == 0) {
            snprintf(c->own_prefix, sizeof c->own_prefix, "%s%s:", prefix, c->name);
            c->workload.key_prefix = c->own_prefix;
        }
    }
}

static const char *
settle(struct options *o)
{
    bool has_slo = false;
    for (unsigned i = 0; i < o->classes_len; i++) {
        has_slo = has_slo || o->classes[i].slo.percent > 0;
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(o->classes[i].name, o->classes[j].name) == 0) {
                return "two classes have the same name: give each --class one of its own";
            }
        }
    }
    part_keys(o, o->base.workload.key_prefix);
    return o->asserts && !has_slo ? "--assert needs an objective (--slo)" : NULL;
}

const struct run_group group_classes = {ROWS(rows), .init = init, .settle = settle};

/* ---- making classes ------------------------------------------------------------------ */

/* What stands outside, read once more, is what a class begins with. */
static bool
begin_class(struct lclass *c, struct models *models, int argc, char **argv, FILE *quiet)
{
    struct options again;
    bool is_good = options_parse_outside(&again, models, argc, argv, quiet);
    *c = again.base;
    again.base = (struct lclass){0};
    options_fini(&again);
    return is_good;
}

static bool
parse_words(struct lclass *c, const struct words *w, const char *program, FILE *err)
{
    int status = 0;
    struct opt_table table = *options_class_table();
    table.program = program;
    return opt_parse(&table, c, w->argc, (char **)w->argv, err, &status) == OPT_DONE;
}

/* Names that stand for options are applied before the options beside them. */
static bool
apply_words(struct lclass *c, struct models *models, const struct words *w, FILE *err)
{
    char program[WORDS_NAME_MAX + 32];
    snprintf(program, sizeof program, "mcload: class %s", w->name);
    const char *outer = c->workload_word;
    const struct antagonist *outer_antagonist = c->antagonist;
    c->workload_word = NULL;
    c->antagonist = NULL;
    c->has_update = c->has_ops = false;
    bool is_good = parse_words(c, w, program, err);
    bool has_names = c->workload_word != NULL || c->antagonist != NULL;
    if (is_good && has_names) {
        is_good = options_apply_names(c, models, err) && parse_words(c, w, program, err);
    }
    c->workload_word = c->workload_word != NULL ? c->workload_word : outer;
    c->antagonist = c->antagonist != NULL ? c->antagonist : outer_antagonist;
    return is_good;
}

static bool
make_class(struct options *o, const char *text, int argc, char **argv, FILE *quiet,
           FILE *err)
{
    char why[WORDS_ERR_MAX];
    struct words words;
    struct lclass *c = &o->classes[o->classes_len++];
    bool is_good = begin_class(c, &o->models, argc, argv, quiet);
    const char *wrong =
        words_parse(&words, text, options_class_table(), options_table(), why);
    c->words = words.text;
    if (wrong != NULL) {
        fprintf(err, "mcload: %s (--class \"%s\")\n", wrong, text);
        return false;
    }
    memcpy(c->own_name, words.name, sizeof c->own_name);
    c->name = c->own_name;
    return is_good && apply_words(c, &o->models, &words, err);
}

/* By connections unless it is given; agents that measure send little. 0: closed loop. */
static int64_t
measuring_rate(const struct options *o, const struct lclass *load,
               const struct lclass *measure)
{
    bool is_low = o->measure_qps == NOT_GIVEN && options_agents_in(o, ROLE_MEASURE) > 0;
    if (o->measure_qps > 0) {
        return o->measure_qps;
    }
    if (load->qps == 0) {
        return is_low ? MEASURE_QPS : 0;
    }
    double all = (double)(load->connections + measure->connections);
    double share = (double)measure->connections / all;
    int64_t qps = (int64_t)((double)load->qps * share + 0.5);
    qps = is_low && qps > MEASURE_QPS ? MEASURE_QPS : qps;
    return qps > 0 ? qps : 1;
}

/* The load, and the client whose latencies are told; together they have the rate. */
static bool
make_measuring(struct options *o, int argc, char **argv, FILE *quiet, FILE *err)
{
    struct lclass *load = &o->classes[o->classes_len++];
    struct lclass *measure = &o->classes[o->classes_len++];
    bool is_good = begin_class(load, &o->models, argc, argv, quiet);
    is_good = begin_class(measure, &o->models, argc, argv, quiet) && is_good;
    load->name = "load";
    measure->name = "measure";
    measure->is_measuring = true;
    if (o->measure_connections != NOT_GIVEN) {
        measure->connections = o->measure_connections;
    } else if (options_agents_in(o, ROLE_MEASURE) > 0) {
        measure->connections = 1;
    }
    if (o->measure_depth != NOT_GIVEN) {
        measure->depth = o->measure_depth;
    }
    measure->qps = measuring_rate(o, load, measure);
    measure->qps_share = measure->qps > 0 ? 0 : measure->qps_share;
    if (is_good && load->qps > 0 && load->qps <= measure->qps) {
        fprintf(err, "mcload: --measure-qps has to be below --qps\n");
        is_good = false;
    }
    load->qps -= load->qps > 0 ? measure->qps : 0;
    return is_good;
}

static bool
make(struct options *o, int argc, char **argv, FILE *quiet, FILE *err)
{
    unsigned len = o->class_texts_len > 0 ? o->class_texts_len : 2;
    o->classes = alloc_zeroed(len, sizeof *o->classes);
    if (o->class_texts_len > 0 && wants_measuring(o)) {
        fprintf(err, "mcload: --class and %s are mutually exclusive\n",
                options_agents_in(o, ROLE_MEASURE) > 0 ? "role=measure"
                                                       : "--measure-...");
        return false;
    }
    if (wants_measuring(o)) {
        return make_measuring(o, argc, argv, quiet, err);
    }
    bool is_good = true;
    for (unsigned i = 0; is_good && i < o->class_texts_len; i++) {
        is_good = make_class(o, o->class_texts[i], argc, argv, quiet, err);
    }
    if (o->class_texts_len == 0) {
        is_good =
            begin_class(&o->classes[o->classes_len++], &o->models, argc, argv, quiet);
    }
    return is_good;
}

/* What stands outside was read before: what it has to say was said. */
bool
classes_make(struct options *o, int argc, char **argv, FILE *err)
{
    FILE *quiet = fopen("/dev/null", "w");
    bool is_good = make(o, argc, argv, quiet != NULL ? quiet : err, err);
    if (quiet != NULL) {
        fclose(quiet);
    }
    return is_good;
}
