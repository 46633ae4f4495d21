/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * In which words: the protocol of a class, and who it says it is.
 */
#include "loadgen/options/group.h"

#include <string.h>

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
    {.name = "protocol", .kind = OPT_CALL, .call = call_protocol, .arg = "NAME",
     .help = "ascii, meta, binary, redis or http (ascii)"},
    {.name = "binary", .kind = OPT_FLAG, OF_CLASS(is_binary),
     .help = "the same as --protocol=binary"},
    {.letter = 'U', .name = "username", .kind = OPT_TEXT, OF_CLASS(username), .arg = "NAME",
     .help = "name to authenticate with"},
    {.letter = 'P', .name = "password", .kind = OPT_TEXT, OF_CLASS(password), .arg = "TEXT",
     .help = "password to authenticate with"},
};
/* clang-format on */

static void
init(struct lclass *c)
{
    c->codec = codec_at(0);
    c->username = "";
}

static const char *
check_auth(const struct lclass *c)
{
    if (c->password == NULL) {
        return c->username[0] != '\0' ? "--username needs --password" : NULL;
    }
    if ((c->codec->verbs & CODEC_BIT(CODEC_AUTH)) == 0) {
        return "the protocol has no words for authentication";
    }
    if (c->username[0] == '\0' && c->codec != &codec_redis) {
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
    if (c->is_binary && c->codec != codec_at(0) && c->codec != &codec_binary) {
        return "--binary and --protocol contradict each other";
    }
    if (c->is_binary) {
        c->codec = &codec_binary;
    }
    return check_auth(c);
}

const struct class_group group_protocol = {ROWS(rows), .init = init, .settle = settle};
