/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The tables that are made of the fronts: options, defaults, sub-commands of "qos".
 */
#include "front/front.h"
#include "qos/sched.h"

#include "check_main.h"

static struct settings settings;
static int status;

static bool
parse(const char *first, const char *second)
{
    char words[3][64] = {"memcached"};
    char *argv[4] = {words[0], NULL, NULL, NULL};
    int argc = 1;
    settings_fini(&settings);
    if (first != NULL) {
        snprintf(words[argc], sizeof words[argc], "%s", first);
        argv[argc] = words[argc];
        argc++;
    }
    if (second != NULL) {
        snprintf(words[argc], sizeof words[argc], "%s", second);
        argv[argc] = words[argc];
        argc++;
    }
    status = 0;
    return settings_parse(&settings, argc, argv, &status);
}

static void
forget(void)
{
    settings_fini(&settings);
}

static bool
is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

FIXTURE(NULL, forget);

TEST(no_option_is_there_twice)
{
    struct opt_table t = front_options(PROFILE_NATIVE);
    ck_assert_uint_gt(t.count, 120);
    for (size_t i = 0; i < t.count; i++) {
        const struct opt *a = &t.rows[i];
        ck_assert(a->letter != 0 || a->name != NULL || a->word != NULL);
        for (size_t k = i + 1; k < t.count; k++) {
            const struct opt *b = &t.rows[k];
            ck_assert_msg((a->letter == 0 || a->letter != b->letter) &&
                              !is_same(a->name, b->name) && !is_same(a->word, b->word),
                          "%c %s %s", a->letter, a->name, a->word);
        }
    }
}

static bool
is_called(const struct opt *row, const char *name)
{
    return is_same(row->name, name) || is_same(row->word, name);
}

/* Rows of one section of the help stand together, those that follow another one behind it. */
TEST(options_are_in_the_order_of_the_help)
{
    static const char *const threads[] = {
        "threads", "max-reqs-per-event", "napi-ids", "pin", "steer", "sched"};
    struct opt_table t = front_options(PROFILE_NATIVE);
    size_t first = 0;
    for (size_t i = 1; i < t.count; i++) {
        ck_assert_uint_ge(t.rows[i].section, t.rows[i - 1].section);
        if (t.rows[i].after != NULL) {
            ck_assert(is_same(t.rows[i - 1].name, t.rows[i].after) ||
                      is_same(t.rows[i - 1].word, t.rows[i].after));
        }
    }
    while (t.rows[first].section != THREADS) {
        first++;
    }
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        ck_assert_str_eq(t.rows[first + i].name, threads[i]);
    }
}

TEST(short_help_has_places)
{
    struct opt_table t = front_options(PROFILE_NATIVE);
    uint32_t taken = 0;
    for (size_t i = 0; i < t.count; i++) {
        uint32_t bit = t.rows[i].common > 0 ? UINT32_C(1) << t.rows[i].common : 0;
        ck_assert_msg((taken & bit) == 0, "%s", t.rows[i].name);
        taken |= bit;
    }
}

TEST(defaults)
{
    const struct settings *s = &settings;
    ck_assert(parse(NULL, NULL));
    ck_assert_int_eq(s->listen.port, 11211);
    ck_assert_int_eq(s->listen.udp_port, LISTEN_PORT_OFF);
    ck_assert_int_eq(s->threads, 4);
    ck_assert_uint_eq(s->listen.max_conns, 1024 - 4 * SETTINGS_FILES_PER_WORKER - 1);
    ck_assert_uint_eq(s->listen.socket_mode, 0700);
    ck_assert_uint_eq(s->store.limit_bytes, 64 << 20);
    ck_assert_uint_eq(s->store.item_max, 1 << 20);
    ck_assert_uint_eq(s->store.chunk_max, 512 << 10);
    ck_assert_uint_eq(s->store.hash_power, 16);
    ck_assert_int_eq(s->store.lru.temp_ttl, -1);
    ck_assert_uint_eq(s->store.tail_repair_seconds, 0);
    ck_assert(s->store.use_cas && s->serve.use_cas && s->store.can_evict);
    ck_assert(s->store.can_reassign && s->maint.has_maintainer);
    ck_assert_uint_eq(s->automove.window, 10);
    ck_assert_uint_eq(s->worker_log_bytes, 64 << 10);
    ck_assert(s->classes.is_on && s->udp.guard.is_on);
    ck_assert_uint_eq(s->classes.bulk_keys, CLASS_BULK_KEYS);
    ck_assert_uint_eq(s->classes.bulk_bytes, CLASS_BULK_BYTES);
    ck_assert_uint_eq(s->class_max_wait, SCHED_MAX_WAIT_NS);
    ck_assert_int_eq(s->limits.action, ACTION_DELAY);
    ck_assert_str_eq(s->resctrl.root, RESCTRL_ROOT);
    ck_assert(parse("--compat=1.4", NULL));
    ck_assert(!s->store.can_reassign && !s->maint.has_maintainer);
    ck_assert_uint_eq(s->automove.window, 30);
    ck_assert_uint_eq(s->automove.level, 0);
    ck_assert_uint_eq(s->store.chunk_max, 1 << 20);
    ck_assert(parse("--compat=1.4", "-omodern"));
    ck_assert(s->store.can_reassign && !s->store.inline_suffix);
    ck_assert_uint_eq(s->automove.level, 1);
}

/* The exit status is that of the row, or of its front. */
TEST(refused_values)
{
    static const struct {
        const char *arg;
        int status;
    } rows[] = {
        {"-m0", 1},           {"-p70000", 64},      {"--bulk-keys=0", 64},
        {"--fair=peers", 64}, {"--slo=x", 64},      {"-N0", 1},
        {"--sched=x", 64},    {"-I5", 64},          {"-t0", 1},
        {"--control=x", 64},  {"-oslab_sizes", 64}, {"-ohot_lru_pct=80", 1},
        {"-c10", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_msg(!parse(rows[i].arg, NULL), "%s", rows[i].arg);
        ck_assert_msg(status == rows[i].status, "%s: %d", rows[i].arg, status);
    }
}

/* What is told of an option can be written in a file, and means the same. */
static void
tells(const struct opt_table *t, const struct opt *row, const char *text)
{
    char reported[OPT_TOLD_MAX], again[OPT_TOLD_MAX];
    const char *name = row->name != NULL ? row->name : row->word;
    ck_assert(parse(NULL, NULL));
    if (text != NULL) {
        snprintf(reported, sizeof reported, "%s", text);
        ck_assert_int_eq(opt_set(t, &settings, name, reported, stderr, &status),
                         OPT_DONE);
    }
    opt_tell(row, &settings, reported);
    ck_assert_msg(text == NULL || strcmp(reported, text) == 0, "%s: %s", text, reported);
    snprintf(again, sizeof again, "%s", reported);
    if (row->arg != NULL) {
        ck_assert_int_eq(opt_set(t, &settings, name, again, stderr, &status), OPT_DONE);
        opt_tell(row, &settings, again);
    }
    ck_assert_str_eq(again, reported);
}

TEST(settings_are_told_as_they_are_written)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"qps-limit", "50000,burst=7,small=5,burst=9,bulk=2000"},
        {"qps-limit", "off,write=1"},
        {"qps-limit-peer", "100,burst=3"},
        {"qps-limit-action", "delay:50ms+error"},
        {"qps-limit-unit", "key"},
        {"cpu-limit", "40%"},
        {"fair", "prefix"},
        {"slo", "p95:500us,write=p99.9:20000us"},
        {"verbose", "2"},
        {"memory-limit", "100"},
        {"slab_automove", "2"},
        {"slab_automove_ratio", "0.25"},
        {"hot_max_factor", "1.5"},
    };
    struct opt_table t = front_options(PROFILE_NATIVE);
    for (size_t i = 0; i < t.count; i++) {
        if (t.rows[i].live != NULL) {
            tells(&t, &t.rows[i], NULL);
        }
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            if (is_called(&t.rows[i], rows[k].name)) {
                tells(&t, &t.rows[i], rows[k].text);
            }
        }
    }
}

/* Rows that write one field change it in one way, or one of them would take a restart. */
TEST(rows_of_one_setting_change_alike)
{
    struct opt_table t = front_options(PROFILE_NATIVE);
    for (size_t i = 0; i < t.count; i++) {
        const struct opt *a = &t.rows[i];
        ck_assert(a->live == NULL || (!a->is_argv_only && a->live->read != NULL &&
                                      (a->name != NULL || a->word != NULL)));
        for (size_t k = 0; k < t.count && a->live != NULL && a->offset > 0; k++) {
            const struct opt *b = &t.rows[k];
            ck_assert_msg(b->offset != a->offset || b->live == a->live, "%s", b->word);
        }
    }
}
