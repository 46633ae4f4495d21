/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the HTTP server of admin/ listens. Nothing can be changed through it.
 */
#include "front/front.h"

#include "base/file.h"

static const char usage[] =
    "--admin must be ADDR:PORT, such as 127.0.0.1:9151, or unix:PATH";

static const char *
set_admin(void *conf, const char *text)
{
    static char err[256];
    struct settings *s = conf;
    struct hosts_element element = {.tls = TLS_OFF};
    const char *rest = text;
    s->admin = text;
    if (strncmp(text, SETTINGS_ADMIN_UNIX, strlen(SETTINGS_ADMIN_UNIX)) == 0) {
        return text[strlen(SETTINGS_ADMIN_UNIX)] != '\0' ? NULL : usage;
    }
    enum hosts_status status = hosts_next(&rest, (struct hosts_rules){.has_tls = false},
                                          &element, err, sizeof err);
    if (status == HOSTS_BAD) {
        return front_blame("--admin", err);
    }
    bool is_one = status == HOSTS_OK && *rest == '\0';
    bool is_plain =
        is_one && element.marks.declared == CLASS_NONE && !element.marks.has_control;
    return is_plain && element.port != HOSTS_PORT_NONE ? NULL : usage;
}

static bool
is_same_file(const char *a, const char *b)
{
    char *one = file_absolute(a), *other = file_absolute(b);
    bool is_same = one != NULL && other != NULL && strcmp(one, other) == 0;
    free(one);
    free(other);
    return is_same;
}

/* The later of the two to open it would take the other one's clients. */
static const char *
settle(struct settings *s, struct settling *to)
{
    size_t prefix = strlen(SETTINGS_ADMIN_UNIX);
    (void)to;
    bool is_same = s->admin != NULL && s->listen.socket_path != NULL &&
                   strncmp(s->admin, SETTINGS_ADMIN_UNIX, prefix) == 0 &&
                   is_same_file(s->admin + prefix, s->listen.socket_path);
    return is_same
               ? front_say("-s and --admin are on one UNIX socket, %s: give --admin a "
                           "path of its own",
                           s->listen.socket_path)
               : NULL;
}

/* clang-format off */
static const struct opt options[] = {
    {.name = "admin", SET(set_admin), .arg = "ADDR:PORT|unix:PATH", .section = COMMANDS,
     .help = "serve a live page, /metrics, /health, /stats.json over HTTP"},
};
/* clang-format on */

const struct front front_admin = {OPTIONS(options), .usage = FRONT_USAGE,
                                  .settle = settle};
