/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/worth.h"

#include <math.h>

#define GAIN_LEAST 3.0  /* times what the page brings where it is */
#define CHANCE 3.0      /* standard deviations of a count */
#define READ_SECONDS 60 /* by which the time of a read may be too old */
#define PAGES_TO_PART                                                                    \
    4u               /* of a class, before one goes to the class that its items are for */
#define FREE_PART 8u /* of a page: with more free chunks than that, none is needed */

static double
grown(uint64_t now, uint64_t before)
{
    return now > before ? (double)(now - before) : 0;
}

static void
halve(struct worth *w)
{
    w->losses /= 2;
    w->seconds /= 2;
    for (unsigned id = 1; id < STORE_CLASSES; id++) {
        w->classes[id].losses /= 2;
        w->classes[id].returns /= 2;
    }
}

/* Begins anew with both classes of the last move: it made items leave, and has changed what is to be
 * measured. */
static void
forget_last_move(struct worth *w)
{
    const unsigned ids[] = {w->last_move.from, w->last_move.to};

    for (unsigned i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        w->classes[ids[i]].losses = 0;
        w->classes[ids[i]].returns = 0;
    }
    w->last_move = (struct automove_move){.from = 0};
}

void
worth_add(struct worth *w, const struct automove_sample *sample)
{
    for (unsigned id = 1; id <= sample->class_count; id++) {
        const struct automove_class *now = &sample->class[id];
        struct worth_class *c = &w->classes[id];

        if (w->has_last) { /* the first sample has nothing to be compared with */
            double losses = grown(now->losses, c->last_losses);

            c->losses += losses;
            c->returns += grown(now->returns, c->last_returns);
            w->losses += losses;
        }
        c->last_losses = now->losses;
        c->last_returns = now->returns;
    }
    forget_last_move(w);
    w->seconds += w->has_last ? grown(sample->now, w->last_time) : 0;
    w->last_time = sample->now;
    w->has_last = true;
    if (w->losses >= (double)sample->remembered) {
        halve(w);
    }
}

/* Hits that one more page brings, at least. */
static double
gain(const struct worth_class *c, const struct automove_class *now)
{
    double returns = c->returns - CHANCE * sqrt(c->returns);
    bool is_full = now->free_chunks * FREE_PART < now->chunks_per_page;

    return is_full && returns > 0 && c->losses > 0
               ? now->chunks_per_page * returns / c->losses
               : 0;
}

/* Hits that one page fewer costs, at most. Where nothing leaves, nothing is known but for how long the
 * oldest item has not been read. */
static double
loss(const struct worth *w, const struct worth_class *c, const struct automove_class *now,
     double remembered)
{
    double returns = c->returns + 1 + CHANCE * sqrt(c->returns + 1);
    double lasts = w->seconds * remembered / w->losses; /* what is remembered */
    double idle = (double)now->age - READ_SECONDS;

    if (c->losses >= 1) {
        return now->chunks_per_page * returns / c->losses;
    }
    return idle > lasts ? now->chunks_per_page * lasts / idle : INFINITY;
}

/* A class most of whose items are for another one, which has fewer pages, though in that they would take
 * a page less. They come there when they are stored again. */
static bool
find_guests(const struct automove_sample *sample, struct automove_move *move)
{
    for (unsigned id = 1; id <= sample->class_count; id++) {
        const struct automove_class *now = &sample->class[id];
        const struct automove_class *best = &sample->class[now->best];

        if (now->pages >= PAGES_TO_PART && now->pages > best->pages && now->best != id &&
            (uint64_t)(now->pages - 1) * best->chunks_per_page >=
                (uint64_t)now->pages * now->chunks_per_page) {
            *move = (struct automove_move){.from = id, .to = now->best};
            return true;
        }
    }
    return false;
}

/* The class that loses least by a page; 0: none has one to give. */
static unsigned
find_source(const struct worth *w, const struct automove_sample *sample, unsigned to,
            double *least)
{
    unsigned from = 0;

    for (unsigned id = 1; id <= sample->class_count; id++) {
        const struct automove_class *now = &sample->class[id];
        double costs = loss(w, &w->classes[id], now, (double)sample->remembered);

        if (id != to && !now->keeps_most && now->pages > (now->host == 0) &&
            (from == 0 || costs < *least ||
             (costs == *least && now->pages > sample->class[from].pages))) {
            *least = costs;
            from = id;
        }
    }
    return from;
}

/* A class that has no page and none that could serve well; from the one with most, if nothing is known. */
static bool
find_wanted(const struct worth *w, const struct automove_sample *sample,
            struct automove_move *move)
{
    double costs;

    for (unsigned id = 1; id <= sample->class_count; id++) {
        if (sample->class[id].is_wanted && sample->class[id].pages == 0) {
            *move = (struct automove_move){find_source(w, sample, id, &costs), id};
            return move->from != 0;
        }
    }
    return false;
}

static bool
find_better(const struct worth *w, const struct automove_sample *sample,
            struct automove_move *move)
{
    double most = 0, costs = INFINITY;
    unsigned to = 0;

    for (unsigned id = 1; id <= sample->class_count; id++) {
        double brings = gain(&w->classes[id], &sample->class[id]);

        if (brings > most) {
            most = brings;
            to = id;
        }
    }
    *move = (struct automove_move){.to = to};
    move->from = to != 0 ? find_source(w, sample, to, &costs) : 0;
    return move->from != 0 && most >= GAIN_LEAST * costs;
}

bool
worth_decide(struct worth *w, const struct automove_sample *sample,
             struct automove_move *move)
{
    if (!find_wanted(w, sample, move) && !find_guests(sample, move) &&
        !find_better(w, sample, move)) {
        return false;
    }
    w->last_move = *move;
    return true;
}
