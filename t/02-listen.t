#!/usr/bin/env perl
# -l takes lists of addresses, IPv6 and host:port; -s makes a UNIX socket with the mode of -a.
use MCTest;
use IO::Socket::IP;

my $dir = scratch_dir();

sub answers($server, $host, $port, $name) {
    my $sock = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Type => SOCK_STREAM, Timeout => 60);
    return fail("$name: $@") if !$sock;
    $sock->blocking(0);
    put($sock, "version\r\n");
    my $profile = $server->profile;
    return is(read_line($sock), VERSION_REPLY($profile), $name);
}

sub refuses($host, $port, $name) {
    my $sock = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Type => SOCK_STREAM, Timeout => 60);
    return ok(!$sock, $name);
}

my $has_ipv6 = IO::Socket::IP->new(LocalHost => '::1', Type => SOCK_STREAM, Listen => 1) ? 1 : 0;

each_profile(sub ($profile) {
    for my $list ('127.0.0.1,127.0.0.2', '127.0.0.1;127.0.0.2') {
        my $server = serve($profile, '-l', $list, '-p', '-1', {listen => 0});
        my @tcp = grep { $_->[0] eq 'TCP INET' } @{$server->{ports}};
        is(scalar(@tcp), 2, "-l $list: two sockets");
        answers($server, '127.0.0.1', $tcp[0][1], 'the first answers');
        answers($server, '127.0.0.2', $tcp[1][1], 'the second answers');
    }
    {
        my $port = free_port();
        my $server = serve($profile, '-l', '127.0.0.1', '-l', '127.0.0.3', '-p', $port, {listen => 0});
        answers($server, '127.0.0.1', $port, '-l given twice: the first');
        answers($server, '127.0.0.3', $port, 'the second');
        refuses('127.0.0.4', $port, 'another address is not listened to');
        my $settings = mem_stats($server->connect, 'settings');
        has($settings, 'settings tcpport', tcpport => $port, inter => '127.0.0.1,127.0.0.3');
    }
    if (is_ours()) { # ports and addresses that others begin with
        my ($port) = grep { my $short = substr $_, 0, 4;
            IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $short, Listen => 1) } map { free_port() } 1 .. 50;
        my $short = substr $port, 0, 4;
        my $server = serve($profile, (map { ('-l', $_) } "127.0.0.1:$port", "127.0.0.1:$short", "127.0.0.1:$port"),
            {listen => 0});
        is(join(' ', map { $_->[1] } @{$server->{ports}}), "$port $short",
            '-l that is a part of another one counts, the same one does not');
    }
    if (is_ours()) { # many
        my $server = serve($profile, '-p', '-1', (map { ('-l', "127.0.1.$_") } 1 .. 200), {listen => 0});
        is(scalar(@{$server->{ports}}), 200, '200 times -l');
        answers($server, '127.0.1.200', $server->{ports}[199][1], 'the last answers');
    }
    {
        my $port = free_port();
        my $other = free_port();
        my $server = serve($profile, '-l', "127.0.0.1:$port,127.0.0.2", '-p', $other, {listen => 0});
        answers($server, '127.0.0.1', $port, '-l host:port overrides -p');
        answers($server, '127.0.0.2', $other, 'for that element only');
    }
    {
        my $server = serve($profile, '-l', 'localhost', '-p', '-1', {listen => 0});
        ok(scalar(@{$server->{ports}}), '-l localhost');
        answers($server, $_->[0] =~ /6$/ ? '::1' : '127.0.0.1', $_->[1],
            "localhost by $_->[0]") for @{$server->{ports}};
    }
    SKIP: {
        skip 'no IPv6 here', 2 if !$has_ipv6;
        my $port = free_port();
        for my $spelling ('::1', '[::1]', "[::1]:$port") {
            my $server = serve($profile, '-l', $spelling, '-p', $port, {listen => 0});
            is($server->{ports}[0][0], 'TCP INET6', "-l $spelling in the port file");
            answers($server, '::1', $port, "-l $spelling answers");
        }
    }

    # Prefixes of elements are known in 1.6 only.
    for my $case (['proto[ascii]:127.0.0.1', 'ascii'], ['proto[binary]:127.0.0.1', 'binary'],
            ['proto[negotiating]:127.0.0.1', 'both'], ['tag[abc]:127.0.0.1', 'both'],
            ['tag_abc_:127.0.0.1', 'both'], ['proto[ascii]:tag[x]:127.0.0.1', 'ascii']) {
        my ($list, $speaks) = @$case;
        last if !is_ours();
        if ($profile eq '1.4') {
            my $run = run_program('--compat=1.4', '-l', $list, '-p', '-1', @AS_ROOT);
            is($run->{status}, 71, "-l $list is refused");
            next;
        }
        my $server = serve($profile, '-l', $list, '-p', '-1', '-B', $speaks eq 'both' ? 'ascii' : 'auto', {listen => 0, debug => 0});
        my $noop = pack 'CCnCCnNNNN', 0x80, 0x0a, 0, 0, 0, 0, 0, 7, 0, 0;
        exchange($server->connect, "get a\r\n", "END\r\n", "-l $list speaks text") if $speaks ne 'binary';
        if ($speaks eq 'binary' || $list =~ /negotiating/) {
            my $s = $server->connect;
            put($s, $noop);
            expect_bytes($s, pack('CCnCCnNNNN', 0x81, 0x0a, 0, 0, 0, 0, 0, 7, 0, 0),
                "-l $list speaks binary, whatever -B says");
        }
        if ($speaks eq 'binary') {
            my $s = $server->connect;
            put($s, "set a 0 0 100\r\nget all the way to 24 bytes\r\n");
            expect_eof($s, '', "-l $list closes on text");
        }
        if ($speaks eq 'ascii') {
            my $s = $server->connect;
            put($s, "$noop\r\nversion\r\n");
            like(read_line($s), qr/ERROR/, "-l $list: 0x80 is text");
        }
    }
    for my $bad ('fooble', 'notls:127.0.0.1', 'tag[123456789]:127.0.0.1', '[::1', 'tcp:127.0.0.1',
            '127.0.0.1:99999', '127.0.0.1:', 'proto[x]:127.0.0.1') {
        my $run = run_program('-l', $bad, '-p', '-1', @AS_ROOT, is_ours() ? "--compat=$profile" : ());
        is($run->{status}, 71, "-l $bad exits 71");
        isnt($run->{err}, '', "-l $bad says why");
    }
    for my $none ('', ',', ';', ',;,') {
        last if !is_ours(); # others start, and listen nowhere
        has(run_program('-l', $none, '-p', '-1', '--check-config', "--compat=$profile"), "-l '$none'", status => 71,
            err => qr/^memcached: no address to listen on/);
    }
    {
        my $port = free_port();
        my $server = serve($profile, '-l', "127.0.0.1:$port,127.0.0.2", '-l', '127.0.0.1', '-p', $port, {listen => 0});
        is(mem_stats($server->connect, 'settings')->{inter}, "127.0.0.1:$port,127.0.0.2",
            '-l that has been said is dropped');
    }
    for my $row ([1, '-l', 'PORT', '-l', '127.0.0.1'], [2, '-l', '127.0.0.1', '-l', 'PORT'], [2, '-l', 'PORT,127.0.0.1']) {
        my ($count, @lists) = @$row;
        my ($port, $other) = (free_port(), free_port());
        my $server = serve($profile, (map { s/PORT/127.0.0.1:$port/r } @lists), '-p', $other, {listen => 0});
        is(scalar(@{$server->{ports}}), $count, "@lists: sockets");
    }
    {
        my $port = free_port();
        my $server = serve($profile, '-l', '127.0.0.1', '-p', $port, {listen => 0});
        my $run = run_program('-l', '127.0.0.2,127.0.0.1', '-p', $port,
            @AS_ROOT, is_ours() ? "--compat=$profile" : ());
        is($run->{status}, 71, 'an address in use exits 71');
        like($run->{err}, qr/\b$port\b/, 'and the port is named') if is_ours();
    }

    # UNIX socket
    for my $case ([undef, 0700], ['0777', 0777], ['770', 0770], ['600', 0600]) {
        my ($mask, $mode) = @$case;
        my $path = "$dir/socket.$profile";
        my $server = serve($profile, '-s', $path, defined $mask ? ('-a', $mask) : (), {path => $path});
        my $what = '-s' . (defined $mask ? " -a $mask" : '');
        my $s = $server->connect;
        exchange($s, "set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n", "$what serves");
        is((stat $path)[2] & 0777, $mode, sprintf "$what: mode %04o", $mode);
        my $settings = mem_stats($s, 'settings');
        has($settings, "$what: settings domain_socket", domain_socket => $path, umask => sprintf('%o', $mode));
        my ($first) = grep { /:addr unix:/ } stat_lines($s, 'conns');
        like($first, qr/^STAT \d+:addr unix:\Q$path\E$/, "$what: stats conns") if is_ours();
        $server->stop;
        # The old socket file does not hinder the next start.
        IO::Socket::UNIX->new(Local => $path, Listen => 1) if !-e $path;
    }
    {
        my $path = "$dir/not-a-socket.$profile";
        write_file($path, "precious\n");
        is(run_program('-s', $path, @AS_ROOT, is_ours() ? "--compat=$profile" : ())->{status}, 71,
            '-s on a plain file exits 71');
        ok(-s $path, 'and the file is left alone');
    }
});

# a machine without IPv4
SKIP: {
    my @inside = ('unshare', '-n', 'sh', '-c', 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$@"', 'sh');
    skip 'of this server', 1 if !is_ours();
    skip 'no IPv6, no network namespace, or no ip', 1
        if !$has_ipv6 || run_program({command => [@inside, 'true']})->{status} != 0;
    for my $profile (profiles()) {
        for my $args ([], ['-l', '::1'], ['-l', '[::1]:11300'], ['-l', '*']) {
            my $server = serve($profile, @$args, {listen => 0, wrap => \@inside});
            my ($port) = map { $_->[1] } grep { $_->[0] eq 'TCP INET6' } @{$server->{ports}};
            is(run_program({command => ['nsenter', '-n', '-t', $server->pid, $^X, '-MIO::Socket::IP', '-e',
                'my $s = IO::Socket::IP->new(PeerHost => "::1", PeerPort => shift) or die; print $s "version\r\n"; print scalar <$s>',
                $port]})->{out}, VERSION_REPLY($profile), "IPv6 only: @$args answers");
        }
        my $run = run_program({command => [@inside, server_binary(), "--compat=$profile", '-l', '127.0.0.1',
            @AS_ROOT]});
        is($run->{status}, 71, 'IPv6 only: -l 127.0.0.1 exits 71');
        is($run->{err}, 'memcached: failed to listen on TCP port 11211: 127.0.0.1: Cannot assign requested '
                . "address; it must be an address of this machine\n", '... and says why');
    }
}

# one of both families is taken
if (is_ours() && $has_ipv6) {
    my $taken = IO::Socket::IP->new(LocalHost => '127.0.0.1', Listen => 1, Type => SOCK_STREAM);
    my $server = serve('1.6', '-p', $taken->sockport, {listen => 0});
    is($server->err, 'memcached: warning: not listening on tcp:0.0.0.0:' . $taken->sockport . ", which is in use\n",
        'an address in use is told, though the other one serves');
}

done_testing();
