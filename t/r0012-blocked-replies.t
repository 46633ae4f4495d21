#!/usr/bin/env perl
# Replies that the socket had no room for do not wait for the token of the request behind them.
use MCTest ':ours';

my $path = scratch_dir() . '/sock'; # where the kernel holds as much for each client
my ($server, $s) = serve('-t', '1', '-s', $path, {path => $path});
my $value = 'v' x 6000;
my $reply = "VALUE v 0 6000\r\n$value\r\nEND\r\n";
my $limited = 'get' . ' d' x 1000 . "\r\n";

exchange($s, "set v 0 0 6000\r\n$value\r\n", "STORED\r\n");
exchange($s, "qos $_\r\n", "OK\r\n") for 'action delay', 'unit key', 'qps_limit bulk 1 1';
exchange($s, $limited, "END\r\n", 'the tokens of a thousand seconds');
exchange($s, "qos unit cmd\r\n", "OK\r\n");

# A socket takes 200 to 320 KB, by the sizes of the writes. Some of these clients get all replies at
# once, some leave less than 64 KiB of them to the server, which then comes to the last request, and
# some leave more, so that it is at that request once they have read.
my @counts = map { 2 * $_ } 16 .. 32;
my @clients;
for my $count (@counts) {
    push @clients, $server->connect;
    put($clients[-1], "get v\r\n" x $count . $limited);
}
soon { @clients == grep { /conn_(?:waiting|mwrite)/ } stat_lines($s, 'conns') }
    'the server has done what it can for all that do not read';
for my $i (keys @counts) {
    my $replies = $reply x $counts[$i];
    ok(read_bytes($clients[$i], length $replies) eq $replies, "$counts[$i] replies do not wait");
}
soon { @clients == grep { /conn_waiting/ } stat_lines($s, 'conns') } 'the requests behind them do';
exchange($s, "qos qps_limit bulk off\r\n", "OK\r\n");
expect_bytes($_, "END\r\n", 'the last one') for @clients;

done_testing();
