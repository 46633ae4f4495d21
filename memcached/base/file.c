/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/file.h"

#include <unistd.h>

bool
file_read_line(const char *path, char *line, size_t len)
{
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fgets(line, (int)len, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    line[is_read ? strcspn(line, "\n") : 0] = '\0';
    return is_read;
}

char *
file_absolute(const char *path)
{
    char *absolute = NULL;
    char *here = *path == '/' ? strdup("") : getcwd(NULL, 0);
    if (here != NULL &&
        asprintf(&absolute, "%s%s%s", here, *path == '/' ? "" : "/", path) < 0) {
        absolute = NULL;
    }
    free(here);
    return absolute;
}
