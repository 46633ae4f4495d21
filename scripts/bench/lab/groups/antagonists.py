# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The rate that keeps p95 at 500 us beside antagonists: on the server's CPU (ST), or on the other one
of the socket (SS), which the client has when it wants it."""
import side_by_side as side
from qos.runner import SEVERAL

from .. import beside
from ..beside import KB, MB, Job
from ..rows import Point, Row, over

TIMESHARED = 0.2  # of the rate is lost at least where the CPU is shared
PROTECTED = 0.05  # at most with a priority
MMAP = 0.15
NETWORK = 0.05


def antagonists(machine):
    """{name: (options of the server, Jobs)}"""
    l1d, l1i = machine.cache("L1D", 32 * KB), machine.cache("L1I", 32 * KB)
    l2, l3 = machine.cache("L2", MB), machine.cache("L3", 8 * MB)
    cpus = str(side.SERVER_CPU), str(side.CLIENT_CPU)
    found = {"alone": ((), ()),
             "cpu": ((), (beside.spinner(),)),
             "cpu-nice": (("--sched=other:-20",), (beside.spinner(),)),
             "cpu-fifo": (("--sched=fifo",), (beside.spinner(),))}
    for level, size, part in (("sm", 0.25, "1/4"), ("med", 0.5, "1/2"), ("lg", 1, "1/1")):
        found[f"l1d-{level}"] = ((), (Job(("walk", str(int(l1d * size)))),))
        found[f"l1i-{level}"] = ((), (Job(("code", str(int(3 * l1i * size)))),))
        found[f"l2-{level}"] = ((), (Job(("walk", str(int(l2 * size)))),))
        found[f"l3-{level}"] = ((), (Job(("walk", str(int(l3 * size))), "client"),))
        mbits = {"sm": "1000", "med": "3000", "lg": "5000"}[level]
        found[f"network-{level}"] = ((), (Job(("stream", mbits), "client"),))
    return {**found, "mem": ((), (Job(("triad", str(4 * l3)), "client"),)),
            "intr": ((), (Job(("pingpong", *cpus), "everywhere"),)),
            "mmap": ((), (Job(("storm", "2"), "everywhere"),))}


QUICK = ("alone", "cpu", "cpu-nice", "cpu-fifo", "l3-sm", "l3-lg", "network-lg", "mem", "intr", "mmap")


def measure(options, jobs):
    def run(lab):
        with lab.bare_server(["-t", "1", *options]) as server, beside.running(lab, *jobs) as started:
            one = lab.search(server, *SEVERAL, is_shared=bool(jobs))
        one.values["work"] = sum(job.work for job in started)
        return one
    return run


def points(lab):
    for name, (options, jobs) in antagonists(lab.machine).items():
        if not lab.quick or name in QUICK:
            yield Point(name, measure(options, jobs), 12)


def drop(points, name):
    return 1 - points.ratio(name, "alone", "qos")


def measured(points):
    points.of("alone")
    return {name: drop(points, name) for name in antagonists(points.machine) if name != "alone" and points.has(name)}


def single(points):
    drops = {name: drop(points, name) for name in ("cpu", "cpu-nice", "cpu-fifo", "intr", "mmap", "network-lg")}
    caches = [name for name in ("l1d-lg", "l1i-lg", "l2-lg") if points.has(name)]
    return "lost: " + ", ".join(f"{name} {lost:.0%}" for name, lost in drops.items()), {
        f"a shared CPU costs {TIMESHARED:.0%} or more": drops["cpu"] >= TIMESHARED,
        f"SCHED_FIFO leaves {PROTECTED:.0%} at most": drops["cpu-fifo"] <= PROTECTED,
        f"mmap elsewhere costs {MMAP:.0%} at most": drops["mmap"] <= MMAP,
        f"the network costs {NETWORK:.0%} at most": drops["network-lg"] <= NETWORK,
        "interrupts on the same CPU cost more than mmap": drops["intr"] > drops["mmap"],
        "time-shared caches cost about what the CPU does": all(
            drop(points, name) <= drops["cpu"] + TIMESHARED for name in caches)}


def multi(points):
    small, large, memory, network = (drop(points, name) for name in ("l3-sm", "l3-lg", "mem", "network-lg"))
    return f"lost: L3 {small:.0%} to {large:.0%}, memory {memory:.0%}, network {network:.0%}", {
        "the larger L3 antagonist costs more": large > small,
        "memory costs something": memory > 0,
        f"the network costs {NETWORK:.0%} at most": network <= NETWORK}


def plots(points):
    yield ("bars", "Rate with p95 at 500 us, of that alone", "% of the rate", {
        name: {"QoS rate": (max(100 * (1 - lost), 1), any(not run.faults for run in points.of(name)))}
        for name, lost in measured(points).items()})


ROWS = [
    Row("D Table 3", "antagonists", "a time-shared CPU -46 %, with nice or FIFO -2 %; 13 antagonists",
        f"CPU >= {TIMESHARED:.0%} lost, with FIFO <= {PROTECTED:.0%}, mmap <= {MMAP:.0%}, network <= {NETWORK:.0%}; "
        "nice is recorded", single, plots, ("cpus", "root")),
    Row("D Table 3 SC, DS", "hyperthreads, the other socket", "core shared -26 to -52 %, other socket about 0",
        "sharing a core costs more than sharing a socket", needs=("smt", "sockets")),
    Row("D Table 4, E Fig 2", "L3, memory, network", "L3 -34/-43/-55, memory -13, network 0",
        "the larger L3 antagonist costs more, memory something, the network little", multi, needs=("cpus",)),
]
