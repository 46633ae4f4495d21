/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Results as trees of jansson: what reading and merging share.
 */
#pragma once

#include <jansson.h>

#include "loadgen/tools/saved.h"

/* Where several results stand in one file: a scan's points, repeats. */
#define TREE_RUNS "runs"

/* NULL with a sentence in err (SAVED_ERR_MAX) unless it is a result of a known schema. The
 * caller releases it. */
json_t *tree_load(const char *path, char *err);

/* Of a member; 0 when it is missing or of another type. */
double tree_number(const json_t *object, const char *key);
uint64_t tree_count(const json_t *object, const char *key);

/* What was asked for, of a result or a class of it. */
void tree_workload(const json_t *result, struct saved_load *load);

/* From an object with "buckets"; NULL when they make no sense. */
struct hist *tree_hist(const json_t *object);

/* As struct saved_reader has it. */
bool tree_merge(const char *const *paths, unsigned count, bool in_turn,
                const char *out_path, char *err);
