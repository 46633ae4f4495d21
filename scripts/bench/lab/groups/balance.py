# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Imbalance between threads: one thread more than CPUs, pinned and unpinned ones. The client has
a CPU at real-time priority, which one of the servers' threads shares; so it takes three."""

from ..rows import Point, Row
from ..work import SEVERAL

LOADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SPIKE = 2         # times the p95 of N threads is a departure
SPIKE_BY = 0.6    # of the peak, where it is seen
MEDIANS = 1.5     # times, that the medians differ at most there
GOAL_US = 1000
# Beside a client that takes most of a CPU, of two, it is the client that makes the tails.
NEEDS = ("cpus", "client")
VARIANTS = {"pinned": lambda cpus: ["-t", str(cpus), "--pin"],
            "unpinned": lambda cpus: ["-t", str(cpus), "--pin=none"],
            "more": lambda cpus: ["-t", str(cpus + 1), "--pin=none"]}


def measure(variant, load):
    def run(lab):
        with lab.bare_server(VARIANTS[variant](len(lab.machine.cpus)), cpus=lab.every_cpu) as server:
            if load is None:
                return lab.flat_out(server, *SEVERAL, is_shared=True, limit=len(lab.machine.cpus))
            return lab.paced(server, lab.base("peak", "rate") * load, *SEVERAL, "-c", 32, is_shared=True)
    return run


def name_of(variant, load):
    return f"{variant}-{load * 100:.0f}"


def points(lab):
    yield Point("peak", measure("pinned", None), needs=NEEDS)
    for load in (0.3, 0.6, 0.9) if lab.quick else LOADS:
        for variant in VARIANTS:
            yield Point(name_of(variant, load), measure(variant, load), needs=NEEDS)


def loads(points):
    points.of("peak")
    points.of(name_of("more", 0.6))
    return [load for load in LOADS if points.has(*(name_of(variant, load) for variant in VARIANTS))]


def one_more(points):
    ratios = {load: {value: points.ratio(name_of("more", load), name_of("unpinned", load), value)
                     for value in ("p95", "p50")} for load in loads(points) if load <= SPIKE_BY}
    spikes = [load for load, ratio in ratios.items() if ratio["p95"] >= SPIKE]
    first = min(spikes, default=None)
    return (f"p95 of N+1 departs at {first:.0%} of the peak" if first else
            f"p95 of N+1 at most {max(ratio['p95'] for ratio in ratios.values()):.1f}x to {SPIKE_BY:.0%}"), {
        f"p95 of N+1 is {SPIKE}x that of N by {SPIKE_BY:.0%}": first is not None and first <= SPIKE_BY,
        f"there the medians are within {MEDIANS}x": first is not None and ratios[first]["p50"] <= MEDIANS}


def one_more_plots(points):
    yield ("curves", "N threads and N+1 on N CPUs", "% of the peak", "p95, us", {
        words: points.curve(name + "-{}", [round(load * 100) for load in LOADS], "p95")
        for name, words in (("unpinned", "N threads"), ("more", "N+1 threads"))})


def pinning(points):
    at = [load for load in loads(points) if load >= 0.5]
    worse = [load for load in at if not points(name_of("pinned", load), "p95") <= points(name_of("unpinned", load), "p95")]
    good = [load for load in loads(points) if points(name_of("pinned", load), "p95") < GOAL_US]
    return f"pinned keeps p95 below 1 ms to {max(good, default=0):.0%} of the peak", {
        "pinned is no worse from half load on": not worse,
        "pinned reaches 90 % of the peak with p95 below 1 ms": max(good, default=0) >= 0.9}


def pinning_plots(points):
    yield ("curves", "Pinned and unpinned threads", "% of the peak", "p95, us", {
        name: points.curve(name + "-{}", [round(load * 100) for load in LOADS], "p95")
        for name in ("pinned", "unpinned")})


ROWS = [
    Row("E Fig 3", "one thread more than CPUs", "p95 spikes at half of the peak",
        f"p95 of N+1 threads is {SPIKE}x that of N by {SPIKE_BY:.0%} of the peak, medians within {MEDIANS}x",
        one_more, one_more_plots, NEEDS, guest="threads"),
    Row("E Fig 8, 003 Fig 6", "pinning", "pinned: 90 % of the peak with p95 below 1 ms",
        "from half load on pinned is no worse than unpinned, and keeps p95 below 1 ms to 90 %", pinning,
        pinning_plots, NEEDS),
]
