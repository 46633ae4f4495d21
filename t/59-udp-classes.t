#!/usr/bin/env perl
# Datagrams have classes like the requests of connections: by what they are, by rules for
# addresses and keys, and by what their socket declares; stats classes counts them.
use MCTest ':ours';

my @CLASSES = qw(control small write bulk background);

sub udp_client($server, $from = undef) {
    return $server->udp($from);
}

# The payloads of so many datagrams, in order.
sub ask($sock, $send, $datagrams = undef) {
    send $sock, pack('nnnn', 7, 0, 1, 0) . $send, 0;
    my $got = '';
    for (1 .. $datagrams // 1) {
        return "$got...nothing" if !IO::Select->new($sock)->can_read(60);
        recv $sock, my $bytes, 65536, 0;
        $got .= substr $bytes, 8;
    }
    return $got;
}

# What was served in which class over UDP by sending this: "small=1 bulk=2".
sub served($server, $sock, $send, $expect) {
    my $before = mem_stats($server->control, 'classes');
    my $got = ask($sock, $send, 1 + int((length($expect) - 1) / 1392));
    is($got, $expect, 'reply to ' . show($send)) if $got ne $expect;
    my $after = mem_stats($server->control, 'classes');
    my @deltas;
    for my $class (@CLASSES) {
        my $delta = $after->{"class_${class}_served_udp"} - $before->{"class_${class}_served_udp"};
        push @deltas, "$class=$delta" if $delta;
        # beside the questions for statistics, which are control commands
        my $all = $after->{"class_${class}_served"} - $before->{"class_${class}_served"};
        is($all, $delta, "$class: no others") if $class ne 'control';
    }
    return "@deltas";
}

my $long = 'v' x 9000;
my $get = "VALUE a 0 1\r\n1\r\nEND\r\n";

each_profile(sub ($profile) {
    my $server = serve($profile, '-t', '1', '-U', '-1');
    my $u = udp_client($server);
    for my $case (
        ["set a 0 0 1\r\n1\r\n", "STORED\r\n", 'write=1'],
        ["get a\r\n", $get, 'small=1'],
        ["version\r\n", VERSION_REPLY($profile), 'control=1'],
        ["get" . " x" x 16 . "\r\n", "END\r\n", 'small=1'],
        ["get" . " x" x 17 . "\r\n", "END\r\n", 'bulk=1'],
        ["set big 0 0 9000\r\n$long\r\n", "STORED\r\n", 'bulk=1'],
        ["get big\r\n", "VALUE big 0 9000\r\n$long\r\nEND\r\n", 'bulk=1'],
        ["delete a\r\n", "DELETED\r\n", 'write=1'],
        ["incr a 1\r\n", "NOT_FOUND\r\n", 'small=1'],
    ) {
        my ($send, $expect, $want) = @$case;
        is(served($server, $u, $send, $expect), $want, 'by itself: ' . show($send));
    }
    $server->stop;

    # the address goes before the socket, the socket before the key, the key before the request
    $server = serve($profile, '-t', '2', '-p', '-1', '-U', '-1', '-l', '127.0.0.1;class=background',
        '--class-rule=peer:127.0.0.2/32=bulk', '--class-rule=peer:127.0.0.0/29=small',
        '--class-rule=key:batch:=write', {listen => 0});
    for my $case (['127.0.0.2', 'bulk=1'], ['127.0.0.3', 'small=1'], ['127.0.0.9', 'background=1']) {
        my ($from, $want) = @$case;
        my $client = udp_client($server, $from);
        is(served($server, $client, "get $_\r\n", "END\r\n"), $want, "$from, $_") for 'a', 'batch:a';
        is(served($server, $client, "set big 0 0 9000\r\n$long\r\n", "STORED\r\n"), $want,
            "$from: also what is large");
        is(served($server, $client, "get big\r\n", "VALUE big 0 9000\r\n$long\r\nEND\r\n"), $want,
            "$from: and found large");
        is(served($server, $client, "version\r\n", VERSION_REPLY($profile)), 'control=1',
            "$from: control commands are that always");
    }
    $server->stop;

    $server = serve($profile, '-t', '1', '-U', '-1',
            '--class-rule=key:batch:=background', '--class-rule=key:batch:now=small');
    $u = udp_client($server);
    is(served($server, $u, "get batch:a\r\n", "END\r\n"), 'background=1', 'by key');
    is(served($server, $u, "get batch:now\r\n", "END\r\n"), 'small=1', 'the longer prefix');
    is(served($server, $u, "set batch:b 0 0 1\r\n1\r\n", "STORED\r\n"), 'background=1', 'a store by its key');
    is(served($server, $u, "get b batch:a\r\n", "END\r\n"), 'small=1', 'the first key');
    # in one datagram each request has its own class, and its replies keep their order
    my $before = mem_stats($server->control, 'classes');
    is(ask($u, "get batch:b\r\nget b\r\nset b 0 0 1\r\n2\r\nget b\r\n", 4),
        "VALUE batch:b 0 1\r\n1\r\nEND\r\nEND\r\nSTORED\r\nVALUE b 0 1\r\n2\r\nEND\r\n",
        'several requests in a datagram');
    my $after = mem_stats($server->control, 'classes');
    is(join(' ', map { $after->{"class_${_}_served_udp"} - $before->{"class_${_}_served_udp"} }
            @CLASSES[1 .. 4]), '2 1 0 1', 'each in its class');
    like(ask($u, "qos class bulk\r\n"), qr/^CLIENT_ERROR .*datagram/, 'a datagram declares nothing itself');
    # a limit of a class
    exchange($server->control, "qos qps_limit background 1000\r\n", "OK\r\n");
    is(served($server, $u, "get batch:a\r\n", "END\r\n"), 'background=1', 'limited');
    $server->stop;

    $server = serve($profile, '-t', '1', '-U', '-1', '--classes=off', '--class-rule=key:batch:=background');
    is(served($server, udp_client($server), "get batch:a\r\n", "END\r\n"), 'small=1', '--classes=off');
});

done_testing();
