/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/page.h"

#include <inttypes.h>
#include <sched.h>

#include "admin/collect.h"
#include "admin/exposition.h"
#include "base/clock.h"
#include "base/hist.h"
#include "front/front.h"

#define VALUE_MAX 40
#define LABEL_MAX 64

/* A worker that wakes on this thread's CPU may have to wait until its slice of some
 * milliseconds ends. So the page is made in pieces, and each is followed by this. No worker waits
 * for a lock that is held here. */
static void
give_way(void)
{
    must(sched_yield() == 0);
}

#define ROWS_AT_ONCE 16

/* ---- rows ----------------------------------------------------------------------------- */

enum unit {
    ONE,          /* a number; yes and on are 1, no and off are 0 */
    PERCENT,      /* is told as a ratio */
    MICROSECONDS, /* are told as seconds */
    NANOSECONDS,
    SETS,   /* told without those of cas */
    TEXT,   /* is the value of the label */
    ALWAYS, /* 1 */
};

static const double scales[] = {
    [PERCENT] = 0.01, [MICROSECONDS] = 1e-6, [NANOSECONDS] = 1e-9};

struct row {
    const char *group, *line, *metric;
    enum metric_type type;
    const char *label, *labels;
    enum unit unit;
    const char *help;
};

static const struct row rows[] = {
#define GAUGE(group, line, metric, label, labels, unit, help)                            \
    {group, line, metric, METRIC_GAUGE, label, labels, unit, help},
#define COUNTER(group, line, metric, label, labels, unit, help)                          \
    {group, line, metric, METRIC_COUNTER, label, labels, unit, help},
#include "admin/metrics.def"
#undef GAUGE
#undef COUNTER
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

/* The groups that the rows name. */
static const char *const groups[] = {"",        "settings", "items", "slabs",
                                     "classes", "qos",      "pin"};
#define GROUP_COUNT (sizeof groups / sizeof groups[0])

struct metrics_source {
    struct stats *stats;
    struct collected groups[GROUP_COUNT];
};

static const struct collected *
lines_of(const struct metrics_source *source, const char *group)
{
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        if (strcmp(groups[i], group) == 0) {
            return &source->groups[i];
        }
    }
    unreachable();
}

static bool
collect_all(struct stats *st, struct metrics_source *source)
{
    bool is_good = true;
    *source = (struct metrics_source){.stats = st};
    for (size_t i = 0; is_good && i < GROUP_COUNT; i++) {
        is_good = collect_group(st, groups[i], &source->groups[i]);
        give_way();
    }
    return is_good;
}

static void
free_all(struct metrics_source *source)
{
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        collect_free(&source->groups[i]);
    }
}

/* ---- lines ---------------------------------------------------------------------------- */

/* What may be the value of a label: the names of other lines match a '*', too. */
static bool
is_label(const char *label, const char *text, size_t len)
{
    if (strcmp(label, "class") == 0) {
        return class_by_name(text, len) != CLASS_NONE;
    }
    if (strcmp(label, "slab") == 0 || strcmp(label, "worker") == 0) {
        return len > 0 && strspn(text, "0123456789") >= len;
    }
    return len > 0;
}

/* Is it a line of the row, whose pattern has this '*' or none? What the '*' stands for is in
 * `text` then. */
static bool
is_line_of(const struct row *row, const char *star, const char *name,
           char text[LABEL_MAX])
{
    if (star == NULL) {
        return strcmp(row->line, name) == 0;
    }
    size_t head = (size_t)(star - row->line), tail = strlen(star + 1), len = strlen(name);
    if (len < head + tail || memcmp(name, row->line, head) != 0 ||
        memcmp(name + len - tail, star + 1, tail) != 0 ||
        !is_label(row->label, name + head, len - head - tail)) {
        return false;
    }
    snprintf(text, LABEL_MAX, "%.*s", (int)(len - head - tail), name + head);
    return true;
}

/* Of the slab class that the label names, or of all. */
static uint64_t
count_sets(struct stats *st, const struct row *row, const char *label)
{
    uint64_t sets = 0;
    if (row->label != NULL) {
        return stats_parts(st, (unsigned)strtoul(label, NULL, 10)).sets;
    }
    for (unsigned id = 1; id <= store_class_count(st->shared->store); id++) {
        sets += stats_parts(st, id).sets;
    }
    return sets;
}

/* The line's value as a number in text; NULL: it is none. */
static const char *
number_of(const struct row *row, const struct metrics_source *source, const char *label,
          const char *value, char text[VALUE_MAX])
{
    char *end;
    switch (row->unit) {
    case TEXT:
    case ALWAYS:
        return "1";
    case SETS:
        snprintf(text, VALUE_MAX, "%" PRIu64, count_sets(source->stats, row, label));
        return text;
    case ONE:
    case PERCENT:
    case MICROSECONDS:
    case NANOSECONDS:
        break;
    }
    if (strcmp(value, "yes") == 0 || strcmp(value, "on") == 0) {
        return "1";
    }
    if (strcmp(value, "no") == 0 || strcmp(value, "off") == 0) {
        return "0";
    }
    double number = strtod(value, &end);
    if (end == value || (*end != '\0' && strcmp(end, "%") != 0)) {
        return NULL;
    }
    if (row->unit == ONE) {
        return value; /* all digits */
    }
    snprintf(text, VALUE_MAX, "%.15g", number * scales[row->unit]);
    return text;
}

static void
add_label(struct metric_label *labels, unsigned *count, const char *name,
          const char *value)
{
    must(*count < METRIC_LABELS_MAX);
    labels[(*count)++] = (struct metric_label){name, value};
}

/* "command=get,status=hit"; the labels point into `copy`. */
static void
add_labels(struct metric_label *labels, unsigned *count, const char *text,
           char copy[LABEL_MAX])
{
    char *rest = NULL;
    snprintf(copy, LABEL_MAX, "%s", text);
    for (char *name = strtok_r(copy, "=", &rest); name != NULL;
         name = strtok_r(NULL, "=", &rest)) {
        add_label(labels, count, name, strtok_r(NULL, ",", &rest));
    }
}

/* The first of its rows has it, whether it has lines or not. */
static const char *
help_of(const struct row *row)
{
    while (row > rows && strcmp(row[-1].metric, row->metric) == 0) {
        row--;
    }
    return row->help;
}

static void
put_line(struct exposition *e, const struct row *row, const char *label,
         const char *value)
{
    struct metric_label labels[METRIC_LABELS_MAX];
    char copy[LABEL_MAX];
    unsigned count = 0;
    if (row->label != NULL) {
        add_label(labels, &count, row->label, label);
    }
    if (row->labels != NULL) {
        add_labels(labels, &count, row->labels, copy);
    }
    exposition_family(e, row->metric, row->type, help_of(row));
    exposition_sample(e, "", labels, count, value);
}

static void
put_row(struct exposition *e, const struct row *row, const struct metrics_source *source)
{
    const struct collected *lines = lines_of(source, row->group);
    const char *star = strchr(row->line, '*');
    char label[LABEL_MAX], text[VALUE_MAX];
    for (size_t i = 0; i < lines->count; i++) {
        const struct collected_line *line = &lines->lines[i];
        const char *number = is_line_of(row, star, line->name, label)
                                 ? number_of(row, source, label, line->value, text)
                                 : NULL;
        if (number != NULL) {
            put_line(e, row, row->unit == TEXT ? line->value : label, number);
        }
    }
}

/* ---- histograms ----------------------------------------------------------------------- */

/* A worker's histograms of one kind: one for each class, or for all requests. */
struct hists {
    const char *metric, *help;
    unsigned sub_bits;
    nsec_t max;
    unsigned step;                     /* between bounds, in powers of 2 */
    size_t offset, of_class, of_stage; /* in struct worker; 0: there is one for all */
};

/* clang-format off */
static const struct hists hists[] = {
    {"memcached_qos_queue_delay_seconds",
     "Time that deferred work waited in the queue of its class, a turn.",
     CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS, 1,
     COUNTER_OF(core.classes[0].wait), sizeof(struct core_class), 0},
    {"memcached_qos_turn_seconds", "Length of the turns of deferred work.",
     CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS, 2,
     COUNTER_OF(core.classes[0].service), sizeof(struct core_class), 0},
    {"memcached_qos_limit_delay_seconds", "Time that requests waited for a limit, of those that did.",
     ADMISSION_SUB_BITS, ADMISSION_MAX_NS, 1,
     COUNTER_OF(core.admission.delay), 0, 0},
    {"memcached_qos_latency_seconds",
     "Where the time of requests goes, of those that are followed: every 64th read of a worker.",
     LATENCY_SUB_BITS, LATENCY_MAX_NS, 2,
     COUNTER_OF(core.latency.stages[0][0]), sizeof(struct hist *[LATENCY_STAGES]), sizeof(struct hist *)},
};
/* clang-format on */

/* Bounds are 2^k - 1 ns, where buckets end: nothing is estimated. What is longer than a histogram
 * tells apart is above all of them. */
#define BOUND_FIRST 10 /* 1 us */
#define BOUND_LAST 34  /* 17 s */

static void
put_count(struct exposition *e, const char *suffix, const struct metric_label *labels,
          unsigned count, uint64_t value)
{
    char text[VALUE_MAX];
    snprintf(text, sizeof text, "%" PRIu64, value);
    exposition_sample(e, suffix, labels, count, text);
}

/* The buckets are summed up once, so that what is told is of one picture. */
static void
put_buckets(struct exposition *e, const struct hists *kind, const struct hist *sum,
            struct metric_label *labels, unsigned count)
{
    uint32_t cursor = 0;
    uint64_t low, high, records, total = 0;
    char text[VALUE_MAX];
    bool has_more = hist_next(sum, &cursor, &low, &high, &records);
    for (unsigned k = BOUND_FIRST; k <= BOUND_LAST && UINT64_C(1) << k <= kind->max;
         k += kind->step) {
        for (; has_more && low < UINT64_C(1) << k;
             has_more = hist_next(sum, &cursor, &low, &high, &records)) {
            total += records;
        }
        nsec_t bound = (UINT64_C(1) << k) - 1;
        snprintf(text, sizeof text, "%" PRIu64 ".%09" PRIu64, bound / NSEC_PER_SEC,
                 bound % NSEC_PER_SEC);
        labels[count] = (struct metric_label){"le", text};
        put_count(e, "_bucket", labels, count + 1, total);
    }
    for (; has_more; has_more = hist_next(sum, &cursor, &low, &high, &records)) {
        total += records;
    }
    labels[count] = (struct metric_label){"le", "+Inf"};
    put_count(e, "_bucket", labels, count + 1, total);
    snprintf(text, sizeof text, "%.15g", hist_sum(sum) / (double)NSEC_PER_SEC);
    exposition_sample(e, "_sum", labels, count, text);
    put_count(e, "_count", labels, count, total);
}

static void
put_hist(struct exposition *e, const struct hists *kind, const struct stats *st,
         unsigned class, unsigned stage, struct hist *sum)
{
    struct metric_label labels[METRIC_LABELS_MAX];
    unsigned count = 0;
    size_t offset = kind->offset + class * kind->of_class + stage * kind->of_stage;
    hist_reset(sum);
    front_merge(st, offset, sum);
    if (kind->of_class != 0) {
        add_label(labels, &count, "class", class_name((enum req_class) class));
    }
    if (kind->of_stage != 0) {
        add_label(labels, &count, "stage", latency_stage_name((enum latency_stage)stage));
    }
    exposition_family(e, kind->metric, METRIC_HISTOGRAM, kind->help);
    put_buckets(e, kind, sum, labels, count);
}

/* False: no memory. */
static bool
put_hists(struct exposition *e, const struct hists *kind, const struct stats *st)
{
    struct hist *sum = hist_create(kind->sub_bits, kind->max);
    for (unsigned c = 0; sum != NULL && c < (kind->of_class != 0 ? CLASS_COUNT : 1);
         c++) {
        for (unsigned s = 0; s < (kind->of_stage != 0 ? LATENCY_STAGES : 1); s++) {
            put_hist(e, kind, st, c, s, sum);
            give_way();
        }
    }
    bool is_good = sum != NULL;
    hist_destroy(&sum);
    return is_good;
}

/* ---- tokens --------------------------------------------------------------------------- */

static void
put_tokens(struct exposition *e, const char *scope, const struct limit *l, nsec_t now)
{
    struct metric_label label = {"scope", scope};
    char text[VALUE_MAX];
    snprintf(text, sizeof text, "%.15g", limit_tokens(l, now));
    exposition_family(e, "memcached_qos_limit_tokens", METRIC_GAUGE,
                      "Requests that the limit would admit now; below 0: so many wait "
                      "for tokens that are still to come.");
    exposition_sample(e, "", &label, 1, text);
}

static void
put_all_tokens(struct exposition *e, const struct limiter *l)
{
    nsec_t now = clock_now();
    put_tokens(e, "total", &l->total, now);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (class_is_limited((enum req_class)c)) {
            put_tokens(e, class_name((enum req_class)c), &l->by_class[c], now);
        }
    }
}

/* ---- page ----------------------------------------------------------------------------- */

void
metrics_page(struct admin_view *view, struct http_exchange *x)
{
    struct exposition e = {.out = x->out, .format = exposition_choose(x->accept)};
    struct metrics_source source;
    x->type = exposition_type(e.format);
    if (!collect_all(view->stats, &source)) {
        x->has_failed = true;
    } else {
        for (size_t i = 0; i < ROW_COUNT; i++) {
            put_row(&e, &rows[i], &source);
            if (i % ROWS_AT_ONCE == 0) {
                give_way();
            }
        }
        put_all_tokens(&e, &view->stats->shared->core.limiter);
        for (size_t i = 0; i < sizeof hists / sizeof hists[0]; i++) {
            x->has_failed |= !put_hists(&e, &hists[i], view->stats);
        }
        exposition_end(&e);
    }
    free_all(&source);
}
