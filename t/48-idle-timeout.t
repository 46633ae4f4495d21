#!/usr/bin/env perl
# idle_timeout closes TCP connections from which nothing has come for longer, and no others.
use MCTest;
use MCConns;
use MCPreload;
use MCTLS;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Time::HiRes qw(time);

# Time moves in steps shorter than the time-out, so that the helper's own connection stays: it
# speaks at each step.

# Reading the counter keeps the helper's own connection in use.
sub kicks_become($server, $n, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got;
    my $ok = wait_until(sub {
        $got = mem_stats($server->control)->{idle_kicks};
        return $got >= $n;
    });
    return $ok ? is($got, $n, $name) : fail("$name: $got");
}

each_profile(sub ($profile) {
    my $server = serve($profile);
    ok(!exists mem_stats($server->control)->{idle_kicks}, 'off: no idle_kicks');
    is(mem_stats($server->control, 'settings')->{idle_timeout}, 0, 'setting 0');
    my $c = $server->connect;
    exchange($c, "version\r\n", VERSION_REPLY($profile));
    debugtime($server, 100000);
    expect_open($c, 'off: nobody is closed');

    $server = serve($profile, '-o', 'idle_timeout=100', '-t', '2');
    is(mem_stats($server->control)->{idle_kicks}, 0, 'idle_kicks is 0 at first');
    is(mem_stats($server->control, 'settings')->{idle_timeout}, 100, 'setting 100');
    my @idle = map { $server->connect } 1 .. 5;
    exchange($_, "version\r\n", VERSION_REPLY($profile)) for @idle;
    my $half = $server->connect;
    put($half, "set half 0 0 10\r\nxx");
    wait_until(sub {
        grep { /conn_nread/ } stat_lines($server->control, 'conns');
    });
    debugtime($server, 60);
    my $busy = shift @idle;
    exchange($busy, "version\r\n", VERSION_REPLY($profile), 'one says something');
    debugtime($server, 60);
    kicks_become($server, 5, 'four idle and one in the middle of a value are closed');
    expect_eof($_, '', 'the idle one reads end of file') for @idle;
    expect_eof($half, '', 'and the half request');
    expect_open($busy, 'the busy one is open');
    exchange($server->connect, "get half\r\n", "END\r\n", 'the half value is not there');

    # More than are looked at in one piece.
    $server = serve($profile, '-o', 'idle_timeout=100', '-t', '1', '-c', '1000');
    my @many = map { $server->connect(no_wait => 1) } 1 .. 600;
    soon { mem_stats($server->control)->{curr_connections} >= 601 } '600 connections';
    debugtime($server, 60) for 1 .. 2;
    kicks_become($server, 600, 'all of 600 go');
    soon { mem_stats($server->control)->{curr_connections} <= 2 } 'and are given back';
    @many = ();
    $server->stop;

    is(run_program('-o', $_, '-p', '-1', "--compat=$profile", @AS_ROOT)->{status}, 1, "-o $_ exits 1")
        for 'idle_timeout', 'idle_timeout=', 'idle_timeout=x', 'idle_timeout=-1';
});

# A client that reads slowly takes little of what its socket holds: not enough for the socket to tell of room.
{
    my ($server, $idle) = serve('-o', 'idle_timeout=100', '-t', '1', '-m', 64);
    exchange($idle, 'set v 0 0 1000000' . "\r\n" . 'v' x 1000000 . "\r\n", "STORED\r\n");
    my $slow = $server->connect;
    setsockopt $slow, SOL_SOCKET, SO_RCVBUF, 8192;
    put($slow, "get v\r\n" x 30);
    soon { grep { /conn_mwrite/ } stat_lines($server->control, 'conns') } 'its socket is full';
    debugtime($server, 60);
    is(length(read_bytes($slow, 65536)), 65536, 'it reads a little');
    debugtime($server, 60);
    kicks_become($server, 1, 'the other one is closed');
    expect_eof($idle, '', '... which was idle');
    is(length(read_bytes($slow, 65536)), 65536, 'the slow one goes on');
    soon {
        debugtime($server, 60);
        mem_stats($server->control)->{idle_kicks} == 2;
    } 'until it reads no more';
}

# A pause of the whole process, as by SIGSTOP, is not the clients' silence: what came meanwhile is read before
# anybody is closed. The clock has moved on, and the timer is over before the requests are there, so that the
# worker looks at it first.
sub timers_are_over($server) {
    return !grep { read_file($_) =~ /^it_value: \((?!0, 0\))/m } glob '/proc/' . $server->pid . '/fdinfo/*';
}

sub while_stopped($server, $clocks, $code) {
    kill 'STOP', $server->pid;
    wait_until(sub { is_stopped($server) });
    control_put($clocks, 0, 1000 * 1_000_000_000);
    soon { timers_are_over($server) } 'stopped for longer than anybody may be idle';
    $code->();
    kill 'CONT', $server->pid;
}

SKIP: {
    my $jump = preload('jump') // skip 'no library to preload', 1;
    my $clocks = scratch_dir() . '/clocks';
    my $env = {LD_PRELOAD => $jump, JUMP => $clocks};
    control_put($clocks, 0, 0);
    my $server = serve('-o', 'idle_timeout=100', '-t', '1', {env => $env});
    my ($speaks, $mute) = map { $server->connect } 1 .. 2;
    expect_open($_) for $speaks, $mute;
    while_stopped($server, $clocks, sub { put($speaks, "version\r\n") });
    expect_bytes($speaks, VERSION_REPLY, 'what came in a pause is answered');
    expect_eof($mute, '', 'who said nothing is closed');
    is(mem_stats($server->control)->{idle_kicks}, 1, '... and counted');

    skip no_tls_because(), 1 if no_tls_because();
    control_put($clocks, 0, 0);
    my ($tls, $plain) = (free_port(), free_port());
    local $ENV{MCTEST_TLS};
    $server = serve(tls_args(), '-l', "127.0.0.1:$tls,notls:127.0.0.1:$plain", '-t', '1', {listen => 0, env => $env});
    $server->{port} = $tls;
    ($speaks, $mute) = map { $server->connect } 1 .. 2;
    $server->{port} = $plain;
    soon { 2 == grep { %{conn_stats($server, $_)} } $speaks, $mute } 'both are with their worker';
    while_stopped($server, $clocks, sub { MCTLS::tls_begin($speaks); $speaks->connect_SSL });
    soon { eval { $speaks->connect_SSL } } 'a handshake that began in a pause goes on';
    expect_open($speaks, '... to its end');
    expect_eof($mute, '', 'who said nothing is closed');
    is(mem_stats($server->control)->{ssl_handshake_errors}, 1, '... and counted');
}

# UNIX connections stay.
my $path = scratch_dir() . "/idle";
my ($server, $c) = serve('1.4', '-s', $path, '-o', 'idle_timeout=1', {path => $path});
exchange($c, "version\r\n", VERSION_REPLY('1.4'));
debugtime($server, 100);
my $end = time + 1.5; # a walk begins every second
wait_until(sub { time > $end });
expect_open($c, "[1.4] a UNIX connection is not closed");
is(mem_stats($server->control)->{idle_kicks}, 0, "[1.4] nor counted");

done_testing();
