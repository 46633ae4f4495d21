/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Charts as SVG that needs no other file: a frame with two axes, curves or bars, a legend.
 * Pure but for the stream.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define SVG_WIDTH 760
#define SVG_COLOURS 7

enum svg_scale {
    SVG_LINEAR,
    SVG_LOG,        /* powers of ten, with 2 and 5 where there is room */
    SVG_PERCENTILE, /* of shares: each nine takes the same room */
};

struct svg_axis {
    enum svg_scale scale;
    double min, max;   /* log: > 0; percentile: shares below 1 */
    const char *title; /* NULL: of y only, which then has no numbers either */
};

/* A frame within the picture; places in pixels. */
struct svg_frame {
    FILE *out;
    double left, top, width, height;
    struct svg_axis x, y;
};

void svg_open(FILE *out, double height, const char *title);
void svg_close(FILE *out);

/* Rounds the bounds of y (and of a linear x) outwards, draws grid and axes. */
void svg_draw_frame(struct svg_frame *f);

/* Points outside of the frame are moved to its edge. */
struct svg_curve {
    const struct svg_frame *f;
    unsigned colour;
    bool is_dashed;
    unsigned count;
    double x, y; /* of the last point drawn, in pixels */
};

void svg_curve_open(struct svg_curve *c, const struct svg_frame *f, unsigned colour,
                    bool is_dashed);
void svg_curve_point(struct svg_curve *c, double x, double y);
void svg_curve_close(struct svg_curve *c);

/* `is_hollow`: of what does not count. */
void svg_dot(const struct svg_frame *f, unsigned colour, bool is_hollow, double x,
             double y);
/* From the left edge of the frame to x, its upper edge at `top` pixels, with a text behind. */
void svg_bar(const struct svg_frame *f, unsigned colour, bool is_hollow, double top,
             double height, double x, const char *text);
/* Text that ends at the left edge of the frame, its middle at y pixels. */
void svg_label(const struct svg_frame *f, double y, const char *text);
/* From low to high at x. */
void svg_whisker(const struct svg_frame *f, unsigned colour, double x, double low,
                 double high);
/* Text in line number `row` of the legend. */
void svg_note(const struct svg_frame *f, unsigned row, const char *text);
/* Line number `row` of the legend right of the frame. */
void svg_legend(const struct svg_frame *f, unsigned row, unsigned colour, bool is_dashed,
                const char *text);
