/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * /metrics: statistics by the names that dashboards know (those of the Prometheus exporter for
 * memcached), and those of quality of service beside them. What is a line of "stats" or of one
 * of its groups is a row of metrics.def; histograms are read from the workers.
 */
#pragma once

#include "admin/page.h"

admin_page metrics_page;
