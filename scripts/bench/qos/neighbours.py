# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Small gets beside a neighbour that takes all it can get."""
import random
import socket
import time
from dataclasses import dataclass

import side_by_side as side

from . import theory
from .runner import RATE, point, ratios, values, verdict

HEAD = ["beside", "server", "p99 us", "sent late us", "x alone", "target", "predicted p99 us",
        "served", "neighbour MB/s", "x Debian's", "server CPU", "client CPU", "validity"]
WARMUP = 1
ALONE = "alone"
MULTIGETS = "multigets of 50 keys, 50 connections"
LARGE_GETS = "8 pipelined gets of 100 KB, 32 connections"


@dataclass
class Neighbour:
    """A load of scripts/bench/greedy.c: equally long requests with equally long replies."""
    connections: int
    depth: int
    requests: list
    stores: list       # requests that store what the others ask for
    queue: str         # the class whose turns a small get may meet
    target: float      # of the p99, times alone
    reply_bytes: int = 0
    takes: str = "drop"  # what becomes of replies (greedy.c)


def key_of(kind, i):
    return b"%s-%08d" % (kind, i)


def store(kind, i, size):
    return b"set %s 0 0 %d\r\n%s\r\n" % (key_of(kind, i), size, b"v" * size)


def multigets(keys, records, count, kind=b"multi"):
    draw = random.Random(1)
    for _ in range(count):
        wanted = (key_of(kind, draw.randrange(records)) for _ in range(keys))
        yield b"get " + b" ".join(wanted) + b"\r\n"


def all_neighbours():
    stores = [store(b"multi", i, 200) for i in range(10000)]
    large = [store(b"large", i, 102400) for i in range(200)]
    huge = [store(b"huge", i, 1000000) for i in range(16)]
    return {
        MULTIGETS:
            Neighbour(50, 1, list(multigets(50, 10000, 500)), stores, "bulk", 1.5),
        LARGE_GETS:
            Neighbour(32, 8, [b"get %s\r\n" % key_of(b"large", i) for i in range(200)], large,
                      "bulk", 1.5),
        f"{LARGE_GETS}, read into a buffer":
            Neighbour(32, 8, [b"get %s\r\n" % key_of(b"large", i) for i in range(200)], large,
                      "bulk", 1.5, takes="read"),
        "4 pipelined sets of 1 MB, 4 connections":
            Neighbour(4, 4, huge, huge, "bulk", 1.5),
        # On loopback a few connections keep the client busier than the server.
        "4 pipelined sets of 1 MB, 32 connections":
            Neighbour(32, 4, huge, huge, "bulk", 1.5),
        "64 pipelined small gets, 16 connections":
            Neighbour(16, 64, list(multigets(1, 10000, 6400)), stores, "small", 2),
    }


def exchange(server, requests, last):
    """Sends them one by one; the reply to the last, which ends with the bytes given."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as s:
        for request in requests:
            s.sendall(request)
            reply = b""
            while not reply.endswith(last):
                got = s.recv(1 << 20)
                if not got:
                    side.fail(f"{server.name} hung up")
                reply += got
    return reply


def prepare(server, neighbour):
    """Stores what it asks for and learns how long its replies are."""
    exchange(server, neighbour.stores, b"STORED\r\n")
    first = neighbour.requests[0]
    end = b"END\r\n" if first.startswith(b"get ") else b"STORED\r\n"
    neighbour.reply_bytes = len(exchange(server, [first], end))


def moved_by(neighbour, output):
    """Bytes a second both ways, and the share of a CPU that it took."""
    requests, seconds, cpu = map(float, output.split())
    size = len(neighbour.requests[0]) + neighbour.reply_bytes
    return requests * size / seconds, cpu


def beside(run, server, neighbour):
    """One run of both."""
    seconds = run.seconds
    greedy = run.bench.start_greedy(server, neighbour, WARMUP, seconds)
    time.sleep(WARMUP)

    def finish():
        output, _ = greedy.communicate(timeout=seconds + 60)
        if greedy.returncode != 0:
            side.fail(f"greedy against {server.name} ended with {greedy.returncode}")
        moved, cpu = moved_by(neighbour, output)
        return {"moved": moved}, cpu

    one = run.interactive(server, server_limited=True, neighbour=finish)
    one.values["turn"] = side.stats(server.port, "classes").get(
        f"class_{neighbour.queue}_service_p99_us")
    return one


VARIANTS = {
    "classes on": {},
    "classes off": {"options": ["--classes=off"]},
    "Debian's memcached": {"debian": True},
}
OURS, OFF, THEIRS = VARIANTS


def sample(run, variants, neighbours):
    """{(what is beside, server): [one run a round]}"""
    samples = {}
    for turn, names in run.turns(variants):
        for what, neighbour in neighbours.items():
            for name in names:
                with run.server(name, **variants[name]) as server:
                    if neighbour:
                        prepare(server, neighbour)
                    one = run.until_valid(
                        f"round {turn}, {what}: {name}",
                        lambda: beside(run, server, neighbour) if neighbour
                        else run.interactive(server))
                samples.setdefault((what, name), []).append(one)
    return samples


def case(run):
    neighbours = {ALONE: None, **all_neighbours()}
    samples = sample(run, VARIANTS, neighbours)
    for what, neighbour in neighbours.items():
        for name in VARIANTS:
            yield row(samples, what, neighbour, name)
    run.plots.append((
        "bars", "neighbours", f"p99 of {RATE} small gets a second, alone and beside", "p99, us",
        {what: {name: point(samples[what, name], "p99") for name in VARIANTS}
         for what in neighbours}))


def row(samples, what, neighbour, name):
    runs = samples[what, name]
    cells = [what, name, *(side.spread(values(runs, value), "{:.0f}") for value in ("p99", "late"))]
    served = f"{side.median(values(runs, 'served')) * 100:.1f} %"
    cpus = [f"{side.median(values(runs, cpu)) * 100:.0f} %"
            for cpu in ("server_cpu", "client_cpu")]
    if neighbour is None:
        return [*cells, "", "", "", served, "", "", *cpus, verdict(runs)]
    alone = samples[ALONE, name]
    base = side.median(values(alone, "p99"))
    predicted = ""
    if name == OURS:
        turn = side.median([float(one.values["turn"] or 0) for one in runs])
        predicted = f"{base + theory.residual_p99(turn):.0f}"
    return [*cells, ratios(runs, alone, "p99"), f"{neighbour.target:g}", predicted, served,
            f"{side.median(values(runs, 'moved')) / 1e6:.0f}",
            "" if name == THEIRS else ratios(runs, samples[what, THEIRS], "moved"), *cpus, verdict(runs)]
