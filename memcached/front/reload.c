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
#define NAME_BYTES 96

/* Settings that change at run time: as they are, and as the files and the command line say. */
struct look {
    struct opt_table table;
    struct settings now, next;
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

/* Prints each line of the text behind a word, and frees it. */
static void
tell_lines(FILE *out, const char *word, char *text)
{
    char *rest = text, *line;
    while (text != NULL && (line = strsep(&rest, "\n")) != NULL) {
        if (*line != '\0') {
            fprintf(out, "%s %s\n", word, line);
        }
    }
    free(text);
}

/* Reads the files, the first being at `path`; NULL: that of --config, whose warnings are told.
 * False with lines. */
static bool
parse(struct look *l, const struct settings *started, const char *path, FILE *out)
{
    char *text = NULL;
    size_t len;
    FILE *err = open_memstream(&text, &len);
    if (err == NULL) {
        fputs("WRONG memcached: out of memory\n", out);
        return false;
    }
    bool is_good = settings_parse_again(&l->next, started, path, err);
    if (fclose(err) != 0) {
        is_good = false;
    }
    if (is_good && path != NULL) {
        free(text);
    } else {
        tell_lines(out, is_good ? "NOTE" : "WRONG", text);
    }
    return is_good;
}

static struct look *
look(struct stats *st, FILE *out)
{
    struct look *l = calloc(1, sizeof *l);
    if (l == NULL) {
        fputs("WRONG memcached: out of memory\n", out);
        return NULL;
    }
    l->table = front_options(st->settings->profile);
    l->now = *st->settings; /* for what is read into it, none of which is a pointer */
    if (!parse(l, st->settings, NULL, out)) {
        settings_fini(&l->next);
        free(l);
        return NULL;
    }
    for (size_t i = 0; i < l->table.count; i++) {
        if (l->table.rows[i].live != NULL) {
            l->table.rows[i].live->read(st, &l->now);
        }
    }
    return l;
}

static void
look_away(struct look *l)
{
    settings_fini(&l->next);
    free(l);
}

static bool
differs(const struct look *l, const struct opt *row, char now[OPT_TOLD_MAX],
        char next[OPT_TOLD_MAX])
{
    opt_tell(row, &l->now, now);
    opt_tell(row, &l->next, next);
    return strcmp(now, next) != 0;
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

bool
reload_file(struct stats *st, FILE *out)
{
    struct look *l = look(st, out);
    if (l == NULL) {
        return false;
    }
    for (size_t i = 0; i < l->table.count; i++) {
        const struct opt *row = &l->table.rows[i];
        char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
        if (row->live == NULL) {
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
    look_away(l);
    return true;
}

/* ---- save ----------------------------------------------------------------------------- */

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

static bool
is_to_save(const struct look *l, const struct opt *row)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
    return differs(l, row, now, next) && opt_takes(row, &l->now) && !is_added_to(l, row);
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

/* The whole of it, with rights and owner of the file that it replaces. False with errno. */
static bool
write_file(const struct look *l, int fd, const char *path)
{
    struct stat st;
    FILE *in = fopen(path, "re");
    FILE *out = fdopen(dup(fd), "w");
    bool is_good = in != NULL && out != NULL && fstat(fileno(in), &st) == 0;
    if (is_good) {
        rewrite(l, in, l->next.config.path, out);
        is_good = feof(in) && !ferror(out) && fchmod(fd, st.st_mode & 07777) == 0 &&
                  (fchown(fd, st.st_uid, st.st_gid) == 0 || errno == EPERM);
    }
    if (in != NULL) {
        fclose(in);
    }
    is_good = out != NULL && fclose(out) == 0 && is_good;
    return fsync(fd) == 0 && is_good;
}

/* What is in the new file is read again; what it cannot say is told. */
static bool
prove(const struct stats *st, struct look *l, const char *path, FILE *out)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX], old[OPT_TOLD_MAX];
    struct look *saved = calloc(1, sizeof *saved);
    if (saved == NULL) {
        return false;
    }
    saved->table = l->table;
    saved->now = l->now;
    bool is_good = parse(saved, st->settings, path, out);
    for (size_t i = 0; is_good && i < l->table.count; i++) {
        const struct opt *row = &l->table.rows[i];
        if (!stands_for_setting(l, row)) {
            continue;
        }
        opt_tell(row, &l->next, old);
        if (differs(saved, row, now, next)) {
            bool can_say = opt_takes(row, &l->now);
            fprintf(out, "KEPT %s %s: %s%s\n", name_of(row), next,
                    can_say ? "the command line or an included file says so"
                            : "the option does not take ",
                    can_say ? "" : now);
        } else if (strcmp(old, now) != 0) {
            fprintf(out, "SAVED %s %s -> %s\n", name_of(row), old, now);
        }
    }
    look_away(saved);
    return is_good;
}

static const char *
remedy(int error)
{
    switch (error) {
    case EACCES:
        return "; the user of the server (-u) needs the right to write in its folder";
    case EROFS:
        return "; in a unit of systemd ReadWritePaths= names the folders to write in";
    default:
        return "";
    }
}

/* False: out has a line, and the file is as it was. */
static bool
replace(const struct stats *st, struct look *l, const char *path, FILE *out)
{
    char *temporary = NULL;
    int fd = asprintf(&temporary, "%s.XXXXXX", path) >= 0 ? mkostemp(temporary, O_CLOEXEC)
                                                          : -1;
    bool is_good = fd >= 0 && write_file(l, fd, path);
    if (!is_good) {
        int error = errno;
        fprintf(out, "WRONG cannot write %s: %s%s\n", path, strerror(error),
                remedy(error));
    }
    is_good = is_good && prove(st, l, temporary, out);
    if (is_good && rename(temporary, path) != 0) {
        fprintf(out, "WRONG cannot replace %s: %s\n", path, strerror(errno));
        is_good = false;
    }
    if (fd >= 0) {
        close(fd);
        if (!is_good) {
            unlink(temporary);
        }
    }
    free(temporary);
    return is_good;
}

static bool
differs_at_all(const struct look *l)
{
    char now[OPT_TOLD_MAX], next[OPT_TOLD_MAX];
    for (size_t i = 0; i < l->table.count; i++) {
        if (l->table.rows[i].live != NULL && differs(l, &l->table.rows[i], now, next)) {
            return true;
        }
    }
    return false;
}

bool
reload_save(struct stats *st, FILE *out)
{
    const char *path = st->settings->config.path;
    struct stat link;
    struct look *l = look(st, out);
    if (l == NULL) {
        return false;
    }
    bool is_good = true;
    if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode)) {
        fprintf(out, "WRONG %s is a symbolic link; name the file itself in --config\n",
                path);
        is_good = false;
    }
    is_good = is_good && (!differs_at_all(l) || replace(st, l, path, out));
    look_away(l);
    return is_good;
}
