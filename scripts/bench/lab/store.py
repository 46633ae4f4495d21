# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Results of the lab on disk: FOLDER/GROUP/POINT/ROUND.ATTEMPT.json, each written once."""
import glob
import json
import math
import os
import re
import subprocess

import side_by_side as side
from qos.runner import Run


def commit():
    """Of the tree, and whether it has changes; of a release, its name."""
    said = subprocess.run(["git", "-C", side.TOP, "describe", "--always", "--dirty"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return said.stdout.strip() or os.path.basename(side.TOP)


def finite(value):
    """JSON has no number without end."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Store:
    """facts: what is stored with each result, beside its values."""

    def __init__(self, folder, facts=None):
        self.folder = folder
        self.facts = facts or {}

    def put(self, group, point, turn, run, seconds):
        folder = os.path.join(self.folder, group, point)
        os.makedirs(folder, exist_ok=True)
        attempt = len(glob.glob(os.path.join(folder, f"{turn}.*.json"))) + 1
        path = os.path.join(folder, f"{turn}.{attempt}.json")
        with open(path + ".new", "w") as f:
            json.dump({"group": group, "point": point, "round": turn, "attempt": attempt,
                       "took_seconds": round(seconds, 1), "faults": run.faults,
                       "values": {name: finite(value) for name, value in run.values.items()},
                       **self.facts}, f, indent=1)
            f.write("\n")
        os.rename(path + ".new", path)

    def read(self, group):
        """[(point, round, attempt, what was stored)], in order."""
        found = []
        for path in glob.glob(os.path.join(self.folder, group, "*", "*.json")):
            turn, attempt = map(int, re.match(r"(\d+)\.(\d+)\.json$", os.path.basename(path)).groups())
            try:
                with open(path) as f:
                    stored = json.load(f)
                stored["values"] = {name: math.inf if value is None else value
                                    for name, value in stored["values"].items()}
            except (ValueError, KeyError) as error:
                side.fail(f"{path} is not a result of the lab ({error}): remove it")
            found.append((os.path.basename(os.path.dirname(path)), turn, attempt, stored))
        return sorted(found, key=lambda one: one[:3])

    def runs(self, group):
        """{point: [a Run of each round]}: of several attempts the last, or the one that is valid."""
        latest = {}
        for point, turn, _, stored in self.read(group):
            latest[point, turn] = Run(stored["values"], stored["faults"])
        runs = {}
        for (point, _), run in latest.items():
            runs.setdefault(point, []).append(run)
        return runs

    def latest(self, group):
        """{(point, round): faults}"""
        return {(point, turn): stored["faults"] for point, turn, _, stored in self.read(group)}
