/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Traces: lines of every format, the binary form there and back, files that are cut or none,
 * times within a second, and the book between the reader and a sending thread.
 */
#include "loadgen/work/trace.h"
#include "check_main.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "loadgen/work/trace_buffer.h"
#include "loadgen/work/trace_file.h"

/* ---- lines -------------------------------------------------------------------------- */

#define TWITTER NULL

/* Lines and what they say; the client as a number. */
static const struct {
    const char *columns; /* TWITTER */
    const char *line;
    struct trace_record record;
} good_lines[] = {
    {TWITTER, "7,abc,3,50,12,get,0", {7000000000, 12, 50, 0, 1, TRACE_GET, 3, "abc"}},
    {TWITTER,
     "7,a,b,c,6,50,12,set,60",
     {7000000000, 12, 50, 60, 1, TRACE_SET, 6, "a,b,c."}},
    {TWITTER, "7.25,abc,3,0,12,gets,0", {7250000000, 12, 0, 0, 1, TRACE_GETS, 3, "abc"}},
    {TWITTER, "7,abc,5,0,,DECR,0", {7000000000, 0, 0, 0, 1, TRACE_DECR, 5, "abc.."}},
    {TWITTER,
     "7,abcd,3,0,1,prepend,0",
     {7000000000, 1, 0, 0, 1, TRACE_PREPEND, 4, "abcd"}},
    {"op,key", "get_lease,k", {0, 0, 0, 0, 1, TRACE_GET, 1, "k"}},
    {"key", "k", {0, 0, 0, 0, 1, TRACE_GET, 1, "k"}},
    {"key,-,time_us,count", "k,junk,3,9", {3000, 0, 0, 0, 9, TRACE_GET, 1, "k"}},
    {"key,time_ns", "k,5", {5, 0, 0, 0, 1, TRACE_GET, 1, "k"}},
    {"key,time_ms", "k,5", {5000000, 0, 0, 0, 1, TRACE_GET, 1, "k"}},
};

static const struct wrong_line {
    const char *columns;
    const char *line;
    const char *reported; /* the sentence, or the verb that is unknown */
} bad_lines[] =
    {
        {TWITTER, "7,abc,3,0,1,get", "fields are missing"},
        {TWITTER, "x,abc,3,0,1,get,0", "the time is not a number"},
        {TWITTER, "-1,abc,3,0,1,get,0", "the time is not a number"},
        {TWITTER, "99999999999,abc,3,0,1,get,0", "the time is not a number"},
        {TWITTER, "7.,abc,3,0,1,get,0", "the time is not a number"},
        {TWITTER, "7,,0,0,1,get,0", "the key is empty"},
        {TWITTER, "7,a b,3,0,1,get,0", "the key has blanks or control characters"},
        {TWITTER, "7,abc,251,0,1,get,0", "the key is longer than 250 bytes"},
        {TWITTER, "7,abc,x,0,1,get,0", "the size of the key is not a number"},
        {TWITTER, "7,abc,3,4294967296,1,get,0", "the size of the value is not a number"},
        {TWITTER, "7,abc,3,0,1,get,1d", "the time to live is not a number"},
        {"key,op", "k,get,more", "more fields than columns"},
        {"key,count", "k,1000000001", "the count is not a number"},
},
  unknown_verbs[] = {
      {TWITTER, "7,abc,3,0,1,flush,0", "flush"},
      {TWITTER, "7,abc,3,0,1,,0", ""},
};

static void
is_record(const struct trace_record *a, const struct trace_record *b)
{
    expect(a->time_ns == b->time_ns && a->client == b->client);
    expect(a->value_len == b->value_len && a->ttl == b->ttl && a->repeat == b->repeat);
    expect(a->verb == b->verb && a->key_len == b->key_len);
    expect(memcmp(a->key, b->key, a->key_len) == 0);
}

static enum trace_line
parse_line(const char *columns, const char *text, struct trace_record *record,
           struct trace_line_note *note)
{
    struct trace_layout layout;
    if (columns == TWITTER) {
        trace_layout_twitter(&layout);
    } else {
        ck_assert_ptr_null(trace_layout_parse(&layout, columns, strlen(columns), false));
    }
    static char *line; /* what is told points into it */
    free(line);
    line = exact_copy(text, strlen(text));
    return trace_line_parse(&layout, line, strlen(text), record, note);
}

TEST_ROWS(test_good_lines, good_lines, row->line)
{
    struct trace_record record;
    struct trace_line_note note;
    ck_assert_int_eq(parse_line(row->columns, row->line, &record, &note),
                     TRACE_LINE_GOOD);
    is_record(&record, &row->record);
}

TEST_ROWS(test_bad_lines, bad_lines, row->line)
{
    struct trace_record record;
    struct trace_line_note note;
    ck_assert_int_eq(parse_line(row->columns, row->line, &record, &note), TRACE_LINE_BAD);
    ck_assert_str_eq(note.wrong, row->reported);
}

TEST_ROWS(test_unknown_verbs, unknown_verbs, row->line)
{
    struct trace_record record;
    struct trace_line_note note;
    ck_assert_int_eq(parse_line(row->columns, row->line, &record, &note),
                     TRACE_LINE_UNKNOWN);
    ck_assert_uint_eq(note.verb_len, strlen(row->reported));
    ck_assert_int_eq(strncmp(note.verb, row->reported, note.verb_len), 0);
}

TEST(test_layouts)
{
    static const struct {
        const char *text;
        bool is_header;
        const char *wrong; /* NULL: good */
    } rows[] = {
        {"op_time,key,key_size,op,op_count,size,cache_hits,ttl", true, NULL},
        {"op_time,key,cache_hits", false, "columns are"},
        {"time,op", false, "a trace needs a column with the key"},
        {"", false, "columns are"},
        {"key,key", false, "named twice"},
        {"time,key,time_ms", false, "named twice"},
        {"key,-,-", false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct trace_layout layout;
        const char *wrong = trace_layout_parse(&layout, rows[i].text,
                                               strlen(rows[i].text), rows[i].is_header);
        if (rows[i].wrong == NULL) {
            ck_assert_ptr_null(wrong);
        } else {
            ck_assert_ptr_nonnull(wrong);
            ck_assert_ptr_nonnull(strstr(wrong, rows[i].wrong));
        }
    }
    char many[2 * TRACE_COLUMNS_MAX + 8] = "key";
    for (unsigned i = 0; i < TRACE_COLUMNS_MAX; i++) {
        strcat(many, ",-");
    }
    struct trace_layout layout;
    ck_assert_str_eq(trace_layout_parse(&layout, many, strlen(many), false),
                     "a trace has at most 32 columns");
}

/* Clients told by name are told apart. */
TEST(test_clients)
{
    struct trace_layout layout;
    struct trace_record a, b;
    struct trace_line_note note;
    ck_assert_ptr_null(trace_layout_parse(&layout, "key,client", 10, false));
    ck_assert_int_eq(trace_line_parse(&layout, "k,web-1", 7, &a, &note), TRACE_LINE_GOOD);
    ck_assert_int_eq(trace_line_parse(&layout, "k,web-2", 7, &b, &note), TRACE_LINE_GOOD);
    ck_assert_uint_ne(a.client, b.client);
    ck_assert_uint_ne(a.client, 0);
}

/* ---- the binary form ------------------------------------------------------------------ */

static const struct trace_record records[] = {
    {5000, 0, 0, 0, 1, TRACE_GET, 1, "k"},
    {5000, UINT64_MAX, UINT32_MAX, UINT32_MAX, TRACE_REPEAT_MAX, TRACE_TOUCH, 3, "abc"},
    {UINT64_C(7000000000000000000), 127, 128, 16384, 2, TRACE_CAS, 5, "hello"},
};

static size_t
put_records(char *dst)
{
    struct trace_binary b = {.step_ns = 1000};
    size_t n = trace_binary_put_header(&b, dst);
    for (int i = 0; i < ROWS(records); i++) {
        size_t len = trace_binary_put(&b, &records[i], dst + n);
        ck_assert_uint_le(len, TRACE_BINARY_RECORD_MAX);
        n += len;
    }
    return n + trace_binary_put_end(&b, dst + n);
}

TEST(test_binary)
{
    char bytes[2048];
    struct trace_binary b;
    struct trace_record r;
    size_t len = put_records(bytes), taken, at = TRACE_BINARY_HEADER;
    ck_assert_ptr_null(trace_binary_take_header(&b, bytes, len));
    ck_assert_uint_eq(b.step_ns, 1000);
    for (int i = 0; i < ROWS(records); i++) {
        /* Every cut is told from what is whole. */
        size_t n = 0;
        while (true) {
            char *piece = exact_copy(bytes + at, n);
            struct trace_binary before = b;
            enum trace_binary_take how = trace_binary_take(&b, piece, n, &r, &taken);
            free(piece);
            if (how == TRACE_BINARY_TAKEN) {
                break;
            }
            ck_assert_int_eq(how, TRACE_BINARY_CUT);
            ck_assert_mem_eq(&b, &before, sizeof b);
            n++;
        }
        ck_assert_uint_eq(taken, n);
        is_record(&r, &records[i]);
        at += taken;
    }
    ck_assert_int_eq(trace_binary_take(&b, bytes + at, len - at - 1, &r, &taken),
                     TRACE_BINARY_CUT);
    ck_assert_int_eq(trace_binary_take(&b, bytes + at, len - at, &r, &taken),
                     TRACE_BINARY_OVER);
    ck_assert_uint_eq(taken, len - at);
    b.records++;
    ck_assert_int_eq(trace_binary_take(&b, bytes + at, len - at, &r, &taken),
                     TRACE_BINARY_BAD);
}

TEST(test_binary_header)
{
    char bytes[TRACE_BINARY_HEADER];
    struct trace_binary b = {.step_ns = 1};
    trace_binary_put_header(&b, bytes);
    ck_assert_ptr_nonnull(trace_binary_take_header(&b, bytes, sizeof bytes - 1));
    bytes[8] = 2;
    ck_assert_str_eq(trace_binary_take_header(&b, bytes, sizeof bytes),
                     "written by another version of mcload");
    bytes[8] = TRACE_BINARY_VERSION;
    ck_assert_ptr_null(trace_binary_take_header(&b, bytes, sizeof bytes));
    ck_assert(!b.has_no_times);
    b.has_no_times = true;
    trace_binary_put_header(&b, bytes);
    b.has_no_times = false;
    ck_assert_ptr_null(trace_binary_take_header(&b, bytes, sizeof bytes));
    ck_assert(b.has_no_times);
    bytes[12] = 2;
    ck_assert_str_eq(trace_binary_take_header(&b, bytes, sizeof bytes),
                     "its header makes no sense");
    bytes[12] = 0;
    bytes[16] = 0;
    ck_assert_str_eq(trace_binary_take_header(&b, bytes, sizeof bytes),
                     "its header makes no sense");
    ck_assert(!trace_binary_is("MCTRACE", 7));
}

/* ---- files -------------------------------------------------------------------------- */

static char path[SCRATCH_PATH];

static void
write_file(const void *bytes, size_t len)
{
    scratch_file(path, bytes, len);
}

/* Reads all; what it ends with. The caller closes it. */
static enum trace_status
read_trace(struct trace **t, bool skips_bad)
{
    char err[TRACE_ERR_MAX];
    struct trace_conf conf = {.path = path, .skips_bad = skips_bad};
    struct trace_record record;
    const char *wrong = trace_open(t, &conf, err);
    unlink(path);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    enum trace_status status;
    while ((status = trace_next(*t, &record)) == TRACE_RECORD) {
        /* on */
    }
    return status;
}

static enum trace_status
read_text(struct trace **t, const char *text, bool skips_bad)
{
    write_file(text, strlen(text));
    return read_trace(t, skips_bad);
}

TEST(test_file_of_lines)
{
    static const char text[] = "1,a,1,0,1,get,0\r\n\n2,b,1,0,1,lock,0\nnonsense\n"
                               "2,b,1,0,1,lock,0\n1,c,1,0,1,set,0";
    SCOPED(trace_close) struct trace *t;
    ck_assert_int_eq(read_text(&t, text, true), TRACE_END);
    const struct trace_notes *n = trace_notes(t);
    ck_assert_uint_eq(n->records, 2);
    ck_assert_uint_eq(n->bad, 1);
    ck_assert_uint_eq(n->backwards, 0);
    ck_assert_str_eq(n->unknown[0].name, "lock");
    ck_assert_uint_eq(n->unknown[0].count, 2);
    ck_assert_uint_eq(n->unknown[1].count, 0);
    ck_assert_uint_eq(trace_step(t), 1000000000);
    trace_close(&t);

    ck_assert_int_eq(read_text(&t, text, false), TRACE_FAILED);
    ck_assert_ptr_nonnull(strstr(trace_error(t), ", line 4: fields are missing"));
}

TEST(test_cachelib)
{
    static const char text[] = "op_time,key,key_size,op,op_count,size,cache_hits,ttl\n"
                               "10,17,5,GET,3,100,2,0\n9,18,5,SET_LEASE,1,200,0,30\n";
    char err[TRACE_ERR_MAX];
    struct trace_conf conf = {.path = path};
    struct trace_record r;
    SCOPED(trace_close) struct trace *t;
    write_file(text, sizeof text - 1);
    ck_assert_ptr_null(trace_open(&t, &conf, err));
    unlink(path);
    ck_assert_int_eq(trace_next(t, &r), TRACE_RECORD);
    is_record(&r,
              &(struct trace_record){10000000000, 0, 100, 0, 3, TRACE_GET, 5, "17..."});
    ck_assert_int_eq(trace_next(t, &r), TRACE_RECORD);
    is_record(&r,
              &(struct trace_record){10000000000, 0, 200, 30, 1, TRACE_SET, 5, "18..."});
    ck_assert_int_eq(trace_next(t, &r), TRACE_END);
    ck_assert_uint_eq(trace_notes(t)->backwards, 1);
}

/* Times as fine as they are written. */
TEST(test_step)
{
    static const char text[] = "1.250,a,1,0,1,get,0\n";
    SCOPED(trace_close) struct trace *t;
    ck_assert_int_eq(read_text(&t, text, false), TRACE_END);
    ck_assert_uint_eq(trace_step(t), 1000000);
    trace_close(&t);

    /* Whichever line has the most digits. */
    static const char finer[] =
        "1,a,1,0,1,get,0\n1.25,a,1,0,1,get,0\n2.5,a,1,0,1,get,0\n";
    ck_assert_int_eq(read_text(&t, finer, false), TRACE_END);
    ck_assert_uint_eq(trace_step(t), 10000000);
    ck_assert(!trace_has_fixed_step(t));
}

/* Whoever wants no more ends it between two records. */
TEST(test_stop)
{
    static const char text[] = "1,a,1,0,1,get,0\n2,a,1,0,1,get,0\n3,a,1,0,1,get,0\n";
    char err[TRACE_ERR_MAX];
    atomic_bool stop = false;
    struct trace_conf conf = {.path = path, .stop = &stop};
    struct trace_record r;
    SCOPED(trace_close) struct trace *t;
    write_file(text, sizeof text - 1);
    ck_assert_ptr_null(trace_open(&t, &conf, err));
    unlink(path);
    ck_assert_int_eq(trace_next(t, &r), TRACE_RECORD);
    atomic_store(&stop, true);
    ck_assert_int_eq(trace_next(t, &r), TRACE_END);
}

/* Longer than what is read at once, or not; the last one, too. */
static const size_t long_lines[] = {65537, 262144, 300000, 1000000};

TEST_ROWS(test_long_line, long_lines, NULL)
{
    static const char good[] = "\n1,a,1,0,1,get,0\n";
    size_t good_len = sizeof good - 1, len = 2 * *row + good_len;
    FREED char *text = malloc(len);
    SCOPED(trace_close) struct trace *t;
    memset(text, 'x', len);
    memcpy(text + *row, good, good_len);
    write_file(text, len);
    ck_assert_int_eq(read_trace(&t, true), TRACE_END);
    ck_assert_uint_eq(trace_notes(t)->records, 1);
    ck_assert_uint_eq(trace_notes(t)->bad, 2);
    trace_close(&t);
    write_file(text, len);
    ck_assert_int_eq(read_trace(&t, false), TRACE_FAILED);
    expect_part(trace_error(t), ", line 1: longer than 65536 bytes");
}

/* A binary file is whole or it is an error, wherever it is cut. */
TEST(test_cut_files)
{
    char bytes[2048];
    size_t len = put_records(bytes);
    SCOPED(trace_close) struct trace *t;
    for (size_t n = TRACE_BINARY_HEADER; n <= len; n++) {
        write_file(bytes, n);
        ck_assert_int_eq(read_trace(&t, false), n == len ? TRACE_END : TRACE_FAILED);
        trace_close(&t);
    }
    bytes[len] = 'x';
    write_file(bytes, len + 1);
    ck_assert_int_eq(read_trace(&t, false), TRACE_FAILED);
}

TEST(test_no_file)
{
    char err[TRACE_ERR_MAX];
    SCOPED(trace_close) struct trace *t;
    struct trace_conf conf = {.path = "/nonexistent/trace"};
    ck_assert_ptr_nonnull(trace_open(&t, &conf, err));
    ck_assert_str_eq(err, "/nonexistent/trace: No such file or directory");
    conf.path = "/dev/null";
    ck_assert_ptr_nonnull(trace_open(&t, &conf, err));
    expect_part(err, "not a plain file");
    conf.path = path;
    write_file("\x1f\x8b\x08", 3);
    ck_assert_ptr_nonnull(trace_open(&t, &conf, err));
    unlink(path);
    expect_part(err, "compressed by gzip: gunzip it first");
    write_file("\x1f", 1);
    ck_assert_ptr_null(trace_open(&t, &conf, err));
    unlink(path);
}

/* ---- times -------------------------------------------------------------------------- */

/* A second with so many requests: they stay in it and in order; half of them in its first
 * half, within five standard deviations. */
TEST_LOOP(test_clock, 4)
{
    static const uint64_t counts[] = {1, 2, 1000, 100000};
    uint64_t count = counts[_i], second = UINT64_C(1000000000), before = 3 * second;
    unsigned early = 0;
    struct rng rng = rng_of(1, count);
    for (enum trace_spread spread = TRACE_SPREAD_EXPONENTIAL; spread <= TRACE_SPREAD_NONE;
         spread++) {
        struct trace_clock c = {.spread = spread, .rng = &rng, .step_ns = second};
        before = 3 * second;
        early = 0;
        trace_clock_begin(&c, 3 * second, count);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = trace_clock_next(&c);
            expect(at >= before && at < 4 * second);
            expect(spread != TRACE_SPREAD_NONE || at == 3 * second);
            expect(spread != TRACE_SPREAD_UNIFORM ||
                   at - 3 * second ==
                       (uint64_t)(((double)i + 0.5) / (double)count * 1e9));
            early += at < 3 * second + second / 2 ? 1 : 0;
            before = at;
        }
        double off = (double)early - (double)count / 2;
        expect(spread != TRACE_SPREAD_EXPONENTIAL || count < 1000 ||
               off * off < 25.0 / 4 * (double)count);
    }
}

/* ---- the book ------------------------------------------------------------------------ */

#define PAGES 1024
#define REQUESTS 50000

static void *
fill(void *arg)
{
    struct trace_buffer *b = arg;
    for (uint64_t i = 0; i < REQUESTS;) {
        uint32_t page = trace_buffer_reserve(b);
        if (page != TRACE_BUFFER_NONE) {
            b->pages[page].hash = i++;
            trace_buffer_commit(b, page);
        } else {
            sched_yield();
        }
    }
    trace_buffer_end(b, 77);
    return NULL;
}

/* Two threads: every request comes once and in order; places are given back in another. */
TEST(test_book)
{
    SCOPED(trace_buffer_fini) struct trace_buffer b;
    pthread_t reader;
    uint32_t kept[PAGES / 2], kept_len = 0;
    trace_buffer_init(&b, PAGES);
    ck_assert_int_eq(pthread_create(&reader, NULL, fill, &b), 0);
    for (uint64_t i = 0; !trace_buffer_is_done(&b);) {
        uint32_t page = trace_buffer_take(&b);
        if (page == TRACE_BUFFER_NONE) {
            sched_yield();
            continue;
        }
        expect(trace_buffer_slot(&b, page)->hash == i);
        i++;
        if (kept_len == PAGES / 2) {
            uint32_t at = (uint32_t)(i * 7 % kept_len);
            trace_buffer_release(&b, kept[at]);
            kept[at] = kept[--kept_len];
        }
        trace_buffer_get(&b, page);
        trace_buffer_release(&b, page);
        kept[kept_len++] = page;
        expect(trace_buffer_used(&b) == kept_len);
        expect(i < REQUESTS || trace_buffer_peek(&b) == TRACE_BUFFER_NONE);
    }
    pthread_join(reader, NULL);
    ck_assert_uint_eq(b.end_ns, 77);
    while (kept_len > 0) {
        trace_buffer_release(&b, kept[--kept_len]);
    }
    ck_assert_uint_eq(trace_buffer_used(&b), 0);
    for (int i = 0; i < PAGES; i++) {
        ck_assert_uint_ne(trace_buffer_reserve(&b), TRACE_BUFFER_NONE);
    }
    ck_assert_uint_eq(trace_buffer_reserve(&b), TRACE_BUFFER_NONE);
}
