# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What the guests showed, as sections of a document: a line for each kernel and scheduler."""
import os
import textwrap

import side_by_side as side
import svg

from .experiments import BROKEN, EXPERIMENTS, FAIR, GRID_LOADS, NEAR, is_valid, judge_grid, judge_pairs, judge_shares
from .results import lacking, read, rows_of, version_of

NAME = "lab guest"
TITLE = "On other kernels"
INTRODUCTION = f"""\
## {TITLE}

Measured by `scripts/lab guest KERNEL EXPERIMENT`: the server, mcload and the other programs of the lab in virtual machines
with one CPU, whose clock counts instructions, so that the times depend neither on this machine nor on its load. They
are not those of any processor. Each round has other arrivals and keys; of several, figures are the median (lowest-highest).
`scripts/lab report --guests FILE` writes this section from doc/lab/guests, where each round has a file; `scripts/lab list`
says which are missing.

An asterisk is at what mcload calls an invalid run. It has 16 connections, and shares the CPU with the server: where no
reply has come on any of them it sends later than it is to, and says so when that is more than 1 ms for 5 % of the requests, as it does
when less than 99 % were answered, or the second half of the run was slower than the first by half. Six runs
like these, on Linux 6.1 with a later build, were made to know the reasons: each time it was one of these, and never that mcload
was late for want of the CPU, which it has before all others. Times count from when a request was due, so that such a p95 is what clients waited for; but the load of the
column was not kept, and a run longer than its one second might show more. It shows that a time is long, and never counts as
kept."""


def spread(values, form="{:,.0f}"):
    """The median, and of several the range."""
    return side.spread(values, form) if len(values) > 1 else form.format(*values)


def p95(point):
    return point.get("begun_us", point["done_us"])["p95"]


def loads_of(result):
    return sorted(int(name.partition("-")[2]) for name in result["points"] if name.startswith("beside-"))


def p95s(rounds, name):
    return [p95(one["points"][name]) for one in rounds]


def mark(rounds, name):
    return "" if all(is_valid(one["points"][name]) for one in rounds) else "*"


FROM = ["rounds", "server"]


def origin_of(rounds):
    """Cells under FROM: how many, and of which versions of the server."""
    return [len(rounds), ", ".join(sorted({one["commit"] for one in rounds}))]


def pairs(rows, experiment):
    loads = loads_of(next(iter(rows.values()))[0])
    lines = [[*names, *(f"{spread(p95s(rounds, f'beside-{load}'))}{mark(rounds, f'beside-{load}')} / "
                        f"{side.median(p95s(rounds, f'alone-{load}')):,.0f}{mark(rounds, f'alone-{load}')}"
                        for load in loads), f"{min(one['verdict']['near_to'] for one in rounds)} %", *origin_of(rounds)]
             for names, rounds in rows.items()]
    return (f"p95 in us, {experiment.pair} (of this the median only), at parts of the peak. Kept to: the load up to which the "
            f"first is {NEAR} times the other one, at most, in each round.",
            ["kernel", "--sched", *(f"{load} %" for load in loads), "kept to", *FROM], lines)


def parts(sums):
    """-: there is no such cell."""
    there = [one for one in sums if one is not None]
    return spread(there) + " %" if there else "-"


def refused(one):
    return sum(not is_valid(one["points"][f"{ours}+{theirs}"]) for ours in GRID_LOADS for theirs in GRID_LOADS)


def cells(rows, _):
    lines = [[*names, spread([len(one["verdict"]["good"]) for one in rounds]), spread([refused(one) for one in rounds]),
              *(parts([one["verdict"][sum_of] for one in rounds]) for sum_of in ("most_good", "least_bad")),
              *origin_of(rounds)]
             for names, rounds in rows.items()]
    return (f"Cells of 25 (10, 30, 50, 70 and 90 % of the peak of each) in which the p95 of both is {BROKEN} times that at low "
            "load, at most; the largest sum of both loads among them, and the smallest among the others. *: cells whose run mcload calls invalid; none of them is kept.",
            ["kernel", "--sched", "cells kept", "*", "up to", "lost from", *FROM], lines)


def shares(rows, _):
    lines = [[*names, spread([one["verdict"]["share"] for one in rounds], "{:.1%}"), *origin_of(rounds)]
             for names, rounds in rows.items()]
    return (f"Share of the first; fair is 50 %, within {FAIR:.0%}.", ["kernel", "--sched", "share", *FROM], lines)


FORMS = {judge_pairs: pairs, judge_grid: cells, judge_shares: shares}


def origin(every):
    """Which kernels, and what was measured again with the same seed."""
    whole = [one for one in every if "verdict" in one]
    said = f"Kernels: {', '.join(sorted({one['kernel'] for one in whole}, key=lambda name: (version_of(name), name)))}."
    again = [one["difference"] for one in whole if one.get("runs", 1) > 1]
    if again:
        said += (f" Of {len(whole)} results {len(again)} {'has' if len(again) == 1 else 'have'} a second run with the same arrivals and keys "
                 f"in the file; no figure differed by more than {max(again):.2%}. Of others that were run again the text below tells.")
    return said


def shown(folder, plots):
    """Of all results of that folder, for each experiment: its title, remark, head and lines of a table, the file of its
    plot or None, and what was found. Plots go into the other folder."""
    every = read(folder)
    for name, experiment in EXPERIMENTS.items():
        rows = rows_of(every, name)
        if not rows:
            continue
        form = FORMS[experiment.judge]
        file = None
        if form is pairs:
            file = f"lab-guest-{name}.svg"
            os.makedirs(plots, exist_ok=True)
            svg.curves(os.path.join(plots, file), f"In guests: {name}", "% of the peak", "p95, us", {
                ": ".join(names): [(load, side.median(p95s(rounds, f"beside-{load}")), not mark(rounds, f"beside-{load}")) for load in loads_of(rounds[0])]
                for names, rounds in rows.items()})
        remark, head, lines = form(rows, experiment)
        remark = " ".join(filter(None, [remark, lacking(every, name)]))
        yield experiment.what[0].upper() + experiment.what[1:], remark, head, lines, file, experiment.found


def sections(folder, plots):
    """The same as paragraphs of Markdown."""
    parts = []
    for title, remark, head, lines, file, found in shown(folder, plots):
        parts += [f"### {title}", remark, side.render(head, lines, markdown=True)]
        parts += [f"![{title}](plots/{file})"] if file else []
        parts += [textwrap.fill(found, 108)] if found else []
    return [INTRODUCTION, origin(read(folder)), *parts] if parts else []
