/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where to: the servers under test, what is spoken beneath the protocol, and which server a
 * key belongs to.
 */
#include "loadgen/options/group.h"

#include "base/alloc.h"

#define NAME_BYTES (2 * TARGET_NAME_MAX)
#define FILE_MAX 1048576

static const char *
keep_server(struct options *o, const char *text)
{
    if (o->servers_len == OPTIONS_SERVERS_MAX) {
        return "too many servers";
    }
    o->servers[o->servers_len++] = alloc_text(text);
    return NULL;
}

/* A range of ports is a server each. */
static const char *
keep_servers(void *conf, const char *text)
{
    struct options *o = conf;
    char one[NAME_BYTES];
    size_t at = 0;
    unsigned first = 0;
    unsigned ports = target_ports(text, &at, &first);
    const char *wrong = ports == 0 ? "a range of ports is FIRST-LAST" : NULL;
    if (ports == 1 && at == 0) {
        return keep_server(o, text);
    }
    if (at >= TARGET_NAME_MAX) {
        return "server address too long";
    }
    for (unsigned i = 0; wrong == NULL && i < ports; i++) {
        snprintf(one, sizeof one, "%.*s%u", (int)at, text, first + i);
        wrong = keep_server(o, one);
    }
    return wrong;
}

static const char *
call_server(void *conf, const char *text)
{
    return value_addresses(conf, text, keep_servers);
}

/* The line without blanks around it and without its comment. */
static char *
strip(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    size_t len = strlen(line);
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t')) {
        line[--len] = '\0';
    }
    return line;
}

static const char *
call_servers_file(void *conf, const char *path)
{
    char *text, *rest;
    size_t len;
    unsigned before = ((struct options *)conf)->servers_len;
    const char *wrong =
        value_file(path, FILE_MAX, "too long for a list of servers", &text, &len);
    if (wrong == NULL && strlen(text) != len) {
        wrong = "not a text";
    }
    rest = text;
    for (char *line; wrong == NULL && (line = strsep(&rest, "\n")) != NULL;) {
        line = strip(line);
        wrong = line[0] != '\0' ? call_server(conf, line) : NULL;
    }
    free(text);
    if (wrong == NULL && ((struct options *)conf)->servers_len == before) {
        wrong = "no servers in it";
    }
    return wrong;
}

static const char *const no_or_yes[] = {"no", "yes"};

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 's', .name = "server", SCOPE(SHARED), CALL(call_server), .common = 1,
     .arg = "HOST[:PORT]",
     .help = "HOST:PORT-PORT, unix:PATH, [v6]:PORT, TRANSPORT://...; or a list (127.0.0.1)"},
    {.name = "servers-file", SCOPE(LEADER), CALL(call_servers_file), .arg = "FILE",
     .help = "servers, one a line"},
    {.name = "transport", SCOPE(SHARED), KIND(CHOICE), OF_RUN(transport),
     OPT_CHOICES(transport_names), .arg = "NAME",
     .error = "the transports are tcp, unix, udp and tls",
     .help = "tcp, unix, udp or tls, of servers that do not say (tcp)"},
    {.name = "src-port", SCOPE(HOST), KIND(INT), OF_RUN(src_port), .min = 1,
     .max = UINT16_MAX, .error = "a port is between 1 and 65535", .arg = "PORT",
     .help = "local port of the first connection, the next ones follow (any)"},
    {.name = "hash", SCOPE(SHARED), KIND(CHOICE), OF_RUN(shard),
     OPT_CHOICES(shard_names), .arg = "NAME",
     .error = "the hashes are none, modulo, ketama, ketama-weighted and jump",
     .help = "servers share the keys: modulo ketama ketama-weighted jump; none: each has all"},
    {.name = "tls-ca", SCOPE(HOST), KIND(TEXT), OF_RUN(tls.ca), .arg = "FILE",
     .help = "certificate authorities to verify servers with (the system's)"},
    {.name = "tls-cert", SCOPE(HOST), KIND(TEXT), OF_RUN(tls.cert), .arg = "FILE",
     .help = "client certificate"},
    {.name = "tls-key", SCOPE(HOST), KIND(TEXT), OF_RUN(tls.key), .arg = "FILE",
     .help = "key of the client certificate (in the same file)"},
    {.name = "tls-verify", SCOPE(HOST), KIND(CHOICE), OF_RUN(tls.verifies),
     OPT_CHOICES(no_or_yes), .arg = "yes|no", .error = "it is yes or no",
     .help = "verify servers' certificates and names (yes)"},
};
/* clang-format on */

static void
init(struct options *o)
{
    o->tls.verifies = 1;
}

static const char *
settle(struct options *o)
{
    bool is_dealt = false; /* a thread does not reach the servers of all keys */
    for (unsigned i = 0; i < o->classes_len; i++) {
        is_dealt = is_dealt || o->classes[i].is_roundrobin;
    }
    if (is_dealt && o->shard != SHARD_NONE) {
        return "--hash and --roundrobin are mutually exclusive";
    }
    if (o->servers_len == 0) {
        return o->transport == TRANSPORT_UNIX ? "--transport=unix needs --server=PATH"
                                              : keep_server(o, "127.0.0.1");
    }
    int64_t conns = 0;
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        /* Dealt out, each server is some thread's, and each thread has one. */
        int64_t pairs = !c->is_roundrobin ? c->threads * (int64_t)o->servers_len
                        : c->threads > o->servers_len ? c->threads
                                                      : o->servers_len;
        conns += pairs * c->connections;
    }
    if (o->src_port > 0 && o->src_port + conns - 1 > UINT16_MAX) {
        return "--src-port: not enough ports above it";
    }
    return o->tls.key != NULL && o->tls.cert == NULL ? "--tls-key needs --tls-cert"
                                                     : NULL;
}

static void
fini(struct options *o)
{
    for (unsigned i = 0; i < o->servers_len; i++) {
        free(o->servers[i]);
    }
    o->servers_len = 0;
}

const struct run_group group_target = {ROWS(rows), .init = init, .settle = settle,
                                       .fini = fini};
