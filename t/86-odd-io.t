#!/usr/bin/env perl
# Reading and writing as hard as a kernel may make it: a byte at a time, interrupted again and
# again, no descriptor or memory for a new connection, sending that fails. Replies are the same
# bytes; the server lives, serves those it has, and takes new ones when it can again.
# t/preload/odd_io.c, preloaded into the server, does it.
use MCTest ':ours';
use Errno qw(EAGAIN ECONNABORTED ECONNRESET EMFILE ENFILE ENOBUFS ENOMEM EPIPE);
use MCBinary;
use MCPreload;

my $control = scratch_dir() . '/control';
my %environment = (preloaded('odd_io'), ODD_IO => $control);
plan skip_all => 'the server runs under something else' if (() = server_binary()) > 1;

# most => bytes of one call, interrupts => n: one call in n, accept and send => errors.
sub make_io(%how) {
    control_put($control, (map { $how{$_} // 0 } qw(most interrupts accept send)), 0, 0);
}

sub injected { return (control_of($control))[5]; }

my $value = join '', map { chr(33 + $_ % 90) } 1 .. 6000;
my $large = $value x 30;

sub converse($s, $size) {
    my $long = substr $large, 0, $size;
    exchange($s, "set a 5 0 3\r\nabc\r\nget a\r\nget nix\r\nappend a 0 0 2\r\n\r\n\r\n",
        "STORED\r\nVALUE a 5 3\r\nabc\r\nEND\r\nEND\r\nSTORED\r\n");
    exchange($s, "get a a a\r\n", "VALUE a 5 5\r\nabc\r\n\r\n" x 3 . "END\r\n");
    exchange($s, "set n 0 0 2\r\n41\r\nincr n 1\r\ntouch n 0\r\ngats 0 nix\r\ndelete n\r\n",
        "STORED\r\n42\r\nTOUCHED\r\nEND\r\nDELETED\r\n");
    exchange($s, "set long 0 0 $size\r\n$long\r\nget long long\r\n",
        "STORED\r\n" . "VALUE long 0 $size\r\n$long\r\n" x 2 . "END\r\n", "a value of $size bytes, and twice back");
    exchange($s, "ms m 2 T0\r\nhi\r\nmg m v s\r\nmg m q\r\nmn\r\nmd m\r\n", "HD\r\nVA 2 s2\r\nhi\r\nHD\r\nMN\r\nHD\r\n");
    exchange($s, "bogus\r\nset\r\nset a 0 0 2\r\ntoo long\r\n", qr/\AERROR\r\n(?:ERROR|CLIENT_ERROR .*)\r\nCLIENT_ERROR bad data chunk\r\n/);
    exchange($s, "set huge 0 0 1100000\r\n" . 'h' x 1_100_000 . "\r\n", "SERVER_ERROR object too large for cache\r\n")
        if $size > 100_000;
    cmp_ok(scalar(stat_lines($s, '')), '>', 20, 'stats');
}

sub converse_binary($s, $name) {
    put($s, packet(0x01, key => 'bin', value => $value, extras => store_extras(7)) . packet(0x00, key => 'bin')
        . packet(0x0d, key => 'nix') . packet(0x0a));
    my @got = map { read_packet($s) } 1 .. 3;
    is_deeply([map { $_ ? @$_{qw(opcode status)} : 'none' } @got], [1, 0, 0, 0, 10, 0], "$name, binary");
    is($got[1] && $got[1]{value}, $value, "$name, binary: the value");
}

sub udp_get($server) {
    my $u = $server->udp;
    $u->send(pack('n4', 5, 0, 1, 0) . "get a\r\n");
    return '' if !IO::Select->new($u)->can_read(60);
    $u->recv(my $got, 2000);
    return $got;
}

each_profile(sub ($profile) {
    make_io();
    my ($server, $old) = serve($profile, '-t', '2', '-U', '-1', {env => \%environment});
    exchange($old, "version\r\n", VERSION_REPLY($profile));

    # [bytes of a call, interrupted calls, size of the large value]
    for my $row ([1, 0, 6000], [7, 0, 60_000], [0, 2, 180_000], [0, 3, 180_000], [1, 2, 6000], [100, 3, 180_000]) {
        my ($most, $interrupts, $size) = @$row;
        my $name = '' . ($most ? "$most bytes at a time" : 'any number of bytes')
            . ($interrupts ? ", one call in $interrupts interrupted" : '');
        make_io(most => $most, interrupts => $interrupts);
        note($name);
        converse($_, $size) for $server->connect, $old;
        converse_binary($server->connect, $name);
        like(udp_get($server), qr/\A\x00\x05\x00\x00\x00\x01\x00\x00(?:VALUE a .*)?END\r\n\z/s, "$name, over UDP");
        cmp_ok(injected(), '>', 20, "$name: so it was") if $interrupts;
        my $w = $server->connect;
        put($w, "watch fetchers\r\n");
        is(read_line($w), "OK\r\n", "$name: watch");
        exchange($old, "get watched\r\n", "END\r\n");
        like(read_line($w), qr/key=watched/, "$name: and hear");
        make_io();
        ok($server->is_alive, "$name: alive") or BAIL_OUT($server->err);
    }

    # no descriptor, no memory: those who are there are served, those who come wait
    for my $error (EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED) {
        local $! = $error;
        my $name = "accept: $!";
        my $before = mem_stats($server->control)->{listen_disabled_num};
        make_io(accept => $error);
        my $waiting = $server->connect; # to the kernel
        put($waiting, "get a\r\n");
        soon { injected() > 0 } "$name: so it was";
        exchange($old, "mn\r\n", "MN\r\n", "$name: those who are there are served");
        my $stats = mem_stats($server->control);
        if ($error != ECONNABORTED) {
            soon { mem_stats($server->control)->{accepting_conns} == 0 } "$name: accepting_conns is 0";
            soon { injected() > 3 } "$name: it is tried again";
            is(mem_stats($server->control)->{listen_disabled_num}, $before + 1, "$name: listen_disabled_num, once");
        }
        make_io();
        like(read_line($waiting), qr/\A(?:VALUE a |END)/, "$name: who waited is served");
        soon { mem_stats($server->control)->{accepting_conns} == 1 } "$name: accepting again";
    }
    my $remedy = qr/^memcached: warning: no connection can be accepted: Too many open files; allow more files \(ulimit -n, LimitNOFILE=\) or fewer connections \(-c\)$/m;
    soon { $server->err =~ $remedy } 'the log names the remedy';

    # sending that fails: the connection is closed, or waits; nobody else is harmed
    for my $error (EPIPE, ECONNRESET, ENOBUFS, EAGAIN) {
        local $! = $error;
        my $name = "send: $!";
        make_io(send => $error);
        my @lost = map { $server->connect } 1 .. 3;
        put($_, "get a\r\nget long\r\n") for @lost;
        soon { injected() > 2 } "$name: so it was";
        make_io();
        exchange($server->connect, "mn\r\n", "MN\r\n", "$name: another is served");
        if ($error == EAGAIN) {
            like(read_line($_), qr/\A(?:VALUE a |END)/, "$name: the reply comes later") for @lost;
        }
        close $_ for @lost;
        exchange($old, "mn\r\n", "MN\r\n", "$name: and the old one");
    }
    make_io(most => 3, interrupts => 2);
    undef $old;
});
done_testing();
