# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Latencies without what the machine's host adds: while it runs another machine on a CPU, this one's clock
goes on. scripts/bench/hiccups.c says when that was."""
import bisect
import contextlib
import json
import math
import signal

import side_by_side as side

PERIOD_US = 200
LEAST_US = 100  # that a CPU is away
QUANTILES = {"own_p50": 0.5, "own_p99": 0.99, "own_p999": 0.999, "own_max": 1}


class Gaps:
    """When a CPU, one at least, was away: [(from, to)] in seconds since 1970, apart from each other."""

    def __init__(self):
        self.all, self.ends = [], []

    def parse(self, lines):
        for begin, end in sorted(tuple(map(float, line.split()[1:])) for line in lines):
            if self.all and begin <= self.all[-1][1]:
                begin, end = self.all[-1][0], max(end, self.all[-1][1])
                self.all.pop()
            self.all.append((begin, end))
        self.ends = [end for _, end in self.all]

    def within(self, begin, end):
        """Seconds of that time."""
        lost = 0
        for at in range(bisect.bisect_right(self.ends, begin), len(self.all)):
            gap = self.all[at]
            if gap[0] >= end:
                break
            lost += min(gap[1], end) - max(gap[0], begin)
        return lost


@contextlib.contextmanager
def watched(bench):
    """Gives Gaps, those of the block after it."""
    gaps = Gaps()
    cpus = str(side.SERVER_CPU), str(side.CLIENT_CPU)
    process = bench.start_beside([bench.compiled("hiccups"), str(PERIOD_US), str(LEAST_US), *cpus])
    try:
        yield gaps
    finally:
        process.send_signal(signal.SIGTERM)  # it has a setting of the kernel to put back
        output, _ = process.communicate(timeout=10)
    if process.returncode != 0:
        side.fail(f"hiccups ended with {process.returncode}")
    gaps.parse(output.splitlines())


def without(gaps, json_path, saved_path):
    """Of a run of mcload, from its --json and --save: percentiles in us without the gaps, by QUANTILES, and
    the share of the time in which a CPU was away."""
    with open(json_path) as f:
        result = json.load(f)
    span = next(phase for phase in result["phases"] if phase["name"] == "measure")
    start, end = (result["began_s"] + span[which] for which in ("start", "stop"))
    latencies = []
    with open(saved_path) as f:
        for line in f:
            begin, latency = map(float, line.split())
            begin += start
            latencies.append(latency - gaps.within(begin, begin + latency / 1e6) * 1e6)
    latencies.sort()
    values = {name: latencies[max(0, math.ceil(share * len(latencies)) - 1)] for name, share in QUANTILES.items()}
    return {**values, "away": gaps.within(start, end) / (end - start)}
