/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/settings.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/opt.h"
#include "place/cgroup.h"
#include "qos/limit_text.h"
#include "qos/sched.h"
#include "front/settings_class.h"

#define CHUNK_MAX_SPLIT (STORE_PAGE_BYTES / 2)
#define PROGRAM "memcached"
#define DEBUG_PROGRAM "memcached-debug" /* a name that allows the debug commands */
#define AUTOMOVE_LEVEL_MAX 2
#define AUTOMOVE_WINDOW_LEAST 3
#define HASH_POWER_LEAST 12
#define HASH_POWER_MOST 32

/* ---- options that take more than a number --------------------------------------------- */

/* A sentence with the value in it; valid until the next one. Start-up has one thread. */
__attribute__((format(printf, 1, 2))) static const char *
complaint(const char *fmt, ...)
{
    static char sentence[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    return sentence;
}

/* Whether these elements stand in the list, in a row; with a port counts as well, as in a
 * memcached. */
static bool
has_addresses(const char *list, const char *text)
{
    size_t len = strlen(text);
    for (const char *p = list; (p = strstr(p, text)) != NULL; p++) {
        if ((p == list || strchr(",;", p[-1]) != NULL) && strchr(":,;", p[len]) != NULL) {
            return true; /* the list's end is found as well */
        }
    }
    return false;
}

/* Several -l add up; one that says what has been said already does not. */
static const char *
add_addresses(void *conf, const char *text)
{
    struct settings *s = conf;
    char *joined;
    if (*text == '\0') {
        return "no address to listen on";
    }
    if (s->addresses != NULL && has_addresses(s->addresses, text)) {
        return NULL;
    }
    if (s->addresses == NULL) {
        joined = strdup(text);
    } else if (asprintf(&joined, "%s,%s", s->addresses, text) < 0) {
        joined = NULL;
    }
    if (joined == NULL) {
        return "out of memory";
    }
    free(s->addresses);
    s->addresses = joined;
    return NULL;
}

/* -v, -vv, --verbose, --verbose=N. */
static const char *
set_verbosity(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t level;
    if (text != NULL && num_u32(text, strlen(text), &level)) {
        s->verbosity = level;
    } else {
        s->verbosity++;
    }
    return NULL;
}

static const char *
set_udp_guard(void *conf, const char *text)
{
    struct settings *s = conf;
    s->udp_guard.is_on = strcmp(text, "on") == 0;
    return s->udp_guard.is_on || strcmp(text, "off") == 0 ? NULL
                                                          : "udp-guard must be on or off";
}

static const char *
add_udp_trusted(void *conf, const char *text)
{
    struct settings *s = conf;
    for (;;) {
        size_t len = strcspn(text, ",");
        if (!guard_trust(&s->udp_guard, text, len)) {
            return "udp-allow must be a list of at most 32 networks like "
                   "10.0.0.0/8,fd00::/8";
        }
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

static const char *
set_control(void *conf, const char *text)
{
    static const char *const names[] = {
        [LISTEN_CONTROL_LOCAL] = "local",
        [LISTEN_CONTROL_MARKED] = "marked",
        [LISTEN_CONTROL_ANY] = "any",
    };
    struct settings *s = conf;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            s->control = (enum listen_control)i;
            return NULL;
        }
    }
    return "--control must be local, marked or any";
}

static const char *
set_protocol(void *conf, const char *text)
{
    struct settings *s = conf;
    s->is_binding_given = true;
    if (strcmp(text, "auto") == 0) {
        s->binding = BINDING_AUTO;
    } else if (strcmp(text, "ascii") == 0) {
        s->binding = BINDING_ASCII;
    } else if (strcmp(text, "binary") == 0) {
        s->binding = BINDING_BINARY;
    } else {
        return complaint(
            "Invalid value for binding protocol: %s -- should be one of auto, "
            "binary, or ascii",
            text);
    }
    return NULL;
}

/* The CPUs are counted when --pin is known too. */
static const char *
set_threads(void *conf, const char *text)
{
    struct settings *s = conf;
    size_t len = strcspn(text, " ");
    bool is_word = text[len + strspn(text + len, " ")] == '\0';
    if (len == strlen("auto") && strncmp(text, "auto", len) == 0) {
        s->threads = SETTINGS_THREADS_AUTO;
        return NULL;
    }
    return is_word && num_i64(text, len, &s->threads) && s->threads >= 1 &&
                   s->threads <= SETTINGS_THREADS_MAX
               ? NULL
               : "Number of threads must be greater than 0 and at most 1024, or auto";
}

static const char *
set_hash_power(void *conf, const char *text)
{
    struct settings *s = conf;
    if (!num_i64(text, strlen(text), &s->hash_power)) {
        return "Missing numeric argument for hashpower";
    }
    if (s->hash_power < HASH_POWER_LEAST) {
        return complaint("Initial hashtable multiplier of %s is too low", text);
    }
    return s->hash_power > HASH_POWER_MOST
               ? complaint("Initial hashtable multiplier of %s is too high", text)
               : NULL;
}

/* The table's hash is keyed and the same in every case; clients can not tell. */
static const char *
set_hash_algorithm(void *conf, const char *text)
{
    static const char *const names[] = {"jenkins", "murmur3", "xxh3"};
    struct settings *s = conf;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            s->hash_algorithm = names[i];
            return NULL;
        }
    }
    return "Unknown hash_algorithm option (jenkins, murmur3, xxh3)";
}

static const char *
set_chunk_max(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t number;
    bool in_kilobytes = rules_of(s->profile)->chunk_max_is_in_kilobytes;
    if (!num_u32(text, strlen(text), &number) || number == 0) {
        return "slab_chunk_max must be > 0";
    }
    if (in_kilobytes && number > 1024) {
        return "slab_chunk_max must be specified in kilobytes, at most 1024";
    }
    s->chunk_max = in_kilobytes ? (int64_t)number * 1024 : number;
    return NULL;
}

/* Also begins to count. */
static const char *
set_prefix_delimiter(void *conf, const char *text)
{
    struct settings *s = conf;
    if (*text == '\0') {
        return "No delimiter specified";
    }
    s->prefix_delimiter = *text;
    s->counts_prefixes = true;
    return NULL;
}

/* "1-2-3", checked against the other sizes when all options are known. */
static const char *
set_slab_sizes(void *conf, const char *text)
{
    struct settings *s = conf;
    s->slab_size_count = 0;
    while (true) {
        size_t len = strcspn(text, "-");
        if (s->slab_size_count == SETTINGS_SLAB_SIZES_MAX) {
            return "too many slab classes specified";
        }
        if (!num_u32(text, len, &s->slab_sizes[s->slab_size_count])) {
            return complaint("slab size %.*s is out of valid range", (int)len, text);
        }
        s->slab_size_count++;
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

static const char *
set_automove(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t level = 1;
    if (text != NULL &&
        (!num_u32(text, strlen(text), &level) || level > AUTOMOVE_LEVEL_MAX)) {
        return "slab_automove must be between 0 and 2";
    }
    s->automove_level = level;
    return NULL;
}

static const char *
set_automove_window(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t most = rules_of(s->profile)->automove_window_max;
    uint32_t window;
    if (!num_u32(text, strlen(text), &window) || window < AUTOMOVE_WINDOW_LEAST ||
        window > most) {
        return most < UINT32_MAX ? "slab_automove_window must be > 2 and < 1800"
                                 : "slab_automove_window must be > 2";
    }
    s->automove_window = window;
    return NULL;
}

static const char *
set_temporary_ttl(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t seconds;
    if (!num_u32(text, strlen(text), &seconds)) {
        return "could not parse argument to temporary_ttl";
    }
    s->temp_ttl = seconds;
    s->has_temp = true;
    return NULL;
}

static const char *
set_compat(void *conf, const char *text)
{
    const struct settings *s = conf;
    enum profile profile;
    if (!rules_profile(text, &profile)) {
        return "--compat must be native, 1.6 or 1.4";
    }
    /* The defaults depend on it, so it was looked for before (find_profile). */
    return profile == s->profile ? NULL : "give --compat in full, and once";
}

static const char *
set_help(void *conf, const char *text)
{
    struct settings *s = conf;
    s->action = ACTION_HELP;
    s->help_topic = text;
    return NULL;
}

static const char *
set_pin(void *conf, const char *text)
{
    struct settings *s = conf;
    pin_spec_fini(&s->pin);
    s->is_pinned = true;
    return pin_spec_parse(&s->pin, text);
}

static const char *
set_steer(void *conf, const char *text)
{
    struct settings *s = conf;
    s->is_steered = true;
    return steer_mode_parse(text, &s->steer)
               ? NULL
               : "steering is one of rr, cpu, reuseport, napi, p2c";
}

static const char *
set_sched(void *conf, const char *text)
{
    return prio_parse(&((struct settings *)conf)->sched, text);
}

static const char *
set_busy_poll(void *conf, const char *text)
{
    return busypoll_parse(&((struct settings *)conf)->busy_poll, text);
}

static const char *
set_resctrl(void *conf, const char *text)
{
    ((struct settings *)conf)->resctrl.group = text;
    return resctrl_check_group(text);
}

static const char *
set_resctrl_schemata(void *conf, const char *text)
{
    ((struct settings *)conf)->resctrl.schemata = text;
    return resctrl_check_schemata(text);
}

static const char *
set_membind(void *conf, const char *text)
{
    return membind_parse(&((struct settings *)conf)->membind, text);
}

/* A sentence about what another module says of an option's value. */
static const char *
blame(const char *option, const char *error)
{
    return error != NULL ? complaint("%s: %s", option, error) : NULL;
}

static const char *
set_qps_limit(void *conf, const char *text)
{
    struct settings *s = conf;
    return blame("qps-limit", limit_text_rules(text, strlen(text), &s->limits));
}

static const char *
set_peer_limit(void *conf, const char *text)
{
    struct settings *s = conf;
    return blame("qps-limit-peer", limit_text_peer(text, strlen(text), &s->limits.peer));
}

static const char *
set_limit_action(void *conf, const char *text)
{
    struct settings *s = conf;
    return blame(
        "qps-limit-action",
        limit_text_action(text, strlen(text), &s->limits.action, &s->limits.max_delay));
}

static const char *
set_limit_unit(void *conf, const char *text)
{
    struct settings *s = conf;
    return blame("qps-limit-unit",
                 limit_text_unit(text, strlen(text), &s->limits.counts_keys));
}

static const char *
set_cpu_limit(void *conf, const char *text)
{
    struct settings *s = conf;
    return blame("cpu-limit", limit_text_percent(text, strlen(text), &s->cpu_percent));
}

static const char *
set_slo(void *conf, const char *text)
{
    struct settings *s = conf;
    return blame("slo", slo_parse(text, strlen(text), s->slo));
}

/* ---- options without an argument ------------------------------------------------------ */

/* What 1.6 has by default, or what 1.4 has. */
static void
set_generation(struct settings *s, bool is_modern)
{
    int64_t chunk_max = is_modern ? CHUNK_MAX_SPLIT : SETTINGS_CHUNK_MAX_14;
    s->chunk_max = s->chunk_max == 0 ? chunk_max : s->chunk_max;
    s->no_inline_suffix |= is_modern;
    s->rejects_fast = s->can_reassign = s->has_crawler = is_modern;
    s->has_maintainer = s->is_segmented = is_modern;
    s->automove_level = is_modern;
    s->hash_algorithm = is_modern ? "murmur3" : "jenkins";
}

#define PRESET(function, statement)                                                      \
    static const char *function(void *conf, const char *text)                            \
    {                                                                                    \
        struct settings *s = conf;                                                       \
        (void)s, (void)text;                                                             \
        statement;                                                                       \
        return NULL;                                                                     \
    }

PRESET(set_nothing, )
PRESET(set_no_automove, s->automove_level = 0)
/* The maintainer and the segments come and go together. */
PRESET(set_maintainer, s->has_maintainer = s->is_segmented = true)
PRESET(set_no_maintainer, s->has_maintainer = s->is_segmented = false)
PRESET(set_modern,
       rules_of(s->profile)->is_always_modern ? (void)0 : set_generation(s, true))
PRESET(set_no_modern, set_generation(s, false))
PRESET(set_short_help, s->action = rules_of(s->profile)->starts_its_own_way
                                       ? ACTION_SHORT_HELP
                                       : ACTION_HELP)
PRESET(set_version, s->action = ACTION_VERSION)
PRESET(set_license, s->action = ACTION_LICENSE)
PRESET(set_pin_dry_run, s->action = ACTION_PIN_DRY_RUN)

#undef PRESET

/* ---- the table ------------------------------------------------------------------------ */

enum help_section {
    HELP_NETWORK,
    HELP_MEMORY,
    HELP_LRU,
    HELP_THREADS,
    HELP_QOS,
    HELP_AUTH,
    HELP_COMMANDS,
    HELP_PROCESS,
    HELP_COMPAT,
};

static const struct opt_section sections[] = {
    [HELP_NETWORK] = {"network", "Network"},
    [HELP_MEMORY] = {"memory", "Memory"},
    [HELP_LRU] = {"lru", "LRU and expiry"},
    [HELP_THREADS] = {"threads", "Threads and placement"},
    [HELP_QOS] = {"qos", "Quality of service"},
    [HELP_AUTH] = {"tls", "TLS and authentication"},
    [HELP_COMMANDS] = {"commands", "Commands and statistics"},
    [HELP_PROCESS] = {"process", "Process and help"},
    [HELP_COMPAT] = {"compat", "Compatibility"},
};

#define IN(s) .section = HELP_##s
#define TOP(s) IN(s), .is_common = true
#define NEXT(s) IN(s), .may_follow = true

static const struct opt rows[] = {
#define SETTING(kind_, field, v14, v16, since, stat, show, letter_, long_, word_, min_,  \
                max_, status, error_, arg_, help_, ...)                                  \
    {.kind = kind_,                                                                      \
     .offset = offsetof(struct settings, field),                                         \
     .letter = letter_,                                                                  \
     .name = long_,                                                                      \
     .word = word_,                                                                      \
     .min = min_,                                                                        \
     .max = max_,                                                                        \
     .exit_status = status,                                                              \
     .error = error_,                                                                    \
     .arg = arg_,                                                                        \
     .help = help_,                                                                      \
     __VA_ARGS__},
#define PARSED(function, field, v14, v16, ...) CALL(function, __VA_ARGS__)
#define CALL(function, since, stat, show, letter_, long_, word_, min_, max_, status,     \
             error_, arg_, help_, ...)                                                   \
    {.kind = OPT_CALL,                                                                   \
     .call = function,                                                                   \
     .letter = letter_,                                                                  \
     .name = long_,                                                                      \
     .word = word_,                                                                      \
     .exit_status = status,                                                              \
     .error = error_,                                                                    \
     .arg = arg_,                                                                        \
     .help = help_,                                                                      \
     __VA_ARGS__},
#define NOOP(kind_, letter_, long_, word_, min_, max_, status, error_, arg_, help_, ...) \
    {.kind = kind_,                                                                      \
     .letter = letter_,                                                                  \
     .name = long_,                                                                      \
     .word = word_,                                                                      \
     .exit_status = status,                                                              \
     .error = error_,                                                                    \
     .arg = arg_,                                                                        \
     .help = help_,                                                                      \
     __VA_ARGS__},
#define STAT(since, stat, value)
#include "front/settings.def"
#undef SETTING
#undef PARSED
#undef CALL
#undef NOOP
#undef STAT
};

#undef IN
#undef TOP
#undef NEXT

/* Long names of 1.6, which takes abbreviations. */
static const char *const elders[] = {
    "unix-mask",
    "enable-shutdown",
    "enable-ssl",
    "port",
    "unix-socket",
    "udp-port",
    "memory-limit",
    "disable-evictions",
    "conn-limit",
    "lock-memory",
    "help",
    "license",
    "version",
    "enable-coredumps",
    "verbose",
    "daemon",
    "listen",
    "user",
    "pidfile",
    "slab-growth-factor",
    "slab-min-size",
    "threads",
    "enable-largepages",
    "max-reqs-per-event",
    "disable-cas",
    "listen-backlog",
    "protocol",
    "max-item-size",
    "enable-sasl",
    "disable-flush-all",
    "disable-dumping",
    "disable-watch",
    "auth-file",
    "memory-file",
    "extended",
    "napi-ids",
    NULL,
};

static struct opt_table
table_of(enum profile profile)
{
    return (struct opt_table){.rows = rows,
                              .count = sizeof rows / sizeof *rows,
                              .program = PROGRAM,
                              .tells_words_on_stdout = true,
                              .tells_as_getopt = !rules_of(profile)->starts_its_own_way,
                              .skips_operands = true,
                              .elders = elders,
                              .sections = sections,
                              .section_count = sizeof sections / sizeof *sections};
}

static void
set_defaults(struct settings *s, enum profile profile)
{
    *s = (struct settings){.profile = profile,
                           .binding = BINDING_AUTO,
                           .prefix_delimiter = ':',
                           .udp_guard = {.is_on = true},
                           .socket_marks = {.declared = CLASS_NONE},
                           .has_classes = true,
                           .class_max_wait = SCHED_MAX_WAIT_NS,
                           .password_file = getenv("MEMCACHED_SASL_PWDB")};
#define SETTING(kind, field, v14, v16, ...)                                              \
    s->field = profile == PROFILE_14 ? (v14) : (v16);
#define PARSED SETTING
#define CALL(...)
#define NOOP(...)
#define STAT(...)
#include "front/settings.def"
#undef SETTING
#undef PARSED
#undef CALL
#undef NOOP
#undef STAT
    class_shares_init(&s->class_shares);
}

/* ---- parsing -------------------------------------------------------------------------- */

/* -U alone moves both ports. UDP is off unless -U asks for it. */
static void
couple_ports(struct settings *s)
{
    bool has_port = s->port != SETTINGS_PORT_UNSET;
    bool has_udp_port = s->udp_port != SETTINGS_PORT_UNSET;
    if (!has_port) {
        bool follows = has_udp_port && (s->udp_port != LISTEN_PORT_OFF ||
                                        rules_of(s->profile)->udp_off_is_all_off);
        s->port = follows ? s->udp_port : SETTINGS_PORT_DEFAULT;
    }
    if (!has_udp_port) {
        s->udp_port = LISTEN_PORT_OFF;
    }
}

/* The defaults depend on the profile, so --compat is found before anything is parsed. */
static enum profile
find_profile(int argc, char **argv)
{
    enum profile profile = PROFILE_NATIVE;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = strncmp(argv[i], "--compat=", 9) == 0 ? argv[i] + 9
                            : strcmp(argv[i], "--compat") == 0 && i + 1 < argc
                                ? argv[i + 1]
                                : NULL;
        if (value != NULL && !rules_profile(value, &profile)) {
            break; /* set_compat says so */
        }
    }
    return profile;
}

/* Test harnesses start a binary of this name and expect it to know these commands. */
static bool
is_debug_program(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, DEBUG_PROGRAM) == 0;
}

/* As upstream there are 4, but pinned ones do not share CPUs that they need not share. */
static void
count_threads(struct settings *s)
{
    bool is_default = s->threads == SETTINGS_THREADS_UNSET;
    bool is_pinned = s->is_pinned && s->pin.policy != PIN_NONE;
    int64_t most = is_default ? SETTINGS_THREADS_DEFAULT : SETTINGS_THREADS_MAX;
    if (s->threads == SETTINGS_THREADS_AUTO || (is_default && is_pinned)) {
        unsigned workers = pin_workers(&s->pin, cgroup_quota_milli(""));
        s->threads = workers < most ? workers : most;
    } else if (is_default) {
        s->threads = most;
    }
}

bool
settings_parse(struct settings *s, int argc, char **argv, int *exit_status)
{
    set_defaults(s, find_profile(argc, argv));
    s->allows_debug = argc > 0 && is_debug_program(argv[0]);
    struct opt_table table = table_of(s->profile);
    if (opt_parse(&table, s, argc, argv, stderr, exit_status) != OPT_DONE) {
        return false;
    }
    couple_ports(s);
    count_threads(s);
    return s->action != ACTION_SERVE || settings_check(s, exit_status);
}

void
settings_fini(struct settings *s)
{
    free(s->socket_text);
    s->socket_text = NULL;
    free(s->addresses);
    s->addresses = NULL;
    pin_spec_fini(&s->pin);
}

static void
print_short_help(const struct opt_table *table)
{
    puts("Usage: memcached [options]");
    opt_help_common(table, stdout);
    puts("All options: --help or memcached(1); some: --help=TOPIC, --help=PART-OF-NAME");
    fputs("Topics: ", stdout);
    opt_help_topics(table, stdout);
    putchar('\n');
}

bool
settings_help(const struct settings *s)
{
    struct opt_table table = table_of(s->profile);
    if (s->help_topic != NULL) {
        return opt_help_topic(&table, s->help_topic, stdout, stderr);
    }
    if (s->action == ACTION_SHORT_HELP) {
        print_short_help(&table);
        return true;
    }
    putchar('\n');
    opt_help(&table, stdout);
    puts("\nEnvironment: MEMCACHED_PORT_FILENAME: file to write the ports to.\n"
         "One section or option: --help=TOPIC. Manual: memcached(1).");
    return true;
}

const char *
settings_version(const struct settings *s)
{
    return rules_of(s->profile)->version;
}
