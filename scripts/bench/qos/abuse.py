# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Small gets beside clients that do what no client should."""
import os
import struct
import time
from dataclasses import dataclass

import side_by_side as side

from . import Case
from .neighbours import exchange
from .runner import values, verdict

HEAD = ["beside", "p99 us", "x alone", "Debian's p99 us", "x alone", "served", "Debian's",
        "abuse MB/s", "Debian's", "judgement", "validity"]
RATE = 2000        # small gets a second of the client whose tail counts
WARMUP = 0.5       # seconds
MOST = 5           # times alone that p99 may be, or what it is beside Debian's;
NOISE = 1.25       # and so many times Debian's
ALONE = "alone"
OURS, THEIRS = "ours", "Debian's"
# So that neither runs out of connections or of room for what is stored.
OPTIONS = ["-c", "8192"]


@dataclass
class Pattern:
    """A load of scripts/bench/abuse.c."""
    block: bytes = b""
    connections: int = 50
    chunk: int = 0
    times: int = 0
    reads: str = "all"
    begins_again: bool = False
    stores: tuple = ()      # requests before it
    options: tuple = ()     # of both servers
    ours: tuple = ()        # of ours alone
    udp: bool = False
    token: bool = False     # the servers want one (-Y)


def value(key, size):
    return b"set %s 0 0 %d\r\n%s\r\n" % (key, size, b"v" * size)


def keys(count, form=b"k%05d"):
    return [form % i for i in range(count)]


def packet(opcode, key=b"", extras=b"", body=b""):
    return struct.pack("!BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0,
                       len(extras) + len(key) + len(body), 0, 0) + extras + key + body


def datagram(request):
    return struct.pack("!HHHH", 1, 0, 1, 0) + request


STORED = tuple(value(key, 100) for key in keys(1000))
LARGE = (value(b"large", 1000000),)
NUMBER = (b"set number 0 0 1\r\n0\r\n",)
PREFIXES = tuple(value(b"p%05d:k" % i, 1) for i in range(10000))
GETQ, SETQ, NOOP, SASL_AUTH = 0x09, 0x11, 0x0A, 0x21

PATTERNS = {
    # ---- long control commands
    "stats sizes": Pattern(b"stats sizes\r\n" * 20, 1, stores=STORED,
                           options=("-I", "128m", "-o", "track_sizes")),
    "cachedump": Pattern(b"stats cachedump 5 0\r\n" * 10, 20, stores=STORED),
    "cachedump, unread": Pattern(b"stats cachedump 5 0\r\n" * 10, 100, reads="none",
                                 stores=STORED),
    "metadump, unread": Pattern(b"lru_crawler metadump all\r\n", 50, reads="none", times=1,
                                stores=STORED),
    "stats detail dump": Pattern(b"stats detail dump\r\n" * 4, 20, stores=PREFIXES,
                                 options=("-D", ":")),
    "stats": Pattern(b"stats\r\nstats items\r\nstats slabs\r\nstats settings\r\n", 50),
    "stats conns": Pattern(b"stats conns\r\n", 500),
    "flush_all": Pattern(b"flush_all\r\n" * 50, 20),
    "crawls": Pattern(b"lru_crawler crawl all\r\n" * 20, 20, stores=STORED),
    "slabs reassign": Pattern(b"slabs reassign 5 1\r\nslabs reassign 1 5\r\n" * 20, 20,
                              stores=STORED),
    "qos commands": Pattern(b"qos show\r\nqos qps_limit 1m\r\nqos qps_limit off\r\n" * 10, 20),
    "verbosity": Pattern(b"verbosity 1\r\nverbosity 0\r\n" * 50, 20),
    # ---- parts of requests
    "trickle": Pattern(b"get k00001\r\n", 900, chunk=1),
    "trickle, --slo": Pattern(b"get k00001\r\n", 900, chunk=1, ours=("--slo=p95:500us",)),
    "trickled values": Pattern(value(b"slow", 1000), 900, chunk=1),
    "half requests": Pattern(b"get k0", 5000, times=1),
    "half values": Pattern(b"set half 0 0 1000000\r\nv", 2000, times=1),
    "idle connections": Pattern(b"version\r\n", 5000, times=1),
    "garbage": Pattern(bytes(range(1, 128)) * 40, 50),
    "HTTP": Pattern(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n", 50),
    "long keys": Pattern(b"get " + b"k" * 260 + b"\r\n", 50),
    "endless line": Pattern(b"get" + b" k" * 8000, 50),
    # ---- connections
    "connect and go": Pattern(b"get k00001\r\n", 50, times=1, begins_again=True, reads="none"),
    "watchers": Pattern(b"watch fetchers mutations evictions\r\n", 100, times=1),
    "wrong tokens": Pattern(b"set a 0 0 11\r\nnobody  no!\r\n", 50, token=True),
    "SASL auth": Pattern(packet(SASL_AUTH, b"PLAIN", b"", b"\0nobody\0no"), 50),
    # ---- floods
    "multigets of 1000": Pattern(b"get " + b" ".join(keys(1000)) + b"\r\n", 50, stores=STORED),
    "gets of 1 MB, read slowly": Pattern(b"get large\r\n" * 20, 100, reads="some", stores=LARGE),
    "sets of 1 MB": Pattern(value(b"large", 1000000) * 4, 16),
    "noreply sets": Pattern(b"".join(b"set %s 0 0 10 noreply\r\nvvvvvvvvvv\r\n" % key
                                     for key in keys(200)), 50),
    "touch and gat": Pattern(b"touch k00001 100\r\ngat 100 k00002\r\n" * 50, 50, stores=STORED),
    "incr of one key": Pattern(b"incr number 1\r\n" * 100, 50, stores=NUMBER),
    "cas of one key": Pattern(b"gets number\r\ncas number 0 0 1 1\r\n1\r\n" * 50, 50,
                              stores=NUMBER),
    "append": Pattern(b"append number 0 0 1000\r\n" + b"v" * 1000 + b"\r\n", 20, stores=NUMBER),
    "quiet binary gets": Pattern(b"".join(packet(GETQ, key) for key in keys(200)), 50),
    "quiet binary sets": Pattern(b"".join(packet(SETQ, key, bytes(8), b"v" * 10)
                                          for key in keys(200)), 50),
    "meta mn": Pattern(b"mn\r\n" * 500, 50),
    "UDP": Pattern(datagram(b"get k00001\r\n"), 50, udp=True, stores=STORED),
    "UDP stats": Pattern(datagram(b"stats\r\n"), 50, udp=True),
}


def options_of(pattern, bench, name, udp_port):
    """Of the server, and of the client whose tail counts."""
    options = [*OPTIONS, *pattern.options, *(pattern.ours if name == OURS else ())]
    client = []
    if pattern.udp:
        options += ["-U", str(udp_port)]
    if pattern.token:
        path = os.path.join(bench.work, "tokens")
        with open(path, "w") as f:
            f.write("somebody:secret\n")
        os.chmod(bench.work, 0o755)
        os.chmod(path, 0o644)
        options += ["-Y", path]
        client = ["-U", "somebody", "-P", "secret"]
    return options, client


def beside(run, server, pattern, port, client):
    """One run of both."""
    seconds = run.seconds
    if pattern is None:
        return run.interactive(server, *client, rate=RATE)
    abuse = run.bench.start_abuse(port, pattern, WARMUP + seconds)
    time.sleep(WARMUP)

    def finish():
        output, _ = abuse.communicate(timeout=seconds + 60)
        if abuse.returncode != 0:
            side.fail(f"abuse against {server.name} ended with {abuse.returncode}")
        sent, received, _, took, _ = map(float, output.split())
        return {"moved": (sent + received) / took}, 0

    # The abuse takes what is left of the client's CPU, behind the client at real-time priority.
    return run.interactive(server, *client, rate=RATE, neighbour=finish)


def measure(run, what, pattern, name):
    """One run with a server of its own: what abuse leaves behind is the next one's otherwise."""
    udp_port = side.free_port()
    options, client = options_of(pattern or Pattern(), run.bench, name, udp_port)
    with run.server(name, options, debian=name == THEIRS, client=client) as server:
        if pattern and pattern.stores:
            exchange(server, pattern.stores, b"STORED\r\n")
        port = f"udp:{udp_port}" if pattern and pattern.udp else str(server.port)
        return beside(run, server, pattern, port, client)


def case(run):
    samples = {}
    patterns = {ALONE: None, **{name: PATTERNS[name] for name in run.only}}
    for turn, names in run.turns((OURS, THEIRS)):
        for what, pattern in patterns.items():
            for name in names:
                one = run.until_valid(f"round {turn} {what} {name}",
                                      lambda: measure(run, what, pattern, name))
                samples.setdefault((what, name), []).append(one)
    for what in patterns:
        yield row(samples, what)


def judgement(ours, theirs):
    """Of the p99 of a pattern, in times alone."""
    if ours > MOST:
        return "bad" if ours > theirs * NOISE else "slow, as Debian's"
    return "good" if ours <= theirs * NOISE or ours <= NOISE else "worse than Debian's"


def row(samples, what):
    cells, ratios = [what], {}
    for name in (OURS, THEIRS):
        runs = samples[what, name]
        base = side.median(values(samples[ALONE, name], "p99"))
        ratios[name] = [p99 / base for p99 in values(runs, "p99")]
        cells += [side.spread(values(runs, "p99"), "{:.0f}"), side.spread(ratios[name])]
    both = samples[what, OURS], samples[what, THEIRS]
    cells += [f"{side.median(values(runs, 'served')) * 100:.1f} %" for runs in both]
    if what == ALONE:
        return [*cells, "", "", "", verdict([run for runs in both for run in runs])]
    cells += [f"{side.median(values(runs, 'moved')) / 1e6:.1f}" for runs in both]
    return [*cells, judgement(*(side.median(ratios[name]) for name in (OURS, THEIRS))),
            verdict([run for runs in both for run in runs])]


CASES = {
    "abuse": Case(
        case, HEAD, "Beside abuse",
        f"{RATE} small gets a second, open loop, on 8 connections, measured; beside them "
        "`scripts/bench/abuse.c`, as fast as it can. A server for each run. Targets: p99 at most "
        f"{MOST} times that alone, and not more than beside Debian's memcached.", 2, 2),
}
