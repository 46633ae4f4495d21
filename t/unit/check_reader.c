/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the reader of a trace makes of it: which thread gets which request, under which key,
 * and when it is meant to start.
 */
#include "loadgen/drive/reader.h"
#include "check_main.h"

#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "loadgen/wire/codec.h"
#include "loadgen/work/workload.h"

#define THREADS 3
#define SECOND UINT64_C(1000000000)

static char path[SCRATCH_PATH];
static struct reader *reader;
static struct reader_conf conf;
static struct reader_run run;
static struct arrivals_law law;

static void
set_up(void)
{
    conf = (struct reader_conf){
        .trace = {.path = path},
        .speed = 1,
        .key_prefix = "",
        .verbs = codec_ascii.verbs,
        .threads = 1,
    };
    run = (struct reader_run){.law = &law, .seed = 1};
    ck_assert_ptr_null(arrivals_parse(&law, "fixed"));
}

static void
await_primed(void)
{
    while (!reader_is_primed(reader)) {
        sched_yield();
    }
}

static void
open_reader(const char *text)
{
    char err[TRACE_ERR_MAX];
    scratch_file(path, text, strlen(text));
    const char *wrong = reader_open(&reader, &conf, err);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    wrong = reader_start(reader, &run, err);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    await_primed();
}

static void
tear_down(void)
{
    reader_close(&reader);
    unlink(path);
    arrivals_law_fini(&law);
}

/* The next request of that thread; it is kept. */
static const struct trace_buffer_slot *
next(unsigned thread)
{
    struct trace_buffer *b = reader_buffer(reader, thread);
    uint32_t page = trace_buffer_take(b);
    ck_assert_uint_ne(page, TRACE_BUFFER_NONE);
    return trace_buffer_slot(b, page);
}

static void
is_done(unsigned thread)
{
    while (!trace_buffer_is_done(reader_buffer(reader, thread))) {
        ck_assert_uint_eq(trace_buffer_peek(reader_buffer(reader, thread)),
                          TRACE_BUFFER_NONE);
    }
}

static void
is_key(const struct trace_buffer_slot *p, const char *key)
{
    ck_assert_uint_eq(p->key_len, strlen(key));
    ck_assert_mem_eq(p->key, key, p->key_len);
}

FIXTURE(set_up, tear_down);

/* What is due when the run is over is not delivered, and nothing waits for it. */
TEST(what_is_due_later_is_left_out)
{
    run.until_ns = 2000000000;
    run.slice =
        (struct reader_slice){0, 1}; /* all is another process's: it is over, too */
    open_reader("op_time,key\n10,a\n11,b\n12,c\n13,d,broken\nnot a line at all\n");
    is_done(0);
    struct reader_notes notes;
    ck_assert_ptr_null(reader_stop(reader, &notes));
    ck_assert_uint_le(notes.trace.records, 3);
    reader_close(&reader);
    run.slice = (struct reader_slice){0, 0};
    open_reader("op_time,key\n10,a\n11,b\n12,c\n13,d\n");
    is_key(next(0), "a");
    is_key(next(0), "b");
    is_done(0);
}

/* What has nothing in it is told when it is opened: no server has to do with it. */
static const struct {
    const char *name, *text;
} empty_rows[] = {{"no byte", ""}, {"no line", "\n\n"}, {"names only", "op_time,key\n"}};

TEST_ROWS(test_empty, empty_rows, row->name)
{
    char err[TRACE_ERR_MAX];
    scratch_file(path, row->text, strlen(row->text));
    ck_assert_ptr_nonnull(reader_open(&reader, &conf, err));
    ck_assert_ptr_nonnull(strstr(err, ": there is no request in it"));
}

TEST_LOOP(test_original, 3)
{
    static const double speeds[] = {1, 2, 0.25};
    conf.trace.format = TRACE_CSV;
    conf.speed = speeds[_i];
    ck_assert_ptr_null(trace_format_parse(&conf.trace, "csv:time_ns,key,op,size,ttl"));
    open_reader("5000,a,get,10,0\n5000,b,set,20,60\n9000,a,delete,0,0\n");
    const struct trace_buffer_slot *p = next(0);
    ck_assert_uint_eq(p->at_ns, 0);
    ck_assert_uint_eq(p->verb, TRACE_GET);
    ck_assert_uint_eq(p->value_len, 10);
    is_key(p, "a");
    p = next(0);
    ck_assert_uint_eq(p->at_ns, 0);
    ck_assert_int_eq(p->ttl, 60);
    p = next(0);
    ck_assert_uint_eq(p->at_ns, (uint64_t)(4000 / speeds[_i]));
    is_done(0);
    ck_assert_uint_eq(reader_buffer(reader, 0)->end_ns, (uint64_t)(4001 / speeds[_i]));
}

/* Those of one second stay in it and in order, whoever sends them. */
TEST(test_seconds)
{
    char text[8192] = "";
    size_t n = 0;
    for (int i = 0; i < 200; i++) {
        n += (size_t)sprintf(text + n, "%d,k%d,2,9,1,get,0\n", 100 + i / 100, i);
    }
    conf.threads = THREADS;
    open_reader(text);
    unsigned got = 0, in_first = 0;
    for (unsigned t = 0; t < THREADS; t++) {
        uint64_t before = 0;
        while (trace_buffer_peek(reader_buffer(reader, t)) != TRACE_BUFFER_NONE) {
            const struct trace_buffer_slot *p = next(t);
            expect(p->at_ns >= before && p->at_ns < 2 * SECOND);
            expect(p->route % THREADS == t);
            before = p->at_ns;
            in_first += p->at_ns < SECOND ? 1 : 0;
            got++;
        }
        expect(got > 0);
        is_done(t);
        ck_assert_uint_eq(reader_buffer(reader, t)->end_ns, 2 * SECOND);
    }
    ck_assert_uint_eq(got, 200);
    ck_assert_uint_eq(in_first, 100);
}

/* A line with more digits than those before it: times do not fall. */
TEST(test_finer)
{
    open_reader("1,a,1,9,1,get,0\n1.5,b,1,9,1,get,0\n2,c,1,9,1,get,0\n");
    expect(next(0)->at_ns < SECOND / 10);
    uint64_t at = next(0)->at_ns;
    expect(at >= SECOND / 2 && at < SECOND / 10 * 6);
    at = next(0)->at_ns;
    expect(at >= SECOND && at < SECOND / 10 * 11);
    is_done(0);
    ck_assert_uint_eq(reader_buffer(reader, 0)->end_ns, SECOND / 10 * 11);
}

/* Times beyond all that can be waited for. */
TEST(test_late)
{
    conf.speed = 1e-6;
    open_reader("0,a,1,9,1,get,0\n9999999999,b,1,9,1,get,0\n");
    next(0);
    ck_assert_uint_eq(next(0)->at_ns, UINT64_C(1000000000000000000));
    is_done(0);
    ck_assert_uint_eq(reader_buffer(reader, 0)->end_ns, UINT64_C(1000000000000000000));
}

TEST(test_rate)
{
    conf.speed = 0;
    run.rate = 1000;
    open_reader("7,a,1,9,1,get,0\n7,b,1,9,1,get,0\n900,c,1,9,1,get,0\n");
    uint64_t first = next(0)->at_ns;
    ck_assert_uint_eq(next(0)->at_ns - first, 1000000);
    ck_assert_uint_eq(next(0)->at_ns - first, 2000000);
    is_done(0);
}

/* Requests of one key, or of one client, go the same way; repeated ones are several. */
TEST_LOOP(test_order, 2)
{
    conf.order = _i == 0 ? READER_BY_KEY : READER_BY_CLIENT;
    ck_assert_ptr_null(trace_format_parse(&conf.trace, "csv:time_ms,key,client,count"));
    open_reader("1,a,7,2\n2,b,7,1\n3,a,8,1\n4,a,,1\n");
    uint32_t a7 = next(0)->route;
    ck_assert_uint_eq(next(0)->route, a7);
    uint32_t b7 = next(0)->route, a8 = next(0)->route, a0 = next(0)->route;
    ck_assert_int_eq(b7 == a7, _i == 1);
    ck_assert_int_eq(a8 == a7, _i == 0);
    ck_assert_int_eq(a0 == a7, _i == 0);
    is_done(0);
}

TEST(test_remap)
{
    conf.remap = 10;
    conf.key_prefix = "p:";
    open_reader("1,abcdef,6,9,1,get,0\n1,abcdef,6,9,1,get,0\n1,x,1,9,1,get,0\n");
    const struct trace_buffer_slot *p = next(0), *q = next(0);
    ck_assert_uint_eq(p->key_len, 8);
    ck_assert_mem_eq(p->key, "p:00000", 7);
    ck_assert_mem_eq(q->key, p->key, 8);
    ck_assert_uint_eq(q->route, p->route);
    p = next(0);
    ck_assert_uint_eq(p->key_len, 3);
    is_done(0);
}

/* ---- what is to be stored before -------------------------------------------------------- */

/* Each key once, as the first request tells that says how long its value is. */
TEST_LOOP(test_stock, 2)
{
    struct reader_notes notes;
    run.stocks = true;
    run.stock = (struct reader_stock){.most = 100, .lanes = 1};
    conf.key_prefix = "p:";
    conf.order = _i == 0 ? READER_BY_KEY : READER_BY_CLIENT;
    ck_assert_ptr_null(
        trace_format_parse(&conf.trace, "csv:time,key,client,op,size,ttl,count"));
    open_reader(
        "1,a,7,get,0,0,3\n1,b,7,get,30,0,3\n2,a,8,set,10,60,1\n2,b,8,delete,0,0,1\n"
        "9,c,1,touch,5000000,0,1\n9,a,9,get,11,0,1\n9,never,9,get,0,0,1\n");
    static const struct {
        const char *key;
        uint32_t len;
        int32_t ttl;
    } expected[] = {
        {"p:b", 30, 0}, {"p:a", 10, 60}, {"p:c", WORKLOAD_TRACE_VALUE_MAX, 0}};
    for (size_t i = 0; i < ROWS(expected); i++) {
        const struct trace_buffer_slot *p = next(0);
        is_key(p, expected[i].key);
        ck_assert_uint_eq(p->verb, TRACE_SET);
        ck_assert_uint_eq(p->value_len, expected[i].len);
        ck_assert_int_eq(p->ttl, expected[i].ttl);
    }
    is_done(0);
    ck_assert_ptr_null(reader_stop(reader, &notes));
    ck_assert_uint_eq(notes.stocked, 3);
    expect(!notes.is_cut);
}

/* Numbers in place of keys are keys of their own in each length. */
TEST(test_stock_remap)
{
    struct reader_notes notes;
    run.stocks = true;
    run.stock = (struct reader_stock){.most = 100, .lanes = 1};
    conf.remap = 1;
    open_reader("1,abc,3,9,1,get,0\n1,cba,3,9,1,get,0\n1,xy,2,9,1,get,0\n");
    is_key(next(0), "000");
    is_key(next(0), "00");
    is_done(0);
    ck_assert_ptr_null(reader_stop(reader, &notes));
}

static void
write_keys(char text[65536], int keys)
{
    size_t n = 0;
    for (int i = 0; i < 2 * keys; i++) {
        n += (size_t)sprintf(text + n, "1,k%d,2,9,1,get,0\n", i % keys);
    }
}

/* As many as are allowed: the first ones. */
TEST_LOOP(test_stock_cut, 4)
{
    static const int most[] = {0, 10, 19, 20};
    struct reader_notes notes;
    char text[65536], key[16];
    write_keys(text, 20);
    run.stocks = true;
    run.stock = (struct reader_stock){.most = (uint64_t)most[_i], .lanes = 1};
    open_reader(text);
    for (int i = 0; i < most[_i]; i++) {
        snprintf(key, sizeof key, "k%d", i);
        is_key(next(0), key);
    }
    is_done(0);
    ck_assert_ptr_null(reader_stop(reader, &notes));
    ck_assert_uint_eq(notes.stocked, (uint64_t)most[_i]);
    ck_assert_int_eq(notes.is_cut, most[_i] < 20);
}

/* Threads that share servers have each key once, those with others all of them; processes part
 * them. */
TEST_LOOP(test_stock_lanes, 3)
{
    static const struct {
        unsigned threads, lanes;
    } cases[] = {{5, 1}, {5, 2}, {3, 3}};
    struct reader_notes notes;
    char text[65536], err[TRACE_ERR_MAX];
    uint64_t all = 0;
    unsigned lanes = cases[_i].lanes;
    write_keys(text, 1000);
    conf.threads = cases[_i].threads;
    run.stocks = true;
    run.stock = (struct reader_stock){.most = 2000, .lanes = lanes};
    run.slice = (struct reader_slice){0, READER_ROUTES / 4};
    open_reader(text);
    for (int part = 0; part < 2; part++) {
        uint64_t got[5] = {0};
        for (unsigned t = 0; t < conf.threads; t++) {
            for (; trace_buffer_peek(reader_buffer(reader, t)) != TRACE_BUFFER_NONE;
                 got[t % lanes]++) {
                next(t);
            }
            is_done(t);
        }
        ck_assert_ptr_null(reader_stop(reader, &notes));
        for (unsigned lane = 0; lane < lanes; lane++) {
            ck_assert_uint_eq(got[lane], notes.stocked);
        }
        all += notes.stocked;
        run.slice = (struct reader_slice){READER_ROUTES / 4, READER_ROUTES};
        ck_assert_ptr_null(reader_start(reader, &run, err));
        await_primed();
    }
    ck_assert_uint_eq(all, 1000);
}

/* Nobody takes it any more, and a replay follows. */
TEST(test_stock_halt)
{
    struct reader_notes notes;
    char err[TRACE_ERR_MAX], text[65536];
    write_keys(text, 1000);
    run.stocks = true;
    run.stock = (struct reader_stock){.most = 2000, .lanes = 1};
    open_reader(text);
    reader_halt(reader);
    while (trace_buffer_peek(reader_buffer(reader, 0)) != TRACE_BUFFER_NONE) {
        next(0);
    }
    is_done(0);
    ck_assert_ptr_null(reader_stop(reader, &notes));
    run.stocks = false;
    ck_assert_ptr_null(reader_start(reader, &run, err));
    await_primed();
    ck_assert_uint_eq(next(0)->verb, TRACE_GET);
    ck_assert_ptr_null(reader_stop(reader, &notes));
    ck_assert_uint_eq(notes.stocked, 0);
}

/* ---- what is wrong ---------------------------------------------------------------------- */

/* What cannot be sent is counted, and what is too long is cut. */
TEST(test_notes)
{
    struct reader_notes notes;
    conf.verbs = codec_redis.verbs;
    open_reader("1,a,1,5000000,1,set,9999999\n1,a,1,9,1,prepend,0\n1,a,1,9,1,cas,0\n"
                "1,a,1,9,1,get,0\n");
    const struct trace_buffer_slot *p = next(0);
    ck_assert_uint_eq(p->value_len, WORKLOAD_TRACE_VALUE_MAX);
    ck_assert_int_eq(p->ttl, WORKLOAD_EXPIRY_MAX);
    ck_assert_uint_eq(next(0)->verb, TRACE_GET);
    is_done(0);
    ck_assert_ptr_null(reader_stop(reader, &notes));
    ck_assert_uint_eq(notes.unsupported, 2);
    ck_assert_uint_eq(notes.cut_values, 1);
    ck_assert_uint_eq(notes.trace.records, 4);
}

/* It goes on when there is room again, and begins anew as often as wanted. */
TEST(test_many)
{
    char err[TRACE_ERR_MAX];
    struct reader_notes notes;
    ck_assert_ptr_null(trace_format_parse(&conf.trace, "csv:time_ms,key,count"));
    open_reader("1,a,300000\n");
    for (int round = 0; round < 2; round++) {
        struct trace_buffer *b = reader_buffer(reader, 0);
        unsigned got = 0;
        while (!trace_buffer_is_done(b)) {
            uint32_t page = trace_buffer_take(b);
            if (page != TRACE_BUFFER_NONE) {
                got++;
                trace_buffer_release(b, page);
            }
        }
        ck_assert_uint_eq(got, 300000);
        ck_assert_ptr_null(reader_stop(reader, &notes));
        ck_assert_ptr_null(reader_start(reader, &run, err));
        await_primed();
    }
    /* Ended in the middle. */
    ck_assert_uint_ne(trace_buffer_peek(reader_buffer(reader, 0)), TRACE_BUFFER_NONE);
    ck_assert_ptr_null(reader_stop(reader, &notes));
    ck_assert(trace_buffer_peek(reader_buffer(reader, 0)) != TRACE_BUFFER_NONE);
}

TEST(test_bad)
{
    struct reader_notes notes;
    open_reader("1,a,1,9,1,get,0\nrubbish\n");
    next(0);
    is_done(0);
    const char *wrong = reader_stop(reader, &notes);
    ck_assert_ptr_nonnull(wrong);
    ck_assert_ptr_nonnull(strstr(wrong, ", line 2: fields are missing"));
}
