/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos top: the view of a server on a terminal, again and again, until q.
 */
#include <ncurses.h>
#include <stdlib.h>
#include <unistd.h>

#include "mcqos/command.h"
#include "mcqos/view.h"

#define LEAST_INTERVAL 0.125
#define MOST_INTERVAL 64
#define KEYS "q quit, s sort, + slower, - faster, p pause"

enum order { BY_NUMBER, BY_BUSY, BY_WAITING, BY_CONNECTIONS, ORDERS };

static const char *const orders[ORDERS] = {
    [BY_NUMBER] = "number",
    [BY_BUSY] = "busy",
    [BY_WAITING] = "waiting",
    [BY_CONNECTIONS] = "connections",
};

struct top {
    const struct options *o;
    struct link *link;
    struct facts before, now;
    double interval;
    enum order order;
    bool is_paused, is_over;
};

static double
key_of(const struct view_worker *w, enum order order)
{
    return order == BY_BUSY          ? -w->busy_pct
           : order == BY_WAITING     ? -w->waiting_pct
           : order == BY_CONNECTIONS ? -w->conns
                                     : w->number;
}

static int
compare(const void *a, const void *b, void *order_)
{
    const enum order *order = order_;
    double x = key_of(a, *order), y = key_of(b, *order);
    return (x > y) - (x < y);
}

/* A new sample, on a new connection where the old one was lost. */
static void
take_sample(struct top *t)
{
    struct facts next = {0};
    struct link *l = t->link;
    if ((l->fd >= 0 || link_open(l, t->o->server, l->timeout)) &&
        view_sample(&next, l) == DONE) {
        facts_fini(&t->before);
        t->before = t->now;
        t->now = next;
        l->why[0] = '\0';
    } else {
        facts_fini(&next);
    }
}

static void
write_page(struct top *t, FILE *out)
{
    fprintf(out, "every %g s, by %s%s - %s\n", t->interval, orders[t->order],
            t->is_paused ? ", PAUSED" : "", KEYS);
    if (t->link->why[0] != '\0') {
        fprintf(out, "! %s\n! trying again; what follows is old\n", t->link->why);
    }
    if (t->now.count > 0) {
        struct view v;
        view_init(&v, t->before.count > 0 ? &t->before : NULL, &t->now);
        qsort_r(v.workers, v.worker_count, sizeof v.workers[0], compare, &t->order);
        view_summary(&v, t->o->server, out);
        fputc('\n', out);
        view_classes(&v, true, out);
        fputc('\n', out);
        view_workers(&v, out);
        view_fini(&v);
    }
}

static void
draw(struct top *t)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    must(out != NULL);
    write_page(t, out);
    must(fclose(out) == 0);
    erase();
    int row = 0;
    for (char *line = text, *end; row < LINES && (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        bool is_head =
            strncmp(line, "class ", 6) == 0 || strncmp(line, "worker ", 7) == 0;
        attrset(is_head || row == 0 ? A_REVERSE : *line == '!' ? A_BOLD : A_NORMAL);
        mvaddnstr(row++, 0, line, COLS);
    }
    attrset(A_NORMAL);
    refresh();
    free(text);
}

static void
obey(struct top *t, int key)
{
    switch (key) {
    case 'q':
        t->is_over = true;
        break;
    case 's':
        t->order = (t->order + 1) % ORDERS;
        break;
    case 'p':
        t->is_paused = !t->is_paused;
        break;
    case '+':
        t->interval = t->interval < MOST_INTERVAL ? 2 * t->interval : t->interval;
        break;
    case '-':
        t->interval = t->interval > LEAST_INTERVAL ? t->interval / 2 : t->interval;
        break;
    default: /* a new size of the terminal too: it is drawn again */
        break;
    }
}

static void
loop(struct top *t)
{
    nsec_t due = 0;
    while (!t->is_over) {
        nsec_t now = clock_now();
        if (!t->is_paused && now >= due) {
            take_sample(t);
            now = clock_now();
            due = now + clock_seconds(t->interval);
        }
        draw(t);
        timeout(t->is_paused || due <= now ? -1 : (int)((due - now) / NSEC_PER_MSEC) + 1);
        obey(t, getch());
    }
}

enum outcome
top_run(const struct options *o, struct link *l)
{
    struct top t = {.o = o, .link = l, .interval = o->interval};
    bool has_terminal = !o->is_json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (has_terminal && !link_open(l, o->server, clock_seconds(o->timeout))) {
        return UNREACHABLE;
    }
    SCREEN *screen = has_terminal ? newterm(NULL, stdout, stdin) : NULL;
    if (screen == NULL) {
        snprintf(
            l->why, sizeof l->why,
            "top needs a terminal that it knows (TERM); without one see mcqos status, "
            "for programs mcqos status --json");
        return USAGE;
    }
    t.interval = t.interval < LEAST_INTERVAL ? LEAST_INTERVAL : t.interval;
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, true);
    loop(&t);
    endwin();
    delscreen(screen);
    facts_fini(&t.before);
    facts_fini(&t.now);
    return DONE;
}
