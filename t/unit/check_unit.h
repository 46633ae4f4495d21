/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the unit tests of base, proto and serve share.
 */
#pragma once

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/rng.h"
#include "text.h"

#define SUITE_TIMEOUT_S 300 /* sanitizers on a busy machine */

/* Each assertion that holds would write its place into a file of the runner, which took more
 * than nine tenths of the time of tests with inner loops. Those that fail do so as ever. */
#define _mark_point(file, line) ((void)0)
#define expect(cond) ck_assert(cond)
/* A text with this in it. */
#define expect_part(text, part)                                                          \
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in %s", part, text)

/* As many rounds as a table has rows, for a loop test. */
#define ROWS(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* Of each word of a list. */
#define expect_each(word, list, condition)                                               \
    for (int each_ = 0; each_ < ROWS(list); each_++) {                                   \
        const char *word = (list)[each_];                                                \
        ck_assert_msg(condition, "\"%s\"", word);                                        \
    }

/* A variable that this function, given its address, ends where its block ends. */
#define SCOPED(fini) __attribute__((cleanup(fini)))
/* A pointer that is freed there. */
#define FREED SCOPED(free_at)

static inline void
free_at(void *pointer)
{
    void *p;
    memcpy(&p, pointer, sizeof p);
    free(p);
}

/* Exactly n bytes, so that a sanitizer sees a read or write just beyond. To be freed. */
static inline char *
exact_copy(const void *p, size_t n)
{
    char *copy = calloc(1, n);
    ck_assert(copy != NULL || n == 0);
    if (n > 0) {
        memcpy(copy, p, n);
    }
    return copy;
}

static inline struct rng
rng_of(uint64_t seed, uint64_t stream)
{
    struct rng rng;
    rng_init(&rng, seed, stream);
    return rng;
}

/* How often the part is in the text. */
static inline unsigned
count_of(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p++) {
        n++;
    }
    return n;
}

/* For qsort. */
static inline int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Big-endian. */
static inline void
text_add_be(struct text *t, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0) {
        char byte = (char)(uint8_t)(value >> 8 * bytes);
        text_add(t, &byte, 1);
    }
}

static inline void
text_free(struct text *t)
{
    free(t->p);
    *t = (struct text){.p = NULL};
}

/* Appends a pattern in which "{250k}" stands for 250 times k and "{1@}" for a NUL byte. */
static inline void
text_expand(struct text *t, const char *pattern)
{
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p != '{') {
            text_add(t, p, 1);
            continue;
        }
        size_t count = strtoul(p + 1, NULL, 10);
        p = strchr(p, '}');
        char *run = malloc(count + 1);
        ck_assert_ptr_nonnull(run);
        memset(run, p[-1] == '@' ? '\0' : p[-1], count);
        text_add(t, run, count);
        free(run);
    }
}

/* A number, both ends included. */
#define expect_between(value, least, most)                                               \
    expect_between_((double)(value), (double)(least), (double)(most), #value)

static inline void
expect_between_(double value, double least, double most, const char *what)
{
    ck_assert_msg(value >= least && value <= most, "%s is %.9g, not %.9g to %.9g", what,
                  value, least, most);
}

#define SCRATCH_PATH 128

/* For mkstemp and mkdtemp: a name where the files of tests go. */
static inline void
scratch_name(char path[SCRATCH_PATH], const char *name)
{
    const char *folder = getenv("TMPDIR");
    int len =
        snprintf(path, SCRATCH_PATH, "%s/%s.XXXXXX", folder ? folder : "/tmp", name);
    ck_assert_int_lt(len, SCRATCH_PATH);
}

/* A new file with these bytes. */
static inline void
scratch_file(char path[SCRATCH_PATH], const void *bytes, size_t len)
{
    scratch_name(path, "check");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    ck_assert_int_eq(close(fd), 0);
}

/* "kind:FILE" of a new file with that content, which is there until the test ends. */
static inline const char *
scratch_word(const char *kind, const char *content)
{
    static char word[SCRATCH_PATH];
    char path[SCRATCH_PATH];
    scratch_file(path, content, strlen(content));
    snprintf(word, sizeof word, "%s:/proc/self/fd/%d", kind, open(path, O_RDONLY));
    unlink(path);
    return word;
}

static inline int
run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
