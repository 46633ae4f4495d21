/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLANKS " \t"
#define LINES_FIRST 64
#define WILDCARDS "*?["
#define RIGHT "the user of the server (-u) needs the right to read it"
#define MARK "\xef\xbb\xbf" /* that some editors begin a file with */

/* A file that is being read, and the line of another one that includes it. */
struct reading {
    const struct reading *from; /* NULL: it is the first */
    const char *path;
    unsigned line;
    unsigned depth;
    dev_t device;
    ino_t inode;
};

void
config_file_blame(struct config_file *c, FILE *err)
{
    c->errors++;
    if (c->errors == CONFIG_ERRORS_MAX) {
        fprintf(err, "memcached: more than %d errors; the rest is not shown\n",
                CONFIG_ERRORS_MAX);
    }
}

/* At the line of the file, or at what asks for the file when it has none yet. Always false. */
__attribute__((format(printf, 4, 5))) static bool
fail(struct config_file *c, const struct reading *r, FILE *err, const char *fmt, ...)
{
    va_list args;
    if (c->errors >= CONFIG_ERRORS_MAX) {
        return false;
    }
    if (r != NULL) {
        fprintf(err, "%s:%u: ", r->path, r->line);
    } else {
        fputs("memcached: ", err);
    }
    va_start(args, fmt);
    vfprintf(err, fmt, args);
    va_end(args);
    fputc('\n', err);
    config_file_blame(c, err);
    return false;
}

/* ---- a line --------------------------------------------------------------------------- */

static void
trim_end(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
}

/* Without its quotes, or without the comment behind it. */
static const char *
cut_value(char **value)
{
    char *text = *value;
    if (*text != '"') {
        for (char *mark = strchr(text, '#'); mark != NULL; mark = strchr(mark + 1, '#')) {
            if (mark == text || strchr(BLANKS, mark[-1]) != NULL) {
                *mark = '\0';
                break;
            }
        }
        trim_end(text);
        return NULL;
    }
    char *end = strchr(text + 1, '"');
    if (end == NULL) {
        return "a quote is not closed: write NAME = \"VALUE\"";
    }
    const char *rest = end + 1 + strspn(end + 1, BLANKS);
    if (*rest != '\0' && *rest != '#') {
        return "there is text behind the quoted value: write NAME = \"VALUE\"";
    }
    *end = '\0';
    *value = text + 1;
    return NULL;
}

const char *
config_file_split(char *text, char **name, char **value)
{
    char *p = text + strspn(text, BLANKS);
    *name = *value = NULL;
    if (*p == '\0' || *p == '#') {
        return NULL;
    }
    bool is_letter = *p == '-' && p[1] != '-';
    p += *p == '-' && !is_letter ? 2 : 0;
    size_t len = strcspn(p, is_letter ? BLANKS : BLANKS "=");
    char *rest = p + len + strspn(p + len, BLANKS);
    bool has_mark = !is_letter && *rest == '=';
    rest += has_mark;
    rest += has_mark ? strspn(rest, BLANKS) : 0;
    if (len == 0 || *p == '#' || (*p == '-' && !is_letter)) {
        return "there is no name: write NAME = VALUE";
    }
    *name = p;
    *value = rest;
    const char *wrong = cut_value(value);
    bool is_quoted = *value != rest;
    if (**value == '\0' && !is_quoted) {
        *value = NULL;
    }
    p[len] = '\0';
    return wrong == NULL && has_mark && *value == NULL
               ? "there is no value behind =; write \"\" for an empty one"
               : wrong;
}

/* ---- memory --------------------------------------------------------------------------- */

/* Takes the text, also when there is no memory: NULL then. */
static char *
keep(struct config_file *c, char *text)
{
    char **texts =
        text != NULL ? reallocarray(c->texts, c->text_count + 1, sizeof *texts) : NULL;
    if (texts == NULL) {
        free(text);
        return NULL;
    }
    c->texts = texts;
    c->texts[c->text_count++] = text;
    return text;
}

static bool
add_line(struct config_file *c, const struct config_line *line)
{
    if (c->count == c->room) {
        size_t room = c->room > 0 ? 2 * c->room : LINES_FIRST;
        struct config_line *lines = reallocarray(c->lines, room, sizeof *lines);
        if (lines == NULL) {
            return false;
        }
        c->lines = lines;
        c->room = room;
    }
    c->lines[c->count++] = *line;
    return true;
}

void
config_file_fini(struct config_file *c)
{
    for (size_t i = 0; i < c->text_count; i++) {
        free(c->texts[i]);
    }
    free(c->texts);
    free(c->lines);
    *c = (struct config_file){.lines = NULL};
}

/* ---- a file --------------------------------------------------------------------------- */

static bool read_included(struct config_file *c, const struct reading *r,
                          const char *name, FILE *err);

/* To the end: of a file in /proc its size does not tell where that is. NULL, with the reason. */
static char *
read_text(int fd, size_t *len, const char **why)
{
    char *text = malloc(CONFIG_BYTES_MAX + 1);
    ssize_t n = -1;
    while (text != NULL && (n = read(fd, text + *len, CONFIG_BYTES_MAX + 1 - *len)) > 0) {
        *len += (size_t)n;
    }
    if (n < 0 || *len > CONFIG_BYTES_MAX) {
        *why = text == NULL ? "out of memory"
               : n < 0      ? strerror(errno)
                            : "it is larger than 1 MiB, which no file of options is";
        free(text);
        return NULL;
    }
    text[*len] = '\0';
    char *fit = realloc(text, *len + 1); /* it is kept */
    return fit != NULL ? fit : text;
}

/* A path as others see it is in the way of an attack neither when it is a device nor a pipe that
 * never ends: nothing but a file is read. Returns the text; NULL with a line printed. */
static char *
load(struct config_file *c, struct reading *r, size_t *len, FILE *err)
{
    struct stat st;
    char *text = NULL;
    const char *why = NULL;
    int fd = open(r->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        why = errno == EACCES ? "Permission denied; " RIGHT : strerror(errno);
    } else if (!S_ISREG(st.st_mode)) {
        why = S_ISDIR(st.st_mode) ? "it is a directory; name a file in it, or a pattern "
                                    "such as NAME/a*.conf"
                                  : "it is not a regular file; name one";
    } else if ((text = keep(c, read_text(fd, len, &why))) == NULL) {
        why = why != NULL ? why : "out of memory";
    } else {
        r->device = st.st_dev;
        r->inode = st.st_ino;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (why != NULL) {
        fail(c, r->from, err, "cannot read %s: %s", r->path, why);
        return NULL;
    }
    return text;
}

static bool
is_text(const char *line, size_t len, unsigned char *bad)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)line[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            *bad = byte;
            return false;
        }
    }
    return true;
}

static bool
take_line(struct config_file *c, struct reading *r, char *text, FILE *err)
{
    struct config_line line = {.file = r->path, .number = r->line};
    const char *wrong = config_file_split(text, &line.name, &line.value);
    if (wrong != NULL) {
        return fail(c, r, err, "%s", wrong);
    }
    if (line.name == NULL) {
        return true;
    }
    if (strcmp(line.name, "include") == 0) {
        return line.value != NULL
                   ? read_included(c, r, line.value, err)
                   : fail(c, r, err, "include needs a file: include FILE, or a pattern");
    }
    if (strcmp(line.name, "logfile") == 0) {
        fprintf(err,
                "%s:%u: warning: logfile has no effect; the log goes to standard error\n",
                r->path, r->line);
        return true;
    }
    if (c->count == CONFIG_LINES_MAX) {
        return fail(c, r, err, "there are more than %d lines with options",
                    CONFIG_LINES_MAX);
    }
    return add_line(c, &line) || fail(c, r, err, "out of memory");
}

/* What is no text is no file of options: one line is said of it. */
static bool
take_lines(struct config_file *c, struct reading *r, char *text, size_t len, FILE *err)
{
    char *end = text + len;
    bool is_good = true;
    text +=
        len >= strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0;
    while (text < end) {
        char *feed = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((feed != NULL ? feed : end) - text);
        char *next = text + bytes + 1;
        unsigned char bad;
        bytes -= bytes > 0 && text[bytes - 1] == '\r';
        r->line++;
        if (!is_text(text, bytes, &bad)) {
            return fail(
                c, r, err,
                "the byte 0x%02x is no text; a line is NAME = VALUE in plain text", bad);
        }
        text[bytes] = '\0';
        is_good &=
            bytes <= CONFIG_LINE_MAX
                ? take_line(c, r, text, err)
                : fail(c, r, err, "the line is longer than %d bytes", CONFIG_LINE_MAX);
        text = next;
    }
    return is_good;
}

static bool
is_circle(const struct reading *r)
{
    for (const struct reading *outer = r->from; outer != NULL; outer = outer->from) {
        if (outer->device == r->device && outer->inode == r->inode) {
            return true;
        }
    }
    return false;
}

static bool
read_one(struct config_file *c, const char *path, const struct reading *from, FILE *err)
{
    struct reading r = {.from = from, .depth = from != NULL ? from->depth + 1 : 0};
    size_t len = 0;
    r.path = keep(c, strdup(path));
    if (r.path == NULL) {
        return fail(c, from, err, "out of memory");
    }
    if (r.depth > CONFIG_DEPTH_MAX || c->files == CONFIG_FILES_MAX) {
        return fail(c, from, err, "%s is not read: more than %d files%s", path,
                    r.depth > CONFIG_DEPTH_MAX ? CONFIG_DEPTH_MAX : CONFIG_FILES_MAX,
                    r.depth > CONFIG_DEPTH_MAX ? " include each other" : "");
    }
    c->files++;
    char *text = load(c, &r, &len, err);
    if (text == NULL) {
        return false;
    }
    if (is_circle(&r)) {
        return fail(c, from, err, "%s includes itself; remove this line", path);
    }
    return take_lines(c, &r, text, len, err);
}

/* As a line of the file names it; in a pattern the file's folder stands for itself. NULL: no
 * memory. */
static char *
path_of(const char *file, const char *name, bool is_pattern)
{
    size_t len = *name == '/' ? 0 : (size_t)(strrchr(file, '/') + 1 - file);
    char *path = malloc(2 * len + strlen(name) + 1);
    char *to = path;
    for (size_t i = 0; path != NULL && i < len; i++) {
        if (is_pattern && strchr(WILDCARDS "\\", file[i]) != NULL) {
            *to++ = '\\';
        }
        *to++ = file[i];
    }
    if (path != NULL) {
        memcpy(to, name, strlen(name) + 1);
    }
    return path;
}

/* A folder that is not there matches nothing; what is in one that cannot be read is not known. */
static int
is_unreadable(const char *folder, int error)
{
    (void)folder;
    return error != ENOENT;
}

/* The names in their order; that nothing matches is right. */
static bool
read_pattern(struct config_file *c, const struct reading *r, const char *pattern,
             FILE *err)
{
    glob_t found = {.gl_pathc = 0};
    int error = glob(pattern, 0, is_unreadable, &found);
    bool is_good = error == 0 || error == GLOB_NOMATCH ||
                   fail(c, r, err, "cannot read the folder of %s; " RIGHT, pattern);
    for (size_t i = 0; error == 0 && i < found.gl_pathc; i++) {
        is_good &= read_one(c, found.gl_pathv[i], r, err);
    }
    globfree(&found);
    return is_good;
}

static bool
read_included(struct config_file *c, const struct reading *r, const char *name, FILE *err)
{
    bool is_pattern = strpbrk(name, WILDCARDS) != NULL;
    char *path = path_of(r->path, name, is_pattern);
    if (path == NULL) {
        return fail(c, r, err, "out of memory");
    }
    bool is_good = is_pattern ? read_pattern(c, r, path, err) : read_one(c, path, r, err);
    free(path);
    return is_good;
}

bool
config_file_read(struct config_file *c, const char *path, FILE *err)
{
    must(*path == '/');
    return read_one(c, path, NULL, err);
}
