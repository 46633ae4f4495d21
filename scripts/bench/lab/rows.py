# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Rows of the lab: a table or figure of a paper, what has to be seen here for it to be
reproduced, and the verdict that stored results give it."""
import math
import re
from dataclasses import dataclass, field
from typing import Callable

import side_by_side as side

REPRODUCED, NOT_REPRODUCED, NOT_APPLICABLE, INVALID, NOT_RUN = (
    "reproduced", "not reproduced", "not applicable", "INVALID", "not run")
CLAIMS = (REPRODUCED, NOT_REPRODUCED)

# Faults of a client that had no CPU to spare.
CLIENT_SHORT = re.compile(r"client CPU |sent .* late")
SERVED = 0.999  # of its requests
NO_RATE = "no rate was within the goal"


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
    It may be a function of Points. guest: the experiment of scripts/lab guest that shows it on other kernels. A row without judge has no experiment yet."""
    label: str
    title: str
    paper: str
    when: str
    judge: Callable = None
    plots: Callable = None
    needs: tuple = ()
    why: str | Callable = ""
    guest: str = ""

    @property
    def slug(self):
        return "lab-" + "".join(c if c.isalnum() else "-" for c in self.label.lower())


def over(value, base):
    """Their ratio; no number, which fulfils no claim, without a base."""
    return value / base if base else float("nan")


def median(values):
    """Of those that are numbers."""
    return side.median([value for value in values if not math.isnan(value)])


def is_valid(run):
    return not run.faults


def is_bound(run):
    """Valid, or wrong only in that its client was short of CPU: that makes latencies longer, and changes nothing else
    as long as all is served."""
    return is_valid(run) or (run.values.get("served", 0) >= SERVED and all(map(CLIENT_SHORT.match, run.faults)))


def has_rate(run):
    """Of a search that found one."""
    return is_valid(run) and run.values.get("qos", 0) > 0


class Points:
    """The results of a group, {point: [Run]}; remembers what is wrong with those that were used, how many usable rounds
    the one of them has that has the fewest, and whether one was of use as a bound alone. bound: which runs are a bound."""

    def __init__(self, runs, machine, bound=is_bound):
        self.runs, self.machine, self.faults, self.rounds = runs, machine, set(), None
        self.bound, self.has_bounds = bound, False

    def turns(self):
        return sorted({run.turn for runs in self.runs.values() for run in runs})

    def alone(self, turn):
        """Those of one round."""
        return Points({name: [run for run in runs if run.turn == turn] for name, runs in self.runs.items()}, self.machine,
                      self.bound)

    def valid(self):
        """The same, where a run that is invalid is no bound either."""
        return Points(self.runs, self.machine, is_valid)

    def keep_rounds(self, name, is_good):
        """From here on those in which that point is good, where there are such."""
        self.of(name, is_good)
        turns = {run.turn for run in self.runs[name] if is_good(run)}
        if turns:
            self.runs = {point: [run for run in runs if run.turn in turns] for point, runs in self.runs.items()}

    def of(self, name, is_good=is_valid):
        """The rounds that are good, or all."""
        runs = self.runs.get(name)
        if not runs:
            raise Unmeasured(name)
        good = list(filter(is_good, runs))
        self.rounds = len(good) if self.rounds is None else min(len(good), self.rounds)
        if not good:
            self.faults |= {fault for run in runs for fault in run.faults or [NO_RATE]}
        self.has_bounds |= not all(map(is_valid, good))
        return good or runs

    def __call__(self, name, value, is_good=is_valid):
        """The median of the good rounds."""
        runs = self.of(name, is_good)
        if not all(value in run.values for run in runs):
            raise Unmeasured(f"{name}: {value}")  # by an older version
        return median([run.values[value] for run in runs])

    def at_most(self, name, value):
        """For a claim that a latency is low enough, or of what a job did beside the service: a client that was short of
        CPU can have made it harder only."""
        return self(name, value, self.bound)

    def by_round(self, names, value, form, is_good=is_valid):
        """form: of the values of these points in a round, a number. The median of those of each round, as the machine is
        not the same in all, but for rounds in which it is none; where no round has one, that of their medians."""
        medians = [self(name, value, is_good) for name in names]
        by_turn = [{run.turn: run.values[value] for run in self.of(name, is_good)} for name in names]
        found = median([form([of[turn] for of in by_turn]) for turn in sorted(set.intersection(*map(set, by_turn)))])
        return form(medians) if math.isnan(found) else found

    def ratio(self, name, base, value, is_good=is_valid):
        """Of each round, but for those in which the base is 0 (a search that found no rate)."""
        return self.by_round([name, base], value, lambda pair: over(*pair), is_good)

    def extent(self, names, value, is_good=is_valid):
        """The least and the most of all good rounds that have it; no numbers where none has."""
        found = [run.values[value] for name in names if self.has(name) for run in self.of(name, is_good) if value in run.values]
        return (min(found), max(found)) if found else (math.nan, math.nan)

    def has(self, *names):
        return all(self.runs.get(name) for name in names)

    def is_usable(self, name, is_good=is_valid):
        return any(map(is_good, self.runs[name]))

    def curve(self, form, keys, value, scale=1, is_good=is_valid):
        """[(key, y, is usable)] of the points that there are, form with a key for each: of the runs that the row uses."""
        found = [(key, self(name, value, is_good) * scale, self.is_usable(name, is_good))
                 for key, name in ((key, form.format(key)) for key in keys)
                 if self.has(name) and all(value in run.values for run in self.runs[name])]
        return [(key, y, is_usable) for key, y, is_usable in found if 0 < y < float("inf")]


@dataclass
class Verdict:
    verdict: str
    headline: str = ""
    reasons: list = field(default_factory=list)
    rounds: int = None  # usable ones, of the point that has the fewest


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
