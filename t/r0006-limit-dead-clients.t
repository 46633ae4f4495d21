#!/usr/bin/env perl
# Clients that reset their connections while they wait for a token give up their places: they
# neither keep descriptors nor take the tokens of those who are still there.
use MCTest;
use Socket qw(SOL_SOCKET SO_LINGER);

my $dead = 100;
each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '1', '--qps-limit=1,burst=1');
    my $begin = time;
    my $before = mem_stats($s)->{curr_connections};
    my $admitted = mem_stats($s, 'qos')->{qps_admitted};
    for my $i (1 .. $dead) {
        my $c = $server->connect;
        setsockopt $c, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0);
        put($c, "get a\r\n");
        # half of them at once, the others when they surely wait
        mem_stats($s, 'qos') if $i % 2;
        close $c;
    }
    my $live = $server->connect;
    put($live, "get a\r\n");
    is(read_bytes($live, 5), "END\r\n", 'the live one is served');
    soon { mem_stats($s)->{curr_connections} == $before + 1 } 'the dead are gone';
    my $used = mem_stats($s, 'qos')->{qps_admitted} - $admitted;
    # One a second, which those who were still there may have had.
    cmp_ok($used, '<', $dead / 4 + time - $begin, "$dead dead clients did not take the tokens");
    my $path = scratch_dir() . "/dead.$profile";
    my ($unix) = serve($profile, '-t', '1', '-s', $path, '--qps-limit=1,burst=1', '--qps-limit-unit=key', {path => $path});
    my $control = $unix->control;
    my $debtor = $unix->connect;
    exchange($debtor, 'get' . ' d' x 1000 . "\r\n", "END\r\n", 'no token comes for a thousand seconds');
    my $given_up = $unix->connect;
    put($given_up, "set given_up 0 0 1\r\n1\r\n");
    soon { grep { /waiting/ } stat_lines($control, 'conns') } 'it waits';
    my $conns = mem_stats($control)->{curr_connections};
    close $given_up;
    soon { mem_stats($control)->{curr_connections} < $conns } 'a UNIX socket that was closed';
    exchange($control, "qos qps_limit off\r\n", "OK\r\n");
    exchange($control, "get given_up\r\n", "END\r\n", '... and its request is not executed');
    put($s, "qos qps_limit off\r\n");
    is(read_line($s), "OK\r\n", 'no limit, to end at once');
});
done_testing();
