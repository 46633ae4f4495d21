/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace_file.h"

#include <errno.h>
#include <sys/stat.h>

#define ZSTD_MAGIC "\x28\xb5\x2f\xfd"
#define ZSTD_MAGIC_LEN 4
#define GZIP_MAGIC "\x1f\x8b"
#define GZIP_MAGIC_LEN 2

static const char *
open_zstd(struct trace_file *f, bool writes)
{
    return trace_zstd != NULL ? trace_zstd->open(&f->zstd, writes)
                              : "compressed, and this build has no zstd (see zstd -d)";
}

/* By how the file begins. As trace_file_open. */
static const char *
open_compressed(struct trace_file *f)
{
    char head[ZSTD_MAGIC_LEN];
    size_t len = fread(head, 1, sizeof head, f->file);
    rewind(f->file);
    if (len >= GZIP_MAGIC_LEN && memcmp(head, GZIP_MAGIC, GZIP_MAGIC_LEN) == 0) {
        return "compressed by gzip: gunzip it first, or compress it by zstd";
    }
    bool is_zstd = len == ZSTD_MAGIC_LEN && memcmp(head, ZSTD_MAGIC, len) == 0;
    return is_zstd ? open_zstd(f, false) : NULL;
}

const char *
trace_file_open(struct trace_file *f, const char *path)
{
    struct stat st;
    *f = (struct trace_file){.file = fopen(path, "re")};
    if (f->file == NULL || fstat(fileno(f->file), &st) != 0) {
        return strerror(errno);
    }
    if (!S_ISREG(st.st_mode)) {
        return "not a plain file: a trace is read more than once";
    }
    return open_compressed(f);
}

const char *
trace_file_read(struct trace_file *f, char *buf, size_t cap, size_t *len)
{
    if (f->zstd != NULL) {
        return trace_zstd->read(f->zstd, f->file, buf, cap, len);
    }
    *len = fread(buf, 1, cap, f->file);
    return ferror(f->file) ? strerror(errno) : NULL;
}

const char *
trace_file_create(struct trace_file *f, const char *path)
{
    static const char end[] = ".zst";
    size_t n = strlen(path);
    *f = (struct trace_file){.file = NULL};
    if (n >= sizeof end - 1 && strcmp(path + n - (sizeof end - 1), end) == 0) {
        const char *wrong = open_zstd(f, true);
        if (wrong != NULL) {
            return wrong;
        }
    }
    f->file = fopen(path, "we");
    return f->file != NULL ? NULL : strerror(errno);
}

const char *
trace_file_write(struct trace_file *f, const char *buf, size_t len)
{
    if (f->zstd != NULL) {
        return trace_zstd->write(f->zstd, f->file, buf, len, false);
    }
    return fwrite(buf, 1, len, f->file) == len ? NULL : strerror(errno);
}

const char *
trace_file_finish(struct trace_file *f)
{
    const char *wrong =
        f->zstd != NULL ? trace_zstd->write(f->zstd, f->file, NULL, 0, true) : NULL;
    FILE *file = f->file;
    f->file = NULL;
    return fclose(file) == 0 || wrong != NULL ? wrong : strerror(errno);
}

void
trace_file_close(struct trace_file *f)
{
    if (f->zstd != NULL) {
        trace_zstd->close(&f->zstd);
    }
    if (f->file != NULL) {
        fclose(f->file);
        f->file = NULL;
    }
}
