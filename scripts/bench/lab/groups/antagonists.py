# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The rate that keeps p95 at 500 us beside antagonists: on the server's CPU (ST), or on the other one
of the socket (SS), which the client has when it wants it."""
import side_by_side as side

from .. import beside
from ..beside import KB, MB, Job
from ..rows import NO_RATE, Point, Row
from ..work import SEVERAL

TIMESHARED = 0.2  # of the rate is lost at least where the CPU is shared
PROTECTED = 0.05  # at most with a priority
MMAP = 0.15
NETWORK = 0.05
LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90)  # of the peak
SAME = 1.3        # times the p95 alone, at 30 %
CORE = 0.1        # is lost at least where a core is shared


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
    if machine.siblings > 1:
        for name in ("cpu", "l1d-lg", "l1i-lg", "l2-lg"):
            found[f"{name}-core"] = ((), tuple(Job(job.argv, "sibling") for job in found[name][1]))
    return {**found, "mem": ((), (Job(("triad", str(4 * l3)), "client"),)),
            "intr": ((), (Job(("pingpong", *cpus), "everywhere"),)),
            "mmap": ((), (Job(("storm", "2"), "everywhere"),)),
            **{name: ((), (Job(("stress-ng", stressor), where),)) for name, (stressor, where) in STRESS_NG.items()}}


# Of stress-ng, on the server's CPU or the other one: recorded beside those of our own.
STRESS_NG = {"stress-cpu": ("cpu", "server"), "stress-cache": ("cache", "client"), "stress-stream": ("stream", "client"),
             "stress-mmap": ("mmap", "client"), "stress-switch": ("switch", "client")}

QUICK = ("alone", "cpu", "cpu-nice", "cpu-fifo", "l3-sm", "l3-lg", "network-lg", "mem", "intr", "mmap")


def measure(options, jobs):
    def run(lab):
        with lab.bare_server(["-t", "1", *options]) as server, beside.running(lab, *jobs) as started:
            one = lab.search(server, *SEVERAL, is_shared=bool(jobs), may_be_capped=True,
                             may_differ="--sched=fifo" not in options and any(job.where == "server" for job in jobs))
        if not jobs and not one.values["qos"]:
            one.faults.append(NO_RATE)
        one.values["work"] = sum(job.work for job in started)
        return one
    return run


def points(lab):
    for name, (options, jobs) in antagonists(lab.machine).items():
        if not lab.quick or name in QUICK or name in ("cpu-core", "l2-lg-core"):
            yield Point(name, measure(options, jobs), 7,
                        ("root",) * bool(options) + ("stress-ng",) * (name in STRESS_NG))
    for load in (30, 80) if lab.quick else LOADS:
        for jobs, name in enumerate(("plain", "walker")):
            yield Point(f"{name}-{load}", at_load(load, jobs))


def at_load(load, jobs):
    def run(lab):
        walker = Job(("walk", str(lab.machine.cache("L3", 8 * MB))), "client")
        with lab.bare_server(["-t", "1"]) as server, beside.running(lab, *[walker] * jobs):
            return lab.paced(server, lab.base("alone", "rate") * load / 100, *SEVERAL, "-c", 32, is_shared=bool(jobs))
    return run


def drop(points, name):
    return 1 - points.ratio(name, "alone", "qos")


def cap(points):
    """What the losses are parts of, where it is not the server's rate."""
    return f"of {points('alone', 'qos'):,.0f}/s, all that the client can offer, " if points("alone", "capped") else ""


def measured(points):
    points.of("alone")
    return {name: drop(points, name) for name in antagonists(points.machine) if name != "alone" and points.has(name)}


def single(points):
    drops = {name: drop(points, name) for name in ("cpu", "cpu-nice", "cpu-fifo", "intr", "mmap", "network-lg")}
    caches = [name for name in ("l1d-lg", "l1i-lg", "l2-lg") if points.has(name)]
    elsewhere = {
        f"mmap elsewhere costs {MMAP:.0%} at most": drops["mmap"] <= MMAP,
        f"the network costs {NETWORK:.0%} at most": drops["network-lg"] <= NETWORK,
        "interrupts on the same CPU cost more than mmap": drops["intr"] > drops["mmap"]}
    return cap(points) + "lost: " + ", ".join(f"{name} {lost:.0%}" for name, lost in drops.items()), {
        f"a shared CPU costs {TIMESHARED:.0%} or more": drops["cpu"] >= TIMESHARED,
        f"SCHED_FIFO leaves {PROTECTED:.0%} at most": drops["cpu-fifo"] <= PROTECTED,
        **(elsewhere if not points.machine.lacks(["client"]) else {}),
        "time-shared caches cost about what the CPU does": all(
            drop(points, name) <= drops["cpu"] + TIMESHARED for name in caches)}


def core(points):
    cpu, cache = drop(points, "cpu-core"), drop(points, "l2-lg-core")
    return f"lost on the core's other thread: CPU {cpu:.0%}, L2 {cache:.0%}", {
        f"a shared core costs {CORE:.0%} or more": cpu >= CORE, "a shared L2 costs more": cache > cpu}


def multi(points):
    small, large, memory, network = (drop(points, name) for name in ("l3-sm", "l3-lg", "mem", "network-lg"))
    return cap(points) + f"lost: L3 {small:.0%} to {large:.0%}, memory {memory:.0%}, network {network:.0%}", {
        "the larger L3 antagonist costs more": large > small,
        "memory costs something": memory > 0,
        f"the network costs {NETWORK:.0%} at most": network <= NETWORK}


def knee(points):
    ratio, lost = points.ratio("walker-30", "plain-30", "p95"), drop(points, "l3-lg")
    capacity = 1 - points.ratio("l3-lg", "alone", "rate")
    return cap(points) + f"p95 {ratio:.2f}x at 30 %, QoS rate {-lost:+.1%}, peak {-capacity:+.1%}", {
        f"p95 is within {SAME}x at 30 % of the peak": ratio < SAME,
        "the knee moves to the left, by what the peak loses or more": lost > 0 and lost >= capacity}


def knee_plots(points):
    yield ("curves", "Beside a walker through the L3 cache", "% of the peak", "p95, us", {
        words: points.curve(name + "-{}", LOADS, "p95") for name, words in (("plain", "alone"), ("walker", "beside"))})


def plots(points):
    yield ("bars", "Rate with p95 at 500 us, of that alone", "% of the rate", {
        name: {"QoS rate": (100 * (1 - lost), any(not run.faults for run in points.of(name)))}
        for name, lost in measured(points).items()}, "linear")


ROWS = [
    Row("D Table 3", "antagonists", "a time-shared CPU -46 %, with nice or FIFO -2 %; 13 antagonists",
        f"CPU >= {TIMESHARED:.0%} lost, with FIFO <= {PROTECTED:.0%}; where the client has a third CPU mmap <= {MMAP:.0%}, "
        f"network <= {NETWORK:.0%}; nice is recorded", single, plots, ("cpus", "root")),
    Row("D Table 3 SC", "antagonists on the core's other thread", "-26 to -52 %",
        f"a shared core costs >= {CORE:.0%}, a shared L2 more", core, needs=("smt",)),
    Row("E Fig 2", "L3 walker against load", "no effect at 30 %, the knee moves", f"p95 < {SAME}x alone at 30 % of the peak, the "
        "rate within the goal falls, by no less than the peak", knee, knee_plots, ("cpus",),
        "The walker on the other CPU takes little from what runs beside it: *D Table 5*. The QoS rate was 14 % higher beside it in the "
        "first round, 4 to 32 % lower in the others; runs of the same point differ by half of that."),
    Row("D Table 4", "L3, memory, network", "L3 -34/-43/-55, memory -13, network 0",
        "the larger L3 antagonist costs more, memory something, the network little", multi, needs=("cpus", "client")),
]
