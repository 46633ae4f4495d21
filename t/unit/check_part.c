/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Texts in parts: what stands behind a head, and lists, whose bytes end where they end.
 */
#include "base/part.h"

#include "check_main.h"

static const struct {
    const char *text, *head, *after;
} heads[] = {
    {"cap:5", "cap:", "5"}, {"cap:", "cap:", ""},     {"cap", "cap:", NULL},
    {"", "cap:", NULL},     {"xcap:5", "cap:", NULL}, {"a", "", "a"},
};

TEST_ROWS(test_after, heads, row->text)
{
    const char *after = part_after(row->text, row->head);
    ck_assert_pstr_eq(after, row->after);
}

static const struct {
    const char *text;
    bool is_good;
    const char *host, *port;
} hosts[] = {
    {"a", true, "a", "1"},
    {"a:22", true, "a", "22"},
    {"a:", false, NULL, NULL},
    {"1.2.3.4:22", true, "1.2.3.4", "22"},
    {"::1", true, "::1", "1"},
    {"fe80::2:22", true, "fe80::2:22", "1"},
    {"[::1]", true, "::1", "1"},
    {"[::1]:22", true, "::1", "22"},
    {"[a]:b:c", true, "a", "b:c"},
    {"[::1]:", false, NULL, NULL},
    {"1234567", true, "1234567", "1"},
    {"12345678", false, NULL, NULL},
    {"", false, NULL, NULL},
    {":22", false, NULL, NULL},
    {"[]", false, NULL, NULL},
    {"[]:22", false, NULL, NULL},
    {"[::1", false, NULL, NULL},
    {"[::1]x", false, NULL, NULL},
    {"[", false, NULL, NULL},
};

TEST_ROWS(test_host, hosts, row->text)
{
    char host[8 + 8] = "", *end = host + sizeof host - 1;
    const char *port = "1";
    size_t size = strlen(row->text) == 8 ? 8 : sizeof host;
    *end = '!';
    ck_assert_int_eq(part_host(row->text, host, size, &port), row->is_good);
    ck_assert_int_eq(*end, '!');
    if (row->is_good) {
        ck_assert_str_eq(host, row->host);
        ck_assert_str_eq(port, row->port);
    }
}

struct heard {
    char text[64]; /* each part in brackets */
    const char *stop;
};

static const char *
hear(void *arg, const char *p, size_t len)
{
    struct heard *h = arg;
    size_t at = strlen(h->text);
    snprintf(h->text + at, sizeof h->text - at, "[%.*s]", (int)len, p);
    return h->stop != NULL && len == strlen(h->stop) && memcmp(p, h->stop, len) == 0
               ? "stopped"
               : NULL;
}

static const struct {
    const char *text, *parts, *stop;
} lists[] = {
    {"", "[]", NULL},
    {"a", "[a]", NULL},
    {"a,b", "[a][b]", NULL},
    {",", "[][]", NULL},
    {"a,,b,", "[a][][b][]", NULL},
    {"a,b,c", "[a][b]", "b"},
    {"a,", "[a][]", ""},
};

TEST_ROWS(test_each, lists, row->text)
{
    struct heard h = {.stop = row->stop};
    size_t n = strlen(row->text);
    FREED char *p = exact_copy(row->text, n);
    ck_assert_pstr_eq(part_each(p, n, ',', hear, &h),
                      row->stop != NULL ? "stopped" : NULL);
    ck_assert_str_eq(h.text, row->parts);
}
