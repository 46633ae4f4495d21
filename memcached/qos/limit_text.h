/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How limits are written, in options and commands: words to values and back. Pure. A text is
 * (p, len); parsers return NULL or what is wrong, as a sentence for the user.
 */
#pragma once

#include "qos/limiter.h"

/* Cuts "head" off "head<mark>rest". False without a mark; the whole is the head then. */
bool limit_text_cut(const char **p, size_t *len, char mark, const char **head,
                    size_t *head_len);
/* "N[k|m]" or "off", and with a comma "burst=B" behind it. */
const char *limit_text_rate(const char *p, size_t len, uint64_t max, uint64_t *rate);
const char *limit_text_burst(const char *p, size_t len, uint64_t *burst);
/* "[total=]N[,burst=B][,CLASS=N[,burst=B]]...": sets what it names in *conf. */
const char *limit_text_rules(const char *p, size_t len, struct limiter_conf *conf);
/* "N[,burst=B]" or "off". */
const char *limit_text_peer(const char *p, size_t len, struct limiter_rule *rule);
/* "delay", "error", "miss", "delay:TIME+error". */
const char *limit_text_action(const char *p, size_t len, enum limiter_action *action,
                              nsec_t *max_delay);
/* "cmd" or "key". */
const char *limit_text_unit(const char *p, size_t len, bool *counts_keys);
/* "N%", of one CPU, or "off": 0. */
const char *limit_text_percent(const char *p, size_t len, unsigned *percent);
/* A number with ns, us, ms or s behind it. False when it is none, or 0. */
must_check bool limit_text_time(const char *p, size_t len, nsec_t *ns);
/* A class whose requests can be limited. False when the name is not one: LIMIT_TEXT_NO_CLASS. */
#define LIMIT_TEXT_NO_CLASS "a class is small, write, bulk or background"
must_check bool limit_text_class(const char *p, size_t len, enum req_class *class);

#define LIMIT_TEXT_TIME_MAX 24
/* As limit_text_time reads it, in the largest unit up to `most` that says it in whole. Returns
 * to. */
const char *limit_text_tell_time(nsec_t ns, nsec_t most, char to[LIMIT_TEXT_TIME_MAX]);

#define LIMIT_TEXT_ACTION_MAX 48
/* As limit_text_action reads it. */
void limit_text_describe(enum limiter_action action, nsec_t max_delay,
                         char to[LIMIT_TEXT_ACTION_MAX]);
