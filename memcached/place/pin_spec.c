/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The words of --pin.
 */
#include "place/pin.h"

#include "base/num.h"
#include "base/part.h"
#include "place/topo.h"

static const char *const policy_names[] = {
    [PIN_NONE] = "none",   [PIN_SPREAD] = "spread", [PIN_COMPACT] = "compact",
    [PIN_CORES] = "cores", [PIN_LLC] = "llc",       [PIN_SHAPE] = "shape",
    [PIN_LIST] = "list",
};

const char *
pin_policy_name(enum pin_policy policy)
{
    must((unsigned)policy < sizeof policy_names / sizeof policy_names[0]);
    return policy_names[policy];
}

/* Digits up to `unit`, which is passed over; 0 when it is no number from 1 to CPUMASK_CPUS. */
static unsigned
parse_number(const char **text, char unit)
{
    size_t len = strspn(*text, "0123456789");
    uint32_t number;
    if ((*text)[len] != unit || !num_u32(*text, len, &number) || number > CPUMASK_CPUS) {
        return 0;
    }
    *text += len + 1;
    return number;
}

static const char *
parse_shape(struct pin_shape *shape, const char *text)
{
    unsigned given = 0;
    shape->sockets = parse_number(&text, 's');
    if (shape->sockets == 0 || shape->sockets > PIN_SOCKETS_MAX) {
        return "a pin shape has 1 to 16 sockets, such as 2s6c1t or 2s3,6c2t";
    }
    for (bool is_last = false; !is_last; given++) {
        is_last = text[strspn(text, "0123456789")] != ',';
        if (given == shape->sockets) {
            return "the pin shape has more core counts than sockets";
        }
        shape->cores[given] = parse_number(&text, is_last ? 'c' : ',');
        if (shape->cores[given] == 0) {
            return "a pin shape is made of counts from 1, such as 2s6c1t or 2s3,6c2t";
        }
    }
    if (given != 1 && given != shape->sockets) {
        return "the pin shape has fewer core counts than sockets";
    }
    for (; given < shape->sockets; given++) {
        shape->cores[given] = shape->cores[0];
    }
    shape->threads = parse_number(&text, 't');
    return shape->threads > 0 && *text == '\0'
               ? NULL
               : "a pin shape is made of counts from 1, such as 2s6c1t or 2s3,6c2t";
}

static const char *
parse_list(struct pin_spec *spec, const char *text)
{
    int cpus[CPUMASK_CPUS];
    unsigned count;
    const char *wrong = topo_parse_list(text, cpus, &count);
    if (wrong != NULL) {
        return wrong;
    }
    spec->list = malloc(count * sizeof cpus[0]);
    if (spec->list == NULL) {
        return "out of memory";
    }
    memcpy(spec->list, cpus, count * sizeof cpus[0]);
    spec->list_len = count;
    return NULL;
}

const char *
pin_spec_parse(struct pin_spec *spec, const char *text)
{
    static const char prefix[] = "list:";
    const char *wrong = NULL;
    *spec = (struct pin_spec){.policy = PIN_SPREAD};
    if (text == NULL) {
        return NULL;
    }
    unsigned policy = part_find(policy_names, PIN_SHAPE, text, strlen(text));
    if (policy < PIN_SHAPE) {
        spec->policy = (enum pin_policy)policy;
        return NULL;
    }
    if (strncmp(text, prefix, sizeof prefix - 1) == 0) {
        wrong = parse_list(spec, text + sizeof prefix - 1);
        spec->policy = PIN_LIST;
    } else if (*text >= '0' && *text <= '9') {
        wrong = parse_shape(&spec->shape, text);
        spec->policy = PIN_SHAPE;
    } else {
        wrong =
            "the pin policy is one of spread, compact, cores, llc, none, a shape like "
            "2s6c1t, list:0,2,4-7";
    }
    if (wrong != NULL) {
        spec->policy = PIN_NONE;
    }
    return wrong;
}

void
pin_spec_fini(struct pin_spec *spec)
{
    free(spec->list);
    *spec = (struct pin_spec){.policy = PIN_NONE};
}
