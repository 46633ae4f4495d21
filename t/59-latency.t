#!/usr/bin/env perl
# stats latency follows every 64th read of a worker from the packet to the end of the write,
# and tells it by stage and class.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

if (!is_ours()) {
    plan skip_all => 'needs memcached-qos';
}

my @STAGES = qw(kernel loop read execute write);

sub ask {
    my ($sock, $send, $expect) = @_;
    put($sock, $send);
    my $got = read_bytes($sock, length $expect);
    is($got, $expect, 'reply') if $got ne $expect;
}

for my $profile (profiles()) {
    my $server = start_server(profile => $profile, args => ['-t', '1']);
    my $s = $server->connect;
    my $l = mem_stats($s, 'latency');
    is(scalar(keys %$l), 6 * 5 * 5, "[$profile] all lines are there from the start");
    is($l->{latency_all_read_count}, 0, "[$profile] nothing was followed yet");

    ask($s, "get x\r\n", "END\r\n") for 1 .. 640;
    $l = mem_stats($s, 'latency');
    for my $stage (@STAGES) {
        next if $stage eq 'kernel'; # the first packets on a machine may have no stamp
        my $n = $l->{"latency_small_${stage}_count"};
        cmp_ok($n, '>=', 9, "[$profile] $stage: every 64th read");
        cmp_ok($n, '<=', 11, "[$profile] $stage: and no more");
    }
    cmp_ok($l->{latency_small_kernel_count}, '<=', $l->{latency_small_read_count},
        "[$profile] the kernel's part, as far as there were stamps");
    cmp_ok($l->{latency_small_read_max_us}, '>', 0, "[$profile] a read takes time");
    cmp_ok($l->{latency_small_read_p50_us}, '<=', $l->{latency_small_read_max_us},
        "[$profile] quantiles are in order");

    # stores wait in their queue before they are read: that is the loop's part
    ask($s, "set x 0 0 1\r\n1\r\n", "STORED\r\n") for 1 .. 640;
    $l = mem_stats($s, 'latency');
    cmp_ok($l->{latency_write_loop_count}, '>=', 9, "[$profile] another class");
    cmp_ok($l->{latency_all_loop_count}, '>=',
        $l->{latency_write_loop_count} + $l->{latency_small_loop_count}, "[$profile] all of them");

    # requests without a reply, in pieces, and of clients that leave are not followed to the end
    my $before = $l->{latency_all_write_count};
    put($s, "set x 0 0 1 noreply\r\n1\r\n") for 1 .. 200;
    ask($s, "get x\r\n", "VALUE x 0 1\r\n1\r\nEND\r\n");
    for my $i (1 .. 140) {
        my $c = $server->connect;
        put($c, $i % 2 ? "get x" : "get x\r\n");
        close $c;
    }
    ask($s, "get x\r\n", "VALUE x 0 1\r\n1\r\nEND\r\n") for 1 .. 128;
    $l = mem_stats($s, 'latency');
    cmp_ok($l->{latency_all_write_count}, '>', $before, "[$profile] and it goes on after them");
    $server->stop;
}

done_testing();
