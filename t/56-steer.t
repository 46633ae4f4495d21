#!/usr/bin/env perl
# --steer: connections go to the worker of the CPU that received them, or where the mode says,
# and nobody gets too many; with reuseport every worker accepts for itself.
use MCTest ':ours';

my ($taskset) = grep { -x } map { "$_/taskset" } split /:/, $ENV{PATH};
my @allowed = allowed_cpus();
my $my_list = cpu_list();
my $is_root = $> == 0;

# Connections per worker, and the four counters.
sub spread($stats, $workers) {
    return map { $stats->{"worker_${_}_conns"} } 0 .. $workers - 1;
}

# Opens n connections, each answered, so that the worker has it.
sub open_conns($server, $n) {
    my @conns = map { $server->connect } 1 .. $n;
    exchange($_, "version\r\n", VERSION_REPLY($server->profile)) for @conns;
    return @conns;
}

# wrong words
{
    my $run = run_program('--steer=left');
    is($run->{status}, 64, 'an unknown mode is refused');
    like($run->{err}, qr/steering is one of rr, cpu, reuseport, napi, p2c/, 'with the modes');
    like(run_program('--help')->{out}, qr/--steer=rr\|cpu/, 'the help tells of it');
}

# who is not pinned is dealt with in turn
{
    my $server = serve('-t', '3');
    my $s = $server->control;
    my @conns = open_conns($server, 8);
    my $stats = mem_stats($s, 'qos');
    is($stats->{steer_mode}, 'rr', 'default: in turn');
    is(join(' ', spread($stats, 3)), '3 3 3', 'nine connections on three workers');
    is($stats->{rx_checked}, 0, 'and nobody asks where input arrives');
    close $_ for splice @conns;
    soon { join(' ', spread(mem_stats($s, 'qos'), 3)) eq '1 0 0' } 'who leaves is counted off';

    $server = serve('-t', '2', '--steer=p2c');
    @conns = open_conns($server, 39);
    my ($a, $b) = spread(mem_stats($server->control, 'qos'), 2);
    is($a + $b, 40, 'p2c: all are there');
    cmp_ok(abs($a - $b), '<=', 1, 'p2c: of two workers the emptier');

    $server = serve('-t', '2', '--steer=cpu');
    @conns = open_conns($server, 9);
    $stats = mem_stats($server->control, 'qos');
    is($stats->{steer_fallback}, 10, 'cpu without pinned workers falls back');
    ($a, $b) = spread($stats, 2);
    is($a, $b, 'to the emptier of two');
}

my $pin = '--pin=list:' . join(',', @allowed[0 .. ($#allowed < 1 ? $#allowed : 1)]);

SKIP: {
    skip 'one CPU', 1 if @allowed < 2;
    skip 'no taskset', 1 if !stay_on($allowed[0]);
    stay_on($my_list);
    my ($first, $second) = @allowed;

    # the default of pinned workers
    my $server = serve('-t', '2', $pin);
    my $s = $server->control;
    my $before = mem_stats($s, 'qos');
    is($before->{steer_mode}, 'cpu', 'pinned: cpu by default');
    my @conns;
    for my $row ([$first, 0], [$second, 1]) {
        stay_on($row->[0]);
        my @old = spread(mem_stats($s, 'qos'), 2);
        push @conns, open_conns($server, 4);
        my @new = spread(mem_stats($s, 'qos'), 2);
        is($new[$row->[1]] - $old[$row->[1]], 4, "connections of CPU $row->[0] go to its worker");
    }
    my $after = mem_stats($s, 'qos');
    is($after->{steer_local} - $before->{steer_local}, 8, 'steer_local');
    is($after->{steer_overflow}, 0, 'no overflow');

    # one CPU sends everything: the guard
    stay_on($first);
    push @conns, open_conns($server, 90);
    $after = mem_stats($s, 'qos');
    cmp_ok($after->{steer_overflow}, '>=', 1, 'one client on one CPU: overflow');
    my ($a, $b) = spread($after, 2);
    is($a + $b, 99, 'all are there');
    cmp_ok($a, '<=', 1.25 * 99 / 2 + 2, 'and nobody has more than a quarter above its share');
    cmp_ok($a, '>=', 1.25 * 99 / 2, 'but that');

    # where input arrives
    exchange($conns[0], "version\r\n", VERSION_REPLY()) for 1 .. 200;
    has(mem_stats($s, 'qos'), 'every 64th read is checked, and not more, rx_local_pct', rx_checked => ['>=', 3],
        rx_checked => ['<=', 40], rx_local_pct => ['>', 0]);
    stay_on($my_list);

    $server = serve('-t', '2', $pin, '--steer=rr');
    @conns = open_conns($server, 9);
    is(join(' ', spread(mem_stats($server->control, 'qos'), 2)), '5 5', 'pinned and in turn');
    exchange($conns[0], "version\r\n", VERSION_REPLY()) for 1 .. 100;
    is(mem_stats($server->control, 'qos')->{rx_checked}, 0, 'nobody asks where input arrives');

    $server = serve('-t', '2', $pin, '--steer=napi');
    @conns = open_conns($server, 9);
    $after = mem_stats($server->control, 'qos');
    is($after->{steer_fallback}, 10, 'napi: loopback has no receive queue');
    is(join(' ', spread($after, 2)), '5 5', 'of two the emptier');
    my @lines = $server->err =~ /names no receive queue/g;
    is(scalar(@lines), 1, 'and one line says so');
}

# -N asks for it, too
each_profile(sub ($profile) {
    for my $args (['-N', '3'], ['--napi-ids=3', '--steer=rr']) {
        my $server = serve($profile, '-t', '2', @$args);
        my $s = $server->control;
        my @conns = open_conns($server, 4);
        my $is_rr = @$args == 2 && $args->[1] =~ /rr/;
        my $p = "@$args";
        is(mem_stats($s, 'qos')->{steer_mode}, $is_rr ? 'rr' : 'napi', "$p: mode");
        if ($profile eq '1.6') {
            is(mem_stats($s, 'settings')->{num_napi_ids}, 3, "$p: num_napi_ids");
            my $stats = mem_stats($s);
            is($stats->{round_robin_fallback}, $is_rr ? 0 : 5, "$p: round_robin_fallback");
            is($stats->{unexpected_napi_ids}, 0, "$p: unexpected_napi_ids");
            exchange($s, "stats reset\r\n", "RESET\r\n");
            is(mem_stats($s)->{round_robin_fallback}, 0, "$p: stats reset");
            push @conns, open_conns($server, 2);
            is(mem_stats($s)->{round_robin_fallback}, $is_rr ? 0 : 2, "$p: counted anew");
            is(mem_stats($s, 'qos')->{steer_fallback}, $is_rr ? 0 : 7, "$p: steer_fallback is not");
        }
    }
});

# UNIX sockets have no receive queue, and nobody expects one
{
    my $path = scratch_dir() . '/napi';
    my $server = serve('-t', '2', '-N', '2', '-s', $path, {path => $path});
    my @conns = map { $server->connect } 1 .. 4;
    exchange($_, "version\r\n", VERSION_REPLY()) for @conns;
    is(mem_stats($conns[0], 'qos')->{steer_mode}, 'napi', '-N with a UNIX socket');
    unlike($server->err, qr/receive queue/, 'no warning of it');
}

# pinned elsewhere, workers are found there
SKIP: {
    my $needs_hwloc = run_program('--pin=spread', '--pin-dry-run', '-t', '1', $is_root ? ('-u', 'root') : ());
    skip 'built without hwloc', 1 if $needs_hwloc->{status} != 0;
    skip 'one CPU', 1 if @allowed < 2;
    skip 'no taskset', 1 if !stay_on($my_list);
    for my $mode ('cpu', 'reuseport') {
        my $server = serve('-t', '2', '--pin', "--steer=$mode");
        my $s = $server->control;
        my $kernel = mem_stats($s, 'qos')->{steer_kernel};
        my $cpu = $allowed[1];
        is(system("$taskset -cp $cpu @{[$server->pid]} >/dev/null 2>&1"), 0, "$mode: taskset");
        exchange($s, "qos repin\r\n", "OK\r\n");
        stay_on($allowed[0]);
        # a listener follows its worker with the next connection that it gets
        my @conns = open_conns($server, 8);
        stay_on($cpu);
        my $before = mem_stats($s, 'qos');
        push @conns, open_conns($server, 30);
        my $after = mem_stats($s, 'qos');
        my @old = spread($before, 2);
        my @new = spread($after, 2);
        my ($local, $near, $fallback, $overflow) =
            map { $after->{"steer_$_"} - $before->{"steer_$_"} } qw(local near fallback overflow);
        if ($mode eq 'cpu' || $kernel =~ /cpu|cbpf/) {
            # the kernel's hash may give one listener too many, which the other worker gets then
            is($local + ($mode eq 'cpu' ? 0 : $overflow), 30, "$mode: the new CPU is local");
            is($near + $fallback, 0, "$mode: nobody is from elsewhere");
        }
        cmp_ok($new[$_] - $old[$_], '>=', 1, "$mode: to worker $_, too") for 0, 1;
        close $_ for splice @conns;
        stay_on($my_list);
    }
}

# every worker accepts
each_profile(sub ($profile) {
    for my $args (['-t', '2', '--steer=reuseport'], ['-t', '2', $pin, '--steer=reuseport']) {
        my $server = serve($profile, @$args);
        my $s = $server->control;
        my $what = "@$args";
        my $stats = mem_stats($s, 'qos');
        like($stats->{steer_mode}, qr/^(reuseport|cpu)$/, "$what: mode");
        my $kind = $args->[2] =~ /pin/ ? qr/^(incoming_cpu|cbpf|none)$/ : qr/^hash$/;
        like($stats->{steer_kernel}, $kind, "$what: the kernel's part ($stats->{steer_kernel})");
        my @conns = open_conns($server, 40);
        $stats = mem_stats($s, 'qos');
        my ($a, $b) = spread($stats, 2);
        is($a + $b, 41, "$what: all are there");
        is(mem_stats($s)->{curr_connections}, 41, "$what: listeners do not count as connections");
        open my $fh, '<', $server->{port_file};
        my @ports = <$fh>;
        is(scalar(@ports), 1, "$what: and is written down once");
        my $run = run_program('-p', $server->port, '-l', '127.0.0.1', '--steer=reuseport',
            $is_root ? ('-u', 'root') : ());
        is($run->{status}, 71, "$what: a second server does not join the first one's address");
        like($run->{err}, qr/in use/, "$what: but says that it is in use");
        SKIP: {
            skip 'the kernel does not choose', 1 if $stats->{steer_kernel} !~ /cpu|cbpf/;
            skip 'no taskset', 1 if @allowed < 2 || !stay_on($allowed[1]);
            close $_ for splice @conns;
            wait_until(sub { $a = 0; $a += $_ for spread(mem_stats($s, 'qos'), 2); $a == 1 });
            my $local = mem_stats($s, 'qos')->{steer_local};
            @conns = open_conns($server, 3);
            is(mem_stats($s, 'qos')->{steer_local} - $local, 3, "$what: CPU $allowed[1] is local");
            stay_on($my_list);
        }
    }

    # the limit on connections holds over all who accept
    my $server = serve($profile, '-c', '40', '-t', '3',
            '--steer=reuseport', $profile eq '1.6' ? ('-o', 'no_maxconns_fast') : ());
    my $s = $server->control;
    exchange($s, "version\r\n", VERSION_REPLY($profile));
    my @many = map { $server->connect(no_wait => 1) } 1 .. 80;
    my $st;
    soon { $st = mem_stats($s); !$st->{accepting_conns} } 'accepting_conns goes to 0';
    cmp_ok($st->{curr_connections}, '<=', 41, 'not more than -c are open');
    # in what order the workers accept is nobody's business
    put($_, "version\r\n") for @many;
    my $answered = 0;
    while (@many) {
        my $bits = '';
        vec($bits, fileno $_, 1) = 1 for @many;
        last if select($bits, undef, undef, 60) <= 0;
        for my $c (grep { vec($bits, fileno $_, 1) } @many) {
            $answered++ if read_bytes($c, length VERSION_REPLY($profile)) eq VERSION_REPLY($profile);
        }
        @many = grep { !vec($bits, fileno $_, 1) } @many;
    }
    is($answered, 80, 'as some leave, all are served in the end');
    soon { mem_stats($s)->{accepting_conns} } 'and it accepts again';
    cmp_ok(mem_stats($s)->{listen_disabled_num}, '>=', 1, 'listen_disabled_num');
    $server->stop;

    $server = serve($profile, '-c', '40', '-t', '3', '--steer=reuseport', '-o', 'maxconns_fast');
    $s = $server->control;
    exchange($s, "version\r\n", VERSION_REPLY($profile));
    my (@in, $got);
    for (1 .. 40) {
        my $c = $server->connect;
        put($c, "version\r\n");
        $got = read_line($c);
        last if $got ne VERSION_REPLY($profile);
        push @in, $c;
    }
    is($got, "ERROR Too many open connections\r\n", 'maxconns_fast refuses');
    cmp_ok(scalar(@in), '>=', 1, 'not the first');
    cmp_ok(scalar(@in), '<', 40, 'but who is too many');
    is(mem_stats($s)->{rejected_connections}, 1, 'rejected_connections');
    $server->stop;

    # UNIX sockets have no CPU
    my $path = scratch_dir() . '/steer.sock';
    $server = serve($profile, '-s', $path, '-t', '2', $pin, '--steer=reuseport', {path => $path});
    @in = open_conns($server, 5);
    is(mem_stats($server->control, 'qos')->{steer_kernel}, 'none', 'UNIX socket');
});

done_testing();
