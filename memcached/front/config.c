/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The options of a file and of the command line, together; "qos reload" and "qos save".
 */
#include "front/config.h"

#include <errno.h>
#include <pthread.h>

#include "base/file.h"
#include "base/log.h"
#include "base/owner_of.h"
#include "front/front.h"
#include "front/reload.h"

#define WHERE_MAX 4200
#define ANSWER_BYTES 30000 /* of lines; a line more may be begun */
#define ANSWER_LINE 500

/* ---- reading -------------------------------------------------------------------------- */

const char *
config_find(int argc, char **argv, const char *name)
{
    size_t len = strlen(name);
    const char *value = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *text = argv[i];
        if (strncmp(text, "--", 2) != 0 || strncmp(text + 2, name, len) != 0) {
            continue;
        }
        if (text[2 + len] == '=') {
            value = text + 2 + len + 1;
        } else if (text[2 + len] == '\0' && i + 1 < argc) {
            value = argv[i + 1];
        }
    }
    return value;
}

const char *
config_find_line(const struct config *c, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < c->file.count; i++) {
        if (strcmp(c->file.lines[i].name, name) == 0) {
            value = c->file.lines[i].value;
        }
    }
    return value;
}

/* A list that OPT_TEXT may point into and OPT_WORDS may cut. */
static char **
copy_words(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    for (int i = 0; words != NULL && i < argc; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) {
            while (i-- > 0) {
                free(words[i]);
            }
            free(words);
            return NULL;
        }
    }
    return words;
}

bool
config_open(struct config *c, int argc, char **argv, const char *path, FILE *err)
{
    *c = (struct config){.argc = argc, .argv = argv, .words = copy_words(argc, argv)};
    path = path != NULL ? path : config_find(argc, argv, "config");
    c->path = path != NULL && *path != '\0' ? file_absolute(path) : NULL;
    if (c->words == NULL || (path != NULL && *path != '\0' && c->path == NULL)) {
        fputs("memcached: out of memory, or the directory is gone\n", err);
        return false;
    }
    return c->path == NULL || config_file_read(&c->file, c->path, err);
}

void
config_fini(struct config *c)
{
    config_file_fini(&c->file);
    for (int i = 0; c->words != NULL && i < c->argc; i++) {
        free(c->words[i]);
    }
    free(c->words);
    free(c->given);
    free(c->path);
    *c = (struct config){.path = NULL};
}

/* ---- applying ------------------------------------------------------------------------- */

static const char *
hear(void *arg, const struct opt *row, const char *value)
{
    struct config *c = arg;
    struct config_given *given =
        reallocarray(c->given, c->given_count + 1, sizeof *given);
    if (given == NULL) {
        return "out of memory";
    }
    c->given = given;
    c->given[c->given_count++] = (struct config_given){row, value, c->from, c->line};
    return NULL;
}

static enum opt_result
apply_line(struct settings *s, const struct config_line *line, struct opt_table *table,
           FILE *err)
{
    static char where[WHERE_MAX];
    char program[] = "", *argv[] = {program, line->name, line->value, NULL};
    int ignored = 0;
    snprintf(where, sizeof where, "%s:%u", line->file, line->number);
    table->program = where;
    s->config.from = line->file;
    s->config.line = line->number;
    return *line->name == '-'
               ? opt_parse(table, s, line->value != NULL ? 3 : 2, argv, err, &ignored)
               : opt_set(table, s, line->name, line->value, err, &ignored);
}

static void
apply_file(struct settings *s, const struct opt_table *table, FILE *err)
{
    struct opt_table of_file = *table;
    struct config_file *file = &s->config.file;
    of_file.is_file = true;
    of_file.tells_words_on_stdout = of_file.tells_as_getopt = false;
    of_file.skips_operands = false;
    for (size_t i = 0; i < file->count && file->errors < CONFIG_ERRORS_MAX; i++) {
        if (apply_line(s, &file->lines[i], &of_file, err) != OPT_DONE) {
            config_file_blame(file, err);
        }
    }
    s->config.from = NULL;
}

bool
config_apply(struct settings *s, const struct opt_table *table, FILE *err,
             int *exit_status)
{
    struct opt_table t = *table;
    t.heard = hear;
    t.heard_arg = &s->config;
    apply_file(s, &t, err);
    *exit_status = CONFIG_STATUS;
    return s->config.file.errors == 0 && opt_parse(&t, s, s->config.argc, s->config.words,
                                                   err, exit_status) == OPT_DONE;
}

/* ---- telling -------------------------------------------------------------------------- */

/* Whether nothing that comes later takes its place. */
static bool
counts(const struct config *c, size_t at)
{
    for (size_t i = at + 1; i < c->given_count; i++) {
        if (c->given[i].row == c->given[at].row && !c->given[at].row->adds_up) {
            return false;
        }
    }
    return true;
}

static void
print_given(const struct config_given *g, FILE *out)
{
    char letter[] = {'-', g->row->letter, '\0'};
    const char *name = g->row->name != NULL   ? g->row->name
                       : g->row->word != NULL ? g->row->word
                                              : letter;
    fputs(name, out);
    if (g->value != NULL) {
        bool is_quoted = *g->value == '\0' || (strpbrk(g->value, " \t#") != NULL &&
                                               strchr(g->value, '"') == NULL);
        const char *quote = is_quoted ? "\"" : "";
        fprintf(out, "%s%s%s%s", *name == '-' ? " " : " = ", quote, g->value, quote);
    }
    if (g->file != NULL) {
        fprintf(out, "  # %s:%u\n", g->file, g->line);
    } else {
        fputs("  # command line\n", out);
    }
}

void
config_print(const struct config *c, FILE *out)
{
    for (size_t i = 0; i < c->given_count; i++) {
        const struct config_given *g = &c->given[i];
        bool is_default = g->value != NULL && g->row->preset != NULL &&
                          strcmp(g->value, g->row->preset) == 0;
        if (!is_default && !g->row->is_argv_only && counts(c, i)) {
            print_given(g, out);
        }
    }
}

/* ---- options -------------------------------------------------------------------------- */

/* It was looked for before (config_open). */
static const char *
set_config(void *conf, const char *text)
{
    struct settings *s = conf;
    bool is_second = s->config.is_seen;
    s->config.is_seen = true;
    if (*text == '\0') {
        return "there is no name of a file";
    }
    return is_second ? "one file is given to --config; it may include others" : NULL;
}

/* clang-format off */
static const struct opt options[] = {
    {.name = "config", SET(set_config), .arg = "FILE", .section = PROCESS,
     .is_argv_only = true, .common = 18,
     .help = "read options from FILE, before those of the command line"},
    {.name = "check-config", .kind = OPT_SET, OF(action), .value = ACTION_CHECK,
     .section = PROCESS, .is_argv_only = true,
     .help = "say what is wrong with the options, and exit; -v lists them"},
};
/* clang-format on */

/* ---- what workers ask for ------------------------------------------------------------- */

enum job_kind { JOB_RELOAD, JOB_SAVE };

/* What a worker has asked for; main's from `request` until its message has been pushed. */
struct config_job {
    struct parked parked; /* first */
    struct config_job *next;
    enum job_kind kind;
    bool is_done, has_failed;
    char *report; /* lines, CR LF behind each; NULL: no memory */
};

struct state {
    pthread_mutex_t lock; /* everything but what is in the jobs */
    struct config_job *first, **end;
    void (*wake)(void *ctx);
    void *wake_ctx;
    bool is_open;
};

static struct state *
state_of(const struct stats *st)
{
    return front_state(st->settings, &front_config);
}

static void
init(struct settings *s)
{
    struct state *own = front_state(s, &front_config);
    PTHREAD_OK(pthread_mutex_init(&own->lock, NULL));
    own->end = &own->first;
}

void
config_serve(struct stats *st, void (*wake)(void *ctx), void *ctx)
{
    struct state *own = state_of(st);
    PTHREAD_OK(pthread_mutex_lock(&own->lock));
    own->wake = wake;
    own->wake_ctx = ctx;
    own->is_open = true;
    PTHREAD_OK(pthread_mutex_unlock(&own->lock));
}

static struct config_job *
take_jobs(struct state *own)
{
    PTHREAD_OK(pthread_mutex_lock(&own->lock));
    struct config_job *jobs = own->first;
    own->first = NULL;
    own->end = &own->first;
    PTHREAD_OK(pthread_mutex_unlock(&own->lock));
    return jobs;
}

static void
give_back(struct config_job *jobs)
{
    while (jobs != NULL) {
        struct config_job *job = jobs;
        jobs = job->next;
        mbox_push(job->parked.back.to, job->parked.back.message);
    }
}

void
config_close(struct stats *st)
{
    struct state *own = state_of(st);
    PTHREAD_OK(pthread_mutex_lock(&own->lock));
    own->is_open = false;
    PTHREAD_OK(pthread_mutex_unlock(&own->lock));
    give_back(take_jobs(own));
}

/* Logs each line, and puts it into the answer for clients while there is room. */
static void
put_lines(char *text, FILE *answer)
{
    char *line;
    size_t left_out = 0;
    while ((line = strsep(&text, "\n")) != NULL) {
        if (*line == '\0') {
            continue;
        }
        log_write(LOG_WARNING, "memcached: %s", line);
        if (ftell(answer) < ANSWER_BYTES) {
            fprintf(answer, "%.*s\r\n", ANSWER_LINE, line);
        } else {
            left_out++;
        }
    }
    if (left_out > 0) {
        fprintf(answer, "NOTE %zu more lines are in the log\r\n", left_out);
    }
}

/* Returns the answer; NULL: no memory. */
static char *
run_job(struct stats *st, enum job_kind kind, bool *has_failed)
{
    char *text = NULL, *report = NULL;
    size_t len, report_len;
    FILE *out = open_memstream(&text, &len);
    *has_failed = true;
    if (out == NULL) {
        return NULL;
    }
    *has_failed = !(kind == JOB_RELOAD ? reload_file : reload_save)(st, out);
    FILE *answer = fclose(out) == 0 ? open_memstream(&report, &report_len) : NULL;
    if (answer != NULL) {
        put_lines(text, answer);
        if (fclose(answer) != 0) {
            free(report);
            report = NULL;
        }
    }
    free(text);
    return report;
}

/* All that have asked for it have the same answer. */
static void
work(struct stats *st, struct config_job *jobs, enum job_kind kind)
{
    const struct config_job *done = NULL;
    for (struct config_job *job = jobs; job != NULL; job = job->next) {
        if (job->kind != kind) {
            continue;
        }
        if (done == NULL) {
            job->report = run_job(st, kind, &job->has_failed);
            done = job;
        } else {
            job->report = done->report != NULL ? strdup(done->report) : NULL;
            job->has_failed = done->has_failed;
        }
        job->is_done = true;
    }
}

void
config_work(struct stats *st)
{
    struct config_job *jobs =
        take_jobs(state_of(st)); /* what is asked later wakes main again */
    work(st, jobs, JOB_RELOAD);
    work(st, jobs, JOB_SAVE);
    give_back(jobs);
}

void
config_hangup(struct stats *st)
{
    bool has_failed;
    if (st->settings->config.path != NULL) {
        free(run_job(st, JOB_RELOAD, &has_failed));
    }
}

static void
discard(struct parked *parked)
{
    struct config_job *job = OWNER_OF(parked, struct config_job, parked);
    free(job->report);
    free(job);
}

static enum reply
ask(struct state *own, struct serve_qos *q, enum job_kind kind)
{
    struct config_job *job = malloc(sizeof *job);
    if (job == NULL) {
        q->sink->has_failed = true;
        return REPLY_NONE;
    }
    *job = (struct config_job){.parked = {q->back, discard}, .kind = kind};
    PTHREAD_OK(pthread_mutex_lock(&own->lock));
    bool is_open = own->is_open;
    if (is_open) {
        *own->end = job;
        own->end = &job->next;
        q->parked = &job->parked;
        own->wake(own->wake_ctx);
    }
    PTHREAD_OK(pthread_mutex_unlock(&own->lock));
    if (!is_open) {
        free(job);
        return front_refuse(q, "the server ends");
    }
    return REPLY_NONE;
}

static enum reply
answer(struct serve_qos *q, const struct config_job *job)
{
    if (!job->is_done) {
        return front_refuse(q, "the server ends");
    }
    if (job->report == NULL) {
        q->sink->has_failed = true;
        return REPLY_NONE;
    }
    sink_text(q->sink, "", job->report, strlen(job->report), true);
    return job->has_failed ? front_refuse(q, "nothing has changed") : REPLY_OK;
}

/* The first call asks; the second one, when main has done it, answers. */
static enum reply
request(struct stats *st, struct serve_qos *q, enum job_kind kind)
{
    if (q->parked == NULL) {
        return ask(state_of(st), q, kind);
    }
    struct config_job *job = OWNER_OF(q->parked, struct config_job, parked);
    q->parked = NULL;
    enum reply reply = answer(q, job);
    discard(&job->parked);
    return reply;
}

/* ---- commands ------------------------------------------------------------------------- */

static enum reply
run_reload(struct stats *st, struct serve_qos *q)
{
    return st->settings->config.path != NULL
               ? request(st, q, JOB_RELOAD)
               : front_refuse(q, "there is no file: start the server with --config=FILE");
}

static enum reply
run_save(struct stats *st, struct serve_qos *q)
{
    if (!q->is_local) {
        return front_refuse(q, "files are written for UNIX sockets and loopback only");
    }
    return st->settings->config.path != NULL
               ? request(st, q, JOB_SAVE)
               : front_refuse(q, "there is no file: start the server with --config=FILE");
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "reload", .arguments = "", .is_control = true, .run = run_reload,
     .meaning = "read the file of --config again", .after = "rebalance"},
    {.word = "save", .arguments = "", .is_control = true, .run = run_save,
     .meaning = "write what has changed to the file of --config", .after = "reload"},
};
/* clang-format on */

const struct front front_config = {OPTIONS(options), COMMANDS(commands),
                                   .usage = FRONT_USAGE,
                                   .state_bytes = sizeof(struct state), .init = init};
