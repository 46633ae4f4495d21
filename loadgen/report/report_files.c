/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/be.h"
#include "loadgen/report/deflate.h"
#include "loadgen/report/report.h"
#include "loadgen/report/report_parts.h"

static void
print_quantiles(const struct report_row *row, const struct hist *waits,
                const struct options *o, FILE *out)
{
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        struct quantile q =
            result_quantile(row->latency, waits, row->censored, o->percentiles[i]);
        if (q.is_bound) {
            fputc(',', out);
        } else {
            fprintf(out, ",%.3f", report_us(q.ns));
        }
    }
}

/* Names of classes are words; quoted all the same when they are not. */
static void
print_name(const char *name, FILE *out)
{
    fputc('"', out);
    for (const char *p = name; *p != '\0'; p++) {
        fprintf(out, *p == '"' ? "\"\"" : "%c", *p);
    }
    fputc('"', out);
}

static void
print_rows(const struct result *run, unsigned c, const struct options *o, double target,
           FILE *out)
{
    const struct result *r = c == REPORT_ALL ? run : &run->classes[c];
    const char *name = c == REPORT_ALL ? "all" : r->name;
    struct report_totals t = report_totals(r);
    struct report_table table;
    report_table_of(run, o, c, &table);
    const struct report_row *rows = table.rows;
    for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
        const struct hist *h = rows[verb].latency;
        print_name(name, out);
        fprintf(out, ",%s,%ju,%ju,%.3f,%.3f,%.3f", rows[verb].name,
                (uintmax_t)hist_count(h), (uintmax_t)rows[verb].censored,
                hist_mean(h) / REPORT_NS_PER_US, hist_stddev(h) / REPORT_NS_PER_US,
                report_us(hist_min(h)));
        print_quantiles(&rows[verb], table.counters->waits, o, out);
        if (rows[verb].censored > 0) {
            fputc(',', out);
        } else {
            fprintf(out, ",%.3f", report_us(hist_max(h)));
        }
        fprintf(out, ",%.3f",
                result_ratio((double)ctr_get(&r->total.done[verb]), t.seconds));
        if (verb == COUNTERS_READ) { /* once of each class: rows may be added up */
            fprintf(out, ",%.0f,%.0f,%ju", t.keys, t.misses,
                    (uintmax_t)counters_error_sum(&r->total));
        } else {
            fputs(",,,", out);
        }
        fprintf(out, ",%.3f,%s", t.seconds, r->is_valid ? "true" : "false");
        if (o->scan.is_given) {
            fprintf(out, ",%.0f", target);
        }
        fputc('\n', out);
    }
}

void
report_csv_head(const struct options *o, FILE *out)
{
    char name[OPTIONS_NAME_MAX];
    fputs("class,type,count,unanswered,avg,std,min", out);
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        options_percentile_name(o->percentiles[i], name);
        fprintf(out, ",%s", name);
    }
    fprintf(out, ",max,qps,keys,misses,errors,seconds,valid%s\n",
            o->scan.is_given ? ",target" : "");
}

void
report_csv_rows(const struct result *r, const struct options *o, double target, FILE *out)
{
    for (unsigned i = 0; r->classes_len > 1 && i < r->classes_len; i++) {
        print_rows(r, i, o, target, out);
    }
    print_rows(r, REPORT_ALL, o, target, out);
}

/* ---- hgrm -------------------------------------------------------------------------- */

#define STEPS_EACH_HALF 5

static void
print_line(uint64_t value, uint64_t below, uint64_t all, FILE *out)
{
    double share = (double)below / (double)all;
    fprintf(out, "%12.3f %2.12f %10ju", report_us(value), share, (uintmax_t)below);
    if (below < all) {
        fprintf(out, " %14.2f\n", 1 / (1 - share));
    } else {
        fputc('\n', out);
    }
}

void
report_hgrm(const struct result *r, enum counters_from from, FILE *out)
{
    const struct hist *h = r->all[from];
    uint64_t all = hist_count(h) + result_censored(&r->total);
    uint32_t at = 0;
    uint64_t low, high, count, below = 0;
    double step = 0;
    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    while (hist_next(h, &at, &low, &high, &count)) {
        below += count;
        uint64_t value = high < hist_max(h) ? high : hist_max(h);
        if (below < all && (double)below / (double)all >= step) {
            print_line(value, below, all, out);
            while (step <= (double)below / (double)all) {
                /* So many steps to each half of what is left. */
                double halves = floor(log2(1 / (1 - step))) + 1;
                step += 1 / (STEPS_EACH_HALF * exp2(halves));
            }
        } else if (below == hist_count(h)) {
            print_line(value, below, all, out);
        }
    }
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
            hist_mean(h) / REPORT_NS_PER_US, hist_stddev(h) / REPORT_NS_PER_US);
    fprintf(out, "#[Max     = %12.3f, Total count    = %12ju]\n", report_us(hist_max(h)),
            (uintmax_t)all);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", 64 - COUNTERS_SUB_BITS,
            1 << (COUNTERS_SUB_BITS + 1));
}

/* ---- hlog -------------------------------------------------------------------------- */

#define COOKIE UINT32_C(0x1c849313)            /* of the second encoding */
#define COOKIE_COMPRESSED UINT32_C(0x1c849314) /* the same */
#define HEADER_BYTES 40
#define WRAP_BYTES 8
#define NS_PER_MS 1e6

static void
put_header(uint8_t *at, size_t payload)
{
    double one = 1;
    uint64_t ratio; /* of integers to doubles */
    memcpy(&ratio, &one, sizeof ratio);
    be_put(at, COOKIE, 4);
    be_put(at + 4, payload, 4);
    be_put(at + 8, 0, 4); /* the counts are not shifted */
    be_put(at + 12, PACKED_DIGITS, 4);
    be_put(at + 16, 1, 8); /* lowest value told from 0 */
    be_put(at + 24, COUNTERS_MAX_NS, 8);
    be_put(at + 32, ratio, 8);
}

/* Writes the histogram as text; `room` holds all that is made on the way. */
static bool
write_histogram(const struct packed *p, uint8_t *room, FILE *out)
{
    size_t plain_len = HEADER_BYTES + p->len, len = 0;
    uint8_t *wrap = room + plain_len;
    put_header(room, p->len);
    memcpy(room + HEADER_BYTES, p->bytes, p->len);
    if (deflate_bytes == NULL ||
        !deflate_bytes(room, plain_len, wrap + WRAP_BYTES, &len)) {
        return false;
    }
    be_put(wrap, COOKIE_COMPRESSED, 4);
    be_put(wrap + 4, len, 4);
    char *text = (char *)wrap + WRAP_BYTES + DEFLATE_MAX(plain_len);
    size_t text_len = base64_encode(text, (const char *)wrap, WRAP_BYTES + len);
    return fwrite(text, 1, text_len, out) == text_len;
}

static bool
write_row(const struct series_row *row, double offset_s, const char *tag, FILE *out)
{
    size_t plain = HEADER_BYTES + row->latencies.len;
    size_t wrapped = WRAP_BYTES + DEFLATE_MAX(plain);
    uint8_t *room = alloc_bytes(plain + wrapped + BASE64_ENCODED(wrapped));
    if (tag != NULL) {
        fprintf(out, "Tag=%s,", tag);
    }
    fprintf(out, "%.3f,%.3f,%.3f,", offset_s + row->start_s, row->length_s,
            (double)row->max / NS_PER_MS);
    bool is_good = write_histogram(&row->latencies, room, out);
    free(room);
    return is_good && fputc('\n', out) != EOF;
}

static bool
write_rows(const struct series *s, double offset_s, const char *tag, FILE *out)
{
    bool is_good = true;
    for (unsigned i = 0; is_good && s != NULL && i < s->rows_len; i++) {
        is_good =
            s->rows[i].latencies.len == 0 || write_row(&s->rows[i], offset_s, tag, out);
    }
    return is_good;
}

void
report_hlog_head(double start_s, FILE *out)
{
    time_t whole = (time_t)start_s;
    struct tm tm;
    char date[64];
    must(gmtime_r(&whole, &tm) != NULL);
    strftime(date, sizeof date, "%a %b %d %H:%M:%S UTC %Y", &tm);
    fprintf(out,
            "#[Logged with mcload " PACKAGE_VERSION "]\n"
            "#[Histogram log format version 1.3]\n"
            "#[StartTime: %.3f (seconds since epoch), %s]\n"
            "#[BaseTime: %.3f (seconds since epoch)]\n"
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
            "\"Interval_Compressed_Histogram\"\n",
            start_s, date, start_s);
}

bool
report_hlog_rows(const struct result *r, bool has_classes, double offset_s, FILE *out)
{
    bool is_good = has_classes || write_rows(r->series, offset_s, NULL, out);
    for (unsigned i = 0; has_classes && is_good && i < r->classes_len; i++) {
        is_good = write_rows(r->classes[i].series, offset_s, r->classes[i].name, out);
    }
    return is_good;
}
