# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
"""Line plots as SVG: a linear horizontal axis, a logarithmic vertical one."""
import math
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#1b6ca8", "#c8553d", "#3f7d20", "#7b4b94", "#8a6d1d", "#444444")


def decades(values):
    """The whole powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class Axes:
    def __init__(self, x_max, y_low, y_high):
        self.x_max, self.y_low, self.y_high = x_max, y_low, y_high

    def x(self, value):
        return LEFT + value / self.x_max * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        part = (math.log10(value) - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#ddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def grid(axes, x_label, y_label):
    parts = []
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for power in range(axes.y_low, axes.y_high + 1):
        y = axes.y(10.0 ** power)
        parts.append(line(LEFT, y, right, y))
        parts.append(text(LEFT - 8, y + 4, f"{10.0 ** power:g}", "end"))
    for i in range(6):
        value = axes.x_max * i / 5
        parts.append(line(axes.x(value), TOP, axes.x(value), bottom))
        parts.append(text(axes.x(value), bottom + 18, f"{value:g}"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 12, x_label))
    middle = (TOP + bottom) / 2
    parts.append(text(18, middle, y_label, extra=f'transform="rotate(-90 18 {middle:.1f})"'))
    return parts


def plot(path, title, x_label, y_label, series):
    """series: {name: [(x, y), ...]}, y > 0."""
    points = [point for line_of in series.values() for point in line_of]
    low, high = decades([y for _, y in points])
    x_max = max(x for x, _ in points)
    unit = 10 ** math.floor(math.log10(x_max))
    axes = Axes(math.ceil(x_max / unit) * unit, low, high)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             text(WIDTH / 2, 22, title, extra='font-size="15"')]
    parts += grid(axes, x_label, y_label)
    for i, (name, line_of) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        way = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in sorted(line_of))
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" '
                     'stroke-width="2"/>')
        parts += [f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="3" fill="{colour}"/>'
                  for x, y in line_of]
        at = TOP + 14 + 18 * i
        parts.append(line(WIDTH - RIGHT + 12, at - 4, WIDTH - RIGHT + 32, at - 4, colour))
        parts.append(text(WIDTH - RIGHT + 38, at, name, "start"))
    parts.append("</svg>\n")
    with open(path, "w") as f:
        f.write("\n".join(parts))
