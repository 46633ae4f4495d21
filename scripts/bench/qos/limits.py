# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The limit on requests, and the target for their waiting time."""
import contextlib
import os
import socket
import time

import side_by_side as side

from . import theory
from .runner import (CLIENT_CHECKS, CLIENT_CPU_MAX, KEYS, SEVERAL, SMALL, Run, Watch, values,
                     verdict)

# ---- the limit ----------------------------------------------------------------------------

LIMIT_HEAD = ["limit", "offered", "of the limit", "worst window", "GCRA bound", "target",
              "`version` p99 us", "validity"]
RATES = (100, 1000, 10000, 50000, None)  # None: half of the peak
FACTORS = (1.2, 3)
WINDOW = 1  # seconds
CONTROL_GAP = 0.01
# Requests that have waited before the first window: what the bucket had saved up is used then, and
# there is a queue that arrivals at random do not empty any more.
QUEUED = 200


@contextlib.contextmanager
def at_realtime():
    """This process on the client's CPU, ahead of the client."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {side.CLIENT_CPU})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cpus)


class Control:
    """A connection of its own for commands."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.replies = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.replies.close()
        self.socket.close()

    def version(self):
        """Seconds that it takes."""
        at = time.monotonic()
        self.socket.sendall(b"version\r\n")
        self.replies.readline()
        return time.monotonic() - at

    def counted(self, what):
        """(when, the counter of `stats qos`); the time is that of the middle of the exchange."""
        before = time.monotonic()
        self.socket.sendall(b"stats qos\r\n")
        got = 0
        for line in iter(self.replies.readline, b"END\r\n"):
            if line.startswith(b"STAT %s " % what):
                got = int(line.split()[2])
        return (before + time.monotonic()) / 2, got

    def admitted(self):
        """(when, requests admitted so far)"""
        return self.counted(b"qps_admitted")

    def await_queue(self, delayed, seconds):
        """Until more than QUEUED were delayed since there were so many."""
        end = time.monotonic() + seconds
        while self.counted(b"qps_delayed")[1] < delayed + QUEUED and time.monotonic() < end:
            time.sleep(CONTROL_GAP)


def watch_limit(server, rate, seconds):
    """In windows of a second: the share of the limit that was admitted; and how long
    `version` took meanwhile, microseconds."""
    shares, taken = [], []
    with at_realtime(), Control(server) as control:
        at, count = control.admitted()
        for _ in range(seconds):
            while time.monotonic() < at + WINDOW:
                taken.append(control.version())
                time.sleep(CONTROL_GAP)
            now, after = control.admitted()
            shares.append((after - count) / (now - at) / rate)
            at, count = now, after
    return shares, sorted(taken)[int(len(taken) * 0.99)] * 1e6


def under_limit(run, server, rate, factor):
    side.command(server.port, f"qos qps_limit {rate}")
    warmup = 1.5 + 2 * QUEUED / rate
    with Control(server) as control:
        _, delayed = control.counted(b"qps_delayed")
        load = run.bench.start_load(server, "-t", run.seconds + 1 + warmup, "--noload", "-T", 1,
                                    "-c", 64, "-q", int(rate * factor), *SMALL)
        time.sleep(1)
        control.await_queue(delayed, warmup - 1)
    watch = Watch(run.bench, server)
    shares, version = watch_limit(server, rate, run.seconds)
    cpu, faults = watch.server_cpu()
    result = run.bench.finish_load(load, run.seconds + 60)
    side.command(server.port, "qos qps_limit off")
    faults += [f"mcload: {check['name']}" for check in result["checks"]
               if not check["ok"] and check["name"] in CLIENT_CHECKS]
    client = side.client_cpu_of(result)
    if client >= CLIENT_CPU_MAX:
        faults.append(f"client CPU {client:.0%}")
    return Run({"share": sum(shares) / len(shares), "version": version, "server_cpu": cpu,
                "client_cpu": client,
                "error": max(abs(share - 1) for share in shares)}, faults)


def limiter(run):
    samples = {}
    with run.server("memcached-qos") as server:
        half = int(run.until_valid("peak", lambda: run.peak(server)).values["rate"] / 2)
        rates = [rate or half for rate in run.some(RATES)]
        for turn in range(1, run.rounds + 1):
            for rate in rates:
                for factor in run.some(FACTORS):
                    one = run.until_valid(f"round {turn} limit {rate} offered {factor}x",
                                          lambda: under_limit(run, server, rate, factor))
                    samples.setdefault((rate, factor), []).append(one)
    for (rate, factor), runs in samples.items():
        yield [f"{rate:,}" + (" (half of the peak)" if rate == half else ""), f"{factor:g}x",
               side.spread([share * 100 for share in values(runs, "share")], "{:.2f}") + " %",
               f"{max(values(runs, 'error')):.2%}", f"{theory.gcra_error(rate, 1):.2%}", "1 %",
               side.spread(values(runs, "version"), "{:.0f}"), verdict(runs)]


# ---- SLO mode -----------------------------------------------------------------------------

SLO_HEAD = ["server", "offered", "answered/s", "of the peak", "of what the SLO allows",
            "target", "p95 us", "p99 of the answered us", "refused", "validity"]
SLO_US = 1000
GOODPUT_MIN = 0.9
# The peak is one of full batches: the most that keeps a latency is below it.
ALLOWED_SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3)
SLO_VARIANTS = {"SLO off": [], f"SLO p99 {SLO_US} us": [f"--slo=p99:{SLO_US}us"]}
CONNECTIONS, BATCH = 64, 8
SATURATED, STEP = 0.95, 1.3
# By how much this client itself sends late: a tenth of the SLO. While it takes replies it sends
# nothing, so it is later than one that does little.
LATE_P99_MAX_US = SLO_US / 10
CALM = 0.5        # of the peak, after the overload
RECOVERY = 1      # seconds that the server has for noticing


def wanted():
    """A get of several of the small records, as mcload names them."""
    keys = (b"small%025d" % (7 * i) for i in range(KEYS))
    return b"get " + b" ".join(keys) + b"\r\n"


def offer(run, server, rate, warmup=WINDOW):
    """That many gets of several keys a second, open loop, in small batches."""
    watch = Watch(run.bench, server)
    result = run.bench.overload(server, wanted(), CONNECTIONS, BATCH, rate, warmup, run.seconds)
    cpu, faults = watch.server_cpu()
    if result["busy"] >= CLIENT_CPU_MAX:
        faults.append(f"client CPU {result['busy']:.0%}")
    if result["late"] > LATE_P99_MAX_US:
        faults.append(f"sent {result['late']:.0f} us late")
    return Run({"rate": result["served"], "p95": result["p95"], "p99": result["p99"],
                "refused": result["refused"] / max(1, result["refused"] + result["served"]),
                "server_cpu": cpu, "client_cpu": result["busy"], "late": result["late"]}, faults)


def peak_of(run, server, rate):
    """What is answered when more is offered, from a rate that can be kept."""
    while True:
        one = run.until_valid(f"{rate:.0f}/s offered", lambda: offer(run, server, rate))
        if one.values["rate"] < SATURATED * rate or run.quick:
            return one.values["rate"]
        rate *= STEP


def allowed_rate(run, server, peak):
    """The highest of some rates at which all is served and p99 keeps the SLO."""
    for share in run.some(ALLOWED_SHARES):
        one = run.until_valid(f"{share:.0%} of the peak",
                              lambda: offer(run, server, peak * share))
        if one.values["p99"] <= SLO_US and one.values["rate"] >= 0.99 * share * peak:
            break
    return one.values["rate"]


def slo(run):
    samples, allowed, peaks = {}, [], []
    for turn, names in run.turns(SLO_VARIANTS):
        with contextlib.ExitStack() as stack:
            servers = {name: stack.enter_context(run.server(name, SLO_VARIANTS[name]))
                       for name in names}
            plain = servers["SLO off"]
            rate = run.until_valid(f"round {turn} closed loop", lambda: run.peak(
                plain, "-d", 4, *SEVERAL)).values["rate"]
            peak = peak_of(run, plain, rate)
            peaks.append(peak)
            allowed.append(allowed_rate(run, plain, peak))
            for name in names:
                for factor, warmup in ((2, WINDOW), (CALM, RECOVERY)):
                    one = run.until_valid(
                        f"round {turn} {name} at {factor}x {peak:.0f}/s",
                        lambda: offer(run, servers[name], factor * peak, warmup))
                    one.values["of_peak"] = one.values["rate"] / peak
                    one.values["share"] = one.values["rate"] / allowed[-1]
                    samples.setdefault((name, factor), []).append(one)
    yield ["the most that keeps it", "", side.spread(allowed, "{:.0f}"),
           side.spread([most / peak for most, peak in zip(allowed, peaks)]), *[""] * 6]
    for (name, factor), runs in samples.items():
        is_over = factor > 1
        target = f">= {GOODPUT_MIN:g}, <= {SLO_US} us" if is_over else "none refused"
        yield [name, f"{factor:g}x {side.median(peaks) / 1e3:.0f}k/s",
               side.spread(values(runs, "rate"), "{:.0f}"),
               side.spread(values(runs, "of_peak")),
               side.spread(values(runs, "share")) if is_over else "",
               target if name != "SLO off" else "",
               side.spread(values(runs, "p95"), "{:.0f}"),
               side.spread(values(runs, "p99"), "{:.0f}"),
               f"{side.median(values(runs, 'refused')):.1%}", verdict(runs)]
