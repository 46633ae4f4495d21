/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/frame.h"

#include "check_main.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

enum { TAG_NUMBER = 7, TAG_TEXT = 8, TAG_LIST = 9 };

/* What is written, and what was read of it. */
static struct frame_out o;
static struct frame f;
static size_t taken;

static void
tear_down(void)
{
    frame_out_fini(&o);
}

static void
take(void)
{
    ck_assert_int_eq(frame_parse(o.p, o.len, FRAME_MAX, 0, &f, &taken), FRAME_DONE);
}

static void
make(size_t mac_len)
{
    frame_begin(&o, 3, 0x1122334455667788, 5);
    frame_put_number(&o, TAG_NUMBER, 258);
    frame_put_text(&o, TAG_TEXT, "hello");
    frame_put_text(&o, TAG_LIST, "a");
    frame_put_text(&o, TAG_LIST, "");
    ck_assert(frame_end(&o, mac_len));
}

static enum frame_status
parse(const void *p, size_t n, size_t mac_len)
{
    uint8_t *copy = (uint8_t *)exact_copy(p, n);
    enum frame_status status = frame_parse(copy, n, FRAME_MAX, mac_len, &f, &taken);
    free(copy);
    return status;
}

FIXTURE(NULL, tear_down);

TEST(bytes_on_the_wire)
{
    static const uint8_t expected[] = {
        0, 0, 0, 32,             /* what follows */
        0, 3,                    /* type */
        0, 0, 0, 0,  0, 0, 1, 2, /* session */
        0, 0, 0, 0,  0, 0, 0, 9, /* sequence */
        0, 7, 0, 0,  0, 8,       /* a number of 8 bytes */
        0, 0, 0, 0,  0, 0, 3, 4,
    };
    frame_begin(&o, 3, 258, 9);
    frame_put_number(&o, TAG_NUMBER, 772);
    ck_assert(frame_end(&o, 0));
    ck_assert_uint_eq(o.len, sizeof expected);
    ck_assert_mem_eq(o.p, expected, sizeof expected);
}

TEST(what_is_put_is_got)
{
    struct frame_field field;
    size_t cursor = 0;
    uint64_t number;
    char text[6];
    make(0);
    take();
    ck_assert_uint_eq(taken, o.len);
    ck_assert_uint_eq(f.type, 3);
    ck_assert_uint_eq(f.session, 0x1122334455667788);
    ck_assert_uint_eq(f.sequence, 5);
    ck_assert(frame_number(&f, TAG_NUMBER, 0, 300, &number));
    ck_assert_uint_eq(number, 258);
    ck_assert(!frame_number(&f, TAG_NUMBER, 259, 300, &number));
    ck_assert(!frame_number(&f, TAG_NUMBER, 0, 257, &number));
    ck_assert(!frame_number(&f, TAG_TEXT, 0, 300, &number));
    ck_assert(!frame_number(&f, 99, 0, 300, &number));
    ck_assert(frame_text(&f, TAG_TEXT, text, sizeof text));
    ck_assert_str_eq(text, "hello");
    ck_assert_msg(!frame_text(&f, TAG_TEXT, text, 5), "no room for the end");
    ck_assert_msg(!frame_bytes(&f, TAG_LIST, 0, 9, &field), "there are two");
    unsigned found = 0;
    while (frame_next(&f, &cursor, &field)) {
        found += field.tag == TAG_LIST ? 1 : 0;
    }
    ck_assert_uint_eq(found, 2);
}

TEST(every_cut_waits_for_more)
{
    make(FRAME_MAC);
    for (size_t n = 0; n < o.len; n++) {
        expect(parse(o.p, n, FRAME_MAC) == FRAME_MORE);
    }
    expect(parse(o.p, o.len, FRAME_MAC) == FRAME_DONE);
}

TEST(bad_lengths_are_refused)
{
    make(0);
    ck_assert_int_eq(frame_parse(o.p, o.len, o.len - 1, 0, &f, &taken), FRAME_BAD);
    static const uint8_t huge[] = {255, 255, 255, 255};
    ck_assert_int_eq(parse(huge, sizeof huge, 0), FRAME_BAD);
    static const uint8_t none[] = {0, 0, 0, 0};
    ck_assert_int_eq(parse(none, sizeof none, 0), FRAME_BAD);
    o.p[FRAME_HEAD +
        5]++; /* the first field is a byte longer: the others no longer fit */
    ck_assert_int_eq(parse(o.p, o.len, 0), FRAME_BAD);
}

TEST(text_has_no_control_characters)
{
    char text[16];
    frame_begin(&o, 1, 0, 0);
    frame_put_text(&o, TAG_TEXT, "a\nb");
    ck_assert(frame_end(&o, 0));
    take();
    ck_assert(!frame_text(&f, TAG_TEXT, text, sizeof text));
}

TEST(varints)
{
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT64_MAX};
    frame_begin(&o, 1, 0, 0);
    size_t from = o.len, at = from;
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        frame_add_varint(&o, values[i]);
    }
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint64_t value = 42;
        ck_assert(frame_varint(o.p, o.len, &at, &value));
        ck_assert_uint_eq(value, values[i]);
    }
    ck_assert_uint_eq(at, o.len);
    static const struct {
        size_t len;
        uint8_t bytes[11];
    } bad[] = {
        {11, {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}}, /* endless */
        {10, {255, 255, 255, 255, 255, 255, 255, 255, 255, 2}},      /* above 64 bits */
        {2, {0x80, 0}},                                              /* padded */
        {3, {255, 255, 255}},                                        /* cut */
    };
    for (int i = 0; i < ROWS(bad); i++) {
        uint64_t value;
        at = 0;
        ck_assert_msg(!frame_varint(bad[i].bytes, bad[i].len, &at, &value), "%d", i);
    }
}

TEST(too_long_a_frame_fails_at_its_end)
{
    FREED char *much = calloc(1, FRAME_MAX);
    ck_assert_ptr_nonnull(much);
    frame_begin(&o, 1, 0, 0);
    frame_put_bytes(&o, TAG_TEXT, much, FRAME_MAX / 2);
    frame_put_bytes(&o, TAG_TEXT, much, FRAME_MAX / 2);
    frame_put_number(&o, TAG_NUMBER, 1);
    ck_assert(!frame_end(&o, 0));
    make(0);
}

TEST(a_hello)
{
    struct message_hello out = {5, 6, true, {1, 2, 3}}, in;
    frame_begin(&o, MESSAGE_HELLO, 0, 0);
    message_put_hello(&o, &out);
    frame_put_text(&o, 999, "of a later version");
    ck_assert(frame_end(&o, 0));
    ck_assert_uint_le(o.len, MESSAGE_HELLO_MAX);
    take();
    ck_assert_ptr_null(message_get_hello(&f, &in));
    ck_assert_uint_eq(in.features, 5);
    ck_assert_uint_eq(in.shape, 6);
    ck_assert(in.is_open);
    ck_assert_mem_eq(in.nonce, out.nonce, sizeof in.nonce);
    f.type = MESSAGE_PROOF;
    ck_assert_ptr_nonnull(message_get_hello(&f, &in));
    frame_begin(&o, MESSAGE_HELLO, 0, 0);
    frame_put_text(&o, FIELD_MAGIC, MESSAGE_MAGIC);
    frame_put_number(&o, FIELD_VERSION, MESSAGE_VERSION + 1);
    ck_assert(frame_end(&o, 0));
    take();
    ck_assert_str_eq(message_get_hello(&f, &in),
                     "speaks another version of mcload's protocol");
}

/* ---- deltas of counters -------------------------------------------------------------- */

static void
work(struct counters *t, unsigned seed)
{
    for (unsigned i = 0; i < 500; i++) {
        nsec_t ns = (nsec_t)i * i * seed + 1;
        counters_sent(t, ns, i % 7 + 1);
        hist_record(t->outstanding, i % 7 + 1);
        counters_good(t, i % 3 == 0 ? COUNTERS_UPDATE : COUNTERS_READ, ns * 3, ns * 2, 1);
        counters_censored(t, &t->lost[COUNTERS_READ], ns);
        ctr_add(&t->errors[i % COUNTERS_ERRORS], 1);
    }
    hist_record(t->lag, UINT64_MAX);
}

static bool
carry(struct counters *sum, struct counters *now, struct counters *before)
{
    frame_begin(&o, MESSAGE_DELTA, 1, 1);
    delta_put(&o, now, before);
    ck_assert(frame_end(&o, 0));
    take();
    return delta_add(sum, &f);
}

TEST(deltas_add_up_exactly)
{
    SCOPED(counters_fini) struct counters now, before, sum;
    counters_init(&now);
    counters_init(&before);
    counters_init(&sum);
    for (unsigned i = 1; i < 5; i++) {
        work(&now, i);
        ck_assert(carry(&sum, &now, &before));
        ck_assert_uint_eq(delta_digest(&sum), delta_digest(&now));
        counters_reset(&before);
        counters_merge(&before, &now);
    }
    ck_assert(carry(&sum, &now, &before)); /* nothing new */
    ck_assert_uint_eq(delta_digest(&sum), delta_digest(&now));
    ck_assert_uint_eq(hist_count(sum.lag), hist_count(now.lag));
    ck_assert_uint_eq(hist_overflow(sum.lag), 4);
    ck_assert_uint_eq(hist_max(sum.lag), hist_max(now.lag));
    ck_assert_double_eq(hist_mean(sum.lag), hist_mean(now.lag));
}

/* Looked at between two stores of its first record: in the sums, in nothing else yet. */
TEST(a_record_under_way_is_left_for_later)
{
    SCOPED(counters_fini) struct counters now, before, sum;
    counters_init(&now);
    counters_init(&before);
    counters_init(&sum);
    struct hist_moments m = hist_moments(now.lag);
    m.sum = 5;
    hist_set_moments(now.lag, &m);
    ck_assert(carry(&sum, &now, &before));
    counters_merge(&before, &now);
    hist_reset(now.lag);
    hist_record(now.lag, 5);
    ck_assert(carry(&sum, &now, &before));
    ck_assert_uint_eq(delta_digest(&sum), delta_digest(&now));
}

TEST(every_counter_makes_a_difference)
{
    SCOPED(counters_fini) struct counters t;
    counters_init(&t);
    uint64_t digest = delta_digest(&t);
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        ctr_add(&t.all[i], 1);
        expect(delta_digest(&t) != digest);
        digest = delta_digest(&t);
    }
    for (unsigned i = 0; i < COUNTERS_HISTS; i++) {
        hist_record(t.hists[i], 5);
        expect(delta_digest(&t) != digest);
        digest = delta_digest(&t);
    }
    counters_reset(&t);
    for (unsigned i = 0; i < COUNTERS_LEN; i++) {
        expect(ctr_get(&t.all[i]) == 0);
    }
}

/* Whatever byte of a delta is wrong: it is taken whole or not at all. */
TEST(a_bad_delta_changes_nothing)
{
    SCOPED(counters_fini) struct counters now, none, sum;
    counters_init(&now);
    counters_init(&none);
    counters_init(&sum);
    hist_record(now.lag, 1000);
    hist_record(now.waits, 70000);
    ctr_add(&now.sent, 300);
    frame_begin(&o, MESSAGE_DELTA, 1, 1);
    delta_put(&o, &now, &none);
    ck_assert(frame_end(&o, 0));
    unsigned refused = 0;
    for (size_t at = FRAME_HEAD; at < o.len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            o.p[at] ^= (uint8_t)(1u << bit);
            if (frame_parse(o.p, o.len, FRAME_MAX, 0, &f, &taken) == FRAME_DONE) {
                uint64_t digest = delta_digest(&sum);
                if (!delta_add(&sum, &f)) {
                    refused++;
                    expect(delta_digest(&sum) == digest);
                }
                counters_reset(&sum);
            }
            o.p[at] ^= (uint8_t)(1u << bit);
        }
    }
    ck_assert_uint_gt(refused, 100);
}
