/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "settings.h"

#include <limits.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/opt.h"
#include "base/rng.h"
#include "qos/limit.h"

#define EX_USAGE_STATUS 64
#define MEGABYTE (INT64_C(1) << 20)
#define HASH_POWER_DEFAULT 16
#define CHUNK_MAX_14 1048576
#define CHUNK_MAX_SPLIT                                                                  \
    524288 /* in 1.6, and in 1.4 when items may be larger than a page */
#define PROGRAM "memcached"
#define ITEM_MAX_LEAST 1024
#define ITEM_MAX_MOST (INT64_C(1) << 30)

/* ---- options that take more than a number --------------------------------------------- */

/* Several -l add up; one that says what has been said already does not. */
static const char *
add_addresses(void *conf, const char *text)
{
    struct settings *s = conf;
    char *joined;
    if (*text == '\0') {
        return "no address to listen on";
    }
    if (s->addresses != NULL && strstr(s->addresses, text) != NULL) {
        return NULL;
    }
    if (s->addresses == NULL) {
        joined = strdup(text);
    } else if (asprintf(&joined, "%s,%s", s->addresses, text) < 0) {
        joined = NULL;
    }
    must(joined != NULL);
    free(s->addresses);
    s->addresses = joined;
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
set_protocol(void *conf, const char *text)
{
    struct settings *s = conf;
    if (strcmp(text, "auto") == 0) {
        s->protocol = "auto-negotiate";
        s->binding = BINDING_AUTO;
    } else if (strcmp(text, "ascii") == 0) {
        s->protocol = "ascii";
        s->binding = BINDING_ASCII;
    } else if (strcmp(text, "binary") == 0) {
        s->protocol = "binary";
        s->binding = BINDING_BINARY;
    } else {
        return "Invalid value for binding protocol; should be one of auto, binary, or "
               "ascii";
    }
    return NULL;
}

static const char *
set_chunk_max(void *conf, const char *text)
{
    struct settings *s = conf;
    uint32_t number;
    bool is_16 = s->profile == PROFILE_16;
    if (!num_u32(text, strlen(text), &number) || number == 0) {
        return "slab_chunk_max must be > 0";
    }
    if (is_16 && number > 1024) {
        return "slab_chunk_max must be specified in kilobytes, at most 1024";
    }
    s->chunk_max = is_16 ? (int64_t)number * 1024 : number;
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

/* Of what "modern" stands for, the part that this version has. */
static const char *
set_modern(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    s->chunk_max = s->chunk_max == 0 ? CHUNK_MAX_SPLIT : s->chunk_max;
    s->rejects_fast = true;
    s->no_inline_suffix = true;
    return NULL;
}

static const char *
set_no_modern(void *conf, const char *text)
{
    struct settings *s = conf;
    (void)text;
    s->chunk_max = s->chunk_max == 0 ? CHUNK_MAX_14 : s->chunk_max;
    s->rejects_fast = false;
    return NULL;
}

static const char *
set_compat(void *conf, const char *text)
{
    const struct settings *s = conf;
    bool is_16 = strcmp(text, "1.6") == 0;
    if (!is_16 && strcmp(text, "1.4") != 0) {
        return "compatibility must be 1.4 or 1.6";
    }
    /* The defaults depend on it, so it was looked for before (find_profile). */
    return is_16 == (s->profile == PROFILE_16) ? NULL : "give --compat in full, and once";
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
set_pin_dry_run(void *conf, const char *text)
{
    (void)text;
    ((struct settings *)conf)->action = ACTION_PIN_DRY_RUN;
    return NULL;
}

static const char *
set_qps_limit(void *conf, const char *text)
{
    struct settings *s = conf;
    const char *comma = strchrnul(text, ',');
    s->qps_burst = 0;
    if (!num_scaled(text, (size_t)(comma - text), 1000, &s->qps_limit) ||
        s->qps_limit == 0 || s->qps_limit > LIMIT_RATE_MAX) {
        return "qps-limit must be N[k|m][,burst=B] with N from 1 to 1000m";
    }
    if (*comma == '\0') {
        return NULL;
    }
    const char *burst = comma + 1;
    if (strncmp(burst, "burst=", 6) != 0 ||
        !num_scaled(burst + 6, strlen(burst + 6), 1000, &s->qps_burst) ||
        s->qps_burst == 0 || s->qps_burst > LIMIT_BURST_MAX) {
        return "qps-limit: burst must be burst=B with B from 1 to 1m";
    }
    return NULL;
}

static const char *
set_help(void *conf, const char *text)
{
    (void)text;
    ((struct settings *)conf)->action = ACTION_HELP;
    return NULL;
}

static const char *
set_version(void *conf, const char *text)
{
    (void)text;
    ((struct settings *)conf)->action = ACTION_VERSION;
    return NULL;
}

static const char *
set_license(void *conf, const char *text)
{
    (void)text;
    ((struct settings *)conf)->action = ACTION_LICENSE;
    return NULL;
}

/* ---- the table ------------------------------------------------------------------------ */

static const struct opt rows[] = {
#define SETTING(kind_, field, v14, v16, since, stat, show, letter_, long_, word_, min_,  \
                max_, status, error_, arg_, help_)                                       \
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
     .help = help_},
#define CALL(function, since, stat, show, letter_, long_, word_, min_, max_, status,     \
             error_, arg_, help_)                                                        \
    {.kind = OPT_CALL,                                                                   \
     .call = function,                                                                   \
     .letter = letter_,                                                                  \
     .name = long_,                                                                      \
     .word = word_,                                                                      \
     .exit_status = status,                                                              \
     .error = error_,                                                                    \
     .arg = arg_,                                                                        \
     .help = help_},
#define NOOP(kind_, letter_, long_, word_, min_, max_, status, error_, arg_, help_)      \
    {.kind = kind_,                                                                      \
     .letter = letter_,                                                                  \
     .name = long_,                                                                      \
     .word = word_,                                                                      \
     .exit_status = status,                                                              \
     .error = error_,                                                                    \
     .arg = arg_,                                                                        \
     .help = help_},
#define STAT(since, stat, value)
#include "settings.def"
#undef SETTING
#undef CALL
#undef NOOP
#undef STAT
};

static const struct opt_table table = {.rows = rows,
                                       .count = sizeof rows / sizeof *rows,
                                       .program = PROGRAM,
                                       .has_words = true};

static void
set_defaults(struct settings *s, enum profile profile)
{
    *s = (struct settings){.protocol = "auto-negotiate",
                           .prefix_delimiter = ':',
                           .udp_guard = {.is_on = true}};
#define SETTING(kind, field, v14, v16, ...)                                              \
    s->field = profile == PROFILE_14 ? (v14) : (v16);
#define CALL(...)
#define NOOP(...)
#define STAT(...)
#include "settings.def"
#undef SETTING
#undef CALL
#undef NOOP
#undef STAT
    s->profile = profile;
}

/* ---- checks over several options ------------------------------------------------------ */

static bool
fail(int *exit_status, int status, const char *sentence)
{
    fprintf(stderr, "%s: %s\n", PROGRAM, sentence);
    *exit_status = status;
    return false;
}

static int64_t
default_chunk_max(const struct settings *s)
{
    int64_t largest = s->profile == PROFILE_16 || s->item_max > CHUNK_MAX_14
                          ? CHUNK_MAX_SPLIT
                          : CHUNK_MAX_14;
    return largest < s->item_max ? largest : s->item_max;
}

static bool
check_sizes(struct settings *s, int *exit_status)
{
    char text[160];
    int64_t share = s->profile == PROFILE_16 ? 2 : 4;
    int bad_size = s->profile == PROFILE_16 ? EX_USAGE_STATUS : 1;
    if (s->item_max < ITEM_MAX_LEAST || s->item_max > ITEM_MAX_MOST) {
        return fail(exit_status, bad_size,
                    s->item_max < ITEM_MAX_LEAST
                        ? "Item max size cannot be less than 1024 bytes."
                        : "Cannot set item size limit higher than a gigabyte.");
    }
    if (s->item_max > MEGABYTE && s->item_max > s->memory_mb * MEGABYTE / share) {
        snprintf(text, sizeof text,
                 "Cannot set item size limit higher than 1/%d of memory max.",
                 (int)share);
        return fail(exit_status, bad_size, text);
    }
    if (s->chunk_max == 0) {
        s->chunk_max = default_chunk_max(s);
    }
    if (s->chunk_max > s->item_max) {
        snprintf(
            text, sizeof text,
            "slab_chunk_max (bytes: %lld) cannot be larger than -I (item_size_max %lld)",
            (long long)s->chunk_max, (long long)s->item_max);
        return fail(exit_status, EX_USAGE_STATUS, text);
    }
    if (s->item_max % s->chunk_max != 0) {
        snprintf(text, sizeof text,
                 "-I (item_size_max: %lld) must be evenly divisible by slab_chunk_max "
                 "(bytes: %lld)",
                 (long long)s->item_max, (long long)s->chunk_max);
        return fail(exit_status, EX_USAGE_STATUS, text);
    }
    if (s->chunk_max % 8 != 0) {
        return fail(exit_status, EX_USAGE_STATUS,
                    "the largest chunk must be a multiple of 8 bytes");
    }
    return true;
}

static bool
check_connections(const struct settings *s, int *exit_status)
{
    if (s->max_conns <= s->threads * SETTINGS_FILES_PER_WORKER) {
        return fail(exit_status, 1, "Maxconns setting is too low, use -c to increase.");
    }
    return true;
}

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
    enum profile profile = PROFILE_14;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = strncmp(argv[i], "--compat=", 9) == 0 ? argv[i] + 9
                            : strcmp(argv[i], "--compat") == 0 && i + 1 < argc
                                ? argv[i + 1]
                                : NULL;
        if (value != NULL) {
            profile = strcmp(value, "1.6") == 0 ? PROFILE_16 : PROFILE_14;
        }
    }
    return profile;
}

bool
settings_parse(struct settings *s, int argc, char **argv, int *exit_status)
{
    set_defaults(s, find_profile(argc, argv));
    if (opt_parse(&table, s, argc, argv, stderr, exit_status) != OPT_DONE) {
        return false;
    }
    couple_ports(s);
    return (s->action != ACTION_SERVE ||
            (check_sizes(s, exit_status) && check_connections(s, exit_status)));
}

void
settings_fini(struct settings *s)
{
    free(s->addresses);
    s->addresses = NULL;
    pin_spec_fini(&s->pin);
}

void
settings_help(FILE *out)
{
    opt_help(&table, out);
}

const char *
settings_version(const struct settings *s)
{
    return s->profile == PROFILE_16 ? "1.6.45" : "1.4.39";
}

/* ---- conf structs --------------------------------------------------------------------- */

/* The charged bytes of a test that wants to see more than 32 bits. */
static uint64_t
initial_malloced(void)
{
    const char *text = getenv("T_MEMD_INITIAL_MALLOC");
    uint64_t bytes;
    return text != NULL && num_u64(text, strlen(text), &bytes) ? bytes : 0;
}

struct store_conf
settings_store(const struct settings *s)
{
    return (struct store_conf){
        .limit_bytes = (uint64_t)s->memory_mb << 20,
        .growth_factor = s->growth_factor,
        .min_space = (uint32_t)s->min_space,
        .item_max = (uint32_t)s->item_max,
        .chunk_max = (uint32_t)s->chunk_max,
        .hash_power = s->hash_power != 0 ? (unsigned)s->hash_power : HASH_POWER_DEFAULT,
        .threads = (unsigned)s->threads,
        .hash_seed = rng_seed(),
        .initial_malloced = initial_malloced(),
        .use_cas = !s->no_cas,
        .can_evict = !s->never_evicts,
        .can_grow_hash = !s->no_hash_growth,
        .whole_pages = s->chunk_max != CHUNK_MAX_14 || s->profile == PROFILE_16,
        .inline_suffix = !s->no_inline_suffix,
    };
}

struct listen_conf
settings_listen(const struct settings *s)
{
    return (struct listen_conf){
        .addresses = s->addresses,
        .has_prefixes = rules_of(s->profile)->has_listen_prefixes,
        .port = (int)s->port,
        .udp_port = (int)s->udp_port,
        .socket_path = s->socket_path,
        .socket_mode = (unsigned)s->socket_mode,
        .backlog = (int)s->backlog,
        .max_conns = (unsigned)s->max_conns,
        .rejects_fast = s->rejects_fast,
        .port_file = getenv("MEMCACHED_PORT_FILENAME"),
    };
}

struct udp_conf
settings_udp(const struct settings *s)
{
    return (struct udp_conf){.guard = s->udp_guard, .is_shared = s->shares_udp};
}

unsigned
settings_udp_files(const struct settings *s)
{
    if (s->udp_port == LISTEN_PORT_OFF || s->socket_path != NULL) {
        return 0;
    }
    unsigned addresses = 2; /* a host may have one of each family */
    for (const char *p = s->addresses; p != NULL && *p != '\0'; p++) {
        addresses += *p == ',' || *p == ';' ? 2 : 0;
    }
    return addresses * (unsigned)s->threads;
}

struct serve_conf
settings_serve(const struct settings *s)
{
    return (struct serve_conf){
        .rules = rules_of(s->profile),
        .binding = s->binding,
        .version = settings_version(s),
        .use_cas = !s->no_cas,
        .allows_flush = !s->no_flush,
        .allows_shutdown = s->allows_shutdown,
        .allows_debug = s->allows_debug,
        .allows_dump = !s->no_dump,
        .allows_watch = !s->no_watch,
    };
}

struct orders_conf
settings_orders(const struct settings *s)
{
    (void)s;
    return (struct orders_conf){.crawler_sleep_us = 100};
}

struct store_automove
settings_automove(const struct settings *s)
{
    (void)s;
    return (struct store_automove){.level = 0, .ratio = 0.8, .window = 30};
}
