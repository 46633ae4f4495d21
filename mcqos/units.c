/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Units of systemd for a layout: a template that all processes share, a drop-in for what is each
 * one's, and a target that starts and stops them together.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "mcqos/layout.h"

#define NAME "memcached-layout"

/* A file of the folder, with all that `put` writes. False, with why. */
static bool
write_unit(const struct layout *l, const struct layout_instance *i, const char *name,
           void (*put)(const struct layout *, const struct layout_instance *, FILE *),
           char *why)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%s", l->options->layout.units, name);
    bool fits = len >= 0 && (size_t)len < sizeof path;
    FILE *out = NULL;
    if (fits) {
        char *slash = strrchr(path, '/');
        *slash = '\0';
        bool has_folder = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        out = has_folder ? fopen(path, "w") : NULL;
    } else {
        errno = ENAMETOOLONG;
    }
    bool is_written = out != NULL;
    if (is_written) {
        put(l, i, out);
        is_written = !ferror(out);
        is_written = fclose(out) == 0 && is_written;
    }
    return is_written || fail_because(why, LAYOUT_WHY_MAX, "cannot write %.200s: %s",
                                      path, strerror(errno));
}

/* A word of ExecStart=, with what `doubled` has in it twice. */
static void
put_word(const char *word, const char *doubled, FILE *out)
{
    fputc('"', out);
    for (; *word != '\0'; word++) {
        if (*word == '"' || *word == '\\') {
            fputc('\\', out);
        } else if (strchr(doubled, *word) != NULL) {
            fputc(*word, out);
        }
        fputc(*word, out);
    }
    fputc('"', out);
}

/* Variables are replaced in it; they are not in the program's own name. */
static void
put_argument(const char *word, FILE *out)
{
    fputc(' ', out);
    put_word(word, "%$", out);
}

static void
put_service(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    (void)i;
    const struct options *o = l->options;
    const char *folder = strrchr(o->layout.program, '/');
    fprintf(out,
            "[Unit]\n"
            "Description=memcached-qos on port %%i\n"
            "Documentation=man:%s(1) man:mcqos(1)\n",
            folder != NULL ? folder + 1 : o->layout.program);
    fputs("Wants=network-online.target\n"
          "After=network-online.target\n"
          "PartOf=" NAME ".target\n"
          "\n"
          "[Service]\n"
          "ExecStart=",
          out);
    put_word(o->layout.program, "%", out);
    fputs(" -l", out);
    put_argument(o->layout.listen, out);
    fputs(" -p %i $INSTANCE", out);
    for (unsigned n = l->more; n < o->count; n++) {
        put_argument(o->words[n], out);
    }
    fprintf(out, "\nRestart=on-failure\nDynamicUser=yes\n%s", units_hardening);
}

static void
put_instance(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    char own[LAYOUT_OWN_MAX];
    (void)l;
    layout_own_args(i, own);
    fprintf(out, "[Service]\nCPUAffinity=%s\nEnvironment=\"INSTANCE=%s\"\n", i->list,
            own);
}

static void
put_target(const struct layout *l, const struct layout_instance *i, FILE *out)
{
    fprintf(out, "[Unit]\nDescription=memcached-qos, layout %s: %u processes\n", l->shape,
            l->count);
    for (; i < l->instances + l->count; i++) {
        fprintf(out, "Wants=" NAME "@%u.service\n", i->port);
    }
    fputs("\n[Install]\nWantedBy=multi-user.target\n", out);
}

bool
units_write(const struct layout *l, char why[LAYOUT_WHY_MAX])
{
    const struct layout_instance *i = l->instances;
    bool is_written = write_unit(l, i, NAME "@.service", put_service, why) &&
                      write_unit(l, i, NAME ".target", put_target, why);
    for (; i < l->instances + l->count && is_written; i++) {
        char name[64];
        snprintf(name, sizeof name, NAME "@%u.service.d/instance.conf", i->port);
        is_written = write_unit(l, i, name, put_instance, why);
    }
    if (is_written) {
        fprintf(
            stderr,
            "mcqos: units are in %s; in /etc/systemd/system: systemctl daemon-reload, "
            "then systemctl enable --now " NAME ".target\n",
            l->options->layout.units);
    }
    return is_written;
}
