# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""A batch job whose demand is a square wave, on the worker's CPU."""
import contextlib
import os
import time

import side_by_side as side

from .runner import KEYS, SEVERAL, point, values, verdict

HEAD = ["scheduling", "load", "p99 alone us", "p99 beside the wave us", "x default", "target",
        "batch share", "server CPU", "validity"]
BUSY_MS, PERIOD_MS = 6, 48
MODES = {"default": [], "slice:100us": ["--sched=slice:100us"], "fifo": ["--sched=fifo"]}
LOADS = (0.1, 0.2, 0.4)  # above, the client is the limit
SLICE_TARGET = 0.25  # of default, below half load
HALF = 0.5
CONNECTIONS = 32
CPU_ROOTS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
UNIFIED = "/sys/fs/cgroup"
RT_RUNTIME_US = 940000  # of a second; the machine keeps 5 % from real-time threads


class Groups:
    """Two control groups of equal shares of CPU time, for the server and the batch job: side
    by side in the root, or of version 2."""

    def __init__(self):
        root = next((top for top in CPU_ROOTS if os.path.isdir(top)), UNIFIED)
        self.members = "tasks" if root != UNIFIED else "cgroup.procs"
        self.paths = {who: os.path.join(root, f"bench-{os.getpid()}-{who}")
                      for who in ("server", "batch")}

    def __enter__(self):
        try:
            if self.members == "cgroup.procs":
                with open(os.path.join(UNIFIED, "cgroup.subtree_control"), "w") as f:
                    f.write("+cpu")
            for path in self.paths.values():
                os.mkdir(path)
            # Version 2 has no real-time groups.
            budget = os.path.join(self.paths["server"], "cpu.rt_runtime_us")
            if os.path.exists(budget):
                self.grant(budget)
        except OSError as error:
            self.remove()
            side.fail(f"the square wave needs root and control groups for CPU time: {error}")
        return self

    @staticmethod
    def grant(budget):
        """The kernel has the time of a group that was removed for a moment longer."""
        for last in [False] * 20 + [True]:
            try:
                with open(budget, "w") as f:
                    f.write(str(RT_RUNTIME_US))
                return
            except OSError:
                if last:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        for path in self.paths.values():
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.1)

    @contextlib.contextmanager
    def entered(self, who):
        """What is started within the block starts in that group."""
        with open(f"/proc/{os.getpid()}/cgroup") as f:
            lines = [line.rstrip("\n").split(":", 2) for line in f]
        home = next(path for _, names, path in lines
                    if (names == "" if self.members == "cgroup.procs"
                        else "cpu" in names.split(",")))
        self.join(self.paths[who])
        try:
            yield
        finally:
            self.join(os.path.join(os.path.dirname(self.paths[who]), home.lstrip("/")))

    def join(self, path):
        with open(os.path.join(path, self.members), "w") as f:
            f.write(str(os.getpid()))


def start_wave(run, groups, seconds):
    with groups.entered("batch"):
        return run.bench.start_beside(
            ["taskset", "-c", str(side.SERVER_CPU), run.bench.compiled("wave"), str(BUSY_MS),
             str(PERIOD_MS), str(seconds)])


def measure(run, groups, server, rate, with_wave):
    wave = None
    if with_wave:
        wave = start_wave(run, groups, run.seconds + 2)
        time.sleep(0.5)
    one = run.interactive(server, "-c", CONNECTIONS, *SEVERAL, rate=rate, is_shared=with_wave)
    if wave:
        one.values["share"] = float(wave.communicate(timeout=run.seconds + 30)[0])
    return one


def case(run):
    samples = {}
    with Groups() as groups, contextlib.ExitStack() as stack:
        servers = {}
        for name, options in MODES.items():
            with groups.entered("server"):
                servers[name] = stack.enter_context(run.server(name, options))
        peak = run.until_valid(
            "peak", lambda: run.peak(servers["default"], *SEVERAL)).values["rate"]
        for turn, names in run.turns(MODES):
            for load in run.some(LOADS):
                for name in names:
                    for with_wave in (False, True):
                        one = run.until_valid(
                            f"round {turn} {name} at {load:.0%}" + " with the wave" * with_wave,
                            lambda: measure(run, groups, servers[name], int(peak * load),
                                            with_wave))
                        samples.setdefault((name, load, with_wave), []).append(one)
    for load in run.some(LOADS):
        for name in MODES:
            yield row(samples, name, load)
    curves = {f"{name}{words}": [(load * 100, *point(samples[name, load, wave], "p99"))
                                 for load in run.some(LOADS)]
              for name in MODES for wave, words in ((True, ""), (False, ", alone"))}
    run.plots.append(("curves", "sched", "p99 beside a square wave on the worker's CPU",
                      f"load, % of {peak / 1e3:.0f}k gets of {KEYS} keys/s", "p99, us", curves))


def row(samples, name, load):
    alone, beside = samples[name, load, False], samples[name, load, True]
    base = side.median(values(samples["default", load, True], "p99"))
    target = ""
    if name == "slice:100us" and load < HALF:
        target = f"{SLICE_TARGET:g}"
    elif name == "fifo":
        target = "as alone"
    return [name, f"{load:.0%}", side.spread(values(alone, "p99"), "{:.0f}"),
            side.spread(values(beside, "p99"), "{:.0f}"),
            "" if name == "default" else
            side.spread([p99 / base for p99 in values(beside, "p99")]),
            target, f"{side.median(values(beside, 'share')):.0%}",
            f"{side.median(values(beside, 'server_cpu')):.0%}", verdict(alone + beside)]
