/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/settings_class.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "front/settings.h"

#define MAX_WAIT_LEAST (100 * NSEC_PER_USEC)
#define MAX_WAIT_MOST (10 * NSEC_PER_SEC)

const char *
settings_set_classes(void *conf, const char *text)
{
    struct settings *s = conf;
    s->has_classes = strcmp(text, "on") == 0;
    return s->has_classes || strcmp(text, "off") == 0 ? NULL
                                                      : "classes must be on or off";
}

const char *
settings_add_class_rule(void *conf, const char *text)
{
    static char err[256];
    struct settings *s = conf;
    return class_rules_add(&s->class_rules, text, err, sizeof err) ? NULL : err;
}

const char *
settings_set_class_shares(void *conf, const char *text)
{
    return class_shares_parse(&((struct settings *)conf)->class_shares, text);
}

const char *
settings_set_class_max_wait(void *conf, const char *text)
{
    static const struct {
        const char *name;
        nsec_t ns;
    } units[] = {{"us", NSEC_PER_USEC}, {"ms", NSEC_PER_MSEC}, {"s", NSEC_PER_SEC}};
    struct settings *s = conf;
    size_t digits = strspn(text, "0123456789");
    uint32_t number;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + digits, units[i].name) != 0 ||
            !num_u32(text, digits, &number)) {
            continue;
        }
        s->class_max_wait = number * units[i].ns;
        if (s->class_max_wait >= MAX_WAIT_LEAST && s->class_max_wait <= MAX_WAIT_MOST) {
            return NULL;
        }
    }
    return "class-max-wait must be a time like 5ms, from 100us to 10s";
}

const char *
settings_set_socket(void *conf, const char *text)
{
    static char err[128];
    struct settings *s = conf;
    const char *end = hosts_find_marks(text);
    const char *marks = end;
    s->socket_marks = (struct hosts_marks){.declared = CLASS_NONE};
    if (!hosts_take_marks(&marks, &s->socket_marks, err, sizeof err)) {
        return err;
    }
    if (*marks != '\0') {
        return "behind the path of the UNIX socket only ;class=NAME and ;control may "
               "stand";
    }
    free(s->socket_text);
    s->socket_text = strndup(text, (size_t)(end - text));
    if (s->socket_text == NULL) {
        return "out of memory";
    }
    s->socket_path = s->socket_text;
    return NULL;
}
