/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Shares of the memory for classes of requests. The policy: store/shares.h.
 */
#include <inttypes.h>

#include "base/num.h"
#include "front/front.h"
#include "qos/limit_text.h"

#define PER_MILLE_OF_PERCENT 10
#define OFF "off"
#define MAX "max" /* behind a share that is a ceiling, too */

/* ---- as text --------------------------------------------------------------------------- */

/* "N%" or "N%max". */
static bool
parse_share(const char *p, size_t len, struct store_share *share)
{
    const char *number;
    size_t number_len;
    double percent;
    if (!limit_text_cut(&p, &len, '%', &number, &number_len) ||
        !num_double(number, number_len, &percent) || percent < 0.1 || percent > 100) {
        return false;
    }
    share->per_mille = (unsigned)(percent * PER_MILLE_OF_PERCENT + 0.5);
    share->is_ceiling = len == strlen(MAX) && memcmp(p, MAX, len) == 0;
    return share->is_ceiling || len == 0;
}

/* "CLASS:SHARE" into what has been read so far; bit by owner in *seen. */
static const char *
parse_one(const char *p, size_t len, struct store_shares *shares, unsigned *seen)
{
    const char *name;
    size_t name_len;
    bool has_share = limit_text_cut(&p, &len, ':', &name, &name_len);
    enum req_class class = class_by_declared_name(name, name_len);
    if (has_share && class == CLASS_NONE) {
        return "class-memory: the classes that store are small, write, bulk and "
               "background";
    }
    if (!has_share || !parse_share(p, len, &shares->of[class_owner(class)])) {
        return "class-memory must be like small:60%,background:10%max, in percent from "
               "0.1, or off";
    }
    if (*seen >> class_owner(class) & 1) {
        return "class-memory: one class is given twice";
    }
    *seen |= 1u << class_owner(class);
    return NULL;
}

static const char *
parse(const char *p, size_t len, struct store_shares *shares)
{
    struct store_shares read = {.is_on = true};
    unsigned seen = 0, sum = 0;
    if (len == strlen(OFF) && memcmp(p, OFF, len) == 0) {
        *shares = (struct store_shares){.is_on = false};
        return NULL;
    }
    for (bool has_more = true; has_more;) {
        const char *one;
        size_t one_len;
        has_more = limit_text_cut(&p, &len, ',', &one, &one_len);
        const char *error = parse_one(one, one_len, &read, &seen);
        if (error != NULL) {
            return error;
        }
    }
    for (unsigned o = 0; o < STORE_OWNERS; o++) {
        sum += read.of[o].per_mille;
    }
    if (sum > STORE_SHARES_TOTAL) {
        return "class-memory adds up to more than 100 percent";
    }
    *shares = read;
    return NULL;
}

/* As parse reads it; the classes in the order of service. */
static void
tell_shares(const struct store_shares *shares, char *to, size_t size)
{
    struct phrase t = {to, size, 0};
    phrase_add(&t, "%s", shares->is_on ? "" : OFF);
    for (unsigned c = CLASS_SMALL; c < CLASS_COUNT && shares->is_on; c++) {
        const struct store_share *share = &shares->of[class_owner((enum req_class)c)];
        if (share->per_mille > 0) {
            phrase_add(&t, "%s%s:%g%%%s", t.len > 0 ? "," : "",
                       class_name((enum req_class)c),
                       (double)share->per_mille / PER_MILLE_OF_PERCENT,
                       share->is_ceiling ? MAX : "");
        }
    }
}

/* ---- option ---------------------------------------------------------------------------- */

static const char *
set_memory(void *conf, const char *text)
{
    return parse(text, strlen(text), &((struct settings *)conf)->store.shares);
}

static void
read_memory(void *program, void *conf)
{
    const struct stats *st = program;
    ((struct settings *)conf)->store.shares = store_shares(st->shared->store);
}

/* What has to be so for shares to mean something; NULL: it is. */
static const char *
what_is_missing(const struct settings *s)
{
    return s->profile != PROFILE_NATIVE ? "class-memory needs --compat=native"
           : !s->classes.is_on          ? "class-memory needs --classes=on"
           : !s->store.can_evict        ? "class-memory needs evictions: leave out -M"
                                        : NULL;
}

static bool
apply_memory(void *program, const void *conf)
{
    const struct stats *st = program;
    const struct store_shares *shares = &((const struct settings *)conf)->store.shares;
    if (shares->is_on && what_is_missing(st->settings) != NULL) {
        return false;
    }
    store_set_shares(st->shared->store, shares);
    return true;
}

static void
tell_memory(const void *conf, char *to, size_t size)
{
    tell_shares(&((const struct settings *)conf)->store.shares, to, size);
}

static const struct opt_live live = {read_memory, apply_memory, tell_memory, NULL};

/* clang-format off */
static const struct opt options[] = {
    {.name = "class-memory", SET(set_memory), .arg = "LIST", .section = QOS,
     .after = "class-shares", .preset = OFF, .live = &live,
     .help = "reserved percent of memory by class: small:60%,background:10%max; max: no more"},
};
/* clang-format on */

static const char *
settle(struct settings *s, struct settling *to)
{
    (void)to;
    s->serve.plain_owner = class_owner(s->classes.is_on ? CLASS_WRITE : CLASS_SMALL);
    return s->store.shares.is_on ? what_is_missing(s) : NULL;
}

/* ---- statistics ------------------------------------------------------------------------ */

/* Gets that found an item of the owner. */
static uint64_t
sum_hits(const struct stats *st, unsigned owner)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        for (unsigned id = 0; id < STORE_CLASSES; id++) {
            const struct serve_slab_ctr *slab =
                &st->workers[i].ctr.slab[STORE_SLOT(id, owner)];
            for (unsigned list = 0; list < STORE_LISTS; list++) {
                sum += ctr_get(&slab->get_hits[list]);
            }
        }
    }
    return sum;
}

void
class_memory_show(struct stats *st, enum req_class class, struct sink *sink)
{
    char prefix[FRONT_NAME_MAX];
    struct store_owner_stats stats;
    if (class == CLASS_CONTROL) {
        return;
    }
    store_owner_stats(st->shared->store, class_owner(class), &stats);
    snprintf(prefix, sizeof prefix, "class_%s_memory_", class_name(class));
    sink_stat_of(sink, prefix, "bytes", "%" PRIu64, stats.bytes);
    sink_stat_of(sink, prefix, "items", "%" PRIu64, stats.items);
    sink_stat_of(sink, prefix, "hits", "%" PRIu64, sum_hits(st, class_owner(class)));
    sink_stat_of(sink, prefix, "evictions", "%" PRIu64, stats.evicted);
    sink_stat_of(sink, prefix, "would_hit", "%" PRIu64, stats.would_hit);
}

static void
show(struct stats *st, struct sink *sink)
{
    struct store_shares shares = store_shares(st->shared->store);
    char text[OPT_TOLD_MAX];
    tell_shares(&shares, text, sizeof text);
    sink_stat(sink, "class_memory", text);
    for (unsigned c = CLASS_SMALL; c < CLASS_COUNT; c++) {
        unsigned per_mille = shares.of[class_owner((enum req_class)c)].per_mille;
        snprintf(text, sizeof text, "class_%s_memory_", class_name((enum req_class)c));
        sink_stat_of(sink, text, "pct", "%.1f", (double)per_mille / PER_MILLE_OF_PERCENT);
    }
}

/* ---- command --------------------------------------------------------------------------- */

static enum reply
run_memory(struct stats *st, struct serve_qos *q)
{
    struct store_shares shares;
    const char *error = parse(q->words[0].p, q->words[0].len, &shares);
    if (error == NULL && shares.is_on) {
        error = what_is_missing(st->settings);
    }
    if (error != NULL) {
        return front_refuse(q, "%s", error);
    }
    store_set_shares(st->shared->store, &shares);
    return REPLY_OK;
}

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "class_memory", .arguments = "<class:N%[max],...|off>", .least = 1, .most = 1,
     .is_control = true, .run = run_memory,
     .meaning = "reserve a share of the memory for classes of requests"},
};
/* clang-format on */

const struct front front_class_memory = {OPTIONS(options), COMMANDS(commands),
                                         .usage = FRONT_USAGE, .settle = settle,
                                         .show = show};
