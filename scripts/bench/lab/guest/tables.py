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

NAME = "lab guest"
TITLE = "On other kernels"
INTRODUCTION = f"""\
## {TITLE}

Measured by `scripts/lab guest KERNEL EXPERIMENT`: the server, mcload and the other programs of the lab in virtual machines
with one CPU, whose clock counts instructions, so that the times depend neither on this machine nor on its load. They
are not those of any processor. `scripts/lab report --guests FILE` writes this section."""


def read(folder):
    """The results of that folder, by kernel and in the order of SCHEDULERS."""
    found = []
    for path in glob.glob(os.path.join(folder, "guest-*.json")):
        with open(path, encoding="utf-8") as f:
            found.append(json.load(f))
    order = list(SCHEDULERS)
    return sorted((one for one in found if "verdict" in one),
                  key=lambda one: (version_of(one), patch_of(one), order.index(one["sched"])))


def version_of(result):
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", result["kernel"]).groups()))


def patch_of(result):
    scheduler = SCHEDULERS[result["sched"]]
    return "sched_ext-bvt" if scheduler.rules is not None else "linux-6.1-bvt" if scheduler.has_hrtick else ""


def names_of(result):
    """[kernel, --sched]"""
    patch = patch_of(result)
    return ["{}.{}".format(*version_of(result)) + (f", patches/{patch}" if patch else ""),
            SCHEDULERS[result["sched"]].server.partition("=")[2] or "default"]


def p95(point):
    return point.get("begun_us", point["done_us"])["p95"]


def loads_of(result):
    return sorted(int(name.partition("-")[2]) for name in result["points"] if name.startswith("beside-"))


def pairs(results, experiment):
    loads = loads_of(results[0])
    lines = [[*names_of(one), *(f"{p95(one['points'][f'beside-{load}']):,.0f} / {p95(one['points'][f'alone-{load}']):,.0f}"
                                for load in loads), f"{one['verdict']['near_to']} %"] for one in results]
    return (f"p95 in us, {experiment.pair}, at parts of the peak. Kept to: the load up to which the first is {NEAR} times the "
            "other one, at most.", ["kernel", "--sched", *(f"{load} %" for load in loads), "kept to"], lines)


def cells(results, _):
    lines = [[*names_of(one), len(one["verdict"]["good"]), f"{one['verdict']['most_good']} %", f"{one['verdict']['least_bad']} %"]
             for one in results]
    return (f"Cells of 25 (10, 30, 50, 70 and 90 % of the peak of each) in which the p95 of both is {BROKEN} times that at low "
            "load, at most; the largest sum of both loads among them, and the smallest among the others.",
            ["kernel", "--sched", "cells kept", "up to", "lost from"], lines)


def shares(results, _):
    lines = [[*names_of(one), f"{one['verdict']['share']:.1%}"] for one in results]
    return (f"Share of the first; fair is 50 %, within {FAIR:.0%}.", ["kernel", "--sched", "share"], lines)


FORMS = {"ratio": pairs, "good": cells, "share": shares}  # by what a verdict has


def origin(results):
    """Which kernels, and versions of the server."""
    kernels = sorted({one["kernel"] for one in results}, key=lambda name: version_of({"kernel": name}))
    commits = sorted({one["commit"] for one in results if one.get("commit")})
    return f"Kernels: {', '.join(kernels)}; server: {', '.join(commits)}."


def shown(folder, plots):
    """Of all results of that folder, for each experiment: its title, remark, head and lines of a table, the file of its
    plot or None, and what was found. Plots go into the other folder."""
    every = read(folder)
    for name, experiment in EXPERIMENTS.items():
        results = [one for one in every if one["experiment"] == name]
        if not results:
            continue
        form = next(form for key, form in FORMS.items() if key in results[0]["verdict"])
        file = None
        if form is pairs:
            file = f"lab-guest-{name}.svg"
            os.makedirs(plots, exist_ok=True)
            svg.curves(os.path.join(plots, file), f"In guests: {name}", "% of the peak", "p95, us", {
                ": ".join(names_of(one)): [(load, p95(one["points"][f"beside-{load}"]), True) for load in loads_of(one)]
                for one in results})
        yield (experiment.what[0].upper() + experiment.what[1:], *form(results, experiment), file, experiment.found)


def sections(folder, plots):
    """The same as paragraphs of Markdown."""
    parts = []
    for title, remark, head, lines, file, found in shown(folder, plots):
        parts += [f"### {title}", remark, side.render(head, lines, markdown=True)]
        parts += [f"![{title}](plots/{file})"] if file else []
        parts += [textwrap.fill(found, 108)] if found else []
    return [INTRODUCTION, origin(read(folder)), *parts] if parts else []
