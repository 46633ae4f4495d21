/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Units of systemd for a layout: a template that all processes share, a drop-in for what is each
 * one's, and a target that starts and stops them together.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "mcqos/layout.h"

#define NAME "memcached-layout"

static bool
fail(char *why, const char *path)
{
    snprintf(why, LAYOUT_WHY_MAX, "cannot write %.200s: %s", path, strerror(errno));
    return false;
}

/* A file of the folder; NULL, with why. */
__attribute__((format(printf, 3, 4))) static FILE *
open_unit(const struct layout *l, char *why, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    int len = snprintf(path, sizeof path / 2, "%s/", l->options->layout.units);
    if (len < 0 || (size_t)len >= sizeof path / 2) {
        errno = ENAMETOOLONG;
        fail(why, l->options->layout.units);
        return NULL;
    }
    va_start(args, format);
    vsnprintf(path + len, sizeof path - (size_t)len, format, args);
    va_end(args);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    bool has_folder = mkdir(path, 0755) == 0 || errno == EEXIST;
    *slash = '/';
    FILE *out = has_folder ? fopen(path, "w") : NULL;
    if (out == NULL) {
        fail(why, path);
    }
    return out;
}

static bool
close_unit(FILE *out, const struct layout *l, char *why)
{
    bool is_written = !ferror(out);
    return (fclose(out) == 0 && is_written) || fail(why, l->options->layout.units);
}

/* A word of ExecStart=. */
static void
put_word(const char *word, FILE *out)
{
    fputs(" \"", out);
    for (; *word != '\0'; word++) {
        const char *before = *word == '"' || *word == '\\' ? "\\"
                             : *word == '%'                ? "%"
                             : *word == '$'                ? "$"
                                                           : "";
        fprintf(out, "%s%c", before, *word);
    }
    fputc('"', out);
}

static void
put_service(const struct layout *l, FILE *out)
{
    const struct options *o = l->options;
    fprintf(out,
            "[Unit]\n"
            "Description=memcached-qos on port %%i\n"
            "Documentation=man:memcached(1) man:mcqos(1)\n"
            "After=network.target\n"
            "PartOf=" NAME ".target\n"
            "\n"
            "[Service]\n"
            "ExecStart=%s -l",
            o->layout.program);
    put_word(o->layout.listen, out);
    fputs(" -p %i $INSTANCE", out);
    for (unsigned n = l->more; n < o->count; n++) {
        put_word(o->words[n], out);
    }
    fputs("\n"
          "Restart=on-failure\n"
          "DynamicUser=yes\n"
          "UMask=0077\n"
          "LimitNOFILE=1048576\n"
          "LimitMEMLOCK=infinity\n"
          "LimitRTPRIO=10\n"
          "LimitNICE=-20\n"
          "CapabilityBoundingSet=\n"
          "NoNewPrivileges=yes\n"
          "PrivateDevices=yes\n"
          "PrivateMounts=yes\n"
          "PrivateTmp=yes\n"
          "PrivateUsers=yes\n"
          "ProtectClock=yes\n"
          "ProtectControlGroups=yes\n"
          "ProtectHome=yes\n"
          "ProtectHostname=yes\n"
          "ProtectKernelLogs=yes\n"
          "ProtectKernelModules=yes\n"
          "ProtectKernelTunables=yes\n"
          "ProtectProc=invisible\n"
          "ProtectSystem=strict\n"
          "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n"
          "RestrictNamespaces=yes\n"
          "LockPersonality=yes\n"
          "MemoryDenyWriteExecute=yes\n"
          "SystemCallArchitectures=native\n"
          "SystemCallFilter=@system-service\n"
          "SystemCallFilter=~@privileged\n",
          out);
}

static bool
write_instance(const struct layout *l, const struct layout_instance *i, char *why)
{
    char own[LAYOUT_OWN_MAX];
    FILE *out = open_unit(l, why, NAME "@%u.service.d/instance.conf", i->port);
    if (out == NULL) {
        return false;
    }
    layout_own_args(i, own);
    fprintf(out, "[Service]\nCPUAffinity=%s\nEnvironment=\"INSTANCE=%s\"\n", i->list,
            own);
    return close_unit(out, l, why);
}

static bool
write_target(const struct layout *l, char *why)
{
    FILE *out = open_unit(l, why, NAME ".target");
    if (out == NULL) {
        return false;
    }
    fprintf(out, "[Unit]\nDescription=memcached-qos, layout %s: %u processes\n", l->shape,
            l->count);
    for (unsigned n = 0; n < l->count; n++) {
        fprintf(out, "Wants=" NAME "@%u.service\n", l->instances[n].port);
    }
    fputs("\n[Install]\nWantedBy=multi-user.target\n", out);
    return close_unit(out, l, why);
}

bool
units_write(const struct layout *l, char why[LAYOUT_WHY_MAX])
{
    FILE *out = open_unit(l, why, NAME "@.service");
    if (out == NULL) {
        return false;
    }
    put_service(l, out);
    bool is_written = close_unit(out, l, why) && write_target(l, why);
    for (unsigned n = 0; n < l->count && is_written; n++) {
        is_written = write_instance(l, &l->instances[n], why);
    }
    if (is_written) {
        fprintf(stderr,
                "mcqos: units are in %s; in /etc/systemd/system: systemctl "
                "daemon-reload, then "
                "systemctl enable --now " NAME ".target\n",
                l->options->layout.units);
    }
    return is_written;
}
