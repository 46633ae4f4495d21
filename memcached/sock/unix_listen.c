/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/unix_listen.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *
remedy(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "; remove what is there, or choose another path";
    case EACCES:
        return "; the user (-u) needs the right to create it, or choose another path";
    default:
        return "";
    }
}

/* 0, or the errno. */
static int
bind_and_listen(int fd, const struct sockaddr_un *addr, unsigned mode, int backlog)
{
    mode_t old_mask = umask(~(mode_t)mode & 0777);
    int error = bind(fd, (const struct sockaddr *)addr, sizeof *addr) == 0 ? 0 : errno;
    umask(old_mask);
    return error == 0 && listen(fd, backlog) != 0 ? errno : error;
}

int
unix_listen(const char *path, unsigned mode, int backlog, const char *option,
            struct unix_file *file, char *err, size_t err_len)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct stat st;
    *file = (struct unix_file){.path = path};
    if (*path == '\0') { /* the kernel would take a name that no file's rights protect */
        snprintf(err, err_len, "failed to listen on UNIX socket: the path is empty (%s)",
                 option);
        return -1;
    }
    if (strlen(path) >= sizeof addr.sun_path) {
        snprintf(
            err, err_len,
            "failed to listen on UNIX socket: path is too long, at most %zu bytes: %s",
            sizeof addr.sun_path - 1, path);
        return -1;
    }
    memcpy(addr.sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        unlink(path); /* left by an earlier run; bind says so if it cannot be removed */
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = fd >= 0 ? bind_and_listen(fd, &addr, mode, backlog) : errno;
    if (error != 0) {
        const char *advice = remedy(error);
        snprintf(err, err_len, "failed to listen on UNIX socket: %s: %s%s%s%s%s", path,
                 strerror(error), advice, *advice != '\0' ? " (" : "",
                 *advice != '\0' ? option : "", *advice != '\0' ? ")" : "");
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    if (lstat(path, &st) == 0) {
        file->dev = st.st_dev;
        file->ino = st.st_ino;
    }
    return fd;
}

void
unix_remove(const struct unix_file *file)
{
    struct stat st;
    if (lstat(file->path, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino) {
        unlink(file->path);
    }
}
