/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/form.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/num.h"

#define ERR_MAX 512
#define COLUMNS_MAX 2
#define LINE_MAX_BYTES 4096 /* comments too */
#define BETWEEN " \t,\r\n"

static char err[ERR_MAX];

static const char *
fail(const char *path, size_t line, const char *what)
{
    if (line > 0) {
        snprintf(err, sizeof err, "%s, line %zu: %s", path, line, what);
    } else {
        snprintf(err, sizeof err, "%s: %s", path, what);
    }
    return err;
}

/* The numbers of one line; COLUMNS_MAX + 1 when it is none of ours. */
static unsigned
split_line(char *line, double numbers[COLUMNS_MAX])
{
    unsigned count = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *p = line + strspn(line, BETWEEN); *p != '\0';) {
        size_t len = strcspn(p, BETWEEN);
        if (count == COLUMNS_MAX || !num_double(p, len, &numbers[count++])) {
            return COLUMNS_MAX + 1;
        }
        p += len;
        p += strspn(p, BETWEEN);
    }
    return count;
}

static const char *
add_row(struct numfile *f, const double *numbers, unsigned columns)
{
    if (f->rows > 0 && columns != f->columns) {
        return "not as many numbers as in the lines before";
    }
    f->columns = columns;
    if (f->rows >= NUMFILE_ROWS_MAX) {
        return "too many numbers for the memory";
    }
    f->values = alloc_grown(f->values, f->rows, columns * sizeof *f->values);
    memcpy(f->values + f->rows++ * columns, numbers, columns * sizeof *numbers);
    return NULL;
}

static const char *
read_lines(struct numfile *f, FILE *in, const char *path)
{
    char line[LINE_MAX_BYTES];
    size_t number = 0;
    const char *wrong = NULL;
    while (wrong == NULL && fgets(line, sizeof line, in) != NULL) {
        double numbers[COLUMNS_MAX];
        number++;
        bool is_whole = strchr(line, '\n') != NULL || feof(in); /* and without NULs */
        unsigned columns = split_line(line, numbers);
        if (!is_whole) {
            wrong = "too long, or no text";
        } else if (columns > COLUMNS_MAX) {
            wrong = "one or two numbers expected";
        } else if (columns > 0) {
            wrong = add_row(f, numbers, columns);
        }
    }
    if (wrong != NULL) {
        return fail(path, number, wrong);
    }
    if (ferror(in)) {
        return fail(path, 0, strerror(errno));
    }
    return f->rows > 0 ? NULL : fail(path, 0, "no numbers in it");
}

const char *
numfile_read(struct numfile *f, const char *path)
{
    *f = (struct numfile){.rows = 0};
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return fail(path, 0, strerror(errno));
    }
    const char *wrong = read_lines(f, in, path);
    fclose(in);
    if (wrong != NULL) {
        numfile_fini(f);
    }
    return wrong;
}

void
numfile_fini(struct numfile *f)
{
    free(f->values);
    *f = (struct numfile){.rows = 0};
}
