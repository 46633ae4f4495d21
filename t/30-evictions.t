#!/usr/bin/env perl
# The memory limit, the slab classes and the flat LRU give exactly the documented numbers of
# evictions, victims and accounted bytes.
use MCTest;

sub store_many($s, $profile, $name, $count, $bytes, $exptime = undef) {
    $exptime //= 0;
    my $value = 'B' x $bytes;
    my $bad = 0;
    for my $i (0 .. $count - 1) {
        my $got = roundtrip($s, "set $name$i 0 $exptime $bytes\r\n$value\r\n", "STORED\r\n");
        $bad++ if $got ne "STORED\r\n";
    }
    is($bad, 0, "$count values of $bytes bytes are stored");
}

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    # The numbers are those of a flat LRU with chunks up to 1 MiB.
    my @flat = pick($profile, '1.4' => [], '1.6' => ['-o', 'no_modern,slab_chunk_max=1024'],
        ref => [])->@*;

    # 101 values of nearly 1 MiB into 64 MB: 64 fit, 37 go, the oldest first
    my ($server, $s) = serve($profile, '-m', '64', @flat);
    my $len = 1048576 - 250;
    my $value = 'B' x $len;
    exchange($s, "set big 0 0 $len\r\n$value\r\n", "STORED\r\n", 'the first large value');
    mem_get_is($s, 'big', $value, 'is there');
    store_many($s, $profile, 'item_', 100, $len);
    is(mem_stats($s)->{evictions}, 37, 'exactly 37 evictions');
    my @gone = grep { my ($cas, $v) = mem_gets($s, "item_$_"); !defined $v } 0 .. 99;
    is_deeply(\@gone, [0 .. 35], 'the victims are the oldest');
    mem_get_is($s, 'big', undef, 'and the very first');
    my ($class) = grep { defined mem_stats($s, 'items')->{"items:$_:number"} } 1 .. 63;
    is($class, 42, 'class 42');
    has(mem_stats($s, 'items'), '64 items in it', "items:42:number" => 64, "items:42:evicted" => 37);
    is(mem_stats($s)->{evicted_unfetched}, 36, '36 of them never fetched');

    # per-class eviction counters and their reset
    ($server, $s) = serve($profile, '-m', '3', @flat);
    store_many($s, $profile, 'item_', 40, 66560);
    has(mem_stats($s, 'items'), '40 values do not fit into 3 MB', 'items:31:evicted' => ['>', 0],
        'items:31:evicted' => 4, 'items:31:number' => 36, 'items:31:evicted_nonzero' => 0);
    exchange($s, "stats reset\r\n", "RESET\r\n");
    is(mem_stats($s, 'items')->{'items:31:evicted'}, 0, 'reset');
    store_many($s, $profile, 'more_', 40, 66560);
    is(mem_stats($s, 'items')->{'items:31:evicted'}, 40, 'exactly 40 more');
    store_many($s, $profile, 'timed_', 50, 66560, 600);
    has(mem_stats($s, 'items'), '90 by now, 14 of them had an exptime, never out of memory',
        'items:31:evicted' => 90, 'items:31:evicted_nonzero' => 14, 'items:31:outofmemory' => 0);

    # -M: nothing is evicted
    ($server, $s) = serve($profile, '-M', '-m', pick($profile, '1.4' => 1, '1.6' => 2), @flat);
    my $stored = 0;
    my $got;
    $value = 'B' x 8192;
    for my $i (0 .. 1000) {
        $got = roundtrip($s, "set dash$i 0 0 8192\r\n$value\r\n");
        last if $got ne "STORED\r\n";
        $stored++;
    }
    cmp_ok($stored, '>', 50, '-M: some are stored');
    is($got, "SERVER_ERROR out of memory storing object\r\n", '-M: then none');
    exchange($s, "set dash_x 0 0 8192\r\n$value\r\n",
        "SERVER_ERROR out of memory storing object\r\n", '-M: nor the next');
    my @missing = grep { my ($cas, $v) = mem_gets($s, "dash$_"); !defined $v || $v ne $value }
        0 .. $stored - 1;
    is(scalar(@missing), 0, "-M: all $stored are readable");
    is(mem_stats($s)->{evictions}, 0, '-M: no evictions');
    exchange($s, "delete dash0\r\nset dash_y 0 0 8192\r\n$value\r\n", "DELETED\r\nSTORED\r\n",
        '-M: a deleted item makes room');
    exchange($s, "set dash1 0 0 8192\r\n$value\r\nget dash1\r\n",
        "SERVER_ERROR out of memory storing object\r\nEND\r\n", '-M: a refused set leaves no stale value');
    exchange($s, "set dash_z 0 0 8192 noreply\r\n$value\r\nset dash_w 0 0 8192 noreply\r\n"
            . "$value\r\nversion\r\n", VERSION_REPLY($profile), '-M: noreply hides it');
    $server->stop;

    # a counter above 4 GiB
    SKIP: {
        skip 'only 1.4 arithmetic', 1 if $profile ne '1.4';
        my ($server, $s) = serve($profile, '-m', '4098', '-M', {env => {T_MEMD_INITIAL_MALLOC => '4294967328'}});
        is(mem_stats($s)->{limit_maxbytes}, 4297064448, '[1.4] limit_maxbytes above 4 GiB');
        my $slabs = mem_stats($s, 'slabs');
        has($slabs, '[1.4] expected total_malloced', total_malloced => 4294967328, active_slabs => 0);
        my $size = 400 * 1024;
        my $data = 'a' x $size;
        my $hit_limit = 0;
        for my $i (0 .. 4) {
            my $got = roundtrip($s, "set big$i 0 0 $size\r\n$data\r\n");
            $hit_limit++ if $got ne "STORED\r\n";
        }
        cmp_ok($hit_limit, '>', 0, '[1.4] the limit is hit');
        is(mem_stats($s, 'slabs')->{active_slabs}, 1, '[1.4] one active slab');
    }

    # accounted bytes
    if ($profile eq '1.4') {
        ($server, $s) = serve($profile);
        exchange($s, "set key$_ 0 0 10\r\n0123456789\r\n", "STORED\r\n") for 0 .. 9;
        is(mem_stats($s, 'slabs')->{'1:mem_requested'}, 800, '[1.4] ten items of 80 bytes');
        is(mem_stats($s)->{bytes}, 800, '[1.4] bytes likewise');
        exchange($s, "delete key0\r\n", "DELETED\r\n");
        is(mem_stats($s, 'slabs')->{'1:mem_requested'}, 720, '[1.4] nine');
        exchange($s, "set key1 0 0 20\r\n01234567890123456789\r\n", "STORED\r\n");
        is(mem_stats($s, 'slabs')->{'1:mem_requested'}, 640 + 90, '[1.4] a longer value');
        for my $i (0 .. 2000) {
            roundtrip($s, "incr key1 1\r\nappend key2 0 0 1\r\nx\r\ndelete key2\r\n"
                    . "set key2 0 0 1\r\nx\r\ntouch key1 0\r\n");
        }
        is(mem_stats($s)->{curr_items}, 9, '[1.4] items neither leak nor vanish');
        is(mem_stats($s, 'slabs')->{'1:used_chunks'}, 9, '[1.4] nor do chunks');
        exchange($s, "set nn 0 0 0\r\n\r\n", "STORED\r\n");
        roundtrip($s, "incr nn 1\r\n") for 1 .. 100;
        exchange($s, "delete nn\r\n", "DELETED\r\n");
        roundtrip($s, "set bad 0 0 1\r\nxx\n") for 1 .. 100;
        roundtrip($s, "add key1 0 0 1\r\nx\r\nreplace nix 0 0 1\r\nx\r\n") for 1 .. 100;
        is(mem_stats($s, 'slabs')->{'1:used_chunks'}, 9, '[1.4] nor by failed commands');
        my $half = $server->connect;
        put($half, "set half 0 0 10\r\nabc");
        soon { mem_stats($s, 'slabs')->{'1:used_chunks'} == 10 } '[1.4] an item being written takes a chunk';
        close $half;
        soon { mem_stats($s, 'slabs')->{'1:used_chunks'} == 9 }
            '[1.4] and gives it back when its client leaves';
    }
});

done_testing();
