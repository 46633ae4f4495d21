/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

void
report_mutilate(const struct result *r, const struct options *o, FILE *out)
{
    struct report_table table;
    const struct report_form form = report_form_of(o);
    report_table_of(r, o, REPORT_ALL, &table);
    report_print_table(&form, &table, &report_mutilates, out);
    report_print_totals(&form, r, out);
}
