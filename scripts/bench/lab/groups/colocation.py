# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Batch jobs on the server's CPU at several loads: the service's p95, what the jobs get done, and
what that is worth by the cost model of `scripts/lab tco`."""
import math
import time


from .. import beside, tco
from ..rows import NO_RATE, Point, Row, has_rate, is_valid, over
from ..work import SEVERAL

GOAL_US = 500
ROOT = ("root",)
LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)            # of the peak
FACEBOOK = (0.25, 0.5, 0.75, 1.0)            # of the rate that keeps the goal
JOBS = (1, 2, 4)
SEVERAL_JOBS = 6
MODES = {"default": [], "nice": ["--sched=other:-20"], "slice": ["--sched=slice:100us"], "fifo": ["--sched=fifo"]}
MIX = ("spin", "walk-l2", "walk-half-l3", "triad-4-l3")  # one of each class
AT_FULL_US = 559  # the worst of the paper's with SCHED_FIFO
BESIDE = 1.5      # times alone, that p95 may be with SCHED_FIFO
BATCH = (0.1, 0.6)  # of what the jobs do alone, in the paper


def batch(lab, names, mode, rate):
    """p95 of the service at that rate beside these jobs, and what they do meanwhile of what they do
    alone: by their CPU time, and the work that they do in a second of it."""
    jobs = beside.batch_jobs(lab.machine)
    alone = {name: beside.alone(lab, jobs[name][1]) for name in names}
    with lab.bare_server(["-t", "1", *MODES[mode]]) as server:
        with beside.running(lab, *(jobs[name][1] for name in names)) as started:
            load = lab.start_paced(server, rate, *SEVERAL, "-c", 32)
            start, used = time.monotonic(), [job.cpu() for job in started]
            one = lab.finish_paced(load, rate, is_shared=bool(names))
            took, used = time.monotonic() - start, [job.cpu() - then for job, then in zip(started, used)]
    one.values["batch"] = sum(over(cpu / took * job.work_cpu, alone[name])
                              for name, job, cpu in zip(names, started, used))
    return one


def measure(names, mode, value, load):
    return lambda lab: batch(lab, names, mode, lab.base("alone", value) * load)


def search(lab):
    with lab.bare_server(["-t", "1"]) as server:
        one = lab.search(server, *SEVERAL, may_be_capped=True)
        # So that what is a part of it is a rate, also when there is none.
        one.values["goal"] = one.values["qos"] or one.values["rate"] / 2
        if not one.values["qos"]:
            one.faults.append(NO_RATE)
        return one


def searched(names, mode):
    def run(lab):
        jobs = beside.batch_jobs(lab.machine)
        with lab.bare_server(["-t", "1", *MODES[mode]]) as server, \
                beside.running(lab, *(jobs[name][1] for name in names)):
            return lab.search(server, *SEVERAL, is_shared=True, may_be_capped=True)
    return run


def mix(count):
    return [MIX[i % len(MIX)] for i in range(count)]


def points(lab):
    yield Point("alone", search, 7)
    yield Point("beside-fifo", searched(mix(1), "fifo"), 7, ROOT)
    for load in (0.25, 0.75) if lab.quick else FACEBOOK:
        for mode in ("default", "fifo"):
            for jobs in (4,) if lab.quick else JOBS:
                yield Point(f"mix-{mode}-{load * 100:.0f}-{jobs}", measure(mix(jobs), mode, "goal", load), needs=ROOT)
    for load in (0.5,) if lab.quick else LOADS:
        yield Point(f"none-{load * 100:.0f}", measure([], "default", "rate", load))
        for mode in MODES:
            yield Point(f"six-{mode}-{load * 100:.0f}", measure(mix(SEVERAL_JOBS), mode, "rate", load), needs=ROOT)
    for name in ("spin", "triad-4-l3") if lab.quick else beside.batch_jobs(lab.machine):
        for load in lab.some(LOADS):
            yield Point(f"job-{name}-{load * 100:.0f}", measure([name], "fifo", "rate", load), needs=ROOT)


def goal(points):
    """What the loads are parts of, where it is not the server's."""
    return f"of {points('alone', 'goal'):,.0f}/s, all that the client can offer: " if points("alone", "capped") else ""


def facebook(points):
    points.keep_rounds("alone", has_rate)  # which the loads are parts of
    p95 = {(mode, load, jobs): read(f"mix-{mode}-{load * 100:.0f}-{jobs}", "p95")
           for mode, read in (("default", points), ("fifo", points.at_most)) for load in FACEBOOK for jobs in JOBS
           if points.has(f"mix-{mode}-{load * 100:.0f}-{jobs}")}
    points.of("mix-default-75-4")
    points.at_most("mix-fifo-75-4", "p95")
    # Of each load the worst number of jobs.
    late = {mode: {load: max(p95[of] for of in p95 if of[:2] == (mode, load)) for load in {of[1] for of in p95 if of[0] == mode}}
            for mode in ("default", "fifo")}
    breaks = [us > GOAL_US for load, us in late["default"].items() if load >= 0.5]
    worst = {mode: max(us for load, us in late[mode].items() if load >= 0.5) for mode in late}
    kept = max(us for load, us in late["fifo"].items() if load <= 0.75)
    shares = [points.at_most(f"mix-fifo-{load * 100:.0f}-{jobs}", "batch") for mode, load, jobs in p95 if mode == "fifo"]
    return (goal(points) + f"default {worst['default']:,.0f} us at worst from half load on, FIFO {worst['fifo']:,.0f} us; "
            f"batch work {min(shares):.0%} to {max(shares):.0%}"), {
        f"the default breaks {GOAL_US} us at each load from half on": all(breaks),
        "FIFO keeps it to 75 %": kept <= GOAL_US,
        f"FIFO keeps {AT_FULL_US} us at 100 %": worst["fifo"] <= AT_FULL_US,
        f"batch work is {BATCH[0]:.0%} to {BATCH[1]:.0%} of that alone": all(BATCH[0] <= share <= BATCH[1] for share in shares)}


def facebook_plots(points):
    percents = [round(load * 100) for load in FACEBOOK]
    yield ("curves", "Beside 4 batch jobs", "% of the QoS rate", "p95, us", {
        mode: points.curve(f"mix-{mode}-{{}}-4", percents, "p95", is_good=is_good)
        for mode, is_good in (("default", is_valid), ("fifo", points.bound))})


def times(ratio):
    return f"{ratio:.1f}x" if ratio < 100 else f"{ratio:,.0f}x"


def switching(points):
    loads = [load for load in LOADS if points.has(f"none-{load * 100:.0f}")]
    points.of("none-50")
    worst = {mode: max(points.ratio(f"six-{mode}-{load * 100:.0f}", f"none-{load * 100:.0f}", "p95")
                       for load in loads if load <= 0.8) for mode in MODES}
    return f"beside {SEVERAL_JOBS} jobs, p95 in times alone: " + ", ".join(
        f"{mode} {times(ratio)}" for mode, ratio in worst.items()), {
        f"a slice or FIFO keeps p95 within {BESIDE}x alone": min(worst["slice"], worst["fifo"]) <= BESIDE}


def geometric(values):
    return math.exp(sum(math.log(max(value, 1e-6)) for value in values) / len(values))


def worth(points):
    """{load: (mean of what the jobs do, improvement by the cost model)}"""
    points.of("job-spin-10")
    found = {}
    for load in LOADS:
        shares = [points.at_most(f"job-{name}-{load * 100:.0f}", "batch") for name in beside.batch_jobs(points.machine)
                  if points.has(f"job-{name}-{load * 100:.0f}")]
        if shares:
            part = min(1.0, geometric(shares))
            found[load] = part, tco.Colocation(load, part, 12000, tco.Prices()).improvement
    return found


def table(points):
    found = worth(points)
    jobs = beside.batch_jobs(points.machine)
    p95 = {(name, load): points.at_most(f"job-{name}-{load * 100:.0f}", "p95") for load in found for name in jobs
           if points.has(f"job-{name}-{load * 100:.0f}")}
    worst = max(p95, key=p95.get)
    shares = [share for share, _ in found.values()]
    gains = [gain for _, gain in found.values()]
    return ("batch work " + "/".join(f"{share:.0%}" for share in shares) + ", for the money "
            + "/".join(f"{gain:+.0%}" for gain in gains)
            + f"; p95 {p95[worst]:,.0f} us at worst, beside {worst[0]} at {worst[1]:.0%}"), {
        "batch work falls with the load": all(more > less for more, less in zip(shares, shares[1:])),
        "it is below what the service leaves": all(share < 1 - load for load, (share, _) in found.items()),
        "each load is a gain": min(gains) > 0,
        "the gain is largest at the lowest load": max(gains) == gains[0],
        "p95 is finite to 90 %": all(us < math.inf for us in p95.values()),
        "p95 is worst beside a streaming job": jobs[worst[0]][0] == "streaming"}


def table_plots(points):
    percents = [round(load * 100) for load in LOADS]
    yield ("curves", "What a batch job gets done beside the service", "% of the peak", "% of a server", {
        name: points.curve(f"job-{name}-{{}}", percents, "batch", 100, points.bound) for name in beside.batch_jobs(points.machine)},
        "linear", "linear")


def why_facebook(points):
    """Also what of the paper's figures is not judged."""
    shares = {name: points.at_most(name, "batch") for name in (
        f"mix-fifo-{load * 100:.0f}-{jobs}" for load in FACEBOOK for jobs in JOBS) if points.has(name)}
    beyond = [name for name, share in shares.items() if not BATCH[0] <= share <= BATCH[1]]
    words = []
    for name in beyond:
        _, _, load, jobs = name.split("-")
        used = points.extent([name], "server_cpu", points.bound)
        words.append(f"{shares[name]:.0%} at {load} % of the rate, jobs: {jobs}, where the service uses {used[0]:.0%} to {used[1]:.0%} of the CPU")
    return (
        (f"Batch work is outside the paper's range in {len(beyond)} of {len(shares)} cells ({'; '.join(words)}). " if beyond else "")
        + "Rounds in which no rate of the service alone kept p95 are left out, as the loads are parts of it. At 100 % of it SCHED_FIFO is judged "
        "by rounds with a client short of CPU, too: below the table. How busy all CPUs were (97 % in the "
        "paper) is not stored; mixes of one class of jobs were not measured.")


def why_table(points):
    jobs = beside.batch_jobs(points.machine)
    said, name_of = [], "job-{}-{:.0f}".format
    loads = [load for load in LOADS if points.has(*(name_of(name, load * 100) for name in jobs))]
    for load in loads:
        p95 = {name: points.at_most(name_of(name, load * 100), "p95") for name in jobs}
        worst = max(p95, key=p95.get)
        said.append(f"at {load:.0%} {min(p95.values()):,.0f} to {p95[worst]:,.0f} us, worst beside {worst}")
    by_round = {}
    for name in jobs if loads else ():
        for run in points.of(name_of(name, loads[-1] * 100), points.bound):
            by_round.setdefault(run.turn, []).append((run.values["p95"], name))
    worst = [max(by_round[turn])[1] for turn in sorted(by_round)]
    peak = points.extent(["alone"], "rate")
    return (
        f"p95 is {'; '.join(said)}. At the last of these loads the worst job of each round is {', '.join(worst)}. There p95 is some "
        "hundred microseconds beside a job in one round, and some hundred milliseconds in another one: the peak, of which the load is a "
        f"part, was {peak[0]:,.0f} to {peak[1]:,.0f}/s. triad-l3 works on as much memory as the L3 cache is said to have. By *D Table 5* "
        "a walker through that cache takes little from any job, so it is not known whether triad-l3 finds its data there; if it does not, it "
        "is a streaming one.")


def provisioning(points):
    # Where the client was the limit, the server keeps the goal up to its peak at most.
    points.of("alone", has_rate)
    is_capped = points("alone", "capped", has_rate)
    part = over(points("beside-fifo", "qos"), points("alone", "rate")) if is_capped else \
        points.ratio("beside-fifo", "alone", "qos")
    most = " at most" if is_capped else ""
    return (f"{part:.0%} of the rate alone within {GOAL_US} us: {over(1000, part):,.0f} servers{most} with batch work for "
            "each 1,000 without"), {"the service fits into twice the servers": part >= 0.5}


ROWS = [
    Row("D Fig 5, 6", "batch jobs beside a primary service", "the default breaks from half load on, FIFO keeps 559 us",
        f"default beyond {GOAL_US} us at each load from half on; FIFO within it to 75 %, {AT_FULL_US} us at 100 %; batch work "
        f"{BATCH[0]:.0%} to {BATCH[1]:.0%} of that alone", facebook, facebook_plots, ("cpus", "root"), why_facebook),
    Row("E Fig 4", "context switches under nice -20", "no effect on latency",
        f"beside {SEVERAL_JOBS} jobs p95 is within {BESIDE}x alone to 80 % with a slice or FIFO; nice is recorded",
        switching, needs=("cpus", "root")),
    Row("E Table 2", "batch throughput and cost", "75/47/30/18/20 % of a server, +52/29/18/11/18 % for the money",
        "batch work falls with load and is below what the service leaves, every column is a gain, largest at 10 %; p95 is finite to 90 %, "
        "worst beside a streaming job", table, table_plots, ("cpus", "root"), why_table),
    Row("E 4.1", "provisioning", "servers are added for what interference takes",
        "rate within the goal beside a job at FIFO: half of that alone or more", provisioning, needs=("cpus", "root")),
]
