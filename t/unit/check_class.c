/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which class a request falls into: by what it is, by rules, by what its connection has been
 * asking for.
 */
#include "qos/class.h"

#include <arpa/inet.h>

#include "check_main.h"
#include "qos/class_rules.h"
#include "qos/history.h"

static const struct {
    struct class_traits traits;
    enum req_class class;
} cases[] = {
    {{.is_control = true, .keys = 1}, CLASS_CONTROL},
    {{.is_control = true, .keys = 1000, .is_incomplete = true}, CLASS_CONTROL},
    {{.keys = 1}, CLASS_SMALL},
    {{.keys = CLASS_BULK_KEYS}, CLASS_SMALL},
    {{.keys = CLASS_BULK_KEYS + 1}, CLASS_BULK},
    {{.keys = UINT32_MAX}, CLASS_BULK},
    {{.keys = 1, .value_bytes = CLASS_BULK_BYTES}, CLASS_SMALL},
    {{.keys = 1, .value_bytes = CLASS_BULK_BYTES + 1}, CLASS_BULK},
    {{.keys = 1, .value_bytes = UINT64_MAX}, CLASS_BULK},
    {{.keys = 1, .is_incomplete = true}, CLASS_BULK},
    {{.keys = 1, .is_write = true}, CLASS_WRITE},
    {{.keys = 1, .is_write = true, .value_bytes = CLASS_BULK_BYTES}, CLASS_WRITE},
    {{.keys = 1, .is_write = true, .value_bytes = CLASS_BULK_BYTES + 1}, CLASS_BULK},
};

TEST_LOOP(request_falls_into_its_class, ROWS(cases))
{
    struct class_conf conf = class_conf_make(true, CLASS_BULK_KEYS, CLASS_BULK_BYTES);
    ck_assert_int_eq(class_of(&conf, &cases[_i].traits), cases[_i].class);
    conf = class_conf_make(false, CLASS_BULK_KEYS, CLASS_BULK_BYTES);
    ck_assert_int_eq(class_of(&conf, &cases[_i].traits),
                     cases[_i].traits.is_control ? CLASS_CONTROL : CLASS_SMALL);
}

TEST(thresholds_can_be_set)
{
    struct class_conf conf = class_conf_make(true, 2, 10);
    ck_assert_int_eq(class_of(&conf, &(struct class_traits){.keys = 2}), CLASS_SMALL);
    ck_assert_int_eq(class_of(&conf, &(struct class_traits){.keys = 3}), CLASS_BULK);
    ck_assert_int_eq(class_of(&conf, &(struct class_traits){.value_bytes = 11}),
                     CLASS_BULK);
}

TEST(table_says_what_each_class_is)
{
    static const char *const names[] = {"control", "small", "write", "bulk",
                                        "background"};
    ck_assert_int_eq(ROWS(names), CLASS_COUNT);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        ck_assert_str_eq(class_name(c), names[c]);
        ck_assert_int_eq(class_by_name(names[c], strlen(names[c])), c);
        ck_assert_int_eq(class_is_inline(c), c <= CLASS_SMALL);
        ck_assert_int_eq(class_is_limited(c), c != CLASS_CONTROL);
        ck_assert_int_eq(class_by_declared_name(names[c], strlen(names[c])),
                         c == CLASS_CONTROL ? CLASS_NONE : c);
    }
    ck_assert_int_eq(class_by_name("bul", 3), CLASS_NONE);
    ck_assert_int_eq(class_by_name("bulky", 5), CLASS_NONE);
    ck_assert_int_eq(class_by_name("", 0), CLASS_NONE);
    ck_assert_int_eq(class_by_declared_name("auto", 4), CLASS_NONE);
}

static const char *const bad_shares[] = {
    "",          "write",     "write:",        "write:x",          "write:-1",
    "small:50",  "control:5", "nobody:5",      "write:5,",         "write:10;bulk:5",
    "bulk:0.01", "write:101", "write:85.1",    "write:40,bulk:50", "write:5 ,bulk:5",
    ",write:5",  "write:nan", "bulk:1,bulk:1",
};

TEST_LOOP(bad_shares_are_refused_and_change_nothing, ROWS(bad_shares))
{
    struct class_shares shares;
    class_shares_init(&shares);
    ck_assert_ptr_nonnull(class_shares_parse(&shares, bad_shares[_i]));
    ck_assert_uint_eq(shares.per_mille[CLASS_WRITE], 100);
    ck_assert_uint_eq(shares.per_mille[CLASS_BULK], 50);
    ck_assert_uint_eq(shares.per_mille[CLASS_BACKGROUND], 10);
}

TEST(shares_are_read)
{
    struct class_shares shares;
    class_shares_init(&shares);
    ck_assert_ptr_null(class_shares_parse(&shares, "bulk:25,background:0.5"));
    ck_assert_uint_eq(shares.per_mille[CLASS_WRITE], 100);
    ck_assert_uint_eq(shares.per_mille[CLASS_BULK], 250);
    ck_assert_uint_eq(shares.per_mille[CLASS_BACKGROUND], 5);
    ck_assert_ptr_null(class_shares_parse(&shares, "write:30,bulk:30,background:30"));
}

/* ---- rules ---------------------------------------------------------------------------- */

static struct class_rules rules;
static const char *err;

static bool
add(const char *text)
{
    err = class_rules_add(&rules, text);
    return err == NULL;
}

static enum req_class
class_of_peer(const char *text)
{
    struct ipnet net;
    ck_assert(ipnet_parse(&net, text, strlen(text)));
    return class_rules_peer(&rules, net.ip);
}

static enum req_class
class_of_key(const char *key)
{
    return class_rules_key(&rules, key, strlen(key));
}

TEST(most_exact_rule_wins)
{
    memset(&rules, 0, sizeof rules);
    ck_assert(add("peer:10.0.0.0/8=bulk"));
    ck_assert(add("peer:10.1.0.0/16=small"));
    ck_assert(add("peer:10.1.2.3=background"));
    ck_assert(add("peer:0.0.0.0/0=write"));
    ck_assert(add("peer:fd00::/8=bulk"));
    ck_assert_int_eq(class_of_peer("10.2.0.1"), CLASS_BULK);
    ck_assert_int_eq(class_of_peer("10.1.9.9"), CLASS_SMALL);
    ck_assert_int_eq(class_of_peer("10.1.2.3"), CLASS_BACKGROUND);
    ck_assert_int_eq(class_of_peer("192.0.2.1"), CLASS_WRITE);
    ck_assert_int_eq(class_of_peer("fd12::1"), CLASS_BULK);
    ck_assert_int_eq(class_of_peer("fe80::1"), CLASS_NONE);
    ck_assert(add("key:batch:=background"));
    ck_assert(add("key:batch:now:=small"));
    ck_assert(add("key:a=b=bulk"));
    ck_assert_int_eq(class_of_key("batch:1"), CLASS_BACKGROUND);
    ck_assert_int_eq(class_of_key("batch:now:1"), CLASS_SMALL);
    ck_assert_int_eq(class_of_key("batch:now"), CLASS_BACKGROUND);
    ck_assert_int_eq(class_of_key("batch"), CLASS_NONE);
    ck_assert_int_eq(class_of_key("a=b"), CLASS_BULK);
    ck_assert_int_eq(class_of_key(""), CLASS_NONE);
}

static const char *const bad_rules[] = {
    "",
    "bulk",
    "peer:10.0.0.0/8",
    "peer:10.0.0.0/33=bulk",
    "peer:10.0.0=bulk",
    "peer:=bulk",
    "peer:10.0.0.0/8=",
    "peer:10.0.0.0/8=control",
    "peer:10.0.0.0/8=auto",
    "peer:10.0.0.0/8=Bulk",
    "key:=bulk",
    "key:a=large",
    "host:a=bulk",
    "key=bulk",
    "peer:10.0.0.0/8=bulk;x",
};

TEST_LOOP(bad_rule_is_named, ROWS(bad_rules))
{
    memset(&rules, 0, sizeof rules);
    ck_assert(!add(bad_rules[_i]));
    ck_assert_ptr_eq(strstr(err, "class-rule"), err);
    ck_assert_uint_eq(rules.peer_count + rules.key_count, 0);
}

TEST(contradictions_are_refused)
{
    memset(&rules, 0, sizeof rules);
    ck_assert(add("peer:10.0.0.0/8=bulk"));
    ck_assert(!add("peer:10.9.9.9/8=small"));
    ck_assert_ptr_nonnull(strstr(err, "another rule"));
    ck_assert(!add("peer:10.0.0.0/8=bulk"));
    ck_assert(add("key:a=bulk"));
    ck_assert(!add("key:a=small"));
    ck_assert(add("key:ab=small"));
    ck_assert_uint_eq(rules.peer_count, 1);
    ck_assert_uint_eq(rules.key_count, 2);
}

TEST(there_are_64_of_each)
{
    char text[300];
    memset(&rules, 0, sizeof rules);
    for (unsigned i = 0; i < CLASS_RULES_MAX; i++) {
        snprintf(
            text, sizeof text, "key:%.*s=bulk", (int)(i % 2 ? 100 - i : i + 1),
            "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
            "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk");
        if (i % 2) {
            text[4] = 'x';
        }
        ck_assert_msg(add(text), "%s", err);
        snprintf(text, sizeof text, "peer:10.0.%u.0/24=bulk", i);
        ck_assert_msg(add(text), "%s", err);
    }
    for (unsigned i = 1; i < CLASS_RULES_MAX; i++) {
        ck_assert_uint_ge(rules.keys[i - 1].len, rules.keys[i].len);
    }
    ck_assert(!add("key:one more=bulk"));
    ck_assert(!add("peer:11.0.0.0/8=bulk"));
    memset(text, 'k', sizeof text);
    memcpy(text, "key:", 4);
    memcpy(text + 4 + CLASS_PREFIX_MAX + 1, "=bulk", 6);
    ck_assert(!add(text));
    memset(&rules, 0, sizeof rules);
    memcpy(text + 4 + CLASS_PREFIX_MAX, "=bulk", 6);
    ck_assert(add(text));
}

/* ---- habits --------------------------------------------------------------------------- */

TEST(sixteen_of_a_kind_are_a_habit)
{
    struct history h = {0};
    ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
    for (unsigned i = 0; i < 15; i++) {
        h.class = CLASS_BULK;
        history_note(&h, CLASS_BULK);
        history_end_turn(&h, 1, true);
        ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
    }
    h.class = CLASS_WRITE;
    history_note(&h, CLASS_WRITE);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_WRITE);
    h.class = CLASS_SMALL;
    history_note(&h, CLASS_SMALL);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
}

TEST(a_long_burst_is_greedy_until_the_next)
{
    struct history h = {0};
    history_end_turn(&h, HISTORY_GREEDY - 1, true);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
    history_end_turn(&h, HISTORY_GREEDY, true);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_SMALL);
    history_end_turn(&h, 1, true);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
    /* in several turns */
    for (unsigned i = 0; i < HISTORY_GREEDY; i++) {
        ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
        history_end_turn(&h, 1, false);
    }
    ck_assert_int_eq(history_lane(&h, 0), CLASS_SMALL);
    history_end_turn(&h, UINT32_MAX / 2, false);
    history_end_turn(&h, 0, true);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_SMALL);
    history_end_turn(&h, 1, true);
    ck_assert_int_eq(history_lane(&h, 0), CLASS_NONE);
}

/* A client that sends its requests in pieces, each in a read of its own. */
struct client {
    struct history history;
    struct history_peers *peers;
    uint32_t served;
    nsec_t now;
    unsigned charged;
};

/* The queue in which the connection waits for the next read, which brings so many bytes: `came` of
 * a request in all, or its end. */
static enum req_class
read_piece(struct client *c, uint64_t came, bool is_whole)
{
    enum req_class lane = history_lane(&c->history, c->served);
    if (is_whole) {
        history_note(&c->history, CLASS_SMALL);
        c->served++;
    } else {
        c->charged += history_charge(&c->history, c->peers, 7, came, c->served, c->now);
    }
    history_end_turn(&c->history, is_whole, true);
    return lane;
}

TEST(who_trickles_waits_behind_all)
{
    struct history_peers peers = {{0}};
    struct client c = {.peers = &peers, .now = NSEC_PER_SEC, .served = UINT32_MAX - 20};
    c.history.paid = c.served;
    unsigned reads = 0;
    enum req_class lane = CLASS_NONE;
    /* 7 bytes, one a read: 5 are left of each request */
    while (lane == CLASS_NONE && reads < 100) {
        lane = read_piece(&c, reads % 7 + 1, reads % 7 == 6);
        reads++;
    }
    ck_assert_uint_eq(reads, 12); /* one too many is owed since the eleventh */
    ck_assert_uint_eq(c.charged, 11);
    ck_assert_int_eq(lane, CLASS_BACKGROUND);
    for (; reads < 700; reads++) { /* a request now and then does not help */
        lane = read_piece(&c, reads % 7 + 1, reads % 7 == 6);
        ck_assert_int_eq(lane, CLASS_BACKGROUND);
    }
    ck_assert(history_trickles(&c.history));
    unsigned whole = 0;
    while (read_piece(&c, 0, true) != CLASS_NONE && whole < 1000) {
        whole++;
    }
    ck_assert_uint_eq(whole, HISTORY_DEBT_MOST - HISTORY_DEBT_FREE - 1);
    ck_assert(!history_trickles(&c.history));
    ck_assert_int_eq(read_piece(&c, 0, true), CLASS_NONE);
}

TEST(requests_in_two_pieces_are_none_too_many)
{
    struct history_peers peers = {{0}};
    struct client c = {.peers = &peers, .now = NSEC_PER_SEC};
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_eq(read_piece(&c, 20, false), CLASS_NONE);
        ck_assert_int_eq(read_piece(&c, 0, true), CLASS_NONE);
    }
}

TEST(long_parts_cost_nothing)
{
    struct history_peers peers = {{0}};
    struct client c = {.peers = &peers, .now = NSEC_PER_SEC};
    for (uint64_t came = HISTORY_PIECE; came < 100 * HISTORY_PIECE;
         came += HISTORY_PIECE) {
        ck_assert_int_eq(read_piece(&c, came, false), CLASS_NONE);
    }
    ck_assert_uint_eq(c.charged, 0);
    read_piece(&c, 100 * HISTORY_PIECE - 1, false);
    ck_assert_uint_eq(c.charged, 1);
    read_piece(&c, 100 * HISTORY_PIECE - 1, false); /* a read that brought nothing */
    ck_assert_uint_eq(c.charged, 1);
    read_piece(&c, 0, true);
    read_piece(&c, 100 * HISTORY_PIECE - 1, false); /* a part of the next one */
    ck_assert_uint_eq(c.charged, 1);
    read_piece(&c, 0, true);
    read_piece(&c, 1, false);
    ck_assert_uint_eq(c.charged, 2);
}

TEST(address_that_trickles_has_little_patience)
{
    struct history_peers peers = {{0}};
    struct history h;
    nsec_t now = NSEC_PER_SEC;
    struct client c = {.peers = &peers, .now = now};
    for (unsigned i = 0; i <= HISTORY_DEBT_FREE; i++) {
        history_begin(&h, &peers, 7, now);
        ck_assert_uint_eq(h.debt, 0);
        read_piece(&c, i + 1, false);
    }
    ck_assert(history_trickles(&c.history));
    history_begin(&h, &peers, 8, now);
    ck_assert_uint_eq(h.debt, 0); /* another address */
    history_begin(&h, &peers, 0, now);
    ck_assert_uint_eq(h.debt, 0); /* a UNIX socket */
    history_begin(&h, &peers, 7, now + HISTORY_PEER_NS);
    ck_assert_uint_eq(h.debt, 0); /* long ago */
    history_begin(&c.history, &peers, 7, now + HISTORY_PEER_NS - 1);
    c.served = 0;
    ck_assert_int_eq(read_piece(&c, 1, false), CLASS_NONE);
    ck_assert_int_eq(read_piece(&c, 2, false), CLASS_BACKGROUND);
}

static const struct {
    enum req_class from, to;
    bool by_key, is_lower; /* by_key: there are rules for keys */
} moves[] = {
    {CLASS_NONE, CLASS_NONE, false, true},
    {CLASS_NONE, CLASS_SMALL, false, false},
    {CLASS_NONE, CLASS_WRITE, false, false},
    {CLASS_NONE, CLASS_BULK, false, true},
    {CLASS_NONE, CLASS_BULK, true, false}, /* a key's rule may say background */
    {CLASS_NONE, CLASS_BACKGROUND, true, true},
    {CLASS_SMALL, CLASS_SMALL, true, true},
    {CLASS_SMALL, CLASS_WRITE, true, true},
    {CLASS_SMALL, CLASS_NONE, false, false},
    {CLASS_WRITE, CLASS_SMALL, false, false},
    {CLASS_BULK, CLASS_WRITE, false, false},
    {CLASS_BULK, CLASS_BACKGROUND, false, true},
    {CLASS_BACKGROUND, CLASS_BULK, false, false},
    {CLASS_BACKGROUND, CLASS_NONE, false, false},
    {CLASS_BACKGROUND, CLASS_BACKGROUND, false, true},
};

TEST_LOOP(lower_serves_no_request_better, ROWS(moves))
{
    ck_assert_int_eq(class_is_lower(moves[_i].from, moves[_i].to, moves[_i].by_key),
                     moves[_i].is_lower);
}
