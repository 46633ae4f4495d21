/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Workloads by name: every text in the table can be parsed, sizes and mixes are those that
 * were published, and what a thread asks for is what the name promises.
 */
#include "loadgen/work/model.h"
#include "check_main.h"

#include <math.h>

#include "loadgen/drive/generator.h"
#include "loadgen/options/options.h"

static struct options options;

static void
parse(const char *name, const char *arg)
{
    char program[] = "mcload", option[64], more[64];
    char *argv[] = {program, option, more, NULL};
    snprintf(option, sizeof option, "--workload=%s", name);
    snprintf(more, sizeof more, "%s", arg != NULL ? arg : "--noload");
    ck_assert(options_parse(&options, 3, argv, stderr));
}

static void
tear_down(void)
{
    options_fini(&options);
}

FIXTURE(NULL, tear_down);

TEST(test_all)
{
    static const char *const names[] = {
#define MODEL(name, ...) name,
#include "loadgen/work/models.def"
#undef MODEL
    };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        parse(names[i], NULL);
        const struct model *m = options.classes[0].model;
        ck_assert_str_eq(m->name, names[i]);
        ck_assert_ptr_eq(model_find(names[i]), m);
        ck_assert_double_gt(dist_mean(&options.classes[0].workload.key_size), 0);
        ck_assert(isfinite(dist_mean(&options.classes[0].workload.value_size)));
        ck_assert_uint_gt(options.classes[0].workload.mix.count, 0);
        ck_assert_int_eq(options.classes[0].workload.fills,
                         strcmp(m->texts[MODEL_ON_MISS], "set") == 0);
        options_fini(&options);
    }
    ck_assert_ptr_null(model_find("nonsense"));
    ck_assert_ptr_eq(model_like("ycsb-a"), model_find("ycsb:a"));
    ck_assert_ptr_eq(model_like("FB_App"), model_find("fb-app"));
    ck_assert_ptr_null(model_like("ycsb-"));
    ck_assert_ptr_null(model_like("ycsb-aa"));
    ck_assert_ptr_null(model_like("/etc"));
}

/* Means and quantiles as published, within what a thousandth or rounding allows; 0: not told. */
static const struct {
    const char *name;
    double key_mean, value_mean;
    struct {
        double q, value;
    } points[5];
} sizes[] = {
    {"etc", 36.22, 194.4, {{.5, 39}, {.75, 214}, {.90, 520}, {.95, 826}, {.99, 1899}}},
    {"usr", 18.5, 2, {{.01, 2}, {.99, 2}}},
    {"app", 30, 200, {{.5, 200}}},
    {"fb-wildcard", 0, 1137, {{.05, 77}, {.25, 102}, {.5, 169}, {.75, 363}, {.95, 3738}}},
    {"fb-app", 0, 881, {{.05, 103}, {.25, 247}, {.5, 269}, {.75, 337}, {.95, 1720}}},
    {"fb-replicated", 0, 66, {{.05, 62}, {.25, 68}, {.5, 68}, {.99, 68}}},
    {"fb-regional",
     0,
     32563,
     {{.05, 231}, {.25, 824}, {.5, 5437}, {.95, 161792}, {.99, 390144}}},
    {"twitter:52", 20, 273, {{.5, 273 * 0.6065}}},
    {"twitter:12", 44, 1030, {{.5, 0}}},
    {"twitter:50", 18, 67485, {{.5, 0}}},
    {"ycsb:a", 23, 1000, {{.5, 1000}}},
};

TEST_ROWS(test_sizes, sizes, row->name)
{
    parse(row->name, NULL);
    double key = dist_mean(&options.classes[0].workload.key_size),
           value = dist_mean(&options.classes[0].workload.value_size);
    if (row->key_mean > 0) {
        ck_assert_double_eq_tol(key / row->key_mean, 1, 1e-3);
    }
    ck_assert_double_eq_tol(value / row->value_mean, 1, 0.02);
    for (int p = 0; p < 5 && row->points[p].value > 0; p++) {
        double got =
            dist_value(&options.classes[0].workload.value_size, row->points[p].q);
        ck_assert_double_eq_tol(got, row->points[p].value,
                                1 + 2e-3 * row->points[p].value);
    }
}

/* The published deviation of the pools, whose tail was made for it: a sum over the body, the
 * textbook's moments of the Pareto tail, which no sum would reach. */
TEST(test_deviations)
{
    static const struct {
        const char *name;
        double sd, tail, tolerance;
    } rows[] = {
        {"fb-wildcard", 8479, .01, .02},
        {"fb-app", 7885, .01, .02},
        {"fb-regional", 77210, 0, .12}, /* its end was made for the mean */
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        double sum = 0, squares = 0;
        enum { STEPS = 200000 };
        parse(rows[r].name, NULL);
        for (int i = 0; i < STEPS * (1 - rows[r].tail); i++) {
            double value =
                dist_value(&options.classes[0].workload.value_size, (i + 0.5) / STEPS);
            sum += value / STEPS;
            squares += value * value / STEPS;
        }
        if (rows[r].tail > 0) {
            const struct dist_pieces *p = options.classes[0].workload.value_size.pieces;
            const struct dist *d = &p->piece[p->count - 1].law;
            ck_assert_int_eq(d->kind, DIST_PARETO);
            double mean = d->a + d->b / (1 - d->c);
            double variance = d->b * d->b / (1 - d->c) / (1 - d->c) / (1 - 2 * d->c);
            sum += rows[r].tail * mean;
            squares += rows[r].tail * (variance + mean * mean);
        }
        ck_assert_double_eq_tol(sqrt(squares - sum * sum) / rows[r].sd, 1,
                                rows[r].tolerance);
        options_fini(&options);
    }
}

TEST(test_overridden)
{
    parse("ycsb:c", "--ops=get:1,set:1");
    ck_assert_double_eq(mix_share(&options.classes[0].workload.mix, MIX_SET), 0.5);
    ck_assert_double_eq(dist_mean(&options.classes[0].workload.value_size), 1000);
    options_fini(&options);
    /* Before the name, too. */
    char program[] = "mcload", first[] = "-V50", second[] = "--workload=etc";
    char *argv[] = {program, first, second, NULL};
    ck_assert(options_parse(&options, 3, argv, stderr));
    ck_assert_double_eq(dist_mean(&options.classes[0].workload.value_size), 50);
    ck_assert_double_eq_tol(dist_mean(&options.classes[0].workload.key_size), 36.22,
                            0.01);
}

/* ---- texts ---------------------------------------------------------------------------- */

static const char *
read_text(struct model *m, const char *text, unsigned *line)
{
    static char copy[256];
    m->name = "mine";
    m->about = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    return model_parse(m, copy, strlen(copy), line);
}

TEST(test_text)
{
    struct model m;
    unsigned line;
    char word[128];
    ck_assert_ptr_null(read_text(&m,
                                 "# none; of it\n\r\n --keysize = 20 # a comment\r\n"
                                 "ops=get:1,set:1;value_size_per=key;;\n"
                                 "\tkey-prefix =  a#b  \n#end",
                                 &line));
    ck_assert_str_eq(m.texts[MODEL_KEYSIZE], "20");
    ck_assert_str_eq(m.texts[MODEL_OPS], "get:1,set:1");
    ck_assert_str_eq(m.texts[MODEL_VALUE_SIZE_PER], "key");
    ck_assert_str_eq(m.texts[MODEL_KEY_PREFIX], "a#b");
    ck_assert_ptr_null(m.texts[MODEL_VALUESIZE]);
    ck_assert(model_put(&m, word, sizeof word));
    ck_assert_str_eq(word,
                     "keysize=20;ops=get:1,set:1;value-size-per=key;key-prefix=a#b");
    ck_assert(!model_put(&m, word, strlen(word)));
    ck_assert_ptr_null(read_text(&m, word, &line));
    ck_assert_ptr_null(read_text(&m, "ops = get:1, set:1", &line));
    ck_assert(!model_put(&m, word, sizeof word)); /* a blank */
}

static const struct {
    const char *text;
    unsigned line;
    const char *says;
} bad_texts[] = {
    {"", 1, "nothing"},
    {"\n#\n;\n", 1, "nothing"},
    {"keysize=1\nkeysize", 2, "NAME = VALUE"},
    {"=1", 1, "\"\""},
    {"--=1", 1, "\"\""},
    {"keysise=1", 1, "\"keysise\""},
    {"\nkeysize=;ops=get:1", 2, "has no value"},
    {"keysize=1;ops=get:1;keysize=2", 1, "told before, in line 1"},
    {"ops=get:1\nkeysize=\x01", 2, "no text"},
    {"ops=\x7f", 1, "no text"},
    {"a-name-that-is-very-much-longer-than-forty-letters-are=1", 1, "longer-than-for\""},
};

TEST_ROWS(test_bad_text, bad_texts, row->text)
{
    struct model m;
    unsigned line;
    const char *wrong = read_text(&m, row->text, &line);
    ck_assert_ptr_nonnull(wrong);
    expect_part(wrong, row->says);
    ck_assert_uint_eq(line, row->line);
}

/* ---- what threads ask for ------------------------------------------------------------- */

static struct workload workload;
static struct target target;

static void
make(struct generator *a, struct lconn *c, const char *popularity, const char *ops,
     unsigned thread)
{
    struct workload_conf conf = {
        .records = 100, .getcount = dist_fixed(1), .key_prefix = ""};
    conf.key_size = dist_fixed(30);
    conf.value_size = dist_fixed(10);
    ck_assert_ptr_null(mix_parse(&conf.mix, ops));
    ck_assert_ptr_null(popularity_parse(&conf.popularity, popularity));
    ck_assert_ptr_null(workload_init(&workload, &conf));
    workload_open(&workload);
    struct lconn_conf lc = {codec_all[0], &target, 0, 4, &workload, NULL, NULL, false};
    lconn_init(c, &lc);
    c->state = LCONN_UP;
    struct generator_conf ac = {.workload = &workload,
                                .seed = 1,
                                .stream = thread,
                                .thread = thread,
                                .threads = 2,
                                .number = thread,
                                .numbers = 2,
                                .above = 100};
    generator_init(a, &ac);
}

/* Pushes one request, takes it back and returns its first key. */
static uint64_t
asked(struct generator *a, struct lconn *c, struct request_op *op)
{
    generator_push(a, c, 0, 0);
    uint64_t key = c->keys[c->head * c->keys_max];
    c->out_len = 0;
    ck_assert(lconn_take_op(c, op));
    return key;
}

static void
unmake(struct generator *a, struct lconn *c)
{
    generator_fini(a);
    lconn_fini(c);
    workload_close(&workload);
}

/* Two threads go through the keys together. */
TEST(test_sequence)
{
    struct generator a;
    struct lconn c;
    struct request_op op;
    int seen[100] = {0};
    for (unsigned thread = 0; thread < 2; thread++) {
        make(&a, &c, "seq", "get:1", thread);
        for (unsigned i = 0; i < 100; i++) {
            seen[asked(&a, &c, &op)]++;
        }
        unmake(&a, &c);
    }
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(seen[i], 2);
    }
}

/* Inserts are keys of their own for each thread; the newest are asked for most. */
TEST(test_latest)
{
    struct generator a;
    struct lconn c;
    struct request_op op;
    uint64_t newest = 99, at_newest = 0, gets = 0, next = 100 + 1;
    make(&a, &c, "latest:2", "get:1,insert:1", 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t key = asked(&a, &c, &op);
        if (op.verb == CODEC_SET) {
            ck_assert_uint_eq(key, next);
            newest = key;
            next += 2;
        } else {
            gets++;
            at_newest += key == newest;
            ck_assert(key < 100 || (key % 2 == 1 && key <= newest));
        }
    }
    /* 1 / (1 + 1/4 + 1/9 ... to 100) = 0.6116 */
    ck_assert_double_eq_tol((double)at_newest / (double)gets, 0.6116, 0.02);
    unmake(&a, &c);
}

/* Scans have 1 to 100 keys, 50.5 in the mean. */
TEST(test_scans)
{
    struct generator a;
    struct lconn c;
    struct request_op op;
    double keys = 0;
    make(&a, &c, "zipf:0.99", "scan:1", 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t key = asked(&a, &c, &op);
        ck_assert_uint_lt(key, 100);
        expect_between(op.keys, 1, WORKLOAD_SCAN_MAX);
        keys += op.keys;
    }
    ck_assert_double_eq_tol(keys / 10000, 50.5, 1.2);
    unmake(&a, &c);
}

/* A share of gets is to be verified, and every verb begins as it should. */
TEST(test_verbs)
{
    struct generator a;
    struct lconn c;
    struct request_op op;
    int seen[CODEC_VERBS] = {0}, followups[3] = {0}, verified = 0;
    make(&a, &c, "uniform",
         "get:2,cas:1,rmw:1,delete:1,incr:1,touch:1,add:1,set:1,gets:1", 0);
    workload.conf.verify = 0.25;
    for (int i = 0; i < 20000; i++) {
        uint64_t key = asked(&a, &c, &op);
        seen[op.verb]++;
        followups[op.then]++;
        verified += op.is_verified;
        ck_assert(op.verb != CODEC_INCR || workload_is_counter(&workload, key));
    }
    static const int tenths[CODEC_VERBS] = {3, 2, 1, 1, 0, 1, 1, 1};
    for (int v = 0; v < CODEC_VERBS; v++) {
        ck_assert_double_eq_tol(seen[v], 2000 * tenths[v], 200);
    }
    ck_assert_double_eq_tol(followups[THEN_CAS], 2000, 200);
    ck_assert_double_eq_tol(followups[THEN_SET], 2000, 200);
    ck_assert_double_eq_tol(verified, 5000, 250);
    unmake(&a, &c);
}
