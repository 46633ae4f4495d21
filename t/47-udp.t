#!/usr/bin/env perl
# UDP: both protocols per datagram, frames of 1400 bytes with id, sequence and total, nothing
# survives a datagram, garbage is ignored, the limiter holds requests back, and what a forged
# source could be sent is bounded. Off unless -U asks for it.
use MCTest;
use MCBinary;
use IO::Socket::IP;

my $PAYLOAD = 1392;

sub datagram($id, $payload, %opt) {
    return pack('nnnn', $id, $opt{sequence} // 0, $opt{total} // 1, $opt{reserved} // 0) . $payload;
}

# One datagram as [id, sequence, total, reserved, payload]; undef when none comes.
sub receive($sock, $seconds = undef) {
    return undef if !IO::Select->new($sock)->can_read($seconds // 60);
    recv $sock, my $bytes, 65536, 0;
    return undef if !defined $bytes || length $bytes < 8;
    return [unpack('nnnn', $bytes), substr $bytes, 8];
}

# A whole message put together by its sequence numbers: (payload, number of datagrams, error).
sub message($sock, $id) {
    my (%part, $total);
    do {
        my $d = receive($sock) or return ('', scalar(keys %part), 'a datagram is missing');
        $total //= $d->[2];
        return ('', 0, "id $d->[0] for $id") if $d->[0] != $id;
        return ('', 0, "total $d->[2] after $total") if $d->[2] != $total;
        return ('', 0, 'reserved is not 0') if $d->[3] != 0;
        return ('', 0, "sequence $d->[1] of $total") if $d->[1] >= $total || $part{$d->[1]};
        return ('', 0, 'a datagram before the last is not full')
            if $d->[1] < $total - 1 && length $d->[4] != $PAYLOAD;
        $part{$d->[1]} = $d->[4];
    } while (keys %part < $total);
    return (join('', map { $part{$_} } 0 .. $total - 1), $total, '');
}

# Sends one request and asserts that its message is these bytes.
sub udp_exchange($sock, $id, $send, $want, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    send $sock, datagram($id, $send), 0;
    my ($got, $n, $error) = message($sock, $id);
    if ($error ne '' || $got ne $want) {
        fail($name);
        diag("    error: $error\n    want: " . show($want) . "\n    got:  " . show($got));
        return;
    }
    my $total = int((length($want) + $PAYLOAD - 1) / $PAYLOAD);
    is($n, $total, $name);
}

# Asserts that these datagrams are not answered: the next request's reply comes first.
sub udp_silent($sock, $datagrams, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    send $sock, $_, 0 for @$datagrams;
    send $sock, datagram(0xbeef, "get udp-silent\r\n"), 0;
    my $d = receive($sock);
    return fail("$name (the server does not answer at all)") if !$d;
    is(join(' ', $d->[0], $d->[4]), join(' ', 0xbeef, "END\r\n"), $name);
}

each_profile(sub ($profile) {
    # off by default
    my $server = serve($profile);
    is(($server->ports('UDP INET'))[0], undef, 'CVE-2018-1000115: without -U there is no UDP socket');
    is(mem_stats($server->control, 'settings')->{udpport}, 0, 'settings udpport 0');
    unlike(join(' ', stat_lines($server->control, 'conns')), qr/udp/, 'nor in conns');
    $server->stop;

    # a list of addresses: a worker each in 1.4, all of them in 1.6
    SKIP: {
        my $one = IO::Socket::INET->new(LocalAddr => '127.0.0.2', Proto => 'udp')
            or skip 'no second loopback address', 6;
        close $one;
        my $each = $profile eq '1.4' ? 1 : 2;
        $server = serve($profile, '-l', '127.0.0.1,127.0.0.2', '-p', '-1', '-U', '-1', '-t', '2', {listen => 0});
        is(mem_stats($server->control, 'settings')->{num_threads_per_udp}, $each,
            'num_threads_per_udp of a list');
        is((grep { /:addr udp:/ } stat_lines($server->control, 'conns')), 2 * $each, 'and so many sockets');
        my @ports = $server->ports('UDP INET');
        for my $i (0, 1) {
            my $u = IO::Socket::INET->new(PeerAddr => '127.0.0.' . ($i + 1),
                PeerPort => $ports[$i], Proto => 'udp');
            udp_exchange($u, $i, "get a\r\n", "END\r\n", "address $i answers");
        }
        $server->stop;
        $server = serve($profile, '-U', '-1', '-t', '3');
        is(mem_stats($server->control, 'settings')->{num_threads_per_udp}, 3, 'num_threads_per_udp else');
        $server->stop;
    }

    for my $shared (0, 1) {
        $server = serve($profile, '-U', '-1', '-t', '2', $shared ? '--udp-shared' : ());
        my $p = "[$profile]" . ($shared ? ' shared' : '');
        my $u = $server->udp;

        # text
        udp_exchange($u, @$_) for [45, "set aval 0 0 1\r\n1\r\n", "STORED\r\n", "$p set"], [50, "get aval\r\n",
            "VALUE aval 0 1\r\n1\r\nEND\r\n", "$p get hit"], [0, "get nothing\r\n", "END\r\n",
            "$p get miss, id 0"], [65535, "incr aval 1\r\n", "2\r\n", "$p incr, id 65535"], [55,
            "decr aval 1\r\n", "1\r\n", "$p decr"], [56, "delete aval\r\n", "DELETED\r\n", "$p delete"], [57,
            "nonsense\r\n", "ERROR\r\n", "$p an unknown command"];
        # else two servers that name each other could be made to talk for ever
        udp_silent($u, [map { datagram(71, $_) } "ERROR\r\n", "END\r\n", "STORED\r\n", "2\r\n",
            "VALUE a 0 7\r\nget a\r\n\r\nEND\r\n", "SERVER_ERROR x\r\nget a\r\n", "HD\r\n", "VA 0\r\n\r\n",
            pack('CCx22', 0x81, 0), pack('CCx6N', 0x81, 0, 7) . 'x' x 12 . "get a\r\n"],
            "$p what begins like a reply is not answered");
        udp_exchange($u, 58, "get a\n", "END\r\n", "$p a line end of LF alone");
        udp_exchange($u, 59, "stats reset\r\n", "RESET\r\n", "$p stats reset");

        # frames
        my $long = join '', map { chr(32 + $_ % 90) } 1 .. 20000;
        my $s = $server->connect;
        exchange($s, "set long 0 0 20000\r\n$long\r\n", "STORED\r\n", "a long value over TCP");
        my $reply = "VALUE long 0 20000\r\n$long\r\nEND\r\n";
        is(int((length($reply) + $PAYLOAD - 1) / $PAYLOAD), 15, "$p takes 15 datagrams");
        udp_exchange($u, 7, "get long\r\n", $reply, "$p and arrives in them");
        my $value = 'v' x 4096;
        udp_exchange($u, 8, "set medium 5 0 4096\r\n$value\r\n", "STORED\r\n",
            "$p a value of 4096 bytes in one request");
        udp_exchange($u, 9, "get medium\r\n", "VALUE medium 5 4096\r\n$value\r\nEND\r\n", "$p comes back");
        $value = join '', map { chr(33 + $_ % 90) } 1 .. 60000;
        udp_exchange($u, 10, "set large 0 0 60000\r\n$value\r\n", "STORED\r\n",
            "$p a value of 60000 bytes in one request");
        udp_exchange($u, 11, "get large\r\n", "VALUE large 0 60000\r\n$value\r\nEND\r\n", "$p comes back");
        for my $len ($PAYLOAD - 1, $PAYLOAD, $PAYLOAD + 1, 2 * $PAYLOAD) {
            my $bytes = $len - length("VALUE f 0 1400\r\n\r\nEND\r\n");
            exchange($s, "set f 0 0 $bytes\r\n" . 'f' x $bytes . "\r\n", "STORED\r\n");
            udp_exchange($u, 12, "get f\r\n", "VALUE f 0 $bytes\r\n" . 'f' x $bytes . "\r\nEND\r\n",
                "$p a reply of $len bytes");
        }
        my $keys = join ' ', map { "missing-key-number-$_" } 1 .. 1500;
        udp_exchange($u, 13, "get $keys medium\r\n", "VALUE medium 5 4096\r\n" . 'v' x 4096
            . "\r\nEND\r\n", "$p a get of 1501 keys, longer than a buffer");

        # several requests in a datagram: a message each, all with its id
        send $u, datagram(77, "set m 0 0 1\r\nx\r\nget m\r\ndelete m noreply\r\nget m\r\n"), 0;
        my @got = map { my ($m) = message($u, 77); $m } 1 .. 3;
        is_deeply(\@got, ["STORED\r\n", "VALUE m 0 1\r\nx\r\nEND\r\n", "END\r\n"],
            "$p a message for each request, none for noreply");
        send $u, datagram(78, "get m\r\n" x 100), 0;
        my $answers = 0;
        for (1 .. 100) {
            my ($m) = message($u, 78);
            $answers += $m eq "END\r\n";
        }
        is($answers, 100, "$p a hundred requests in a datagram, more than -R");

        # what is dropped
        udp_silent($u, [datagram(1, '')], "$p a bare header is ignored");
        udp_silent($u, ['', 'x', 'xxxxxxx'], "$p less than a header is ignored");
        udp_silent($u, [datagram(1, "get a\r\n", total => 2), datagram(1, "get a\r\n", total => 0),
                datagram(1, "get a\r\n", total => 65535)], "$p CVE-2022-48571: total other than 1 is dropped");
        udp_silent($u, [datagram(1, 'get a'), datagram(1, "set half 0 0 10\r\nxx")],
            "$p incomplete requests are dropped with their datagram");
        udp_exchange($u, 2, "get half\r\n", "END\r\n", "$p and leave nothing behind");
        udp_silent($u, @$_) for [[datagram(1, "quit\r\nget a\r\n")], "$p quit ends the datagram silently"],
            [[datagram(1, "watch fetchers\r\n"), datagram(1, "lru_crawler metadump all\r\n")],
                "$p watch and dumps are ignored"], [[datagram(1, ' ' x 4000)], "$p endless blanks"];
        udp_exchange($u, 3, "get b\r\n", "END\r\n", "$p sequence and reserved");
        send $u, datagram(4, "get a\r\n", sequence => 9, reserved => 0xffff), 0;
        my $d = receive($u);
        is_deeply($d, [4, 0, 1, 0, "END\r\n"], "$p of a request are ignored");

        # statistics
        my @lines = stat_lines($s, 'conns');
        my ($port) = $server->ports('UDP INET');
        my @udp = grep { m{^STAT \d+:addr udp:127\.0\.0\.1:$port$} } @lines;
        is(scalar(@udp), 2, "$p stats conns shows a UDP socket for each worker");
        my ($fd) = $udp[0] =~ /^STAT (\d+):/;
        ok((grep { $_ eq "STAT $fd:state conn_read" } @lines), "$p in conn_read");
        is((grep { $_ eq "STAT $fd:UDP UDP" } @lines) ? 1 : 0, $profile eq '1.6' ? 1 : 0, "$p the line UDP");
        my $qos = mem_stats($s, 'qos');
        has($qos, "$p stats qos: udp_received", udp_received => ['>', 30], udp_dropped => ['>=', 8]);
        $server->stop;
    }

    # they count as connections
    $server = serve($profile, '-U', '-1', '-t', '3');
    my $with = mem_stats($server->control);
    has($with, 'curr_connections has the sockets, connection_structures, total_connections',
        curr_connections => 1 + 3 + 1 - 1, connection_structures => 5, total_connections => ['>=', 4]);
    $server->stop;

    # IPv6; and a UNIX socket is instead of all others
    SKIP: {
        my $probe = IO::Socket::IP->new(LocalHost => '::1', Proto => 'udp');
        skip 'no IPv6 here', 2 if !$probe;
        $server = serve($profile, '-l', '127.0.0.1,[::1]', '-U', '-1', '-p', '-1', '-t', '2', {listen => 0});
        my ($port6) = $server->ports('UDP INET6');
        my $u6 = IO::Socket::IP->new(PeerHost => '::1', PeerPort => $port6, Proto => 'udp');
        udp_exchange($u6, 1, "get a\r\n", "END\r\n", 'over IPv6');
        ok((grep { m{:addr udp6:\[::1\]:$port6$} } stat_lines($server->control, 'conns')),
            'as udp6 in stats conns');
        $server->stop;
    }
    my $path = scratch_dir() . "/local.$profile";
    $server = serve($profile, '-s', $path, '-U', '-1', {path => $path});
    unlike(join(' ', stat_lines($server->control, 'conns')), qr/udp/, '-s: no UDP');
    $server->stop;

    # limiter: what is over it waits
    $server = serve($profile, '-U', '-1', '-t', '1', '--qps-limit=200,burst=10');
    my $u = $server->udp;
    my $s = $server->control;
    my $before = mem_stats($s, 'qos');
    send $u, datagram($_, "get a\r\n"), 0 for 1 .. 60;
    my @ids = map { my $d = receive($u); $d ? $d->[0] : 0 } 1 .. 60;
    is_deeply(\@ids, [1 .. 60], 'requests over the limit wait and are served in order');
    my $after = mem_stats($s, 'qos');
    is($after->{qps_admitted} - $before->{qps_admitted}, 60, 'each took a token');
    cmp_ok($after->{qps_delayed} - $before->{qps_delayed}, '>', 0, 'some late');
    send $u, datagram(1, "get a\r\nversion\r\n"), 0 for 1 .. 100;
    my $c = $server->connect;
    exchange($c, "get a\r\n", "END\r\n", 'a TCP client is not starved by a full socket');
});

# UDP and authentication exclude each other (issue 501): nobody can say who a datagram is from
{
    my $dir = scratch_dir();
    write_file(@$_) for ["$dir/tokens", "me:secret\n"], ["$dir/passwords", "me:secret:\n"];
    local $ENV{MEMCACHED_SASL_PWDB} = "$dir/passwords";
    for my $profile (profiles()) {
        my @common = ("--compat=$profile", '-l', '127.0.0.1', '-p', '-1', '-U', '-1', @AS_ROOT);
        has(run_program(@common, '-Y', "$dir/tokens"), '-Y with -U exits 64, and says why', status => 64,
            err => qr/^(memcached: )?Cannot use UDP with ascii authentication enabled/m);
        if ($profile eq '1.6') {
            has(run_program(@common, '-S'), '-S with -U exits 64, and says why', status => 64,
                err => qr/ERROR: Cannot enable UDP while using binary SASL/);
            next;
        }
        my $server = serve($profile, '-U', '-1', '-S', {debug => 0});
        is(($server->ports('UDP INET'))[0], undef, '-S with -U: UDP stays closed');
    }
}

# garbage does not hurt
srand 48571;
each_profile(sub ($profile) {
    my $server = serve($profile, '-U', '-1', '-t', '2', '-m', '8');
    my $u = $server->udp;
    my @pieces = ("get a b c\r\n", "set k 0 0 4\r\nabcd\r\n", "incr k 1\r\n", "\x80", "\x80\x01",
        "stats\r\n", "stats conns\r\n", "\r\n", "\n", 'x' x 3000, "set k 0 0 99999999999\r\n",
        "mg k v\r\n", "\0" x 30, request(1, 'bk', "\0" x 8, 'v'), request(0, 'bk', '', ''),
        request(0x10, '', '', ''), request(4, 'x' x 251, '', ''), "append k 0 0 0\r\n\r\n");
    for my $round (1 .. 60) {
        for (1 .. 25) {
            my $payload = join '', map { $pieces[rand @pieces] } 1 .. 1 + rand 4;
            substr($payload, rand length $payload, 1) = chr rand 256 if rand() < 0.5;
            $payload = substr $payload, 0, rand length $payload if rand() < 0.3;
            my $d = datagram(int rand 65536, $payload, total => rand() < 0.9 ? 1 : int rand 65536);
            $d = join '', map { chr rand 256 } 1 .. rand 40 if rand() < 0.1;
            send $u, $d, 0;
        }
        1 while receive($u, 0);
    }
    my $fresh = $server->udp;
    my $alive = wait_until(sub {
        send $fresh, datagram(99, "get nothing-here\r\n"), 0;
        my $d = receive($fresh, 0.2);
        return $d && $d->[0] == 99 && $d->[4] eq "END\r\n";
    });
    ok($alive, 'after 1500 datagrams of garbage UDP answers');
    exchange($server->connect, "version\r\n", VERSION_REPLY($profile), 'and TCP');
});

# the guard: loopback is trusted, another address of this machine is not
my $probe = IO::Socket::INET->new(PeerAddr => '192.0.2.1', PeerPort => 9, Proto => 'udp');
my $own = $probe ? $probe->sockhost : '127.0.0.1';
each_profile(sub ($profile) {
    SKIP: {
        skip 'no address beside loopback', 1 if $own =~ /^(127|0)\./;
        for my $how ('guarded', 'allowed', 'off') {
            my $server = serve($profile, '-l', "127.0.0.1,$own", '-p', '-1', '-U', '-1', '-t', '1',
                $how eq 'allowed' ? "--udp-allow=10.0.0.0/8,$own/32" : (), $how eq 'off' ? '--udp-guard=off'
                : (), {listen => 0});
            my @ports = $server->ports('UDP INET');
            my $u = IO::Socket::INET->new(PeerAddr => $own, PeerPort => $ports[1],
                Proto => 'udp');
            my $p = "$how";
            my $s = $server->control;
            exchange($s, "set long 0 0 11200\r\n" . 'l' x 11200 . "\r\n", "STORED\r\n");
            exchange($s, "set fits 0 0 10000\r\n" . 'f' x 10000 . "\r\n", "STORED\r\n");
            my $fits = "VALUE fits 0 10000\r\n" . 'f' x 10000 . "\r\nEND\r\n";
            udp_exchange($u, 1, "get a\r\n", "END\r\n", "$p: get");
            udp_exchange($u, 2, "get fits\r\n", $fits, "$p: a reply of 8 datagrams");
            if ($how ne 'guarded') {
                udp_exchange($u, 3, "get long\r\n", "VALUE long 0 11200\r\n" . 'l' x 11200
                    . "\r\nEND\r\n", "$p: a longer one");
                udp_exchange($u, 4, "set x 0 0 1\r\n1\r\n", "STORED\r\n", "$p: set");
                udp_exchange($u, 4, "get fits\r\n", $fits, "$p: no allowance") for 1 .. 20;
                $server->stop;
                next;
            }
            udp_exchange($u, 3, "get long\r\n", "SERVER_ERROR reply too large for UDP\r\n",
                "$p: a longer one is refused");
            udp_exchange($u, 4, "$_\r\n", "SERVER_ERROR not allowed over UDP\r\n",
                "$p: $_ is refused") for 'set x 0 0 1', 'stats', 'flush_all', 'delete fits';
            udp_exchange($u, 5, "incr fits 1\r\n",
                "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", "$p: incr is not");
            exchange($s, "get x\r\n", "END\r\n", 'nothing was stored');
            # else two servers could be made to answer each other for ever
            for my $bad ("bogus\r\n", "ERROR\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n",
                    "SERVER_ERROR not allowed over UDP\r\n", "incr fits x\r\nget a\r\n",
                    pack('CCx22', 0x81, 0), pack('CCx22', 0x80, 0xfe)) {
                send $u, datagram(7, $bad), 0;
                udp_exchange($u, 8, "get a\r\n", "END\r\n", "$p: no answer to " . show($bad));
            }
            my $began = time;
            send $u, datagram($_, "get fits\r\n"), 0 for 1 .. 300;
            my $bytes = 0;
            soon {
                while (my $d = receive($u, 0)) {
                    $bytes += 8 + length $d->[4];
                }
                return mem_stats($s, 'qos')->{udp_guarded} > 0;
            } "$p: a source that asks for too much is not answered any more";
            cmp_ok($bytes, '<', (3 + time - $began) * 65536 + 300 * 8 * 18 + 12000, "$p: so it was sent a bounded amount");
            my $local = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ports[0],
                Proto => 'udp');
            udp_exchange($local, 6, "get fits\r\n", $fits, "$p: loopback is served");
        }
    }
    for my $case (['--udp-guard=off', 0], ['--udp-guard=on', 0], ['--udp-guard=maybe', 64],
            ['--udp-allow=10.0.0.0/8,fd00::/8,192.0.2.1', 0], ['--udp-allow=10.0.0.0/33', 64],
            ['--udp-allow=', 64]) {
        my ($arg, $status) = @$case;
        if ($status) {
            is(run_program($arg, "--compat=$profile", '-U', '-1', '-p', '-1', @AS_ROOT)->{status}, $status,
                "$arg is refused");
            next;
        }
        my $server = serve($profile, '-U', '-1', $arg);
        udp_exchange($server->udp, 1, "get a\r\n", "END\r\n", "$arg");
        is(mem_stats($server->control, 'qos')->{udp_guard}, $arg =~ /off/ ? 'off' : 'on',
            "$arg: udp_guard in stats qos");
    }
});

done_testing();
