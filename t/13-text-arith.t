#!/usr/bin/env perl
# incr wraps at 2^64, decr stops at 0, shorter results are padded in place, longer ones grow.
use MCTest;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile);

    exchanges($s, ["incr nix 1\r\n", "NOT_FOUND\r\n", {incr_misses => 1, incr_hits => 0}],
        ["decr nix 1\r\n", "NOT_FOUND\r\n", {decr_misses => 1, decr_hits => 0}],
        ["set num 5 0 1\r\n1\r\n", "STORED\r\n"],
        ["incr num 1\r\n", "2\r\n", {incr_misses => 0, incr_hits => 1, curr_items => 0}],
        ["incr num 8\r\n", "10\r\n", 'the number grows by a digit'],
        ["get num\r\n", "VALUE num 5 2\r\n10\r\nEND\r\n", 'and so does the value'],
        ["decr num 1\r\n", "9\r\n", {decr_misses => 0, decr_hits => 1}],
        ["get num\r\n", "VALUE num 5 2\r\n9 \r\nEND\r\n", 'padded to the old length'],
        ["incr num 0\r\n", "9\r\n", 'a padded value is a number'], ["decr num 9\r\n", "0\r\n"],
        ["decr num 5\r\n", "0\r\n", 'decr stops at 0'], ["incr num 2147483647\r\n", "2147483647\r\n"],
        ["incr num 1\r\n", "2147483648\r\n", 'beyond 2^31'],
        ["incr num 2147483648\r\n", "4294967296\r\n", 'beyond 2^32'],
        ["incr num 9223372032559808512\r\n", "9223372036854775808\r\n", 'beyond 2^63'],
        ["incr num 9223372036854775807\r\n", "18446744073709551615\r\n", '2^64 - 1'],
        ["incr num 1\r\n", "0\r\n", 'wraps to 0'], ["decr num 18446744073709551615\r\n", "0\r\n"],
        ["set max 0 0 20\r\n18446744073709551615\r\n", "STORED\r\n"],
        ["incr max 18446744073709551615\r\n", "18446744073709551614\r\n"],
        ["decr max 18446744073709551614\r\n", "0\r\n"],
        ["get max\r\n", "VALUE max 0 20\r\n0" . (' ' x 19) . "\r\nEND\r\n"]);

    exchanges($s, ["set lead 0 0 3\r\n007\r\n", "STORED\r\n"], ["incr lead 1\r\n", "8\r\n", 'leading zeros'],
        ["get lead\r\n", "VALUE lead 0 3\r\n8  \r\nEND\r\n"], ["set sp 0 0 3\r\n 12\r\n", "STORED\r\n"],
        ["incr sp 1\r\n", "13\r\n", 'leading blanks in the value'],
        ["set two 0 0 5\r\n12 34\r\n", "STORED\r\n"], ["incr two 1\r\n", "13\r\n", 'a number ends at a blank']);

    # what else a stored number may look like, and what is left of it
    for (['+5', '6'], [' +5', '6'], ['0' x 25, '1'], ['0' x 24 . '5', '6'], ["12\0", '13'],
        ["12\0abc", '13'], ["12\tabc", '13'], ["\t\x0b5", '6'], ["5\nx", '6'], ['-0', '1'],
        [' ' x 29 . '5', '6'], ['5' . ' ' x 29, '6'], ['+18446744073709551615', '0']) {
        my ($stored, $sum) = @$_;
        my ($name, $n) = (show($stored), length $stored);
        exchange($s, "set n 0 0 $n\r\n$stored\r\nincr n 1\r\n", "STORED\r\n$sum\r\n", "'$name'");
        exchange($s, "get n\r\n", "VALUE n 0 $n\r\n$sum" . ' ' x ($n - length $sum) . "\r\nEND\r\n");
        next if $profile eq 'ref';
        exchange($s, "set n 0 0 $n\r\n$stored\r\nma n v\r\n", "STORED\r\nVA " . length($sum) .
            "\r\n$sum\r\n", "'$name' for ma");
    }
    for ('+-5', '-+5', '++5', '+ 5', '+', '-5', "\0", "\0005", '5-', "5\x85", '1e3',
        '+18446744073709551616') {
        my ($name, $n) = (show($_), length);
        exchange($s, "set n 0 0 $n\r\n$_\r\nincr n 1\r\n", "STORED\r\n" .
            "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", "'$name' is none");
    }

    for my $n (1 .. 249) {
        my $key = 'i' x $n;
        my $got = roundtrip($s, "set $key 0 0 1\r\n9\r\nincr $key 1\r\nget $key\r\n");
        next if $got eq "STORED\r\n10\r\nVALUE $key 0 2\r\n10\r\nEND\r\n";
        fail("growing value of a key of $n bytes: " . show($got));
    }
    pass('a value grows by incr for every key length');

    # leaves the exptime as it was
    if ($profile ne 'ref') {
        debugtime($server, 'p');
        exchanges($s, ["set exp 0 100 1\r\n9\r\n", "STORED\r\n"], ["incr exp 1\r\n", "10\r\n"],
            ["incr exp 1\r\n", "11\r\n"]);
        debugtime($server, 99);
        exchange($s, "incr exp 1\r\n", "12\r\n", 'still there a second before');
        debugtime($server, 2);
        exchange($s, "incr exp 1\r\n", "NOT_FOUND\r\n", 'incr keeps the exptime');
    }
});

done_testing();
