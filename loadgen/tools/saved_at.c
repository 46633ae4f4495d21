/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What of saved.h needs no reader.
 */
#include "loadgen/tools/saved.h"

#include <errno.h>
#include <sys/stat.h>

const char *const saved_names[SAVED_AT] = {[SAVED_P50] = "p50",
                                           [SAVED_P95] = "p95",
                                           [SAVED_P99] = "p99",
                                           [SAVED_P999] = "p99.9"};
const double saved_shares[SAVED_AT] = {
    [SAVED_P50] = .5, [SAVED_P95] = .95, [SAVED_P99] = .99, [SAVED_P999] = .999};

const char *const saved_loads[SAVED_LOADS] = {
    "workload", "records", "key_size", "value_size", "getcount", "update",
};

unsigned
saved_differs(const struct saved_load *a, const struct saved_load *b, unsigned i)
{
    while (i < SAVED_LOADS && (a->text[i][0] == '\0' || b->text[i][0] == '\0' ||
                               strcmp(a->text[i], b->text[i]) == 0)) {
        i++;
    }
    return i;
}

void
saved_fini(struct saved *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        free(s->runs[i].name);
        free(s->runs[i].rows);
        hist_destroy(&s->runs[i].latency);
    }
    free(s->runs);
    free(s->name);
    *s = (struct saved){.runs = NULL};
}

bool
saved_write(const char *path, const char *text, char *err)
{
    bool is_stdout = path == NULL || strcmp(path, "-") == 0;
    struct stat made;
    FILE *out = is_stdout ? stdout : fopen(path, "w");
    bool is_good = out != NULL && fputs(text, out) != EOF && fflush(out) == 0;
    int why = errno;
    if (!is_stdout && out != NULL) {
        is_good = fclose(out) == 0 && is_good;
    }
    if (!is_good) {
        snprintf(err, SAVED_ERR_MAX, "cannot write %s: %s", is_stdout ? "stdout" : path,
                 strerror(why));
    }
    if (!is_good && out != NULL && !is_stdout && stat(path, &made) == 0 &&
        S_ISREG(made.st_mode)) {
        remove(path);
    }
    return is_good;
}
