/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define STAMP_BYTES 4096 /* behind the slab memory; the stamp is at their beginning */
#define STAMP_MAGIC UINT64_C(0x314d45522d534f51)
#define MODE_PRIVATE 0600

struct stamp {
    uint64_t magic, number;
};

/* "<what> FILE<suffix>: <why>"; false. */
static bool
fail(const struct memfile *f, const char *what, const char *suffix, int error, char *err,
     size_t err_len)
{
    return fail_because(err, err_len, "can't %s %s%s: %s", what, f->path, suffix,
                        strerror(error));
}

/* ---- opening --------------------------------------------------------------------------- */

/* The server may leave its directory before it writes FILE.meta, so it keeps it open. */
static bool
open_dir(struct memfile *f)
{
    char *copy = strdup(f->path);

    if (copy == NULL) {
        return false;
    }
    f->dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    free(copy);
    errno = error;
    return f->dir >= 0;
}

static bool
make_names(struct memfile *f)
{
    const char *slash = strrchr(f->path, '/');
    const char *name = slash != NULL ? slash + 1 : f->path;

    if (*name == '\0') {
        errno = EISDIR;
        return false;
    }
    if (asprintf(&f->meta, "%s.meta", name) < 0) {
        f->meta = NULL;
        return false;
    }
    if (asprintf(&f->temporary, "%s.meta.tmp", name) < 0) {
        f->temporary = NULL;
        return false;
    }
    return true;
}

/* Another user with the right to write to it could change items while they are served. */
static bool
check_file(struct memfile *f, char *err, size_t err_len)
{
    struct stat st;

    if (fstat(f->fd, &st) != 0) {
        return fail(f, "look at", "", errno, err, err_len);
    }
    if (!S_ISREG(st.st_mode)) {
        return fail_because(err, err_len, "%s is not a regular file", f->path);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return fail_because(err, err_len, "%s belongs to another user", f->path);
    }
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            return fail(f, "lock", "", errno, err, err_len);
        }
        return fail_because(err, err_len, "%s is in use by another server", f->path);
    }
    f->file_bytes = (uint64_t)st.st_size;
    return true;
}

bool
memfile_open(struct memfile *f, const char *path, char *err, size_t err_len)
{
    *f = (struct memfile){.fd = -1, .dir = -1, .path = strdup(path)};
    if (f->path == NULL) {
        return fail_because(err, err_len, "no memory for the name of the memory file");
    }
    if (!make_names(f) || !open_dir(f)) {
        return fail(f, "open", "", errno, err, err_len);
    }
    f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, MODE_PRIVATE);
    if (f->fd < 0) {
        return fail(f, "open", "", errno, err, err_len);
    }
    return check_file(f, err, err_len);
}

void
memfile_close(struct memfile *f)
{
    if (f->base != NULL) {
        must(munmap(f->base, f->bytes + STAMP_BYTES) == 0);
    }
    if (f->fd >= 0) {
        close(f->fd);
    }
    if (f->dir >= 0) {
        close(f->dir);
    }
    free(f->path);
    free(f->meta);
    free(f->temporary);
    *f = (struct memfile){.fd = -1, .dir = -1};
}

/* ---- memory ---------------------------------------------------------------------------- */

bool
memfile_had_size(const struct memfile *f, size_t bytes)
{
    return f->file_bytes == (uint64_t)bytes + STAMP_BYTES;
}

/* All of it at once, beginning with the first hole: a disk that is full later would end the process
 * in the middle of an item. Where there is no room the file stays as it was, for a start that asks
 * for less. */
static bool
reserve(struct memfile *f, size_t bytes, char *err, size_t err_len)
{
    off_t all = (off_t)(bytes + STAMP_BYTES);
    off_t hole = lseek(f->fd, 0, SEEK_HOLE);
    int error = 0;

    hole = hole > 0 ? hole : 0;
    do {
        error = hole < all ? posix_fallocate(f->fd, hole, all - hole) : 0;
    } while (error == EINTR);
    if (error != 0) {
        snprintf(err, err_len,
                 "can't reserve %zu megabytes (-m) for %s: %s; make room there or give "
                 "a smaller -m",
                 bytes >> 20, f->path, strerror(error));
        (void)!ftruncate(f->fd, (off_t)f->file_bytes);
        return false;
    }
    return memfile_had_size(f, bytes) || ftruncate(f->fd, all) == 0 ||
           fail(f, "resize", "", errno, err, err_len);
}

/* Into a range of addresses in which there is a multiple of `span`; what lies before and behind goes
 * back. NULL: errno says why. */
static char *
map_aligned(int fd, size_t bytes, size_t span)
{
    char *room = mmap(NULL, bytes + span, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED) {
        return NULL;
    }
    size_t before = -(uintptr_t)room & (span - 1);
    char *base =
        mmap(room + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (base == MAP_FAILED) {
        int error = errno;

        must(munmap(room, bytes + span) == 0);
        errno = error;
        return NULL;
    }
    /* The file's last page may be larger than what is in it. */
    size_t page = (size_t)getpagesize(), mapped = (bytes + page - 1) & -page;
    size_t behind = bytes + span - before - mapped;
    must(before == 0 || munmap(room, before) == 0);
    must(behind == 0 || munmap(base + mapped, behind) == 0);
    return base;
}

bool
memfile_map(struct memfile *f, size_t bytes, char *err, size_t err_len)
{
    must(f->base == NULL);
    if (!reserve(f, bytes, err, err_len)) {
        return false;
    }
    f->base = map_aligned(f->fd, bytes + STAMP_BYTES, memfile_offset_mask(bytes) + 1);
    if (f->base == NULL) {
        return fail(f, "map", "", errno, err, err_len);
    }
    f->bytes = bytes;
    return true;
}

/* ---- the stamp -------------------------------------------------------------------------- */

static struct stamp *
stamp_of(const struct memfile *f)
{
    return (struct stamp *)(void *)(f->base + f->bytes);
}

uint64_t
memfile_stamp(const struct memfile *f)
{
    const struct stamp *stamp = stamp_of(f);

    return stamp->magic == STAMP_MAGIC ? stamp->number : 0;
}

bool
memfile_set_stamp(struct memfile *f, uint64_t stamp, char *err, size_t err_len)
{
    *stamp_of(f) = (struct stamp){STAMP_MAGIC, stamp};
    if (msync(f->base, f->bytes + STAMP_BYTES, MS_SYNC) != 0 || fsync(f->fd) != 0) {
        return fail(f, "write", "", errno, err, err_len);
    }
    return true;
}

bool
memfile_clear_stamp(struct memfile *f, char *err, size_t err_len)
{
    *stamp_of(f) = (struct stamp){0, 0};
    return msync(stamp_of(f), STAMP_BYTES, MS_SYNC) == 0 ||
           fail(f, "write", "", errno, err, err_len);
}

/* ---- FILE.meta -------------------------------------------------------------------------- */

/* Reads or writes all of it. */
static bool
transfer(int fd, char *text, size_t len, bool is_write)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = is_write ? write(fd, text + done, len - done)
                             : read(fd, text + done, len - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? EIO : errno; /* it was longer a moment ago */
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool
read_opened(const struct memfile *f, int fd, size_t most, char **text, size_t *len,
            char *err, size_t err_len)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return fail(f, "look at", ".meta", errno, err, err_len);
    }
    if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > most) {
        return fail_because(err, err_len,
                            "%s.meta is not a file of this size (at most %zu bytes)",
                            f->path, most);
    }
    *len = (size_t)st.st_size;
    *text = malloc(*len + 1);
    if (*text == NULL) {
        return fail(f, "read", ".meta", ENOMEM, err, err_len);
    }
    if (!transfer(fd, *text, *len, false)) {
        int error = errno;

        free(*text);
        *text = NULL;
        return fail(f, "read", ".meta", error, err, err_len);
    }
    return true;
}

bool
memfile_read_meta(const struct memfile *f, size_t most, char **text, size_t *len,
                  char *err, size_t err_len)
{
    int fd = openat(f->dir, f->meta, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    *text = NULL;
    *len = 0;
    if (fd < 0) {
        return errno == ENOENT || fail(f, "open", ".meta", errno, err, err_len);
    }
    bool is_read = read_opened(f, fd, most, text, len, err, err_len);
    close(fd);
    return is_read;
}

/* Some file systems have nothing to do for a directory, and say so. */
static bool
sync_dir(const struct memfile *f)
{
    return fsync(f->dir) == 0 || errno == EINVAL;
}

static bool
write_temporary(const struct memfile *f, const char *text, size_t len)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

    (void)unlinkat(f->dir, f->temporary, 0); /* left by a crash */
    int fd = openat(f->dir, f->temporary, flags, MODE_PRIVATE);
    if (fd < 0) {
        return false;
    }
    bool is_written = transfer(fd, (char *)(uintptr_t)text, len, true) && fsync(fd) == 0;
    return close(fd) == 0 && is_written;
}

bool
memfile_write_meta(const struct memfile *f, const char *text, size_t len, char *err,
                   size_t err_len)
{
    if (!write_temporary(f, text, len) ||
        renameat(f->dir, f->temporary, f->dir, f->meta) != 0 || !sync_dir(f)) {
        int error = errno;

        (void)unlinkat(f->dir, f->temporary, 0);
        return fail_because(err, err_len,
                            "the items of %s are lost: can't write %s.meta: %s", f->path,
                            f->path, strerror(error));
    }
    return true;
}

bool
memfile_remove_meta(const struct memfile *f, char *err, size_t err_len)
{
    if ((unlinkat(f->dir, f->meta, 0) != 0 && errno != ENOENT) || !sync_dir(f)) {
        return fail(f, "remove", ".meta", errno, err, err_len);
    }
    return true;
}
