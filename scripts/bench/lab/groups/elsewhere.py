# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Tables and figures that need a machine of another kind, or that have no experiment here yet."""
from ..rows import Row


def points(_lab):
    return iter(())


ROWS = [
    Row("D 2.4 RSS", "flow affinity", "without RSS <= 500K packets/s; off it helps at part load and harms others",
        "packets received on another CPU: its neighbour loses >= 2x as much", needs=("queues",)),
    Row("SF Fig 6, 8, 9", "interrupts on 1-4 CPUs, shielded", "remote -31 %; shielded 138, not 70 MB/s",
        "shielded >= 1.2x at 16 clients", needs=("queues",)),
    Row("SF Fig 4, 11", "two NUMA nodes", "one server over two nodes is slower; remote memory costs",
        "a server of each node does more", needs=("nodes",)),
    Row("SF Fig 7, 10, 14", "OpenOnload", "a user-level network stack", "with it >= 1.2x", needs=("onload",)),
    Row("SF Fig 15", "hyperthreads", "two threads of a core do more than one", "more with SMT", needs=("smt",)),
    Row("D Table 5", "classes of SPEC", "insensitive, friendly, fitting, streaming",
        "each stand-in is of its class, by work beside a cache walker"),
    Row("D Table 6, E Table 3", "beside a primary batch job", "24K-592K with <= 10 % lost; distinct cores: 60 % is safe",
        "a limit exists with p95 <= 500 us and batch >= 90 %; streaming needs the lowest"),
    Row("E 3.2.4", "UDP without imbalance", "no imbalance; peak below 30 % of TCP's",
        "UDP p95 below TCP's at 50-70 % of the load, peak lower"),
    Row("E Fig 6, 9", "two services on a CPU", "CFS fails at half; BVT to 80-90 %; FIFO with quota to 70 %",
        "a grid of loads with a service of 1 ms: slice clears cells to 80 % in all"),
]
