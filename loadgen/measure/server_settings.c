/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/server_settings.h"

#include <stdlib.h>
#include <string.h>

#define TOLD_VERSION "VERSION "
#define STAT "STAT "

struct server_settings *
server_settings_create(unsigned servers)
{
    struct server_settings *s = calloc(1, sizeof *s + servers * sizeof s->told[0]);
    if (s != NULL) {
        s->users = 1;
        s->servers = servers;
    }
    return s;
}

struct server_settings *
server_settings_get(struct server_settings *s)
{
    if (s != NULL) {
        s->users++;
    }
    return s;
}

void
server_settings_release(struct server_settings **s)
{
    struct server_settings *all = *s;
    *s = NULL;
    if (all == NULL || --all->users > 0) {
        return;
    }
    for (unsigned i = 0; i < all->servers; i++) {
        free(all->told[i].settings);
        free(all->told[i].text);
    }
    free(all);
}

static bool
begins(const char *line, const char *end, const char *with)
{
    size_t len = strlen(with);
    return (size_t)(end - line) >= len && memcmp(line, with, len) == 0;
}

/* The version's line, those of settings, and one that is none of them: END, or an error. */
static bool
is_whole(const char *text, size_t len, size_t *lines)
{
    const char *end = text + len, *line = text, *newline;
    *lines = 0;
    while (line < end && (newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        if (line != text && !begins(line, end, STAT)) {
            return true;
        }
        line = newline + 1;
        ++*lines;
    }
    return false;
}

/* Ends it where the line ends; the next one. */
static char *
cut(char *line)
{
    char *end = strchr(line, '\n');
    must(end != NULL);
    *end = '\0';
    if (end > line && end[-1] == '\r') {
        end[-1] = '\0';
    }
    return end + 1;
}

bool
server_settings_take(struct server_settings *s, unsigned server, const char *text,
                     size_t len)
{
    size_t lines;
    must(server < s->servers && s->told[server].text == NULL);
    if (!is_whole(text, len, &lines)) {
        return false;
    }
    struct server_told *t = &s->told[server];
    char *line = strndup(text, len);
    struct server_setting *settings = calloc(lines, sizeof *settings);
    if (line == NULL || settings == NULL || memchr(text, '\0', len) != NULL) {
        free(line);
        free(settings);
        return true;
    }
    *t = (struct server_told){.settings = settings, .text = line};
    char *next = cut(line);
    if (begins(line, next, TOLD_VERSION)) {
        t->version = line + sizeof TOLD_VERSION - 1;
    }
    while (--lines > 0) {
        line = next;
        next = cut(line);
        char *name = line + sizeof STAT - 1, *space = strchr(name, ' ');
        if (space != NULL) {
            *space = '\0';
            settings[t->len++] = (struct server_setting){name, space + 1};
        }
    }
    return true;
}

bool
server_settings_are_told(const struct server_settings *s)
{
    for (unsigned i = 0; s != NULL && i < s->servers; i++) {
        if (s->told[i].version != NULL || s->told[i].len > 0) {
            return true;
        }
    }
    return false;
}
