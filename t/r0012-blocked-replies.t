#!/usr/bin/env perl
# Replies that the socket had no room for do not wait for the token of the request behind them.
use MCTest ':ours';

my $FIONREAD = 0x541b;
my $path = scratch_dir() . '/sock'; # where the kernel holds as much for each client
my ($server, $s) = serve('-t', '1', '-s', $path, {path => $path});
my $value = 'v' x 6000;
my $reply = "VALUE v 0 6000\r\n$value\r\nEND\r\n";
my $limited = 'get' . ' d' x 1000 . "\r\n";

sub unread($sock) {
    my $bytes = pack 'i', 0;
    ioctl $sock, $FIONREAD, $bytes or die "FIONREAD: $!";
    return unpack 'i', $bytes;
}

exchange($s, "set v 0 0 6000\r\n$value\r\n", "STORED\r\n");
exchange($s, "qos $_\r\n", "OK\r\n") for 'action delay', 'unit key', 'qps_limit bulk 1 1';
exchange($s, $limited, "END\r\n", 'the tokens of a thousand seconds');
exchange($s, "qos unit cmd\r\n", "OK\r\n");

# What is sent to a client that does not read.
my $room = 0;
my $full = $server->connect;
put($full, "get v\r\n" x 300);
wait_until(sub {
    my $before = $room;
    roundtrip($s, "mn\r\n") for 1 .. 3;
    $room = unread($full);
    return $room > 0 && $room == $before;
});
cmp_ok($room, '<', 300 * length $reply, 'it has to read before it gets more');
close $full;

# A little less than that, and a little more: with 64 KiB more the server would run none of the rest.
my @clients;
for my $more (-2 .. 3) {
    my $count = int($room / length $reply) + 2 * $more;
    push @clients, $server->connect;
    put($clients[-1], "get v\r\n" x $count . $limited);
    soon { @clients == grep { /waiting/ } stat_lines($s, 'conns') } "a request behind $count others waits";
    ok(read_bytes($clients[-1], $count * length $reply) eq $reply x $count, 'replies to those do not');
}
exchange($s, "qos qps_limit bulk off\r\n", "OK\r\n");
expect_bytes($_, "END\r\n", 'the last one') for @clients;

done_testing();
