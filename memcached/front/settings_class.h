/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Options of the request classes that take more than a number, as the option table calls
 * them: NULL when good, else what is wrong.
 */
#pragma once

const char *settings_set_classes(void *conf, const char *text);
const char *settings_add_class_rule(void *conf, const char *text);
const char *settings_set_class_shares(void *conf, const char *text);
const char *settings_set_class_max_wait(void *conf, const char *text);
/* "PATH" or "PATH;class=NAME". */
const char *settings_set_socket(void *conf, const char *text);
