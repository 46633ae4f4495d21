/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Stands in for libFuzzer: runs a fuzz target on the files and directories named, or, when
 * none is, on its corpus in the source tree; says so in TAP. A finding ends the program.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fuzz.h"

#define PATH_LEN 4096

static unsigned count;

static void
replay_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        printf("Bail out! %s: %s\n", path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    struct text bytes = {0};
    char piece[PATH_LEN];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, in)) > 0) {
        text_add(&bytes, piece, n);
    }
    must(!ferror(in) && fclose(in) == 0);
    printf("# %s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput((const uint8_t *)bytes.p, bytes.len);
    printf("ok %u - %s\n", ++count, strrchr(path, '/') + 1);
    free(bytes.p);
}

static void
replay(const char *path)
{
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0) {
        replay_file(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char file[PATH_LEN];
        if (names[i]->d_name[0] != '.') {
            must((size_t)snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name) <
                 sizeof file);
            replay_file(file);
        }
        free(names[i]);
    }
    free(names);
}

/* "t/fuzz/fuzz_ascii.ut" has its corpus in t/fuzz/corpus/fuzz_ascii. */
static void
replay_own_corpus(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    const char *top = getenv("TOP_SRCDIR");
    char dir[PATH_LEN];
    must((size_t)snprintf(dir, sizeof dir, "%s/t/fuzz/corpus/%.*s",
                          top != NULL ? top : ".", (int)strcspn(name, "."),
                          name) < sizeof dir);
    replay(dir);
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        replay_own_corpus(argv[0]);
    }
    for (int i = 1; i < argc; i++) {
        replay(argv[i]);
    }
    printf("1..%u\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
