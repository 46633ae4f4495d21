#!/usr/bin/env perl
# Connections that pipeline under a limit take the tokens that are there in batches: they do
# not queue anew for each request, which once held a worker far below its limit.
use MCTest;

my ($clients, $gets) = (4, 1000);
each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '1', '--qps-limit=100k,burst=200');
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my $reply = "VALUE a 0 1\r\n1\r\nEND\r\n" x $gets;
    my $before = mem_stats($s, 'qos');
    my @socks = map { $server->connect } 1 .. $clients;
    put($_, "get a\r\n" x $gets) for @socks;
    my $right = grep { read_bytes($_, length $reply) eq $reply } @socks;
    is($right, $clients, 'all are answered');
    my $after = mem_stats($s, 'qos');
    is($after->{qps_admitted} - $before->{qps_admitted}, $clients * $gets, 'one token each');
    my $delayed = $after->{qps_delayed} - $before->{qps_delayed};
    cmp_ok($delayed, '<', $clients * $gets / 2, 'most did not queue');
});
done_testing();
