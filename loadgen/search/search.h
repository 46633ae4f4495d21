/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Search for the largest rate at which a goal is met: which rate to try next, given how all
 * before went. Pure; its owner's thread only.
 *
 *   PEAK     closed loop: an upper bound to start from
 *   CEILING  the largest open-loop rate that is achieved
 *   BRACKET  unless the ceiling meets the goal: a tenth of it, doubled until the goal is
 *            missed, or halved until it is met
 *   BISECT   between a rate that met the goal and one that missed it; a rate whose
 *            confidence interval has the limit inside is measured for longer, and when that
 *            does not help, its estimate leads on, but decides nothing
 *   CONFIRM  fresh connections, three runs each at the answer, one tolerance below and above
 *            it, and further out until all runs below meet the goal and all above miss it
 *
 * The answer is an interval between such rates. Between rates that are clear it is narrowed
 * by a further round; where the runs do not agree it stays as wide as they make it.
 */
#pragma once

#include "base/must.h"

#define SEARCH_PROBES_MAX 512
/* A run at a rate that is left open is made so much longer at most, in doublings. */
#define SEARCH_LENGTH_MAX 4
#define SEARCH_REPEATS 3
#define SEARCH_ACHIEVED_MIN 0.99

struct search_conf {
    /* of the statistic; 0: limit_times what it is at a tenth of the ceiling */
    double limit;
    double limit_times;
    double errors_max; /* share of the requests */
    double tolerance;  /* of the answer, as a share of it */
    double budget_s;   /* for all runs; the search ends when the next would exceed it */
    double rate_max;   /* > 0: a rate that is not exceeded */
};

/* How a run went. */
struct search_outcome {
    double value; /* the statistic; infinite when it falls among unanswered requests */
    double low, high; /* its confidence interval */
    double qps;       /* requests answered a second */
    double achieved;  /* of those offered; 1 in a closed loop */
    bool is_unsure;   /* what is missing of them may be chance */
    double errors;    /* of all requests */
    bool is_valid;    /* the client has done its part */
    double seconds;   /* that it has taken, all in all */
};

/* Why a rate missed the goal. */
enum search_bound {
    SEARCH_BY_NOTHING,
    SEARCH_BY_LATENCY,
    SEARCH_BY_RATE,   /* not achieved */
    SEARCH_BY_ERRORS, /* too many */
    SEARCH_BY_CLIENT, /* the run was invalid */
    SEARCH_BOUNDS,
};

enum search_verdict {
    SEARCH_MET,
    SEARCH_MISSED,
    SEARCH_OPEN, /* the limit lies within the confidence interval */
};

enum search_stage {
    SEARCH_PEAK,
    SEARCH_CEILING,
    SEARCH_BRACKET,
    SEARCH_BISECT,
    SEARCH_CONFIRM,
    SEARCH_DONE,
};

/* What to measure next. */
struct search_probe {
    enum search_stage stage; /* SEARCH_DONE: nothing */
    double rate;             /* 0: closed loop */
    unsigned length;         /* of the run, in usual ones */
    bool is_fresh;           /* with connections of its own */
};

/* A rate that was tried, with what was made of it. */
struct search_point {
    double rate;
    struct search_outcome outcome; /* of the last run */
    enum search_verdict verdict;
    enum search_bound bound;
    /* CONFIRM only. */
    unsigned runs, met;
    double value_sum, width_sum; /* of values, and of squares of intervals' half widths */
};

struct search {
    struct search_conf conf;
    struct search_probe probe; /* the one under way */
    double limit;              /* 0: not known yet */
    double peak, ceiling;
    double low, high;          /* where the search is: met and missed; 0: none yet */
    double spent_s, longest_s; /* all runs, and the longest run of length 1 */
    unsigned probes, retries, rounds;
    double answer;         /* CONFIRM: the middle, */
    unsigned below, above; /* how far out it has gone, in doublings of a tolerance */
    unsigned first, batch, batch_runs; /* and which of `confirmed` are under way */
    struct search_point tried[SEARCH_PROBES_MAX];
    unsigned tried_count;
    struct search_point confirmed[SEARCH_PROBES_MAX];
    unsigned confirmed_count;
};

/* Why an answer is not narrower. */
enum search_doubt {
    SEARCH_CUT_SHORT, /* there was no time for more runs */
    SEARCH_DISAGREES, /* at a rate within it runs met the goal, and others missed it */
    SEARCH_UNSURE, /* they agree, but have the limit within their confidence interval */
};

/* What it came to. The truth lies between low and high. */
struct search_answer {
    bool is_met;             /* at some rate */
    bool is_found;           /* and the interval is no wider than the rate itself */
    bool is_decided;         /* low and high are within two tolerances */
    bool is_confirmed;       /* runs with fresh connections have said so */
    double qps, low, high;   /* high 0: no rate missed the goal */
    enum search_bound bound; /* why the rate at `high` has missed it */
    enum search_doubt doubt;
    double limit, peak, ceiling;
    unsigned probes;
    double seconds;
};

void search_init(struct search *s, const struct search_conf *conf);
/* What to measure next; the same until it is told. */
struct search_probe search_next(const struct search *s);
/* How the probe of search_next went. */
void search_tell(struct search *s, const struct search_outcome *o);
struct search_answer search_answer(const struct search *s);
/* "latency", "achieved rate", "errors", "client". */
extern const char *const search_bound_names[SEARCH_BOUNDS];
