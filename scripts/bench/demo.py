# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Small gets alone and beside greedy neighbours, with this server, with its classes off, and with
the memcached that is installed: in turns, in about two minutes, drawn as bars. (scripts/bench-qos
measures more, and longer.)"""
import argparse
import json
import os
import re
import subprocess
import sys

import side_by_side as side
from qos import neighbours
from qos.runner import RATE, Runner, may_be_realtime, values

OURS, OFF = "memcached-qos", "the same, --classes=off"
BESIDE = {  # what is measured, and how it is called
    neighbours.ALONE: "alone",
    neighbours.MULTIGETS: "beside multigets of 50 keys, 50 connections",
    neighbours.LARGE_GETS: "beside gets of 100 KB, 32 connections",
}
BAR_MAX = 40
SERVED_MIN = 0.99  # below, the share is shown
# What a fault is in plain words.
REASONS = [
    (r"others used (.*)", "other programs used {} of it"),
    (r"steal (.*)", "its host kept {} of the time"),
    (r"server without CPU (.*)", "the server was without its CPU for {} of the time"),
    (r"sent (.*) late", "the measuring client was {} late"),
    (r"client CPU (.*)", "the clients used {} of their CPU"),
    (r"server CPU (.*)", "the server was busy for only {} of the time"),
    (r"mcload: (.*)", "mcload's check of {} failed"),
]


class Demo(Runner):
    """A Runner that tells how far it is."""

    def __init__(self, bench, args, total):
        super().__init__(bench, args, args.rounds, args.seconds)
        self.total, self.done = total * self.rounds, 0
        if not may_be_realtime():
            # Then the neighbour has to stand back for the client that measures.
            self.realtime = []
            bench.greedy_prefix = ["chrt", "--idle", "0"]

    @staticmethod
    def say(words):
        pass

    def until_valid(self, what, measure):
        one = super().until_valid(what, measure)
        self.done += 1
        print(f"  {self.done} of {self.total}, {what}: {side.duration(one.values['p99'])}"
              f"{' ?' * bool(one.faults)}", flush=True)
        return one


def servers(bench):
    """{name: how to start it}; the installed one if there is one and it is not this one."""
    found = {OURS: {}, OFF: {"options": ["--classes=off"]}}
    path = bench.installed()
    if path:
        said = subprocess.run([path, "-V"], stdout=subprocess.PIPE, text=True).stdout.split("\n")
        if "memcached-qos" not in "".join(said):
            found[said[0]] = {"debian": True}
    return found


def results_of(samples):
    """A row for each pair, in the order of the samples."""
    base = side.median(values(samples[neighbours.ALONE, OURS], "p99"))
    for (beside, server), runs in samples.items():
        p99 = side.median(values(runs, "p99"))
        yield {"beside": beside, "server": server, "p99_us": p99,
               "times_alone": p99 / base if base < float("inf") else p99,
               "served": side.median(values(runs, "served")),
               "is_valid": any(not run.faults for run in runs),
               "faults": sorted({fault for run in runs for fault in run.faults})}


def line_of(result):
    width = max(1, round(min(result["times_alone"], BAR_MAX + 1)))
    bar = "#" * width if width <= BAR_MAX else "#" * BAR_MAX + ">"
    served = result["served"]
    return (f"  {result['server']:<24}{side.duration(result['p99_us']):>9} {'' if result['is_valid'] else '?':1} "
            f"{bar}" + (f" {served:.0%} answered" if served < SERVED_MIN else ""))


def draw(results):
    alone = next(result["p99_us"] for result in results
                 if (result["beside"], result["server"]) == (neighbours.ALONE, OURS))
    print(f"\nLatency of small gets, 99th percentile, at {RATE} a second (one # is {side.duration(alone)}):\n")
    for beside, words in BESIDE.items():
        print(words)
        for result in results:
            if result["beside"] == beside:
                print(line_of(result))


def number_in(text):
    return float(re.search(r"[\d.]+|$", text).group() or 0)


def in_words(faults):
    """The worst of each kind, in plain words."""
    for pattern, words in REASONS:
        found = [match.group(1) for match in map(re.compile(pattern).fullmatch, faults) if match]
        if found:
            yield words.format(max(found, key=number_in).replace("%", " %"))


def judge(results):
    invalid = [result for result in results if not result["is_valid"]]
    if not invalid:
        print("\nVALID: nothing else disturbed these measurements.")
        return
    reasons = in_words([fault for result in invalid for fault in result["faults"]])
    print(f"\nINVALID: the machine was too busy to judge {len(invalid)} of {len(results)} results, "
          f"marked with ?:\n  {'; '.join(reasons)}.\nTry again when it is idle: scripts/demo")


def measure(args):
    with side.Bench(args.build) as bench:
        bench.keep_awake()
        variants = servers(bench)
        every = neighbours.all_neighbours()
        chosen = {what: every.get(what) for what in BESIDE}
        demo = Demo(bench, args, len(variants) * len(chosen))
        each = args.seconds + 3  # with its start and the neighbour's
        print(f"measuring {demo.total} times for {args.seconds} s, {demo.total * each} s in all; "
              f"? is a measurement that was disturbed", flush=True)
        if len(variants) == 2:
            print("no other memcached is installed to compare with (package memcached)")
        return list(results_of(neighbours.sample(demo, variants, chosen)))


def finite(result):
    """JSON has no number without end."""
    return {name: None if value == float("inf") else value for name, value in result.items()}


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--seconds", type=side.count, default=3, help="of each measurement (3)")
    parser.add_argument("--rounds", type=side.count, default=2, help="of all of them (2)")
    parser.add_argument("--retries", type=side.natural, default=3, help="of disturbed measurements (3)")
    parser.add_argument("--json", metavar="FILE", help="write the results there, too")
    parser.add_argument("--build", metavar="FOLDER",
                        help="take what was built there; builds nothing")
    args = parser.parse_args()
    args.quick = False
    side.choose_two_cpus()
    if args.build is None:
        args.build = os.path.join(side.TOP, "build")
        built = subprocess.run([os.path.join(side.TOP, "scripts/build")])
        if built.returncode != 0:
            sys.exit(1)
    # The servers' CPU is theirs alone.
    os.sched_setaffinity(0, {side.CLIENT_CPU})
    results = measure(args)
    draw(results)
    judge(results)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"machine": side.machine(), "is_valid": all(r["is_valid"] for r in results),
                       "results": [finite(result) for result in results]}, f, indent=1)
            f.write("\n")


side.end_on_signals()
main()
