/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The text formats of metrics: which a client gets, names, types and escapes.
 */
#include "admin/exposition.h"

#include "check_main.h"

static const struct {
    const char *accept;
    enum exposition_format format;
} choices[] = {
    {NULL, EXPOSITION_TEXT},
    {"", EXPOSITION_TEXT},
    {"*/*", EXPOSITION_TEXT},
    {"text/plain", EXPOSITION_TEXT},
    {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
    {"Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8",
     EXPOSITION_OPENMETRICS},
    {"application/openmetrics-text;version=0.0.1", EXPOSITION_TEXT},
    {"application/openmetrics-text;version=1.0.0,application/"
     "openmetrics-text;version=0.0.1;"
     "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
     EXPOSITION_OPENMETRICS},
    {"text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5",
     EXPOSITION_TEXT},
    {"application/openmetrics-text;q=0", EXPOSITION_TEXT},
    {"application/openmetrics-text;q=0,*/*;q=0", EXPOSITION_TEXT},
    {",;=,;q,q=,application/openmetrics-text;q", EXPOSITION_TEXT},
    {"application/openmetrics-text2", EXPOSITION_TEXT},
};

TEST_ROWS(choice, choices, row->accept)
{
    ck_assert_int_eq(exposition_choose(row->accept), row->format);
}

static char *text;
static size_t len;
static struct exposition e;

static void
begin(enum exposition_format format)
{
    e = (struct exposition){.out = open_memstream(&text, &len), .format = format};
}

static void
expect_text(const char *want)
{
    exposition_end(&e);
    ck_assert_int_eq(fclose(e.out), 0);
    ck_assert_str_eq(text, want);
    free(text);
}

static void
write_counter(void)
{
    struct metric_label labels[] = {{"command", "get"}, {"status", "hit"}};
    exposition_family(&e, "a_total", METRIC_COUNTER, "Say \"a\\b\".\nTwo.");
    exposition_sample(&e, "", labels, 2, "18446744073709551615");
    exposition_family(&e, "a_total", METRIC_COUNTER, "");
    exposition_sample(&e, "", NULL, 0, "0.5");
}

TEST(counter_as_text)
{
    begin(EXPOSITION_TEXT);
    write_counter();
    expect_text("# HELP a_total Say \"a\\\\b\".\\nTwo.\n# TYPE a_total counter\n"
                "a_total{command=\"get\",status=\"hit\"} 18446744073709551615\n"
                "a_total 0.5\n");
}

TEST(counter_as_openmetrics)
{
    begin(EXPOSITION_OPENMETRICS);
    write_counter();
    expect_text("# HELP a Say \\\"a\\\\b\\\".\\nTwo.\n# TYPE a counter\n"
                "a_total{command=\"get\",status=\"hit\"} 18446744073709551615\n"
                "a_total 0.5\n# EOF\n");
}

TEST(gauge_and_labels)
{
    struct metric_label label = {"v", "a\"b\\c\nd\xe9"};
    begin(EXPOSITION_TEXT);
    exposition_family(&e, "g", METRIC_GAUGE, "G.");
    exposition_sample(&e, "", &label, 1, "1");
    expect_text("# HELP g G.\n# TYPE g gauge\ng{v=\"a\\\"b\\\\c\\nd\xc3\xa9\"} 1\n");
}

TEST(histogram)
{
    struct metric_label label = {"le", "+Inf"};
    begin(EXPOSITION_OPENMETRICS);
    exposition_family(&e, "h_seconds", METRIC_HISTOGRAM, "H.");
    exposition_sample(&e, "_bucket", &label, 1, "3");
    exposition_sample(&e, "_sum", NULL, 0, "1.5");
    exposition_sample(&e, "_count", NULL, 0, "3");
    expect_text("# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
                "h_seconds_bucket{le=\"+Inf\"} 3\nh_seconds_sum 1.5\nh_seconds_count 3\n"
                "# EOF\n");
}

TEST_ABORTS(counter_without_total)
{
    begin(EXPOSITION_TEXT);
    exposition_family(&e, "a", METRIC_COUNTER, "A.");
}
