# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Verdicts of all rows from stored results: a table, plots with the papers' axes, one HTML page."""
import html
import json
import math
import os
import re
import tempfile
import textwrap

import side_by_side as side
import svg

from . import common, rows
from .guest import results, tables
from .machine import Machine
from .store import Store

SHOWN = 3  # reasons of a verdict
INTRODUCTION = """\
# The lab

The experiments of the papers that this server is based on, repeated on one machine with this server, `mcload`,
and substitutes for the other programs. `scripts/lab run` measures and stores results; `scripts/lab report
--markdown doc/lab.md` writes this page from them, all but the section *On other kernels*, which comes from
`scripts/lab guest`. `scripts/lab list` shows how each row is reproduced, and what the machine lacks. Results are JSON, with
machine, kernel, commit and options: of guests in doc/lab/guests, of a machine in build/lab, of which `scripts/lab report
--pack doc/lab/host.jsonl` makes one file for the repository.

D is Leverich and Kozyrakis, *Managing interference for latency-sensitive workloads* (the draft), E the
same authors' *Reconciling high server utilization and sub-millisecond quality-of-service* (EuroSys 2014), SF
a report on tuning memcached with OpenOnload, 003 and 004 a thesis and slides on its performance.

| verdict | meaning |
|---|---|
| reproduced, not reproduced | the row's criterion, which is about the shape, holds or does not |
| INVALID | a point that the criterion needs has no valid run: the gates of doc/benchmarks.md refused it. A client that \
was short of CPU makes latencies longer: when all was served, such a run may show that one is low enough, and what a batch \
job did beside it |
| not applicable | the machine lacks what the row says. Without a CPU for the client alone, it is the client, at real-time priority, that makes the tails of the thread with which it shares one |
| not run | there are no results, or there is no experiment yet |

*Rounds* are the usable ones, of the point of a row that has the fewest: the valid ones, and those of a client short of CPU
where they may show what the row claims.

In place of SPEC there are twelve batch jobs: insensitive to caches spin, code and float; friendly walk-l2, triad-l2 and
sort-l2; fitting walk-half-l3, triad-l3 and join-half-l3; streaming walk-4-l3, triad-4-l3 and stencil-4-l3. Row *D Table 5* has the
work of each beside a walker through the L3 cache: each insensitive one must keep it, one that is fitting or streaming
must not; friendly ones are recorded. Five antagonists of stress-ng and the stages traced by bpftrace are
measured where these programs are installed (`scripts/deps --lab`); `scripts/lab run` says so where they are not.

doc/lab/host.jsonl has five rounds of all points, of different days and virtual machines of the same kind. A ratio is the
median of those of each round, as the speed differs from day to day, and rates are parts of the peak of their round (in the
second one of the first one's; what was INVALID in the first was measured again on the second day). From the third round on
the kernel's context switches and preemptions are counted, and what a batch job does alone is measured beside each
point. Where one round alone gives another verdict, the table says so. The rule for a client short of CPU was made after
the first round was seen; below the table is what valid runs alone say. `scripts/lab run --rounds 6 --seconds 3 --add-to
doc/lab/host.jsonl` adds a round on a machine of that kind.
"""


def arguments(parser):
    parser.add_argument("--quick", action="store_true", help="the results of run --quick")
    parser.add_argument("--markdown", metavar="FILE", help="write the table there, plots into plots/ beside it")
    parser.add_argument("--guests", metavar="FILE",
                        help="put what scripts/lab guest showed into its section there; the rest stays as it is")
    parser.add_argument("--html", metavar="FILE", help="write one page with the plots in it")
    parser.add_argument("--json", metavar="FILE", help="write the verdicts there")
    parser.add_argument("--pack", metavar="FILE", help="put all results into that file, which --results takes, too: "
                        "doc/lab/host.jsonl is reported where there are no others")
    common.add_folder(parser)
    results.add_folder(parser)


def drawable(plots):
    """Without curves and groups of bars that have nothing to draw, and plots that have nothing else."""
    for kind, title, *rest in plots:
        at = 1 if kind == "bars" else 2
        has_zero = rest[-1] == "linear"
        rest[at] = {name: of for name, of in rest[at].items() if of and (kind != "bars" or all(
            0 < value < math.inf or has_zero and value == 0 for value, _ in of.values()))}
        if rest[at]:
            yield kind, title, *rest


def explained(row, points):
    """Nothing where results lack a point that the explanation has numbers of."""
    try:
        return row.why(points) if callable(row.why) else row.why
    except rows.Unmeasured:
        return ""


class Judged:
    def __init__(self, group, row, points):
        self.group, self.row = group, row
        self.result = rows.judge(row, points)
        self.strict = rows.judge(row, points.valid()) if points.has_bounds else None
        self.why = ""
        if self.result.verdict == rows.NOT_REPRODUCED:
            self.why = explained(row, points)
        alone = {turn: rows.judge(row, points.alone(turn)).verdict for turn in points.turns()}
        self.differing = [f"by round {turn} alone {verdict}" for turn, verdict in alone.items()
                          if verdict in rows.CLAIMS and self.result.verdict in rows.CLAIMS and verdict != self.result.verdict]
        self.plots = []
        if row.plots and self.result.verdict in (*rows.CLAIMS, rows.INVALID):
            self.plots = list(drawable(row.plots(points)))

    def reasons(self):
        """The first of them, one of each kind."""
        kinds = {re.sub(r"[\d.]+", "", reason): reason for reason in self.result.reasons}
        more = [f"and {len(kinds) - SHOWN} more"] if len(kinds) > SHOWN else []
        return "; ".join([*kinds.values()][:SHOWN] + more)

    @property
    def headline(self):
        """That of invalid runs is no claim."""
        return self.result.headline if self.result.verdict in rows.CLAIMS else ""

    def cells(self):
        said = "; ".join(filter(None, [self.reasons(), *self.differing]))
        return [self.row.label, self.row.title, self.row.paper, self.headline, str(self.result.rounds or ""),
                self.result.verdict + (f": {said}" if said else "")]

    def explanation(self):
        """Of what is not reproduced: what was expected, and what was found out."""
        expected = "; ".join(reason.removeprefix("not: ") for reason in self.result.reasons)
        guest = "" if not self.row.guest else f" Other kernels: *{tables.TITLE}*, below."
        return f"Expected: {expected}.", self.why + guest

    def draw(self, folder):
        """[(file, title)]"""
        os.makedirs(folder, exist_ok=True)
        drawn = []
        for i, (kind, title, *plot) in enumerate(self.plots):
            name = f"{self.row.slug}{'' if i == 0 else f'-{i + 1}'}.svg"
            svg.KINDS[kind](os.path.join(folder, name), title, *plot)
            drawn.append((name, title))
        return drawn


HEAD = ["row", "what", "in the paper", "here", "rounds", "verdict"]


def origin(store, groups):
    """Where the results come from, in a sentence."""
    every = [stored for name in groups for *_, stored in store.read(name)]
    if not every:
        return "No results here yet: `scripts/lab run --quick` tries all in about 10 minutes, `scripts/lab run` measures."
    said = {}
    for one in every:
        trial = ", a trial (--quick)" if one["options"].get("quick") else ""
        known = f"{one['machine']} ({one['kernel']}), runs of {one['options']['seconds']} s{trial}"
        said.setdefault(known, set()).add(one["commit"])
    return "Results: " + "; ".join(
        f"{known}, {', '.join(sorted(commits))}" for known, commits in sorted(said.items())) + "." + drift(store, groups)


def drift(store, groups):
    """How much the same differs from round to round, in a sentence; nothing without two rounds."""
    rates = [[run.values["rate"] for run in runs if not run.faults and run.values.get("rate")]
             for name in groups for runs in store.runs(name).values()]
    most = max((max(of) / min(of) - 1 for of in rates if of), default=0)
    return f" The rate of a point differed by up to {most:.0%} from round to round: compare ratios." if most else ""


def of_valid(judged):
    """Rows that use runs of a client short of CPU, and what the others say, in a paragraph; none without such rows."""
    said = []
    for one in judged:
        if one.strict is not None:
            rounds = f" with {one.strict.rounds} round{'s' * (one.strict.rounds != 1)}" if one.strict.rounds else ""
            told = "; ".join([one.strict.headline, *one.strict.reasons])
            said.append(f"*{one.row.label}* is {one.strict.verdict}{rounds} ({told})")
    return [textwrap.fill("By valid runs alone, without those of a client short of CPU, " + "; ".join(said)
                          + ". A client is short of CPU in rounds in which the server does most; those that are left are the others.", 108)] if said else []


def explanations(judged):
    """Of what is not reproduced; rows that have the same one share it."""
    found = {}
    for one in judged:
        if one.result.verdict == rows.NOT_REPRODUCED:
            expected, why = one.explanation()
            found.setdefault(why, []).append(f"**{one.row.label}.** {expected}")
    return ["## What is not reproduced, and why",
            *(textwrap.fill(" ".join([*each, why]).strip(), 108) for why, each in found.items())] if found else []


def short(one):
    """Cells of the table of a document, which explains below what is not reproduced."""
    cells = one.cells()
    if one.result.verdict == rows.NOT_REPRODUCED:
        cells[-1] = "; ".join([rows.NOT_REPRODUCED, *one.differing])
    if one.result.verdict == rows.NOT_APPLICABLE and one.row.guest:
        cells[3] = f"in a guest: *{tables.TITLE}*"
    return cells


def markdown(path, judged, where, guest_results):
    folder = os.path.join(os.path.dirname(path), "plots")
    table = []
    pictures = []
    for one in judged:
        drawn = one.draw(folder)
        cells = short(one)
        if drawn:
            cells[0] = f"[{cells[0]}](plots/{drawn[0][0]})"
        table.append(cells)
        pictures += [f"![{one.row.label}: {title}](plots/{name})" for name, title in drawn]
    others = tables.sections(guest_results, folder)
    blocks = [INTRODUCTION + "\n" + where, side.render(HEAD, table, markdown=True), *of_valid(judged),
              *explanations(judged)]
    if others:
        blocks.append(side.section_of(tables.NAME, others)[1].strip())
    with open(path, "w") as f:
        f.write("\n\n".join([*blocks, *(["## Plots"] if pictures else []), *pictures]) + "\n")


STYLE = """body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid #ddd; padding: .35em .5em;
text-align: left; vertical-align: top } .reproduced { color: #2a6f12 } .not-reproduced { color: #a3301a }
.INVALID { color: #8a6d1d } .not-run, .not-applicable { color: #777 } figure { margin: 2em 0 }
svg { max-width: 100%; height: auto }"""


def html_table(head, lines):
    cells = "\n".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>" for line in lines)
    return "<table><tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + f"</tr>\n{cells}</table>"


def figure(folder, name, caption):
    with open(os.path.join(folder, name)) as f:
        return f"<figure>{f.read()}<figcaption>{html.escape(caption)}</figcaption></figure>"


def guests(guest_results, folder):
    """What guests showed, as parts of the page."""
    parts = []
    for title, remark, head, lines, file, found in tables.shown(guest_results, folder):
        parts += [f"<h3>{html.escape(title)}</h3>\n<p>{html.escape(remark)}</p>", html_table(head, lines)]
        parts += [figure(folder, file, title)] if file else []
        parts += [f"<p>{html.escape(found)}</p>"] if found else []
    return [f"<h2>{tables.TITLE}</h2>", *parts] if parts else []


def page(path, judged, where, guest_results, folder):
    """One file: the plots, which are drawn into the folder, are in it."""
    lines, pictures = [], []
    for one in judged:
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in one.cells())
        lines.append(f'<tr class="{one.result.verdict.replace(" ", "-")}">{cells}</tr>')
        pictures += [figure(folder, name, f"{one.row.label}: {one.row.when}") for name, _ in one.draw(folder)]
    head = "".join(f"<th>{cell}</th>" for cell in HEAD)
    with open(path, "w") as f:
        f.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>The lab</title>'
                f"<style>{STYLE}</style></head><body>\n<h1>The lab</h1><p>{html.escape(where)}</p>\n"
                f"<table><tr>{head}</tr>\n" + "\n".join(lines) + "</table>\n"
                + "".join(f"<p>{html.escape(said)}</p>\n" for said in of_valid(judged))
                + "\n".join(pictures + guests(guest_results, folder)) + "\n</body></html>\n")


def run(args):
    folder = common.results_to_report(args)
    store, machine, groups = Store(folder), Machine(), common.groups()
    judged = [Judged(name, row, rows.Points(store.runs(name), machine))
              for name, group in groups.items() for row in group.ROWS]
    where = origin(store, groups)
    if args.guests:
        blocks = tables.sections(args.guest_results, os.path.join(os.path.dirname(args.guests), "plots"))
        if not blocks:
            side.fail(f"{args.guest_results} has no results of scripts/lab guest")
        side.put_section(args.guests, tables.NAME, blocks)
    if args.markdown:
        markdown(args.markdown, judged, where, args.guest_results)
    if args.html:
        with tempfile.TemporaryDirectory() as plots:
            page(args.html, judged, where, args.guest_results, plots)
    if args.pack:
        store.pack(args.pack, groups)
    if args.json:
        with open(args.json, "w") as f:
            json.dump([{"group": one.group, "row": one.row.label, "verdict": one.result.verdict,
                        "headline": one.headline, "rounds": one.result.rounds, "of_valid_runs": one.strict and one.strict.verdict,
                        "reasons": one.result.reasons}
                       for one in judged], f, indent=1)
            f.write("\n")
    for one in judged:
        said = "; ".join(filter(None, [one.headline, one.reasons(), *one.differing]))
        print(f"{one.row.label:<22} {one.result.verdict:<15} {said}")
    print(where)
