#!/usr/bin/env perl
# Requests over TLS get the replies that they get without: any size, cut anywhere, to readers
# that stop; and who does not speak TLS, or stops in the middle, harms nobody.
use MCTest;
use MCConns;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Time::HiRes qw(sleep);
use MCTLS;

plan skip_all => no_tls_because() if no_tls_because();
plan skip_all => 'the servers speak TLS already' if $ENV{MCTEST_TLS};

# The plain listener is for the helper's questions.
sub start($profile, %opt) {
    my ($tls, $plain) = (free_port(), free_port());
    my $server = start_server(profile => $profile, listen => 0, %opt, args => [tls_args(@{$opt{words} || []}),
        '-l', "127.0.0.1:$tls,notls:127.0.0.1:$plain", '-m', 128, @{$opt{args} || []}]);
    $server->{port} = $plain;
    $server->{tls_port} = $tls;
    return $server;
}

sub secure($server, %ssl) {
    return tls_connect($server, port => $server->{tls_port}, %ssl);
}

# A plain connection to the port that speaks TLS.
sub raw($server) {
    local $server->{port} = $server->{tls_port};
    return $server->connect;
}

sub counter_becomes($server, $counter, $want, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got;
    wait_until(sub { $got = mem_stats($server->control)->{$counter}; $got >= $want });
    return is($got, $want, $name);
}

my $large = join '', map { chr(33 + $_ % 90) } 1 .. 1_000_000;

each_profile(sub ($profile) {
    my $server = start($profile);
    my $s = secure($server);
    ok($s, 'a handshake') or diag($IO::Socket::SSL::SSL_ERROR);

    # Requests and replies.
    exchange($s, "set a 5 0 3\r\nabc\r\n", "STORED\r\n", {cmd_set => 1});
    exchange($s, "get a b a\r\n", "VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n",
        {get_hits => 2, get_misses => 1});
    exchange($s, "set n 0 0 1 noreply\r\n1\r\nincr n 2\r\nbogus\r\n", "3\r\nERROR\r\n");
    my $b = secure($server);
    put($b, pack('CCnCCnNNNN', 0x80, 0x0a, 0, 0, 0, 0, 0, 7, 0, 0));
    expect_bytes($b, pack('CCnCCnNNNN', 0x81, 0x0a, 0, 0, 0, 0, 0, 7, 0, 0), 'binary noop');

    # Large values, many small ones.
    exchange($s, "set large 0 0 1000000\r\n$large\r\n", "STORED\r\n", 'a value of 1 MB');
    exchange($s, "get large a large\r\n", "VALUE large 0 1000000\r\n$large\r\nVALUE a 5 3\r\nabc\r\n"
            . "VALUE large 0 1000000\r\n$large\r\nEND\r\n", 'twice there and back');
    my $seen = join '', map { "set k$_ 0 0 $_\r\n" . substr($large, 0, $_) . "\r\n" } 1 .. 400;
    exchange($s, $seen, "STORED\r\n" x 400, 'pipelined sets of every size');
    exchange($s, 'get ' . join(' ', map { "k$_" } 1 .. 400) . "\r\n", join('', map { "VALUE k$_ 0 $_\r\n"
        . substr($large, 0, $_) . "\r\n" } 1 .. 400) . "END\r\n", 'one get of them');
    my $turn = "VALUE k7 0 7\r\n" . substr($large, 0, 7)
        . "\r\nEND\r\nVALUE large 0 1000000\r\n$large\r\nEND\r\n";
    exchange($s, "get k7\r\nget large\r\n" x 8, $turn x 8, 'small and large in turn');
    my $sizes = join '', map { "set w 0 0 $_\r\n" . substr($large, 0, $_) . "\r\nget w\r\n" }
        16383, 16384, 16385, 65536, 131071, 131073;
    (my $sizes_reply = $sizes) =~ s/set w 0 0 (\d+)\r\n(\S+)\r\nget w\r\n/STORED\r\nVALUE w 0 $1\r\n$2\r\nEND\r\n/g;
    exchange($s, $sizes, $sizes_reply, 'sizes about those of records and pieces');

    # Requests in pieces: each write is a record of its own.
    put($s, $_) for split //, "set half 0 0 5\r\nhello\r\n";
    expect_bytes($s, "STORED\r\n", 'a byte in each record');
    put($s, "set half 0 0 50000\r\n" . substr($large, 0, 20_000));
    mem_get_is($server->control, 'half', 'hello', 'half a value is not there');
    put($s, substr($large, 20_000, 30_000) . "\r\nget half\r\n");
    expect_bytes($s, "STORED\r\nVALUE half 0 50000\r\n" . substr($large, 0, 50_000) . "\r\nEND\r\n",
        'the rest of it, and a get behind it');

    # A client that does not read is waited for; others are served.
    my $lazy = secure($server);
    put($lazy, "get large\r\n" x 40);
    soon { grep { /conn_(m?write|swallow|new_cmd)/ } stat_lines($server->control, 'conns') }
        'replies wait for a client that does not read';
    exchange($s, "get a\r\n", "VALUE a 5 3\r\nabc\r\nEND\r\n", 'another is served');
    my $one = "VALUE large 0 1000000\r\n$large\r\nEND\r\n";
    my $bad = grep { read_bytes($lazy, length $one) ne $one } 1 .. 40;
    is($bad, 0, '40 MB for it when it does');
    expect_open($lazy, 'and nothing more');

    # Who leaves.
    my $open = mem_stats($server->control)->{curr_connections};
    put($s, "get a\r\nquit\r\n");
    expect_eof($s, "VALUE a 5 3\r\nabc\r\nEND\r\n", 'quit');
    soon { mem_stats($server->control)->{curr_connections} == $open - 1 } 'and it has left';
    my $before = mem_stats($server->control);
    for my $i (1 .. 40) {
        my $c = secure($server);
        put($c, "set c$i 0 0 1\r\n1\r\n");
        read_line($c) if $i % 2;
        $i % 3 ? close $c : $c->close(SSL_no_shutdown => 1);
    }
    ok(all_have_left($server->control, $before, 40), '40 clients, with good-bye or without');
    my @many = map { secure($server) } 1 .. 30;
    put($_, "get a\r\n") for @many;
    my $small = "VALUE a 5 3\r\nabc\r\nEND\r\n";
    $bad = grep { read_bytes($_, length $small) ne $small } @many;
    is($bad, 0, '30 at once');
    has(mem_stats($server->control), 'no error is counted', ssl_handshake_errors => 0, ssl_proto_errors => 0);
    @many = ();
    $server->stop;
});

# ---- who does not speak it -------------------------------------------------------------

each_profile(sub ($profile) {
    my $server = start($profile);
    my $errors = 0;
    my $open = mem_stats($server->control)->{curr_connections};
    for my $bytes ("get a\r\n", "GET / HTTP/1.0\r\n\r\n", "\x80\x0a" . "\0" x 22, "\0" x 100, "\xff" x 20000,
        "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00") {
        my $c = raw($server);
        put($c, $bytes);
        shutdown $c, 1;
        read_until_eof($c);
        counter_becomes($server, 'ssl_handshake_errors', ++$errors,
            'closed and counted: ' . show(substr $bytes, 0, 16));
    }
    soon { mem_stats($server->control)->{curr_connections} == $open } 'and they have left';
    my $before = mem_stats($server->control);
    raw($server) for 1 .. 3;
    ok(all_have_left($server->control, $before, 3), 'three look whether the port is open');
    is(mem_stats($server->control)->{ssl_handshake_errors}, $errors, 'which is no error');

    # Half a handshake: nobody waits for ever. Time moves by a command, and by nothing else.
    debugtime($server, 'p');
    my @mute = map { raw($server) } 1 .. 3;
    put($mute[1], "\x16\x03\x01");
    my $talks = secure($server);
    exchange($talks, "version\r\n", VERSION_REPLY($profile));
    soon { 3 == grep { %{conn_stats($server, $_)} } @mute } 'each is with its worker';
    debugtime($server, 9);
    expect_open($talks, 'after 9 seconds');
    is(mem_stats($server->control)->{ssl_handshake_errors}, $errors, 'they are waited for');
    debugtime($server, 3);
    expect_eof($_, '', 'after 12 seconds it is closed') for @mute;
    counter_becomes($server, 'ssl_handshake_errors', $errors + 3, 'and counted');
    expect_open($talks, 'not so who has finished it');
    debugtime($server, 'r');

    # Garbage behind the handshake, past the client's own layer of TLS.
    my $dup = IO::Handle->new_from_fd(fileno $talks, '+<');
    syswrite $dup, "\x17\x03\x03\x00\x40" . 'x' x 64;
    counter_becomes($server, 'ssl_proto_errors', 1, 'a forged record');
    read_until_eof($talks);

    # TLS to a plain port.
    my $plain = $server->connect;
    put($plain, "\x16\x03\x01\x00\x05\x01\x00\x00\x01\n");
    like(read_line($plain), $profile eq '1.4' ? qr/^ERROR\r\n/ : qr/^(CLIENT_)?ERROR/,
        'a hello to a plain port is an error');
    is(secure($server, SSL_ca_file => certificates() . '/stranger.pem'), undef,
        'a client that does not trust us leaves');
    counter_becomes($server, 'ssl_handshake_errors', $errors + 4, 'and is counted');
    exchange(secure($server), "version\r\n", VERSION_REPLY($profile), 'all well otherwise');
    exchange($server->control, "stats reset\r\n", "RESET\r\n");
    is(mem_stats($server->control)->{ssl_handshake_errors}, 0, 'stats reset');
    $server->stop;
});

# ---- watchers, and the end -------------------------------------------------------------

# The next line that tells of the key; empty when none comes.
sub line_with($sock, $key) {
    while ((my $line = read_line($sock)) ne '') {
        return $line if $line =~ / key=\Q$key\E /;
    }
    return '';
}

each_profile(sub ($profile) {
    my $server = start($profile, args => ['-t', 2], words => ['ssl_wbuf_size=2', 'idle_timeout=100']);
    my $w = secure($server);
    put($w, "watch mutations\n");
    is(read_line($w), "OK\r\n", 'watch over TLS');
    my $s = secure($server);
    exchange($s, "set watched 0 0 1\r\n1\r\n", "STORED\r\n");
    like(line_with($w, 'watched'), qr/type=item_store key=watched /, 'its lines');
    put($w, "nobody reads this\r\n" x 5000);
    exchange($s, "set watched2 0 0 1\r\n1\r\n", "STORED\r\n");
    like(line_with($w, 'watched2'), qr/key=watched2 /, 'what a watcher sends is thrown away');
    my $before = mem_stats($server->control);
    close $w;
    soon { mem_stats($server->control)->{curr_connections} < $before->{curr_connections} } 'it may leave';

    # To the other worker and back, with what TLS knows of them.
    my @moves = map { secure($server) } 1 .. 8;
    exchange($_, "set moved 0 0 1\r\n1\r\n", "STORED\r\n") for @moves;
    my $moved = sub { mem_stats($server->control, 'qos')->{migrations_total} };
    for my $way ('0 1', '1 0') {
        my $had = $moved->();
        exchange($server->control, "qos rebalance $way 9\r\n", "OK\r\n");
        soon { $moved->() > $had } "connections move: $way";
        exchange($_, "get moved\r\n", "VALUE moved 0 1\r\n1\r\nEND\r\n") for @moves;
    }
    @moves = ();

    exchange($s, "set large 0 0 1000000\r\n$large\r\n", "STORED\r\n", 'small records');
    mem_get_is($s, 'large', $large, 'both ways');

    $server->stop;
});

# What waits at the end still goes, and the good-bye behind it. A client has 4 s to take it: a minute by a
# slow clock, as it may have no CPU.
each_profile(sub ($profile) {
    my $server = start($profile, args => ['-t', 2], env => slowed(15));
    exchange($server->control, "set large 0 0 1000000\r\n$large\r\n", "STORED\r\n");
    my $last = secure($server);
    put($last, "get large\r\n" x 12);
    soon { grep { /:state conn_mwrite$/ } stat_lines($server->control, 'conns') } 'replies wait';
    kill 'TERM', $server->pid;
    my $one = "VALUE large 0 1000000\r\n$large\r\nEND\r\n";
    expect_eof($last, $one x 12, 'SIGTERM: all replies come, then the end');
    soon { !$server->is_alive } 'the server has ended';
    is($server->{exit}, 0, 'with status 0');
});

done_testing();
