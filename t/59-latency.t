#!/usr/bin/env perl
# stats latency follows every 64th read of a worker from the packet to the end of the write,
# over TCP, TLS and UDP, and tells it by stage and class; what was refused is told apart.
use MCTest ':ours';
use MCTLS;

my @STAGES = qw(kernel loop delay read execute write);

sub ask($sock, $send, $expect) {
    put($sock, $send);
    my $got = read_bytes($sock, length $expect);
    is($got, $expect, 'reply') if $got ne $expect;
}

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '1');
    my $l = mem_stats($s, 'latency');
    is(scalar(keys %$l), (6 + 5) * 6 * 5, 'all lines are there from the start');
    is($l->{latency_all_read_count}, 0, 'nothing was followed yet');

    ask($s, "get x\r\n", "END\r\n") for 1 .. 640;
    $l = mem_stats($s, 'latency');
    for my $stage (@STAGES) {
        next if $stage eq 'kernel'; # the first packets on a machine may have no stamp
        my $n = $l->{"latency_small_${stage}_count"};
        cmp_ok($n, '>=', 9, "$stage: every 64th read");
        cmp_ok($n, '<=', 11, "$stage: and no more");
    }
    has($l, "the kernel's part, as far as there were stamps", latency_small_kernel_count => ['<=',
        $l->{latency_small_read_count}], latency_small_read_max_us => ['>', 0],
        latency_small_read_p50_us => ['<=', $l->{latency_small_read_max_us}]);

    # stores wait in their queue before they are read: that is the loop's part
    ask($s, "set x 0 0 1\r\n1\r\n", "STORED\r\n") for 1 .. 640;
    $l = mem_stats($s, 'latency');
    has($l, 'another class, all of them', latency_write_loop_count => ['>=', 9],
        latency_all_loop_count => ['>=', $l->{latency_write_loop_count} + $l->{latency_small_loop_count}]);

    # of those that are read together the first one tells
    my $writes = $l->{latency_write_loop_count};
    ask($s, "get none\r\nset x 0 0 1\r\n1\r\n", "END\r\nSTORED\r\n") for 1 .. 640;
    my $small = $l->{latency_small_loop_count};
    $l = mem_stats($s, 'latency');
    has($l, 'a get before a set', latency_write_loop_count => $writes, latency_small_loop_count => ['>=', $small + 9]);

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
    cmp_ok(mem_stats($s, 'latency')->{latency_all_write_count}, '>', $before, 'and it goes on after them');
    $server->stop;

    # what waits for tokens for long makes room for others
    $server = serve($profile, '-t', '1', '--qps-limit=1000000,bulk=1');
    $s = $server->connect;
    my @waiting = map { $server->connect } 1 .. 70;
    my $keys = join ' ', map { "k$_" } 1 .. 200;
    put($_, "get $keys\r\n") for @waiting;
    my $small_before = mem_stats($s, 'latency')->{latency_small_loop_count};
    soon {
        ask($s, "get x\r\n", "END\r\n") for 1 .. 64;
        mem_stats($s, 'latency')->{latency_small_loop_count} >= $small_before + 3
    } 'small requests are followed beside those that wait';
    $server->stop;

    # datagrams
    $server = serve($profile, '-t', '1', '-U', '-1');
    my $u = $server->udp;
    my $answered = 0;
    for my $i (1 .. 640) {
        # a batch now and then, whose first datagram has no reply
        send $u, pack('nnnn', $i, 0, 1, 0) . "get", 0 if $i % 10 == 0;
        send $u, pack('nnnn', $i, 0, 1, 0) . "get x\r\n", 0;
        last if !IO::Select->new($u)->can_read(60);
        recv $u, my $bytes, 65536, 0;
        $answered += substr($bytes, 8) eq "END\r\n";
    }
    is($answered, 640, 'UDP: all answered');
    $l = mem_stats($server->control, 'latency');
    for my $stage (@STAGES) {
        my $n = $l->{"latency_small_${stage}_count"};
        cmp_ok($n, '>=', 5, "UDP, $stage: reads are followed") if $stage ne 'kernel';
        cmp_ok($n, '<=', 12, "UDP, $stage: and not more");
    }
    is($l->{latency_refused_write_count}, 0, 'nothing was refused');

    # what is refused
    exchange($server->control, "$_\r\n", "OK\r\n") for 'qos action error', 'qos qps_limit 1';
    my $c = $server->connect;
    my ($served, $refused) = (0, 0);
    for (1 .. 640) {
        put($c, "get x\r\n");
        my $line = read_line($c);
        $served += $line eq "END\r\n";
        $refused += $line eq "SERVER_ERROR 307 busy\r\n";
    }
    is($served + $refused, 640, 'refused or served');
    my $after = mem_stats($server->control, 'latency');
    my $followed = $after->{latency_refused_small_write_count};
    cmp_ok($followed, '>=', $refused / 64 - 2, 'refused ones are followed');
    is($after->{latency_refused_write_count}, $followed, 'all of that class');
    cmp_ok($after->{latency_small_write_count} - $l->{latency_small_write_count}, '<=',
        $served / 64 + 2, 'and not among the served');
    for (1 .. 640) {
        send $u, pack('nnnn', 1, 0, 1, 0) . "get x\r\n", 0;
        last if !IO::Select->new($u)->can_read(60);
        recv $u, my $bytes, 65536, 0;
    }
    $l = mem_stats($server->control, 'latency');
    cmp_ok($l->{latency_refused_small_write_count}, '>', $followed, 'also over UDP');
    $server->stop;

    SKIP: {
        skip no_tls_because(), 1 if no_tls_because();
        $server = serve($profile, '-t', '1', tls_args());
        $c = tls_connect($server);
        for (1 .. 640) {
            put($c, "get x\r\n");
            read_bytes($c, 5) eq "END\r\n" or last;
        }
        put($c, "stats latency\r\n");
        my %got;
        while (defined(my $line = read_line($c))) {
            last if $line eq "END\r\n" || $line eq '';
            $got{$1} = $2 if $line =~ /^STAT (\S+) (\S+)/;
        }
        for my $stage (@STAGES) {
            my $n = $got{"latency_small_${stage}_count"};
            cmp_ok($n, '>=', 7, "TLS, $stage: followed") if $stage ne 'kernel';
            cmp_ok($n, '<=', 12, "TLS, $stage: and not more");
        }
    }
});

done_testing();
