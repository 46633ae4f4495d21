/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/snapshot.h"

#include <inttypes.h>

#include "base/num.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TYPE_LINE "Tmain\n"
/* What lies in the pages: struct item and struct chunk. The number counts their changes. */
#define FORMAT_LINE "Kformat memcached-qos-3\n"
#define PAGES_NAME "pages_"
#define CHECKSUM_NAME "checksum"
#define PAGES_FIRST 64u
#define HEX_DIGITS 16u
#define HEX_BITS 4u

enum kind {
    KIND_TEXT,
    KIND_NUMBER,
    KIND_HEX,
    KIND_BOOL,
};

struct state_field {
    const char *name;
    size_t offset;
    enum kind kind;
    bool must_match;
};

#define ROW(field_, kind_, must_match_)                                                  \
    {                                                                                    \
        .name = #field_, .offset = offsetof(struct snapshot, field_), .kind = kind_,     \
        .must_match = must_match_                                                        \
    }

static const struct state_field fields[] = {
    ROW(slab_config, KIND_TEXT, true),
    ROW(maxbytes, KIND_NUMBER, true),
    ROW(chunk_size, KIND_NUMBER, true),
    ROW(item_size_max, KIND_NUMBER, true),
    ROW(slab_chunk_size_max, KIND_NUMBER, true),
    ROW(slab_page_size, KIND_NUMBER, true),
    ROW(use_cas, KIND_BOOL, true),
    ROW(counts_suffix, KIND_BOOL, true),
    ROW(lean_items, KIND_BOOL, true),
    ROW(slab_reassign, KIND_BOOL, false),
    ROW(current_time, KIND_NUMBER, false),
    ROW(process_started, KIND_NUMBER, false),
    ROW(stop_time, KIND_NUMBER, false),
    ROW(current_cas, KIND_NUMBER, false),
    ROW(logger_gid, KIND_NUMBER, false),
    ROW(hashpower, KIND_NUMBER, false),
    ROW(oldest_live, KIND_NUMBER, false),
    ROW(flush_epoch, KIND_NUMBER, false),
    ROW(flush_below, KIND_NUMBER, false),
    ROW(flush_at, KIND_NUMBER, false),
    ROW(items, KIND_NUMBER, false),
    ROW(contents, KIND_HEX, false),
    ROW(stamp, KIND_HEX, false),
};

#define FIELDS (sizeof(fields) / sizeof(*fields))

_Static_assert(FIELDS < 64, "a bit per field");

void
snapshot_init(struct snapshot *snap)
{
    memset(snap, 0, sizeof(*snap));
}

void
snapshot_fini(struct snapshot *snap)
{
    free(snap->pages);
    snap->pages = NULL;
}

bool
snapshot_add_page(struct snapshot *snap, unsigned class_id, uint32_t page)
{
    struct snapshot_class *c = &snap->classes[class_id];

    if (snap->page_count == snap->page_room) {
        size_t room = snap->page_room == 0 ? PAGES_FIRST : snap->page_room * 2;
        uint32_t *pages = realloc(snap->pages, room * sizeof(*pages));

        if (pages == NULL) {
            return false;
        }
        snap->pages = pages;
        snap->page_room = room;
    }
    if (c->page_count == 0) {
        c->first_page = snap->page_count;
    }
    must(c->first_page + c->page_count == snap->page_count);
    snap->pages[snap->page_count++] = page;
    c->page_count++;
    return true;
}

/* ---- words ------------------------------------------------------------------------------ */

struct word_span {
    const char *p, *end;
};

/* The next word of the line; empty at its end. */
static struct word_span
next_word(struct word_span *line)
{
    const char *blank = NULL;
    struct word_span word = *line;

    if (line->p < line->end) {
        blank = memchr(line->p, ' ', (size_t)(line->end - line->p));
        word.end = blank != NULL ? blank : line->end;
    }
    line->p = blank != NULL ? blank + 1 : line->end;
    return word;
}

static size_t
length(struct word_span w)
{
    return (size_t)(w.end - w.p);
}

static bool
is_word(struct word_span w, const char *text)
{
    return length(w) == strlen(text) && memcmp(w.p, text, length(w)) == 0;
}

static bool
read_number(struct word_span w, uint64_t *number)
{
    return num_u64(w.p, length(w), number);
}

/* Exactly as it is written: sixteen small digits. */
static bool
read_hex(struct word_span w, uint64_t *number)
{
    uint64_t sum = 0;

    if (length(w) != HEX_DIGITS) {
        return false;
    }
    for (; w.p < w.end; w.p++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, *w.p, HEX_DIGITS);

        if (digit == NULL) {
            return false;
        }
        sum = sum << HEX_BITS | (uint64_t)(digit - digits);
    }
    *number = sum;
    return true;
}

static bool
read_bool(struct word_span w, uint64_t *number)
{
    *number = is_word(w, "true");
    return *number == 1 || is_word(w, "false");
}

static bool
read_text(struct word_span w, char *text)
{
    if (length(w) == 0 || length(w) >= SNAPSHOT_CONFIG_BYTES) {
        return false;
    }
    memcpy(text, w.p, length(w));
    text[length(w)] = '\0';
    return true;
}

/* ---- parsing ---------------------------------------------------------------------------- */

/* Every line: K, a name, a blank, something. All of it printable. */
static bool
are_lines_whole(const char *p, const char *end)
{
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));

        if (stop == NULL || *p != 'K') {
            return false;
        }
        const char *blank = memchr(p, ' ', (size_t)(stop - p));
        if (blank == NULL || blank == p + 1 || blank + 1 == stop) {
            return false;
        }
        for (; p < stop; p++) {
            if (*p < ' ' || *p > '~') {
                return false;
            }
        }
        p = stop + 1;
    }
    return true;
}

static enum snapshot_status
parse_pages(struct snapshot *snap, struct word_span name, struct word_span line,
            uint64_t *seen)
{
    uint64_t id;

    name.p += strlen(PAGES_NAME);
    if (!read_number(name, &id) || id >= STORE_CLASSES || (*seen >> id & 1) != 0) {
        return SNAPSHOT_CORRUPT;
    }
    *seen |= UINT64_C(1) << id;
    struct snapshot_class *c = &snap->classes[id];
    bool is_good = read_number(next_word(&line), &c->cut_count) &&
                   read_number(next_word(&line), &c->fresh_count);
    while (is_good && line.p < line.end) {
        struct word_span word = next_word(&line);
        uint32_t page;

        is_good = num_u32(word.p, length(word), &page);
        if (is_good && !snapshot_add_page(snap, (unsigned)id, page)) {
            return SNAPSHOT_NO_MEMORY;
        }
    }
    return is_good ? SNAPSHOT_OK : SNAPSHOT_CORRUPT;
}

static bool
parse_field(struct snapshot *snap, const struct state_field *field,
            struct word_span value)
{
    void *at = (char *)snap + field->offset;

    switch (field->kind) {
    case KIND_TEXT:
        return read_text(value, at);
    case KIND_NUMBER:
        return read_number(value, at);
    case KIND_HEX:
        return read_hex(value, at);
    case KIND_BOOL:
        return read_bool(value, at);
    }
    unreachable();
}

static enum snapshot_status
parse_line(struct snapshot *snap, struct word_span line, uint64_t *seen_fields,
           uint64_t *seen_classes)
{
    struct word_span name = next_word(&line);

    if (length(name) > strlen(PAGES_NAME) &&
        memcmp(name.p, PAGES_NAME, strlen(PAGES_NAME)) == 0) {
        return parse_pages(snap, name, line, seen_classes);
    }
    for (unsigned i = 0; i < FIELDS; i++) {
        if (is_word(name, fields[i].name)) {
            bool is_new = (*seen_fields >> i & 1) == 0;

            *seen_fields |= UINT64_C(1) << i;
            return is_new && parse_field(snap, &fields[i], line) ? SNAPSHOT_OK
                                                                 : SNAPSHOT_CORRUPT;
        }
    }
    return SNAPSHOT_CORRUPT;
}

/* Takes the last line off; INCOMPLETE: there is none such. */
static enum snapshot_status
take_checksum(const char *text, const char **end)
{
    const char *start = *end - 1;
    uint64_t sum;

    while (start[-1] != '\n') { /* the type line ends before it */
        start--;
    }
    struct word_span line = (struct word_span){start + 1, *end - 1};
    if (!is_word(next_word(&line), CHECKSUM_NAME)) {
        static const char elsewhere[] = "\nK" CHECKSUM_NAME " ";

        return memmem(text, (size_t)(*end - text), elsewhere, sizeof(elsewhere) - 1) !=
                       NULL
                   ? SNAPSHOT_CORRUPT
                   : SNAPSHOT_INCOMPLETE;
    }
    if (!read_hex(line, &sum) || sum != XXH3_64bits(text, (size_t)(start - text))) {
        return SNAPSHOT_CORRUPT;
    }
    *end = start;
    return SNAPSHOT_OK;
}

static bool
starts_with(const char *p, const char *end, const char *what)
{
    size_t n = strlen(what);

    return (size_t)(end - p) >= n && memcmp(p, what, n) == 0;
}

enum snapshot_status
snapshot_parse(struct snapshot *snap, const char *text, size_t len)
{
    const char *end, *p;
    uint64_t seen_fields = 0;
    uint64_t seen_classes = 0;

    if (len < strlen(TYPE_LINE)) {
        return SNAPSHOT_CORRUPT;
    }
    end = text + len;
    p = text + strlen(TYPE_LINE);
    if (!starts_with(text, end, TYPE_LINE) || !are_lines_whole(p, end)) {
        return SNAPSHOT_CORRUPT;
    }
    if (!starts_with(p, end, FORMAT_LINE)) {
        return SNAPSHOT_INCOMPLETE;
    }
    enum snapshot_status status = take_checksum(text, &end);
    p += strlen(FORMAT_LINE);
    while (status == SNAPSHOT_OK && p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));

        status = parse_line(snap, (struct word_span){p + 1, stop}, &seen_fields,
                            &seen_classes);
        p = stop + 1;
    }
    if (status != SNAPSHOT_OK) {
        return status;
    }
    return seen_fields == (UINT64_C(1) << FIELDS) - 1 ? SNAPSHOT_OK : SNAPSHOT_INCOMPLETE;
}

/* ---- writing ---------------------------------------------------------------------------- */

static void
put_field(FILE *out, const struct snapshot *snap, const struct state_field *field)
{
    const void *at = (const char *)snap + field->offset;
    const uint64_t *number = at;

    switch (field->kind) {
    case KIND_TEXT:
        fprintf(out, "K%s %s\n", field->name, (const char *)at);
        break;
    case KIND_NUMBER:
        fprintf(out, "K%s %" PRIu64 "\n", field->name, *number);
        break;
    case KIND_HEX:
        fprintf(out, "K%s %016" PRIx64 "\n", field->name, *number);
        break;
    case KIND_BOOL:
        fprintf(out, "K%s %s\n", field->name, *number != 0 ? "true" : "false");
        break;
    }
}

static void
put_pages(FILE *out, const struct snapshot *snap, unsigned id)
{
    const struct snapshot_class *c = &snap->classes[id];

    fprintf(out, "K" PAGES_NAME "%u %" PRIu64 " %" PRIu64, id, c->cut_count,
            c->fresh_count);
    for (size_t i = 0; i < c->page_count; i++) {
        fprintf(out, " %" PRIu32, snap->pages[c->first_page + i]);
    }
    fputc('\n', out);
}

char *
snapshot_format(const struct snapshot *snap, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);

    if (out == NULL) {
        return NULL;
    }
    fputs(TYPE_LINE FORMAT_LINE, out);
    for (unsigned i = 0; i < FIELDS; i++) {
        put_field(out, snap, &fields[i]);
    }
    for (unsigned id = 0; id < STORE_CLASSES; id++) {
        if (snap->classes[id].page_count > 0) {
            put_pages(out, snap, id);
        }
    }
    bool is_good = fflush(out) == 0;
    if (is_good) {
        fprintf(out, "K" CHECKSUM_NAME " %016" PRIx64 "\n",
                (uint64_t)XXH3_64bits(text, *len));
    }
    is_good &= ferror(out) == 0;
    is_good &= fclose(out) == 0;
    if (!is_good) {
        free(text);
        return NULL;
    }
    return text;
}

const char *
snapshot_difference(const struct snapshot *was, const struct snapshot *is)
{
    for (unsigned i = 0; i < FIELDS; i++) {
        const struct state_field *field = &fields[i];
        const char *a = (const char *)was + field->offset;
        const char *b = (const char *)is + field->offset;
        bool is_same = field->kind == KIND_TEXT
                           ? strcmp(a, b) == 0
                           : *(const uint64_t *)a == *(const uint64_t *)b;

        if (field->must_match && !is_same) {
            return field->name;
        }
    }
    return NULL;
}
