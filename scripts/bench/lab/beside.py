# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Antagonists and batch jobs of the lab: what runs beside the server, and what it got done."""
import contextlib
import os
import time
from dataclasses import dataclass

import side_by_side as side

from .rows import over

FOREVER = "100000"
KB, MB = 1 << 10, 1 << 20


@dataclass
class Job:
    """argv: of a program or script of antagonists/. where: the CPU that it has, "server", "client", "sibling" (of
    the server's, another thread of its core) or "everywhere"."""
    argv: tuple
    where: str = "server"


def spinner():
    """Straight code that fits any cache: CPU time alone."""
    return Job(("code", str(4 * KB)))


def batch_jobs(machine):
    """Twelve stand-ins of SPEC by what they do to caches, {name: (class of the paper, Job)}; the sizes are
    parts of this machine's caches."""
    l2, l3 = machine.cache("L2", MB), machine.cache("L3", 8 * MB)
    return {
        "spin": ("insensitive", spinner()), "code": ("insensitive", Job(("code", str(96 * KB)))),
        "float": ("insensitive", Job(("float", "100000"))),
        "walk-l2": ("friendly", Job(("walk", str(l2)))), "triad-l2": ("friendly", Job(("triad", str(2 * l2)))),
        "sort-l2": ("friendly", Job(("sort", str(l2)))),
        "walk-half-l3": ("fitting", Job(("walk", str(l3 // 2)))), "triad-l3": ("fitting", Job(("triad", str(l3)))),
        "join-half-l3": ("fitting", Job(("join", str(l3 // 2)))),
        "walk-4-l3": ("streaming", Job(("walk", str(4 * l3)))),
        "triad-4-l3": ("streaming", Job(("triad", str(4 * l3)))),
        "stencil-4-l3": ("streaming", Job(("stencil", str(4 * l3)))),
    }


@dataclass
class Started:
    process: object
    work: float = 0.0      # a second, when it has ended
    work_cpu: float = 0.0  # a second of CPU time

    def cpu(self):
        return side.cpu_time_with_children(self.process.pid)


def cpus_of(lab, where):
    """As taskset takes them."""
    if where == "everywhere":
        return lab.every_cpu
    if where == "sibling":
        return str(next(cpu for cpu in lab.machine.core if cpu != side.SERVER_CPU))
    return str(side.SERVER_CPU if where == "server" else side.CLIENT_CPU)


def program_of(lab, name):
    """Of antagonists/: compiled, if it is no script."""
    script = os.path.join(side.TOP, "scripts/bench/lab/antagonists", name)
    return script if os.path.exists(script) else lab.bench.compiled(f"lab/antagonists/{name}")


@contextlib.contextmanager
def running(lab, *jobs):
    """The jobs run for as long as the block; what they did is known behind it. On the client's CPU they
    have what the client leaves."""
    started = []
    for job in jobs:
        name, *args = job.argv
        idle = ["chrt", "--idle", "0"] if job.where == "client" else []
        started.append(Started(lab.bench.start_beside(
            ["taskset", "-c", cpus_of(lab, job.where), *idle, program_of(lab, name), *args, FOREVER])))
    for one in started:
        if one.process.stdout.readline() != "ready\n":
            side.fail(f"{' '.join(one.process.args)} did not start")
    try:
        yield started
    finally:
        for one in started:
            one.process.terminate()
        for one in started:
            said, _ = one.process.communicate(timeout=60)
            if one.process.returncode != 0:
                side.fail(f"{one.process.args} ended with {one.process.returncode}: {said}")
            work, seconds, cpu = map(float, said.split()[:3])
            one.work, one.work_cpu = work / seconds, over(work, cpu)


def alone(lab, job, seconds=0.5):
    """Work a second of a job that has the server's CPU for itself, as fast as the machine is now."""
    with running(lab, job) as started:
        time.sleep(seconds)
    return started[0].work
