# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What the guests showed, as sections of a document: a line for each kernel and scheduler."""
import glob
import json
import os
import re
import textwrap

import side_by_side as side
import svg

from .experiments import BROKEN, EXPERIMENTS, FAIR, NEAR, SCHEDULERS
from .kernels import KERNELS, possible

NAME = "lab guest"
TITLE = "On other kernels"
INTRODUCTION = f"""\
## {TITLE}

Measured by `scripts/lab guest KERNEL EXPERIMENT`: the server, mcload and the other programs of the lab in virtual machines
with one CPU, whose clock counts instructions, so that the times depend neither on this machine nor on its load. They
are not those of any processor. Each round has other arrivals and keys; of several, figures are the median (lowest-highest).
`scripts/lab report --guests FILE` writes this section."""


def read(folder):
    """The results of that folder, whole ones or not, by kernel, in the order of SCHEDULERS and of rounds."""
    found = []
    for path in glob.glob(os.path.join(folder, "guest-*.json")):
        with open(path, encoding="utf-8") as f:
            found.append(json.load(f))
    order = list(SCHEDULERS)
    return sorted((one for one in found if "kernel" in one),
                  key=lambda one: (version_of(one), patch_of(one), order.index(one["sched"]), one["round"]))


def rows_of(results):
    """{(kernel, --sched): the rounds that have a verdict}"""
    rows = {}
    for one in results:
        if "verdict" in one:
            rows.setdefault(names_of(one), []).append(one)
    return rows


def version_of(result):
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", result["kernel"]).groups()))


def patch_of(result):
    scheduler = SCHEDULERS[result["sched"]]
    return "sched_ext-bvt" if scheduler.rules is not None else "linux-6.1-bvt" if scheduler.has_hrtick else ""


def names_of(result):
    """(kernel, --sched)"""
    patch = patch_of(result)
    return ("{}.{}".format(*version_of(result)) + (f", patches/{patch}" if patch else ""),
            SCHEDULERS[result["sched"]].server.partition("=")[2] or "default")


def lacking(every, experiment):
    """Which rows an experiment has not, and why not if a guest said so; a sentence, or nothing."""
    newest = max(every, key=version_of)["kernel"]
    could = [{"kernel": newest if name == "newest" else name, "sched": sched} for name in KERNELS for sched in possible(name)]
    could += [{"kernel": "6.1", "sched": sched} for sched, s in SCHEDULERS.items() if s.has_hrtick]
    results = [one for one in every if one["experiment"] == experiment]
    there = rows_of(results)
    errors = {names_of(one): f" ({next(iter(one['errors'].values()))})" for one in results if one.get("errors")}
    kernels = {}
    for kernel, sched in map(names_of, could):
        if (kernel, sched) not in there:
            kernels.setdefault(kernel, []).append(sched + errors.get((kernel, sched), ""))
    said = "; ".join(f"{kernel} with {', '.join(names)}" for kernel, names in kernels.items())
    return f"Not measured: {said}." if said else ""


def spread(values, form="{:,.0f}"):
    """The median, and of several the range."""
    return side.spread(values, form) if len(values) > 1 else form.format(*values)


def p95(point):
    return point.get("begun_us", point["done_us"])["p95"]


def loads_of(result):
    return sorted(int(name.partition("-")[2]) for name in result["points"] if name.startswith("beside-"))


def p95s(rounds, name):
    return [p95(one["points"][name]) for one in rounds]


FROM = ["rounds", "server"]


def origin_of(rounds):
    """Cells under FROM: how many, and of which versions of the server."""
    return [len(rounds), ", ".join(sorted({one["commit"] for one in rounds}))]


def pairs(rows, experiment):
    loads = loads_of(next(iter(rows.values()))[0])
    lines = [[*names, *(f"{spread(p95s(rounds, f'beside-{load}'))} / {side.median(p95s(rounds, f'alone-{load}')):,.0f}"
                        for load in loads), f"{min(one['verdict']['near_to'] for one in rounds)} %", *origin_of(rounds)]
             for names, rounds in rows.items()]
    return (f"p95 in us, {experiment.pair} (of this the median only), at parts of the peak. Kept to: the load up to which the "
            f"first is {NEAR} times the other one, at most, in each round.",
            ["kernel", "--sched", *(f"{load} %" for load in loads), "kept to", *FROM], lines)


def cells(rows, _):
    lines = [[*names, spread([len(one["verdict"]["good"]) for one in rounds]),
              *(spread([one["verdict"][sum_of] for one in rounds]) + " %" for sum_of in ("most_good", "least_bad")),
              *origin_of(rounds)]
             for names, rounds in rows.items()]
    return (f"Cells of 25 (10, 30, 50, 70 and 90 % of the peak of each) in which the p95 of both is {BROKEN} times that at low "
            "load, at most; the largest sum of both loads among them, and the smallest among the others.",
            ["kernel", "--sched", "cells kept", "up to", "lost from", *FROM], lines)


def shares(rows, _):
    lines = [[*names, spread([one["verdict"]["share"] for one in rounds], "{:.1%}"), *origin_of(rounds)]
             for names, rounds in rows.items()]
    return (f"Share of the first; fair is 50 %, within {FAIR:.0%}.", ["kernel", "--sched", "share", *FROM], lines)


FORMS = {"ratio": pairs, "good": cells, "share": shares}  # by what a verdict has


def origin(every):
    """Which kernels, and what was measured again with the same seed."""
    results = [one for one in every if "verdict" in one]
    kernels = sorted({one["kernel"] for one in results}, key=lambda name: version_of({"kernel": name}))
    said = f"Kernels: {', '.join(kernels)}."
    again = [one["difference"] for one in results if one.get("runs", 1) > 1]
    if again:
        said += (f" {len(again)} of {len(results)} results were measured again with the same arrivals and keys; no figure "
                 f"differed by more than {max(again):.2%}.")
    return said


def shown(folder, plots):
    """Of all results of that folder, for each experiment: its title, remark, head and lines of a table, the file of its
    plot or None, and what was found. Plots go into the other folder."""
    every = read(folder)
    for name, experiment in EXPERIMENTS.items():
        rows = rows_of(one for one in every if one["experiment"] == name)
        if not rows:
            continue
        form = next(form for key, form in FORMS.items() if key in next(iter(rows.values()))[0]["verdict"])
        file = None
        if form is pairs:
            file = f"lab-guest-{name}.svg"
            os.makedirs(plots, exist_ok=True)
            svg.curves(os.path.join(plots, file), f"In guests: {name}", "% of the peak", "p95, us", {
                ": ".join(names): [(load, side.median(p95s(rounds, f"beside-{load}")), True) for load in loads_of(rounds[0])]
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
