#!/usr/bin/env perl
# incr wraps at 2^64, decr stops at 0, shorter results are padded in place, longer ones grow.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

for my $profile (profiles()) {
    my $server = start_server(profile => $profile);
    my $s = $server->connect;

    exchange($s, "incr nix 1\r\n", "NOT_FOUND\r\n", {incr_misses => 1, incr_hits => 0});
    exchange($s, "decr nix 1\r\n", "NOT_FOUND\r\n", {decr_misses => 1, decr_hits => 0});
    exchange($s, "set num 5 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "incr num 1\r\n", "2\r\n", {incr_misses => 0, incr_hits => 1, curr_items => 0});
    exchange($s, "incr num 8\r\n", "10\r\n", 'the number grows by a digit');
    exchange($s, "get num\r\n", "VALUE num 5 2\r\n10\r\nEND\r\n", 'and so does the value');
    exchange($s, "decr num 1\r\n", "9\r\n", {decr_misses => 0, decr_hits => 1});
    exchange($s, "get num\r\n", "VALUE num 5 2\r\n9 \r\nEND\r\n", 'padded to the old length');
    exchange($s, "incr num 0\r\n", "9\r\n", 'a padded value is a number');
    exchange($s, "decr num 9\r\n", "0\r\n");
    exchange($s, "decr num 5\r\n", "0\r\n", 'decr stops at 0');
    exchange($s, "incr num 2147483647\r\n", "2147483647\r\n");
    exchange($s, "incr num 1\r\n", "2147483648\r\n", 'beyond 2^31');
    exchange($s, "incr num 2147483648\r\n", "4294967296\r\n", 'beyond 2^32');
    exchange($s, "incr num 9223372032559808512\r\n", "9223372036854775808\r\n", 'beyond 2^63');
    exchange($s, "incr num 9223372036854775807\r\n", "18446744073709551615\r\n", '2^64 - 1');
    exchange($s, "incr num 1\r\n", "0\r\n", 'wraps to 0');
    exchange($s, "decr num 18446744073709551615\r\n", "0\r\n");
    exchange($s, "set max 0 0 20\r\n18446744073709551615\r\n", "STORED\r\n");
    exchange($s, "incr max 18446744073709551615\r\n", "18446744073709551614\r\n");
    exchange($s, "decr max 18446744073709551614\r\n", "0\r\n");
    exchange($s, "get max\r\n", "VALUE max 0 20\r\n0" . (' ' x 19) . "\r\nEND\r\n");

    exchange($s, "set lead 0 0 3\r\n007\r\n", "STORED\r\n");
    exchange($s, "incr lead 1\r\n", "8\r\n", 'leading zeros');
    exchange($s, "get lead\r\n", "VALUE lead 0 3\r\n8  \r\nEND\r\n");
    exchange($s, "set sp 0 0 3\r\n 12\r\n", "STORED\r\n");
    exchange($s, "incr sp 1\r\n", "13\r\n", 'leading blanks in the value');
    exchange($s, "set two 0 0 5\r\n12 34\r\n", "STORED\r\n");
    exchange($s, "incr two 1\r\n", "13\r\n", 'a number ends at a blank');

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
        fail("[$profile] growing value of a key of $n bytes: " . show($got));
    }
    pass("[$profile] a value grows by incr for every key length");

    # leaves the exptime as it was
    if ($profile ne 'ref') {
        exchange($s, "set exp 0 100 1\r\n9\r\n", "STORED\r\n");
        exchange($s, "incr exp 1\r\n", "10\r\n");
        exchange($s, "incr exp 1\r\n", "11\r\n");
        debugtime($server, 99);
        exchange($s, "incr exp 1\r\n", "12\r\n", 'still there a second before');
        debugtime($server, 2);
        exchange($s, "incr exp 1\r\n", "NOT_FOUND\r\n", 'incr keeps the exptime');
    }
    $server->stop;
}

done_testing();
