/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Since when the input of a connection has waited.
 */
#include "core/arrival.h"

#include "check_main.h"
#include "core/core.h"

#define US NSEC_PER_USEC
#define NOW (50 * NSEC_PER_SEC)
#define WALL (UINT64_C(1700000000) * NSEC_PER_SEC)

/* A read at NOW: times are microseconds before it. */
static const struct {
    const char *bytes;
    unsigned stamp;   /* of the last packet; 0: none */
    unsigned ready;   /* the socket was reported */
    unsigned woke;    /* the pass began, */
    unsigned heard;   /* whose poll found what arrived since then */
    unsigned emptied; /* the socket was last read empty */
    bool had_rest, was_blocked, has_rest, is_slow;
    int since;    /* what is noted; -1: not known */
    int empty_at; /* likewise */
} rows[] = {
    /* One request: the packet's stamp tells. */
    {"get a\r\n", 70, 20, 20, 20, 900, false, false, false, false, 70, 0},
    /* Without a stamp the report is the earliest that is known. */
    {"get a\r\n", 0, 20, 20, 20, 900, false, false, false, false, 20, 0},
    /* Several: the first may have waited as long as the pass before this one took, */
    {"get a\r\nget b\r\n", 70, 20, 20, 320, 900, false, false, false, false, 300, 0},
    /* but not longer than since the socket was empty, */
    {"get a\r\nget b\r\n", 70, 20, 20, 320, 200, false, false, false, false, 200, 0},
    /* and since then if it was not read empty: what was left is as old. */
    {"get a\r\nget b\r\n", 70, 20, 20, 120, 200, true, false, false, false, 200, 0},
    /* The client took no replies: waiting in the kernel was its own doing. */
    {"get a\r\n", 70, 20, 20, 20, 900, false, true, false, false, 20, 0},
    {"get a\r\nget b\r\n", 70, 20, 20, 320, 900, false, true, false, false, 20, 0},
    /* A client that is slow itself tells nothing. */
    {"g", 70, 20, 20, 20, 900, false, false, false, true, -1, 0},
    /* What is left unread is not older than what was read. */
    {"get a\r\n", 70, 20, 20, 20, 900, false, false, true, false, 70, 70},
    /* A report of an earlier pass: only the stamp counts. */
    {"get a\r\nget b\r\n", 70, 60, 20, 320, 900, false, false, false, false, 70, 0},
};

TEST_LOOP(waited_since, ROWS(rows))
{
    const char *bytes = rows[_i].bytes;
    struct pass pass = {.woke_at = NOW - rows[_i].woke * US,
                        .heard_at = NOW - rows[_i].heard * US};
    struct arrival a = {.empty_at = NOW - rows[_i].emptied * US,
                        .has_rest = rows[_i].had_rest,
                        .was_blocked = rows[_i].was_blocked};
    struct arrival_read r = {
        .bytes = bytes,
        .len = strlen(bytes),
        .has_rest = rows[_i].has_rest,
        .is_own_delay = rows[_i].is_slow,
        .times = {.rx_wall = rows[_i].stamp > 0 ? WALL - rows[_i].stamp * US : 0,
                  .read_wall = WALL,
                  .read_mono = NOW,
                  .ready_mono = NOW - rows[_i].ready * US}};
    arrival_note(&a, &pass, &r);
    ck_assert_uint_eq(a.since,
                      rows[_i].since < 0 ? 0 : NOW - (unsigned)rows[_i].since * US);
    ck_assert_uint_eq(a.empty_at, NOW - (unsigned)rows[_i].empty_at * US);
    expect(!a.was_blocked && a.has_rest == rows[_i].has_rest);
}

/* What came while a request of the connection waited for a limit was left unread, which is no queue. */
TEST(the_wait_for_a_limit_is_none)
{
    struct pass pass = {.woke_at = NOW - 20 * US, .heard_at = NOW - 20 * US};
    struct arrival a = {
        .since = NOW - 900 * US, .empty_at = NOW - 900 * US, .has_rest = true};
    arrival_resume(&a, NOW - 15 * US);
    ck_assert_uint_eq(a.since, NOW - 15 * US);
    struct arrival_read r = {.bytes = "get a\r\n",
                             .len = 7,
                             .times = {.rx_wall = WALL - 700 * US,
                                       .read_wall = WALL,
                                       .read_mono = NOW,
                                       .ready_mono = NOW - 20 * US}};
    arrival_note(&a, &pass, &r);
    ck_assert_uint_eq(a.since, NOW - 15 * US);
    /* What comes behind it counts as ever. */
    r.times.rx_wall = WALL + 60 * US;
    r.times.read_wall = WALL + 100 * US;
    r.times.read_mono = NOW + 100 * US;
    r.times.ready_mono = NOW + 80 * US;
    arrival_note(&a, &pass, &r);
    ck_assert_uint_eq(a.since, NOW + 60 * US);
}

TEST(unmeasured_is_not_known)
{
    struct pass pass = {.woke_at = NOW};
    struct arrival a = {.since = 1, .was_blocked = true};
    arrival_note_unmeasured(&a, &pass, true);
    expect(a.since == 0 && a.has_rest && !a.was_blocked && a.empty_at == NOW);
    pass.woke_at += US;
    arrival_note_empty(&a, &pass);
    expect(!a.has_rest && a.empty_at == NOW + US);
}

TEST(a_message_has_waited_in_all)
{
    struct sojourn_times times = {.rx_wall = WALL - 90 * US,
                                  .read_wall = WALL,
                                  .read_mono = NOW,
                                  .ready_mono = NOW - 30 * US};
    ck_assert_uint_eq(arrival_of(&times), NOW - 90 * US);
    times.rx_wall = 0;
    ck_assert_uint_eq(arrival_of(&times), NOW - 30 * US);
}

/* ---- what an SLO makes of it ------------------------------------------------------------ */

#define STREAMS 100
#define GAP (100 * US) /* between two requests of a stream */
#define SERVICE 1500   /* ns: two thirds of them can be served */
#define REFUSAL 100
#define TARGET (500 * US)

static struct hist *waits; /* of those that were served */

struct stream {
    struct arrival arrival;
    nsec_t next; /* when the first request came that is not read */
};

/* Reads what has come by now, and serves it or not. */
static void
read_stream(struct stream *s, struct slo_watch *slo, const struct pass *pass, nsec_t *now)
{
    unsigned n = 1 + (unsigned)((*now - s->next) / GAP);
    nsec_t last = s->next + (n - 1) * GAP;
    struct arrival_read r = {.bytes = "get a\r\nget a\r\n",
                             .len = n > 1 ? 14 : 7,
                             .times = {.rx_wall = last,
                                       .read_wall = *now,
                                       .read_mono = *now,
                                       .ready_mono = pass->woke_at}};
    arrival_note(&s->arrival, pass, &r);
    for (unsigned i = 0; i < n; i++) {
        if (!slo_admits(slo, CLASS_SMALL, 1, *now - s->arrival.since, *now)) {
            slo_refuse(slo, CLASS_SMALL, n - i - 1);
            *now += (n - i) * REFUSAL;
            break;
        }
        hist_record(waits, *now - s->next - i * GAP);
        *now += SERVICE;
    }
    s->next = last + GAP;
}

static void
serve_streams(struct stream *streams, struct slo_watch *slo, nsec_t *now, nsec_t time)
{
    struct pass pass = {.woke_at = *now};
    for (nsec_t end = *now + time; *now < end;) {
        pass.heard_at = pass.woke_at;
        pass.woke_at = *now += US;
        for (unsigned i = 0; i < STREAMS; i++) {
            if (streams[i].next <= pass.woke_at) {
                read_stream(&streams[i], slo, &pass, now);
            }
        }
    }
}

/* Clients that send on without waiting for replies, more than can be served: what is last at each
 * socket is fresh at any time, and yet the target is kept but for a fourth. Without the age of the
 * oldest the waits grow to 17 ms. */
TEST(a_queue_behind_fresh_stamps_is_seen)
{
    static struct stream streams[STREAMS];
    struct slo slo;
    struct slo_watch watch;
    nsec_t now = NOW;
    waits = hist_create(7, 10 * NSEC_PER_SEC);
    ck_assert_ptr_nonnull(waits);
    slo_init(&slo);
    slo_set(&slo, SLO_TOTAL, (struct slo_target){TARGET, 990});
    slo_watch_init(&watch, &slo, NOW);
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] =
            (struct stream){.arrival.empty_at = NOW, .next = NOW + i * GAP / STREAMS};
    }
    serve_streams(streams, &watch, &now, NSEC_PER_SEC / 10); /* until it has settled */
    hist_reset(waits);
    serve_streams(streams, &watch, &now, NSEC_PER_SEC / 2);
    ck_assert_uint_le(hist_quantile(waits, 0.99), TARGET * 5 / 4);
    ck_assert_uint_gt(hist_count(waits) * SERVICE, NSEC_PER_SEC / 2 * 8 / 10);
    hist_destroy(&waits);
}
