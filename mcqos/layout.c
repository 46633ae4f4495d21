/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos layout: what it prints.
 */
#include "mcqos/layout.h"

#include <stdlib.h>

#include "base/json.h"
#include "mcqos/command.h"

static uint64_t
memory_of_all(const struct layout *l)
{
    uint64_t sum = 0;
    for (unsigned n = 0; n < l->count; n++) {
        sum += l->instances[n].memory_mb;
    }
    return sum;
}

static bool
has_shares(const struct layout *l)
{
    for (unsigned n = 1; n < l->count; n++) {
        if (l->instances[n].share != l->instances[0].share) {
            return true;
        }
    }
    return false;
}

/* A word as a shell reads it. */
static void
put_word(const char *word, FILE *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_=:,./%+@";
    if (*word != '\0' && strspn(word, plain) == strlen(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++) {
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    }
    fputc('\'', out);
}

static void
put_command(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    const struct options *o = l->options;
    char own[LAYOUT_OWN_MAX];
    layout_own_args(i, own);
    put_word(o->layout.program, out);
    fputs(" -l ", out);
    put_word(o->layout.listen, out);
    fprintf(out, " -p %u %s", i->port, own);
    for (unsigned n = l->more; n < o->count; n++) {
        fputc(' ', out);
        put_word(o->words[n], out);
    }
}

/* "127.0.0.1:11211,127.0.0.1:11212", with weights behind where they differ. */
static void
put_servers(const struct layout *l, FILE *out)
{
    for (unsigned n = 0; n < l->count; n++) {
        const struct layout_instance *i = &l->instances[n];
        fprintf(out, "%s%s:%u", n > 0 ? "," : "", l->options->layout.listen, i->port);
        if (has_shares(l)) {
            fprintf(out, ":%u", i->share);
        }
    }
}

static void
put_nutcracker(const struct layout *l, FILE *out)
{
    fputs("layout:\n  listen: 127.0.0.1:22121\n  hash: md5\n  distribution: ketama\n"
          "  auto_eject_hosts: false\n  timeout: 400\n  servers:\n",
          out);
    for (unsigned n = 0; n < l->count; n++) {
        fprintf(out, "   - %s:%u:%u\n", l->options->layout.listen, l->instances[n].port,
                l->instances[n].share);
    }
}

static void
print_text(const struct layout *l)
{
    const struct layout_instance *i = l->instances;
    printf("# %s: %u processes, %llu MB in all\n", l->shape, l->count,
           (unsigned long long)memory_of_all(l));
    for (; i < l->instances + l->count; i++) {
        printf("# port %u: socket %d, core %d, node %d, CPU %s\n", i->port, i->socket,
               i->core, i->node, i->list);
        put_command(l, i, stdout);
        putchar('\n');
    }
    puts("\n# servers, for clients with weighted ketama");
    put_servers(l, stdout);
    puts("\n\n# nutcracker.yml");
    put_nutcracker(l, stdout);
}

/* What a writer writes, as text. */
static char *
text_of(void (*write)(const struct layout *, FILE *), const struct layout *l)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    must(out != NULL);
    write(l, out);
    must(fclose(out) == 0);
    return text;
}

static void
put_instance(const struct layout *l, const struct layout_instance *i, struct json *j)
{
    char *command = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&command, &len);
    must(out != NULL);
    put_command(l, i, out);
    must(fclose(out) == 0);
    json_object_of(j, NULL, JSON("port", i->port), JSON("socket", (double)i->socket),
                   JSON("core", (double)i->core), JSON("node", (double)i->node),
                   JSON("cpus", (const char *)i->list), JSON("threads", i->threads),
                   JSON("memory_mb", i->memory_mb), JSON("share", i->share),
                   JSON("command", (const char *)command));
    free(command);
}

static void
print_json(const struct layout *l)
{
    struct json j;
    char *servers = text_of(put_servers, l), *nutcracker = text_of(put_nutcracker, l);
    json_init(&j, stdout);
    json_open(&j, NULL, '{');
    json_put(&j, JSON("mcqos", COMMAND_SCHEMA), JSON("layout", l->shape),
             JSON("memory_mb", memory_of_all(l)));
    json_open(&j, "instances", '[');
    for (unsigned n = 0; n < l->count; n++) {
        put_instance(l, &l->instances[n], &j);
    }
    json_close(&j, ']');
    json_put(&j, JSON("servers", (const char *)servers),
             JSON("nutcracker", (const char *)nutcracker));
    json_close(&j, '}');
    free(servers);
    free(nutcracker);
}

static enum outcome
carry_out(const struct layout *l, bool is_run, struct link *link)
{
    const struct options *o = l->options;
    if (is_run) {
        if (o->layout.machine != NULL || o->is_json || o->layout.units != NULL) {
            snprintf(link->why, sizeof link->why,
                     "run goes with neither --machine nor --json nor --units");
            return USAGE;
        }
        return launch(l) == 0 ? DONE : REFUSED;
    }
    if (o->layout.units != NULL && !units_write(l, link->why)) {
        return REFUSED;
    }
    if (o->is_json) {
        print_json(l);
    } else {
        print_text(l);
    }
    return DONE;
}

enum outcome
layout_run(const struct options *o, struct link *link)
{
    struct layout l;
    bool is_run = o->count > 2 && strcmp(o->words[2], "run") == 0;
    enum outcome outcome = USAGE;
    if (o->count > 2 && !is_run && o->words[2][0] != '-') {
        snprintf(link->why, sizeof link->why,
                 "\"%s\": behind the shape come run, or -- and options of the servers",
                 o->words[2]);
        return USAGE;
    }
    if (layout_plan(&l, o, is_run, link->why)) {
        outcome = carry_out(&l, is_run, link);
    }
    layout_fini(&l);
    return outcome;
}
