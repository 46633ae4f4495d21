# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""A get each millisecond while the server does something to all of its items."""
import contextlib
import os
import socket
import time
from dataclasses import dataclass
from typing import Callable

import side_by_side as side

from . import Case, hiccups
from .runner import ratios, values, verdict

HEAD = ["while", "server", "p50 us", "p99 us", "p99.9 us", "x Debian's", "target", "max us", "target",
        "with the host's: p99.9 us", "max us", "CPUs away", "done", "validity"]
PROBES = 1000          # gets a second
CONNECTIONS = 64       # so that a get is sent though so many wait
P999_MOST, MOST = 1000, 3000  # us
REALTIME_LIMIT = "/proc/sys/kernel/sched_rt_runtime_us"
AWAY_MOST = 0.10       # of the time, by the host: what piles up meanwhile stays in the figures
ITEMS = 4000000        # stored before each of the events
FEW_ITEMS = 100000     # with --quick
VALUE, OTHER_VALUE = 100, 3000
FILL_RATE, REFILL_RATE, SHIFT_RATE = 250000, 100000, 10000  # sets a second
MEMORY, SMALL_MEMORY = 2048, 256
PAUSE = 0.05           # seconds between one statistic and the next
PATIENCE = 300         # seconds to store them
WARMUP = 1             # seconds of the probe's, in which the bench looks at it, which takes ms
MARGIN = 0.3           # seconds from the end of an event to that of the probe
LOAD = ["--noload", "-T", 1, "-c", 16, "-d", 8]
MANY = ["--key-prefix=many", "-V", VALUE]
OURS, THEIRS = "memcached-qos", "Debian's memcached"


def items_of(run):
    return FEW_ITEMS if run.quick else ITEMS


# ---- events -------------------------------------------------------------------------------

def ask(server, line, ends=(b"END\r\n",)):
    """Reads the reply up to one of the ends; which one."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as s:
        s.sendall(line + b"\r\n")
        tail = b""
        while True:
            got = s.recv(1 << 20)
            if not got:
                side.fail(f"{server.name} hung up")
            tail = (tail + got)[-64:]
            for end in ends:
                if tail.endswith(end):
                    return end


def repeated(once):
    """An event as often as it ends before the time is over, once at least."""
    def act(run, server, until):
        done = once(server)
        while time.monotonic() < until:
            done += once(server)
        return done
    return act


def nothing(server):
    """What the machine itself does to a get."""
    time.sleep(PAUSE)
    return 1


def crawl(server):
    if ask(server, b"lru_crawler crawl all", (b"OK\r\n", b"request\r\n")) != b"OK\r\n":
        time.sleep(PAUSE)
        return 0
    while side.stats(server.port, "")["lru_crawler_running"] != "0":
        time.sleep(PAUSE)
    return 1


def statistics(server):
    items = side.stats(server.port, "items")
    side.stats(server.port, "slabs")
    for name in items:
        if name.endswith(":number"):
            ask(server, b"stats cachedump %d 0" % int(name.split(":")[1]))
    time.sleep(PAUSE)
    return 1


def dump(server):
    ends = b"END\r\n", b"request\r\n"
    return int(ask(server, b"lru_crawler metadump all", ends) == ends[0])


def start_store(run, server, until, rate, *options):
    """Sets at this rate; what ends them, and says how many were answered."""
    seconds = max(1, round(until - time.monotonic()))
    load = run.bench.start_load(server, "-t", seconds, *LOAD, "-u", 1, "-q", rate, *options)
    return lambda: side.requests_of(run.bench.finish_load(load, seconds + 60))


def store(*how):
    return start_store(*how)()


def fill(run, server, until):
    return store(run, server, until, FILL_RATE, *MANY, "-r", FILL_RATE * run.seconds, "--popularity=seq")


def refill(run, server, until):
    ask(server, b"flush_all", (b"OK\r\n",))
    done = crawl(server)
    return done and store(run, server, until, REFILL_RATE, *MANY, "-r", items_of(run), "--popularity=seq")


def classes_of(server):
    """The slab class with most pages, and that of the other values; None: not yet."""
    slabs = side.stats(server.port, "slabs")
    pages = {int(name.split(":")[0]): int(value) for name, value in slabs.items()
             if name.endswith(":total_pages")}
    large = [number for number in pages if int(slabs[f"{number}:chunk_size"]) > OTHER_VALUE]
    return max(pages, key=pages.get), min(large, default=None)


def shift(run, server, until):
    """To values of another size, whose class is given pages one after the other; how many."""
    end = start_store(run, server, until, SHIFT_RATE, "--key-prefix=other", "-V", OTHER_VALUE,
                      "-r", (SMALL_MEMORY << 20) // OTHER_VALUE, "--popularity=seq")
    while time.monotonic() < until:
        source, to = classes_of(server)
        if to is not None and to != source:
            side.command(server.port, f"slabs reassign {source} {to}")
        time.sleep(PAUSE)
    end()
    return int(side.stats(server.port, "")["slabs_moved"])


@dataclass
class Event:
    """act: given the runner, the server and until when; how much was done, in units."""
    act: Callable
    unit: str
    options: tuple = ("-m", str(MEMORY))
    items: Callable = None  # how many are stored before, given the runner


EVENTS = {
    "no other work": Event(repeated(nothing), "times", items=items_of),
    "fill and growth of the table": Event(fill, "sets", ("-m", str(MEMORY), "-o", "hashpower=16")),
    "crawl of all classes": Event(repeated(crawl), "crawls", items=items_of),
    "stats items and slabs and cachedump": Event(repeated(statistics), "times", items=items_of),
    "metadump of all": Event(repeated(dump), "dumps", items=items_of),
    "flush_all and crawl and refill": Event(refill, "sets", items=items_of),
    "pages move after a shift of sizes": Event(
        shift, "pages", ("-m", str(SMALL_MEMORY)), lambda run: (SMALL_MEMORY << 20) // VALUE),
}


# ---- measuring ----------------------------------------------------------------------------

def fill_up(run, server, items):
    """Of a memory that is full some sets are refused by Debian's memcached."""
    run.bench.load(server, PATIENCE, *LOAD, "-u", 1, *MANY, "-r", items, "--popularity=seq", "--until", f"n:{items}")


@contextlib.contextmanager
def unlimited_realtime():
    """By default the kernel stops what has a real-time priority for 50 ms of a second."""
    with open(REALTIME_LIMIT) as f:
        before = f.read()

    def set_to(limit):
        with open(REALTIME_LIMIT, "w") as f:
            f.write(limit)

    set_to("-1")
    try:
        yield
    finally:
        set_to(before)


def measure(run, event, name):
    """One run with a server of its own. The client that has it do something shares its CPUs, which in
    practice is elsewhere: with a real-time priority no worker waits for it."""
    path = os.path.join(run.bench.work, "latencies")
    with run.server(name, event.options, debian=name == THEIRS, threads=4, realtime=1,
                    cpus=f"{side.SERVER_CPU},{side.CLIENT_CPU}") as server:
        if event.items:
            fill_up(run, server, event.items(run))
        with hiccups.watched(run.bench) as gaps:
            begin = time.monotonic() + WARMUP
            probe = run.start_interactive(server, "-i", "fixed", "-c", CONNECTIONS, "-w", WARMUP,
                                          "--latency-from=intended", f"--save={path}", rate=PROBES)
            time.sleep(max(0, begin - time.monotonic()))
            done = event.act(run, server, begin + run.seconds - MARGIN)
            outlasts = time.monotonic() > begin + run.seconds + MARGIN
            one = run.finish_interactive(probe, is_shared=True)
    # The host's part is taken out, and what the client is late else is a part of the latency.
    one.faults = [fault for fault in one.faults if not fault.startswith(("sent ", "steal "))]
    one.values["done"] = done
    one.values.update(hiccups.without(gaps, probe.process.json_path, path))
    if done < (2 if outlasts else 1):
        one.faults.append(f"no whole {event.unit}")
    if one.values["away"] > AWAY_MOST:
        one.faults.append(f"CPUs away {one.values['away']:.1%}")
    return one


def case(run):
    if os.geteuid() != 0:
        side.fail("a real-time priority and seeing when a CPU is away take root: run this as root")
    samples = {}
    with unlimited_realtime():
        for turn, names in run.turns((OURS, THEIRS)):
            for what in run.only:
                for name in names:
                    samples.setdefault((what, name), []).append(run.until_valid(
                        f"round {turn} {what}: {name}", lambda: measure(run, EVENTS[what], name)))
    for what in run.only:
        for name in (OURS, THEIRS):
            yield row(samples, what, name)


def row(samples, what, name):
    runs = samples[what, name]
    is_ours = name == OURS
    cells = {value: side.spread(values(runs, value), "{:.0f}") for value in
             ("own_p50", "own_p99", "own_p999", "own_max", "p999", "max")}
    return [what, name, cells["own_p50"], cells["own_p99"], cells["own_p999"],
            ratios(runs, samples[what, THEIRS], "own_p999") if is_ours else "",
            f"<= {P999_MOST}" if is_ours else "", cells["own_max"], f"<= {MOST}" if is_ours else "",
            cells["p999"], cells["max"], side.spread([value * 100 for value in values(runs, "away")], "{:.1f} %"),
            f"{side.median(values(runs, 'done')):,.0f} {EVENTS[what].unit}", verdict(runs)]


CASES = {
    "stalls": Case(
        case, HEAD, "Stalls",
        f"{PROBES} gets a second, evenly, on {CONNECTIONS} connections, from their intended start; "
        f"{ITEMS:,} items with values of {VALUE} bytes, 4 worker threads on 2 CPUs, a server for each run. The "
        "servers have SCHED_RR, so that no worker waits for the client that asks for the rest. "
        f"Fill: {FILL_RATE:,} sets a second, from 2^16 buckets on. Refill: {REFILL_RATE:,} a second. Shift: -m "
        f"{SMALL_MEMORY} full of them, then values of {OTHER_VALUE} bytes, {SHIFT_RATE:,} a second, and `slabs "
        f"reassign` to their class, up to {1 / PAUSE:g} a second. "
        "The host of a virtual machine takes its CPUs away for a time, which `scripts/bench/hiccups.c` sees; of "
        "each latency the part in which one was away is left out, but for the columns \"with the host's\".", 3, 17),
}
