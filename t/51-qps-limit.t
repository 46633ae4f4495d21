#!/usr/bin/env perl
# --qps-limit delays requests beyond rate and burst without losing or reordering any, never
# control commands, and changes at run time; stats qos counts what it did.
use MCTest ':ours';

sub qos_stats($s) {
    return mem_stats($s, 'qos');
}

# Bytes that came so far, without waiting for more.
sub arrived($s) {
    my $bits = '';
    vec($bits, fileno $s, 1) = 1;
    while (select(my $r = $bits, undef, undef, 0)) {
        last if !MCTest::fill($s, 0.01);
    }
    return length MCTest::pending($s);
}

each_profile(sub ($profile) {
    # no limit at first
    my ($server, $s) = serve($profile, '-t', '2');
    my $q = qos_stats($s);
    ok(scalar(keys %$q), 'stats qos without a limit') or diag('no lines');
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "get a\r\n" x 100, "VALUE a 0 1\r\n1\r\nEND\r\n" x 100, '100 gets, no limit');
    $q = qos_stats($s);
    is($q->{qps_delayed}, 0, 'nothing is delayed');

    # the command
    exchange($s, "qos qps_limit 1000 16\r\n", "OK\r\n");
    $q = qos_stats($s);
    has($q, 'stats qos: qps_limit, burst', qps_limit => 1000, qps_burst => 16);
    exchanges($s, ["qos show\r\n", qr/1000.*16/s, 'qos show'],
        ["qos qps_limit 50k\r\n", qr/\A(OK\r\n|CLIENT_ERROR [^\r\n]+\r\n)\z/, 'qos qps_limit with a suffix'],
        ["qos qps_limit 2000\r\n", "OK\r\n"]);
    $q = qos_stats($s);
    has($q, 'a new limit without burst', qps_limit => 2000, qps_burst => 16);
    exchange($s, "qos qps_limit off\r\n", "OK\r\n");
    $q = qos_stats($s);
    like($q->{qps_limit}, qr/^(0|off)$/, 'off');
    exchange($s, "$_\r\n", qr/\A(CLIENT_)?ERROR[^\r\n]*\r\n\z/, "'$_' is refused") for 'qos fooble',
        'qos qps_limit', 'qos qps_limit x', 'qos qps_limit -1', 'qos qps_limit 10 x', 'qos qps_limit 10 -5',
        'qos qps_limit 10 0', 'qos qps_limit 10 5 5', 'qos qps_limit 99999999999999999999', 'qos qps_limit 10x';
    exchange($s, "$_\r\n", qr/\ACLIENT_ERROR [^\r\n]+\r\n\z/, "'$_' is a CLIENT_ERROR") for 'qos qps_limit x',
        'qos qps_limit 10 x';
    exchange($s, "qos qps_limit\r\n", "CLIENT_ERROR usage: qos qps_limit [class] <n|off> [burst]\r\n");
    exchange($s, "$_\r\n", "CLIENT_ERROR a class is small, write, bulk or background\r\n", "'$_' names no class")
        for 'qos qps_limit bulks 5', 'qos qps_limit bulks off 5', 'qos slo bulks p99:1ms';
    exchange($s, "qos qps_limit off many\r\n", "CLIENT_ERROR a burst is a number from 1 to 1m\r\n");
    exchange($s, "qos show me\r\n", "CLIENT_ERROR usage: qos show\r\n");
    exchange($s, "qos fooble\r\n", qr/\ACLIENT_ERROR usage: qos show\|qps_limit[a-z_|]* \.\.\.\r\n\z/,
        'an unknown sub-command');
    like(qos_stats($s)->{qps_limit}, qr/^(0|off)$/, 'and changes nothing');

    # counts: a burst of 10, then 200 a second
    ($server, $s) = serve($profile, '-t', '1', '--qps-limit=200,burst=10');
    my $before = qos_stats($s);
    has($before, '--qps-limit shows, with its burst', qps_limit => 200, qps_burst => 10);
    my $send = join '', map { "set k$_ 0 0 2\r\nok\r\nget k$_\r\n" } 1 .. 30;
    my $want = join '', map { "STORED\r\nVALUE k$_ 0 2\r\nok\r\nEND\r\n" } 1 .. 30;
    exchange($s, $send, $want, '60 limited requests are answered completely and in order');
    my $after = qos_stats($s);
    is($after->{qps_admitted} - $before->{qps_admitted}, 60, '60 admitted');
    cmp_ok($after->{qps_delayed} - $before->{qps_delayed}, '>=', 1, 'some delayed');
    cmp_ok($after->{qps_delayed} - $before->{qps_delayed}, '<=', 60, 'not more than came');
    is(mem_stats($s)->{cmd_get}, 30, 'cmd_get');
    ok((grep { /^STAT \S*delay\S* / } stat_lines($s, 'qos')) >= 2, 'stats qos summarises the delays');

    # control commands are never limited
    exchange($s, "version\r\n" x 500, VERSION_REPLY($profile) x 500, '500 version commands');
    is(qos_stats($s)->{qps_admitted}, $after->{qps_admitted}, 'do not count as admitted');

    # a limit of 1: the waiting connection does not hold up others' control commands
    exchange($s, "qos qps_limit 1 1\r\n", "OK\r\n");
    my @waiting = map { $server->connect } 1 .. 5;
    my $get = "VALUE k1 0 2\r\nok\r\nEND\r\n";
    put($_, "get k1\r\n" x 40) for @waiting;
    exchange($s, "version\r\n", VERSION_REPLY($profile), 'version beside waiting connections');
    exchange($s, "qos show\r\n", qr/\S/, 'qos show beside them');
    cmp_ok(scalar(stat_lines($s)), '>', 50, 'stats beside them');
    my $fresh = $server->connect;
    exchange($fresh, "version\r\n", VERSION_REPLY($profile), 'a new connection beside them');
    my $came = 0;
    $came += arrived($_) for @waiting;
    cmp_ok($came, '<', 5 * 40 * length $get, 'they are still waiting');
    exchange($s, "qos qps_limit off\r\n", "OK\r\n");
    my $bad = 0;
    for my $c (@waiting) {
        $bad++ if read_bytes($c, 40 * length $get) ne $get x 40;
    }
    is($bad, 0, 'with the limit off all get all their replies');

    # waiting connections may leave
    exchange($s, "qos qps_limit 1 1\r\n", "OK\r\n");
    put($_, "get k1\r\n" x 40) for @waiting;
    roundtrip($s, "", '');
    my $open = mem_stats($s)->{curr_connections};
    @waiting = ();
    soon { mem_stats($s)->{curr_connections} <= $open - 5 } 'connections that wait for tokens may leave';
    exchange($s, "quit\r\n" x 0 . "version\r\n", VERSION_REPLY($profile));
    my $c = $server->connect;
    put($c, "quit\r\n");
    expect_eof($c, '', 'quit is not limited');
    $c = $server->connect;
    put($c, "get k1\r\n" x 100);
    $server->stop('TERM', 'SIGTERM beside waiting requests: exit 0');

    # options
    for my $case (['50k', 50000, 100], ['1m', 1000000, 2000], ['100', 100, 16],
        ['100,burst=7', 100, 7])
    {
        my ($text, $rate, $burst) = @$case;
        $server = serve($profile, "--qps-limit=$text");
        $q = qos_stats($server->connect);
        has($q, "--qps-limit=$text: rate, burst", qps_limit => $rate, qps_burst => $burst);
    }
});

done_testing();
