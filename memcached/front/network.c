/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sockets and connections.
 */
#include <inttypes.h>

#include "front/front.h"

#define SPARE_FILES 32  /* descriptors beside connections and workers */
#define ADMIN_FILES 24  /* connections (admin/http.h), listeners, the thread's own */
#define PORT_UNSET (-2) /* while the options are read */
#define PORT_DEFAULT 11211
#define MANY_THREADS 64
#define CONNS_PER_CALL 16   /* told in one piece of an answer */
#define STATUS_NOT_BOUND 71 /* as of an address that is not of this machine */
#define PORT_ERROR "ERROR: Invalid port number; it is 0 to 65535, or -1"

/* ---- options -------------------------------------------------------------------------- */

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

/* The sentence about the first element that is none. */
static const char *
blame_addresses(const char *list, struct hosts_rules rules)
{
    static char err[256];
    struct hosts_element element;
    enum hosts_status status;
    do {
        status = hosts_next(&list, rules, &element, err, sizeof err);
    } while (status == HOSTS_OK);
    return status == HOSTS_BAD ? err : NULL;
}

/* Several -l add up; one that says what has been said already does not. */
static const char *
add_addresses(void *conf, const char *text)
{
    struct settings *s = conf;
    char *joined;
    if (text[strspn(text, ",;")] == '\0') {
        return "no address to listen on";
    }
    /* whether there is TLS may be said later */
    struct hosts_rules rules = {rules_of(s->profile)->has_listen_prefixes, true};
    const char *wrong = blame_addresses(text, rules);
    if (wrong != NULL) {
        return wrong;
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

/* "PATH" or "PATH;class=NAME;control". */
static const char *
set_socket(void *conf, const char *text)
{
    static char err[128];
    struct settings *s = conf;
    const char *end = hosts_find_marks(text);
    const char *marks = end;
    s->listen.socket_marks = (struct hosts_marks){.declared = CLASS_NONE};
    if (!hosts_take_marks(&marks, &s->listen.socket_marks, err, sizeof err)) {
        return err;
    }
    if (*marks != '\0') {
        return "behind the path of the UNIX socket only ;class=NAME and ;control may "
               "stand";
    }
    free(s->socket_text);
    s->socket_text = strndup(text, (size_t)(end - text));
    s->listen.socket_path = s->socket_text;
    return s->socket_text != NULL ? NULL : "out of memory";
}

static const char *
set_protocol(void *conf, const char *text)
{
    struct settings *s = conf;
    s->is_binding_given = true;
    if (strcmp(text, "auto") == 0) {
        s->serve.binding = BINDING_AUTO;
    } else if (strcmp(text, "ascii") == 0) {
        s->serve.binding = BINDING_ASCII;
    } else if (strcmp(text, "binary") == 0) {
        s->serve.binding = BINDING_BINARY;
    } else {
        return front_say("Invalid value for binding protocol: %s -- should be one of "
                         "auto, binary, or ascii",
                         text);
    }
    return NULL;
}

static const char *const controls[] = {
    [LISTEN_CONTROL_LOCAL] = "local",
    [LISTEN_CONTROL_MARKED] = "marked",
    [LISTEN_CONTROL_ANY] = "any",
};

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'c', .name = "conn-limit", .kind = OPT_INT, OF(max_conns), .min = 1,
     .max = 1e7, .arg = "N", .section = NETWORK, .common = 2, .preset = "1024",
     .error = "Maximum connections must be greater than 0 and at most 10000000",
     .help = "simultaneous connections"},
    {.letter = 'p', .name = "port", .kind = OPT_INT, OF(listen.port), .min = -1,
     .max = 65535, .exit_status = FRONT_USAGE, .error = PORT_ERROR, .arg = "N",
     .section = NETWORK, .common = 3, .preset_help = "11211",
     .help = "TCP port; 0 off, -1 any free one"},
    {.letter = 'U', .name = "udp-port", .kind = OPT_INT, OF(listen.udp_port), .min = -1,
     .max = 65535, .exit_status = FRONT_USAGE, .error = PORT_ERROR, .arg = "N",
     .section = NETWORK, .preset_help = "0",
     .help = "UDP port; 0 off, -1 any free one"},
    {.letter = 'l', .name = "listen", SET(add_addresses), .exit_status = STATUS_NOT_BOUND,
     .arg = "LIST[;MARKS]", .section = NETWORK, .common = 5, .adds_up = true,
     .help = "addresses: host[:port], [v6]:port, * (all)"},
    {.letter = 's', .name = "unix-socket", SET(set_socket), .arg = "PATH[;MARKS]",
     .section = NETWORK, .common = 7, .help = "UNIX socket instead of the network"},
    {.letter = 'a', .name = "unix-mask", .kind = OPT_OCTAL, OF(listen.socket_mode),
     .max = 0777, .arg = "MODE", .section = NETWORK, .preset = "0700",
     .error = "access mode must be octal, 0 to 777",
     .help = "access mode of the UNIX socket, octal"},
    {.letter = 'b', .name = "listen-backlog", .kind = OPT_INT, OF(listen.backlog), .min = 1,
     .max = 1 << 30, .arg = "N", .section = NETWORK, .preset = "1024",
     .error = "backlog must be greater than 0 and at most 1073741824", .help = "backlog of the listening sockets"},
    {.letter = 'B', .name = "protocol", SET(set_protocol), .exit_status = FRONT_USAGE,
     .arg = "auto|ascii|binary", .section = NETWORK, .preset_help = "auto",
     .help = "protocol"},
    {.word = "maxconns_fast", .kind = OPT_FLAG, OF(listen.rejects_fast), .section = NETWORK,
     .help = "over the connection limit: answer an error and close"},
    {.word = "no_maxconns_fast", .kind = OPT_OFF, OF(listen.rejects_fast),
     .section = NETWORK,
     .help = "over the connection limit: wait for a free connection"},
    {.word = "idle_timeout", .kind = OPT_INT, OF(idle_seconds), .max = INT32_MAX,
     .arg = "N", .section = NETWORK, .preset = "0",
     .error = "idle_timeout must be a number of seconds",
     .help = "close TCP connections idle for N seconds; 0: never"},
    {.word = "read_buf_mem_limit", .kind = OPT_INT, OF(buffer_bytes), .unit = 1 << 20,
     .max = 1 << 30, .arg = "N", .section = NETWORK, .preset = "0",
     .error = "read_buf_mem_limit must be a number of megabytes",
     .help = "megabytes for the buffers of connections; 0: no limit"},
    {.name = "control", .kind = OPT_CHOICE, OF(listen.control), OPT_CHOICES(controls),
     .exit_status = FRONT_USAGE, .arg = "local|marked|any", .section = QOS,
     .after = "class-max-wait", .preset = "local",
     .error = "--control must be local, marked or any",
     .help = "connections that may change settings with qos"},
};
/* clang-format on */

static void
init(struct settings *s)
{
    s->listen.port = s->listen.udp_port = PORT_UNSET;
    s->listen.socket_marks = (struct hosts_marks){.declared = CLASS_NONE};
    const char *port_file = getenv("MEMCACHED_PORT_FILENAME");
    s->listen.port_file = port_file != NULL && *port_file != '\0' ? port_file : NULL;
    s->serve.binding = BINDING_AUTO;
}

/* -U alone moves both ports. UDP is off unless -U asks for it. */
static void
couple_ports(const struct settings *s, struct listen_conf *l)
{
    bool has_udp_port = l->udp_port != PORT_UNSET;
    if (l->port == PORT_UNSET) {
        bool follows = has_udp_port && (l->udp_port != LISTEN_PORT_OFF ||
                                        rules_of(s->profile)->udp_off_is_all_off);
        l->port = follows ? l->udp_port : PORT_DEFAULT;
    }
    if (!has_udp_port) {
        l->udp_port = LISTEN_PORT_OFF;
    }
}

static const char *
settle(struct settings *s, struct settling *to)
{
    struct listen_conf *l = &s->listen;
    /* What the workers need for themselves is counted as upstream counts it. */
    int64_t own = s->threads * SETTINGS_FILES_PER_WORKER + 1;
    couple_ports(s, l);
    if (s->max_conns <= own) {
        to->status = 1;
        return front_say("Maxconns setting is too low, use -c to increase: %" PRId64
                         " threads need more than %" PRId64,
                         s->threads, own);
    }
    if (s->threads > MANY_THREADS) {
        fputs("memcached: warning: a high number of worker threads is not recommended: "
              "more threads than CPUs only cost time\n",
              to->err);
    }
    l->max_conns = (unsigned)(s->max_conns - own);
    l->addresses = s->addresses;
    l->rules =
        (struct hosts_rules){.has_prefixes = rules_of(s->profile)->has_listen_prefixes,
                             .has_tls = s->uses_tls};
    to->status = STATUS_NOT_BOUND;
    return s->addresses != NULL ? blame_addresses(s->addresses, l->rules) : NULL;
}

static unsigned
worker_files(const struct settings *s)
{
    unsigned addresses = 2; /* a host may have one of each family */
    for (const char *p = s->addresses; p != NULL && *p != '\0'; p++) {
        addresses += *p == ',' || *p == ';' ? 2 : 0;
    }
    unsigned kinds =
        (s->listen.udp_port != LISTEN_PORT_OFF) + (s->listen.steer == STEER_REUSEPORT);
    unsigned sockets = s->listen.socket_path != NULL ? 0 : kinds * addresses;
    unsigned schedstats = s->balances + (s->sched.policy == PRIO_SLICE);
    return (sockets + schedstats + SETTINGS_FILES_PER_WORKER) * (unsigned)s->threads;
}

unsigned
settings_files(const struct settings *s, unsigned *least)
{
    *least = (unsigned)s->max_conns + (s->admin != NULL ? ADMIN_FILES : 0);
    return *least + worker_files(s) + SPARE_FILES;
}

static void
wire(const struct settings *s, struct net_shared *shared)
{
    shared->idle_seconds = s->idle_seconds;
    shared->buffer_bytes = s->buffer_bytes;
}

/* ---- statistics ----------------------------------------------------------------------- */

struct conns_walk {
    struct sink *sink;
    uint32_t now;
    bool shows_listener; /* the profile tells which listener a client came from */
};

static void
show_conn(void *ctx, const struct registry_entry *entry)
{
    const struct conns_walk *walk = ctx;
    char prefix[24], name[48];
    uint32_t last = atomic_load_explicit(&entry->last_cmd, memory_order_relaxed);
    snprintf(prefix, sizeof prefix, "%d:", entry->fd);
    if (walk->shows_listener && entry->is_udp) {
        sink_stat_of(walk->sink, prefix, "UDP", "UDP");
    }
    snprintf(name, sizeof name, "%saddr", prefix);
    sink_stat(walk->sink, name, entry->addr);
    if (walk->shows_listener && entry->listen_addr != NULL) {
        snprintf(name, sizeof name, "%slisten_addr", prefix);
        sink_stat(walk->sink, name, entry->listen_addr);
    }
    sink_stat_of(
        walk->sink, prefix, "state", "%s",
        registry_state_name(atomic_load_explicit(&entry->state, memory_order_relaxed)));
    sink_stat_of(walk->sink, prefix, "secs_since_last_cmd", "%u",
                 walk->now > last ? walk->now - last : 0);
}

static enum reply
show_conns(struct stats *st, const struct stats_query *ask)
{
    struct conns_walk walk = {ask->sink, ask->now,
                              rules_of(st->settings->profile)->conns_show_listener};
    return registry_walk(&st->shared->registry, &ask->place->at, CONNS_PER_CALL,
                         show_conn, &walk)
               ? REPLY_NONE
               : REPLY_END;
}

static const struct stats_group groups[] = {{"conns", show_conns}};

const struct front front_network = {OPTIONS(options), GROUPS(groups), .init = init,
                                    .settle = settle, .wire = wire};
