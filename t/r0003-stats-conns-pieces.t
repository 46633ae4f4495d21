#!/usr/bin/env perl
# stats conns tells of thousands of connections in pieces: complete and in order, and a client
# that asks without reading does not make the server keep all of it.
use MCTest;

my $many = 700;
each_profile(sub ($profile) {
    my $server = serve($profile);
    my @idle = map { $server->connect } 1 .. $many;
    my $s = $server->connect;
    my $told = sub {
        my @lines = stat_lines($s, 'conns');
        return map { /^STAT (\d+):addr tcp/ ? $1 : () } @lines;
    };
    soon { scalar(my @fds = $told->()) == $many + 2 } 'the listener and all connections are told of';
    my @fds = $told->();
    is_deeply(\@fds, [sort { $a <=> $b } @fds], 'in order of descriptor');

    my $before = proc_status($server->pid, 'VmRSS');
    my @greedy = map { $server->connect } 1 .. 50;
    put($_, "stats conns\r\n" x 20) for @greedy;
    exchange($s, "get x\r\n", "END\r\n", 'others are served meanwhile');
    $told->();
    my $grown = proc_status($server->pid, 'VmRSS') - $before;
    # Each byte has shadow bytes under ThreadSanitizer.
    my $factor = $ENV{TSAN_OPTIONS} ? 5 : 1;
    # AddressSanitizer keeps what was freed for a while.
    my ($kept) = ($ENV{ASAN_OPTIONS} // '') =~ /quarantine_size_mb=(\d+)/;
    my $most = $factor * 50 * 400 + ($kept // 0) * 1024;
    cmp_ok($grown, '<', $most, 'bounded memory for those who do not read');
});
done_testing();
