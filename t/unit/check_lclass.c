/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Classes on the command line: what they inherit and override, mutilate's measuring client,
 * objectives, and what each mistake is called.
 */
#include "loadgen/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

#define ARGS_MAX (OPTIONS_CLASSES_MAX + 2)

static struct options options;
static char said[1024];
static bool is_told; /* by a leader */

/* Parses mcload's options, up to a NULL, which live until the next time; what it says goes to
 * `said`. */
static bool
parse(const char *const *args)
{
    static char *argv[ARGS_MAX + 1];
    int argc = 0;
    for (char **old = argv; *old != NULL; old++) {
        free(*old);
    }
    argv[argc++] = strdup("mcload");
    for (unsigned i = 0; args[i] != NULL; i++) {
        ck_assert_int_lt(argc, ARGS_MAX);
        argv[argc++] = strdup(args[i]);
    }
    argv[argc] = NULL;
    memset(said, 0, sizeof said);
    FILE *err = fmemopen(said, sizeof said - 1, "w");
    options_fini(&options);
    bool is_good =
        (is_told ? options_parse_told : options_parse)(&options, argc, argv, err);
    fclose(err);
    return is_good;
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void
tear_down(void)
{
    options_fini(&options);
}

FIXTURE(NULL, tear_down);

/* An agent does not know which rates its leader will name; what contradicts a rate still does. */
TEST(test_told)
{
    static const char *const words[] = {
        "--late=drop", "--max-outstanding=9", "--session=4",
        "--mode=open", "--mode=partly",       "--schedule=square:50%:150%:1:0.5",
        "--skip"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        bool needs_rate = strcmp(words[i], "--skip") != 0;
        is_told = false;
        ck_assert_msg(PARSE(words[i]) == !needs_rate, "%s", words[i]);
        is_told = true;
        ck_assert_msg(PARSE(words[i]), "%s: %s", words[i], said);
    }
    ck_assert_int_eq(options.classes[0].traffic.late, LATE_DROP);
    ck_assert(!PARSE("--mode=closed", "--qps=5"));
    is_told = false;
}

TEST(test_one_class)
{
    ck_assert(PARSE("-q", "1k", "-c", "4"));
    ck_assert_uint_eq(options.classes_len, 1);
    ck_assert_str_eq(options.classes[0].name, "all");
    ck_assert_int_eq(options.classes[0].qps, 1000);
    ck_assert(!options_has_classes(&options));
}

TEST(test_inheritance)
{
    /* What stands outside counts wherever it stands. */
    ck_assert(PARSE("--class=a:{-q 2k depth=3 --key_prefix=x --getcount 5 }",
                    "--class=b.2:{ --protocol=meta\tnoload }", "-q", "500", "-c", "7",
                    "-d", "2", "--workload=etc", "-V", "50"));
    ck_assert_uint_eq(options.classes_len, 2);
    const struct lclass *a = &options.classes[0], *b = &options.classes[1];
    ck_assert_str_eq(a->name, "a");
    ck_assert_int_eq(a->qps, 2000);
    ck_assert_int_eq(a->depth, 3);
    ck_assert_int_eq(a->connections, 7);
    ck_assert_double_eq(a->workload.getcount.a, 5);
    ck_assert_str_eq(a->workload.key_prefix, "x");
    ck_assert_ptr_nonnull(a->model);
    ck_assert(!a->no_load);
    ck_assert_str_eq(b->name, "b.2");
    ck_assert_int_eq(b->qps, 500);
    ck_assert_int_eq(b->depth, 2);
    ck_assert_str_eq(b->codec->name, "meta");
    ck_assert(b->no_load);
    ck_assert(b->workload.fills);
    ck_assert_double_eq(dist_mean(&b->workload.value_size), 50);
    ck_assert(options_has_classes(&options));
}

TEST(test_model_in_a_class)
{
    ck_assert(
        PARSE("--class=a:{valuesize=7 workload=ycsb:a}", "--class=b:{}", "-K", "40"));
    const struct lclass *a = &options.classes[0], *b = &options.classes[1];
    ck_assert_double_eq(dist_mean(&a->workload.value_size), 7);
    ck_assert_double_eq(dist_mean(&a->workload.key_size), 23);
    ck_assert_double_eq(mix_share(&a->workload.mix, MIX_SET), 0.5);
    ck_assert_double_eq(dist_mean(&b->workload.key_size), 40);
    ck_assert_ptr_null(b->model);
}

TEST(test_other_values_have_other_keys)
{
    ck_assert(PARSE("--class=a:{}", "--class=b:{valuesize=9}", "--class=c:{-u 0.5}",
                    "--class=d:{-V 9 key-prefix=own}", "--key-prefix=k"));
    ck_assert_str_eq(options.classes[0].workload.key_prefix, "k");
    ck_assert_str_eq(options.classes[1].workload.key_prefix, "kb:");
    ck_assert_str_eq(options.classes[2].workload.key_prefix, "k");
    ck_assert_str_eq(options.classes[3].workload.key_prefix, "own");
}

TEST(test_antagonists)
{
    ck_assert(PARSE(
        "-q", "1k", "--class=a:{slo=p99:1ms}", "--class=f:{--antagonist=flood -d 9}",
        "--class=m:{antagonist=multiget}", "--class=l:{antagonist=large -q 50}",
        "--class=s:{antagonist=sets workload=etc}"));
    const struct lclass *c = options.classes;
    ck_assert_ptr_null(c[0].antagonist);
    ck_assert_int_eq(c[0].qps, 1000);
    ck_assert_int_eq(c[1].qps, 0);
    ck_assert_int_eq(c[1].connections, 16);
    ck_assert_int_eq(c[1].depth, 9);
    ck_assert_double_eq(c[2].workload.getcount.a, 100);
    ck_assert_int_eq(c[3].qps, 50);
    ck_assert_double_eq(dist_mean(&c[3].workload.value_size), 500000);
    ck_assert_str_eq(c[3].workload.key_prefix, "l:");
    ck_assert_double_eq(mix_share(&c[4].workload.mix, MIX_SET), 1);
    ck_assert_double_gt(dist_mean(&c[4].workload.value_size), 100);
}

/* What has a rate, or none, of its own does not inherit a share of the peak. */
TEST(test_shares_of_the_peak)
{
    ck_assert(PARSE("-q", "50%", "--class=a:{}", "--class=f:{antagonist=flood}",
                    "--class=g:{antagonist=flood -q 10%}"));
    const struct lclass *c = options.classes;
    ck_assert_double_eq(c[0].qps_share, 0.5);
    ck_assert_double_eq(c[1].qps_share, 0);
    ck_assert_double_eq(c[2].qps_share, 0.1);
    ck_assert(PARSE("-q", "50%", "-C", "4", "-Q", "1000"));
    ck_assert_double_eq(options.classes[0].qps_share, 0.5);
    ck_assert_int_eq(options.classes[1].qps, 1000);
    ck_assert_double_eq(options.classes[1].qps_share, 0);
    ck_assert(PARSE("-q", "50%", "--agent=a;role=measure"));
    ck_assert_int_eq(options.classes[1].qps, 1000);
    ck_assert_double_eq(options.classes[1].qps_share, 0);
    ck_assert(PARSE("-q", "50%", "-C", "4"));
    ck_assert_int_eq(options.classes[1].qps, 0);
    ck_assert_double_eq(options.classes[1].qps_share, 0.5);
}

/* A search or scan varies what is loaded with: nothing that stands beside it. */
TEST(test_varied_class)
{
    ck_assert(PARSE("--class=small:{}", "--class=flood:{antagonist=flood}",
                    "--scan=10k:100k:10k"));
    ck_assert_uint_eq(options.varied, 0);
    ck_assert(PARSE("--class=flood:{antagonist=flood}", "--class=small:{qps=5k}",
                    "--search=p99:1ms"));
    ck_assert_uint_eq(options.varied, 1);
    ck_assert(PARSE("--class=a:{qps=20%}", "--class=b:{}", "--scan=10%:100%:10%"));
    ck_assert_uint_eq(options.varied, 1);
    ck_assert(PARSE("--class=a:{}", "--class=b:{}", "--search=p99:1ms,class=b"));
    ck_assert_uint_eq(options.varied, 1);
    ck_assert(
        PARSE("--class=a:{}", "--class=f:{antagonist=sets}", "--search=p99:1ms,class=f"));
    ck_assert_uint_eq(options.varied, 0);
    ck_assert(PARSE("-C", "2", "--scan=1:2:1"));
    ck_assert_uint_eq(options.varied, 0);
    ck_assert(PARSE("--antagonist=large", "--scan=1:2:1"));
    ck_assert_uint_eq(options.varied, 0);
}

TEST(test_measuring_client)
{
    ck_assert(PARSE("-q", "10k", "-c", "8", "-d", "4", "-T", "2", "-C", "2", "-Q", "1k",
                    "-D", "1"));
    ck_assert_uint_eq(options.classes_len, 2);
    const struct lclass *load = &options.classes[0], *m = &options.classes[1];
    ck_assert_str_eq(load->name, "load");
    ck_assert_str_eq(m->name, "measure");
    ck_assert(m->is_measuring && !load->is_measuring);
    ck_assert_int_eq(load->qps, 9000);
    ck_assert_int_eq(load->connections, 8);
    ck_assert_int_eq(load->depth, 4);
    ck_assert_int_eq(m->qps, 1000);
    ck_assert_int_eq(m->connections, 2);
    ck_assert_int_eq(m->depth, 1);
    ck_assert_int_eq(m->threads, 2);
    /* Without a rate of its own it has that of its connections. */
    ck_assert(PARSE("-q", "10k", "-c", "3", "--measure_connections=1"));
    ck_assert_int_eq(options.classes[0].qps, 7500);
    ck_assert_int_eq(options.classes[1].qps, 2500);
    /* Beside a peak load at its rate, and without one at its peak. */
    ck_assert(PARSE("-Q", "100"));
    ck_assert_int_eq(options.classes[0].qps, 0);
    ck_assert_int_eq(options.classes[1].qps, 100);
    ck_assert(PARSE("-D", "2"));
    ck_assert_int_eq(options.classes[0].qps, 0);
    ck_assert_int_eq(options.classes[1].qps, 0);
}

#define NO_CLASS                                                                         \
    "mcload: a class is NAME:{OPTIONS}, e.g. bulk:{--connections=4 --getcount=50} "
#define NO_PERCENTILE "mcload: the percentile of an objective is above 0 and at most 100 "
#define ONE_MIX                                                                          \
    "mcload: --ops is the whole mix: give sets their share in it (set:0.1), without "    \
    "--update and --ratio "
#define ONLY_LOADED                                                                      \
    "mcload: --loadonly stores records and measures nothing: without options of the "    \
    "report and its files, which are for the run that follows with --noload\n"
#define NO_TIME "mcload: the time of an objective is a number with ns, us, ms or s "

static const struct {
    const char *args[5];
    const char *says;
} mistakes[] = {
    {{"--class=a"}, NO_CLASS "(--class \"a\")\n"},
    {{"--class=a:{-c 1"}, NO_CLASS "(--class \"a:{-c 1\")\n"},
    {{"--class=:{}"}, NO_CLASS "(--class \":{}\")\n"},
    {{"--class=a b:{}"},
     "mcload: the name of a class is made of letters, digits, '_', '.' "
     "and '-' (--class \"a b:{}\")\n"},
    {{"--class=a:{nonsense=3}"},
     "mcload: unknown option in class a: nonsense (--class \"a:{nonsense=3}\")\n"},
    {{"--class=a:{-c 1 -Z}"},
     "mcload: unknown option in class a: -Z (--class \"a:{-c 1 -Z}\")\n"},
    {{"--class=a:{--time=3}"},
     "mcload: an option of the whole run in class a: --time "
     "(--class \"a:{--time=3}\")\n"},
    {{"--class=a:{-s host}"},
     "mcload: an option of the whole run in class a: -s (--class \"a:{-s host}\")\n"},
    {{"--class=a:{--depth}"},
     "mcload: option needs a value in class a: --depth (--class \"a:{--depth}\")\n"},
    {{"--class=a:{depth=0}"},
     "mcload: class a: the depth is a number between 1 and 4096; a duration is "
     "-t SECONDS (--depth \"0\")\n"},
    {{"--class=a:{noload=1}"},
     "mcload: class a: option --noload takes no value: --noload=1\n"},
    {{"--class=a:{}", "--class=a:{}"},
     "mcload: two classes have the same name: give each --class one of its own\n"},
    {{"--class=a:{pipeline=2 clients=0}"},
     "mcload: class a: not a number between 1 and 65536 (--clients \"0\")\n"},
    {{"--class=a:{requests=2}"},
     "mcload: class a: write --time=SECONDS, or --until=n:N to end after N answers "
     "(--requests)\n"},
    {{"--class=a:{test-time=2}"},
     "mcload: an option of the whole run in class a: test-time (--class "
     "\"a:{test-time=2}\")\n"},
    {{"--class=a:{}", "-C", "2"},
     "mcload: --class and --measure-... are mutually exclusive\n"},
    {{"-q", "100", "-Q", "100"}, "mcload: --measure-qps has to be below --qps\n"},
    {{"--hash=ketama", "-R"}, "mcload: --hash and --roundrobin are mutually exclusive\n"},
    {{"--class=a:{}", "--class=b:{-R}", "--hash=jump"},
     "mcload: --hash and --roundrobin are mutually exclusive\n"},
    {{"--class=a:{}", "--class=b:{}", "--scan=1:2:1"},
     "mcload: which class's rate is to be varied? The one without --qps, or the goal's "
     "class=NAME\n"},
    {{"--search=p99:1ms,class=none"},
     "mcload: there is no class of the name that the goal has: class=NAME is one of "
     "--class=NAME:...\n"},
    {{"--assert"}, "mcload: --assert needs an objective (--slo)\n"},
    {{"--slo=p99"},
     "mcload: an objective is pPERCENTILE:TIME, e.g. p99:500us (--slo "
     "\"p99\")\n"},
    {{"--slo=p101:1ms"}, NO_PERCENTILE "(--slo \"p101:1ms\")\n"},
    {{"--slo=p0:1ms"}, NO_PERCENTILE "(--slo \"p0:1ms\")\n"},
    {{"--slo=p99:1h"}, NO_TIME "(--slo \"p99:1h\")\n"},
    {{"--slo=p99:"}, NO_TIME "(--slo \"p99:\")\n"},
    {{"--class=a:{antagonist=x}"},
     "mcload: class a: the antagonists are flood, multiget, "
     "large and sets (--antagonist \"x\")\n"},
    {{"--class=a:{late=drop}"}, "mcload: --late needs a rate (--qps)\n"},
    {{"-u", "0.5", "--ops=get:1"}, ONE_MIX "(--ops \"get:1\")\n"},
    {{"--ops=get:1", "-u", "0.5"}, ONE_MIX "(--update \"0.5\")\n"},
    {{"--ops=get:1", "--ratio=1:1"}, ONE_MIX "(--ratio \"1:1\")\n"},
    {{"--class=a:{c=2}"},
     "mcload: a short option keeps its dash in class a: -c (--class \"a:{c=2}\")\n"},
    {{"--class=a:{u=0.5}"},
     "mcload: a short option keeps its dash in class a: -u (--class "
     "\"a:{u=0.5}\")\n"},
    {{"--on-agent-loss=abort"}, "mcload: --on-agent-loss needs --agent\n"},
    {{"--split=capacity"}, "mcload: --split needs --agent\n"},
    {{"--poll-max=3"}, "mcload: --poll-max needs --agent\n"},
    {{"--key-file=/k"}, "mcload: --key-file needs --agent, or --agent-mode\n"},
    {{"--tls-key=/k", "-s", "tls://127.0.0.1"}, "mcload: --tls-key needs --tls-cert\n"},
    {{"--protocol=http", "--verify=1"},
     "mcload: --verify compares what mcload has stored, and the protocol stores nothing: "
     "--verify=0\n"},
    {{"--format=csv", "--interval=1"},
     "mcload: --format=csv has no rows for --interval: --format=text, or --json=FILE "
     "beside\n"},
    {{"--format=csv", "--by-size"},
     "mcload: --format=csv has no rows for --by-size: --format=text, or --json=FILE "
     "beside\n"},
    {{"--loadonly", "--json=/j"}, ONLY_LOADED},
    {{"--loadonly", "--json=-"}, ONLY_LOADED},
    {{"--loadonly", "--output=/o"}, ONLY_LOADED},
    {{"--loadonly", "--save=/s"}, ONLY_LOADED},
    {{"--loadonly", "--hgrm=/h"}, ONLY_LOADED},
    {{"--loadonly", "--hlog=/h"}, ONLY_LOADED},
    {{"--loadonly", "--plot=/p"}, ONLY_LOADED},
    {{"--loadonly", "--format=mutilate"}, ONLY_LOADED},
    {{"--loadonly", "--interval=1"}, ONLY_LOADED},
    {{"--loadonly", "--by-size"}, ONLY_LOADED},
    {{"--loadonly", "--env-report"}, ONLY_LOADED},
};

/* These are good: each overrides the other, or acts. */
static const struct {
    const char *args[4];
    double updates; /* of the first class */
} mixes[] = {
    {{"--ops=get:1", "--class=a:{update=0.5}"}, 0.5},
    {{"-u", "0.5", "--class=a:{ops=set:1}"}, 1},
    {{"--workload=ycsb:a", "-u", "0.25"}, 0.25},
    {{"--class=a:{workload=ycsb:a update=0.25}"}, 0.25},
    {{"--class=a:{-u 0.5}"}, 0.5},
    {{"--format=csv", "--by-size", "--interval=1", "--json=/j"}, 0},
    {{"--loadonly", "--progress=always", "-v", "--percentiles=50"}, 0},
    {{"--tls-verify=no", "--transport=tls"}, 0},
    {{"--tls-verify=no", "-s", "127.0.0.1,tls://127.0.0.2"}, 0},
    {{"--agent-mode", "--tls-ca=/ca", "--key-file=/k"}, 0},
};

TEST_ROWS(test_mixes, mixes, row->args[0])
{
    ck_assert_msg(parse(row->args), "%s", said);
    double updates = mix_share_of_updates(&options.classes[0].workload.mix);
    ck_assert_double_eq_tol(updates, row->updates, 1e-9);
}

TEST_ROWS(test_mistakes, mistakes, row->says)
{
    ck_assert(!parse(row->args));
    ck_assert_str_eq(said, row->says);
}

static const struct {
    const char *text, *again;
    double percent;
    nsec_t limit;
} objectives[] = {
    {"p99:500us", "p99:500us", 99, 500 * NSEC_PER_USEC},
    {"p99.99:1.5ms", "p99.99:1.5ms", 99.99, 1500 * NSEC_PER_USEC},
    {"95:1000", "p95:1ms", 95, NSEC_PER_MSEC},
    {"p50:2s", "p50:2s", 50, 2 * NSEC_PER_SEC},
    {"p100:750ns", "p100:750ns", 100, 750},
};

TEST_ROWS(test_objectives, objectives, row->text)
{
    struct objective slo;
    char text[OBJECTIVE_TEXT_MAX];
    ck_assert_ptr_null(objective_parse(&slo, row->text));
    ck_assert_double_eq_tol(slo.percent, row->percent, 1e-9);
    ck_assert_uint_eq(slo.limit, row->limit);
    objective_describe(&slo, text);
    ck_assert_str_eq(text, row->again);
}

TEST(test_too_many)
{
    char texts[OPTIONS_CLASSES_MAX + 1][32];
    const char *args[OPTIONS_CLASSES_MAX + 2] = {0};
    for (unsigned i = 0; i <= OPTIONS_CLASSES_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "--class=c%u:{}", i);
        args[i] = texts[i];
    }
    ck_assert(!parse(args));
    ck_assert_str_eq(said, "mcload: too many classes (--class \"c32:{}\")\n");
}
