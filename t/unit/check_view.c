/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What statistics mean to mcqos: its own questions are no load of the server.
 */
#include "mcqos/view.h"

#include "check_main.h"

#define SECONDS 2
#define ASKED 6 /* questions of one sample */

static struct facts before, now;

static void
add(struct facts *f, const char *name, unsigned value)
{
    char text[VIEW_NUMBER];
    snprintf(text, sizeof text, "%u", value);
    facts_add(f, name, text);
}

/* What a server says that has answered so many questions of ours. */
static void
sample(struct facts *f, unsigned asked, unsigned uptime, unsigned control, unsigned small)
{
    add(f, "server_version", 1);
    add(f, "uptime", uptime);
    add(f, "pid", 1);
    add(f, "threads", 1);
    add(f, "class_control_served", control);
    add(f, "class_small_served", small);
    f->asked = asked;
    f->at = uptime * NSEC_PER_SEC;
}

static void
tear_down(void)
{
    facts_fini(&before);
    facts_fini(&now);
}

FIXTURE(NULL, tear_down);

static const struct own_row {
    const char *name;
    unsigned control, small; /* requests of others in between */
} rows[] = {{"idle", 0, 0}, {"busy", 20, 3000}};

TEST_ROWS(own_questions_are_no_load, rows, row->name)
{
    sample(&before, 3, 100, 3, 0);
    sample(&now, 3 + ASKED, 100 + SECONDS, 3 + ASKED + row->control, row->small);
    struct view v;
    view_init(&v, &before, &now);
    ck_assert_double_eq(v.classes.rows[0].cells[CLASS_SERVED],
                        (double)row->control / SECONDS);
    ck_assert_double_eq(v.requests, (double)(row->control + row->small) / SECONDS);
    view_fini(&v);
}

/* A login for each sample is counted with small requests; and what was asked of a server before it was
 * started again is not counted by the new one. */
TEST(own_logins_are_no_load)
{
    struct view v;
    sample(&before, 3, 100, 3, 2);
    sample(&now, 3 + ASKED, 100 + SECONDS, 3 + ASKED, 4);
    before.login_asked = 2;
    now.login_asked = 4;
    view_init(&v, &before, &now);
    ck_assert_double_eq(v.requests, 0);
    view_fini(&v);
}

TEST(a_server_that_was_started_again)
{
    struct view v;
    sample(&before, 3000, 100, 3000, 0);
    sample(&now, 3000 + ASKED, SECONDS, ASKED + 20, 0);
    view_init(&v, &before, &now);
    ck_assert_double_eq_tol(v.classes.rows[0].cells[CLASS_SERVED], 20.0 / SECONDS, 1e-9);
    view_fini(&v);
}

/* Those of a sample alone, since the start of the server; never less than none. */
TEST_ROWS(a_sample_alone, rows, row->name)
{
    sample(&now, 3, 10, 3 + row->control, row->small);
    struct view v;
    view_init(&v, NULL, &now);
    ck_assert_double_eq_tol(v.classes.rows[0].cells[CLASS_SERVED], row->control / 10.0,
                            1e-9);
    view_fini(&v);
    now.asked = 1000;
    view_init(&v, NULL, &now);
    ck_assert_double_eq(v.classes.rows[0].cells[CLASS_SERVED], 0);
    view_fini(&v);
}
