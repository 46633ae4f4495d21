/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report_parts.h"

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
            report_percent((double)l->after_achieved, (double)l->after_offered),
            l->after_s);
}

static void
print_quantile(const char *name, struct quantile q, bool is_known, FILE *out)
{
    if (is_known) {
        fprintf(out, "%s %s%.1f us, ", name, q.is_bound ? ">" : "", report_us(q.ns));
    } else {
        fprintf(out, "%s n/a, ", name);
    }
}

static void
print_load(const struct result_agent *a, FILE *out)
{
    fprintf(out, "offered %.1f/s, achieved %.1f/s, ",
            result_ratio((double)a->offered, a->elapsed_s),
            result_ratio((double)a->achieved, a->elapsed_s));
    print_quantile("p50", a->p50, a->requests > 0, out);
    print_quantile("p99", a->p99, a->requests > 0, out);
    fprintf(out, "%.0f%% of all above p99, ", 100 * a->tail_share);
    fprintf(out, "lag p99 %.1f us, %.2f%% within 1 ms, CPU %.1f%%", report_us(a->lag_p99),
            100 * a->adherence, 100 * a->busy);
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
                    report_us(a->start_error), report_us(a->clock_bound),
                    report_us(a->behind));
        } else if (a->start_error > 0) {
            fprintf(out, ", began %.1f us late", report_us(a->start_error));
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
    const struct result_loss *l = &r->loss;
    if (r->agents_len > 0 && l->has_happened) {
        json_object_of(j, "agent_loss", JSON("accepted", l->is_accepted),
                       JSON("headline_s", l->headline_s), JSON("after_s", l->after_s),
                       JSON("after_offered", l->after_offered),
                       JSON("after_achieved", l->after_achieved));
    }
    json_open(j, "agents", '[');
    for (unsigned i = 0; i < r->agents_len; i++) {
        const struct result_agent *a = &r->agents[i];
        json_object_of(
            j, NULL, json_of_text("name", a->name), JSON("lost", a->is_lost),
            JSON("role", a->role), JSON_IF(a->is_lost, json_of_text("why", a->why)),
            JSON("qps", a->qps), JSON_IF(a->capacity > 0, JSON("capacity", a->capacity)),
            JSON("offered", a->offered), JSON("achieved", a->achieved),
            JSON("seconds", a->elapsed_s), JSON("adherence_1ms", a->adherence),
            JSON("busy", a->busy), report_known("p50", a->p50, a->requests > 0),
            report_known("p99", a->p99, a->requests > 0), JSON("lag_p99", a->lag_p99),
            JSON("tail_share", a->tail_share), JSON("start_error", a->start_error),
            JSON("clock_bound", a->clock_bound), JSON("intervals", a->intervals),
            JSON("heartbeat_late", a->behind),
            JSON_IF(a->observed > 0, JSON("servers", a->observed)),
            JSON_IF(a->observed > 0, JSON("samples", a->samples)));
    }
    json_close(j, ']');
}
