#!/usr/bin/env perl
# cache_memlimit changes the limit while serving.
use MCTest;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-m', '8');
    my $value = 'x' x 66560;
    my $store = sub ($from, $to) {
        my $bad = 0;
        for my $i ($from .. $to) {
            my $got = roundtrip($s, "set k$i 0 0 66560\r\n$value\r\n", "STORED\r\n");
            $bad++ if $got ne "STORED\r\n";
        }
        is($bad, 0, "sets $from to $to are stored");
    };
    $store->(1, 200);
    has(mem_stats($s), '8 MB do not hold 200 values', evictions => ['>', 0], limit_maxbytes => 8388608);
    exchange($s, "cache_memlimit 16\r\n", "OK\r\n");
    is(mem_stats($s, 'settings')->{maxbytes}, 16777216, 'maxbytes changes');
    is(mem_stats($s)->{limit_maxbytes}, 16777216, 'limit_maxbytes changes');
    my $malloced = mem_stats($s, 'slabs')->{total_malloced};
    my $evictions = mem_stats($s)->{evictions};
    $store->(201, 260);
    is(mem_stats($s)->{evictions}, $evictions, 'no eviction after raising it');
    cmp_ok(mem_stats($s, 'slabs')->{total_malloced}, '>', $malloced, 'but new pages');
    exchange($s, "cache_memlimit 8\r\n", "OK\r\n");
    $malloced = mem_stats($s, 'slabs')->{total_malloced};
    $store->(261, 300);
    cmp_ok(mem_stats($s, 'slabs')->{total_malloced}, '<=', $malloced, 'no new page after lowering it');
    exchanges($s, ["get k300\r\n", "VALUE k300 0 66560\r\n$value\r\nEND\r\n", 'the newest is there'],
        ["cache_memlimit 7\r\n", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"]);
    is(mem_stats($s, 'settings')->{maxbytes}, 8388608, 'a refused value changes nothing');
});

done_testing();
