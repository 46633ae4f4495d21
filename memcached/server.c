/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "config.h"
#include "control/balancer.h"
#include "control/governor.h"
#include "control/maintenance.h"
#include "daemon.h"
#include "keep.h"
#include "net/accept.h"
#include "net/worker_pool.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/watchers.h"
#include "net/worker.h"
#include "front/front.h"
#include "serve/auth.h"
#include "serve/prefix.h"
#include "serve/watch.h"
#include "sock/incoming.h"
#include "sock/inherited.h"
#include "sock/notify.h"
#include "status_log.h"

#define STATUS_FAILURE 1
#define STATUS_USAGE 64
#define STATUS_OS_ERROR 71
#define SPARE_RINGS 8       /* of the live log, beside the workers' */
#define VERBOSITY_CLASSES 2 /* -vv lists the slab classes */

struct server {
    struct settings *settings;
    struct daemon daemon;
    struct notify notify;
    struct inherited inherited;
    char *names[4]; /* what name_files() has made */
    struct keep keep;
    struct store_conf store_conf;
    struct serve_conf serve;
    struct auth *auth; /* NULL: no authentication */
    struct tls *tls;   /* NULL: TLS is off */
    struct serve_hooks hooks;
    struct placement placement;
    struct net_shared shared;
    struct watch watch;
    struct watchers watchers;
    bool has_log;      /* its thread runs */
    bool is_cut_short; /* a stop was asked for while it started */
    struct prefixes prefixes;
    struct listen listen;
    struct balancer balancer;
    struct governor governor;
    struct stats stats;
    struct loop loop;
    struct maint maint;
    struct maintenance maintenance;
    struct minute minute;
    struct admin *admin; /* NULL: there is no HTTP server */
};

/* The signals are blocked in the workers: the main loop takes them. */
static void
on_shutdown(void *ctx, bool is_graceful)
{
    (void)ctx;
    must(kill(getpid(), is_graceful ? SIGUSR1 : SIGINT) == 0);
}

static void
tell_ready(const struct server *sv)
{
    char status[STATUS_MAX];
    status_describe(&sv->stats, status);
    notify_ready(&sv->notify, status);
}

static void
on_hangup(void *ctx)
{
    struct server *sv = ctx;
    char err[512];
    notify_reloading(&sv->notify, clock_now());
    if (sv->tls != NULL &&
        !tls_reload(sv->tls, clock_rel(clock_now()), err, sizeof err)) {
        log_write(LOG_WARNING, "memcached: %s; the old certificate stays", err);
    }
    if (sv->serve.auth != NULL && !auth_reload(sv->serve.auth, err, sizeof err)) {
        log_write(LOG_WARNING, "memcached: %s; the old entries stay", err);
    }
    config_hangup(&sv->stats);
    tell_ready(sv);
}

static void
on_wake(void *ctx)
{
    config_work(ctx);
}

static void
wake(void *ctx)
{
    loop_call(ctx);
}

/* ---- set-up --------------------------------------------------------------------------- */

/* Says on stderr why the server does not start. Returns the exit status. */
__attribute__((format(printf, 2, 3))) static int
refuse(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("memcached: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return status;
}

/* While the process has the rights to read its key. */
static int
open_tls(struct server *sv)
{
    char err[512];
    if (!sv->settings->uses_tls) {
        return 0;
    }
    sv->tls = tls_open(&sv->settings->tls, err, sizeof err);
    return sv->tls != NULL ? 0 : refuse(STATUS_USAGE, "%s", err);
}

/* Before the process leaves its directory and its terminal, after it has lost its rights. */
static int
open_auth(struct server *sv)
{
    const struct settings *s = sv->settings;
    const pthread_mutexattr_t *lock_attr = placement_locks(&sv->placement);
    char err[512];
    if (s->token_file != NULL) {
        sv->auth = auth_open_tokens(s->token_file, lock_attr, err, sizeof err);
    } else if (s->uses_sasl) {
        sv->auth = auth_open_sasl(s->password_file, lock_attr, err, sizeof err);
    } else {
        return 0;
    }
    return sv->auth != NULL ? 0 : refuse(STATUS_FAILURE, "%s", err);
}

/* What is wrong with the file is said before the process leaves its terminal. */
static int
open_keep(struct server *sv)
{
    sv->store_conf = sv->settings->store;
    return keep_open(&sv->keep, sv->settings->memory_file, &sv->store_conf)
               ? 0
               : STATUS_FAILURE;
}

/* For a process that leaves its directory: *name, whose path begins at `at`, as it is seen from here. An empty
 * path stays. */
static int
make_absolute(const char **name, size_t at, const char *what, char **made)
{
    if (*name == NULL || (*name)[at] == '\0') {
        return 0;
    }
    char *path = file_absolute(*name + at);
    if (path == NULL || asprintf(made, "%.*s%s", (int)at, *name, path) < 0) {
        *made = NULL;
    }
    free(path);
    if (*made == NULL) {
        return refuse(STATUS_OS_ERROR, "cannot find the directory of the %s %s: %s", what,
                      *name, strerror(errno));
    }
    *name = *made;
    return 0;
}

/* While the directory is that of the command line. */
static int
name_files(struct server *sv)
{
    struct settings *s = sv->settings;
    size_t prefix = strlen(SETTINGS_ADMIN_UNIX);
    bool leaves = s->is_daemon && !s->wants_core; /* with -r it stays */
    bool is_file =
        s->admin != NULL && strncmp(s->admin, SETTINGS_ADMIN_UNIX, prefix) == 0;
    int status = make_absolute(&s->pid_file, 0, "pid file", &sv->names[0]);
    if (status == 0 && leaves) {
        status =
            make_absolute(&s->listen.socket_path, 0, "UNIX socket (-s)", &sv->names[1]);
    }
    if (status == 0 && leaves) {
        status = make_absolute(&s->listen.port_file, 0, "port file", &sv->names[2]);
    }
    return status == 0 && leaves && is_file
               ? make_absolute(&s->admin, prefix, "UNIX socket of --admin", &sv->names[3])
               : status;
}

/* While the process is the one that the manager has started, and before it opens files. */
static int
open_manager(struct server *sv)
{
    char err[512];
    notify_open(&sv->notify);
    if (!inherited_open(&sv->inherited, err, sizeof err)) {
        return refuse(STATUS_OS_ERROR, "%s", err);
    }
    if (sv->inherited.count > 0) {
        sv->settings->listen.inherited = &sv->inherited;
    }
    return 0;
}

static int
prepare_process(struct server *sv)
{
    const struct settings *s = sv->settings;
    /* -c and the HTTP server in any case; the rest where the limit allows it */
    unsigned least, files = settings_files(s, &least);
    int status = daemon_open_streams();
    if (status == 0) {
        status = open_manager(sv);
    }
    files += sv->inherited.count * (unsigned)s->threads;
    if (status == 0) {
        status = daemon_raise_files(files, least);
    }
    if (status == 0 && s->wants_core) {
        status = daemon_allow_core();
    }
    if (s->locks_memory) {
        daemon_allow_locking();
    }
    struct placement_conf placement = settings_placement(s);
    placement_init(&sv->placement, &placement);
    if (status == 0) {
        status = open_tls(sv);
    }
    if (status == 0) {
        status = daemon_drop_root(s->user);
    }
    if (!placement_reduce(&sv->placement) && status == 0) {
        status = STATUS_OS_ERROR;
    }
    if (status == 0) {
        status = open_auth(sv);
    }
    if (status == 0) {
        status = open_keep(sv);
    }
    if ((sv->tls != NULL || sv->auth != NULL) && !s->wants_core) {
        daemon_hide_memory();
    }
    if (status == 0) {
        status = name_files(sv);
    }
    if (status == 0 && s->is_daemon) {
        status = daemon_detach(&sv->daemon, s->wants_core, s->verbosity > 0);
    }
    if (status == 0 && s->locks_memory) {
        /* the items, and as much again for what belongs to them and the threads' stacks */
        daemon_lock_memory(SETTINGS_LOCKED_TIMES * ((uint64_t)s->memory_mb << 20));
    }
    must(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    return status;
}

static void
list_classes(struct store *s)
{
    for (unsigned id = 1; id <= store_class_count(s); id++) {
        struct store_class_stats class;
        store_class_stats(s, id, CLOCK_REL_START, &class);
        fprintf(stderr, "slab class %3u: chunk size %9u perslab %7u\n", id,
                class.chunk_size, class.chunks_per_page);
    }
}

static int
create_store(struct server *sv)
{
    char err[256];
    sv->shared.store = store_create(&sv->store_conf, err, sizeof err);
    if (sv->shared.store == NULL) {
        return refuse(STATUS_FAILURE, "%s", err);
    }
    if (sv->settings->tracks_sizes && !store_track_sizes(sv->shared.store, true)) {
        log_write(LOG_WARNING, "memcached: warning: sizes are not tracked: %s",
                  !sv->settings->store.use_cas ? "items have no CAS" : "no memory");
    }
    return 0;
}

/* Signals belong to the main loop: the workers inherit the block, and one that comes while
 * the server starts waits for the loop. */
static void
block_signals(bool is_blocked)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGHUP);
    PTHREAD_OK(pthread_sigmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL));
}

static bool
has_pending_stop(void)
{
    sigset_t set;
    must(sigpending(&set) == 0);
    return sigismember(&set, SIGTERM) || sigismember(&set, SIGINT);
}

static int
open_store(struct server *sv)
{
    sv->store_conf.on_event = watch_on_store_event;
    sv->store_conf.event_ctx = &sv->watch;
    sv->store_conf.on_map = membind_area;
    sv->store_conf.map_ctx = &sv->placement.membind;
    sv->store_conf.lock_attr = placement_locks(&sv->placement);
    int status = create_store(sv);
    if (status != 0) {
        return status;
    }
    /* Items are in the store from here on, and in the file no more. */
    if (sv->keep.has_items) {
        block_signals(true);
    }
    switch (keep_load(&sv->keep, sv->shared.store, &sv->store_conf)) {
    case KEEP_DONE:
        break;
    case KEEP_LOST:
        store_destroy(&sv->shared.store);
        status = create_store(sv);
        if (status != 0) {
            return status;
        }
        break;
    case KEEP_FAILED:
        return STATUS_FAILURE;
    }
    if (sv->settings->verbosity >= VERBOSITY_CLASSES) {
        list_classes(sv->shared.store);
    }
    return 0;
}

/* Before what takes long: it says that the server starts. */
static int
open_admin(struct server *sv)
{
    char err[512];
    if (sv->settings->admin == NULL) {
        return 0;
    }
    sv->admin = admin_open(sv->settings, err, sizeof err);
    return sv->admin != NULL ? 0 : refuse(STATUS_OS_ERROR, "--admin: %s", err);
}

static int
open_listeners(struct server *sv)
{
    char err[512];
    const struct listen_conf *conf = &sv->settings->listen;
    return listen_open(&sv->listen, conf, &sv->shared, err, sizeof err)
               ? 0
               : refuse(STATUS_OS_ERROR, "%s", err);
}

static int
no_thread(const char *what, int error)
{
    return refuse(STATUS_OS_ERROR,
                  "can't start %s: %s; raise the limits on threads and memory "
                  "(ulimit -u, ulimit -v, TasksMax=)",
                  what, strerror(error));
}

static int
start_log(struct server *sv)
{
    const struct settings *s = sv->settings;
    struct watch_conf conf = {.threads = (unsigned)s->threads + SPARE_RINGS,
                              .ring_bytes = s->worker_log_bytes,
                              .outbox_bytes = s->watcher_log_bytes,
                              .is_long = rules_of(s->profile)->log_is_long,
                              .last_gid = sv->keep.last_gid,
                              .wake = watchers_wake,
                              .wake_ctx = &sv->watchers,
                              .lock_attr = placement_locks(&sv->placement)};
    if (!watch_init(&sv->watch, &conf) ||
        !watchers_start(&sv->watchers, &sv->watch, &sv->shared.registry,
                        &sv->shared.open_conns, sv->tls)) {
        return no_thread("the live log", errno);
    }
    watch_set_prefixes(&sv->watch, s->counts_prefixes);
    sv->has_log = true;
    return 0;
}

static int
start_workers(struct server *sv)
{
    struct net_shared *shared = &sv->shared;
    if (!worker_pool_create(shared)) {
        return refuse(STATUS_OS_ERROR, "can't create the workers: out of memory");
    }
    sv->stats.workers = shared->workers;
    sv->stats.worker_count = shared->worker_count;
    int error = worker_pool_start(shared);
    placement_schedule(&sv->placement);
    bool has_stats =
        error != 0 || stats_start(&sv->stats); /* while all workers are alive */
    bool are_able = worker_pool_go(shared);
    if (error != 0) {
        (void)no_thread("all workers", error);
        return STATUS_FAILURE;
    }
    if (!are_able) {
        return refuse(STATUS_OS_ERROR, "can't create the event base of a worker thread");
    }
    return has_stats ? 0 : refuse(STATUS_FAILURE, "no memory for statistics");
}

/* The CPUs of the workers, for the distribution of connections. Pinned workers get the
 * connections of their CPUs unless something else is asked for. False: no memory. */
static bool
prepare_steering(struct server *sv)
{
    struct net_shared *shared = &sv->shared;
    struct settings *s = sv->settings;
    const struct pin_plan *plan = &sv->placement.pinner.plan;
    if (!s->is_steered && (s->listen.napi_ids > 0 || plan->policy != PIN_NONE)) {
        s->listen.steer = s->listen.napi_ids > 0 ? STEER_NAPI : STEER_CPU;
    }
    enum steer_mode mode = s->listen.steer;
    bool wants_topology = mode != STEER_RR && mode != STEER_P2C;
    unsigned known_count;
    struct cpu_place *known = topo_places(&sv->placement.pinner.all, &known_count);
    bool has_map = known != NULL && steer_map_init(&shared->steer, plan->places,
                                                   plan->count, known, known_count);
    free(known);
    shared->loads = calloc(plan->count, sizeof *shared->loads);
    if (!has_map || shared->loads == NULL) {
        fprintf(stderr, "memcached: no memory for the map of the workers\n");
        return false;
    }
    shared->calls_home = s->balances && wants_topology &&
                         steer_map_is_pinned(&shared->steer) &&
                         !incoming_has_flows(INCOMING_FLOWS_PATH);
    shared->checks_rx = mode != STEER_RR && steer_map_is_pinned(&shared->steer);
    return true;
}

/* False, with a message: no memory. */
static bool
wire(struct server *sv)
{
    struct settings *s = sv->settings;
    sv->serve = s->serve;
    maint_init(&sv->maint, &s->maint, placement_locks(&sv->placement));
    sv->serve.maint = &sv->maint;
    store_set_automove(sv->shared.store, &s->automove);
    sv->serve.auth = sv->auth;
    sv->stats.settings = s;
    sv->stats.shared = &sv->shared;
    sv->stats.listen = &sv->listen;
    sv->stats.watchers = &sv->watchers;
    PTHREAD_OK(pthread_mutex_init(&sv->stats.lock, placement_locks(&sv->placement)));
    sv->hooks = (struct serve_hooks){.stats = front_stats,
                                     .qos = front_qos,
                                     .shutdown = on_shutdown,
                                     .ctx = &sv->stats};
    if (sv->tls != NULL) {
        sv->hooks.refresh_certs = stats_refresh_certs;
    }
    sv->shared.tls = sv->tls;
    sv->shared.serve = &sv->serve;
    sv->shared.hooks = &sv->hooks;
    sv->shared.pinner = &sv->placement.pinner;
    sv->shared.membind = &sv->placement.membind;
    sv->shared.schedule = &sv->placement.schedule;
    sv->shared.resctrl = &sv->placement.resctrl;
    settings_wire(s, &sv->shared);
    sv->shared.peer_seed = rng_seed();
    worker_pool_init(&sv->shared.worker_pool);
    sv->shared.watch = &sv->watch;
    sv->shared.watchers = &sv->watchers;
    sv->shared.prefixes = &sv->prefixes;
    prefixes_init(&sv->prefixes, s->prefix_delimiter, s->counts_prefixes, rng_seed());
    registry_init(&sv->shared.registry, placement_locks(&sv->placement));
    sv->shared.governor = &sv->governor;
    if (!governor_init(&sv->governor, &sv->shared, s->cpu_percent)) {
        perror("memcached: eventfd");
        return false;
    }
    return prepare_steering(sv);
}

/* ---- tear-down ------------------------------------------------------------------------ */

static void
tear_down(struct server *sv)
{
    admin_close(&sv->admin);
    accept_fini(&sv->listen);
    steer_map_fini(&sv->shared.steer);
    free(sv->shared.loads);
    udp_close(&sv->shared.udp);
    watch_fini(&sv->watch);
    prefixes_fini(&sv->prefixes);
    maint_fini(&sv->maint);
    registry_fini(&sv->shared.registry);
    worker_pool_fini(&sv->shared.worker_pool);
    free(sv->shared.workers);
    free(sv->shared.stints);
    governor_fini(&sv->governor);
    limiter_fini(&sv->shared.core.limiter);
    stats_fini(&sv->stats);
    inherited_close(&sv->inherited);
    auth_close(&sv->auth);
    tls_close(&sv->tls);
    placement_fini(&sv->placement);
    store_destroy(&sv->shared.store);
    keep_close(&sv->keep);
    for (unsigned i = 0; i < sizeof sv->names / sizeof *sv->names; i++) {
        free(sv->names[i]);
    }
    settings_fini(sv->settings);
}

/* Without anything to reload SIGHUP keeps its old meanings: it ends the server, or a daemon
 * ignores it. */
static bool
has_to_reload(const struct settings *s)
{
    return rules_of(s->profile)->hangup_reloads || s->uses_sasl ||
           s->token_file != NULL || s->uses_tls || s->config.path != NULL;
}

/* One that comes while the server starts waits for the loop. */
static void
block_hangup(const struct settings *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    if (has_to_reload(s)) {
        PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    }
}

static void
tell_end(const struct server *sv)
{
    if (sv->serve.rules->prints_signal) {
        printf("Signal handled: %s.\n", strsignal(sv->loop.ended_by));
        fflush(stdout);
    } else if (sv->loop.ended_by == SIGUSR1) {
        log_write(LOG_WARNING, "Gracefully stopping");
    } else {
        log_write(LOG_INFO, "Exiting normally");
    }
}

/* After a graceful stop. A start that failed, or was cut short by another signal, does not cost the items
 * either. */
static int
save_items(struct server *sv, int status)
{
    bool has_served = status == 0 && !sv->is_cut_short;
    bool saves = has_served ? sv->loop.ended_by == SIGUSR1 : sv->keep.has_items;
    uint64_t last_gid = sv->has_log ? sv->watch.gid : sv->keep.last_gid;
    if (saves && !keep_save(&sv->keep, sv->shared.store, last_gid)) {
        return STATUS_FAILURE;
    }
    return status;
}

/* By the thread in the background. */
static void
each_second(void *ctx)
{
    struct server *sv = ctx;
    placement_second(&sv->placement);
    stats_second(&sv->stats);
    status_log_second(&sv->stats, &sv->minute, clock_now());
    for (unsigned i = 0; i < sv->shared.worker_count; i++) {
        pool_trim(&sv->shared.workers[i].core.pool);
    }
}

static int
start_maintenance(struct server *sv)
{
    struct maintenance_conf conf = settings_maintenance();
    conf.store = sv->shared.store;
    conf.maint = &sv->maint;
    conf.second = each_second;
    conf.second_ctx = sv;
    minute_init(&sv->minute, clock_now());
    if (!maintenance_start(&sv->maintenance, &conf)) {
        return no_thread("the background thread", errno);
    }
    return 0;
}

static int
serve(struct server *sv)
{
    block_signals(true);
    int status = open_listeners(sv);
    if (status == 0 && sv->settings->pid_file != NULL) {
        status =
            daemon_write_pid(sv->settings->pid_file, sv->serve.rules->starts_its_own_way);
    }
    if (status == 0) {
        status = start_log(sv);
    }
    if (status == 0) {
        status = start_workers(sv);
    }
    if (status == 0) {
        status = start_maintenance(sv);
    }
    if (status == 0 && !auth_serve(sv->auth)) {
        status = no_thread("the thread for logins", errno);
    }
    if (status == 0 && !admin_serve(sv->admin, &sv->stats)) {
        status = refuse(STATUS_FAILURE, "out of memory");
    }
    if (status == 0 &&
        !(loop_open(&sv->loop) &&
          (!has_to_reload(sv->settings) || loop_watch_hangup(&sv->loop, on_hangup, sv)) &&
          loop_watch_calls(&sv->loop, on_wake, &sv->stats))) {
        status =
            refuse(STATUS_OS_ERROR, "can't create the event base of the main thread");
    }
    if (status == 0 && sv->settings->balances &&
        !balancer_start(&sv->balancer, &sv->shared, sv->loop.base)) {
        status = refuse(STATUS_FAILURE, "out of memory");
    }
    if (status == 0) {
        placement_settle(&sv->placement);
        if (!governor_start(&sv->governor, sv->loop.base) ||
            !accept_start(&sv->listen, &sv->loop.poller, sv->shared.workers)) {
            status = refuse(STATUS_OS_ERROR, "no memory for the listening sockets");
            balancer_stop(&sv->balancer);
        }
    }
    if (status == 0) {
        status_log_start(&sv->stats);
        daemon_ready(&sv->daemon);
        config_serve(&sv->stats, wake, &sv->loop);
        tell_ready(sv);
        sv->is_cut_short = has_pending_stop();
        block_signals(false);
        loop_run(&sv->loop);
    }
    admin_leave(sv->admin);
    if (status == 0) {
        config_close(&sv->stats);
        notify_stopping(&sv->notify);
        tell_end(sv);
        block_signals(true); /* one more signal must not cut the replies short */
        accept_stop(&sv->listen);
        balancer_stop(&sv->balancer);
        governor_stop(&sv->governor);
        loop_close(&sv->loop);
    }
    maintenance_stop(&sv->maintenance); /* it reaches into the workers' pools */
    worker_pool_stop(&sv->shared);
    if (sv->has_log) {
        watchers_stop(&sv->watchers);
    }
    status = save_items(sv, status);
    if (sv->settings->pid_file != NULL) {
        daemon_remove_pid(sv->settings->pid_file);
    }
    return status;
}

static int
check_store(const struct settings *s)
{
    char err[256];
    bool at_once = s->store.preallocates || s->memory_file != NULL;
    if (!store_check(&s->store, at_once, err, sizeof err)) {
        fprintf(stderr, "memcached: %s\n", err);
        return STATUS_FAILURE;
    }
    return 0;
}

int
server_check(struct settings *s)
{
    static struct server server;
    struct server *sv = &server;
    sv->settings = s;
    int status = daemon_check_user(s->user);
    if (status == 0 && s->pid_file != NULL) {
        status = daemon_check_pid(s->pid_file, rules_of(s->profile)->starts_its_own_way);
    }
    if (status == 0) {
        status = open_tls(sv);
    }
    if (status == 0) {
        status = open_auth(sv);
    }
    auth_close(&sv->auth);
    tls_close(&sv->tls);
    return status == 0 ? check_store(s) : status;
}

int
server_run(struct settings *s)
{
    static struct server server;
    struct server *sv = &server;
    sv->settings = s;
    sv->daemon = (struct daemon){-1, -1};
    block_hangup(s);
    log_set_level(sv->settings->verbosity);
    /* the journal has its own; and what scripts know of upstream's lines stays */
    log_set_stamps(s->verbosity > 0 && rules_of(s->profile)->starts_its_own_way &&
                   getenv("JOURNAL_STREAM") == NULL);
    int status = prepare_process(sv);
    if (status != 0) {
        return status;
    }
    clock_init();
    if (!placement_plan(&sv->placement)) {
        return STATUS_OS_ERROR;
    }
    busypoll_advise(&s->busy_poll);
    status = open_admin(sv);
    if (status == 0) {
        status = open_store(sv);
    }
    if (status != 0) {
        admin_close(&sv->admin);
        return status;
    }
    status = wire(sv) ? serve(sv) : save_items(sv, STATUS_OS_ERROR);
    tear_down(sv);
    return status;
}
