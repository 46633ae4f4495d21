# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Two services on one CPU: this server, and one whose requests take a millisecond; each at several
parts of its own peak. A cell is kept when both have a p95 of at most 5 times that at low load."""
import side_by_side as side
from qos.runner import Run, Watch, client_faults

from .. import beside
from ..rows import Point, Row, is_valid, over
from ..work import SEVERAL

LOADS = (10, 30, 50, 70, 85)  # of each one's peak; at 90 the client has no CPU to spare
KEEPS = 5                     # times the p95 alone at the lowest load
MEAN_US = 1000
NEEDS = {"default": (), "slice": (), "fifo": ("root",)}
MODES = {"default": [], "slice": ["--sched=slice:100us"], "fifo": ["--sched=fifo"]}
LOW = 50       # of both loads together: the default has failed by then, SCHED_FIFO not
LATE = 70      # SCHED_FIFO fails from here on
CLEAR_TO = 80  # a slice keeps the cells to here
LOST = 0.95      # of the requests: where fewer are served it does not matter what else ran


class Service:
    """For mcload."""

    def __init__(self, port):
        self.port = port

    def target(self):
        return f"127.0.0.1:{self.port}"


def service_alone(lab):
    return beside_ours(lab, "default", 0, LOADS[0])


def beside_ours(lab, mode, ours, theirs):
    """Both at once; what of ours was measured, or of the other one without."""
    port = side.free_port()
    job = beside.Job(("service", str(port), str(MEAN_US)))
    with lab.bare_server(["-t", "1", *MODES[mode]]) as server, beside.running(lab, job) as started:
        watch = Watch(lab.bench, server)
        other = lab.bench.start_load(
            Service(port), "--noload", "-t", lab.seconds + 1, "-T", 1, "-c", 8, "-q",
            int(theirs / 100 * 1e6 / MEAN_US), *lab.realtime)
        one = Run({})
        if ours:
            one = lab.paced(server, lab.base("peak", "rate") * ours / 100, *SEVERAL, "-c", 32, is_shared=True)
        result = lab.bench.finish_load(other, lab.seconds + 60)
        one.values["service_preempted"] = over(side.preemptions_of(started[0].process.pid), side.requests_of(result))
        one.faults += client_faults(result, lab.realtime, lab.lag_max_us(result)) + watch.server_cpu(is_shared=True)[1] * (not ours)
        one.values["service_p95"] = side.p95_of(result)
        if one.values.get("served", 1) < LOST:
            one.faults = [fault for fault in one.faults if not fault.startswith("others used")]
        return one


def ours_alone(lab):
    with lab.bare_server(["-t", "1"]) as server:
        return lab.paced(server, lab.base("peak", "rate") * LOADS[0] / 100, *SEVERAL, "-c", 32)


def measure(mode, ours, theirs):
    return lambda lab: beside_ours(lab, mode, ours, theirs)


def peak(lab):
    with lab.bare_server(["-t", "1"]) as server:
        return lab.flat_out(server, *SEVERAL)


def points(lab):
    yield Point("peak", peak)
    yield Point("ours-alone", ours_alone)
    yield Point("service-alone", service_alone)
    loads = (10, 50) if lab.quick else LOADS
    for mode in MODES:
        for ours in loads:
            for theirs in loads:
                yield Point(f"{mode}-{ours}-{theirs}", measure(mode, ours, theirs), needs=NEEDS[mode])


def runs_of(points, mode):
    return is_valid if mode == "default" else points.bound


def cells(points, mode, is_good=None):
    """{(our load, its load): are both kept?}; of the default, which is to fail, by valid runs only"""
    is_good = is_good or runs_of(points, mode)
    for name in ("peak", "ours-alone", "service-alone"):
        points.of(name)
    points.of(f"{mode}-50-50", is_good)
    return {(a, b): all(points.ratio(f"{mode}-{a}-{b}", base, value, is_good) <= KEEPS for base, value in
                        (("ours-alone", "p95"), ("service-alone", "service_p95")))
            for a in LOADS for b in LOADS if points.has(f"{mode}-{a}-{b}")}


def grid(points):
    kept = {mode: cells(points, mode) for mode in MODES}
    shown = ", ".join(f"{mode} {sum(cells.values())} of {len(cells)}" for mode, cells in kept.items())
    early, low = ([is_kept for cell, is_kept in kept[mode].items() if sum(cell) <= LOW] for mode in ("default", "fifo"))
    late = [is_kept for cell, is_kept in cells(points, "fifo", is_valid).items() if sum(cell) >= LATE]
    clear = [is_kept for cell, is_kept in kept["slice"].items() if sum(cell) <= CLEAR_TO]
    return f"cells kept: {shown}", {
        f"the default fails with both loads at {LOW} % in all": not all(early),
        f"SCHED_FIFO keeps the cells to {LOW} %": all(low),
        f"SCHED_FIFO loses most cells from {LATE} % on": sum(late) < len(late) / 2,
        f"a slice keeps most cells to {CLEAR_TO} %": sum(clear) > len(clear) / 2}


def plots(points):
    yield ("grids", "Both services within 5 times their p95 at low load", "this server, % of its peak",
           "service of 1 ms, % of its peak", {
               mode: {cell: (is_kept, points.is_usable(f"{mode}-{cell[0]}-{cell[1]}", runs_of(points, mode)))
                      for cell, is_kept in cells(points, mode).items()} for mode in MODES})


def why(points):
    def names(mode, ours=LOADS, theirs=LOADS):
        return [f"{mode}-{a}-{b}" for a in ours for b in theirs]

    def used(mode, *loads):
        return "{:.0%} to {:.0%}".format(*points.extent(names(mode, *loads), "server_cpu", runs_of(points, mode)))

    taken = {mode: points.extent(names(mode), "service_preempted", runs_of(points, mode)) for mode in MODES}
    most = points.extent(names("slice", LOADS, LOADS[2:]), "server_cpu", points.bound)[1]
    late = [points.at_most(name, "p95") for name in names("fifo", LOADS[:-1])]
    latest = points.extent(names("fifo", LOADS[:-1]), "p95", points.bound)[1]
    return (
        f"A slice says which one goes first, not how much each one gets: from half of the service's peak on this server has {most:.0%} of "
        f"the CPU at most, about its half. With a slice {LOADS[1]} % of its peak take {used('slice', LOADS[1:2])}, with SCHED_FIFO "
        f"{used('fifo', LOADS[1:2])}, by default {used('default', LOADS[1:2])}. With a slice and with SCHED_FIFO the two take turns at each wake-up: "
        f"by the kernel's count (from the third round on) a request of the service is preempted {taken['slice'][0]:.0f} to {taken['slice'][1]:.0f} "
        f"times with a slice, up to {taken['fifo'][1]:.0f} times with SCHED_FIFO, and by default up to {taken['default'][1]:.0f} times. "
        f"Requests of this server then come one by one, where by default they wait and are served several at once. With SCHED_FIFO its own p95 is "
        f"{min(late):.0f} to {max(late):.0f} us to {LOADS[-2]} % of its peak whatever the service does, {latest / 1000:.1f} ms in the worst round, and "
        "those cells are lost to the service, which has what is left. SCHED_FIFO has no quota here, as it has in the paper.")


ROWS = [Row("E Fig 6, 9", "two services on a CPU", "CFS fails at half; BVT to 80-90 %; FIFO with quota to 70 %",
            f"the default fails with both at {LOW} % in all or less; SCHED_FIFO, without a quota, keeps the cells to {LOW} % and loses most from "
            f"{LATE} % on; a slice keeps most cells to {CLEAR_TO} %", grid, plots, ("cpus", "root"), why, guest="grid")]
