/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Tenants that have equal shares. The policy: qos/fair.h, core/tenants.h.
 */
#include <ctype.h>
#include <inttypes.h>

#include "base/uri.h"
#include "front/front.h"

#define SHOWN_MOST 20 /* tenants of "stats fair" */

/* ---- options --------------------------------------------------------------------------- */

static enum fair_by
fair_by_now(const struct stats *st)
{
    return (enum fair_by)atomic_load_explicit(&st->shared->core.fair_by,
                                              memory_order_relaxed);
}

static void
set_fair(struct stats *st, enum fair_by by)
{
    tenants_set(&st->shared->core, by);
    workers_order(st->workers, st->worker_count, ORDER_RELIMIT);
}

static void
read_fair(void *program, void *conf)
{
    ((struct settings *)conf)->fair_by = fair_by_now(program);
}

static bool
apply_fair(void *program, const void *conf)
{
    set_fair(program, ((const struct settings *)conf)->fair_by);
    return true;
}

static const struct opt_live live = {read_fair, apply_fair, NULL, NULL};

/* clang-format off */
static const struct opt options[] = {
    {.name = "fair", .kind = OPT_CHOICE, OF(fair_by), OPT_CHOICES(fair_by_names),
     .exit_status = FRONT_USAGE, .arg = "off|peer|prefix|class", .section = QOS,
     .after = "control", .preset = "off", .live = &live,
     .error = "--fair must be off, peer, prefix or class",
     .help = "equal shares for clients' addresses, prefixes of keys, or classes"},
};
/* clang-format on */

static void
wire(const struct settings *s, struct net_shared *shared)
{
    tenants_set(&shared->core, s->fair_by);
}

/* ---- statistics ------------------------------------------------------------------------ */

static const struct fair_table *
table_of(const struct stats *st, unsigned worker)
{
    return atomic_load_explicit(&st->workers[worker].core.tenants.table,
                                memory_order_acquire);
}

static int
by_key(const void *a, const void *b)
{
    uint32_t x = ((const struct fair_report *)a)->key,
             y = ((const struct fair_report *)b)->key;
    return (x > y) - (x < y);
}

/* Those that have used most come first. */
static int
by_use(const void *a, const void *b)
{
    const struct fair_report *x = a, *y = b;
    return x->used_ns != y->used_ns
               ? (x->used_ns < y->used_ns) - (x->used_ns > y->used_ns)
               : (x->tokens < y->tokens) - (x->tokens > y->tokens);
}

static void
add(struct fair_report *to, const struct fair_report *from)
{
    to->turns += from->turns;
    to->requests += from->requests;
    to->used_ns += from->used_ns;
    to->tokens += from->tokens;
    to->waiting += from->waiting;
    if (to->name[0] == '\0') {
        memcpy(to->name, from->name, sizeof to->name);
    }
}

/* One row for each tenant, of all workers. */
static size_t
merge(struct fair_report *rows, size_t count)
{
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, by_key);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && rows[kept - 1].key == rows[i].key) {
            add(&rows[kept - 1], &rows[i]);
        } else {
            rows[kept++] = rows[i];
        }
    }
    qsort(rows, kept, sizeof *rows, by_use);
    return kept;
}

/* NULL: no memory. */
static struct fair_report *
collect(const struct stats *st, size_t *count)
{
    struct fair_report *rows =
        calloc((size_t)st->worker_count * FAIR_TENANTS, sizeof *rows);
    *count = 0;
    for (unsigned i = 0; rows != NULL && i < st->worker_count; i++) {
        const struct fair_table *t = table_of(st, i);
        for (unsigned place = 0; t != NULL && place < FAIR_TENANTS; place++) {
            struct fair_report *row = &rows[*count];
            *count += fair_report_of(t, place, row) &&
                      (row->turns > 0 || row->tokens > 0 || row->waiting > 0);
        }
    }
    *count = rows != NULL ? merge(rows, *count) : 0;
    return rows;
}

/* What makes it a tenant; of a name that is no word, its bytes as %XX. */
static const char *
describe(const struct fair_report *row, char to[URI_ENCODED_MAX(FAIR_NAME_MAX) + 1])
{
    bool is_word = true;
    for (const char *p = row->name; *p != '\0'; p++) {
        is_word &= isgraph((unsigned char)*p) != 0;
    }
    if (row->name[0] == '\0') {
        return row->key == 0 ? "-" : "?";
    }
    if (is_word) {
        return row->name;
    }
    to[uri_encode(to, row->name, strlen(row->name))] = '\0';
    return to;
}

static double
pct(uint64_t part, uint64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

static void
show_tenant(struct sink *sink, unsigned nth, const struct fair_report *row,
            const struct fair_report *all)
{
    char prefix[16], name[URI_ENCODED_MAX(FAIR_NAME_MAX) + 1];
    snprintf(prefix, sizeof prefix, "%u:", nth);
    sink_stat_of(sink, prefix, "name", "%s", describe(row, name));
    sink_stat_of(sink, prefix, "time_pct", "%.1f", pct(row->used_ns, all->used_ns));
    sink_stat_of(sink, prefix, "time_us", "%.0f", front_us(row->used_ns));
    sink_stat_of(sink, prefix, "turns", "%" PRIu64, row->turns);
    sink_stat_of(sink, prefix, "requests", "%" PRIu64, row->requests);
    sink_stat_of(sink, prefix, "tokens_pct", "%.1f", pct(row->tokens, all->tokens));
    sink_stat_of(sink, prefix, "tokens", "%" PRIu64, row->tokens);
    sink_stat_of(sink, prefix, "waiting", "%" PRIu64, row->waiting);
}

static void
show(struct stats *st, struct sink *sink)
{
    uint64_t shared = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct fair_table *t = table_of(st, i);
        shared += t != NULL ? ctr_get(&t->shared) : 0;
    }
    sink_stat(sink, "fair", fair_by_names[fair_by_now(st)]);
    sink_statf(sink, "fair_deferred", "%" PRIu64,
               front_sum(st, COUNTER_OF(core.tenants.deferred)));
    sink_statf(sink, "fair_shared", "%" PRIu64, shared);
}

static enum reply
show_fair(struct stats *st, const struct stats_query *ask)
{
    size_t count;
    struct fair_report *rows = collect(st, &count);
    if (rows == NULL) {
        ask->sink->has_failed = true;
        return REPLY_END;
    }
    struct fair_report all = {.key = 0};
    for (size_t i = 0; i < count; i++) {
        add(&all, &rows[i]);
    }
    show(st, ask->sink);
    sink_statf(ask->sink, "fair_tenants", "%zu", count);
    for (unsigned i = 0; i < count && i < SHOWN_MOST; i++) {
        show_tenant(ask->sink, i + 1, &rows[i], &all);
    }
    free(rows);
    return REPLY_END;
}

static const struct stats_group groups[] = {{"fair", show_fair}};

/* ---- command --------------------------------------------------------------------------- */

static enum reply
run_fair(struct stats *st, struct serve_qos *q)
{
    enum fair_by by;
    if (!fair_by_parse(q->words[0].p, q->words[0].len, &by)) {
        return REPLY_BAD_FORMAT;
    }
    set_fair(st, by);
    return REPLY_OK;
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "fair", .arguments = "<off|peer|prefix|class>", .least = 1, .most = 1,
     .is_control = true, .run = run_fair,
     .meaning = "equal shares for addresses, prefixes of keys, or classes"},
};
/* clang-format on */

const struct front front_fair = {OPTIONS(options),     COMMANDS(commands), GROUPS(groups),
                                 .usage = FRONT_USAGE, .wire = wire,       .show = show};
