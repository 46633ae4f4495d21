#!/usr/bin/env perl
# The segmented LRU in the running server: memory is found under pressure, what is read twice
# survives, what expires soon is kept apart and goes in the background.
use MCTest ':ours';

my $len = 66560;    # class 31 with the default sizes: 12 a page
my $value = 'B' x $len;

sub set_ok($s, $key, $ttl) {
    put($s, "set $key 0 $ttl $len\r\n$value\r\n");
    my $reply = read_line($s);
    return $reply eq "STORED\r\n" || fail("set $key: $reply");
}

sub item_stat($s, $name) {
    return mem_stats($s, 'items')->{"items:31:$name"} // 0;
}

# one visit of the background thread to all classes has begun and ended since the call
sub wait_juggle($s) {
    my $before = mem_stats($s)->{lru_maintainer_juggles};
    return wait_until(sub { mem_stats($s)->{lru_maintainer_juggles} >= $before + 2 });
}

each_profile(sub ($profile) {
    my $start = sub ($mib, $words) {
        my $on = pick($profile, '1.4' => 'lru_maintainer', '1.6' => 'modern');
        return start_server(profile => $profile, args => ['-m', $mib, '-o', join ',', $on, 'slab_chunk_max='
            . pick($profile, '1.4' => 1048576, '1.6' => 1024), @$words]);
    };

    {
        my $server = $start->(3, []);
        my $s = $server->connect;
        my $key = 'k' x 200;
        put($s, join '', map { "set $key$_ 0 0 2 noreply\r\nok\r\n" } 10000 .. 24999);
        exchange($s, "set canary 0 0 2\r\nok\r\n", "STORED\r\n", 'no lack of memory under pressure');
        cmp_ok(mem_stats($s)->{evictions}, '>', 0, 'there was pressure');
        $server->stop;
    }
    {
        my $server = $start->(6, []);
        my $s = $server->connect;
        debugtime($server, 'p');
        set_ok($s, "ifoo$_", 1) for 1 .. 10;
        is(mem_stats($s)->{curr_items}, 10, 'ten items that expire soon');
        debugtime($server, 3);
        debugtime($server, 'r');
        soon {
            my $st = mem_stats($s); # the crawler may be first
            $st->{reclaimed} + $st->{crawler_reclaimed} == 10
        }
        'they go in the background';
        is(mem_stats($s)->{curr_items}, 0, 'all of them');

        set_ok($s, 'canary', 0);
        set_ok($s, "ifoo$_", 0) for 1 .. 30;
        roundtrip($s, "get canary\r\n") for 1 .. 2;
        for my $i (31 .. 100) {
            set_ok($s, "ifoo$i", 0);
            wait_juggle($s) if $i % 10 == 0;
        }
        is((mem_gets($s, 'canary'))[0] eq '' ? 0 : 1, 1, 'the canary lives');
        cmp_ok(item_stat($s, 'moves_to_cold'), '>', 0, 'moves to COLD');
        cmp_ok(item_stat($s, 'moves_to_warm'), '>', 0, 'moves to WARM');
        cmp_ok(item_stat($s, 'number_warm'), '>', 0, 'WARM has items');
        cmp_ok(mem_stats($s)->{evictions}, '>', 0, 'others were evicted');
        my $hits = 0;
        $hits += item_stat($s, "hits_to_$_") for qw(hot warm cold);
        is($hits, mem_stats($s)->{get_hits}, 'each hit was in some list');

        my $server_has = item_stat($s, 'number');
        exchange($s, "lru mode flat\r\n", "OK\r\n", 'flat');
        soon { item_stat($s, 'number_cold') == $server_has } 'the lists drain into COLD';
        $server->stop;
    }
    {
        my $server = $start->(2, ['temporary_ttl=61']);
        my $s = $server->connect;
        is(mem_stats($s, 'settings')->{temp_lru}, 'yes', 'temp_lru');
        set_ok($s, 'canary', 30);
        is(item_stat($s, 'number_hot'), 0, 'the canary is not in HOT');
        set_ok($s, "ifoo$_", 3600) for 1 .. 100;
        is((mem_gets($s, 'canary'))[0] eq '' ? 0 : 1, 1, 'it lives');
        is(item_stat($s, 'number_temp'), 1, 'alone in TEMP');
        exchange($s, "mg canary\r\n", "HD\r\n", 'read by mg');
        is(item_stat($s, 'hits_to_temp'), 2, 'both reads found it there');
        debugtime($server, 32);
        soon { item_stat($s, 'number_temp') == 0 } 'until it expires';
        $server->stop;
    }
});

done_testing();
