#!/usr/bin/env perl
# Items expire when the clock says so: relative, absolute and negative times, touch and gat;
# the memory of expired items is used again.
use MCTest ':ours';

each_profile(sub ($profile) {
    # no thread that removes what is gone before somebody asks for it
    my @quiet = @{pick($profile, '1.4' => [], '1.6' => ['-o', 'no_lru_crawler,no_lru_maintainer'])};
    my ($server, $s) = serve($profile, @quiet);
    exchange($s, "debugtime 0\r\n", "OK\r\n");
    debugtime($server, 'p'); # it moves by commands alone

    # relative
    exchanges($s, ["set a 0 100 1\r\n1\r\n", "STORED\r\n"], ["set b 0 0 1\r\n1\r\n", "STORED\r\n"]);
    mem_get_is($s, 'a', '1');
    debugtime($server, 95);
    mem_get_is($s, 'a', '1', 'there before its time');
    debugtime($server, 6);
    exchange($s, "get a\r\n", "END\r\n", {get_expired => 1, get_misses => 1, get_hits => 0, curr_items => -1},
        'gone at its time, removed and counted');
    exchange($s, "get a\r\n", "END\r\n", {get_expired => 0, get_misses => 1});
    mem_get_is($s, 'b', '1', 'exptime 0 does not expire');

    # absolute
    my $now = mem_stats($s)->{time};
    exchange($s, 'set a 0 ' . ($now + 200) . " 1\r\n1\r\n", "STORED\r\n");
    debugtime($server, 195);
    mem_get_is($s, 'a', '1', 'absolute time: there before');
    debugtime($server, 7);
    mem_get_is($s, 'a', undef, 'absolute time: gone after');
    exchange($s, 'set a 0 ' . ($now - 1000000) . " 1\r\n1\r\n", "STORED\r\n");
    mem_get_is($s, 'a', undef, 'absolute time in the past');
    exchange($s, "set a 0 2592001 1\r\n1\r\n", "STORED\r\n", {get_expired => 0});
    exchange($s, "get a\r\n", "END\r\n", {get_expired => 1}, '30 days and a second is absolute');
    exchange($s, "set a 0 2678400 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "get a\r\n", "END\r\n", {get_expired => 1}, 'so is 31 days');
    exchange($s, "set a 0 2592000 1\r\n1\r\n", "STORED\r\n");
    debugtime($server, 2591990);
    mem_get_is($s, 'a', '1', '30 days is relative');
    debugtime($server, 12);
    mem_get_is($s, 'a', undef, 'and over after 30 days');
    mem_get_is($s, 'b', '1', 'exptime 0 still does not expire');

    # every kind of look-up counts what it finds dead, a store does not
    my @lookups = (['touch KEY 0', "NOT_FOUND"], ['incr KEY 1', "NOT_FOUND"],
        ['decr KEY 1', "NOT_FOUND"], ['delete KEY', "NOT_FOUND"], ['gat 0 KEY', 'END'],
        ['md KEY', 'NF'], ['ma KEY', 'NF'], ['me KEY', 'EN'], ['mg KEY v', 'EN']);
    for my $how ('get_expired', 'get_flushed') {
        my $exptime = $how eq 'get_expired' ? 10 : 0;
        exchange($s, "set gone$_ 0 $exptime 1\r\n1\r\n", "STORED\r\n") for 0 .. @lookups;
        debugtime($server, 20);
        exchange($s, "flush_all\r\n", "OK\r\n") if $how eq 'get_flushed';
        for my $i (0 .. $#lookups) {
            my ($send, $want) = @{$lookups[$i]};
            $send =~ s/KEY/gone$i/;
            exchange($s, "$send\r\n", "$want\r\n", {$how => 1}, "$how by $send");
        }
        my $last = @lookups;
        exchange($s, "add gone$last 0 0 1\r\n1\r\n", "STORED\r\n", {$how => 0}, "$how not by add");
    }
    exchange($s, "set b 0 0 1\r\n1\r\n", "STORED\r\n");

    # negative
    for my $exptime (-1, -100, -2147483648) {
        exchanges($s, ["set a 0 0 3\r\nold\r\n", "STORED\r\n"], ["set a 0 $exptime 1\r\n1\r\n", "STORED\r\n"]);
        mem_get_is($s, 'a', undef, "exptime $exptime is over at once, and replaces");
    }
    exchange($s, "set a 0 99999999999 1\r\n1\r\n", "STORED\r\n", 'an exptime of 37 bits');

    # an expired item is absent for every command
    for my $row (["add e 0 0 1\r\n2\r\n", "STORED\r\n", 'add succeeds on an expired key'],
        ["replace e 0 0 1\r\n2\r\n", "NOT_STORED\r\n"], ["append e 0 0 1\r\n2\r\n", "NOT_STORED\r\n"],
        ["prepend e 0 0 1\r\n2\r\n", "NOT_STORED\r\n"], ["cas e 0 0 1 1\r\n2\r\n", "NOT_FOUND\r\n"],
        ["incr e 1\r\n", "NOT_FOUND\r\n"], ["delete e\r\n", "NOT_FOUND\r\n"],
        ["touch e 100\r\n", "NOT_FOUND\r\n"], ["gat 100 e\r\n", "END\r\n"])
    {
        exchange($s, "set e 0 10 1\r\n1\r\n", "STORED\r\n", 'set e for 10 s');
        debugtime($server, 11);
        exchange($s, @$row);
    }
    mem_get_is($s, 'e', undef, 'and stays absent');

    # touch and gat move the time
    exchanges($s, ["set t 0 10 1\r\n1\r\n", "STORED\r\n"], ["touch t 100\r\n", "TOUCHED\r\n"]);
    debugtime($server, 90);
    mem_get_is($s, 't', '1', 'touch extends');
    exchange($s, "gat 100 t\r\n", "VALUE t 0 1\r\n1\r\nEND\r\n");
    debugtime($server, 90);
    mem_get_is($s, 't', '1', 'gat extends');
    exchange($s, "touch t 0\r\n", "TOUCHED\r\n");
    debugtime($server, 3000000);
    mem_get_is($s, 't', '1', 'touch 0: for ever');
    exchange($s, "touch t -1\r\n", "TOUCHED\r\n");
    mem_get_is($s, 't', undef, 'touch -1: over');
    exchange($s, "set t 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "gat -1 t\r\n", "VALUE t 0 1\r\n1\r\nEND\r\n", 'gat -1 still returns it');
    mem_get_is($s, 't', undef, 'and then it is over');
    exchanges($s, ["set t 0 0 1\r\n1\r\n", "STORED\r\n"], ["touch t -2147483648\r\n", "TOUCHED\r\n"]);
    mem_get_is($s, 't', undef, 'a large negative time does not wrap into the future');
    exchange($s, "set t 0 10 1\r\n1\r\nappend t 0 0 1\r\n2\r\n", "STORED\r\nSTORED\r\n");
    debugtime($server, 11);
    mem_get_is($s, 't', undef, 'append keeps the exptime');

    # uptime and time follow the clock
    my $before = mem_stats($s);
    debugtime($server, 1000);
    my $after = mem_stats($s);
    cmp_ok($after->{uptime} - $before->{uptime}, '>=', 1000, 'uptime follows');
    cmp_ok($after->{time} - $before->{time}, '>=', 1000, 'time follows');
    $server->stop;

    # memory of expired items
    my @flat = pick($profile, '1.4' => [], '1.6' => ['-o', 'no_modern,slab_chunk_max=1024'],
        ref => [])->@*;
    ($server, $s) = serve($profile, @flat);
    my $value = 'x' x 66560;
    exchange($s, "set first$_ 0 2 66560\r\n$value\r\n", "STORED\r\n") for 0 .. 9;
    my $malloced = mem_stats($s, 'slabs')->{total_malloced};
    debugtime($server, 4);
    exchange($s, "set second$_ 0 2 66560\r\n$value\r\n", "STORED\r\n") for 0 .. 9;
    is(mem_stats($s, 'slabs')->{total_malloced}, $malloced, 'expired values make room for new ones');
    has(mem_stats($s), 'and are counted as reclaimed, as expired_unfetched, none was evicted',
        reclaimed => ['>=', 1], expired_unfetched => ['>=', 1], evictions => 0);
    $server->stop;

    SKIP: {
        skip 'stats slabs has mem_requested in 1.4 only', 1 if $profile ne '1.4';
        my ($server, $s) = serve($profile);
        exchange($s, "set key 0 1 66560\r\n$value\r\n", "STORED\r\n");
        my $requested = mem_stats($s, 'slabs')->{'31:mem_requested'};
        cmp_ok($requested, '>', 66560, '[1.4] mem_requested of class 31');
        debugtime($server, 3);
        exchange($s, "set key 0 0 66570\r\n$value" . ('x' x 10) . "\r\n", "STORED\r\n");
        is(mem_stats($s, 'items')->{'items:31:reclaimed'}, 1, '[1.4] one reclaimed');
        exchanges($s, ["delete key\r\n", "DELETED\r\n"], ["set key 0 0 66560\r\n$value\r\n", "STORED\r\n"]);
        is(mem_stats($s, 'slabs')->{'31:mem_requested'}, $requested, '[1.4] as at first');
    }
});

done_testing();
