#!/usr/bin/env perl
# For --slo the time counts that requests wait in the kernel before the server knows of them: over
# TCP, TLS and UDP. The server is stopped while each request arrives, so that it waits nowhere else.
use MCTest ':ours';
use Time::HiRes qw(sleep);
use MCTLS;

my $BUSY = "SERVER_ERROR 307 busy\r\n";
my $TARGET = '20ms';
my $WAIT = 0.03;
my $server;

sub udp_client {
    return $server->udp;
}

sub ask_udp {
    my ($sock) = @_;
    send $sock, pack('nnnn', 7, 0, 1, 0) . "get a\r\n", 0;
    return sub {
        return 'nothing' if !IO::Select->new($sock)->can_read(60);
        recv $sock, my $bytes, 65536, 0;
        return substr $bytes, 8;
    };
}

sub ask_tcp {
    my ($sock) = @_;
    put($sock, "get a\r\n");
    return sub { return read_line($sock) };
}

# Several at once, each in a record of its own: they are read one by one.
sub ask_records {
    my ($sock) = @_;
    put($sock, "get a\r\n") for 1 .. 8;
    return sub {
        my %seen = map { read_line($sock) => 1 } 1 .. 8;
        return $seen{$BUSY} ? $BUSY : join '', keys %seen;
    };
}

# The reply to a request that arrives while the server is stopped.
sub late_reply($ask, $sock) {
    kill 'STOP', $server->pid;
    wait_until(sub { is_stopped($server) });
    my $reply = $ask->($sock);
    sleep $WAIT;
    kill 'CONT', $server->pid;
    return $reply->();
}

sub test_waiting($name, $ask, $sock, $requests = undef) {
    my $qos = sub { return mem_stats($server->control, 'qos') };
    is($qos->()->{slo_shed}, 0, "$name: nobody is refused");
    my ($count, $reply) = (0, '');
    while ($count < 300 && $reply ne $BUSY) {
        $reply = late_reply($ask, $sock);
        last if $reply !~ /\A(?:END\r\n|\Q$BUSY\E)\z/;
        $count++;
    }
    is($reply, $BUSY, "$name: waiting in the kernel is waiting");
    # Two intervals, of 8 samples on a quick machine.
    cmp_ok($count * ($requests // 1), '>', 2, 'once it is seen to last');
    my $q = $qos->();
    has($q, 'it was late, and small', slo_shed_late => ['>=', 1], slo_shed => $q->{slo_shed_small});
    $server->stop;
}

$server = serve('-t', '1', '-U', '-1', "--slo=p95:$TARGET");
test_waiting($ENV{MCTEST_TLS} ? 'TLS' : 'TCP', \&ask_tcp, $server->connect);

$server = serve('-t', '1', '-U', '-1', "--slo=p95:$TARGET");
test_waiting('UDP', \&ask_udp, udp_client());

SKIP: {
    my $why = no_tls_because() || ($ENV{MCTEST_TLS} ? 'all speak TLS already' : '');
    skip $why, 1 if $why;
    for my $case (['TLS', \&ask_tcp], ['TLS, pipelined', \&ask_records, 8]) {
        my ($tls, $plain) = (free_port(), free_port());
        $server = serve(tls_args(), '-l', "127.0.0.1:$tls,notls:127.0.0.1:$plain", '-t', '1', "--slo=p95:$TARGET", {listen => 0});
        $server->{port} = $plain;
        my ($name, $ask, $requests) = @$case;
        test_waiting($name, $ask, tls_connect($server, port => $tls), $requests);
    }
}

done_testing();
