#!/usr/bin/env perl
# A client that does not read its replies is paused: others are served, the server's memory
# stays bounded, and the slow client finds every byte in the end.
use MCTest;
use Time::HiRes qw(time);

# Writes until the server takes no more for half a second; returns the bytes taken.
sub put_until_stuck($s, $bytes) {
    my $done = 0;
    while ($done < length $bytes) {
        my $n = put($s, substr($bytes, $done, 1 << 20), 0.5);
        $done += $n;
        last if $n < (1 << 20) && $done < length $bytes;
    }
    return $done;
}

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '2', '-m', '64');
    my $value = join '', map { chr(97 + $_ % 26) } 1 .. 100_000;
    exchange($s, "set large 0 0 100000\r\n$value\r\n", "STORED\r\n");
    exchange($s, "set small 0 0 1\r\n1\r\n", "STORED\r\n");
    my $rss = proc_status($server->pid, 'VmRSS');

    # gets of large values, on more connections than there are workers
    my $each = "VALUE large 0 100000\r\n$value\r\nEND\r\n";
    my $count = 1000;
    my @slow = map { $server->connect } 1 .. 6;
    put($_, "get large\r\n" x $count) for @slow;
    for my $i (1 .. 20) {
        my $c = $server->connect;
        put($c, "get small\r\n");
        my $got = read_bytes($c, length "VALUE small 0 1\r\n1\r\nEND\r\n");
        next if $got eq "VALUE small 0 1\r\n1\r\nEND\r\n";
        fail('a new connection beside slow readers');
        last;
    }
    exchange($s, "get small\r\n", "VALUE small 0 1\r\n1\r\nEND\r\n", 'others are served');
    my $grown = proc_status($server->pid, 'VmRSS') - $rss;
    cmp_ok($grown, '<', 40_000, 'memory stays bounded beside 600 MB of replies');
    my $bad = 0;
    for my $i (0 .. $count - 1) {
        my $got = read_bytes($slow[0], length $each);
        if ($got ne $each) {
            $bad++;
            diag("reply $i: " . show($got));
            last;
        }
    }
    is($bad, 0, "a slow reader finds all of its $count replies");
    expect_open($slow[0], 'and nothing more');
    close $_ for @slow[1 .. 3];
    @slow = @slow[0, 4, 5];
    exchange($s, "get small\r\n", "VALUE small 0 1\r\n1\r\nEND\r\n", 'slow readers that leave hurt nobody');
    @slow = ();

    # small replies without end: the server stops reading
    my $stats = $server->connect;
    my $flood = $server->connect;
    my $wrote = put_until_stuck($flood, "stats\r\n" x 3_000_000);
    cmp_ok($wrote, '<', 21_000_000, 'a flood of stats is not read for ever');
    exchange($s, "get small\r\n", "VALUE small 0 1\r\n1\r\nEND\r\n", 'others are served');
    my $gets = $server->connect;
    $wrote = put_until_stuck($gets, "get small small small small\r\n" x 1_500_000);
    cmp_ok($wrote, '<', 1_500_000 * 29, 'nor a flood of gets');
    exchange($s, "get small\r\n", "VALUE small 0 1\r\n1\r\nEND\r\n", 'others are served');
    $grown = proc_status($server->pid, 'VmRSS') - $rss;
    cmp_ok($grown, '<', 60_000, 'memory stays bounded');
    close $flood;
    close $gets;
    exchange($s, "get small\r\n", "VALUE small 0 1\r\n1\r\nEND\r\n", 'the next is served');
    close $stats;

    # a data block that never comes blocks nobody
    my @half = map { $server->connect } 1 .. 6;
    put($_, "set half 0 0 1000000\r\nabc") for @half;
    exchange($s, "get small\r\n", "VALUE small 0 1\r\n1\r\nEND\r\n", 'half sent data blocks block nobody');
});

done_testing();
