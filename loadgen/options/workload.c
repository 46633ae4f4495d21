/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is asked for: keys, values and the mix of a class.
 */
#include "loadgen/options/group.h"

#include <math.h>

#include "base/num.h"
#include "base/part.h"
#include "loadgen/wire/request.h"
#include "loadgen/work/workload.h"

#define RECORDS_MAX 1e12
/* Only of values that this run has stored itself: others may have another form. */
#define VERIFY_DEFAULT 0.01
#define CHURN_MAX 1e9
#define MULTIGET_DEFAULT "100"
#define LAW_MAX 1024

static const char *
call_getcount(void *conf, const char *text)
{
    struct lclass *c = conf;
    struct dist *d = &c->workload.getcount;
    c->getcount_text = text;
    const char *wrong = value_dist(d, text);
    bool is_fixed = wrong == NULL && d->kind == DIST_FIXED;
    return is_fixed && (d->a < 1 || d->a > WORKLOAD_GETCOUNT_MAX || floor(d->a) != d->a)
               ? "a get has between 1 and 1000 keys"
               : wrong;
}

static const char *const sized_per[] = {"key", "set"};

#define ONE_MIX                                                                          \
    "--ops is the whole mix: give sets their share in it (set:0.1), without --update "   \
    "and --ratio"

/* Of what is given together; names and classes override each other. */
static const char *
take_update(struct lclass *c, double share)
{
    c->has_update = true;
    mix_of_update(&c->workload.mix, share);
    return c->has_ops ? ONE_MIX : NULL;
}

static const char *
call_update(void *conf, const char *text)
{
    double share;
    if (!num_double(text, strlen(text), &share) || share < 0 || share > 1) {
        return "the share of sets must be between 0 and 1";
    }
    return take_update(conf, share);
}

/* memtier_benchmark's way to say the same. */
static const char *
call_ratio(void *conf, const char *text)
{
    size_t len = strcspn(text, ":");
    uint32_t sets, gets;
    if (text[len] == '\0' || !num_u32(text, len, &sets) ||
        !num_u32(text + len + 1, strlen(text + len + 1), &gets) || sets + gets == 0) {
        return "the ratio is SETS:GETS, such as 1:10";
    }
    return take_update(conf, sets / ((double)sets + gets));
}

static const char *
call_ops(void *conf, const char *text)
{
    struct lclass *c = conf;
    const char *wrong = mix_parse(&c->workload.mix, text);
    c->has_ops = true;
    return wrong != NULL ? wrong : c->has_update ? ONE_MIX : NULL;
}

static const char *
call_on_miss(void *conf, const char *text)
{
    struct workload_conf *w = &((struct lclass *)conf)->workload;
    const char *law = strcmp(text, "lease") == 0 ? "0" : part_after(text, "lease:");
    w->leases = law != NULL;
    law = w->leases ? law : part_after(text, "set-after:");
    w->defers = law != NULL;
    w->fills = w->defers || strcmp(text, "set") == 0;
    if (!w->fills && strcmp(text, "ignore") != 0) {
        return "a miss is followed by nothing (ignore), a set (set, set-after:TIME), or "
               "one by the winner of a lease (lease, lease:TIME)";
    }
    return law != NULL ? value_seconds(&w->fetch, law) : NULL;
}

static const char *
call_workload(void *conf, const char *text)
{
    struct lclass *c = conf;
    const char *shown = part_after(text, "show:");
    c->wants_models = strcmp(text, "help") == 0;
    c->shows_model = shown != NULL;
    c->workload_word = c->wants_models ? NULL : c->shows_model ? shown : text;
    return NULL; /* what it names is looked for when all options are known */
}

/* mcperf's name. */
static const char *
parse_keyorder(void *field, const char *text)
{
    bool is_seq = strcmp(text, "seq") == 0 || strcmp(text, "sequential") == 0;
    if (!is_seq && strcmp(text, "random") != 0 && strcmp(text, "none") != 0) {
        return "keys are asked for in order (seq) or at random (random)";
    }
    return popularity_parse(field, is_seq ? "seq" : "uniform");
}

static const char *const key_formats[] = {
    [KEY_DECIMAL] = "decimal",
    [KEY_HEX] = "hex",
    [KEY_BINARY] = "binary",
};

#define OF_WORKLOAD(field) OF_CLASS(workload.field)
#define SHARE_ROW(long_name, field, text)                                                \
    {                                                                                    \
        .name = long_name, SCOPE(SHARED), KIND(DOUBLE), OF_CLASS(field), .min = 0,       \
        .max = 1, .error = "the share must be between 0 and 1", .arg = "SHARE",          \
        .help = text                                                                     \
    }

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 'K', .name = "keysize", SCOPE(LAW), PARSE(value_dist),
     OF_WORKLOAD(key_size), .common = 9, .arg = "DIST",
     .help = "key length: N or a distribution, e.g. normal:30,5 (30)"},
    {.letter = 'V', .name = "valuesize", SCOPE(LAW), PARSE(value_dist),
     OF_WORKLOAD(value_size), .common = 10, .arg = "DIST",
     .help = "value length: the same and fb_value (200)"},
    {.letter = 'r', .name = "records", SCOPE(SHARED), KIND(RATE), OF_WORKLOAD(records),
     .min = 1, .max = RECORDS_MAX, .arg = "N[k|m]", .common = 8,
     .help = "keys in use (10000)"},
    {.letter = 'u', .name = "update", SCOPE(SHARED), CALL(call_update),
     .arg = "SHARE", .common = 11, .help = "share of sets, the rest are gets (0.0)"},
    {.name = "ratio", SCOPE(SHARED), CALL(call_ratio),
     .arg = "SETS:GETS",
     .help = "share of sets in parts, as in memtier_benchmark"},
    {.name = "workload", SCOPE(LAW), CALL(call_workload),
     .arg = "NAME|FILE|show:NAME|help",
     .help = "sizes, popularity, mix, gaps by name or of a file; other options override"},
    {.name = "ops", SCOPE(SHARED), CALL(call_ops),
     .arg = "VERB:SHARE,...",
     .help = "the mix: get gets set add cas delete touch incr insert scan rmw (get:1)"},
    {.name = "on-miss", SCOPE(LAW), CALL(call_on_miss),
     .arg = "ignore|set|set-after:DIST|lease",
     .help = "what follows a miss: nothing, a set, a set after a time, or a set by the "
             "client that has the lease (ignore)"},
    {.name = "expiry", SCOPE(LAW), PARSE(value_dist), OF_WORKLOAD(expiry), .arg = "DIST",
     .help = "seconds that values live, 0 for ever (0)"},
    {.name = "verify", SCOPE(SHARED), KIND(DOUBLE), OF_WORKLOAD(verify), .min = 0, .max = 1,
     .error = "the share of gets must be between 0 and 1", .arg = "SHARE",
     .help = "share of gets whose values are checked (0.01, with --noload 0)"},
    {.letter = 'G', .name = "getcount", SCOPE(LAW), CALL(call_getcount), .arg = "DIST",
     .help = "keys in each get, 1000 at most (1)"},
    {.name = "getq-size", SCOPE(LAW), CALL(call_getcount), .arg = "DIST",
     .help = "the same as --getcount"},
    SHARE_ROW("getq-freq", multiget_share,
              "share of gets with that many keys, the others have one (1)"),
    SHARE_ROW("miss-ratio", workload.miss_ratio,
              "share of the keys of gets that are never stored (0)"),
    SHARE_ROW("one-hit", workload.one_hit, "share of keys that are asked for once only (0)"),
    {.name = "churn", SCOPE(SHARED), KIND(DOUBLE), OF_WORKLOAD(churn), .min = 0,
     .max = CHURN_MAX, .arg = "N", .help = "records replaced by new ones each second (0)"},
    {.name = "value-size-per", SCOPE(SHARED), KIND(CHOICE), OF_WORKLOAD(sizes_per_set),
     OPT_CHOICES(sized_per), .arg = "key|set",
     .error = "values are sized per key or per set",
     .help = "whether the key decides the length, or each set draws one (key)"},
    {.name = "popularity", SCOPE(LAW), PARSE(popularity_parse), OF_WORKLOAD(popularity),
     .arg = "LAW",
     .help = "which keys: uniform zipf:T latest hotset:H:P normal seq etc ... (uniform)"},
    {.name = "keyorder", SCOPE(SHARED), PARSE(parse_keyorder), OF_WORKLOAD(popularity),
     .arg = "seq|random",
     .help = "the same as --popularity=seq or uniform"},
    {.name = "key-prefix", SCOPE(SHARED), KIND(TEXT), OF_WORKLOAD(key_prefix), .arg = "TEXT",
     .help = "prefix of every key (none)"},
    {.name = "key-format", SCOPE(SHARED), KIND(CHOICE), OF_WORKLOAD(key_format),
     OPT_CHOICES(key_formats), .arg = "decimal|hex|binary",
     .error = "keys are written decimal, hex or binary",
     .help = "how the number in a key is written (decimal)"},
    {.name = "flags", SCOPE(SHARED), KIND(INT), OPT_FIELD(struct lclass, workload.flags), .min = 0,
     .max = UINT32_MAX, .arg = "N", .help = "flags that values are stored with (0)"},
    {.name = "noload", SCOPE(SHARED), KIND(FLAG), OF_CLASS(no_load),
     .help = "do not store the records: they are there"},
};
/* clang-format on */

static void
init(struct lclass *c)
{
    struct workload_conf *w = &c->workload;
    w->records = 10000;
    w->getcount = dist_fixed(1);
    w->key_size = dist_fixed(30);
    w->value_size = dist_fixed(200);
    w->expiry = w->fetch = dist_fixed(0);
    w->verify = c->multiget_share = -1;
    w->key_prefix = "";
    mix_of_update(&w->mix, 0);
}

/* mcperf's: a share of gets has several keys, a hundred unless told otherwise. */
static const char *
settle_multigets(struct lclass *c)
{
    char law[LAW_MAX];
    const char *many = c->getcount_text != NULL ? c->getcount_text : MULTIGET_DEFAULT;
    double share = c->multiget_share;
    if (share < 0) {
        return NULL;
    }
    if (share == 0 || share == 1) {
        return value_dist(&c->workload.getcount, share == 0 ? "1" : many);
    }
    int n = snprintf(law, sizeof law, "mix:%.17g*%s+%.17g*1", share, many, 1 - share);
    return n < LAW_MAX ? value_dist(&c->workload.getcount, law)
                       : "--getq-size is too long for --getq-freq";
}

static const char *
check_key_format(const struct lclass *c)
{
    return c->workload.key_format != KEY_BINARY || c->codec->takes_any_byte
               ? NULL
               : "--key-format=binary needs --protocol=binary or redis: other protocols "
                 "end keys at blanks";
}

static const char *
check_codec(const struct lclass *c)
{
    const struct workload_conf *w = &c->workload;
    unsigned all = w->fills ? CODEC_BIT(CODEC_SET) : 0;
    if (w->leases && !c->codec->has_leases) {
        return "--on-miss=lease needs --protocol=meta: other protocols have no leases";
    }
    for (unsigned verb = 0; verb < MIX_VERBS; verb++) {
        all |= mix_share(&w->mix, verb) > 0 ? request_needs(request_of_mix[verb]) : 0;
    }
    if ((all & ~c->codec->verbs) != 0) {
        return "the protocol has no words for what is to be asked for";
    }
    if (!c->codec->has_multiget &&
        (dist_size_max(&w->getcount, 1, WORKLOAD_GETCOUNT_MAX) > 1 ||
         mix_share(&w->mix, MIX_SCAN) > 0)) {
        return "the protocol asks for one key at a time";
    }
    return NULL;
}

static const char *
check_odds(const struct workload_conf *w)
{
    if (w->miss_ratio + w->one_hit > 1) {
        return "--miss-ratio and --one-hit are together at most 1";
    }
    if (w->churn > 0 && mix_share(&w->mix, MIX_INSERT) > 0) {
        return "--churn and inserts (--ops) are mutually exclusive";
    }
    return w->sizes_per_set && w->verify > 0
               ? "values that have another length in each set cannot be checked: "
                 "--value-size-per=set goes without --verify"
               : NULL;
}

static const char *
settle(struct lclass *c)
{
    struct workload_conf *w = &c->workload;
    if ((c->codec->verbs & CODEC_BIT(CODEC_SET)) == 0) {
        c->no_load = true;
    }
    if (w->verify > 0 && (c->codec->verbs & CODEC_BIT(CODEC_SET)) == 0) {
        return "--verify compares what mcload has stored, and the protocol stores "
               "nothing: --verify=0";
    }
    if (w->verify < 0) {
        bool is_unknown = c->no_load || w->sizes_per_set || c->trace.file.path != NULL;
        w->verify = is_unknown ? 0 : VERIFY_DEFAULT;
    }
    const char *wrong = settle_multigets(c);
    wrong = wrong != NULL ? wrong : check_key_format(c);
    wrong = wrong != NULL ? wrong : check_codec(c);
    return wrong != NULL ? wrong : check_odds(w);
}

static void
fini(struct lclass *c)
{
    struct workload_conf *w = &c->workload;
    dist_fini(&w->getcount);
    dist_fini(&w->key_size);
    dist_fini(&w->value_size);
    dist_fini(&w->expiry);
    dist_fini(&w->fetch);
}

const struct class_group group_workload = {
    ROWS(rows),
    .init = init,
    .settle = settle,
    .fini = fini,
};
