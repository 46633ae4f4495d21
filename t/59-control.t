#!/usr/bin/env perl
# Where control commands are accepted: "qos" setters, and a connection's own class for the better.
# UNIX sockets, loopback and marked listeners by default, other addresses only when --control says
# so, datagrams never. Runs in a network namespace with an address that is not loopback.
use MCTest ':ours';
use IO::Socket::INET;
use IO::Socket::IP;
use IO::Socket::UNIX;

my $AWAY = '192.0.2.1';
my $REFUSED = 'CLIENT_ERROR not from this connection: use a UNIX socket, loopback or a listener '
    . "with ;control (see --control)\r\n";
my $NOT_MARKED = "CLIENT_ERROR not from this connection: use a listener with ;control (see --control)\r\n";
my $NOT_UDP = "CLIENT_ERROR not over UDP: use TCP or a UNIX socket\r\n";

if (!$ENV{MCTEST_CONTROL_NETNS}) {
    my @unshare = ('unshare', '--net', $> == 0 ? () : '--map-root-user');
    plan skip_all => 'no network namespaces here' if system("@unshare true >/dev/null 2>&1") != 0;
    plan skip_all => 'needs ip' if system('ip -V >/dev/null 2>&1') != 0;
    $ENV{MCTEST_CONTROL_NETNS} = 1;
    exec @unshare, $^X, '-I', "$TOP/t/lib", $0 or die "exec: $!";
}
for my $command ('ip link set lo up', "ip addr add $AWAY/32 dev lo") {
    BAIL_OUT("$command failed") if system($command) != 0;
}

my $has_ipv6 = IO::Socket::IP->new(LocalHost => '::1', Type => SOCK_STREAM, Listen => 1, GetAddrInfoFlags => 0) ? 1 : 0;

sub dial($server, $host, $port) {
    my $s = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Type => SOCK_STREAM,
        GetAddrInfoFlags => 0) || die "$host: $@";
    ${*$s}{mctest_server} = $server;
    return $s;
}

# Which address is answered how, TCP on two listeners of which the second may be marked.
for my $row (
    # --control, mark, then replies from loopback, from away, from away to the second listener
    [undef, '', 'OK', 'no', 'no'],
    [undef, ';control', 'OK', 'no', 'OK'],
    ['local', ';class=bulk;control', 'OK', 'no', 'OK'],
    ['local', ';control;class=bulk', 'OK', 'no', 'OK'],
    ['marked', ';control', 'no', 'no', 'OK'],
    ['marked', '', 'no', 'no', 'no'],
    ['any', '', 'OK', 'OK', 'OK'],
) {
    my ($control, $mark, $near, $far, $second) = @$row;
    my @ports = (free_port(), free_port());
    my $also = $has_ipv6 ? "[::1]:$ports[0]," : '';
    my $server = serve('native', '-p', $ports[0], '-l', "0.0.0.0:$ports[0],${also}0.0.0.0:$ports[1]$mark",
        defined $control ? "--control=$control" : (), {listen => 0});
    my $name = '--control=' . ($control // '(default)') . " and '$mark'";
    for my $case (['127.0.0.1', 0, $near], ['::1', 0, $near], [$AWAY, 0, $far], [$AWAY, 1, $second]) {
        my ($host, $i, $want) = @$case;
        SKIP: {
            skip "$name: no IPv6 here", 3 if $host eq '::1' && !$has_ipv6;
            my $s = dial($server, $host, $ports[$i]);
            my $reply = $want eq 'OK' ? "OK\r\n" : ($control // '') eq 'marked' ? $NOT_MARKED : $REFUSED;
            exchange($s, "qos qps_limit 5000\r\n", $reply, "$name: $host to listener $i: qps_limit");
            exchange($s, "qos qps_limit off\r\n", $reply, "$name: $host to listener $i: off");
            is(mem_stats($s, 'qos')->{qps_limit}, 'off', "$name: $host to listener $i: anyone may look");
        }
    }
}

# Every setter, from where it is not allowed: refused, and nothing has changed.
{
    my $port = free_port();
    my $server = serve('native', '-p', $port, '-l', '0.0.0.0', {listen => 0});
    my $s = dial($server, $AWAY, $port);
    my $before = mem_stats(dial($server, '127.0.0.1', $port), 'qos');
    for my $line ('qps_limit 5', 'qps_limit small 5 5', 'peer 5', 'action error', 'unit key',
        'cpu_limit 50%', 'slo p95:1ms', 'dry_run on', 'repin', 'rebalance', 'rebalance 0 1', 'reload', 'save') {
        exchange($s, "qos $line\r\n", $REFUSED, "qos $line");
    }
    my $after = mem_stats(dial($server, '127.0.0.1', $port), 'qos');
    is($after->{$_}, $before->{$_}, "$_ is as before")
        for qw(qps_limit qps_limit_small qps_limit_peer qps_action qps_unit cpu_limit slo qps_dry_run);
}

# Files are written for UNIX sockets and loopback, and for no other address that may control.
for my $args (['--control=any', ''], ['--control=local', ';control']) {
    my ($control, $mark) = @$args;
    my $port = free_port();
    my $file = scratch_file('server.conf', "qps-limit = 5000\n");
    my $server = serve('native', '-p', $port, '-l', "0.0.0.0:$port$mark", $control, '--config', $file, {listen => 0});
    my $s = dial($server, $AWAY, $port);
    exchange($s, "qos qps_limit 6000\r\n", "OK\r\n", "$control: away may control");
    exchange($s, "qos save\r\n", "CLIENT_ERROR files are written for UNIX sockets and loopback only\r\n", '... and not write');
    is(read_file($file), "qps-limit = 5000\n", 'nothing is written');
    exchange(dial($server, '127.0.0.1', $port), "qos save\r\n", "SAVED qps-limit 5000 -> 6000\r\nOK\r\n", 'loopback may');
    exchange($s, "qos reload\r\n", "OK\r\n", 'away may have it read');
}

# A connection's own class: down always, up only where control is allowed.
for my $row (
    # listener's mark and rules, then class and answer in turn
    ['', [], [small => 0], [write => 0], [auto => 1], [bulk => 1], [auto => 0], [bulk => 1],
        [small => 0], [background => 1], [background => 1], [bulk => 0], [auto => 0]],
    [';class=bulk', [], [auto => 0], [small => 0], [write => 0], [bulk => 1], [background => 1]],
    ['', ['--class-rule=key:batch:=background'], [bulk => 0], [background => 1]],
    ['', ["--class-rule=peer:$AWAY=write"], [small => 0], [auto => 0], [write => 1], [bulk => 1]],
    [';control', [], [small => 1], [auto => 1], [background => 1], [write => 1]],
    ['', ['--control=marked'], [bulk => 1], [write => 0]],
) {
    my ($mark, $rules, @steps) = @$row;
    my $port = free_port();
    my $server = serve('native', '-p', $port, '-l', "0.0.0.0:$port$mark", @$rules, {listen => 0});
    my $s = dial($server, $AWAY, $port);
    for my $step (@steps) {
        my ($class, $is_allowed) = @$step;
        exchange($s, "qos class $class\r\n", $is_allowed ? "OK\r\n" : "@$rules" =~ /marked/ ? $NOT_MARKED : $REFUSED,
            "listener '$mark' @$rules: qos class $class");
    }
}

# UNIX sockets; a path may have a semicolon in it.
for my $row ([undef, '', 'OK'], ['marked', '', 'no'], ['marked', ';control', 'OK'],
    ['marked', ';class=write;control', 'OK']) {
    my ($control, $mark, $want) = @$row;
    my $path = scratch_dir() . '/a;socket';
    my $server = serve('native', '-s', "$path$mark", defined $control ? "--control=$control" : (), {path => $path});
    exchange($server->connect, "qos qps_limit off\r\n", $want eq 'OK' ? "OK\r\n" : $NOT_MARKED,
        "UNIX socket with '$mark', --control=" . ($control // '(default)'));
}

# With authentication nobody else is asked for anything, and where still counts.
{
    my $port = free_port();
    my $tokens = scratch_dir() . '/tokens';
    write_file($tokens, "ann:secret\n");
    my $server = serve('native', '-p', $port, '-l', '0.0.0.0', '-Y', $tokens, {listen => 0});
    my %want = ('127.0.0.1' => "OK\r\n", $AWAY => $REFUSED);
    for my $host (sort keys %want) {
        my $s = dial($server, $host, $port);
        put($s, "qos qps_limit off\r\n");
        is(read_line($s), "CLIENT_ERROR unauthenticated\r\n", "$host: a stranger");
        put($s, "set k 0 0 10\r\nann secret\r\n");
        is(read_line($s), "STORED\r\n", "$host: authenticates");
        exchange($s, "qos qps_limit off\r\n", $want{$host}, "$host: authenticated");
    }
}

# Datagrams: never, whatever --control says. In native they change nothing but items.
sub udp($port, $line) {
    my $u = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp') || die $@;
    send $u, pack('n4', 1, 0, 1, 0) . $line, 0;
    return 'nothing' if !IO::Select->new($u)->can_read(60);
    recv $u, my $got, 65_536, 0;
    return substr $got, 8;
}

for my $profile ('native', '1.6', '1.4') {
    my $port = free_port();
    my $server = serve($profile, '-p', $port, '-U', $port, '-l', '127.0.0.1', '--control=any', '-A', {listen => 0});
    my $s = dial($server, '127.0.0.1', $port);
    exchange($s, "set k 0 0 1\r\nv\r\n", "STORED\r\n");
    is(udp($port, "qos $_\r\n"), $NOT_UDP, "[$profile] UDP: qos $_") for 'qps_limit 5', 'repin', 'slo p95:1ms';
    is(udp($port, "set k 0 0 1\r\nw\r\n"), "STORED\r\n", "[$profile] UDP: items change");
    if ($profile eq 'native') {
        is(udp($port, "$_\r\n"), "SERVER_ERROR not allowed over UDP\r\n", "[$profile] UDP: $_") for 'flush_all',
            'flush_all 10', 'verbosity 1', 'cache_memlimit 64', 'slabs automove 0', 'lru mode flat',
            'lru_crawler disable', 'lru_crawler crawl all', 'shutdown', 'debugtime 5', 'refresh_certs';
        my $flush = pack 'CCnCCnNNQ>', 0x80, 0x08, 0, 0, 0, 0, 0, 7, 0;
        is(udp($port, $flush), pack('CCnCCnNNQ>a*', 0x81, 0x08, 0, 0, 0, 0x83, 20, 7, 0, 'Not allowed over UDP'),
            "[$profile] UDP: binary flush");
        exchange($s, "get k\r\n", "VALUE k 0 1\r\nw\r\nEND\r\n", "[$profile] nothing was flushed");
    } else {
        is(udp($port, "flush_all\r\n"), "OK\r\n", "[$profile] UDP: flush_all as upstream");
    }
}

# what is wrong is said in one line
for my $case (['--control=some', '--control must be local, marked or any'],
    ['--control=', '--control must be local, marked or any']) {
    my $run = run_program('-p', '-1', @AS_ROOT, $case->[0]);
    has($run, "$case->[0]: status, the reason", status => 64, err => qr/\Q$case->[1]\E/);
}

done_testing();
