#!/usr/bin/env perl
# With --balance and --steer=cpu a connection whose packets have begun to arrive on another CPU
# goes to the worker there, when that lasts; its client never notices. Whether it goes depends on who
# else uses the CPUs, so that is looked at where nobody does (scripts/ci quiet);
# t/unit/check_homing.c has the decisions.
use MCTest ':ours';
use Time::HiRes qw(time);

my ($taskset) = grep { -x } map { "$_/taskset" } split /:/, $ENV{PATH};
my $my_list = cpu_list();
my @allowed = allowed_cpus();

plan skip_all => 'needs two CPUs and taskset' if @allowed < 2 || !stay_on($my_list);
my ($first, $second) = @allowed;

# Whoever asks uses the connections, so that their packets are seen.
sub use_all($server, @conns) {
    my $want = VERSION_REPLY($server->profile);
    put($_, "version\r\n") for @conns;
    my $good = grep { read_bytes($_, length $want) eq $want } @conns;
    is($good, scalar(@conns), 'all are answered') if $good != @conns;
}

sub homed { return mem_stats($_[0], 'qos')->{migrations_home}; }

each_profile(sub ($profile) {
    my $server = serve($profile, '-t', '2', '--balance', "--pin=list:$first,$second");
    my $s = $server->control;
    my $has_flows = 0;
    if (open my $fh, '<', '/proc/sys/net/core/rps_sock_flow_entries') {
        $has_flows = <$fh> > 0;
    }
    my $before = mem_stats($s, 'qos');
    is($before->{balance_homing}, $has_flows ? 'off' : 'on', 'on unless RFS is');
    SKIP: {
        skip 'RFS is on', 1 if $has_flows;
        stay_on($first);
        my @conns = map { $server->connect } 1 .. 3;
        use_all($server, @conns);
        last SKIP if !is_quiet(); # where others use the CPU, new connections go elsewhere
        is(mem_stats($s, 'qos')->{steer_local} - $before->{steer_local}, 3, 'they are where they belong');
        stay_on($second);
        my $since = time;
        my $first_seen;
        soon {
            use_all($server, @conns, $s);
            $first_seen = time;
            return homed($s) > 0;
        } 'what arrives elsewhere goes there';
        cmp_ok($first_seen - $since, '>', 0.8, 'not at once');
        log_says($server, qr/balance: \d connections? from worker 0 .* to 1 .*: home/, 'a line says so');
        # back again, in the middle of requests
        stay_on($first);
        put($_, "set k 0 0 10\r\n12345") for @conns;
        $since = time;
        my $wrong = 0;
        until ($wrong || time - $since > 1.5) {
            put($_, "67890\r\nset k 0 0 10\r\n12345") for @conns;
            $wrong = grep { read_bytes($_, 8) ne "STORED\r\n" } @conns;
        }
        is($wrong, 0, 'requests that are never finished');
        put($_, "67890\r\n") for @conns;
        is(read_bytes($_, 8), "STORED\r\n", 'answered, whoever had it') for @conns;
        # Asking for statistics is the work of the worker where they shall go, which is sent
        # nothing while it has more to do than theirs: so it is asked rarely, and its log read.
        my $looks = 0;
        ok(wait_until(sub {
            use_all($server, @conns) for 1 .. 50;
            return 1 if $server->err =~ /from worker 1 .* to 0 .*: home/;
            return ++$looks % 20 == 0 && mem_stats($s, 'qos')->{worker_1_conns} == 0;
        }, 60), 'between two requests they go');
    }
    stay_on($my_list);
    $server->stop;

    # not without being asked, and not without a home
    for my $args (['-t', '2', "--pin=list:$first,$second"], ['-t', '2', '--balance'],
            ['-t', '2', '--balance', '--steer=rr', "--pin=list:$first,$second"]) {
        $server = serve($profile, @$args);
        is(mem_stats($server->control, 'qos')->{balance_homing}, 'off', "@$args: off");
        $server->stop;
    }
});

# Workers that were pinned elsewhere are known to be there, though nobody has connected since: what
# arrives where the worker now is has no better place.
SKIP: {
    skip 'built without hwloc', 1 if !has_hwloc();
    my $server = serve('-t', '2', '--balance', '--pin');
    my $s = $server->control;
    stay_on($first);
    my @conns = map { $server->connect } 1 .. 3;
    use_all($server, @conns);
    is(system("$taskset -cp $second @{[$server->pid]} >/dev/null 2>&1"), 0, 'taskset');
    exchange($s, "qos repin\r\n", "OK\r\n");
    my $pin = mem_stats($s, 'pin');
    is("$pin->{pin_worker_0_cpu} $pin->{pin_worker_1_cpu}", "$second $second", 'both have moved');
    stay_on($second);
    my $end = time + 2.2;
    use_all($server, @conns) until time > $end;
    is(homed($s), 0, 'pinned elsewhere: connections stay');
    stay_on($my_list);
}

done_testing();
