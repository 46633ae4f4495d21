#!/usr/bin/env perl
# cache_memlimit changes the limit while serving.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

for my $profile (profiles()) {
    my $server = start_server(profile => $profile, args => ['-m', '8']);
    my $s = $server->connect;
    my $value = 'x' x 66560;
    my $store = sub {
        my ($from, $to) = @_;
        my $bad = 0;
        for my $i ($from .. $to) {
            my $got = roundtrip($s, "set k$i 0 0 66560\r\n$value\r\n", "STORED\r\n");
            $bad++ if $got ne "STORED\r\n";
        }
        is($bad, 0, "[$profile] sets $from to $to are stored");
    };
    $store->(1, 200);
    my $st = mem_stats($s);
    cmp_ok($st->{evictions}, '>', 0, "[$profile] 8 MB do not hold 200 values");
    is($st->{limit_maxbytes}, 8388608, "[$profile] limit_maxbytes");
    exchange($s, "cache_memlimit 16\r\n", "OK\r\n");
    is(mem_stats($s, 'settings')->{maxbytes}, 16777216, "[$profile] maxbytes changes");
    is(mem_stats($s)->{limit_maxbytes}, 16777216, "[$profile] limit_maxbytes changes");
    my $malloced = mem_stats($s, 'slabs')->{total_malloced};
    my $evictions = mem_stats($s)->{evictions};
    $store->(201, 260);
    is(mem_stats($s)->{evictions}, $evictions, "[$profile] no eviction after raising it");
    cmp_ok(mem_stats($s, 'slabs')->{total_malloced}, '>', $malloced,
        "[$profile] but new pages");
    exchange($s, "cache_memlimit 8\r\n", "OK\r\n");
    $malloced = mem_stats($s, 'slabs')->{total_malloced};
    $store->(261, 300);
    cmp_ok(mem_stats($s, 'slabs')->{total_malloced}, '<=', $malloced,
        "[$profile] no new page after lowering it");
    exchange($s, "get k300\r\n", "VALUE k300 0 66560\r\n$value\r\nEND\r\n", 'the newest is there');
    exchange($s, "cache_memlimit 7\r\n",
        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n");
    is(mem_stats($s, 'settings')->{maxbytes}, 8388608, "[$profile] a refused value changes nothing");
    $server->stop;
}

done_testing();
