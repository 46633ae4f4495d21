/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos layout: what it prints.
 */
#include "mcqos/layout.h"

#include "base/json.h"
#include "mcqos/command.h"

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

/* How clients call the server: the address without its tags, an IPv6 address in brackets. */
static void
put_address(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    const char *host = l->options->layout.listen;
    int len = (int)strcspn(host, ";");
    bool is_bare = *host != '[' && memchr(host, ':', (size_t)len) != NULL;
    fprintf(out, is_bare ? "[%.*s]:%u" : "%.*s:%u", len, host, i->port);
}

/* "127.0.0.1:11211,127.0.0.1:11212", with weights behind where they differ. */
static void
put_servers(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    put_address(l, i, out);
    if (l->has_shares) {
        fprintf(out, ":%u", i->share);
    }
    fputs(i + 1 < l->instances + l->count ? "," : "", out);
}

static void
put_nutcracker(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    if (i == l->instances) {
        fputs("layout:\n  listen: 127.0.0.1:22121\n  hash: md5\n  distribution: ketama\n"
              "  auto_eject_hosts: false\n  timeout: 400\n  servers:\n",
              out);
    }
    fputs("   - ", out);
    put_address(l, i, out);
    fprintf(out, ":%u\n", i->share);
}

typedef void put_instance(const struct layout *l, const struct layout_instance *i,
                          FILE *out);

static void
put_each(const struct layout *l, put_instance *put, FILE *out)
{
    for (unsigned n = 0; n < l->count; n++) {
        put(l, &l->instances[n], out);
    }
}

/* The number of a socket, core or node, which a host without /sys does not tell. */
static void
put_place(const char *name, int number, FILE *out)
{
    if (number < 0) {
        fprintf(out, "%s unknown, ", name);
    } else {
        fprintf(out, "%s %d, ", name, number);
    }
}

static void
put_process(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    fprintf(out, "# port %u: ", i->port);
    put_place("socket", i->socket, out);
    put_place("core", i->core, out);
    put_place("node", i->node, out);
    fprintf(out, "CPU %s\n", i->list);
    put_command(l, i, out);
    fputc('\n', out);
}

static void
print_text(const struct layout *l)
{
    printf("# %s: %u process%s, %llu MB in all\n", l->shape, l->count,
           l->count == 1 ? "" : "es", (unsigned long long)l->memory_mb);
    put_each(l, put_process, stdout);
    puts("\n# servers, for clients with weighted ketama");
    put_each(l, put_servers, stdout);
    puts("\n\n# nutcracker.yml");
    put_each(l, put_nutcracker, stdout);
}

/* A member with what `put` writes of one instance, or, NULL, of each. */
static void
put_text(struct json *j, const char *name, const struct layout *l, put_instance *put,
         const struct layout_instance *i)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    must(out != NULL);
    if (i != NULL) {
        put(l, i, out);
    } else {
        put_each(l, put, out);
    }
    must(fclose(out) == 0);
    json_put(j, JSON(name, text));
    free(text);
}

static struct json_member
json_place(const char *name, int number)
{
    struct json_member known = JSON(name, (double)number), unknown = JSON_NULL(name);
    return number < 0 ? unknown : known;
}

static void
print_json(const struct layout *l)
{
    struct json room, *j = &room;
    json_init(j, stdout);
    json_open(j, NULL, '{');
    json_put(j, JSON("mcqos", COMMAND_SCHEMA), JSON("layout", l->shape),
             JSON("memory_mb", l->memory_mb));
    json_open(j, "instances", '[');
    for (const struct layout_instance *i = l->instances; i < l->instances + l->count;
         i++) {
        json_open(j, NULL, '{');
        json_put(j, JSON("port", i->port), json_place("socket", i->socket),
                 json_place("core", i->core), json_place("node", i->node),
                 JSON("cpus", i->list), JSON("threads", i->threads),
                 JSON("memory_mb", i->memory_mb), JSON("share", i->share));
        put_text(j, "command", l, put_command, i);
        json_close(j, '}');
    }
    json_close(j, ']');
    put_text(j, "servers", l, put_servers, NULL);
    put_text(j, "nutcracker", l, put_nutcracker, NULL);
    json_close(j, '}');
}

static enum outcome
carry_out(const struct layout *l, bool is_run, struct link *link)
{
    const struct options *o = l->options;
    bool is_plan = o->layout.machine != NULL || o->is_json || o->layout.units != NULL;
    if (is_run) {
        return is_plan ? link_explain(link, USAGE,
                                      "run goes with neither --machine nor --json nor "
                                      "--units")
                       : launch(l);
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
    unsigned next = is_run ? 3 : 2;
    if (o->count > next && o->words[next][0] != '-') {
        return link_explain(link, USAGE,
                            "\"%s\": behind the shape come run, or -- and options of the "
                            "servers",
                            o->words[next]);
    }
    enum outcome outcome =
        layout_plan(&l, o, is_run, link->why) ? carry_out(&l, is_run, link) : USAGE;
    layout_fini(&l);
    return outcome;
}
