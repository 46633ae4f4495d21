# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Groups of experiments. Of each: points(lab), what a round measures, and ROWS, what the papers
have of it."""
