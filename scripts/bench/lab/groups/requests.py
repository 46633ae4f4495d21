# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Forms of requests: pipelined, several keys in one, over UDP, values from small to large, one
to many items."""
import side_by_side as side

from ..rows import Point, Row, over

DEPTHS = (1, 32)
KEYS = (1, 2, 4, 8, 16, 32, 64)
OUTSTANDING = (1, 2, 4, 8, 16)
SIZES = (64, 256, 1024, 4096, 16384, 65536)
ITEMS = (10_000, 100_000, 1_000_000)
PIPELINED = 2    # times the requests without
MULTIGET = 1.25  # times the keys of single gets
FLAT = 0.8       # of the most keys, by 64
UDP = 1.3        # times TCP with 4 outstanding
ITEMS_LEAST = 0.5  # of the rate with few items, with many


def pipelined(depth):
    def run(lab):
        with lab.bare_server(["-t", "1"]) as server:
            return lab.flat_out(server, "-d", depth)
    return run


def multiget(keys):
    def run(lab):
        with lab.bare_server(["-t", "1"]) as server:
            one = lab.flat_out(server, f"--getcount={keys}", limit=None)
            one.values["keys"] = one.values["rate"] * keys
            return one
    return run


def outstanding(transport, requests):
    """So many at once, each of a client of its own, as of the paper: TCP has as many packets as UDP."""
    def run(lab):
        port = side.free_port()
        with lab.bare_server(["-t", "1", "-U", str(port)] if transport == "udp" else ["-t", "1"]) as server:
            if transport == "udp":
                server.target = lambda: f"udp://127.0.0.1:{port}"
            return lab.flat_out(server, "-c", requests, limit=None)
    return run


def sized(size):
    def run(lab):
        records = ["--key-prefix=small", "-r", 1000, "-V", size]
        with lab.bare_server(["-t", "1"], fill=records) as server:
            return lab.flat_out(server, *records, limit=None)
    return run


def filled(items):
    def run(lab):
        records = ["--key-prefix=small", "-r", items]
        with lab.bare_server(["-t", "1"], fill=[*records, "-c", 4, "-d", 32]) as server:
            return lab.flat_out(server, *records)
    return run


def points(lab):
    yield from (Point(f"depth-{depth}", pipelined(depth)) for depth in DEPTHS)
    yield from (Point(f"keys-{keys}", multiget(keys)) for keys in lab.some(KEYS) + [16] * lab.quick)
    for requests in lab.some(OUTSTANDING) + [4] * lab.quick:
        yield from (Point(f"{name}-at-once-{requests}", outstanding(name, requests)) for name in ("tcp", "udp"))
    yield from (Point(f"bytes-{size}", sized(size)) for size in lab.some(SIZES))
    yield from (Point(f"items-{items}", filled(items)) for items in lab.some(ITEMS))


def pipelining(points):
    ratio = points.ratio("depth-32", "depth-1", "rate")
    return f"{ratio:.1f}x: {points('depth-32', 'rate') / 1e6:.2f}M against {points('depth-1', 'rate') / 1e6:.2f}M", {
        f"{PIPELINED}x the requests": ratio >= PIPELINED}


def multigets(points):
    best = points.ratio("keys-16", "keys-1", "keys")
    names = ["keys-64", *(f"keys-{keys}" for keys in KEYS[:-1] if points.has(f"keys-{keys}"))]
    last = points.by_round(names, "keys", lambda rates: over(rates[0], max(rates)))
    return f"{best:.1f}x the keys/s with 16, {last:.0%} of the most with 64", {
        f"16 keys bring {MULTIGET}x the keys of single gets": best >= MULTIGET,
        "it is flat at 64": last >= FLAT}


def multigets_plots(points):
    yield ("curves", "Keys in a get", "keys", "million keys/s",
           {"this server": points.curve("keys-{}", KEYS, "keys", 1e-6)}, "log", "linear")


def datagrams(points):
    ratios = {n: points.ratio(f"udp-at-once-{n}", f"tcp-at-once-{n}", "rate")
              for n in OUTSTANDING if points.has(f"udp-at-once-{n}", f"tcp-at-once-{n}")}
    four = points.ratio("udp-at-once-4", "tcp-at-once-4", "rate")
    return "UDP / TCP: " + ", ".join(f"{ratio:.2f}x with {n}" for n, ratio in ratios.items()), {
        "UDP does no less than TCP": min(ratios.values()) >= 1, f"{UDP}x with 4 outstanding": four >= UDP}


def datagrams_plots(points):
    yield ("curves", "Requests at once, each of another client", "requests", "thousand gets/s", {
        name.upper(): points.curve(name + "-at-once-{}", OUTSTANDING, "rate", 1e-3)
        for name in ("tcp", "udp")}, "log", "linear")


def sizes(points):
    small, large = (f"bytes-{size}" for size in (SIZES[0], SIZES[-1]))
    part = points.ratio(f"items-{ITEMS[-1]}", f"items-{ITEMS[0]}", "rate")
    return (f"64 bytes {points(small, 'bytes') / 1e6:.0f} MB/s, 64 KB {points(large, 'bytes') / 1e6:.0f} MB/s; "
            f"{ITEMS[-1] / 1e6:g}M items {part:.0%} of the rate with 10,000"), {
        "the rate falls with the size": points.ratio(large, small, "rate") < 1,
        "the bytes rise": points.ratio(large, small, "bytes") > 1,
        "many items cost less than half": part >= ITEMS_LEAST}


def sizes_plots(points):
    yield ("curves", "Size of values", "bytes", "gets/s",
           {"this server": points.curve("bytes-{}", SIZES, "rate")}, "log", "log")
    yield ("curves", "Number of items", "items", "thousand gets/s",
           {"this server": points.curve("items-{}", ITEMS, "rate", 1e-3)}, "log", "linear")


ROWS = [
    Row("D 2.4, E 2.4", "pipelining", "3.0M pipelined against 1.1M",
        f"32 requests at a time: >= {PIPELINED}x those one at a time", pipelining, needs=("cpus",)),
    Row("SF Fig 12", "keys in a get", "16 keys are best, +25 %",
        f"keys/s: 16 keys >= {MULTIGET}x single gets, 64 keys >= {FLAT:.0%} of the most", multigets,
        multigets_plots, ("cpus",)),
    Row("SF Fig 13", "UDP and TCP", "UDP >= TCP, +30 % with 4 outstanding",
        f"UDP no less than TCP with 1 to 16 outstanding, {UDP}x with 4", datagrams, datagrams_plots, ("cpus",),
        "Over loopback a request takes two packets with either, by the kernel's counters (TcpOutSegs, UdpOutDatagrams): "
        "acknowledgements go with the data, and no packet makes an interrupt. What is left is the kernel's work. With 4 outstanding "
        "the server's CPU is the limit, and a request takes 5.0 to 5.2 us of it with TCP, 4.2 to 4.7 with UDP (6.8 and 5.8 in the fifth round). With 2 wake-ups decide: "
        "UDP did as much as TCP in the first round, 15 to 46 % less in the others. From the third on the kernel counts 1.3 to 1.7 context "
        "switches a request with UDP and 0.1 to 0.5 with TCP, so that server and client slept between two requests with the one and "
        "seldom with the other."),
    Row("004 sizes", "values and items", "throughput by size of values and number of items",
        "the rate falls and the bytes rise with the size; with 1M items at least half of the rate with 10,000",
        sizes, sizes_plots, ("cpus",)),
]
