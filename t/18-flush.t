#!/usr/bin/env perl
# flush_all kills all that was stored before it, at once or at a later time, and nothing that
# is stored after it.
use MCTest ':ours';

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile);
    my $set = sub { exchange($s, "set $_[0] 0 0 1\r\n1\r\n", "STORED\r\n") };

    for my $command ("flush_all", "flush_all 0", "flush_all -1") {
        $set->($_) for qw(a b c);
        exchange($s, "$command\r\n", "OK\r\n", {cmd_flush => 1});
        mem_get_is($s, $_, undef, "$_ is gone after $command") for qw(a b c);
        $set->('a');
        mem_get_is($s, 'a', '1', "a set in the same second as $command is visible");
    }
    exchanges($s, ["add a 0 0 1\r\n2\r\n", "NOT_STORED\r\n"], ["flush_all\r\n", "OK\r\n"],
        ["add a 0 0 1\r\n2\r\n", "STORED\r\n", 'add sees a flushed item as absent'],
        ["flush_all\r\n", "OK\r\n"], ["replace a 0 0 1\r\n2\r\n", "NOT_STORED\r\n", 'so does replace']);
    $set->('a');
    exchanges($s, ["flush_all\r\n", "OK\r\n"],
        ["incr a 1\r\nappend a 0 0 1\r\n1\r\ntouch a 0\r\ndelete a\r\n",
            "NOT_FOUND\r\nNOT_STORED\r\nNOT_FOUND\r\nNOT_FOUND\r\n", 'and incr, append, touch and delete']);

    # in the future
    $set->('f');
    exchange($s, "flush_all 100\r\n", "OK\r\n");
    mem_get_is($s, 'f', '1', 'nothing happens at once');
    $set->('g');
    debugtime($server, 90);
    mem_get_is($s, $_, '1', "$_ is there before the time") for qw(f g);
    $set->('h');
    debugtime($server, 15);
    mem_get_is($s, $_, undef, "$_ is gone at the time") for qw(f g h);
    $set->('f');
    mem_get_is($s, 'f', '1', 'what is stored later stays');
    debugtime($server, 200);
    mem_get_is($s, 'f', '1', 'for good');

    # absolute time
    my $now = mem_stats($s)->{time};
    exchange($s, 'flush_all ' . ($now + 50) . "\r\n", "OK\r\n");
    mem_get_is($s, 'f', '1', 'absolute time: nothing at once');
    debugtime($server, 55);
    mem_get_is($s, 'f', undef, 'absolute time: gone when it comes');

    # exactly: the second that was given is after the flush
    debugtime($server, 'p');
    $set->('f');
    exchange($s, "flush_all 10\r\n", "OK\r\n");
    debugtime($server, 8);
    mem_get_is($s, 'f', '1', 'two seconds before the time all is there');
    debugtime($server, 2);
    $set->('g');
    mem_get_is($s, 'f', undef, 'in the second of the time what was there is gone');
    mem_get_is($s, 'g', '1', 'and what is stored in it stays');
    exchange($s, "flush_all 1\r\n", "OK\r\n");
    mem_get_is($s, 'g', undef, 'in a second: what is there goes');
    $set->('g');
    mem_get_is($s, 'g', undef, 'with all that is stored in this one');
    debugtime($server, 1);
    $set->('g');
    mem_get_is($s, 'g', '1', 'and what is stored in the next one stays');
    debugtime($server, 'r');

    # only the latest is remembered
    $set->('f');
    exchange($s, "flush_all 50\r\nflush_all 500\r\n", "OK\r\nOK\r\n");
    debugtime($server, 60);
    mem_get_is($s, 'f', '1', 'a later flush replaces an earlier one');
    debugtime($server, 450);
    mem_get_is($s, 'f', undef, 'and happens');
    $set->('f');
    exchange($s, "flush_all 86400\r\n", "OK\r\n");
    mem_get_is($s, 'f', '1', 'a day ahead');
    exchange($s, "flush_all\r\n", "OK\r\n");
    mem_get_is($s, 'f', undef, 'an immediate flush in between');

    # counted lazily
    # no thread that removes what is gone before somebody asks for it
    my @quiet = @{pick($profile, '1.4' => [], ref => [],
        '1.6' => ['-o', 'no_lru_crawler,no_lru_maintainer'])};
    my ($fresh, $c) = serve($profile, @quiet);
    exchange($c, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    debugtime($fresh, 3);
    exchange($c, "flush_all\r\n", "OK\r\n");
    exchange($c, "get a\r\n", "END\r\n", {get_flushed => 1, get_misses => 1, curr_items => -1});
    exchange($c, "get a\r\n", "END\r\n", {get_flushed => 0, get_misses => 1, curr_items => 0});
    my $oldest = mem_stats($c, 'settings')->{oldest};
    cmp_ok($oldest, '>', 0, 'settings oldest shows the flush');
    $fresh->stop;

    # the memory of a flushed tail is reused
    if ($profile eq '1.4') {
        ($fresh, $c) = serve($profile);
        exchange($c, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
        is(mem_stats($c)->{reclaimed}, 0, '[1.4] nothing reclaimed at first');
        debugtime($fresh, 2);
        exchanges($c, ["flush_all\r\n", "OK\r\n"], ["set b 0 0 1\r\n1\r\n", "STORED\r\n", {reclaimed => 1}]);
        ($fresh, $c) = serve($profile, '-C');
        my $lost = 0;
        for (1 .. 50) {
            my $got = roundtrip($c, "flush_all\r\nset a 0 0 1\r\n1\r\nget a\r\n");
            $lost++ if $got eq "OK\r\nSTORED\r\nEND\r\n";
        }
        cmp_ok($lost, '>', 0, '[1.4] with -C a set in the second of the flush is lost');
    }
});

done_testing();
