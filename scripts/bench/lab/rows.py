# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Rows of the lab: a table or figure of a paper, what has to be seen here for it to be
reproduced, and the verdict that stored results give it."""
import re
from dataclasses import dataclass, field
from typing import Callable

import side_by_side as side
from qos.runner import point

REPRODUCED, NOT_REPRODUCED, NOT_APPLICABLE, INVALID, NOT_RUN = (
    "reproduced", "not reproduced", "not applicable", "INVALID", "not run")
CLAIMS = (REPRODUCED, NOT_REPRODUCED)

# Faults of a client that had no CPU to spare.
CLIENT_SHORT = re.compile(r"client CPU |sent .* late")
SERVED = 0.999  # of its requests


class Unmeasured(Exception):
    """A criterion wanted a point that has no results."""


@dataclass(frozen=True)
class Point:
    """What is measured in each round. measure: takes the Lab, gives a Run. cost: how many runs
    of the usual length it takes, to tell the time that is left. needs: as of a Row."""
    name: str
    measure: Callable
    cost: int = 1
    needs: tuple = ()


@dataclass(frozen=True)
class Row:
    """judge: takes Points, gives (headline, {claim: does it hold}). plots: takes Points, gives
    what svg.py draws, (kind, suffix of the name, title, arguments...). needs: of the machine, as
    in machine.NEEDS. why: what was found out where it is not reproduced on a machine that has been tried.
    guest: the experiment of scripts/lab guest that shows it on other kernels. A row without judge has no experiment yet."""
    label: str
    title: str
    paper: str
    when: str
    judge: Callable = None
    plots: Callable = None
    needs: tuple = ()
    why: str = ""
    guest: str = ""

    @property
    def slug(self):
        return "lab-" + "".join(c if c.isalnum() else "-" for c in self.label.lower())


def over(value, base):
    """Their ratio; no number, which fulfils no claim, without a base."""
    return value / base if base else float("nan")


def is_valid(run):
    return not run.faults


def is_bound(run):
    """Valid, or wrong only in that its client was short of CPU: that makes latencies longer, and changes nothing else
    as long as all is served."""
    return is_valid(run) or (run.values.get("served", 0) >= SERVED and all(map(CLIENT_SHORT.match, run.faults)))


class Points:
    """The results of a group, {point: [Run]}; remembers what is wrong with those that were used, and
    how many valid rounds the one of them has that has the fewest."""

    def __init__(self, runs, machine):
        self.runs, self.machine, self.faults, self.rounds = runs, machine, set(), None

    def turns(self):
        return sorted({run.turn for runs in self.runs.values() for run in runs})

    def alone(self, turn):
        """Those of one round."""
        return Points({name: [run for run in runs if run.turn == turn] for name, runs in self.runs.items()}, self.machine)

    def of(self, name, is_good=is_valid):
        """The rounds that are good, or all."""
        runs = self.runs.get(name)
        if not runs:
            raise Unmeasured(name)
        good = list(filter(is_good, runs))
        self.rounds = len(good) if self.rounds is None else min(len(good), self.rounds)
        if not good:
            self.faults |= {fault for run in runs for fault in run.faults}
        return good or runs

    def __call__(self, name, value, is_good=is_valid):
        """The median of the good rounds."""
        runs = self.of(name, is_good)
        if not all(value in run.values for run in runs):
            raise Unmeasured(f"{name}: {value}")  # by an older version
        return side.median([run.values[value] for run in runs])

    def at_most(self, name, value):
        """For a claim that a latency is low enough, or of what a job did beside the service: a client that was short of
        CPU can have made it harder only."""
        return self(name, value, is_bound)

    def ratio(self, name, base, value):
        """The median of those of each round, as the machine is not the same in all, but for rounds in which the base is 0
        (a search that found no rate); where no round has both, that of their medians."""
        medians = over(self(name, value), self(base, value))
        bases = {run.turn: run.values[value] for run in self.of(base)}
        pairs = [over(run.values[value], bases[run.turn]) for run in self.of(name) if bases.get(run.turn)]
        return side.median(pairs) if pairs else medians

    def has(self, *names):
        return all(self.runs.get(name) for name in names)

    def curve(self, form, keys, value, scale=1, x_scale=1):
        """[(x, y, is valid)] of the points that there are, form with a key for each."""
        found = [(key * x_scale, *point(self.runs[form.format(key)], value)) for key in keys
                 if self.runs.get(form.format(key))]
        return [(x, y * scale, is_valid) for x, y, is_valid in found if 0 < y < float("inf")]


@dataclass
class Verdict:
    verdict: str
    headline: str = ""
    reasons: list = field(default_factory=list)
    rounds: int = None  # valid ones, of the point that has the fewest


def judge(row, points):
    lacks = points.machine.lacks(row.needs)
    if lacks:
        return Verdict(NOT_APPLICABLE, reasons=[f"needs {what}" for what in lacks])
    if row.judge is None:
        return Verdict(NOT_RUN, reasons=["no experiment yet"])
    try:
        headline, claims = row.judge(points)
    except Unmeasured:
        return Verdict(NOT_RUN)
    if points.faults:
        return Verdict(INVALID, headline, sorted(points.faults))
    failed = [claim for claim, holds in claims.items() if not holds]
    return Verdict(NOT_REPRODUCED if failed else REPRODUCED, headline,
                   [f"not: {claim}" for claim in failed], points.rounds)
