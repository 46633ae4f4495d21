#!/usr/bin/env perl
# The flat LRU: the tail is evicted; a use moves an item to the head at most once a minute.
use MCTest ':ours';

each_profile(sub ($profile) {
    my @flat = pick($profile, '1.4' => [], '1.6' => ['-o', 'no_modern,slab_chunk_max=1024'],
        ref => [])->@*;
    my $len = 1000000;
    my $value = 'v' x $len;
    my %use = (
        get => "get a\r\n", touch => "touch a 0\r\n", gat => "gat 0 a\r\n",
        add => "add a 0 0 1\r\nx\r\n",
    );
    for my $how (sort keys %use) {
        my ($server, $s) = serve($profile, '-m', '4', @flat);
        my $there = sub {
            return join '', grep { (mem_gets($s, $_))[0] ne '' } @_;
        };
        my $set = sub {
            exchange($s, "set $_[0] 0 0 $len\r\n$value\r\n", "STORED\r\n", "set $_[0]");
        };
        $set->($_) for qw(a b c d);
        roundtrip($s, $use{$how});
        $set->('e');
        my $left = $there->(qw(a b c d e));
        is($left, 'bcde', "$how within a minute does not move an item");

        # a 2nd server: the mem_gets above was itself a use
        ($server, $s) = serve($profile, '-m', '4', @flat);
        $set->($_) for qw(a b c d);
        debugtime($server, 61);
        roundtrip($s, $use{$how});
        $set->('e');
        $left = $there->(qw(a b c d e));
        is($left, 'acde', "$how after a minute moves it to the head");
        is(mem_stats($s)->{evictions}, 1, 'one eviction');
        is(mem_stats($s, 'items')->{'items:42:evicted_time'} >= 61 ? 1 : 0, 1,
            'evicted_time tells how long the victim was idle');
    }
});

done_testing();
