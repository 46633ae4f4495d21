# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Command line and output of scripts/bench-qos and bench-abuse."""
import argparse
import json
import os
import re
import sys
import textwrap
import time

import side_by_side as side
import svg

from .runner import Runner

COLUMNS = 96


def script():
    return os.path.basename(sys.argv[0])


def arguments(description, cases, parts):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", metavar="LIST", default="all",
                        help="of " + ",".join(cases) + "; all is the default")
    if parts:
        parser.add_argument("--only", metavar="LIST", help="of " + ",".join(parts))
    parser.add_argument("--rounds", type=side.count, help="of all servers of a case")
    parser.add_argument("--seconds", type=side.count, help="of each run")
    parser.add_argument("--retries", type=side.natural, default=6,
                        help="of invalid runs, in each case (6)")
    parser.add_argument("--quick", action="store_true",
                        help="one short round: does the script work? Figures mean nothing")
    parser.add_argument("--build", default=os.path.join(side.TOP, "build"))
    parser.add_argument("--server-cpu", type=int, choices=(0, 1), default=0,
                        help="of the servers; clients have the other (0). Choose the one that "
                        "the system's own services use less")
    parser.add_argument("--markdown", metavar="FILE",
                        help="put each table into its section of FILE, and plots beside it, "
                        "into plots/")
    parser.add_argument("--plots", metavar="FOLDER", help="put the plots there")
    parser.add_argument("--json", metavar="FILE", help="put all tables there as well")
    return parser.parse_args()


def draw(runner, folder):
    """Writes the plots of the case; their names."""
    os.makedirs(folder, exist_ok=True)
    for kind, name, *plot in runner.plots:
        svg.KINDS[kind](os.path.join(folder, name + ".svg"), *plot)
    return [(name, title) for _, name, title, *_ in runner.plots]


def without_invalid(head, rows):
    """The rows that had a valid round, and lines about the others, with the reasons."""
    at = head.index("validity")
    kept, lines = [], []
    for row in rows:
        all_bad = re.match(r"INVALID (\d+)/\1: (.*)", row[at])
        if all_bad:
            lines.append(f"- {', '.join(str(cell) for cell in row[:2])}: {all_bad[2]}")
        else:
            kept.append(row)
    return kept, ["Left out, as no round was valid:\n\n" + "\n".join(lines)] if lines else []


def run_case(bench, name, case, args):
    runner = Runner(bench, args, case.rounds, case.seconds)
    start = time.monotonic()
    rows = list(case.measure(runner))
    print(f"\n{case.title}\n{case.remark}\n{side.render(case.head, rows)}\n"
          f"({time.monotonic() - start:.0f} s)", flush=True)
    folder = args.plots
    if args.markdown and not folder:
        folder = os.path.join(os.path.dirname(args.markdown), "plots")
    plots = draw(runner, folder) if folder else []
    if args.markdown:
        remarks = textwrap.wrap(
            f"`scripts/{script()} --cases {name} --rounds {runner.rounds} --seconds "
            f"{runner.seconds}`, {side.machine()}, servers on CPU {side.SERVER_CPU}; median of the valid rounds (lowest-highest). "
            + case.remark, COLUMNS)
        kept, left_out = without_invalid(case.head, rows)
        side.put_markdown(args.markdown, f"{script()} {name}", case.title, remarks, case.head,
                          kept, *left_out,
                          *[f"![{title}](plots/{plot}.svg)" for plot, title in plots])


    return {"case": name, "title": case.title, "rounds": runner.rounds,
            "seconds": runner.seconds, "machine": side.machine(),
            "rows": [dict(zip(case.head, row)) for row in rows]}


def chosen(text, names, what):
    """The names of the list, which are of those."""
    wanted = list(names) if text in (None, "all") else text.split(",")
    unknown = set(wanted) - set(names)
    if unknown:
        side.fail(f"no such {what}: " + ", ".join(sorted(unknown)))
    return wanted


def main(description, cases, parts=()):
    """parts: of what a case consists, for --only."""
    args = arguments(description, cases, parts)
    names = chosen(args.cases, cases, "case")
    if parts:
        args.only = chosen(args.only, parts, "pattern")
    side.SERVER_CPU, side.CLIENT_CPU = args.server_cpu, 1 - args.server_cpu
    side.need_two_cpus()
    # The servers' CPU is theirs alone.
    os.sched_setaffinity(0, {side.CLIENT_CPU})
    tables = []
    side.end_on_signals()
    with side.Bench(args.build) as bench:
        bench.keep_awake()
        for name in names:
            tables.append(run_case(bench, name, cases[name], args))
    if args.json:
        with open(args.json, "w") as f:
            json.dump(tables, f, indent=1)
