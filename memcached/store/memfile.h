/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The file that items outlive the process in, and the small one beside it that says how to
 * read it:
 *
 *   FILE        | page of slab memory | ... | page | stamp |      mapped, shared
 *   FILE.meta   text, there from an orderly stop until the next start
 *
 * The stamp is a random number that both have: what is written to FILE after the stop, or with
 * another FILE.meta, does not fit any more. FILE is locked while it is open.
 *
 * One thread; the mapping belongs to the caller. Private to store/.
 */
#pragma once

#include "base/must.h"

struct memfile {
    char *path; /* as it was given, for messages */
    char *meta, *temporary;
    int dir; /* in which the three names lie */
    int fd;
    uint64_t file_bytes; /* that it had when it was opened */
    char *base;          /* the mapping; NULL: none yet */
    size_t bytes;        /* of slab memory in it */
};

/* Creates it if need be. False with a sentence in err. */
must_check bool memfile_open(struct memfile *f, const char *path, char *err,
                             size_t err_len);
/* Also after memfile_open failed. */
void memfile_close(struct memfile *f);

/* The bits of an address in slab memory that say where in it: the memory begins at a multiple of a
 * power of two that is not less than its size. So what an address leads to does not depend on the
 * process that wrote it. */
static inline uintptr_t
memfile_offset_mask(size_t bytes)
{
    uintptr_t mask = 0;

    while (mask + 1 < bytes) {
        mask = mask * 2 + 1;
    }
    return mask;
}

/* Reserves room on the disk for `bytes` bytes of slab memory and maps them: as they are, if
 * the file had this size before, else with what it happens to have. False: so it has still. */
must_check bool memfile_map(struct memfile *f, size_t bytes, char *err, size_t err_len);
/* Whether the file was as long as memfile_map makes it. */
bool memfile_had_size(const struct memfile *f, size_t bytes);

/* 0: it has none. */
uint64_t memfile_stamp(const struct memfile *f);
/* Returns when the stamp, and all that was written to the mapping, is on the disk. */
must_check bool memfile_set_stamp(struct memfile *f, uint64_t stamp, char *err,
                                  size_t err_len);
/* Returns when it is gone from the disk. */
must_check bool memfile_clear_stamp(struct memfile *f, char *err, size_t err_len);

/* The text, which the caller frees; NULL and true: there is none. More than `most` bytes are
 * an error. */
must_check bool memfile_read_meta(const struct memfile *f, size_t most, char **text,
                                  size_t *len, char *err, size_t err_len);
/* Both return when it is on the disk. */
must_check bool memfile_write_meta(const struct memfile *f, const char *text, size_t len,
                                   char *err, size_t err_len);
must_check bool memfile_remove_meta(const struct memfile *f, char *err, size_t err_len);
