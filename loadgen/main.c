/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcload: a tool for results; or options, then what they ask for: an answer, an agent, or runs
 * and their report.
 */
#include <errno.h>
#include <signal.h>

#include "loadgen/campaign/campaign.h"
#include "loadgen/options/options.h"
#include "loadgen/swarm/agent/agent.h"
#include "loadgen/tools/tool.h"

static enum exit_status
print_help(const struct options *o)
{
    if (o->help_topic != NULL) {
        return opt_help_topic(options_table(), o->help_topic, stdout, stderr)
                   ? EXIT_VALID
                   : EXIT_USAGE;
    }
    if (o->help == HELP_COMMON) {
        puts("usage: mcload [options]");
        opt_help_common(options_table(), stdout);
        puts("All options: --help or mcload(1); some: --help=TOPIC, --help=PART-OF-NAME");
        fputs("Topics: ", stdout);
        opt_help_topics(options_table(), stdout);
        putchar('\n');
        return EXIT_VALID;
    }
    printf("usage: mcload [options]\n"
           "       mcload plot|compare|merge [options] RESULT.json ...\n"
           "       mcload convert [options] trace IN OUT\n"
           "Load generator for memcached; see mcload(1).\n\n");
    opt_help(options_table(), stdout);
    puts("\nOne section or option: --help=TOPIC.");
    return EXIT_VALID;
}

static bool
asks_only(const struct options *o)
{
    return o->help != HELP_NONE || o->wants_engines || o->wants_models ||
           o->shown != NULL || o->wants_version;
}

static enum exit_status
answer(const struct options *o)
{
    signal(SIGPIPE, SIG_DFL); /* its reader may go before the end, as head does */
    if (o->help != HELP_NONE) {
        return print_help(o);
    }
    if (o->wants_engines) {
        for (unsigned i = 0; engine_all[i] != NULL; i++) {
            puts(engine_all[i]->name);
        }
    } else if (o->wants_models) {
        model_help(stdout);
    } else if (o->shown != NULL) {
        model_print(o->shown, stdout);
    } else {
        printf("mcload %s\n", PACKAGE_VERSION);
    }
    return EXIT_VALID;
}

static enum exit_status
run_and_report(const struct options *o, int argc, char **argv)
{
    struct output output;
    if (!output_open(&output, o, argc, argv, stderr)) {
        return EXIT_USAGE;
    }
    enum exit_status status = campaign_run(o, &output);
    return output_close(&output) ? status : EXIT_UNREACHABLE;
}

static enum exit_status
generate(int argc, char **argv)
{
    struct options o;
    enum exit_status status = EXIT_USAGE;
    /* getopt moves operands to the end: keep the order as typed for the report. */
    char **typed = calloc((size_t)argc + 1, sizeof *typed);
    must(typed != NULL);
    memcpy(typed, argv, (size_t)argc * sizeof *typed);
    if (options_parse(&o, argc, argv, stderr)) {
        status = asks_only(&o) ? answer(&o)
                 : o.is_agent  ? agent_run(&o, argc, argv)
                               : run_and_report(&o, argc, typed);
    }
    free(typed);
    options_fini(&o);
    return status;
}

int
main(int argc, char **argv)
{
    /* The reader of the report has gone: that is an error like others, and files that
     * were asked for are written all the same. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* nor is a file that may not grow */
    int status = argc > 1 && tool_is(argv[1])
                     ? (int)tool_run(argc - 1, argv + 1, stdout, stderr)
                     : (int)generate(argc, argv);
    if (!output_end(stdout)) {
        return (int)options_fail(stderr, EXIT_UNREACHABLE, "cannot write the report: %s",
                                 strerror(errno));
    }
    return status;
}
