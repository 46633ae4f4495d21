# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Tables and figures that have no experiment yet; some need a machine of another kind."""
from ..rows import Row


def points(_lab):
    return iter(())


ROWS = [
    Row("D 2.4 RSS", "flow affinity", "without RSS <= 500K packets/s; off it helps at part load and harms others",
        "packets received on another CPU: its neighbour loses >= 2x as much"),
    Row("SF Fig 6, 8, 9", "interrupts on 1-4 CPUs, shielded", "remote -31 %; shielded 138, not 70 MB/s",
        "shielded >= 1.2x at 16 clients"),
    Row("SF Fig 4, 11", "two NUMA nodes", "one server over two nodes is slower; remote memory costs",
        "a server of each node does more", needs=("nodes",)),
    Row("SF Fig 7, 10, 14", "OpenOnload", "a user-level network stack", "with it >= 1.2x", needs=("onload",)),
]
