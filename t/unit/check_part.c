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
