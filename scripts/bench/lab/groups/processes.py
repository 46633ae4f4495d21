# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Processes of one thread each beside one process of several threads; keys are on all of them."""
import contextlib

from ..rows import Point, Row
from ..work import SEVERAL, Together

COUNTS = (1, 2, 3)
AS_THREADS = 0.9  # of one process with 2 threads, by 2 processes
DIP = 0.9         # of 2 processes, by 3 that share 2 CPUs


def measure(processes, threads):
    def run(lab):
        shared = processes * threads > 1
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(lab.bare_server(
                ["-t", str(threads)], cpus=lab.every_cpu if shared else None)) for _ in range(processes)]
            both = Together(tuple(servers))
            # The connections are as many in all, whatever the number of servers.
            options = [*SEVERAL, "-c", 32 // processes]
            one = lab.search(both, *options, is_shared=shared)
            flat = lab.flat_out(both, *options, is_shared=shared, limit=processes * threads if shared else "server")
            one.values.update(flat.values)
            one.faults += flat.faults
            return one
    return run


def points(lab):
    for processes in COUNTS:
        yield Point(f"{processes}x1", measure(processes, 1), 8)
    yield Point("1x2", measure(1, 2), 8)


def scaling(points):
    two = points.ratio("2x1", "1x2", "rate")
    peak, qos = (points.ratio("3x1", "2x1", value) for value in ("rate", "qos"))
    return f"2 processes {two:.2f}x 2 threads; a third: peak {peak:.0%}, QoS {qos:.0%}", {
        f"2 processes do {AS_THREADS:.0%} of 2 threads": two >= AS_THREADS,
        "a third process costs QoS": qos < DIP,
        "a third process costs no peak": peak >= DIP}


def plots(points):
    yield ("curves", "Processes of one thread", "processes", "thousand gets of 100 keys/s", {
        "peak": points.curve("{}x1", COUNTS, "rate", 1e-3),
        "QoS, p95 500 us": points.curve("{}x1", COUNTS, "qos", 1e-3)}, "linear", "linear")


ROWS = [Row("D Fig 2, SF Fig 5", "processes", "linear to 12 processes, a dip at 13; 1.1M",
            f"2 processes do >= {AS_THREADS:.0%} of one with 2 threads; a third on 2 CPUs costs QoS and no peak",
            scaling, plots, ("cpus",), "The client shares the two CPUs, so that two processes have too few already: their "
            "QoS rate is 0.75 to 1.01 times that of one with a CPU of its own, as by the kernel's count one in five to seven requests "
            "takes a process its CPU for another one or for the client. With a third process it is one in four (0.23 in the "
            "third round, 0.43 in the fourth): in single rounds its QoS rate is 0.67 to 0.95 times that of two, its peak 0.87 "
            "to 0.94 times. The median of the one is 0.88 and that of the other, too, and the bound of both, which was chosen "
            "before, 0.9: a third process costs QoS and, a little, the peak. The papers' 13th process met 12 CPUs without a "
            "client on them.")]
