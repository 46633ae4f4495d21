/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/hosts.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/num.h"
#include "sock/addr.h"

#define ADDR_TEXT_MAX 64 /* "tcp6:[...]:65535" */

/* ---- reading -------------------------------------------------------------------------- */

static struct slice
from(struct slice text, size_t n)
{
    return (struct slice){text.p + n, text.len - n};
}

/* Takes `open` NAME `close` off *text. False when it does not start so. */
static bool
take_prefix(struct slice *text, const char *open, const char *close, struct slice *name)
{
    if (!req_begins(*text, open)) {
        return false;
    }
    struct slice rest = from(*text, strlen(open));
    const char *end = memmem(rest.p, rest.len, close, strlen(close));
    if (end == NULL) {
        return false;
    }
    *name = (struct slice){rest.p, (size_t)(end - rest.p)};
    *text = from(rest, name->len + strlen(close));
    return true;
}

static bool
set_binding(struct hosts_element *e, struct slice name)
{
    if (req_word_is(name, "ascii")) {
        e->binding = BINDING_ASCII;
    } else if (req_word_is(name, "binary")) {
        e->binding = BINDING_BINARY;
    } else {
        e->binding = BINDING_AUTO;
        return req_word_is(name, "negotiating");
    }
    return true;
}

/* In this order where combined: proto, tag. */
static bool
take_prefixes(struct slice *text, struct hosts_element *e, char *err, size_t err_len)
{
    struct slice name;
    if (take_prefix(text, "proto[", "]:", &name) && !set_binding(e, name)) {
        return fail_because(err, err_len, "Invalid protocol in listener: \"%.*s\"",
                            (int)name.len, name.p);
    }
    if (take_prefix(text, "tag[", "]:", &name) ||
        take_prefix(text, "tag_", "_:", &name)) {
        if (name.len == 0 || name.len > HOSTS_TAG_MAX) {
            return fail_because(
                err, err_len,
                "Listener tags must be between 1 and 8 characters: \"%.*s\"",
                (int)name.len, name.p);
        }
        memcpy(e->tag, name.p, name.len);
    }
    return true;
}

/* What the listener speaks, in place of the default. */
static bool
take_tls(struct slice *text, bool has_tls, struct hosts_element *e, char *err,
         size_t err_len)
{
    static const struct {
        const char *prefix;
        enum tls_mode mode;
    } modes[] = {{"notls:", TLS_OFF}, {"btls:", TLS_BASIC}, {"mtls:", TLS_MUTUAL}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        size_t len = strlen(modes[i].prefix);
        if (!req_begins(*text, modes[i].prefix)) {
            continue;
        }
        if (!has_tls) {
            return fail_because(err, err_len,
                                "'%.*s' option is valid only when SSL is enabled",
                                (int)len - 1, modes[i].prefix);
        }
        e->tls = modes[i].mode;
        *text = from(*text, len);
        return true;
    }
    return true;
}

/* Splits off the port. False: a bracket without its other half. */
static bool
split_port(struct slice text, struct slice *host, struct slice *port)
{
    *host = text;
    *port = (struct slice){NULL, 0};
    if (text.p[0] != '[') {
        const char *first = memchr(text.p, ':', text.len);
        if (first != NULL && memrchr(text.p, ':', text.len) == first) {
            host->len = (size_t)(first - text.p);
            *port = from(text, host->len + 1);
        }
        return true;
    }
    const char *end = memchr(text.p, ']', text.len);
    if (end == NULL) {
        return false;
    }
    *host = (struct slice){text.p + 1, (size_t)(end - text.p) - 1};
    struct slice rest = from(text, host->len + 2);
    if (rest.len > 0) {
        *port = from(rest, 1);
    }
    return rest.len == 0 || rest.p[0] == ':';
}

static bool
read_element(struct slice text, struct hosts_rules rules, struct hosts_element *e,
             char *err, size_t err_len)
{
    *e = (struct hosts_element){.port = HOSTS_PORT_NONE,
                                .marks = {.declared = CLASS_NONE},
                                .tls = rules.has_tls ? TLS_DEFAULT : TLS_OFF};
    if (rules.has_prefixes && !take_prefixes(&text, e, err, err_len)) {
        return false;
    }
    if ((rules.has_prefixes || rules.has_tls) &&
        !take_tls(&text, rules.has_tls, e, err, err_len)) {
        return false;
    }
    if (text.len == 0) {
        return fail_because(err, err_len, "no address in an element of -l");
    }
    struct slice host, port;
    if (!split_port(text, &host, &port)) {
        return fail_because(err, err_len, "Invalid IPV6 address: \"%.*s\"", (int)text.len,
                            text.p);
    }
    uint32_t number;
    if (port.p != NULL) {
        if (!num_u32(port.p, port.len, &number) || number > UINT16_MAX) {
            return fail_because(err, err_len, "Invalid port number: \"%.*s\"",
                                (int)port.len, port.p);
        }
        e->port = (int)number;
    }
    if (host.len == 0 || host.len >= sizeof e->host) {
        return fail_because(err, err_len, "not an address to listen on: \"%.*s\"",
                            (int)text.len, text.p);
    }
    if (!req_word_is(host, "*")) {
        memcpy(e->host, host.p, host.len);
    }
    return true;
}

static const char class_mark[] = ";class=";
static const char control_mark[] = ";control";

/* The word of `mark` alone, not one that begins so. */
static bool
is_control_mark(const char *text)
{
    size_t len = strlen(control_mark);
    return strncmp(text, control_mark, len) == 0 && strchr(",;", text[len]) != NULL;
}

bool
hosts_take_marks(const char **text, struct hosts_marks *marks, char *err, size_t err_len)
{
    for (;;) {
        if (is_control_mark(*text)) {
            marks->has_control = true;
            *text += strlen(control_mark);
        } else if (strncmp(*text, class_mark, strlen(class_mark)) == 0) {
            const char *name = *text + strlen(class_mark);
            size_t len = strcspn(name, ",;");
            if (marks->declared != CLASS_NONE) {
                return fail_because(err, err_len,
                                    "Two classes of a listener: \"class=%.*s\"", (int)len,
                                    name);
            }
            marks->declared = class_by_declared_name(name, len);
            if (marks->declared == CLASS_NONE) {
                return fail_because(
                    err, err_len,
                    "Invalid class of a listener: \"%.*s\" (small, write, bulk, "
                    "background)",
                    (int)len, name);
            }
            *text = name + len;
        } else {
            return true;
        }
    }
}

const char *
hosts_find_marks(const char *path)
{
    while (*path != '\0' && !is_control_mark(path) &&
           strncmp(path, class_mark, strlen(class_mark)) != 0) {
        path++;
    }
    return path;
}

enum hosts_status
hosts_next(const char **list, struct hosts_rules rules, struct hosts_element *element,
           char *err, size_t err_len)
{
    const char *p = *list + strspn(*list, ",;");
    size_t len = strcspn(p, ",;");
    *list = p + len;
    if (len == 0) {
        return HOSTS_END;
    }
    return read_element((struct slice){p, len}, rules, element, err, err_len) &&
                   hosts_take_marks(list, &element->marks, err, err_len)
               ? HOSTS_OK
               : HOSTS_BAD;
}

/* ---- binding -------------------------------------------------------------------------- */

/* How to get over an error of bind; "" when there is nothing to say. */
static const char *
remedy(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "; stop the server that listens there, or choose another port";
    case EACCES:
        return "; ports below 1024 need root or CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
        return "; it must be an address of this machine";
    default:
        return "";
    }
}

/* Another address of the element serves, so it goes on. */
static void
warn_in_use(const struct hosts_spec *ask, const struct addrinfo *ai)
{
    char addr[ADDR_TEXT_MAX];
    addr_format(ask->socket_type == SOCK_STREAM ? "tcp" : "udp", ai->ai_addr,
                ai->ai_addrlen, addr, sizeof addr);
    log_write(LOG_WARNING, "memcached: warning: not listening on %s, which is in use",
              addr);
}

static bool
bind_found(const struct hosts_spec *ask, const struct hosts_element *e,
           const struct addrinfo *found, int *error)
{
    unsigned bound = 0;
    const struct addrinfo *in_use = NULL;
    *error = 0;
    for (const struct addrinfo *ai = found; ai != NULL; ai = ai->ai_next) {
        int result = ask->bind(ask->ctx, ai, e);
        if (result == 0) {
            bound++;
        } else if (result == EAFNOSUPPORT || result == EADDRNOTAVAIL) {
            *error = *error != 0 ? *error : result;
        } else {
            *error = result;
            in_use = ai;
            if (result != EADDRINUSE) {
                return false;
            }
        }
    }
    if (bound > 0 && in_use != NULL) {
        warn_in_use(ask, in_use);
    }
    return bound > 0;
}

static bool
bind_element(const struct hosts_spec *ask, const struct hosts_element *e, char *err,
             size_t err_len)
{
    char service[8];
    struct addrinfo hints = {
        .ai_flags = AI_PASSIVE, .ai_family = AF_UNSPEC, .ai_socktype = ask->socket_type};
    struct addrinfo *found;
    int port = e->port != HOSTS_PORT_NONE ? e->port : ask->port;
    const char *host = e->host[0] != '\0' ? e->host : "*";
    snprintf(service, sizeof service, "%d", port);
    int rc = getaddrinfo(e->host[0] != '\0' ? e->host : NULL, service, &hints, &found);
    if (rc != 0) {
        snprintf(
            err, err_len,
            "failed to listen on %s port %d: %s: getaddrinfo(): %s; check the name (-l)",
            ask->protocol, port, host,
            rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        return false;
    }
    int error;
    bool is_bound = bind_found(ask, e, found, &error);
    freeaddrinfo(found);
    if (!is_bound) {
        snprintf(err, err_len, "failed to listen on %s port %d: %s: %s%s", ask->protocol,
                 port, host, strerror(error), remedy(error));
    }
    return is_bound;
}

bool
hosts_bind(const struct hosts_spec *ask, char *err, size_t err_len)
{
    struct hosts_element element = {.port = HOSTS_PORT_NONE,
                                    .marks = {.declared = CLASS_NONE},
                                    .tls = ask->rules.has_tls ? TLS_DEFAULT : TLS_OFF};
    if (ask->list == NULL) {
        return bind_element(ask, &element, err, err_len);
    }
    const char *list = ask->list;
    for (;;) {
        enum hosts_status status = hosts_next(&list, ask->rules, &element, err, err_len);
        if (status != HOSTS_OK) {
            return status == HOSTS_END;
        }
        if (!bind_element(ask, &element, err, err_len)) {
            return false;
        }
    }
}
