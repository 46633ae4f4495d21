/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Classes of requests. The policy: qos/class.h, qos/class_rules.h, qos/sched.h.
 */
#include <inttypes.h>

#include "base/hist.h"
#include "front/front.h"
#include "qos/limit_text.h"

#define MAX_WAIT_LEAST (100 * NSEC_PER_USEC)
#define MAX_WAIT_MOST (10 * NSEC_PER_SEC)

static const char *
set_max_wait(void *conf, const char *text)
{
    struct settings *s = conf;
    return limit_text_time(text, strlen(text), &s->class_max_wait) &&
                   s->class_max_wait >= MAX_WAIT_LEAST &&
                   s->class_max_wait <= MAX_WAIT_MOST
               ? NULL
               : "class-max-wait must be a time like 5ms, from 100us to 10s";
}

/* clang-format off */
static const struct opt options[] = {
    {.name = "classes", .kind = OPT_SWITCH, OF(classes.is_on), .arg = "on|off",
     .section = QOS, .preset = "on", .error = "classes must be on or off",
     .help = "serve small requests before large ones; off: in order of arrival"},
    {.name = "bulk-keys", .kind = OPT_INT, OF(classes.bulk_keys), .min = 1, .max = 1e9,
     .arg = "N", .section = QOS, .preset = "16",
     .error = "bulk-keys must be a number from 1", .help = "a get of more keys is bulk"},
    {.name = "bulk-bytes", .kind = OPT_BYTES, OF(classes.bulk_bytes), .min = 1,
     .max = 1 << 30, .arg = "SIZE", .section = QOS, .preset = "8k",
     .error = "bulk-bytes must be a size from 1 to 1g",
     .help = "a value of more bytes is bulk, with k or m"},
    {.name = "class-rule", PARSE(class_rules_add, class_rules), .arg = "RULE",
     .section = QOS, .adds_up = true,
     .help = "class of a client or key: peer:10.0.0.0/8=bulk, key:batch:=background"},
    {.name = "class-shares", PARSE(class_shares_parse, class_shares), .arg = "LIST",
     .section = QOS, .adds_up = true,
     .help = "guaranteed percent of worker time: write:10,bulk:5,background:1"},
    {.name = "class-max-wait", SET(set_max_wait), .arg = "TIME", .section = QOS,
     .preset = "5ms", .help = "longest time a class waits for its turn, with us, ms or s"},
    {.name = "prio-max-wait", SET(set_max_wait), .arg = "TIME", .section = QOS},
};
/* clang-format on */

static void
init(struct settings *s)
{
    class_shares_init(&s->class_shares);
}

static void
wire(const struct settings *s, struct net_shared *shared)
{
    shared->core.classes =
        class_conf_make(s->classes.is_on, s->classes.bulk_keys, s->classes.bulk_bytes);
    shared->core.class_rules = s->class_rules;
    shared->core.class_shares = s->class_shares;
    shared->core.class_max_wait = s->class_max_wait;
}

/* ---- statistics ----------------------------------------------------------------------- */

#define OF_CLASS(field) offsetof(struct core_class, field)

static uint64_t
sum_of(const struct stats *st, enum req_class class, size_t offset)
{
    return front_sum(st, COUNTER_OF(core.classes) + class * sizeof(struct core_class) +
                             offset);
}

static void
put(struct sink *sink, enum req_class class, const char *name, uint64_t value)
{
    char full[FRONT_NAME_MAX];
    snprintf(full, sizeof full, "class_%s_%s", class_name(class), name);
    sink_statf(sink, full, "%" PRIu64, value);
}

static void
put_counters(const struct stats *st, struct sink *sink, enum req_class class,
             const struct stats_counter *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(sink, class, rows[i].name, sum_of(st, class, rows[i].offset));
    }
}

static void
put_hist(struct stats *st, struct sink *sink, enum req_class class, const char *what,
         size_t offset, struct hist *sum)
{
    char full[FRONT_NAME_MAX];
    hist_reset(sum);
    front_merge(st,
                COUNTER_OF(core.classes[0]) + class * sizeof(struct core_class) + offset,
                sum);
    snprintf(full, sizeof full, "class_%s_%s", class_name(class), what);
    front_put_quantiles(sink, full, sum);
}

static const struct stats_counter served[] = {
    {"served", OF_CLASS(served)}, {"served_udp", OF_CLASS(served_udp)},
    {"bytes", OF_CLASS(bytes)},   {"queued", OF_CLASS(queued)},
    {"turns", OF_CLASS(turns)},
};

static void
show_class(struct stats *st, struct sink *sink, enum req_class class, struct hist *sum)
{
    uint64_t queued = sum_of(st, class, OF_CLASS(queued));
    uint64_t gone =
        sum_of(st, class, OF_CLASS(turns)) + sum_of(st, class, OF_CLASS(left));
    put_counters(st, sink, class, ROWS_OF(served));
    put(sink, class, "waiting", queued > gone ? queued - gone : 0);
    put(sink, class, "overdue", sum_of(st, class, OF_CLASS(overdue)));
    put_hist(st, sink, class, "wait", OF_CLASS(wait), sum);
    put_hist(st, sink, class, "service", OF_CLASS(service), sum);
    class_memory_show(st, class, sink);
}

static enum reply
show_classes(struct stats *st, const struct stats_query *ask)
{
    struct hist *sum = hist_create(CORE_CLASS_SUB_BITS, CORE_CLASS_MAX_NS);
    if (sum == NULL) {
        ask->sink->has_failed = true;
        return REPLY_END;
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        show_class(st, ask->sink, (enum req_class)c, sum);
    }
    hist_destroy(&sum);
    return REPLY_END;
}

static const struct stats_group groups[] = {{"classes", show_classes}};

static const struct stats_counter brief[] = {
    {"served", OF_CLASS(served)},
    {"queued", OF_CLASS(queued)},
};

static void
show(struct stats *st, struct sink *sink)
{
    const struct net_shared *shared = st->shared;
    sink_stat(sink, "classes", front_on(shared->core.classes.is_on));
    sink_statf(sink, "bulk_keys", "%" PRIu32, st->settings->classes.bulk_keys);
    sink_statf(sink, "bulk_bytes", "%" PRIu64, st->settings->classes.bulk_bytes);
    sink_statf(sink, "class_max_wait_us", "%" PRIu64,
               shared->core.class_max_wait / NSEC_PER_USEC);
    sink_statf(sink, "class_rules", "%u",
               shared->core.class_rules.peer_count + shared->core.class_rules.key_count);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        enum req_class class = (enum req_class)c;
        if (!class_is_inline(class)) {
            char full[FRONT_NAME_MAX];
            snprintf(full, sizeof full, "class_%s_share_pct", class_name(class));
            sink_statf(sink, full, "%.1f",
                       (double)shared->core.class_shares.per_mille[c] / 10);
        }
        put_counters(st, sink, class, ROWS_OF(brief));
    }
}

/* ---- command -------------------------------------------------------------------------- */

/* Of the connection that asks. */
static enum reply
run_class(struct stats *st, struct serve_qos *q)
{
    struct slice name = q->words[0];
    enum req_class class = class_by_declared_name(name.p, name.len);
    bool is_auto = req_word_is(name, "auto");
    if (!is_auto && class == CLASS_NONE) {
        return REPLY_BAD_FORMAT;
    }
    if (q->is_datagram) {
        return front_refuse(q, "a datagram has no connection to declare a class of");
    }
    if (!st->shared->core.classes.is_on) {
        return front_refuse(q, "classes are off: start the server with --classes=on");
    }
    enum req_class now =
        q->declared == 0 ? CLASS_NONE : (enum req_class)(q->declared - 1);
    bool has_key_rules = st->shared->core.class_rules.key_count > 0;
    enum req_class next = is_auto ? CLASS_NONE : class;
    if (!q->may_control && !class_is_lower(now, next, has_key_rules)) {
        return front_refuse_control(st, q);
    }
    q->declared = is_auto ? 0 : (uint8_t)(1 + class);
    return REPLY_OK;
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "class", .arguments = "<small|write|bulk|background|auto>", .least = 1,
     .most = 1, .run = run_class, .meaning = "class of the requests of this connection"},
};
/* clang-format on */

const struct front front_class = {
    OPTIONS(options), COMMANDS(commands), GROUPS(groups), .usage = FRONT_USAGE,
    .init = init,     .wire = wire,       .show = show};
