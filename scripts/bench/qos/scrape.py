# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Small gets while something scrapes /metrics."""
import concurrent.futures
import threading
import time
import urllib.request

import side_by_side as side

from .runner import values, verdict

HEAD = ["beside", "p99 us", "x alone", "target", "mean us", "scrapes/s", "ms each", "server CPU",
        "client CPU", "validity"]
RATE = 10    # scrapes a second
KEPT = 0.95  # of them, at least
ACCEPT = "application/openmetrics-text;version=1.0.0"  # what Prometheus prefers
ALONE, AGAIN, SCRAPED = "alone", "alone, again", f"{RATE} scrapes a second"
VARIANTS = (ALONE, AGAIN, SCRAPED)


def scrape(port, ends):
    """Until it ends; scrapes a second, and the seconds that each took."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": ACCEPT})
    took, begin = [], time.monotonic()
    due = begin
    while not ends.wait(max(0, due - time.monotonic())):
        start = time.monotonic()
        with urllib.request.urlopen(request, timeout=60) as reply:
            reply.read()
        took.append(time.monotonic() - start)
        due += 1 / RATE
    return len(took) / (time.monotonic() - begin), took


def measure(run, server, port):
    """port: of what is scraped; None: nothing is."""
    if port is None:
        return run.interactive(server)
    ends = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        scrapes = pool.submit(scrape, port, ends)
        try:
            one = run.interactive(server)
        finally:
            ends.set()
        rate, took = scrapes.result()
    one.values.update(scrapes=rate, took=side.median(took) * 1e3)
    if rate < RATE * KEPT:
        one.faults.append(f"{rate:.1f} scrapes a second")
    return one


def ratios(samples, name):
    """Of each round, by the run alone of the same round."""
    pairs = list(zip(samples[name], samples[ALONE]))
    good = [pair for pair in pairs if not pair[0].faults + pair[1].faults] or pairs
    return [one.values["p99"] / alone.values["p99"] for one, alone in good]


def case(run):
    """All on one process: where its memory happens to lie is the same for all."""
    samples = {name: [] for name in VARIANTS}
    port = side.free_port()
    with run.server("ours", [f"--admin=127.0.0.1:{port}"]) as server:
        for turn, names in run.turns(VARIANTS):
            for name in names:
                samples[name].append(run.until_valid(
                    f"round {turn} {name}",
                    lambda: measure(run, server, port if name == SCRAPED else None)))
    for name in VARIANTS:
        yield row(samples, name)


def row(samples, name):
    runs = samples[name]
    noise = ratios(samples, AGAIN)
    compared = side.spread(ratios(samples, name)) if name != ALONE else ""
    target = f"{min(noise):.2f}-{max(noise):.2f}" if name == SCRAPED else ""
    scraped = [f"{side.median(values(runs, what)):.1f}" if name == SCRAPED else ""
               for what in ("scrapes", "took")]
    cpus = [f"{side.median(values(runs, cpu)):.0%}" for cpu in ("server_cpu", "client_cpu")]
    return [name, side.spread(values(runs, "p99"), "{:.0f}"), compared, target,
            f"{side.median(values(runs, 'mean')):.0f}", *scraped, *cpus, verdict(runs)]
