/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The protocol of a class, and its name and password.
 */
#include "loadgen/options/group.h"

static const char *
call_protocol(void *conf, const char *text)
{
    struct lclass *c = conf;
    c->codec = codec_find(text);
    return c->codec != NULL ? NULL
                            : "the protocols are ascii, meta, binary, redis and http";
}

/* clang-format off */
static const struct opt rows[] = {
    {.name = "protocol", SCOPE(SHARED), CALL(call_protocol), .common = 12, .arg = "NAME",
     .help = "ascii, meta, binary, redis or http (ascii)"},
    {.name = "binary", SCOPE(SHARED), KIND(FLAG), OF_CLASS(is_binary),
     .help = "the same as --protocol=binary"},
    {.letter = 'U', .name = "username", SCOPE(SECRET), KIND(TEXT), OF_CLASS(username),
     .arg = "NAME", .help = "name to authenticate with"},
    {.letter = 'P', .name = "password", SCOPE(SECRET), KIND(TEXT), OF_CLASS(password),
     .arg = "TEXT", .help = "password to authenticate with"},
    {.name = "auth-file", SCOPE(HOST), KIND(TEXT), OF_CLASS(auth_file), .arg = "FILE",
     .help = "both, as NAME:PASSWORD in its first line"},
};
/* clang-format on */

static void
init(struct lclass *c)
{
    c->codec = codec_all[0];
    c->username = "";
}

/* The form of the server's own password file; of several users the first one is taken. */
static const char *
read_auth_file(struct lclass *c)
{
    if (c->password != NULL || c->username[0] != '\0') {
        return "--auth-file and --username or --password are mutually exclusive";
    }
    FILE *f = fopen(c->auth_file, "r");
    if (f == NULL) {
        return "cannot read the file of --auth-file: it is not there, or this user may "
               "not";
    }
    bool is_read = fgets(c->secret, sizeof c->secret, f) != NULL;
    fclose(f);
    size_t len = is_read ? strcspn(c->secret, "\r\n") : 0;
    char *colon = memchr(c->secret, ':', len);
    if (colon == NULL || (c->secret[len] == '\0' && len + 1 == sizeof c->secret)) {
        return "the first line of --auth-file is not NAME:PASSWORD, at most 255 bytes "
               "each";
    }
    *colon = c->secret[len] = '\0';
    c->username = c->secret;
    c->password = colon + 1;
    return NULL;
}

static const char *
check_auth(const struct lclass *c)
{
    if (c->password == NULL) {
        return c->username[0] != '\0' ? "--username needs --password" : NULL;
    }
    if ((c->codec->verbs & CODEC_BIT(CODEC_AUTH)) == 0) {
        return "the protocol has no words for authentication: leave out --username, "
               "--password and --auth-file";
    }
    if (c->username[0] == '\0' && !c->codec->has_lone_secret) {
        return "--password needs --username";
    }
    if (strlen(c->username) > CODEC_AUTH_MAX || strlen(c->password) > CODEC_AUTH_MAX) {
        return "names and passwords are at most 255 bytes long";
    }
    return NULL;
}

static const char *
settle(struct lclass *c)
{
    const struct codec *binary = codec_find("binary");
    if (c->is_binary && c->codec != codec_all[0] && c->codec != binary) {
        return "--binary and --protocol are mutually exclusive";
    }
    if (c->is_binary) {
        c->codec = binary;
    }
    const char *wrong = c->auth_file != NULL ? read_auth_file(c) : NULL;
    return wrong != NULL ? wrong : check_auth(c);
}

const struct class_group group_protocol = {ROWS(rows), .init = init, .settle = settle};
