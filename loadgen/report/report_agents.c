/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report_agents.h"

#define NS_PER_US 1e3
#define TAIL_SHARE_MAX 0.5 /* of what is slower than p99, by one process: */
#define TAIL_TIMES 1.5     /* and so many times its part of the requests */

static void
print_loss(const struct result_loss *l, FILE *out)
{
    if (!l->has_happened) {
        return;
    }
    if (l->headline_s == 0) {
        fputs("Agents lost, and nothing was cut: the numbers above are of all that was "
              "reported\n",
              out);
        return;
    }
    fprintf(out, "Agents lost after %.2f s: the numbers above are of the time before\n",
            l->headline_s);
    fprintf(out,
            "After the loss = offered %.1f/s, achieved %.1f/s (%.2f%% of what was still "
            "offered) for %.2f s\n",
            result_ratio((double)l->after_offered, l->after_s),
            result_ratio((double)l->after_achieved, l->after_s),
            100 * result_ratio((double)l->after_achieved, (double)l->after_offered),
            l->after_s);
}

static void
write_loss(const struct result_loss *l, struct json *j)
{
    if (!l->has_happened) {
        return;
    }
    json_open(j, "agent_loss", '{');
    json_bool(j, "accepted", l->is_accepted);
    json_number(j, "headline_s", l->headline_s);
    json_number(j, "after_s", l->after_s);
    json_u64(j, "after_offered", l->after_offered);
    json_u64(j, "after_achieved", l->after_achieved);
    json_close(j, '}');
}

static void
print_load(const struct result_agent *a, FILE *out)
{
    fprintf(out, "offered %.1f/s, achieved %.1f/s, p50 %.1f us, p99 %.1f us, ",
            result_ratio((double)a->offered, a->elapsed_s),
            result_ratio((double)a->achieved, a->elapsed_s), (double)a->p50 / NS_PER_US,
            (double)a->p99 / NS_PER_US);
    fprintf(out, "%.0f%% of all above p99, ", 100 * a->tail_share);
    fprintf(out, "lag p99 %.1f us, %.2f%% within 1 ms, CPU %.1f%%",
            (double)a->lag_p99 / NS_PER_US, 100 * a->adherence, 100 * a->busy);
}

/* A tail that is one process's says less of the server than of that process. */
static void
print_outlier(const struct result *r, FILE *out)
{
    for (unsigned i = 0; i < r->agents_len; i++) {
        const struct result_agent *a = &r->agents[i];
        if (a->tail_share > TAIL_SHARE_MAX && a->tail_share > TAIL_TIMES * a->share) {
            fprintf(out,
                    "Note: agent %s has %.0f%% of all above p99, and %.0f%% of the "
                    "requests\n",
                    a->name, 100 * a->tail_share, 100 * a->share);
        }
    }
}

void
report_agents_text(const struct result *r, FILE *out)
{
    print_loss(&r->loss, out);
    for (unsigned i = 0; i < r->agents_len; i++) {
        const struct result_agent *a = &r->agents[i];
        fprintf(out, "Agent %s = ", a->name);
        if (a->is_lost) {
            fprintf(out, "LOST (%s), until then ", a->why);
        }
        if (a->observed > 0) {
            fprintf(out, "%ju answers to stats of %u servers", (uintmax_t)a->samples,
                    a->observed);
        } else {
            print_load(a, out);
        }
        if (a->clock_bound > 0) {
            fprintf(out,
                    ", began %.1f us late (clock within %.1f us), heartbeat at most %.1f "
                    "us late",
                    (double)a->start_error / NS_PER_US,
                    (double)a->clock_bound / NS_PER_US, (double)a->behind / NS_PER_US);
        }
        if (a->capacity > 0) {
            fprintf(out, ", capacity %.1f/s", a->capacity);
        }
        fprintf(out, ", role %s\n", a->role);
    }
    print_outlier(r, out);
}

void
report_agents_json(const struct result *r, struct json *j)
{
    if (r->agents_len > 0) {
        write_loss(&r->loss, j);
    }
    json_open(j, "agents", '[');
    for (unsigned i = 0; i < r->agents_len; i++) {
        const struct result_agent *a = &r->agents[i];
        json_open(j, NULL, '{');
        json_text(j, "name", a->name);
        json_bool(j, "lost", a->is_lost);
        json_text(j, "role", a->role);
        if (a->is_lost) {
            json_text(j, "why", a->why);
        }
        json_number(j, "qps", a->qps);
        if (a->capacity > 0) {
            json_number(j, "capacity", a->capacity);
        }
        json_u64(j, "offered", a->offered);
        json_u64(j, "achieved", a->achieved);
        json_number(j, "seconds", a->elapsed_s);
        json_number(j, "adherence_1ms", a->adherence);
        json_number(j, "busy", a->busy);
        json_u64(j, "p50", a->p50);
        json_u64(j, "p99", a->p99);
        json_u64(j, "lag_p99", a->lag_p99);
        json_number(j, "tail_share", a->tail_share);
        json_u64(j, "start_error", a->start_error);
        json_u64(j, "clock_bound", a->clock_bound);
        json_u64(j, "intervals", a->intervals);
        json_u64(j, "heartbeat_late", a->behind);
        if (a->observed > 0) {
            json_u64(j, "servers", a->observed);
            json_u64(j, "samples", a->samples);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
}
