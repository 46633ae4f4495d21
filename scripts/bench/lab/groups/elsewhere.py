# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Tables and figures that need a machine of another kind; no experiment is written for them yet."""
from ..rows import Row


def points(_lab):
    return iter(())


ROWS = [
    Row("SF Fig 4, 11", "two NUMA nodes", "one server over two nodes is slower; remote memory costs",
        "a server of each node does more", needs=("nodes",)),
    Row("SF Fig 7, 10, 14", "OpenOnload", "a user-level network stack", "with it >= 1.2x", needs=("onload",)),
]
