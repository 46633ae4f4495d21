#!/usr/bin/env perl
# However many datagrams wait, served or dropped, a turn takes so many of them. Then connections and
# orders have theirs: a flood once kept its worker for ever.
use MCTest ':ours';
use Socket qw(SOL_SOCKET SO_RCVBUF);

my $DATAGRAMS = 160; # more than a turn takes

# They wait in the server's socket, and the replies in the client's: both ask the kernel for what it allows.
{
    my $probe = with_room(IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') || die "udp: $!");
    my $room = unpack 'i', getsockopt $probe, SOL_SOCKET, SO_RCVBUF;
    my $needed = $DATAGRAMS * 1280; # as the kernel counts a small one
    plan skip_all => "net.core.rmem_max allows sockets of $room bytes, less than $needed" if $room < $needed;
}

# How often the socket has to wait for another turn: one batch is read at once where there are classes.
for my $case (['off', pack('n4', 7, 0, 1, 0) . "get a\r\n", $DATAGRAMS, 1],
    ['on', pack('n4', 7, 0, 2, 0) . 'half a request', 0, 2]) {
    my ($classes, $bytes, $replies, $deferred) = @$case;
    my ($server, $s) = serve('-t', '1', '-U', '-1', "--classes=$classes");
    my $u = $server->udp;
    my $stat = sub { mem_stats($server->control, $_[0])->{$_[1]} };
    my $before = $stat->('classes', 'class_small_queued');
    kill 'STOP', $server->pid;
    wait_until(sub { is_stopped($server) });
    send $u, $bytes, 0 for 1 .. $DATAGRAMS;
    put($s, "get a\r\n");
    kill 'CONT', $server->pid;
    is(read_line($s), "END\r\n", "--classes=$classes: a connection is served");
    my $heard = grep { (udp_reply($u) // '') eq "END\r\n" } 1 .. $replies;
    is($heard, $replies, 'all datagrams are');
    soon { $stat->('qos', 'udp_received') == $DATAGRAMS } 'and none is left';
    cmp_ok($stat->('classes', 'class_small_queued') - $before, '>=', $deferred, 'in several turns');
    $server->stop;
}

done_testing();
