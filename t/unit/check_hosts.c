/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Lists of -l, element by element.
 */
#include "net/hosts.h"

#include "check_main.h"

static struct hosts_element element;
static char err[320];

static enum hosts_status
take(const char **list, bool has_prefixes)
{
    err[0] = '\0';
    struct hosts_rules rules = {.has_prefixes = has_prefixes};
    return hosts_next(list, rules, &element, err, sizeof err);
}

static const struct {
    const char *text;
    const char *host;
    int port;
} good[] = {
    {"127.0.0.1", "127.0.0.1", HOSTS_PORT_NONE},
    {"127.0.0.1:11211", "127.0.0.1", 11211},
    {"localhost:0", "localhost", 0},
    {"localhost:65535", "localhost", 65535},
    {"*", "", HOSTS_PORT_NONE},
    {"*:12", "", 12},
    {"::1", "::1", HOSTS_PORT_NONE},
    {"fe80::1:2:3", "fe80::1:2:3", HOSTS_PORT_NONE},
    {"[::1]", "::1", HOSTS_PORT_NONE},
    {"[::1]:80", "::1", 80},
    {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
};

TEST_LOOP(element_is_split, ROWS(good))
{
    for (int prefixes = 0; prefixes <= 1; prefixes++) {
        const char *list = good[_i].text;
        ck_assert_int_eq(take(&list, prefixes), HOSTS_OK);
        ck_assert_str_eq(element.host, good[_i].host);
        ck_assert_int_eq(element.port, good[_i].port);
        ck_assert_int_eq(element.binding, BINDING_DEFAULT);
        ck_assert_str_eq(element.tag, "");
        ck_assert_int_eq(take(&list, prefixes), HOSTS_END);
    }
}

static const struct {
    bool has_prefixes;
    const char *text;
    const char *error;
} bad[] = {
    {false, "tcp:127.0.0.1", "Invalid port number: \"127.0.0.1\""},
    {false, "host:", "Invalid port number: \"\""},
    {false, "host:65536", "Invalid port number: \"65536\""},
    {false, "host:-1", "Invalid port number: \"-1\""},
    {false, "host:1x", "Invalid port number: \"1x\""},
    {false, "host:99999999999999999999", "Invalid port number: \"99999999999999999999\""},
    {false, "[::1", "Invalid IPV6 address: \"[::1\""},
    {false, "[::1]x", "Invalid IPV6 address: \"[::1]x\""},
    {false, "[::1]:", "Invalid port number: \"\""},
    {false, "[", "Invalid IPV6 address: \"[\""},
    {false, "[]", "not an address to listen on: \"[]\""},
    {false, ":80", "not an address to listen on: \":80\""},
    {false, "proto[ascii]:host", "Invalid port number: \"host\""},
    {true, "tag[]:host", "Listener tags must be between 1 and 8 characters: \"\""},
    {true, "tag[123456789]:host",
     "Listener tags must be between 1 and 8 characters: \"123456789\""},
    {true, "tag_123456789_:host",
     "Listener tags must be between 1 and 8 characters: \"123456789\""},
    {true, "proto[http]:host", "Invalid protocol in listener: \"http\""},
    {true, "proto[proxy]:host", "Invalid protocol in listener: \"proxy\""},
    {true, "proto[]:host", "Invalid protocol in listener: \"\""},
    {true, "notls:host", "'notls' option is valid only when SSL is enabled"},
    {true, "tag[a]:mtls:host", "'mtls' option is valid only when SSL is enabled"},
    {true, "btls:host", "'btls' option is valid only when SSL is enabled"},
    {true, "proto[ascii]:", "no address in an element of -l"},
    {true, "proto[ascii", "not an address"},
};

TEST_LOOP(bad_element_is_named, ROWS(bad))
{
    const char *list = bad[_i].text;
    enum hosts_status status = take(&list, bad[_i].has_prefixes);
    if (strcmp(bad[_i].error, "not an address") == 0) {
        ck_assert_int_eq(status,
                         HOSTS_OK); /* a strange name, for the resolver to refuse */
        return;
    }
    ck_assert_int_eq(status, HOSTS_BAD);
    ck_assert_str_eq(err, bad[_i].error);
}

TEST(name_has_room_or_is_refused)
{
    char text[2 * HOSTS_NAME_MAX] = "";
    memset(text, 'h', HOSTS_NAME_MAX - 1);
    const char *list = text;
    ck_assert_int_eq(take(&list, true), HOSTS_OK);
    ck_assert_uint_eq(strlen(element.host), HOSTS_NAME_MAX - 1);
    text[HOSTS_NAME_MAX - 1] = 'h';
    list = text;
    ck_assert_int_eq(take(&list, true), HOSTS_BAD);
}

TEST(elements_are_separated_by_commas_and_semicolons)
{
    const char *list = ",a:1,;b;[::2]:3,,*;";
    ck_assert_int_eq(take(&list, false), HOSTS_OK);
    ck_assert_str_eq(element.host, "a");
    ck_assert_int_eq(take(&list, false), HOSTS_OK);
    ck_assert_str_eq(element.host, "b");
    ck_assert_int_eq(element.port, HOSTS_PORT_NONE);
    ck_assert_int_eq(take(&list, false), HOSTS_OK);
    ck_assert_str_eq(element.host, "::2");
    ck_assert_int_eq(element.port, 3);
    ck_assert_int_eq(take(&list, false), HOSTS_OK);
    ck_assert_str_eq(element.host, "");
    ck_assert_int_eq(take(&list, false), HOSTS_END);
    ck_assert_int_eq(take(&list, false), HOSTS_END);
}

TEST(prefixes_are_taken)
{
    const char *list =
        "proto[binary]:tag[front]:[::1]:5,tag_12345678_:h,proto[ascii]:*:6,"
        "proto[negotiating]:x";
    ck_assert_int_eq(take(&list, true), HOSTS_OK);
    ck_assert(element.binding == BINDING_BINARY);
    ck_assert_str_eq(element.tag, "front");
    ck_assert_str_eq(element.host, "::1");
    ck_assert_int_eq(element.port, 5);
    ck_assert_int_eq(take(&list, true), HOSTS_OK);
    ck_assert_int_eq(element.binding, BINDING_DEFAULT);
    ck_assert_str_eq(element.tag, "12345678");
    ck_assert_str_eq(element.host, "h");
    ck_assert_int_eq(take(&list, true), HOSTS_OK);
    ck_assert(element.binding == BINDING_ASCII);
    ck_assert_str_eq(element.host, "");
    ck_assert_int_eq(element.port, 6);
    ck_assert_int_eq(take(&list, true), HOSTS_OK);
    ck_assert(element.binding == BINDING_AUTO);
}

TEST(tls_is_said_behind_the_other_prefixes)
{
    for (int prefixes = 0; prefixes <= 1; prefixes++) {
        struct hosts_rules rules = {.has_prefixes = prefixes, .has_tls = true};
        const char *list = "h,notls:h:1,btls:[::1],mtls:*:3";
        ck_assert_int_eq(hosts_next(&list, rules, &element, err, sizeof err), HOSTS_OK);
        ck_assert(element.tls == TLS_DEFAULT);
        ck_assert_int_eq(hosts_next(&list, rules, &element, err, sizeof err), HOSTS_OK);
        ck_assert(element.tls == TLS_OFF);
        ck_assert_str_eq(element.host, "h");
        ck_assert_int_eq(hosts_next(&list, rules, &element, err, sizeof err), HOSTS_OK);
        ck_assert(element.tls == TLS_BASIC);
        ck_assert_str_eq(element.host, "::1");
        ck_assert_int_eq(hosts_next(&list, rules, &element, err, sizeof err), HOSTS_OK);
        ck_assert(element.tls == TLS_MUTUAL);
        ck_assert_int_eq(element.port, 3);
        ck_assert_int_eq(hosts_next(&list, rules, &element, err, sizeof err), HOSTS_END);
    }
    const char *list = "proto[ascii]:tag[a]:mtls:h,h";
    struct hosts_rules both = {.has_prefixes = true, .has_tls = true};
    ck_assert_int_eq(hosts_next(&list, both, &element, err, sizeof err), HOSTS_OK);
    ck_assert(element.binding == BINDING_ASCII);
    ck_assert_str_eq(element.tag, "a");
    ck_assert(element.tls == TLS_MUTUAL);
    ck_assert_int_eq(take(&list, true), HOSTS_OK);
    ck_assert(element.tls == TLS_OFF);
}
