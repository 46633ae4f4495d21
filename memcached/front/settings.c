/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/settings.h"

#include "front/front.h"

#define DEBUG_PROGRAM "memcached-debug" /* a name that allows the debug commands */
#define PACKAGED_PROGRAM                                                                 \
    "memcached-qos" /* beside another memcached: its manual has it, too */

/* The defaults depend on the profile, so --compat is found before anything is applied. */
static enum profile
find_profile(const struct config *c)
{
    enum profile profile = PROFILE_NATIVE;
    const char *value = config_find(c->argc, c->argv, "compat");
    value = value != NULL ? value : config_find_line(c, "compat");
    /* blanks as everywhere in front of a value (base/opt.c) */
    if (value != NULL && !rules_profile(value + strspn(value, " "), &profile)) {
        return PROFILE_NATIVE; /* set_compat says so */
    }
    return profile;
}

/* Whether the program was started under that name. */
static bool
is_called(const struct settings *s, const char *name)
{
    const char *path = s->config.argc > 0 ? s->config.argv[0] : "";
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, name) == 0;
}

/* False: no memory. */
static bool
init(struct settings *s, const struct opt_table *table, enum profile profile)
{
    s->profile = profile;
    for (unsigned i = 0; front_at(i) != NULL; i++) {
        size_t bytes = front_at(i)->state_bytes;
        s->state[i] = bytes > 0 ? calloc(1, bytes) : NULL;
        if (bytes > 0 && s->state[i] == NULL) {
            return false;
        }
    }
    for (unsigned i = 0; front_at(i) != NULL; i++) {
        if (front_at(i)->init != NULL) {
            front_at(i)->init(s);
        }
    }
    opt_preset(table, s, profile == PROFILE_14);
    return true;
}

static bool
settle(struct settings *s, FILE *err, int *exit_status)
{
    const char *wrong = NULL;
    for (unsigned i = 0; wrong == NULL && front_at(i) != NULL; i++) {
        struct settling to = {FRONT_USAGE, err};
        if (front_at(i)->settle != NULL &&
            (wrong = front_at(i)->settle(s, &to)) != NULL) {
            fprintf(err, "%s: %s\n",
                    s->config.path != NULL ? s->config.path : "memcached", wrong);
            *exit_status = s->config.path != NULL ? CONFIG_STATUS : to.status;
        }
    }
    return wrong == NULL;
}

/* False: there is no file, or no memory. Other mistakes of the file are found with those of its
 * options. */
static bool
open_config(struct settings *s, int argc, char **argv, const char *path, FILE *err)
{
    *s = (struct settings){.action = ACTION_SERVE};
    return config_open(&s->config, argc, argv, path, err) || s->config.file.files > 0;
}

static bool
parse(struct settings *s, enum profile profile, FILE *err, int *exit_status)
{
    struct opt_table table = front_options(profile);
    if (!init(s, &table, profile)) {
        fputs("memcached: out of memory\n", err);
        return false;
    }
    /* Test harnesses start a binary of this name and expect it to know these commands. */
    s->serve.allows_debug = is_called(s, DEBUG_PROGRAM);
    if (!config_apply(s, &table, err, exit_status)) {
        return false;
    }
    threads_count(s);
    bool is_used = s->action == ACTION_SERVE || s->action == ACTION_CHECK ||
                   s->action == ACTION_DOCTOR;
    return !is_used || settle(s, err, exit_status);
}

bool
settings_parse(struct settings *s, int argc, char **argv, int *exit_status)
{
    *exit_status = CONFIG_STATUS;
    return open_config(s, argc, argv, NULL, stderr) &&
           parse(s, find_profile(&s->config), stderr, exit_status);
}

static bool
parse_as(struct settings *s, const struct settings *old, enum profile profile,
         const char *path, FILE *err)
{
    int ignored;
    const struct config *c = &old->config;
    return open_config(s, c->argc, c->argv, path != NULL ? path : c->path, err) &&
           parse(s, profile, err, &ignored);
}

/* Whether the next start is possible, which has another profile. What is wrong goes to err, but no
 * warnings. */
static bool
can_start(const struct settings *old, enum profile profile, const char *path, FILE *err)
{
    struct settings s;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) {
        fputs("memcached: out of memory\n", err);
        return false;
    }
    bool is_good = parse_as(&s, old, profile, path, out);
    settings_fini(&s);
    if (fclose(out) == 0 && !is_good) {
        fputs(text, err);
    }
    free(text);
    return is_good;
}

/* The profile cannot change, nor do the defaults that follow from it. */
bool
settings_parse_again(struct settings *s, const struct settings *old, const char *path,
                     FILE *err)
{
    if (!parse_as(s, old, old->profile, path, err)) {
        return false;
    }
    enum profile profile = find_profile(&s->config);
    return profile == old->profile || can_start(old, profile, path, err);
}

void
settings_fini(struct settings *s)
{
    free(s->socket_text);
    s->socket_text = NULL;
    free(s->addresses);
    s->addresses = NULL;
    pin_spec_fini(&s->pin);
    for (unsigned i = 0; i < SETTINGS_FRONTS_MAX; i++) {
        free(s->state[i]);
        s->state[i] = NULL;
    }
    config_fini(&s->config);
}

void
settings_wire(const struct settings *s, struct net_shared *shared)
{
    for (unsigned i = 0; front_at(i) != NULL; i++) {
        if (front_at(i)->wire != NULL) {
            front_at(i)->wire(s, shared);
        }
    }
}

static void
print_short_help(const struct opt_table *table, const char *program)
{
    printf("Usage: %s [options]\n", program);
    opt_help_common(table, stdout);
    printf("All options: --help or %s(1); some: --help=TOPIC, --help=PART-OF-NAME\n",
           program);
    fputs("Topics: ", stdout);
    opt_help_topics(table, stdout);
    putchar('\n');
}

bool
settings_help(const struct settings *s)
{
    struct opt_table table = front_options(s->profile);
    const char *program = is_called(s, PACKAGED_PROGRAM) ? PACKAGED_PROGRAM : "memcached";
    if (s->help_topic != NULL) {
        return opt_help_topic(&table, s->help_topic, stdout, stderr);
    }
    if (s->action == ACTION_SHORT_HELP) {
        print_short_help(&table, program);
        return true;
    }
    putchar('\n');
    opt_help(&table, stdout);
    printf("\nEnvironment:\n"
           "  MEMCACHED_PORT_FILENAME            file to write the ports to\n"
           "  MEMCACHED_SASL_PWDB                file of user:password lines, for -S\n\n"
           "One section or option: --help=TOPIC. Manual: %s(1).\n",
           program);
    return true;
}

const char *
settings_version(const struct settings *s)
{
    return rules_of(s->profile)->version;
}
