# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""A batch job whose demand is a square wave, 6 of every 48 ms, on the server's CPU; each in a control
group of the same share. Also with random gaps of the same mean."""
import contextlib
import time

import side_by_side as side
from qos.scheduling import BUSY_MS, PERIOD_MS

from ..rows import Point, Row
from ..work import SEVERAL

LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
MODES = {"default": [], "slice": ["--sched=slice:100us"], "fifo": ["--sched=fifo"]}
WAVES = ("alone", "wave", "random")
ROOT = ("root",)
CLIFF = 5          # times alone, below half load, of the default
KEEPS = 2          # times alone at most, with a slice, up to 40 %
CAP = (0.8, 0.92)  # of the peak


def start_wave(lab, *words):
    with lab.cpu_groups.entered("batch"):
        beside = lab.bench.start_beside(
            ["taskset", "-c", str(side.SERVER_CPU), lab.bench.compiled("wave"), str(BUSY_MS), str(PERIOD_MS),
             str(lab.seconds + 2), *words])
    time.sleep(0.3)
    return beside


def measure(mode, wave, load):
    def run(lab):
        shared = wave != "alone"
        with contextlib.ExitStack() as stack:
            with lab.cpu_groups.entered("server"):
                server = stack.enter_context(lab.bare_server(["-t", "1", *MODES[mode]]))
            beside = start_wave(lab, *(["random"] if wave == "random" else [])) if shared else None
            if load is None:
                one = lab.flat_out(server, *SEVERAL, is_shared=shared, limit=None if shared else "server")
            else:
                one = lab.paced(server, lab.base("peak", "rate") * load, *SEVERAL, "-c", 32, is_shared=shared)
            if shared:
                one.values["share"] = float(beside.communicate(timeout=lab.seconds + 30)[0])
            return one
    return run


def name_of(mode, wave, load):
    return f"{mode}-{wave}-{load * 100:.0f}"


def points(lab):
    yield Point("peak", measure("default", "alone", None), needs=ROOT)
    for mode in MODES:
        yield Point(f"{mode}-wave-peak", measure(mode, "wave", None), needs=ROOT)
    for load in (0.1, 0.4, 0.8) if lab.quick else LOADS:
        yield Point(name_of("default", "alone", load), measure("default", "alone", load), needs=ROOT)
        for mode in MODES:
            for wave in WAVES[1:2] if lab.quick else WAVES[1:]:
                yield Point(name_of(mode, wave, load), measure(mode, wave, load), needs=ROOT)


def slowdown(points, mode, load, value="p95"):
    return points.ratio(name_of(mode, "wave", load), name_of("default", "alone", load), value)


def square(points):
    points.of("peak")
    measured = [load for load in LOADS if points.has(name_of("default", "wave", load))]
    below = [load for load in measured if load < 0.5]
    quantile = next((value for value in ("p95", "p99") if max(
        [slowdown(points, "default", load, value) for load in below] or [0]) >= CLIFF), "p95")
    cliff = max([slowdown(points, "default", load, quantile) for load in below] or [0])
    kept = max([slowdown(points, "slice", load) for load in measured if load <= 0.4] or [0])
    caps = {mode: points.ratio(f"{mode}-wave-peak", "peak", "rate") for mode in MODES}
    return (f"default {cliff:.0f}x at {quantile} below half load, slice {kept:.1f}x to 40 %, cap "
            + "/".join(f"{cap:.0%}" for cap in caps.values())), {
        f"the default's p95 or p99 is {CLIFF}x alone below half load": cliff >= CLIFF,
        f"with a slice {KEEPS}x alone at most, to 40 %": 0 < kept <= KEEPS,
        "the cap is that of 42 ms in 48": all(CAP[0] <= cap <= CAP[1] for mode, cap in caps.items() if mode != "fifo")}


def plots(points):
    percents = [round(load * 100) for load in LOADS]
    yield ("curves", "Beside a square wave of 6 ms in 48", "% of the peak", "p95, us", {
        "alone": points.curve("default-alone-{}", percents, "p95"),
        **{mode: points.curve(mode + "-wave-{}", percents, "p95") for mode in MODES},
        "default, random gaps": points.curve("default-random-{}", percents, "p95")})


ROWS = [Row("E Fig 5", "square wave", "CFS: p95 in ms from 12 % on; BVT: from 50 %; both capped at 87 %",
            f"default >= {CLIFF}x alone below half load, slice <= {KEEPS}x to 40 %, capped at 80-92 % of the peak",
            square, plots, ("cpus", "root"),
            why="A worker with a shorter slice goes first when it wakes up, if it has not had more than its share. After "
                "each burst of its own it has, for a while, and Linux looks again at the next tick, up to 4 ms later at "
                "250 Hz. doc/benchmarks.md, *A square wave on the worker's CPU*, has the trials: with a pause after each "
                "pass of a worker, as long as the pass, p95 fell from 1.6 to 0.4 ms, and where a thread at real-time "
                "priority woke up beside it p99 fell to a tenth. The server does the latter (doc/qos.md, *Nudges*), as "
                "far as it helps. SCHED_FIFO keeps p95 near that alone. The cap is in requests: in CPU time it is 87 % by default "
                "and with a slice, that of 42 ms in 48, but with a slice a request takes 1.1 to 1.2 times the CPU time that it "
                "takes alone.", guest="wave")]
