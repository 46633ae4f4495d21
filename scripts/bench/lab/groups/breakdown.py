# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Where the time of a request goes, by `stats latency`: with one outstanding, beside a spinner, at
10 and 90 % of the peak, at the peak, and there beside a walker through the L3 cache."""
import side_by_side as side

from .. import beside
from ..rows import Point, Row, over

STAGES = ("delay", "read", "execute", "write")
LOADED = 64        # connections of the closed loop
QUEUE = 0.9        # of the time, when loaded
GROWS = 3          # times unloaded, at most, of each other stage
SWITCH = 1.1       # times unloaded, beside a spinner
AT_90 = 0.8        # of the time, at 90 % of the peak
CASES = {"unloaded": "one outstanding", "switching": "the same, beside a spinner", "load-10": "10 % of the peak",
         "load-90": "90 % of the peak", "loaded": "the peak", "loaded-l3": "the same, beside an L3 walker"}


def stages(server):
    """{stage: median us} of small gets"""
    shown = side.stats(server.port, "latency")
    return {stage: float(shown.get(f"latency_small_{stage}_p50_us", 0)) for stage in STAGES}


def measure(case):
    def run(lab):
        jobs = {"switching": [beside.spinner()],
                "loaded-l3": [beside.Job(("walk", str(lab.machine.cache("L3", 8 << 20))), "client")]}.get(case, [])
        # The spinner has the CPU when the server does not want it: what is left is the switch.
        options = ["-t", "1", *(["--sched=fifo"] if case == "switching" else [])]
        with lab.bare_server(options) as server, beside.running(lab, *jobs):
            if case.startswith("load-"):
                one = lab.paced(server, lab.first("loaded", "rate") * int(case[5:]) / 100, "-c", 32)
            else:
                loaded = case.startswith("loaded")
                one = lab.flat_out(server, "-c", LOADED if loaded else 1, is_shared=bool(jobs),
                                   limit="server" if loaded else None)
            one.values |= stages(server)
        one.values["total"] = sum(one.values[stage] for stage in STAGES)
        one.values["queue"] = over(one.values["delay"], one.values["total"])
        return one
    return run


def points(_lab):
    # The peak comes first: loads are parts of it.
    for case in sorted(CASES, key=lambda case: case != "loaded"):
        yield Point(case, measure(case), needs=("root",) if case == "switching" else ())


def breakdown(points):
    queue = points("loaded", "queue")
    others = {stage: points.ratio("loaded", "unloaded", stage) for stage in STAGES[1:]}
    switch = points.ratio("switching", "unloaded", "total")
    return (f"queueing {points('loaded', 'delay'):.0f} of {points('loaded', 'total'):.0f} us ({queue:.0%}), "
            f"unloaded {points('unloaded', 'total'):.0f} us, beside a spinner {switch:.2f}x"), {
        f"queueing is {QUEUE:.0%} when loaded": queue >= QUEUE,
        **{f"{stage} stays below {GROWS}x unloaded": ratio < GROWS for stage, ratio in others.items()},
        f"a context switch costs {SWITCH}x at most": switch <= SWITCH,
        "the L3 walker makes the queue longer": points.ratio("loaded-l3", "loaded", "delay") > 1}


def plots(points):
    yield ("bars", "Stages of a request, median", "us", {
        words: {stage: (max(points(case, stage), 0.1), any(not run.faults for run in points.of(case)))
               for stage in STAGES} for case, words in CASES.items() if points.has(case)})


def at_loads(points):
    low, high = points("load-10", "queue"), points("load-90", "queue")
    return f"queueing {low:.0%} at 10 % of the peak, {high:.0%} at 90 %", {
        f"queueing is {AT_90:.0%} at 90 %": high >= AT_90}


ROWS = [
    Row("D Table 2, E Table 1", "breakdown of latency", "queueing 5.8 of 5.87 ms; a context switch costs nothing",
        f"loaded: queueing >= {QUEUE:.0%}, other stages < {GROWS}x unloaded; beside a spinner <= {SWITCH}x "
        "(served at real-time priority)", breakdown, plots, ("cpus", "root")),
    Row("004 decomposition", "breakdown at two loads", "at 10 and 90 % of the load",
        f"queueing >= {AT_90:.0%} at 90 %", at_loads, needs=("cpus",)),
]
