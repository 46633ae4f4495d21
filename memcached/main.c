/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * argv -> settings -> what they ask for.
 */
#include <errno.h>
#include <signal.h>

#include "base/must.h"
#include "config.h"
#include "place/placement.h"
#include "server.h"
#include "front/settings.h"

#define STATUS_USAGE 64
#define STATUS_OS_ERROR 71

static void
print_version(const struct settings *s)
{
    printf("memcached %s\n", settings_version(s));
    printf("%s %s\n", PACKAGE_NAME, PACKAGE_VERSION);
}

static int
print_help(const struct settings *s)
{
    if (s->help_topic == NULL) {
        print_version(s);
    }
    return settings_help(s) ? 0 : STATUS_USAGE;
}

static void
print_license(void)
{
    puts(PACKAGE_NAME " is free software under the BSD 3-clause licence; see COPYING.\n"
                      "It uses libevent (BSD 3-clause), hwloc (BSD 3-clause), xxHash "
                      "(BSD 2-clause), Cyrus SASL (BSD with attribution) and OpenSSL "
                      "(Apache 2.0).");
}

static int
print_pin_plan(struct settings *s)
{
    if (!s->is_pinned) {
        must(pin_spec_parse(&s->pin, NULL) == NULL);
    }
    struct placement_conf conf = settings_placement(s);
    return placement_print(&conf);
}

static int
check(struct settings *s)
{
    int status = server_check(s);
    if (status == 0) {
        puts("configuration is good");
    }
    if (status == 0 && s->verbosity > 0) {
        config_print(&s->config, stdout);
    }
    return status;
}

int
main(int argc, char **argv)
{
    static struct settings settings;
    struct settings *s = &settings;
    int status = 1;
    /* A file that may not grow, such as a log, is an error like others. */
    signal(SIGXFSZ, SIG_IGN);
    /* Where the server is the entry point of an image, its name may come once more. */
    if (argc > 1 && strcmp(argv[1], "memcached") == 0) {
        argv[1] = argv[0];
        argv++;
        argc--;
    }
    if (!settings_parse(s, argc, argv, &status)) {
        settings_fini(s);
        return status;
    }
    status = 0;
    switch (s->action) {
    case ACTION_HELP:
    case ACTION_SHORT_HELP:
        status = print_help(s);
        break;
    case ACTION_VERSION:
        print_version(s);
        break;
    case ACTION_LICENSE:
        print_license();
        break;
    case ACTION_PIN_DRY_RUN:
        status = print_pin_plan(s);
        break;
    case ACTION_DOCTOR:
        status = settings_doctor(s);
        break;
    case ACTION_CHECK:
        status = check(s);
        break;
    case ACTION_SERVE:
        return server_run(s);
    }
    settings_fini(s);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "memcached: cannot write to standard output: %s\n",
                strerror(errno));
        status = STATUS_OS_ERROR;
    }
    return status;
}
