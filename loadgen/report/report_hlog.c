/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * report_hlog_head, report_hlog_rows: HdrHistogram's log of intervals (its versions 1.2 and
 * 1.3), which its HistogramLogProcessor and its libraries read. A line is
 *
 *     [Tag=NAME,]start,length,max,histogram
 *
 * with seconds since BaseTime, seconds, milliseconds, and base64 of: a cookie and the length
 * of what follows; that, in zlib's format, is a header (below) and the counts (packed.h).
 * Numbers are in network byte order.
 */
#include "loadgen/report/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "loadgen/report/deflate.h"

#define COOKIE UINT32_C(0x1c849313)            /* of the second encoding */
#define COOKIE_COMPRESSED UINT32_C(0x1c849314) /* the same */
#define HEADER_BYTES 40
#define WRAP_BYTES 8
#define NS_PER_MS 1e6

static uint8_t *
put_u32(uint8_t *at, uint32_t n)
{
    for (unsigned i = 0; i < 4; i++) {
        *at++ = (uint8_t)(n >> (24 - 8 * i));
    }
    return at;
}

static uint8_t *
put_u64(uint8_t *at, uint64_t n)
{
    return put_u32(put_u32(at, (uint32_t)(n >> 32)), (uint32_t)n);
}

static void
put_header(uint8_t *at, size_t payload)
{
    double one = 1;
    uint64_t ratio; /* of integers to doubles */
    memcpy(&ratio, &one, sizeof ratio);
    at = put_u32(at, COOKIE);
    at = put_u32(at, (uint32_t)payload);
    at = put_u32(at, 0); /* the counts are not shifted */
    at = put_u32(at, PACKED_DIGITS);
    at = put_u64(at, 1); /* lowest value told from 0 */
    at = put_u64(at, COUNTERS_MAX_NS);
    put_u64(at, ratio);
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
    put_u32(put_u32(wrap, COOKIE_COMPRESSED), (uint32_t)len);
    char *text = (char *)wrap + WRAP_BYTES + DEFLATE_MAX(plain_len);
    size_t text_len = base64_encode(text, (const char *)wrap, WRAP_BYTES + len);
    return fwrite(text, 1, text_len, out) == text_len;
}

static bool
write_row(const struct series_row *row, double offset_s, const char *tag, FILE *out)
{
    size_t plain = HEADER_BYTES + row->latencies.len;
    size_t wrapped = WRAP_BYTES + DEFLATE_MAX(plain);
    uint8_t *room = malloc(plain + wrapped + BASE64_ENCODED(wrapped));
    if (room == NULL) {
        return false;
    }
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
