/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/svg.h"

#include <math.h>

#include "base/must.h"

#define TICKS_WANTED 6
#define LEGEND_GAP 14
#define LEGEND_LINE 18
#define SHARE_MAX 0.9999999

/* Distinct for readers with colour blindness, too (Okabe and Ito, 2008). */
static const char *const colours[SVG_COLOURS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
};

#define MIDDLE " text-anchor=\"middle\""
#define END " text-anchor=\"end\""
#define DASHES " stroke-dasharray=\"5 4\""

static const char *
paint_of(unsigned colour)
{
    return colours[colour % SVG_COLOURS];
}

static void
put_escaped(FILE *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p < ' ' || *p >= 0x7f || strchr("<>&\"'", *p) != NULL) {
            fprintf(out, "&#%d;", *p < ' ' ? '?' : *p);
        } else {
            fputc(*p, out);
        }
    }
    fputs("</text>\n", out);
}

/* Attributes are empty or begin with a blank. */
static void
put_text(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    put_escaped(out, text);
}

static void
put_line(FILE *out, double x1, double y1, double x2, double y2, const char *paint,
         const char *attributes)
{
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"%s/>", x1,
            y1, x2, y2, paint, attributes);
}

void
svg_open(FILE *out, double height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"%d\" height=\"%.0f\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"24\"" MIDDLE " font-size=\"15\">",
            SVG_WIDTH, height, SVG_WIDTH, height, SVG_WIDTH, height, SVG_WIDTH / 2);
    put_escaped(out, title);
}

void
svg_close(FILE *out)
{
    fputs("</svg>\n", out);
}

/* Where a value lies on its axis, 0..1. */
static double
place(const struct svg_axis *a, double v)
{
    double low = a->min, high = a->max;
    if (a->scale == SVG_LOG) {
        v = log10(fmax(v, low));
        low = log10(low);
        high = log10(high);
    } else if (a->scale == SVG_PERCENTILE) {
        v = -log10(1 - fmin(v, SHARE_MAX));
        low = -log10(1 - low);
        high = -log10(1 - high);
    }
    double at = high > low ? (v - low) / (high - low) : 0.5;
    return isfinite(at) ? fmin(1, fmax(0, at)) : 1;
}

static double
x_of(const struct svg_frame *f, double v)
{
    return f->left + f->width * place(&f->x, v);
}

static double
y_of(const struct svg_frame *f, double v)
{
    return f->top + f->height * (1 - place(&f->y, v));
}

static void
draw_tick(const struct svg_frame *f, bool is_x, double value, const char *label)
{
    if (is_x) {
        double x = x_of(f, value), bottom = f->top + f->height;
        put_line(f->out, x, f->top, x, bottom, "#ddd", "");
        put_text(f->out, x, bottom + 16, MIDDLE, label);
    } else {
        double y = y_of(f, value);
        put_line(f->out, f->left, y, f->left + f->width, y, "#ddd", "");
        put_text(f->out, f->left - 6, y + 4, END, label);
    }
}

static void
draw_number_tick(const struct svg_frame *f, bool is_x, double value)
{
    const char *unit = fabs(value) >= 1e6 ? "M" : fabs(value) >= 1e4 ? "k" : "";
    double scale = *unit == 'M' ? 1e6 : *unit == 'k' ? 1e3 : 1;
    char label[32];
    snprintf(label, sizeof label, "%.6g%s", value / scale, unit);
    draw_tick(f, is_x, value, label);
}

/* 1, 2 or 5 times a power of ten. */
static double
round_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double digit = rough / power;
    return (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
}

static void
widen_axis(struct svg_axis *a)
{
    if (a->scale == SVG_LINEAR) {
        a->max = a->max > a->min ? a->max : a->min + 1;
        double step = round_step((a->max - a->min) / TICKS_WANTED);
        a->min = floor(a->min / step) * step;
        a->max = ceil(a->max / step) * step;
    } else if (a->scale == SVG_LOG) {
        a->min = a->min > 0 && isfinite(a->min) ? a->min : 1;
        a->max = isfinite(a->max) && a->max > a->min ? a->max : a->min * 10;
        double low = pow(10, floor(log10(a->min))), high = pow(10, ceil(log10(a->max)));
        /* Half a power is room enough to waste. */
        a->min = a->min >= 5 * low ? 5 * low : a->min >= 2 * low ? 2 * low : low;
        a->max = a->max <= high / 5 ? high / 5 : a->max <= high / 2 ? high / 2 : high;
    }
}

static void
draw_log_ticks(const struct svg_frame *f, bool is_x, const struct svg_axis *a)
{
    static const double digits[] = {1, 2, 5};
    bool is_wide = a->max / a->min > 1e4; /* then powers of ten only */
    for (double power = pow(10, floor(log10(a->min))); power <= a->max; power *= 10) {
        for (unsigned i = 0; i < (is_wide ? 1u : 3u); i++) {
            double v = digits[i] * power;
            if (v >= a->min * 0.999 && v <= a->max * 1.001) {
                draw_number_tick(f, is_x, v);
            }
        }
    }
}

static void
draw_percentile_ticks(const struct svg_frame *f, bool is_x, const struct svg_axis *a)
{
    static const struct {
        double share;
        const char *label;
    } ticks[] = {{0, "0"},           {.5, "50"},          {.9, "90"},
                 {.99, "99"},        {.999, "99.9"},      {.9999, "99.99"},
                 {.99999, "99.999"}, {.999999, "99.9999"}};
    for (unsigned i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        if (ticks[i].share >= a->min && ticks[i].share <= a->max) {
            draw_tick(f, is_x, ticks[i].share, ticks[i].label);
        }
    }
}

static void
draw_ticks(const struct svg_frame *f, bool is_x)
{
    const struct svg_axis *a = is_x ? &f->x : &f->y;
    if (a->scale == SVG_LOG) {
        draw_log_ticks(f, is_x, a);
    } else if (a->scale == SVG_PERCENTILE) {
        draw_percentile_ticks(f, is_x, a);
    } else {
        double step = round_step((a->max - a->min) / TICKS_WANTED);
        for (unsigned i = 0; a->min + i * step <= a->max + step / 2; i++) {
            draw_number_tick(f, is_x, a->min + i * step);
        }
    }
}

void
svg_draw_frame(struct svg_frame *f)
{
    double bottom = f->top + f->height, middle = f->top + f->height / 2;
    widen_axis(&f->x);
    widen_axis(&f->y);
    draw_ticks(f, true);
    if (f->y.title != NULL) {
        draw_ticks(f, false);
    }
    fprintf(f->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
            "stroke=\"#888\"/>\n",
            f->left, f->top, f->width, f->height);
    put_text(f->out, f->left + f->width / 2, bottom + 36, MIDDLE, f->x.title);
    if (f->y.title != NULL) {
        fprintf(f->out,
                "<text x=\"18\" y=\"%.1f\"" MIDDLE " transform=\"rotate(-90 18 %.1f)\">",
                middle, middle);
        put_escaped(f->out, f->y.title);
    }
}

void
svg_curve_open(struct svg_curve *c, const struct svg_frame *f, unsigned colour,
               bool is_dashed)
{
    *c = (struct svg_curve){.f = f, .colour = colour, .is_dashed = is_dashed};
    fputs("<polyline points=\"", f->out);
}

void
svg_curve_point(struct svg_curve *c, double x, double y)
{
    double px = x_of(c->f, x), py = y_of(c->f, y);
    if (c->count > 0 && fabs(px - c->x) < 0.5 && fabs(py - c->y) < 0.5) {
        return; /* it would not be visible */
    }
    fprintf(c->f->out, "%s%.1f,%.1f", c->count > 0 ? " " : "", px, py);
    c->x = px;
    c->y = py;
    c->count++;
}

void
svg_curve_close(struct svg_curve *c)
{
    fprintf(c->f->out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" "
            "stroke-linejoin=\"round\"%s/>\n",
            paint_of(c->colour), c->is_dashed ? DASHES : "");
}

void
svg_dot(const struct svg_frame *f, unsigned colour, bool is_hollow, double x, double y)
{
    const char *paint = paint_of(colour);
    fprintf(f->out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" stroke=\"%s\"/>\n",
            x_of(f, x), y_of(f, y), is_hollow ? "white" : paint, paint);
}

void
svg_bar(const struct svg_frame *f, unsigned colour, bool is_hollow, double top,
        double height, double x, const char *text)
{
    const char *paint = paint_of(colour);
    double right = x_of(f, x);
    fprintf(f->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
            "stroke=\"%s\"/>\n",
            f->left, top, fmax(right - f->left, 0.5), height, is_hollow ? "white" : paint,
            paint);
    put_text(f->out, right + 4, top + height / 2 + 4, "", text);
}

void
svg_label(const struct svg_frame *f, double y, const char *text)
{
    put_text(f->out, f->left - 6, y + 4, END, text);
}

void
svg_whisker(const struct svg_frame *f, unsigned colour, double x, double low, double high)
{
    double px = x_of(f, x), top = y_of(f, high), bottom = y_of(f, low);
    fprintf(f->out,
            "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\" fill=\"none\" "
            "stroke=\"%s\"/>\n",
            px, bottom, top, px - 4, bottom, px - 4, top, paint_of(colour));
}

void
svg_note(const struct svg_frame *f, unsigned row, const char *text)
{
    put_text(f->out, f->left + f->width + LEGEND_GAP, f->top + 14 + row * LEGEND_LINE, "",
             text);
}

void
svg_legend(const struct svg_frame *f, unsigned row, unsigned colour, bool is_dashed,
           const char *text)
{
    double x = f->left + f->width + LEGEND_GAP, y = f->top + 10 + row * LEGEND_LINE;
    put_line(f->out, x, y, x + 18, y, paint_of(colour),
             is_dashed ? " stroke-width=\"1.8\"" DASHES : " stroke-width=\"1.8\"");
    fputc('\n', f->out);
    put_text(f->out, x + 24, y + 4, "", text);
}
