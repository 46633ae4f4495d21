# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What scripts/quickstart shows at its end, of the files in FOLDER: paced.json and flat_out.json
of mcload, the replies to "stats qos" and "stats pin". Exit status: 0, or 1 when a reply was wrong.
usage: quickstart_report.py FOLDER"""
import json
import os
import sys

import side_by_side as side


def result(name):
    with open(os.path.join(sys.argv[1], name + ".json")) as f:
        return json.load(f)


def stats(name):
    with open(os.path.join(sys.argv[1], name)) as f:
        return dict(line.split(None, 2)[1:] for line in f if line.startswith("STAT "))


def time_of(result, name):
    """A percentile that falls among requests never answered is above what is known of it."""
    is_above = name in result["latency"]["intended"]["pct_above"]
    return f"{name} {'above ' if is_above else ''}{side.duration(side.quantile_of(result, name))}"


def main():
    paced, flat, qos, pin = result("paced"), result("flat_out"), stats("qos"), stats("pin")
    totals, errors = paced["totals"], sum(sum(run["errors"].values()) for run in (paced, flat))
    cpus = [value.strip() for name, value in pin.items()
            if name.startswith("pin_worker_") and name.endswith("_cpu")]
    times = [time_of(paced, name) for name in ("p50", "p99", "p99.9")]
    waited = int(qos["qps_delayed"]) / max(int(qos["qps_admitted"]), 1)
    machine = ("idle enough: these times are to be trusted" if paced["valid"] else
               "TOO BUSY to judge the times above; try again when it is idle")
    print(f"""\
threads    {len(cpus)} workers, each on a CPU of its own: {', '.join(cpus)}
asked for  {totals['offered_qps']:,.0f} gets a second; {totals['achieved_qps']:,.0f} were answered, \
{totals['hits'] / max(totals['keys'], 1):.0%} of them with a value
times      {', '.join(times)}
limit      {int(qos['qps_limit']):,} a second (--qps-limit=50k); asked for as many as possible, the server answered \
{flat['totals']['achieved_qps']:,.0f}
waiting    {waited:.0%} of all requests waited for the limit, {float(qos['qps_delay_avg_us']):,.0f} us \
on average; none was refused
errors     {errors}
machine    {machine}""")
    return 1 if errors else 0


sys.exit(main())
