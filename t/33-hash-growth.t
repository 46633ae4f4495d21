#!/usr/bin/env perl
# The hash table grows while serving: 200,000 items go in without replies, all come out.
use MCTest;

each_profile(sub ($profile) {
    my $server = start_server(profile => $profile, args => ['-m', '256'],
        $profile eq '1.6' ? (env => {MEMCACHED_HASH_BULK_MOVE => 30}) : ());
    my $s = $server->connect;
    my $reader = $server->connect;
    my $count = 200_000;
    my $step = 2000;
    my $bad = 0;
    for (my $from = 0; $from < $count; $from += $step) {
        my $send = join '', map { "set key:$_ 0 0 " . length($_) . " noreply\r\n$_\r\n" }
            $from .. $from + $step - 1;
        my $got = roundtrip($s, $send, '');
        $bad++ if $got ne '';
        # early keys stay readable all the time
        my @keys = map { int(($from + $step - 1) * $_ / 20) } 0 .. 19;
        my $want = join('', map { "VALUE key:$_ 0 " . length($_) . "\r\n$_\r\n" } @keys) . "END\r\n";
        my $read = roundtrip($reader, 'get ' . join(' ', map { "key:$_" } @keys) . "\r\n", $want);
        $bad++ if $read ne $want;
    }
    is($bad, 0, "$count silent sets, read in between");
    my $st = mem_stats($s);
    has($st, 'curr_items, cmd_set', curr_items => $count, cmd_set => $count);
    soon {
        $st = mem_stats($s);
        $st->{hash_power_level} == 18 && $st->{hash_is_expanding} == 0;
    } 'the table grew from 2^16 to 2^18'
        or diag("power $st->{hash_power_level}, expanding $st->{hash_is_expanding}");
    is($st->{hash_bytes}, 8 << 18, 'hash_bytes');
    $bad = 0;
    for (my $from = 0; $from < $count; $from += 1000) {
        my $want = join('', map { "VALUE key:$_ 0 " . length($_) . "\r\n$_\r\n" }
                $from .. $from + 999) . "END\r\n";
        my $got = roundtrip($s, 'get ' . join(' ', map { "key:$_" } $from .. $from + 999) . "\r\n", $want);
        $bad++ if $got ne $want;
    }
    is($bad, 0, "all $count are readable");
    is(mem_stats($s)->{evictions}, 0, 'none was evicted');
    for (my $from = 0; $from < $count; $from += $step) {
        put($s, join '', map { "delete key:$_ noreply\r\n" } $from .. $from + $step - 1);
    }
    expect_open($s, 'deleting all');
    has(mem_stats($s), 'leaves nothing, and no bytes', curr_items => 0, bytes => 0);
    $server->stop;
});

done_testing();
