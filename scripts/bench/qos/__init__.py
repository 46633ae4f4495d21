# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""The cases of scripts/bench-qos, in the order in which they run."""
from dataclasses import dataclass
from typing import Callable

from . import balance, costs, curve, fair, headroom, limits, neighbours, scheduling, scrape
from .runner import KEYS, RATE


@dataclass
class Case:
    """measure: yields the rows of the table, given a Runner. rounds and seconds by default."""
    measure: Callable
    head: list
    title: str
    remark: str
    rounds: int
    seconds: int


CASES = {
    "neighbours": Case(
        neighbours.case, neighbours.HEAD, "Beside a greedy neighbour",
        f"{RATE} small gets a second, open loop, on 8 connections, measured; the neighbour is "
        "`scripts/bench/greedy.c`. Targets beside that of p99: all served, the neighbour's "
        "bytes at least 0.95x Debian's. Predicted: p99 alone and 99 % of a turn of deferred "
        "work as `stats classes` has it.", 3, 4),
    "limiter": Case(
        limits.limiter, limits.LIMIT_HEAD, "The limit",
        "64 connections, open loop; windows of a second by the server's own count. Target: "
        "every window within 1 %, `version` below 1 ms. The bound is that of the algorithm "
        "with one worker.", 2, 4),
    "slo": Case(
        limits.slo, limits.SLO_HEAD, "Twice the capacity",
        f"{limits.CONNECTIONS} connections, gets of {KEYS} keys, {limits.BATCH} at a time at "
        "random times, whatever the replies do (`scripts/bench/overload.c`); at "
        f"{limits.CALM}x measured from {limits.RECOVERY} s after the overload. Targets: p99 of "
        "the answered at most the SLO, at least 0.9 of the most that keeps it without "
        "refusing; no request refused after the overload.", 3, 2),
    "sched": Case(
        scheduling.case, scheduling.HEAD, "A square wave on the worker's CPU",
        f"A batch job that wants {scheduling.BUSY_MS} of every {scheduling.PERIOD_MS} ms; it "
        "and the server are in control groups with equal shares of CPU time. Batch share: of what "
        "it wants. Load in parts "
        f"of the peak of a closed loop of gets of {KEYS} keys.", 2, 3),
    "balance": Case(
        balance.case, balance.HEAD, "A slow worker",
        f"Two workers on two CPUs, {balance.RATE} gets of {KEYS} keys a second on "
        f"{balance.CONNECTIONS} connections; measured from 2 s after the upset. The client has "
        "one of the CPUs at real-time priority for as long as it wants, which the table shows, and "
        "the worker there what it leaves: so the load is light.", 3, 3),
    "headroom": Case(
        headroom.case, headroom.HEAD, "Headroom",
        f"Gets of {KEYS} keys, open loop on {headroom.CONNECTIONS} connections, in parts of the "
        "peak of a closed loop; what `stats qos` says of them, beside "
        "what the kernel says of the server's CPU time and the client of latency.", 2, 3),
    "cost": Case(
        costs.case, costs.HEAD, "On, and nothing binding",
        f"{costs.CONNECTIONS} connections, closed loop; each feature beside everything off, "
        "started together; a round has a ratio each.", 6, 1),
    "fair": Case(
        fair.case, fair.HEAD, "Two tenants",
        f"Gets of {fair.KEYS} keys in closed loops (`scripts/bench/greedy.c`): one tenant has "
        f"{fair.MANY} connections, the other {fair.FEW}.", 5, 3),
    "scrape": Case(
        scrape.case, scrape.HEAD, "Beside a monitor",
        f"{RATE} small gets a second, open loop, on 8 connections, while /metrics is read; the "
        "thread of the HTTP server has the worker's CPU. Each ratio is of two runs of a round. "
        "Target: what a second run alone is of the first.", 6, 5),
    "curve": Case(
        curve.case, curve.HEAD, "Latency against load",
        f"Gets of {KEYS} keys on {curve.CONNECTIONS} connections beside one with "
        f"{curve.OTHER_RATE} multigets of {curve.OTHER_KEYS} keys a second, all open loop. "
        "M/G/1: mean wait by the formula of Pollaczek and Khinchine, with the CPU time of a "
        "request as its service time.", 2, 3),
}
