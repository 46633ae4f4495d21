# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Results of the lab on disk: FOLDER/GROUP/POINT/ROUND.ATTEMPT.json, each written once; or all of a folder in one
file, to be kept in a repository."""
import glob
import json
import math
import os
import subprocess

import side_by_side as side
from qos.runner import Run


def git(top, *words):
    return subprocess.run(["git", "-C", top, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()


def commit(top=side.TOP):
    """Of the tree, and whether it has changes, which documents and results are not; of a release, its name."""
    said = git(top, "describe", "--always")
    changes = said and git(top, "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)doc")
    return said + ("-dirty" if changes else "") or os.path.basename(top)


NO_NUMBER = "NaN"
NEEDED = ("values", "faults", "machine", "kernel", "commit", "options")  # of any result


def written(value):
    """JSON has no number without end, which is null, nor one that is none."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return NO_NUMBER if math.isnan(value) else None


def as_it_was(value):
    return {None: math.inf, NO_NUMBER: math.nan}.get(value, value)


def with_values(stored, names=()):
    """Stored values as they were. names: what else it has to have."""
    for name in (*NEEDED, *names):
        if name not in stored:
            raise KeyError(name)
    return {**stored, "values": {name: as_it_was(value) for name, value in stored["values"].items()}}


NAMED = ("group", "point", "round", "attempt")
OWN = (*NAMED, "took_seconds", "faults", "values")  # of a result; the rest are facts
DIGITS = 6  # of a value in a file of many


def rounded(value):
    """As a file of many has it."""
    return written(float(f"{value:.{DIGITS}g}")) if isinstance(value, float) else value


def rounded_values(stored):
    return {name: rounded(value) for name, value in stored["values"].items()}


def loaded(path, form=with_values, origin="the lab"):
    """form of what was stored in a file of one."""
    try:
        with open(path, encoding="utf-8") as f:
            return form(json.load(f))
    except KeyError as error:
        return side.fail(f"{path} is not a result of {origin} (it has no {error}): remove it")
    except (ValueError, AttributeError, TypeError) as error:
        return side.fail(f"{path} is not a result of {origin} ({error}): remove it")


def unpacked(path):
    """[what was stored] of a file that pack() wrote."""
    found, facts = [], {}
    try:
        with open(path) as f:
            for line in map(json.loads, f):
                facts = line.get("facts", facts)
                if "values" in line:
                    found.append(with_values({**line, **facts}, NAMED))
    except (ValueError, AttributeError, TypeError) as error:
        side.fail(f"{path} is no file of scripts/lab report --pack ({error})")
    except KeyError as error:
        side.fail(f"{path} is no file of scripts/lab report --pack (a line without {error})")
    return found


class Store:
    """folder: or a file that pack() wrote. facts: what is stored with each result, beside its values."""

    def __init__(self, folder, facts=None):
        self.folder = folder
        self.facts = facts or {}

    def write(self, stored):
        """An attempt, once; it may be there already, the same."""
        folder = os.path.join(self.folder, stored["group"], stored["point"])
        path = os.path.join(folder, f"{stored['round']}.{stored['attempt']}.json")
        if os.path.exists(path):
            if rounded_values(loaded(path)) != rounded_values(stored):
                side.fail(f"{path} is of another run: give another --results")
            return
        os.makedirs(folder, exist_ok=True)
        with open(path + ".new", "w") as f:
            json.dump({**stored, "values": {name: written(value) for name, value in stored["values"].items()}}, f, indent=1)
            f.write("\n")
        os.rename(path + ".new", path)

    def put(self, group, point, turn, run, seconds):
        attempt = len(glob.glob(os.path.join(self.folder, group, point, f"{turn}.*.json"))) + 1
        self.write({"group": group, "point": point, "round": turn, "attempt": attempt, "took_seconds": round(seconds, 1),
                    "faults": run.faults, "values": run.values, **self.facts})

    def pack(self, path, groups):
        """All results in one file, a line each; facts, which many share, stand before them."""
        lines, before = [], None
        for group, (point, turn, attempt, stored) in ((group, one) for group in groups for one in self.read(group)):
            facts = {name: value for name, value in stored.items() if name not in OWN}
            if facts != before:
                lines.append({"facts": facts})
            before = facts
            lines.append({"group": group, "point": point, "round": turn, "attempt": attempt,
                          "took_seconds": stored.get("took_seconds"), "faults": stored["faults"],
                          "values": rounded_values(stored)})
        with open(path + ".new", "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        os.rename(path + ".new", path)

    def read(self, group):
        """[(point, round, attempt, what was stored)], in order."""
        if os.path.isfile(self.folder):
            return sorted(((one["point"], one["round"], one["attempt"], one) for one in unpacked(self.folder)
                           if one["group"] == group), key=lambda one: one[:3])
        found = []
        for path in glob.glob(os.path.join(self.folder, group, "*", "*.json")):
            numbers = os.path.basename(path).split(".")[:-1]
            if len(numbers) != 2 or not all(map(str.isdecimal, numbers)):
                side.fail(f"{path} is not a result of the lab, by its name: remove it")
            turn, attempt = map(int, numbers)
            stored = loaded(path)
            found.append((os.path.basename(os.path.dirname(path)), turn, attempt, stored))
        return sorted(found, key=lambda one: one[:3])

    def runs(self, group):
        """{point: [a Run of each round]}: of several attempts the last, or the one that is valid."""
        latest = {}
        for point, turn, _, stored in self.read(group):
            latest[point, turn] = Run(stored["values"], stored["faults"], turn)
        runs = {}
        for (point, _), run in latest.items():
            runs.setdefault(point, []).append(run)
        return runs

    def latest(self, group):
        """{(point, round): faults}"""
        return {(point, turn): stored["faults"] for point, turn, _, stored in self.read(group)}
