/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/measure/counters.h"
#include "loadgen/report/schema.h"
#include "loadgen/tools/saved.h"

json_t *
tree_load(const char *path, char *err)
{
    json_error_t error;
    json_t *top = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (top == NULL) {
        snprintf(err, SAVED_ERR_MAX, "%s: %s", path, error.text);
        return NULL;
    }
    const char *schema = json_string_value(json_object_get(top, "schema"));
    if (schema == NULL || strcmp(schema, REPORT_SCHEMA) != 0) {
        snprintf(err, SAVED_ERR_MAX, "%s: not a result of schema " REPORT_SCHEMA, path);
        json_decref(top);
        return NULL;
    }
    return top;
}

double
tree_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

uint64_t
tree_count(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

/* [lowest, highest, count] */
static bool
add_bucket(struct hist *h, const json_t *bucket)
{
    const json_t *low = json_array_get(bucket, 0), *count = json_array_get(bucket, 2);
    if (json_array_size(bucket) != 3 || !json_is_integer(low) ||
        !json_is_integer(count) || json_integer_value(low) < 0 ||
        json_integer_value(count) < 1) {
        return false;
    }
    hist_record_n(h, (uint64_t)json_integer_value(low),
                  (uint64_t)json_integer_value(count));
    return true;
}

struct hist *
tree_hist(const json_t *object)
{
    const json_t *buckets = json_object_get(object, "buckets");
    if (!json_is_array(buckets) || tree_count(object, "sub_bits") != COUNTERS_SUB_BITS) {
        return NULL;
    }
    struct hist *h = hist_create(COUNTERS_SUB_BITS, COUNTERS_MAX_NS);
    must(h != NULL);
    bool is_good = true;
    for (size_t i = 0; i < json_array_size(buckets) && is_good; i++) {
        is_good = add_bucket(h, json_array_get(buckets, i));
    }
    if (!is_good || hist_count(h) != tree_count(object, "count")) {
        hist_destroy(&h);
        return NULL;
    }
    hist_restore(h, tree_count(object, "min"), tree_count(object, "max"),
                 tree_number(object, "sum"), tree_number(object, "sumsq"),
                 tree_count(object, "overflow"));
    return h;
}
