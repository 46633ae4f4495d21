/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/front.h"

#define NOWHERE SIZE_MAX

/* Settings that change at run time: as they are, and as the files and the command line say. */
struct look {
    struct opt_table table;
    struct settings now, next;
    /* of save: why the file keeps what it says, one for each row; NULL: it need not */
    char **kept;
};

/* ---- what differs --------------------------------------------------------------------- */

/* Several rows, such as lru_crawler and no_lru_crawler, may write one setting. */
static bool
is_same_setting(const struct opt *a, const struct opt *b)
{
    return a->live != NULL && a->live == b->live && a->offset == b->offset;
}

/* The first row of a setting stands for it. */
static bool
stands_for_setting(const struct look *l, const struct opt *row)
{
    for (const struct opt *r = l->table.rows; r < row; r++) {
        if (is_same_setting(r, row)) {
            return false;
        }
    }
    return row->live != NULL;
}

static const char *
name_of(const struct opt *row)
{
    return row->name != NULL ? row->name : row->word;
}

/* A line about what no start would be refused for. */
static bool
is_warning(const char *line)
{
    return strstr(line, ": warning: ") != NULL;
}

/* Prints each line of the text behind a word, and frees it. */
static void
tell_lines(FILE *out, char *text)
{
    char *rest = text, *line;
    while (text != NULL && (line = strsep(&rest, "\n")) != NULL) {
        if (*line != '\0') {
            fprintf(out, "%s %s\n", is_warning(line) ? "NOTE" : "WRONG", line);
        }
    }
    free(text);
}

/* Reads the files, the first being at `path`; NULL: that of --config. What is said of them is in
 * *text, to be freed, NULL: no memory. False: they are wrong. */
static bool
parse(struct look *l, const struct settings *started, const char *path, char **text)
{
    size_t len;
    FILE *err = open_memstream(text, &len);
    if (err == NULL) {
        *text = NULL;
        return false;
    }
    bool is_good = settings_parse_again(&l->next, started, path, err);
    return fclose(err) == 0 && is_good;
}

static bool
look(struct look *l, struct stats *st, FILE *out)
{
    char *text;
    *l = (struct look){.table = front_options(st->settings->profile),
                       .now = *st->settings}; /* read into, but for what is a pointer */
    l->kept = calloc(l->table.count, sizeof l->kept[0]);
    bool is_good = parse(l, st->settings, NULL, &text) && l->kept != NULL;
    if (l->kept == NULL || text == NULL) {
        fputs("WRONG memcached: out of memory\n", out);
    }
    tell_lines(out, text);
    for (size_t i = 0; is_good && i < l->table.count; i++) {
        if (l->table.rows[i].live != NULL) {
            l->table.rows[i].live->read(st, &l->now);
        }
    }
    return is_good;
}

static void
look_away(struct look *l)
{
    settings_fini(&l->next);
    for (size_t i = 0; l->kept != NULL && i < l->table.count; i++) {
        free(l->kept[i]);
    }
    free(l->kept);
}

static bool
differs(const struct look *l, const struct opt *row, char now[OPT_TOLD_MAX],
        char next[OPT_TOLD_MAX])
{
    opt_tell(row, &l->now, now);
    opt_tell(row, &l->next, next);
    return strcmp(now, next) != 0;
}

/* Why the setting is not changed, nor saved, before a restart; NULL: it is. */
static const char *
why_it_waits(const struct look *l, const struct opt *row)
{
    return row->live->waits != NULL ? row->live->waits(&l->now, &l->next) : NULL;
}

/* ---- reload --------------------------------------------------------------------------- */

static size_t
last_before(const struct config *c, const struct opt *row, size_t at)
{
    while (at-- > 0) {
        if (c->given[at].row == row) {
            return at;
        }
    }
    return NOWHERE;
}

static bool
is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Whether a row was given the same values, as far as they count. */
static bool
is_given_alike(const struct config *a, const struct config *b, const struct opt *row)
{
    size_t i = a->given_count, k = b->given_count;
    do {
        i = last_before(a, row, i);
        k = last_before(b, row, k);
        if ((i == NOWHERE) != (k == NOWHERE) ||
            (i != NOWHERE && !is_same_text(a->given[i].value, b->given[k].value))) {
            return false;
        }
    } while (i != NOWHERE && row->adds_up);
    return true;
}

static void
tell_restart(const struct look *l, const struct opt *row, FILE *out)
{
    char letter[] = {'-', row->letter, '\0'};
    const char *name = name_of(row) != NULL ? name_of(row) : letter;
    size_t at = last_before(&l->next.config, row, l->next.config.given_count);
    if (at == NOWHERE) {
        fprintf(out, "RESTART %s (no longer given)\n", name);
    } else if (l->next.config.given[at].file == NULL) {
        fprintf(out, "RESTART %s (command line)\n", name);
    } else {
        fprintf(out, "RESTART %s %s:%u\n", name, l->next.config.given[at].file,
                l->next.config.given[at].line);
    }
}

static void
change(struct look *l, struct stats *st, FILE *out)
{
    for (size_t i = 0; i < l->table.count; i++) {
        const struct opt *row = &l->table.rows[i];
        char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
        if (row->live == NULL || why_it_waits(l, row) != NULL) {
            if (!is_given_alike(&st->settings->config, &l->next.config, row)) {
                tell_restart(l, row, out);
            }
        } else if (stands_for_setting(l, row) && differs(l, row, now, next)) {
            if (row->live->apply(st, &l->next)) {
                fprintf(out, "CHANGED %s %s -> %s\n", name_of(row), now, next);
            } else {
                tell_restart(l, row, out);
            }
        }
    }
}

bool
reload_file(struct stats *st, FILE *out)
{
    struct look l;
    bool is_good = look(&l, st, out);
    if (is_good) {
        change(&l, st, out);
    }
    look_away(&l);
    return is_good;
}

/* ---- save ----------------------------------------------------------------------------- */

static const char others[] = "the command line or an included file says so";

/* -v of the command line: it would be added to what the file says. */
static bool
is_added_to(const struct look *l, const struct opt *row)
{
    const struct config *c = &l->next.config;
    for (size_t i = 0; i < c->given_count; i++) {
        const struct config_given *g = &c->given[i];
        if (g->file == NULL && g->value == NULL && g->row->adds_up &&
            is_same_setting(g->row, row)) {
            return true;
        }
    }
    return false;
}

/* Of the first row of a setting. */
static bool
is_to_save(const struct look *l, const struct opt *row)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
    return l->kept[row - l->table.rows] == NULL && differs(l, row, now, next) &&
           opt_takes(row, &l->now);
}

/* "qps-limit = 50000", "lru_crawler", "no_lru_crawler"; empty where the row's absence says it. */
static void
write_setting(const struct look *l, const struct opt *row, FILE *out)
{
    char now[OPT_TOLD_MAX];
    opt_tell(row, &l->now, now);
    if (row->arg != NULL) {
        fprintf(out, "%s = %s\n", name_of(row), now);
        return;
    }
    enum opt_kind kind = strcmp(now, "on") == 0 ? OPT_FLAG : OPT_OFF;
    for (size_t i = 0; i < l->table.count; i++) {
        const struct opt *r = &l->table.rows[i];
        if (is_same_setting(r, row) && r->kind == kind) {
            fprintf(out, "%s\n", name_of(r));
            return;
        }
    }
}

static bool
is_of(const struct config_given *g, const char *path)
{
    return g->file != NULL && strcmp(g->file, path) == 0;
}

/* The row whose setting the line of the file sets, and nothing else, if it is to be changed. *at:
 * which options were given before it; the lines are asked for in their order. */
static const struct opt *
row_of_line(const struct look *l, const char *path, unsigned line, size_t *at)
{
    const struct config *c = &l->next.config;
    const struct opt *found = NULL;
    bool is_mixed = false;
    while (*at < c->given_count &&
           !(is_of(&c->given[*at], path) && c->given[*at].line >= line)) {
        (*at)++;
    }
    for (; *at < c->given_count && is_of(&c->given[*at], path) &&
           c->given[*at].line == line;
         (*at)++) {
        const struct opt *row = c->given[*at].row;
        is_mixed |= row->live == NULL || (found != NULL && !is_same_setting(found, row));
        found = row;
    }
    for (const struct opt *r = l->table.rows; found != NULL && !is_mixed; r++) {
        if (is_same_setting(r, found)) {
            return is_to_save(l, r) ? r : NULL;
        }
    }
    return NULL;
}

/* The lines of the file, those that change being left out, and what is in force instead. */
static void
rewrite(const struct look *l, FILE *in, const char *path, FILE *out)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    bool has_title = false;
    size_t at = 0;
    for (unsigned n = 1; (len = getline(&line, &room, in)) >= 0; n++) {
        if (row_of_line(l, path, n, &at) == NULL) {
            fprintf(out, "%s%s", line, line[len - 1] == '\n' ? "" : "\n");
        }
        has_title |= strncmp(line, "# saved by", strlen("# saved by")) == 0;
    }
    free(line);
    for (size_t i = 0; i < l->table.count; i++) {
        const struct opt *row = &l->table.rows[i];
        if (stands_for_setting(l, row) && is_to_save(l, row)) {
            if (!has_title) {
                fputs("\n# saved by qos save\n", out);
            }
            has_title = true;
            write_setting(l, row, out);
        }
    }
}

/* The new file, which takes the other one's place when it says what is in force. */
struct draft {
    const struct stats *st;
    struct look *l;
    const char *path; /* of the file that it replaces */
    char *name;       /* its own */
    int fd;
};

/* The whole of it, with rights and owner of the file that it replaces. False with errno. */
static bool
write_draft(const struct draft *d)
{
    struct stat st;
    FILE *in = fopen(d->path, "re");
    FILE *out = fdopen(dup(d->fd), "w");
    bool is_good = in != NULL && out != NULL && fstat(fileno(in), &st) == 0 &&
                   ftruncate(d->fd, 0) == 0 && lseek(d->fd, 0, SEEK_SET) == 0;
    if (is_good) {
        rewrite(d->l, in, d->l->next.config.path, out);
        is_good = feof(in) && !ferror(out) && fchmod(d->fd, st.st_mode & 07777) == 0 &&
                  (fchown(d->fd, st.st_uid, st.st_gid) == 0 || errno == EPERM);
    }
    if (in != NULL) {
        fclose(in);
    }
    return out != NULL && fclose(out) == 0 && is_good;
}

enum draft_state {
    DRAFT_GOOD,
    DRAFT_OTHER, /* it does not say all that it was to: that is marked as kept */
    DRAFT_WRONG, /* no server starts with it: *text says why */
    DRAFT_FAILED,
};

static enum draft_state
read_draft(const struct draft *d, char **text)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
    struct look saved = {.table = d->l->table, .now = d->l->now};
    bool is_good = parse(&saved, d->st->settings, d->name, text);
    enum draft_state state = is_good ? DRAFT_GOOD : DRAFT_WRONG;
    for (size_t i = 0; is_good && state != DRAFT_FAILED && i < saved.table.count; i++) {
        const struct opt *row = &saved.table.rows[i];
        if (stands_for_setting(d->l, row) && is_to_save(d->l, row) &&
            differs(&saved, row, now, next)) {
            d->l->kept[i] = strdup(others);
            state = d->l->kept[i] != NULL ? DRAFT_OTHER : DRAFT_FAILED;
        }
    }
    look_away(&saved);
    return state;
}

/* *text: what is said of the file, to be freed. */
static enum draft_state
try_draft(const struct draft *d, char **text)
{
    enum draft_state state = DRAFT_OTHER;
    for (*text = NULL; state == DRAFT_OTHER;) {
        free(*text);
        *text = NULL;
        state = write_draft(d) ? read_draft(d, text) : DRAFT_FAILED;
    }
    return state;
}

/* The first line that is no warning, without the name of a file that the client does not know. */
static char *
sentence_of(const struct draft *d, char *text)
{
    size_t len = strlen(d->name);
    const char *line;
    do {
        line = strsep(&text, "\n");
    } while (text != NULL && is_warning(line));
    return strdup(strncmp(line, d->name, len) == 0 && line[len] == ':'
                      ? line + len + strspn(line + len, ": ")
                      : line);
}

/* What commands take may not go with an option that only a start changes: settings without which
 * the file is good, or is wrong for another reason, are left out. *why: the sentence that stays. */
static enum draft_state
leave_out(const struct draft *d, char **why)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX], *text, *sentence;
    struct look *l = d->l;
    for (size_t i = 0; *why != NULL && i < l->table.count; i++) {
        const struct opt *row = &l->table.rows[i];
        if (!stands_for_setting(l, row) || !is_to_save(l, row) ||
            !differs(l, row, now, next)) {
            continue;
        }
        if (asprintf(&l->kept[i], "a start with %s is refused: %s", now, *why) < 0) {
            l->kept[i] = NULL;
            return DRAFT_FAILED;
        }
        enum draft_state state = try_draft(d, &text);
        sentence = state == DRAFT_WRONG && text != NULL ? sentence_of(d, text) : NULL;
        free(text);
        if (state != DRAFT_WRONG) {
            return state;
        }
        if (sentence != NULL && strcmp(sentence, *why) == 0) {
            free(l->kept[i]);
            l->kept[i] = NULL;
        }
        free(*why);
        *why = sentence;
    }
    return DRAFT_WRONG;
}

static const char *
remedy(int error)
{
    switch (error) {
    case EACCES:
        return "; the user of the server (-u) needs the right to write in its folder";
    case EROFS:
        return "; in a unit of systemd ReadWritePaths= names the folders to write in";
    case EBUSY:
        return "; where the file is a mount of its own, mount its folder instead";
    default:
        return "";
    }
}

static bool
fail_to(const char *what, const struct draft *d, FILE *out)
{
    int error = errno;
    fprintf(out, "WRONG cannot %s %s: %s%s\n", what, d->path, strerror(error),
            remedy(error));
    return false;
}

/* False: out has a line. */
static bool
settle_draft(const struct draft *d, FILE *out)
{
    char *text, *why;
    enum draft_state state = try_draft(d, &text);
    if (state ==
        DRAFT_WRONG) { /* perhaps for want of memory, which no setting is to blame for */
        free(text);
        state = try_draft(d, &text);
    }
    why = state == DRAFT_WRONG && text != NULL ? sentence_of(d, text) : NULL;
    state = state == DRAFT_WRONG ? leave_out(d, &why) : state;
    if (state == DRAFT_FAILED) {
        fail_to("write", d, out);
    } else if (state == DRAFT_WRONG) {
        fprintf(out, "WRONG what is in force cannot be the options of a start: %s\n",
                why != NULL ? why : "out of memory");
    }
    free(text);
    free(why);
    return state == DRAFT_GOOD;
}

static bool
has_to_save(const struct look *l)
{
    for (size_t i = 0; i < l->table.count; i++) {
        if (stands_for_setting(l, &l->table.rows[i]) &&
            is_to_save(l, &l->table.rows[i])) {
            return true;
        }
    }
    return false;
}

/* False: out has a line, and the file is as it was. */
static bool
replace(const struct stats *st, struct look *l, const char *path, FILE *out)
{
    struct draft d = {st, l, path, NULL, -1};
    bool is_good = asprintf(&d.name, "%s.XXXXXX", path) >= 0 &&
                   (d.fd = mkostemp(d.name, O_CLOEXEC)) >= 0;
    is_good = is_good ? settle_draft(&d, out) : fail_to("write", &d, out);
    bool is_new = is_good && has_to_save(l);
    if (is_new) {
        is_good = fsync(d.fd) == 0
                      ? rename(d.name, path) == 0 || fail_to("replace", &d, out)
                      : fail_to("write", &d, out);
    }
    if (d.fd >= 0) {
        close(d.fd);
        if (!is_new || !is_good) {
            unlink(d.name);
        }
    }
    free(d.name);
    return is_good;
}

static void
tell_saved(const struct look *l, FILE *out)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
    for (size_t i = 0; i < l->table.count; i++) {
        const struct opt *row = &l->table.rows[i];
        if (!stands_for_setting(l, row) || !differs(l, row, now, next)) {
            continue;
        }
        if (is_to_save(l, row)) {
            fprintf(out, "SAVED %s %s -> %s\n", name_of(row), next, now);
        } else if (!opt_takes(row, &l->now)) {
            fprintf(out, "KEPT %s %s: the option does not take %s\n", name_of(row), next,
                    now);
        } else {
            fprintf(out, "KEPT %s %s: %s\n", name_of(row), next, l->kept[i]);
        }
    }
}

bool
reload_save(struct stats *st, FILE *out)
{
    const char *path = st->settings->config.path;
    struct stat link;
    struct look l;
    bool is_good = look(&l, st, out);
    for (size_t i = 0; is_good && i < l.table.count; i++) {
        const struct opt *row = &l.table.rows[i];
        const char *why = row->live != NULL ? why_it_waits(&l, row) : NULL;
        why = is_added_to(&l, row) ? others : why;
        l.kept[i] = why != NULL ? strdup(why) : NULL;
        is_good = why == NULL || l.kept[i] != NULL;
    }
    if (is_good && lstat(path, &link) == 0 && S_ISLNK(link.st_mode)) {
        fprintf(out, "WRONG %s is a symbolic link; name the file itself in --config\n",
                path);
        is_good = false;
    }
    if (is_good && has_to_save(&l)) {
        is_good = replace(st, &l, path, out);
    }
    if (is_good) {
        tell_saved(&l, out);
    }
    look_away(&l);
    return is_good;
}
