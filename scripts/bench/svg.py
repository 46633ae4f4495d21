# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Plots as SVG: curves over axes that are linear or logarithmic, bars side by side, grids of good and bad cells. What
is not valid is hollow, and no point of a curve."""
import math
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
BAR, GAP, BAR_LEFT = 16, 14, 275
LETTER = 6.8  # the width of most, at 12 pixels
COLOURS = ("#1b6ca8", "#c8553d", "#3f7d20", "#7b4b94", "#8a6d1d", "#444444", "#4fa3a0", "#c77fa8")


def decades(values):
    """The whole powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class Log:
    """An axis from one power of ten to another: where a value is in it, from 0 to 1, and its marks."""

    def __init__(self, values):
        self.low, self.high = decades(values)

    def part(self, value):
        return (math.log10(value) - self.low) / (self.high - self.low)

    def marks(self):
        return [(10.0 ** power, power_name(power)) for power in range(self.low, self.high + 1)]


class Linear:
    """The same, from 0, with six marks at most."""

    def __init__(self, values):
        most = max(values)
        unit = 10 ** math.floor(math.log10(most))
        self.step = next(step for step in (unit / 5, unit / 2, unit, 2 * unit) if most <= 5 * step)
        self.most = math.ceil(most / self.step) * self.step

    def part(self, value):
        return value / self.most

    def marks(self):
        every = [i * self.step for i in range(round(self.most / self.step) + 1)]
        return [(value, f"{value:g}") for value in every]


SCALES = {"log": Log, "linear": Linear}


class Axes:
    def __init__(self, x_scale, y_scale):
        self.x_scale, self.y_scale = x_scale, y_scale

    def x(self, value):
        return LEFT + self.x_scale.part(value) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - self.y_scale.part(value) * (HEIGHT - TOP - BOTTOM)


def power_name(power):
    """1, 10, ..., 10k, 1M"""
    for unit, letter in ((6, "M"), (3, "k")):
        if power >= unit and power > 3:
            return f"{10 ** (power - unit)}{letter}"
    return f"{10.0 ** power:g}"


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def line(x1, y1, x2, y2, stroke='stroke="#ddd"'):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {stroke}/>'


def grid(axes, x_label, y_label):
    parts = []
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value, name in axes.y_scale.marks():
        parts.append(line(LEFT, axes.y(value), right, axes.y(value)))
        parts.append(text(LEFT - 8, axes.y(value) + 4, name, "end"))
    for value, name in axes.x_scale.marks():
        parts.append(line(axes.x(value), TOP, axes.x(value), bottom))
        parts.append(text(axes.x(value), bottom + 18, name))
    parts.append(text((LEFT + right) / 2, HEIGHT - 12, x_label))
    middle = (TOP + bottom) / 2
    parts.append(text(18, middle, y_label, extra=f'transform="rotate(-90 18 {middle:.1f})"'))
    return parts


def excess(words, room):
    """By how much the longest of the words is wider than the room."""
    return math.ceil(max([0] + [LETTER * len(word) - room for word in words]))


def document(path, height, title, parts, labels=(), names=()):
    """labels: of bars; names: of the legend. It is wider where they are long."""
    left, right = excess(labels, BAR_LEFT - 12), excess(names, RIGHT - 42)
    width = left + WIDTH + right
    with open(path, "w") as f:
        f.write("\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="{-left} 0 {width} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" x="{-left}" height="{height}" fill="white"/>',
            text(WIDTH / 2, 22, title, extra='font-size="15"'), *parts, "</svg>\n"]))


def stroke_of(i):
    """Colours, and dashes where there are more curves than colours."""
    dashes = ' stroke-dasharray="6 4"' if i >= len(COLOURS) else ""
    return f'stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2"{dashes}'


def legend(i, name):
    at = TOP + 14 + 18 * i
    return [line(WIDTH - RIGHT + 12, at - 4, WIDTH - RIGHT + 32, at - 4, stroke_of(i)),
            text(WIDTH - RIGHT + 38, at, name, "start")]


def paint(colour, is_valid):
    return f'fill="{colour if is_valid else "white"}" stroke="{colour}"'


def curves(path, title, x_label, y_label, series, x_scale="linear", y_scale="log"):
    """series: {name: [(x, y, is_valid), ...]}, values > 0."""
    points = [point for line_of in series.values() for point in line_of]
    axes = Axes(SCALES[x_scale]([x for x, _, _ in points]), SCALES[y_scale]([y for _, y, _ in points]))
    parts = grid(axes, x_label, y_label)
    for i, (name, line_of) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        way = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}"
                       for x, y, is_valid in sorted(line_of) if is_valid)
        parts.append(f'<polyline points="{way}" fill="none" {stroke_of(i)}/>')
        parts += [f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="3" '
                  f'{paint(colour, is_valid)}/>' for x, y, is_valid in line_of]
        parts += legend(i, name)
    if not all(is_valid for _, _, is_valid in points):
        parts.append(text(WIDTH - RIGHT + 12, TOP + 14 + 18 * len(series), "hollow: INVALID",
                          "start"))
    document(path, HEIGHT, title, parts, names=series)


def bars(path, title, x_label, rows, scale="log"):
    """rows: {label: {name: (value, is_valid)}}, value > 0, or with a linear scale not below; each name has a colour."""
    names = list(next(iter(rows.values())))
    axis = SCALES[scale]([value for row in rows.values() for value, _ in row.values()])
    width = WIDTH - RIGHT - BAR_LEFT
    row_height = BAR * len(names) + GAP
    bottom = TOP + row_height * len(rows) + GAP
    parts = []
    for mark, name in axis.marks():
        x = BAR_LEFT + axis.part(mark) * width
        parts += [line(x, TOP, x, bottom), text(x, bottom + 18, name)]
    parts.append(text(BAR_LEFT + width / 2, bottom + 38, x_label))
    for i, (label, row) in enumerate(rows.items()):
        top = TOP + GAP + i * row_height
        parts.append(text(BAR_LEFT - 8, top + BAR * len(names) / 2 + 4, label, "end"))
        for k, name in enumerate(names):
            value, is_valid = row[name]
            length = axis.part(value) * width
            y = top + k * BAR
            parts.append(f'<rect x="{BAR_LEFT}" y="{y:.1f}" width="{length:.1f}" '
                         f'height="{BAR - 3}" {paint(COLOURS[k % len(COLOURS)], is_valid)}/>')
            parts.append(text(BAR_LEFT + length + 5, y + BAR - 6,
                              f"{value:,.0f}{'' if is_valid else ' INVALID'}", "start"))
    for k, name in enumerate(names):
        parts += legend(k, name)
    document(path, bottom + 50, title, parts, labels=rows, names=names)


def grids(path, title, x_label, y_label, panels):
    """panels: {name: {(x, y): (is good, is valid)}}, side by side, a square for each cell."""
    columns = sorted({x for cells in panels.values() for x, _ in cells})
    lines = sorted({y for cells in panels.values() for _, y in cells}, reverse=True)
    panel = (WIDTH - LEFT) / len(panels)
    size = min((panel - 2 * GAP) / len(columns), 4 * BAR)
    top = TOP + GAP
    bottom = top + size * len(lines)
    middle = (top + bottom) / 2
    parts = [text(18, middle, y_label, extra=f'transform="rotate(-90 18 {middle:.1f})"'),
             text(WIDTH / 2, bottom + 58, f"{x_label}; blue: kept, red: not; hollow: INVALID")]
    parts += [text(LEFT - 8, top + size * (i + 0.5) + 4, f"{y:g}", "end") for i, y in enumerate(lines)]
    for k, (name, cells) in enumerate(panels.items()):
        left = LEFT + k * panel
        parts.append(text(left + size * len(columns) / 2, bottom + 38, name, extra='font-weight="bold"'))
        parts += [text(left + size * (i + 0.5), bottom + 18, f"{x:g}") for i, x in enumerate(columns)]
        parts += [f'<rect x="{left + size * columns.index(x):.1f}" y="{top + size * lines.index(y):.1f}" '
                  f'width="{size - 3:.1f}" height="{size - 3:.1f}" {paint(COLOURS[0 if is_good else 1], is_valid)}/>'
                  for (x, y), (is_good, is_valid) in cells.items()]
    document(path, round(bottom) + 74, title, parts)


KINDS = {"curves": curves, "bars": bars, "grids": grids}
