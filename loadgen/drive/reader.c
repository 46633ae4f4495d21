/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/reader.h"

#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "loadgen/wire/request.h"
#include "loadgen/wire/shard.h"
#include "loadgen/work/keyset.h"
#include "loadgen/work/workload.h"

#define TIME_MAX 1e18   /* after this nothing comes any more */
#define REST_NS 2000000 /* while there is no room */

struct reader {
    struct reader_conf conf;
    struct reader_run run;
    size_t prefix_len;
    struct trace_buffer *buffers; /* one each thread */
    unsigned buffers_len;
    pthread_t id;
    bool is_started;
    atomic_bool stops, is_primed; /* to and from the reading thread */

    /* The reading thread's until it is joined. */
    struct trace *trace;
    struct trace *ahead; /* the same, as far as the end of the second; NULL: not needed */
    struct trace_record found;
    enum trace_status ahead_status;
    struct trace_clock clock;
    struct arrivals arrival;
    struct rng rng;
    uint64_t first_ns, end_ns; /* of the trace; from the begin of the run */
    bool has_first, has_failed;
    uint64_t cut_values, unsupported;
    struct keyset stocked;
    bool is_cut; /* there are more keys than may be stored */
    char err[TRACE_ERR_MAX];
};

/* ---- when ---------------------------------------------------------------------------- */

static bool
is_wanted(const struct reader *r, const struct trace_record *record)
{
    return (request_needs(request_of_trace[record->verb]) & ~r->conf.verbs) == 0;
}

/* How many requests share the time of this one: reads on until the time is another. */
static uint64_t
count_step(struct reader *r, uint64_t time_ns)
{
    uint64_t count = 0;
    while (r->ahead_status == TRACE_RECORD && r->found.time_ns <= time_ns) {
        count += is_wanted(r, &r->found) ? r->found.repeat : 0;
        r->ahead_status = trace_next(r->ahead, &r->found);
    }
    return count;
}

static uint64_t
scaled(const struct reader *r, uint64_t ns)
{
    return (uint64_t)fmin((double)ns / r->conf.speed, TIME_MAX);
}

/* Times that can be told apart are kept, others are spread. */
static uint64_t
recorded_time(struct reader *r, const struct trace_record *record)
{
    uint64_t since = record->time_ns - r->first_ns;
    since = since < (uint64_t)TIME_MAX ? since : (uint64_t)TIME_MAX;
    if (r->ahead == NULL) {
        r->end_ns = scaled(r, since + trace_step(r->trace));
        return scaled(r, since);
    }
    if (r->clock.left == 0) {
        uint64_t count = count_step(r, record->time_ns);
        r->clock.step_ns = trace_step(r->ahead); /* as fine as what comes behind needs */
        trace_clock_begin(&r->clock, since, count > 0 ? count : 1);
    }
    r->end_ns = scaled(r, since + r->clock.step_ns);
    return scaled(r, trace_clock_next(&r->clock));
}

static uint64_t
time_of(struct reader *r, const struct trace_record *record)
{
    if (r->conf.speed > 0) {
        return recorded_time(r, record);
    }
    if (r->run.rate > 0) {
        r->end_ns = arrivals_next(&r->arrival);
        return r->end_ns;
    }
    return 0;
}

/* ---- what ---------------------------------------------------------------------------- */

/* The prefix, and the key or the number that stands for it, which is as long where it can. */
static bool
put_key(const struct reader *r, const struct trace_record *record,
        struct trace_buffer_slot *page)
{
    char number[TRACE_KEY_MAX + 1];
    const char *key = record->key;
    size_t len = record->key_len;
    page->hash = rng_mix(shard_fnv(key, len), len, 0);
    if (r->conf.remap > 0) {
        page->hash %= r->conf.remap;
        int n = snprintf(number, sizeof number, "%0*ju", (int)len, (uintmax_t)page->hash);
        key = number;
        len = (size_t)n;
        page->hash = rng_mix(page->hash, r->conf.remap, 1);
    }
    if (r->prefix_len + len > TRACE_KEY_MAX) {
        return false;
    }
    memcpy(page->key, r->conf.key_prefix, r->prefix_len);
    memcpy(page->key + r->prefix_len, key, len);
    page->key_len = (uint8_t)(r->prefix_len + len);
    return true;
}

static bool
is_in_slice(const struct reader *r, const struct trace_buffer_slot *page)
{
    const struct reader_slice *s = &r->run.slice;
    return s->end == 0 || (page->route >= s->first && page->route < s->end);
}

static void
put_rest(struct reader *r, const struct trace_record *record,
         struct trace_buffer_slot *page)
{
    bool is_long = record->value_len > WORKLOAD_TRACE_VALUE_MAX;
    r->cut_values += is_long ? 1 : 0;
    page->value_len = is_long ? WORKLOAD_TRACE_VALUE_MAX : record->value_len;
    page->ttl =
        (int32_t)(record->ttl < WORKLOAD_EXPIRY_MAX ? record->ttl : WORKLOAD_EXPIRY_MAX);
    page->verb = (uint8_t)record->verb;
}

static void
fail(struct reader *r, const char *what)
{
    snprintf(r->err, sizeof r->err, "%s", what);
    r->has_failed = true;
}

/* ---- the thread ----------------------------------------------------------------------- */

static bool
stops(const struct reader *r)
{
    return atomic_load_explicit(&r->stops, memory_order_relaxed);
}

/* A free page of the book; TRACE_BUFFER_NONE when the run is over before there is one. */
static uint32_t
wait_for_slot(struct reader *r, struct trace_buffer *trace_buffer)
{
    uint32_t page;
    while ((page = trace_buffer_reserve(trace_buffer)) == TRACE_BUFFER_NONE &&
           !stops(r)) {
        atomic_store_explicit(&r->is_primed, true, memory_order_release);
        nanosleep(&(struct timespec){0, REST_NS}, NULL);
    }
    return page;
}

static bool
is_too_late(const struct reader *r, uint64_t at_ns)
{
    return r->run.until_ns > 0 && at_ns >= r->run.until_ns;
}

/* Another process sends it: only recorded times go by. False when there is no more to be done. */
static bool
pass_over(struct reader *r, const struct trace_record *record)
{
    for (uint32_t i = 0; r->conf.speed > 0 && i < record->repeat && !stops(r); i++) {
        if (is_too_late(r, time_of(r, record))) {
            return false;
        }
    }
    return !stops(r);
}

/* False when the run is over before there is a place for it. */
static bool
write_page(struct reader *r, struct trace_buffer *trace_buffer,
           const struct trace_buffer_slot *made)
{
    uint32_t page = wait_for_slot(r, trace_buffer);
    if (page != TRACE_BUFFER_NONE) {
        memcpy(&trace_buffer->pages[page], made,
               offsetof(struct trace_buffer_slot, key) + made->key_len);
        trace_buffer_commit(trace_buffer, page);
    }
    return page != TRACE_BUFFER_NONE;
}

/* One request, or several alike. False when there is no more to be done. */
static bool
hand_over(struct reader *r, const struct trace_record *record,
          struct trace_buffer_slot *made)
{
    bool by_client = r->conf.order == READER_BY_CLIENT && record->client != 0;
    uint64_t route = by_client ? rng_mix(record->client, 0, 2) : made->hash;
    made->route = (uint32_t)(route >> 32);
    if (!is_in_slice(r, made)) {
        return pass_over(r, record);
    }
    put_rest(r, record, made);
    struct trace_buffer *trace_buffer = &r->buffers[made->route % r->conf.threads];
    for (uint32_t i = 0; i < record->repeat && !stops(r); i++) {
        made->at_ns = time_of(r, record);
        if (is_too_late(r, made->at_ns)) {
            return false;
        }
        if (!write_page(r, trace_buffer, made)) {
            return false;
        }
    }
    return !stops(r);
}

/* The set that stores the key, to one thread of each lane. */
static bool
hand_over_set(struct reader *r, const struct trace_record *record,
              struct trace_buffer_slot *made)
{
    unsigned lanes = r->run.stock.lanes;
    bool is_good = true;
    put_rest(r, record, made);
    made->verb = TRACE_SET;
    for (unsigned lane = 0; is_good && lane < lanes; lane++) {
        unsigned threads = (r->conf.threads - lane + lanes - 1) / lanes;
        unsigned thread = lane + lanes * (made->route % threads);
        is_good = write_page(r, &r->buffers[thread], made);
    }
    return is_good && !stops(r);
}

/* What is to be stored of it, if anything. False when there is no more to be done. */
static bool
stock(struct reader *r, const struct trace_record *record, struct trace_buffer_slot *made)
{
    /* The client does not matter: one process stores it. */
    made->route = (uint32_t)(made->hash >> 32);
    if (record->value_len == 0 || !is_in_slice(r, made)) {
        return !stops(r);
    }
    /* Numbers that stand for keys are written in different lengths. */
    switch (keyset_add(&r->stocked, rng_mix(made->hash, made->key_len, 3))) {
    case KEYSET_NEW:
        return hand_over_set(r, record, made);
    case KEYSET_KNOWN:
        return !stops(r);
    case KEYSET_FULL:
        break;
    }
    r->is_cut = true;
    return false;
}

/* False when there is no more to be done. */
static bool
make_page(struct reader *r, const struct trace_record *record)
{
    struct trace_buffer_slot made = {.next = TRACE_BUFFER_NONE};
    if (!put_key(r, record, &made)) {
        snprintf(r->err, sizeof r->err,
                 "%s: with its prefix a key is longer than 250 bytes: %.*s",
                 r->conf.trace.path, (int)record->key_len, record->key);
        r->has_failed = true;
        return false;
    }
    return r->run.stocks ? stock(r, record, &made) : hand_over(r, record, &made);
}

static void
read_all(struct reader *r)
{
    struct trace_record record;
    enum trace_status status;
    bool goes_on = true;
    while (goes_on && (status = trace_next(r->trace, &record)) != TRACE_END) {
        if (status == TRACE_FAILED) {
            fail(r, trace_error(r->trace));
            return;
        }
        if (!is_wanted(r, &record)) {
            r->unsupported += record.repeat;
            continue;
        }
        if (!r->has_first) {
            r->has_first = true;
            r->first_ns = record.time_ns;
        }
        goes_on = make_page(r, &record);
    }
}

/* The first record tells whether times are so coarse that what shares one is to be known. */
static void
look_ahead(struct reader *r)
{
    if (r->ahead != NULL) {
        r->ahead_status = trace_next(r->ahead, &r->found);
        if (r->ahead_status == TRACE_RECORD && trace_step(r->ahead) == 1) {
            trace_close(&r->ahead);
        }
    }
}

static void *
reader_main(void *arg)
{
    struct reader *r = arg;
    look_ahead(r);
    read_all(r);
    for (unsigned i = 0; i < r->buffers_len; i++) {
        trace_buffer_end(&r->buffers[i], r->end_ns);
    }
    atomic_store_explicit(&r->is_primed, true, memory_order_release);
    return NULL;
}

/* ---- opening, starting, stopping ------------------------------------------------------- */

/* What is wrong with it as a whole; what is wrong with single lines, a run says. NULL: nothing. */
static const char *
look_at_trace(const struct trace_conf *conf, bool needs_times, char err[TRACE_ERR_MAX])
{
    struct trace *trace;
    struct trace_record record;
    const char *wrong = trace_open(&trace, conf, err), *what = NULL;
    if (wrong != NULL) {
        return wrong;
    }
    const struct trace_notes *n = trace_notes(trace);
    if (needs_times && !trace_has_times(trace)) {
        what = "it has no times (--trace-time=rate)";
    } else if (trace_next(trace, &record) == TRACE_END && n->records == 0 &&
               n->bad == 0 && n->unknown[0].count == 0) {
        what = "there is no request in it";
    }
    trace_close(&trace);
    if (what != NULL) {
        snprintf(err, TRACE_ERR_MAX, "%s: %s", conf->path, what);
    }
    return what != NULL ? err : NULL;
}

const char *
reader_open(struct reader **reader, const struct reader_conf *conf,
            char err[TRACE_ERR_MAX])
{
    must(conf->threads > 0);
    uint32_t pages = READER_PAGES / conf->threads;
    struct reader *r = alloc_zeroed(1, sizeof *r);
    *reader = r;
    r->conf = *conf;
    r->conf.trace.stop = &r->stops;
    r->prefix_len = strlen(conf->key_prefix);
    r->buffers = alloc_zeroed(conf->threads, sizeof *r->buffers);
    pages = pages > READER_PAGES_MIN ? pages : READER_PAGES_MIN;
    while (r->buffers_len < conf->threads) {
        trace_buffer_init(&r->buffers[r->buffers_len++], pages);
    }
    const char *wrong = look_at_trace(&conf->trace, conf->speed > 0, err);
    if (wrong != NULL) {
        reader_close(reader);
    }
    return wrong;
}

static void
close_files(struct reader *r)
{
    trace_close(&r->trace);
    trace_close(&r->ahead);
    arrivals_fini(&r->arrival);
}

void
reader_close(struct reader **reader)
{
    struct reader *r = *reader;
    if (r != NULL) {
        struct reader_notes notes;
        (void)!reader_stop(r, &notes);
        for (unsigned i = 0; i < r->buffers_len; i++) {
            trace_buffer_fini(&r->buffers[i]);
        }
        keyset_fini(&r->stocked);
        free(r->buffers);
        free(r);
        *reader = NULL;
    }
}

struct trace_buffer *
reader_buffer(struct reader *r, unsigned thread)
{
    must(thread < r->buffers_len);
    return &r->buffers[thread];
}

/* The second look at the file, for what shares a time. */
static const char *
open_ahead(struct reader *r, char err[TRACE_ERR_MAX])
{
    if (r->run.stocks || r->conf.speed == 0 || r->conf.spread == TRACE_SPREAD_NONE) {
        return NULL;
    }
    return trace_open(&r->ahead, &r->conf.trace, err);
}

static const char *
begin(struct reader *r, char err[TRACE_ERR_MAX])
{
    r->has_first = r->has_failed = false;
    r->end_ns = r->cut_values = r->unsupported = 0;
    r->is_cut = false;
    keyset_fini(&r->stocked);
    keyset_init(&r->stocked, r->run.stock.most);
    atomic_store(&r->stops, false);
    atomic_store(&r->is_primed, false);
    rng_init(&r->rng, r->run.seed, r->run.stream);
    r->clock = (struct trace_clock){.spread = r->conf.spread, .rng = &r->rng};
    struct arrivals_conf arrivals = {
        .law = r->run.law,
        .rate = r->run.rate,
        .seed = r->run.seed,
        .stream = r->run.stream,
        .sources = 1,
        .every = 1,
    };
    if (r->conf.speed == 0 && r->run.rate > 0) {
        arrivals_init(&r->arrival, &arrivals);
    }
    for (unsigned i = 0; i < r->buffers_len; i++) {
        trace_buffer_reset(&r->buffers[i]);
    }
    const char *wrong = trace_open(&r->trace, &r->conf.trace, err);
    return wrong != NULL ? wrong : open_ahead(r, err);
}

const char *
reader_start(struct reader *r, const struct reader_run *run, char err[TRACE_ERR_MAX])
{
    must(!r->is_started);
    must(!run->stocks || (run->stock.lanes > 0 && run->stock.lanes <= r->conf.threads));
    r->run = *run;
    const char *wrong = begin(r, err);
    if (wrong == NULL && pthread_create(&r->id, NULL, reader_main, r) != 0) {
        snprintf(err, TRACE_ERR_MAX, "cannot start a thread that reads the trace");
        wrong = err;
    }
    if (wrong != NULL) {
        close_files(r);
        return wrong;
    }
    r->is_started = true;
    return NULL;
}

bool
reader_is_primed(const struct reader *r)
{
    return atomic_load_explicit(&r->is_primed, memory_order_acquire);
}

void
reader_halt(struct reader *r)
{
    atomic_store_explicit(&r->stops, true, memory_order_relaxed);
}

const char *
reader_stop(struct reader *r, struct reader_notes *notes)
{
    *notes = (struct reader_notes){.cut_values = 0};
    if (!r->is_started) {
        return NULL;
    }
    reader_halt(r);
    PTHREAD_OK(pthread_join(r->id, NULL));
    r->is_started = false;
    notes->trace = *trace_notes(r->trace);
    notes->cut_values = r->cut_values;
    notes->unsupported = r->unsupported;
    notes->stocked = r->stocked.count;
    notes->is_cut = r->is_cut;
    keyset_fini(&r->stocked);
    close_files(r);
    return r->has_failed ? r->err : NULL;
}
