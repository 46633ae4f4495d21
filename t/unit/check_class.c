/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which class a request falls into.
 */
#include "qos/class.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    struct class_traits traits;
    enum req_class class;
} cases[] = {
    {{.is_control = true, .keys = 1}, CLASS_CONTROL},
    {{.is_control = true, .keys = 1000, .is_incomplete = true}, CLASS_CONTROL},
    {{.keys = 1}, CLASS_SMALL},
    {{.keys = CLASS_BULK_KEYS}, CLASS_SMALL},
    {{.keys = CLASS_BULK_KEYS + 1}, CLASS_BULK},
    {{.keys = UINT32_MAX}, CLASS_BULK},
    {{.keys = 1, .value_bytes = CLASS_BULK_BYTES}, CLASS_SMALL},
    {{.keys = 1, .value_bytes = CLASS_BULK_BYTES + 1}, CLASS_BULK},
    {{.keys = 1, .value_bytes = UINT64_MAX}, CLASS_BULK},
    {{.keys = 1, .value_bytes = 1, .is_incomplete = true}, CLASS_BULK},
};

START_TEST(request_falls_into_its_class)
{
    ck_assert_int_eq(class_of(&cases[_i].traits), cases[_i].class);
}
END_TEST

START_TEST(table_says_what_each_class_is)
{
    ck_assert_str_eq(class_name(CLASS_CONTROL), "control");
    ck_assert_str_eq(class_name(CLASS_SMALL), "small");
    ck_assert_str_eq(class_name(CLASS_BULK), "bulk");
    ck_assert(class_is_inline(CLASS_CONTROL) && class_is_inline(CLASS_SMALL));
    ck_assert(!class_is_inline(CLASS_BULK));
    ck_assert(!class_is_limited(CLASS_CONTROL));
    ck_assert(class_is_limited(CLASS_SMALL) && class_is_limited(CLASS_BULK));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("class");
    TCase *tc = tcase_create("class");
    tcase_add_loop_test(tc, request_falls_into_its_class, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, table_says_what_each_class_is);
    suite_add_tcase(suite, tc);

    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
