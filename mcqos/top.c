/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * mcqos top: the view of a server on a terminal, again and again, until q.
 */
#include <math.h>
#include <ncurses.h>
#include <unistd.h>

#include "mcqos/command.h"
#include "mcqos/view.h"

#define LEAST_INTERVAL 0.125
#define MOST_INTERVAL 64
#define KEYS "q quit, s sort, + slower, - faster, p pause"

/* What workers are sorted by, the largest first. */
static const struct order {
    const char *name;
    int cell; /* negative: their numbers */
} orders[] = {
    {"number", -1},
    {"busy", WORKER_BUSY},
    {"waiting", WORKER_WAITING},
    {"connections", WORKER_CONNS},
};
#define ORDERS (sizeof orders / sizeof orders[0])

struct top {
    const struct options *o;
    struct link *link;
    struct facts before, now;
    double interval;
    unsigned order;
    bool is_paused, is_over;
};

static int
compare(const void *a, const void *b, void *order_)
{
    const struct view_row *x = a, *y = b;
    const struct order *order = order_;
    double more = order->cell < 0 ? 0 : y->cells[order->cell] - x->cells[order->cell];
    return more > 0 ? 1 : more < 0 ? -1 : (int)x->number - (int)y->number;
}

static bool
ask(struct top *t, struct facts *next)
{
    struct link *l = t->link;
    facts_fini(next);
    return (l->fd >= 0 || link_open(l, t->o) == DONE) && view_sample(next, l) == DONE;
}

/* A new sample, on a new connection where the old one was lost: the server may have closed it since the
 * last one (idle_timeout), which is no reason to wait for another. */
static void
take_sample(struct top *t)
{
    struct facts next = {0};
    struct link *l = t->link;
    bool was_open = l->fd >= 0;
    if (ask(t, &next) || (was_open && l->is_closed && ask(t, &next))) {
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
    fprintf(out, "every %g s, by %s%s - %s\n", t->interval, orders[t->order].name,
            t->is_paused ? ", PAUSED" : "", KEYS);
    if (t->link->why[0] != '\0') {
        fprintf(out, "! %s\n! trying again; what follows is old\n", t->link->why);
    }
    if (t->now.count > 0) {
        struct view v;
        view_init(&v, t->before.count > 0 ? &t->before : NULL, &t->now);
        qsort_r(v.workers.rows, v.workers.count, sizeof v.workers.rows[0], compare,
                (void *)&orders[t->order]);
        view_summary(&v, t->o->server, out);
        if (view_has_qos(&v)) {
            fputc('\n', out);
            view_print(&v, &v.classes, true, out);
            fputc('\n', out);
            view_print(&v, &v.workers, true, out);
        }
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

/* A new size of the terminal is a key, too. */
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
        t->interval = fmax(t->interval, fmin(2 * t->interval, MOST_INTERVAL));
        break;
    case '-':
        t->interval = fmin(t->interval, fmax(t->interval / 2, LEAST_INTERVAL));
        break;
    case ERR: /* the time is over; or the terminal is gone */
        t->is_over = !isatty(STDIN_FILENO);
        break;
    default:
        break;
    }
}

static void
loop(struct top *t)
{
    bool has_sample = false;
    nsec_t last = 0;
    while (!t->is_over) {
        nsec_t now = clock_now(), due = last + clock_seconds(t->interval);
        if (!t->is_paused && (!has_sample || now >= due)) {
            take_sample(t);
            has_sample = true;
            last = now = clock_now();
            due = last + clock_seconds(t->interval);
        }
        draw(t);
        timeout(t->is_paused || due <= now ? -1 : (int)((due - now) / NSEC_PER_MSEC) + 1);
        obey(t, getch());
    }
}

/* NULL: there is none, or one such as "dumb", that cannot move its cursor. */
static SCREEN *
open_screen(void)
{
    SCREEN *screen = newterm(NULL, stdout, stdin);
    const char *move = screen != NULL ? tigetstr("cup") : NULL;
    if (move != NULL && move != (char *)-1) {
        return screen;
    }
    if (screen != NULL) {
        endwin();
        delscreen(screen);
    }
    return NULL;
}

enum outcome
top_run(const struct options *o, struct link *l)
{
    struct top t = {.o = o, .link = l, .interval = o->interval};
    bool has_terminal = !o->is_json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    enum outcome outcome = has_terminal ? link_open(l, o) : DONE;
    if (outcome != DONE) {
        return outcome;
    }
    SCREEN *screen = has_terminal ? open_screen() : NULL;
    if (screen == NULL) {
        return link_explain(l, USAGE,
                            "top needs a terminal that it knows (TERM); without one see "
                            "mcqos status, for programs mcqos status --json");
    }
    t.interval = fmax(t.interval, LEAST_INTERVAL);
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
