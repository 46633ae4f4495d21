/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcload: options, servers, run, report.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/swarm/agent/agent.h"
#include "loadgen/campaign/campaign.h"
#include "loadgen/run/stats_poll.h"
#include "loadgen/swarm/leader/leader.h"
#include "loadgen/options/options.h"
#include "loadgen/campaign/output.h"
#include "loadgen/run/run.h"
#include "loadgen/tools/tool.h"

static enum exit_status
print_help(const char *topic)
{
    if (topic != NULL) {
        return opt_help_topic(options_table(), topic, stdout, stderr) ? EXIT_VALID
                                                                      : EXIT_USAGE;
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
replays(const struct options *o)
{
    bool replays = false;
    for (unsigned i = 0; i < o->classes_len; i++) {
        replays = replays || o->classes[i].trace.file.path != NULL;
    }
    return replays;
}

static enum exit_status
resolve(const struct options *o, struct target *targets)
{
    char err[512];
    for (unsigned i = 0; i < o->servers_len; i++) {
        if (!target_resolve(&targets[i], o->servers[i], o->transport, err, sizeof err)) {
            fprintf(stderr, "mcload: %s\n", err);
            return targets[i].is_malformed ? EXIT_USAGE : EXIT_UNREACHABLE;
        }
        if (targets[i].transport == TRANSPORT_UDP && replays(o)) {
            fprintf(stderr, "mcload: %s: a trace is not sent in datagrams (--trace)\n",
                    targets[i].name);
            return EXIT_USAGE;
        }
    }
    return EXIT_VALID;
}

/* Only when a server speaks it: a build without TLS does without. */
static enum exit_status
open_tls(const struct options *o, const struct target *targets, struct ltls **tls)
{
    char err[512];
    bool is_wanted = false;
    *tls = NULL;
    for (unsigned i = 0; i < o->servers_len; i++) {
        is_wanted = is_wanted || targets[i].transport == TRANSPORT_TLS;
    }
    if (is_wanted && (*tls = ltls_open(&o->tls, err, sizeof err)) == NULL) {
        fprintf(stderr, "mcload: %s\n", err);
        return EXIT_USAGE;
    }
    return EXIT_VALID;
}

static bool
has_progress(const struct options *o)
{
    return !o->is_quiet && (o->progress == PROGRESS_ALWAYS ||
                            (o->progress == PROGRESS_AUTO && isatty(STDERR_FILENO)));
}

/* Before it is known what the schedule says. */
static const char *
mode_of(const struct lclass *c)
{
    bool has_rate =
        c->qps > 0 || c->qps_share > 0 || schedule_varies(&c->traffic.schedule);
    return traffic_mode_name(has_rate ? c->traffic.mode : TRAFFIC_CLOSED);
}

static void
print_banner(const struct options *o)
{
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        fprintf(stderr,
                "mcload: %s: %s loop, %jd x %jd connections to each of %u servers\n",
                c->name, mode_of(c), (intmax_t)c->threads, (intmax_t)c->connections,
                o->servers_len);
    }
}

/* What runs: this process alone, or a swarm that it leads. */
struct runner {
    const struct run_conf *conf;
    struct run *run;
    struct leader *leader;
};

static enum exit_status
runner_open(struct runner *r, const struct run_conf *conf, const struct output *output)
{
    *r = (struct runner){conf, NULL, NULL};
    return conf->options->agents_len > 0
               ? leader_open(&r->leader, conf, output->argc, output->argv)
               : run_open(&r->run, conf);
}

static enum exit_status
run_one(void *runner, const struct run_spec *spec, struct result *result)
{
    struct runner *r = runner;
    enum exit_status status = r->leader != NULL ? leader_once(r->leader, spec, result)
                                                : run_once(r->run, spec, result);
    if (status == EXIT_VALID && result->server_stats != NULL) {
        result->evictions = server_stats_evictions(result->server_stats);
    } else if (status == EXIT_VALID && result_misses_records(result)) {
        result->evictions = stats_poll_evictions(r->conf->options, r->conf->targets);
    }
    return status;
}

static uint64_t
runner_loaded(const struct runner *r)
{
    return r->leader != NULL ? leader_loaded(r->leader) : run_loaded(r->run);
}

static void
runner_close(struct runner *r)
{
    leader_close(&r->leader);
    run_close(&r->run);
}

static enum exit_status
load_and_run(const struct options *o, const struct target *targets, struct ltls *tls,
             const struct shard *shard, struct output *output)
{
    struct runner runner;
    enum exit_status status;
    if (o->verbose > 1 && !o->is_quiet) {
        print_banner(o);
    }
    struct run_conf conf = {
        .options = o,
        .targets = targets,
        .tls = tls,
        .shard = shard,
        .has_progress = has_progress(o),
        .err = stderr,
    };
    status = runner_open(&runner, &conf, output);
    if (status != EXIT_VALID) {
        return status;
    }
    if (!o->load_only) {
        struct campaign_conf campaign = {
            .options = o,
            .run_one = run_one,
            .arg = &runner,
            .output = output,
            .err = stderr,
            .log = !o->is_quiet && (o->verbose > 1 || conf.has_progress) ? stderr : NULL,
        };
        status = campaign_run(&campaign);
    } else if (!o->is_quiet) {
        fprintf(stderr, "mcload: %ju records stored\n",
                (uintmax_t)runner_loaded(&runner));
    }
    runner_close(&runner);
    return status;
}

static enum exit_status
resolve_and_run(const struct options *o, struct output *output)
{
    static struct target targets[OPTIONS_SERVERS_MAX];
    struct ltls *tls;
    struct shard shard;
    enum exit_status status = resolve(o, targets);
    status = status != EXIT_VALID ? status : open_tls(o, targets, &tls);
    if (status == EXIT_VALID) {
        bool is_shared = o->shard != SHARD_NONE && o->servers_len > 1;
        bool is_made = shard_init(&shard, o->shard, targets, o->servers_len);
        must(is_made);
        status = load_and_run(o, targets, tls, is_shared ? &shard : NULL, output);
        shard_fini(&shard);
        ltls_close(tls);
    }
    return status;
}

static enum exit_status
generate(int argc, char **argv)
{
    struct options o;
    struct output output;
    /* getopt moves operands to the end: keep the order as typed for the report. */
    char **typed = calloc((size_t)argc + 1, sizeof *typed);
    must(typed != NULL);
    memcpy(typed, argv, (size_t)argc * sizeof *typed);
    enum exit_status status = EXIT_USAGE;
    if (options_parse(&o, argc, argv, stderr)) {
        if (o.wants_help) {
            status = print_help(o.help_topic);
        } else if (o.wants_engines) {
            for (unsigned i = 0; engine_at(i) != NULL; i++) {
                puts(engine_at(i)->name);
            }
            status = EXIT_VALID;
        } else if (o.wants_models) {
            model_help(stdout);
            status = EXIT_VALID;
        } else if (o.shown != NULL) {
            model_print(o.shown, stdout);
            status = EXIT_VALID;
        } else if (o.wants_version) {
            printf("mcload %s\n", PACKAGE_VERSION);
            status = EXIT_VALID;
        } else if (o.is_agent) {
            status = agent_run(&o, argc, argv);
        } else if (output_open(&output, &o, argc, typed, stderr)) {
            status = resolve_and_run(&o, &output);
            if (!output_close(&output)) {
                status = EXIT_UNREACHABLE; /* whatever the results were */
            }
        }
    }
    free(typed);
    options_fini(&o);
    return status;
}

int
main(int argc, char **argv)
{
    /* Nobody reads the report any more: that is an error like others, and files that were
     * asked for are written all the same. */
    signal(SIGPIPE, SIG_IGN);
    int status = argc > 1 && tool_is(argv[1])
                     ? (int)tool_run(argc - 1, argv + 1, stdout, stderr)
                     : (int)generate(argc, argv);
    if (!output_end(stdout)) {
        fprintf(stderr, "mcload: cannot write the report: %s\n", strerror(errno));
        return EXIT_UNREACHABLE;
    }
    return status;
}
