/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A table with every kind of option: what each spelling sets, what each mistake says and
 * which status it ends with.
 */
#include "base/opt.h"

#include "check_main.h"

#define ARGS_MAX 12
#define EX_MADE_UP 64

struct conf {
    bool flag, on; /* `on` starts as true */
    bool lamp;
    uint32_t small, behind;
    unsigned count;
    int64_t port, mask, size, rate, free_number;
    double factor;
    enum { SMALL, UNNAMED, LARGE } choice;
    const char *path, *list;
    char called[64];
};

static const char *const choices[] = {[SMALL] = "small", [LARGE] = "large"};

static const char *
call(void *conf, const char *text)
{
    struct conf *c = conf;
    if (text != NULL && strcmp(text, "bad") == 0) {
        return "bad is not good";
    }
    snprintf(c->called, sizeof c->called, "[%s]", text != NULL ? text : "left out");
    return NULL;
}

#define FIELD(f) .offset = offsetof(struct conf, f)

static const struct opt rows[] = {
    {'A', "flag-one", "flag_word", OPT_FLAG, FIELD(flag), .help = "sets the flag"},
    {'M', "no-on", "no_on", OPT_OFF, FIELD(on), .help = "clears on"},
    {'v', "verbose", NULL, OPT_COUNT, FIELD(count), .help = "once more"},
    {'p', "port", NULL, OPT_INT, FIELD(port), -1, 65535, EX_MADE_UP, .arg = "N",
     .help = "port number"},
    {'a', "unix-mask", NULL, OPT_OCTAL, FIELD(mask), .arg = "MASK", .help = "mask"},
    {'m', "memory-limit", NULL, OPT_BYTES, FIELD(size), 1, 1099511627776.0, 0,
     "Memory must be sane", "SIZE", "memory"},
    {0, "rate", "rate", OPT_RATE, FIELD(rate), .arg = "N", .help = "a rate"},
    {'f', "slab-growth-factor", NULL, OPT_DOUBLE, FIELD(factor), 1.5, 9, .arg = "X",
     .help = "factor"},
    {0, "choice", "choice", OPT_CHOICE, FIELD(choice), OPT_CHOICES(choices),
     .arg = "small|large", .help = "one of a list"},
    {'P', "pidfile", "pid_file", OPT_TEXT, FIELD(path), .arg = "FILE", .help = "file"},
    {'l', NULL, NULL, OPT_TEXT, FIELD(list), .arg = "LIST", .help = "only a letter"},
    {'c', "call", "call", OPT_CALL, .call = call, .arg = "TEXT", .help = "calls"},
    {0, "maybe", "maybe", OPT_CALL, .call = call, .arg = "TEXT?",
     .help = "value may be left out"},
    {'q', "quick", NULL, OPT_CALL, .call = call, .help = "calls without value"},
    {'L', "large-pages", "large", OPT_IGNORE, .help = "ignored"},
    {'U', "udp-port", NULL, OPT_IGNORE, .arg = "N", .help = "ignored with value"},
    {'S', "sasl", "sasl", OPT_REFUSE, .exit_status = EX_MADE_UP},
    {0, NULL, "word-only", OPT_INT, FIELD(free_number), .arg = "N", .help = "word"},
    {0, "follow", NULL, OPT_CALL, .call = call, .arg = "TEXT?", .may_follow = true,
     .help = "value may follow"},
    {'o', "extended", NULL, OPT_WORDS, .arg = "WORD,...", .help = "words"},
    {0, "secret", NULL, OPT_FLAG, FIELD(flag)},
    {0, "lamp", NULL, OPT_SWITCH, FIELD(lamp), .arg = "on|off", .help = "lamp"},
    {0, "large", NULL, OPT_SET, FIELD(choice), .value = LARGE,
     .help = "as --choice=large"},
    {0, "megs", NULL, OPT_MEGS, FIELD(size), 1, 1e9, .arg = "N", .help = "megabytes"},
    {0, "small", NULL, OPT_INT, OPT_FIELD(struct conf, small), .max = UINT32_MAX,
     .arg = "N", .help = "a field of its size"},
};

/* These may be abbreviated. */
static const char *const elders[] = {"port",        "maybe",        "verbose", "quick",
                                     "large-pages", "memory-limit", NULL};

static const struct opt_table table = {.rows = rows,
                                       .count = sizeof rows / sizeof rows[0],
                                       .program = "prog",
                                       .elders = elders};

static struct conf conf;
static char *message;
static size_t message_len;
static char *args[ARGS_MAX + 1];
static int arg_count;
static int exit_status;
static enum opt_result result;

static void
set_up(void)
{
    conf = (struct conf){.on = true, .port = 11211};
}

static void
forget(void)
{
    for (int i = 0; i < arg_count; i++) {
        free(args[i]);
    }
    free(message);
    message = NULL;
    arg_count = 0;
}

/* Parses "a|b|c" as three arguments, each in a block of its own. */
static void
parse(const char *line)
{
    forget();
    char *copy = strdup(line), *rest = copy, *word;
    args[arg_count++] = strdup("prog");
    while (*line != '\0' && (word = strsep(&rest, "|")) != NULL) {
        ck_assert_int_lt(arg_count, ARGS_MAX);
        args[arg_count++] = strdup(word);
    }
    args[arg_count] = NULL;
    free(copy);
    FILE *err = open_memstream(&message, &message_len);
    exit_status = 99;
    result = opt_parse(&table, &conf, arg_count, args, err, &exit_status);
    fclose(err);
}

static void
parse_good(const char *line)
{
    parse(line);
    ck_assert_msg(result == OPT_DONE, "%s: %s", line, message);
    ck_assert_str_eq(message, "");
    ck_assert_int_eq(exit_status, 99);
}

FIXTURE(set_up, forget);

TEST(test_nothing)
{
    parse_good("");
    ck_assert(conf.on && !conf.flag);
    ck_assert_int_eq(conf.port, 11211);
}

TEST(test_choice)
{
    parse_good("");
    ck_assert_int_eq(conf.choice, SMALL);
    parse_good("--choice=large");
    ck_assert_int_eq(conf.choice, LARGE);
    parse_good("-o|choice=small");
    ck_assert_int_eq(conf.choice, SMALL);
}

static const char *const flag_lines[] = {"-A|-M", "-AM", "--flag-one|--no-on",
                                         "-o|flag_word,no_on"};

TEST_ROWS(test_flags, flag_lines, *row)
{
    parse_good(*row);
    ck_assert(conf.flag && !conf.on);
}

TEST(test_count)
{
    parse_good("-v");
    ck_assert_uint_eq(conf.count, 1);
    parse_good("-vv|--verbose|-v");
    ck_assert_uint_eq(conf.count, 5);
}

static const char *const values[] = {"-p42",         "-p|42",   "--port=42", "--port|42",
                                     "-Ap42",        "-p|  42", "-p|42  ",   "-p 42",
                                     "--port= 42",   "--po=42", "-p|7|-p42", "-M|-p|042",
                                     "--port|1|-p42"};

TEST_ROWS(test_where_the_value_stands, values, *row)
{
    parse_good(*row);
    ck_assert_int_eq(conf.port, 42);
}

static const struct {
    const char *line;
    size_t offset; /* of the field */
    int64_t value;
} number_rows[] = {
    {"-p|-1", offsetof(struct conf, port), -1},
    {"-p-1", offsetof(struct conf, port), -1},
    {"-p|0", offsetof(struct conf, port), 0},
    {"-p|65535", offsetof(struct conf, port), 65535},
    {"-a|0700", offsetof(struct conf, mask), 0700},
    {"-a|777", offsetof(struct conf, mask), 0777},
    {"-a|0", offsetof(struct conf, mask), 0},
    {"-m|1", offsetof(struct conf, size), 1},
    {"-m|1k", offsetof(struct conf, size), 1024},
    {"-m|3M", offsetof(struct conf, size), 3 << 20},
    {"-m|1024g", offsetof(struct conf, size), INT64_C(1099511627776)},
    {"--megs|64", offsetof(struct conf, size), 64},
    {"--megs=64m", offsetof(struct conf, size), 64},
    {"--megs=64M", offsetof(struct conf, size), 64},
    {"--megs=64mb", offsetof(struct conf, size), 64},
    {"--megs=64MB ", offsetof(struct conf, size), 64},
    {"--megs= 2g", offsetof(struct conf, size), 2048},
    {"--megs=2GB", offsetof(struct conf, size), 2048},
    {"--megs=1000000000mB", offsetof(struct conf, size), 1000000000},
    {"--rate|3k", offsetof(struct conf, rate), 3000},
    {"--rate|2M", offsetof(struct conf, rate), 2000000},
    {"--rate=0", offsetof(struct conf, rate), 0},
    {"--rate|9223372036854775807", offsetof(struct conf, rate), INT64_MAX},
    {"-o|rate=7", offsetof(struct conf, rate), 7},
    {"-o|word-only=-9223372036854775808", offsetof(struct conf, free_number), INT64_MIN},
};

TEST_ROWS(test_numbers, number_rows, row->line)
{
    parse_good(row->line);
    ck_assert_int_eq(*(int64_t *)(void *)((char *)&conf + row->offset), row->value);
}

TEST(test_fractions)
{
    parse_good("-f|1.5");
    ck_assert_double_eq(conf.factor, 1.5);
    parse_good("-f9");
    ck_assert_double_eq(conf.factor, 9);
}

/* What `print` writes; good until the next call. */
static const char *
help_of(const struct opt_table *t, void (*print)(const struct opt_table *t, FILE *out))
{
    static char *text;
    size_t len = 0;
    free(text);
    FILE *out = open_memstream(&text, &len);
    print(t, out);
    fclose(out);
    return text;
}

TEST(test_fields_of_other_kinds)
{
    conf.behind = 7;
    parse_good("--small=4294967295|--lamp=on");
    ck_assert_uint_eq(conf.small, UINT32_MAX);
    ck_assert_uint_eq(conf.behind, 7);
    ck_assert(conf.lamp);
    parse_good("--large");
    ck_assert_int_eq(conf.choice, LARGE);
    parse_good("--lamp=off");
    ck_assert(!conf.lamp);
}

/* A default is what its text sets when it is written, and what the help shows. */
TEST(test_presets)
{
    static const struct opt own[] = {
        {'m', "memory", NULL, OPT_BYTES, FIELD(size), .arg = "SIZE", .help = "memory",
         .preset = "1m"},
        {0, "mask", NULL, OPT_OCTAL, FIELD(mask), .arg = "MASK", .help = "mask",
         .preset = "0700", .old_preset = "0"},
        {0, "lamp", NULL, OPT_SWITCH, FIELD(lamp), .arg = "on|off", .help = "lamp",
         .preset = "on"},
        {0, "call", NULL, OPT_CALL, .call = call, .arg = "TEXT", .help = "calls",
         .preset = "x", .preset_help = "as it comes"},
        {0, "rate", NULL, OPT_RATE, FIELD(rate), .arg = "N", .help = "rate"},
    };
    static const char help[] =
        "  -m, --memory=SIZE                  memory (1m)\n"
        "  --mask=MASK                        mask (0700; in 1.4 0)\n"
        "  --lamp=on|off                      lamp (on)\n"
        "  --call=TEXT                        calls (as it comes)\n"
        "  --rate=N                           rate\n";
    struct opt_table t = {
        .rows = own, .count = 5, .program = "prog", .old_version = "1.4"};
    opt_preset(&t, &conf, false);
    ck_assert_int_eq(conf.size, 1 << 20);
    ck_assert_int_eq(conf.mask, 0700);
    ck_assert(conf.lamp);
    ck_assert_str_eq(conf.called, "[x]");
    opt_preset(&t, &conf, true);
    ck_assert_int_eq(conf.mask, 0);
    ck_assert_int_eq(conf.size, 1 << 20);
    ck_assert_str_eq(help_of(&t, opt_help), help);
}

TEST(test_texts)
{
    parse_good("-P|/run/a b.pid|-l|x,y");
    ck_assert_str_eq(conf.path, "/run/a b.pid");
    ck_assert_ptr_eq(conf.path, args[2]);
    ck_assert_str_eq(conf.list, "x,y");
    parse_good("--pidfile=a_b=c|-l|  z");
    ck_assert_str_eq(conf.path, "a_b=c"); /* underscores of values stay */
    ck_assert_str_eq(conf.list, "z");
    parse_good("-o|pid_file=/a=b,flag_word");
    ck_assert_str_eq(conf.path, "/a=b");
    ck_assert(conf.flag);
    parse_good("-P|--a_b|-l|-c_d|--call|--e_f");
    ck_assert_str_eq(conf.path, "--a_b");
    ck_assert_str_eq(conf.list, "-c_d");
    ck_assert_str_eq(conf.called, "[--e_f]");
    parse_good("--pidfile=|-l|");
    ck_assert_str_eq(conf.path, "");
    ck_assert_str_eq(conf.list, "");
}

static const struct {
    const char *line, *called;
    bool flag, is_off; /* of options behind it */
} calls[] = {
    {"-c|text", "[text]", false, false},      {"--call= other", "[other]", false, false},
    {"-q", "[left out]", false, false},       {"--maybe=x", "[x]", false, false},
    {"--maybe", "[left out]", false, false},  {"-o|maybe=y", "[y]", false, false},
    {"-o|maybe", "[left out]", false, false}, {"-o|maybe=", "[]", false, false},
    {"--follow|x|-A", "[x]", true, false},    {"--follow|-M", "[left out]", false, true},
    {"--follow=-M", "[-M]", false, false},    {"-A|--follow", "[left out]", true, false},
};

TEST_ROWS(test_calls, calls, row->line)
{
    parse_good(row->line);
    ck_assert_str_eq(conf.called, row->called);
    ck_assert(conf.flag == row->flag && conf.on == !row->is_off);
}

TEST(test_dashes_and_underscores)
{
    parse_good("--flag_one|--unix_mask=17|--memory_limit|5|--slab_growth-factor=2");
    ck_assert(conf.flag);
    ck_assert_int_eq(conf.mask, 017);
    ck_assert_int_eq(conf.size, 5);
    ck_assert_double_eq(conf.factor, 2);
}

TEST(test_lists_of_words)
{
    parse_good("-o|flag_word,rate=3,word-only=4");
    ck_assert(conf.flag);
    ck_assert_int_eq(conf.rate, 3);
    ck_assert_int_eq(conf.free_number, 4);
    parse_good("-o rate=5|--extended=rate=6,word-only=7|-oflag_word");
    ck_assert_int_eq(conf.rate, 6);
    ck_assert_int_eq(conf.free_number, 7);
    parse_good("-o|,,rate=8,,");
    ck_assert_int_eq(conf.rate, 8);
    parse_good("--extended|rate= 9");
    ck_assert_int_eq(conf.rate, 9);
    parse_good("-o|");
}

TEST(test_evaluated_left_to_right)
{
    parse_good("-p1|-o|rate=1|--rate=2|-p|3|-o|rate=4");
    ck_assert_int_eq(conf.port, 3);
    ck_assert_int_eq(conf.rate, 4);
}

TEST(test_ignored)
{
    static const char *const lines[] = {"-L", "--large-pages", "-o|large"};
    for (unsigned i = 0; i < 3; i++) {
        parse(lines[i]);
        ck_assert_int_eq(result, OPT_DONE);
        expect_part(message, "prog: --large-pages is accepted");
        expect_part(message, "no effect");
    }
    parse("-U|11211|-p|5");
    ck_assert_int_eq(result, OPT_DONE);
    ck_assert_int_eq(conf.port, 5);
    expect_part(message, "--udp-port");
}

static const struct {
    const char *line;
    int exit_status;
    const char *says[3]; /* parts of the message */
} mistakes[] = {
    {"-p|65536", EX_MADE_UP, {"between -1 and 65535", "--port", "\"65536\""}},
    {"-p|-2", EX_MADE_UP, {"between -1 and 65535", "--port", "\"-2\""}},
    {"-p|x", EX_MADE_UP, {"not a number", "--port", "\"x\""}},
    {"-p|", EX_MADE_UP, {"not a number", "--port", "\"\""}},
    {"-p|1k", EX_MADE_UP, {"not a number"}},
    {"-p|+1", EX_MADE_UP, {"not a number"}},
    {"-p|0x10", EX_MADE_UP, {"not a number"}},
    {"-p|99999999999999999999", EX_MADE_UP, {"not a number"}},
    {"-a|8", 1, {"--unix-mask", "\"8\""}},
    {"-a|", 1, {"--unix-mask"}},
    {"-a|-7", 1, {"--unix-mask"}},
    {"-a|77777777777777777777777777", 1, {"--unix-mask"}},
    {"-m|0", 1, {"Memory must be sane", "--memory-limit", "\"0\""}},
    {"-m|1025g", 1, {"Memory must be sane"}},
    {"-m|99999999999g", 1, {"Memory must be sane"}},
    {"-m|k", 1, {"Memory must be sane"}},
    {"-m|64mb", 1, {"Memory must be sane"}},
    {"--rate|9223372036854775808", 1, {"not a number", "--rate"}},
    {"--rate|-1", 1, {"not a number", "--rate"}},
    {"-o|rate=z", 1, {"not a number", "--rate", "\"z\""}},
    {"-o|rate", 1, {"Missing rate argument"}},
    {"-o|word-only=z", 1, {"not a number", "-o word-only", "\"z\""}},
    {"--choice=larg", 1, {"prog: must be small or large", "--choice", "\"larg\""}},
    {"--choice=", 1, {"--choice"}},
    {"-f|1.4", 1, {"--slab-growth-factor", "\"1.4\""}},
    {"-f|1,5", 1, {"--slab-growth-factor", "\"1,5\""}},
    {"-f|nan", 1, {"--slab-growth-factor"}},
    {"-c|bad", 1, {"bad is not good", "--call", "\"bad\""}},
    {"-o|call=bad", 1, {"bad is not good"}},
    {"-o|call", 1, {"Missing call argument"}},
    {"-S", EX_MADE_UP, {"not supported", "--sasl"}},
    {"--sasl", EX_MADE_UP, {"not supported", "--sasl"}},
    {"-o|flag_word,sasl", EX_MADE_UP, {"not supported"}},
    {"-x", 1, {"prog: unknown option -x. See --help\n"}},
    {"-Ax", 1, {"prog: unknown option -x. See --help\n"}},
    {"--unheard-of", 1, {"prog: unknown option --unheard-of. See --help\n"}},
    {"--unheard=3", 1, {"prog: unknown option --unheard. See --help\n"}},
    {"--=3", 1, {"prog: unknown option --. See --help\n"}},
    /* what was meant: letters that are missing, too many, wrong or swapped */
    {"--rat=1", 1, {"unknown option --rat; did you mean --rate? See --help\n"}},
    {"--ratee=1", 1, {"unknown option --ratee; did you mean --rate? See"}},
    {"--rete=1", 1, {"unknown option --rete; did you mean --rate? See"}},
    {"--prot=1", 1, {"unknown option --prot; did you mean --port? See"}},
    {"--choic_=1", 1, {"unknown option --choic_; did you mean --choice? See"}},
    {"--slab-growth=2", 1, {"--slab-growth; did you mean --slab-growth-factor? See"}},
    {"--word_only=2", 1, {"--word_only; did you mean -o word-only? See"}},
    {"--secre", 1, {"unknown option --secre. See --help\n"}}, /* not in the help */
    {"--fl", 1, {"unknown option --fl. See --help\n"}},
    /* an abbreviation means one of the elders, or nothing */
    {"--flag-o", 1, {"unknown option --flag-o; did you mean --flag-one? See"}},
    {"--m=1", 1, {"option --m is ambiguous: --maybe or --memory-limit. See --help\n"}},
    {"--flag-one=1", 1, {"prog: option --flag-one takes no value: --flag-one=1\n"}},
    {"-p", 1, {"prog: option -p needs a value: N\n"}},
    {"-A|--port", 1, {"prog: option --port needs a value: N\n"}},
    {"--po", 1, {"prog: option --port needs a value: N\n"}},
    {"--choice", 1, {"prog: option --choice needs a value: small or large\n"}},
    {"-o", 1, {"needs a value", "-o"}},
    {"--extended", 1, {"needs a value", "--extended"}},
    {"-o|unheard_of", 1, {"Illegal suboption \"unheard_of\""}},
    {"-o|unheard_of=1", 1, {"Illegal suboption \"unheard_of=1\""}},
    {"-o|rat=1", 1, {"Illegal suboption \"rat=1\"; did you mean --rate? See --help\n"}},
    {"-o|rates", 1, {"Illegal suboption \"rates\"; did you mean --rate? See --help\n"}},
    {"-o|word_ony=1", 1, {"\"word_ony=1\"; did you mean -o word-only? See --help\n"}},
    {"-o|port=1", 1, {"Illegal suboption \"port=1\"; did you mean --port? See --help\n"}},
    {"-o|secre", 1, {"Illegal suboption \"secre\"\n"}}, /* not in the help */
    {"--megs=", 1, {"not a number between 1 and 1000000000", "--megs \"\""}},
    {"--megs=b", 1, {"--megs \"b\""}},
    {"--megs=m", 1, {"--megs \"m\""}},
    {"--megs=gb", 1, {"--megs \"gb\""}},
    {"--megs=64b", 1, {"--megs \"64b\""}},
    {"--megs=64k", 1, {"--megs \"64k\""}},
    {"--megs=64mm", 1, {"--megs \"64mm\""}},
    {"--megs=64bb", 1, {"--megs \"64bb\""}},
    {"--megs=64 m", 1, {"--megs \"64 m\""}},
    {"--megs=6.4g", 1, {"--megs \"6.4g\""}},
    {"--megs=0g", 1, {"--megs \"0g\""}},
    {"--megs=-1g", 1, {"--megs \"-1g\""}},
    {"--megs=1000000g", 1, {"--megs \"1000000g\""}},
    {"--megs=9223372036854775807g", 1, {"--megs"}},
    {"--lamp=onn", 1, {"must be on or off", "--lamp", "\"onn\""}},
    {"--small=4294967296", 1, {"between 0 and 4294967295", "--small"}},
    {"-A|operand", 1, {"not an option", "operand"}},
    {"operand|-A", 1, {"not an option", "operand"}},
    {"--maybe|x",
     1,
     {"prog: not an option: x; a value of --maybe is written --maybe=x\n"}},
    {"--maybe|-A|x", 1, {"prog: not an option: x\n"}},
    {"--|-A", 1, {"not an option", "-A"}},
    {"-", 1, {"not an option", "-"}},
};

TEST_ROWS(test_mistakes, mistakes, row->line)
{
    parse(row->line);
    ck_assert_msg(result == OPT_BAD, "%s", row->line);
    ck_assert_msg(exit_status == row->exit_status, "%s: %d", row->line, exit_status);
    for (unsigned i = 0; i < 3 && row->says[i] != NULL; i++) {
        ck_assert_msg(strstr(message, row->says[i]) != NULL, "%s: %s", row->line,
                      message);
    }
    ck_assert_ptr_eq(strchr(message, '\n'), message + message_len - 1); /* one line */
}

/* The first mistake ends it: what stands behind has no effect. */
TEST(test_stops_at_the_first_mistake)
{
    parse("-p|1|-x|-A");
    ck_assert_int_eq(result, OPT_BAD);
    ck_assert_int_eq(conf.port, 1);
    ck_assert(!conf.flag);
    parse("-o|rate=1,unknown,flag_word");
    ck_assert_int_eq(conf.rate, 1);
    ck_assert(!conf.flag);
}

TEST(test_refused_value_leaves_the_field)
{
    conf.size = 77;
    parse("-p|70000");
    ck_assert_int_eq(conf.port, 11211);
    parse("-m|0");
    ck_assert_int_eq(conf.size, 77);
}

/* Where rows have no words, o is a letter like others. */
TEST(test_no_words)
{
    static const struct opt own[] = {
        {'o', "out", NULL, OPT_TEXT, FIELD(path), .arg = "F"}};
    struct opt_table plain = {.rows = own, .count = 1, .program = "prog"};
    char *argv[] = {(char[]){"prog"}, (char[]){"-o"}, (char[]){"a,b"}, NULL};
    int status = 99;
    ck_assert_int_eq(opt_parse(&plain, &conf, 3, argv, stderr, &status), OPT_DONE);
    ck_assert_str_eq(conf.path, "a,b");
}

/* What abbreviates one of the elders means it, whatever else begins so. */
static const struct {
    const char *line;
    int64_t port, size;
    unsigned count;
    const char *called;
} elder_rows[] = {{"--p=42", 42, 0, 0, ""},          {"--po|42", 42, 0, 0, ""},
                  {"--port=42", 42, 0, 0, ""},       {"--mem=6", 11211, 6, 0, ""},
                  {"--memory_l=5", 11211, 5, 0, ""}, {"--v", 11211, 0, 1, ""},
                  {"--may=x", 11211, 0, 0, "[x]"},   {"--q", 11211, 0, 0, "[left out]"}};

static const char *const no_elders[] = {"--pi=/x",  "--m=1",  "--por=x", "--unheard",
                                        "--flag-o", "--ra=3", "--q=3"};

TEST_ROWS(test_elders, elder_rows, row->line)
{
    parse_good(row->line);
    ck_assert(conf.port == row->port && conf.size == row->size);
    ck_assert_uint_eq(conf.count, row->count);
    ck_assert_str_eq(conf.called, row->called);
}

TEST_ROWS(test_no_elders, no_elders, *row)
{
    parse(*row);
    ck_assert_int_eq(result, OPT_BAD);
}

/* An unknown letter is told as a memcached tells it, where that is asked for. */
TEST(test_tells_as_getopt)
{
    struct opt_table exact = table;
    exact.tells_as_getopt = true;
    char *argv[] = {(char[]){"prog"}, (char[]){"-AQ"}, NULL};
    FREED char *text = NULL;
    size_t len = 0;
    FILE *err = open_memstream(&text, &len);
    int status = 99;
    ck_assert_int_eq(opt_parse(&exact, &conf, 2, argv, err, &status), OPT_BAD);
    fclose(err);
    ck_assert_str_eq(text, "prog: invalid option -- 'Q'\nIllegal argument \"?\"\n");
    ck_assert_int_eq(status, 1);
}

TEST(test_help)
{
    const char *text = help_of(&table, opt_help);
    static const char *const parts[] = {
        "  -l LIST ",    "  -o word-only=N ",       "--maybe, -o maybe[=TEXT] ",
        " ignored\n",    "--rate, -o rate=N ",      "  -A, --flag-one, -o flag_word ",
        "-p, --port=N ", " value may be left out\n"};
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(text, parts[i]) != NULL, "%s\n%s", parts[i], text);
    }
    ck_assert_ptr_null(strstr(text, "sasl")); /* no help, no line */
    unsigned lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }
    ck_assert_uint_eq(lines, table.count - 2);
    ck_assert(strstr(text, "--flag-one") < strstr(text, "--udp-port"));
}

/* Words that are longer than their column have a line of their own. */
TEST(test_help_of_long_words)
{
    static const struct opt own[] = {
        {0, "ten-letters", NULL, OPT_TEXT, .arg = "VALUE|VALUE|VALUE?", .help = "fits"},
        {0, "ten-letters", NULL, OPT_TEXT, .arg = "VALUE|VALUE|VALUE|", .help = "fits"},
        {0, "ten-letters", NULL, OPT_TEXT, .arg = "VALUE|VALUE|VALUE||VA", .help = "on"},
    };
    static const char lines[] = "  --ten-letters[=VALUE|VALUE|VALUE]  fits\n"
                                "  --ten-letters=VALUE|VALUE|VALUE|   fits\n"
                                "  --ten-letters=VALUE|VALUE|VALUE||VA\n"
                                "                                     on\n";
    struct opt_table plain = {.rows = own, .count = 3, .program = "prog"};
    const char *text = help_of(&plain, opt_help);
    ck_assert_str_eq(text, lines);
}

static const struct opt sorted[] = {
    {'b', "beta", NULL, OPT_FLAG, .help = "second section", .section = 1},
    {'a', "alpha", "first_word", OPT_FLAG, .common = 2,
     .help = "a sentence that is too long for one line of a terminal and then some"},
    {0, "beta-max", NULL, OPT_FLAG, .help = "too", .section = 1, .common = 4},
    {0, "beta-old", NULL, OPT_FLAG, .section = 1, .common = 3},
};
static const struct opt_section two[] = {{"one", "Section one"}, {"two", "Section two"}};
static const struct opt_table parted = {
    .rows = sorted, .count = 4, .program = "prog", .sections = two, .section_count = 2};

#define ALPHA                                                                            \
    "  -a, --alpha, -o first_word         a sentence that is too long for one line of\n" \
    "                                     a terminal and then some\n"
#define BETA "  -b, --beta                         second section\n"
#define BETA_MAX "  --beta-max                         too\n"

TEST(test_help_has_sections)
{
    const char *text = help_of(&parted, opt_help);
    ck_assert_str_eq(text, "Section one:\n" ALPHA "\nSection two:\n" BETA BETA_MAX);
    text = help_of(&parted, opt_help_common);
    ck_assert_str_eq(text, ALPHA BETA_MAX);
    text = help_of(&parted, opt_help_topics);
    ck_assert_str_eq(text, "one, two");
}

static const struct {
    const char *topic, *out; /* NULL: nothing found */
} topics[] = {
    {"one", "Section one:\n" ALPHA},
    {"two", "Section two:\n" BETA BETA_MAX},
    {"beta", BETA BETA_MAX},
    {"--beta", BETA BETA_MAX},
    {"beta_m", BETA_MAX},
    {"st-word", ALPHA},
    {"-b", BETA},
    {"-a", ALPHA},
    {"old", NULL}, /* not in the help */
    {"tw", NULL},
    {"", NULL},
    {"-", NULL},
};

TEST_ROWS(test_help_topic, topics, row->topic)
{
    FREED char *text = NULL, *error = NULL;
    size_t len, error_len;
    FILE *out = open_memstream(&text, &len), *err = open_memstream(&error, &error_len);
    bool is_found = opt_help_topic(&parted, row->topic, out, err);
    fclose(out);
    fclose(err);
    ck_assert_int_eq(is_found, row->out != NULL);
    ck_assert_str_eq(text, is_found ? row->out : "");
    ck_assert_int_eq(*error != '\0', !is_found);
    if (!is_found) {
        expect_part(error, "topics: one, two; or a part of an option");
    }
}
