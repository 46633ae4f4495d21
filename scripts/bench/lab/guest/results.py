# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""What guests have measured. They measure the same on any machine, so the repository has it: a file for each kernel,
experiment, scheduler and round, written once the round is whole. What is missing can be told, and measured
anywhere."""
import glob
import json
import os
import re

import side_by_side as side

from .. import store
from .experiments import EXPERIMENTS, SCHEDULERS, missing, plan
from .kernels import KERNELS, possible

FOLDER = os.path.join(side.TOP, "doc/lab/guests")
PATCHED = "FOLDER/bzImage"  # of patches/linux-6.1-bvt/build FOLDER
NONE = "0.0"  # the newest kernel while there are no results


def add_folder(parser):
    parser.add_argument("--guest-results", metavar="FOLDER", default=FOLDER,
                        help="where those of guests are (doc/lab/guests)")


# ---- files --------------------------------------------------------------------------------

def name_of(release, experiment, sched, turn):
    """Of a file, without its end. release: of the kernel, of which updates are no other one."""
    return "{}.{}-{}-{}.{}".format(*version_of(release), experiment, sched, turn)


def loaded(path, form):
    """form of what is in that file."""
    return store.loaded(path, form, "scripts/lab guest")


def begun(path):
    """What a round that is not whole has so far; None: there is no such file."""
    return loaded(path, lambda result: {**result, "points": {**result["points"]}}) if os.path.exists(path) else None


def stored(path):
    """A round that is whole; None: there is no such file."""
    return loaded(path, judged) if os.path.exists(path) else None


def judged(result):
    """Its points, as they are judged now, whatever was thought of them when they were measured. Where one was refused there
    is no verdict."""
    result = {name: value for name, value in result.items() if name != "verdict"}
    names_of(result)
    for name in "round", "commit":
        if name not in result:
            raise KeyError(name)
    lost = missing(plan(EXPERIMENTS[result["experiment"]], SCHEDULERS[result["sched"]]), result["points"])
    if lost:
        raise KeyError(lost[0])
    if not result["errors"]:
        result["verdict"] = EXPERIMENTS[result["experiment"]].judge(result["points"])
    return result


def lines_of(values, indent):
    return ",\n".join(f"{indent}{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())


def save(result, path):
    """A line for each point."""
    facts = {name: value for name, value in result.items() if name != "points"}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write("{\n" + lines_of(facts, " ") + ',\n "points": {\n' + lines_of(result["points"], "  ") + "\n }\n}\n")
    os.rename(path + ".new", path)


def read(folder):
    """All of them by kernel, in the order of SCHEDULERS and of rounds."""
    found = [stored(path) for path in glob.glob(os.path.join(folder, "*.json"))]
    order = list(SCHEDULERS)
    return sorted(found, key=lambda one: (version_of(one["kernel"]), patch_of(one["sched"]),
                                          order.index(one["sched"]), one["round"]))


# ---- rows ---------------------------------------------------------------------------------

def version_of(release):
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is None:
        raise ValueError(f"{release} is no release of a kernel")
    return tuple(map(int, found.groups()))


def patch_of(sched):
    scheduler = SCHEDULERS[sched]
    return "sched_ext-bvt" if scheduler.rules is not None else "linux-6.1-bvt" if scheduler.has_hrtick else ""


def names_of(result):
    """(kernel, --sched)"""
    patch = patch_of(result["sched"])
    return ("{}.{}".format(*version_of(result["kernel"])) + (f", patches/{patch}" if patch else ""),
            SCHEDULERS[result["sched"]].server.partition("=")[2] or "default")


def rows_of(every, experiment):
    """{(kernel, --sched): the rounds of that experiment that have a verdict}"""
    rows = {}
    for one in every:
        if one["experiment"] == experiment and "verdict" in one:
            rows.setdefault(names_of(one), []).append(one)
    return rows


# ---- what is missing ----------------------------------------------------------------------

def possible_rows(every):
    """[(a kernel, as scripts/lab guest takes it, or the one of patches/linux-6.1-bvt; what a result of it has)]. The
    newest kernel is the newest of the results."""
    newest = max((one["kernel"] for one in every), key=version_of, default=NONE)
    rows = [(name, {"kernel": newest if name == "newest" else name, "sched": sched})
            for name in KERNELS for sched in possible(name)]
    return rows + [(PATCHED, {"kernel": "6.1", "sched": sched}) for sched, s in SCHEDULERS.items() if s.has_hrtick]


def untried(every, experiment):
    """{kernel as above: schedulers} of which there is no file."""
    def key(one):
        return version_of(one["kernel"]), one["sched"]

    tried = {key(one) for one in every if one["experiment"] == experiment}
    found = {}
    for kernel, row in possible_rows(every):
        if key(row) not in tried:
            found.setdefault(kernel, []).append(row["sched"])
    return found


def commands(every, experiment):
    """What measures them."""
    for kernel, scheds in untried(every, experiment).items():
        some = "" if scheds == possible(kernel) else "".join(f" --sched {name}" for name in scheds)
        yield f"scripts/lab guest {kernel} {experiment}{some}"


def lacking(every, experiment):
    """Which rows an experiment has not, and why not if a guest said so; a sentence, or nothing."""
    there = rows_of(every, experiment)
    errors = {names_of(one): f" ({next(iter(one['errors'].values()))})" for one in every
              if one["experiment"] == experiment and one["errors"]}
    kernels = {}
    for _, row in possible_rows(every):
        names = names_of(row)
        if names not in there:
            kernels.setdefault(names[0], []).append(names[1] + errors.get(names, ""))
    said = "; ".join(f"{kernel} with {', '.join(names)}" for kernel, names in kernels.items())
    return f"Not measured: {said}." if said else ""
