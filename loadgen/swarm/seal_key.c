/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What of seal.h needs no library: the key's file, random bytes, comparing, forgetting.
 */
#include "loadgen/swarm/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

static bool
read_all(int fd, struct seal_key *key)
{
    for (;;) {
        if (key->len == sizeof key->bytes) {
            errno = EFBIG;
            return false;
        }
        ssize_t n = read(fd, key->bytes + key->len, sizeof key->bytes - key->len);
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        key->len += n > 0 ? (size_t)n : 0;
    }
}

bool
seal_read_key(struct seal_key *key, const char *path, char *err, size_t err_len)
{
    struct stat st;
    key->len = 0;
    if (path == NULL) {
        return true;
    }
    if (seal_ops == NULL) {
        return fail_because(err, err_len,
                            "this build has no OpenSSL, and so no --key-file");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1 || fstat(fd, &st) != 0) {
        snprintf(err, err_len, "cannot open the key file %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        snprintf(err, err_len, "the key file %s is not a regular file", path);
    } else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        snprintf(err, err_len, "the key file %s is open to others: chmod 600 it", path);
    } else if (!read_all(fd, key)) {
        snprintf(err, err_len, "cannot read the key file %s: %s", path, strerror(errno));
        key->len = 0;
    } else if (key->len < SEAL_KEY_MIN) {
        snprintf(err, err_len, "the key in %s is shorter than %d bytes", path,
                 SEAL_KEY_MIN);
        key->len = 0;
    }
    if (fd != -1) {
        close(fd);
    }
    return key->len > 0;
}

bool
seal_random(uint8_t *p, size_t len)
{
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return true;
}

bool
seal_equals(const uint8_t *a, const uint8_t *b, size_t len)
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < len; i++) {
        differs |= a[i] ^ b[i];
    }
    return differs == 0;
}

void
seal_forget(void *p, size_t len)
{
    explicit_bzero(p, len);
}
