#!/usr/bin/env perl
# Clocks that jump and CPUs that go away: the wall clock is set, the machine is suspended, the
# process is stopped and goes on, its cpuset shrinks while it is pinned. Nothing hangs, no reply
# is lost, and no limit lets a pause's worth of requests pass. t/preload/jump.c moves the clocks.
use MCTest ':ours';
use MCCgroup;
use MCPreload;
use Time::HiRes qw(time sleep);

my ($jump, $refuse) = map { preload($_) } qw(jump refuse);
my $control = scratch_dir() . '/jump';
my $server;

# By how many seconds the wall clock alone, and both clocks, are off.
sub jump($wall, $both) {
    control_put($control, map { $_ * 1_000_000_000 } $wall, $both);
}

# The clocks stay where they are.
sub restart(@args) {
    $server = serve(@args, {env => {LD_PRELOAD => $jump, JUMP => $control}});
}

sub start(@args) {
    jump(0, 0);
    restart(@args);
    exchange($server->connect, "set a 0 0 1\r\n1\r\n", "STORED\r\n", "@args");
}

sub qos { return mem_stats($server->control, 'qos'); }

sub waiting { return scalar grep { /waiting/ } stat_lines($server->control, 'conns'); }

# Connections, each with a get that has to wait.
sub delay($count) {
    my @conns = map { $server->connect } 1 .. $count;
    put($_, "get a\r\n") for @conns;
    wait_until(sub { qos()->{qps_admitted} + waiting() >= $count });
    return @conns;
}

my $hit = "VALUE a 0 1\r\n1\r\nEND\r\n";

sub are_served($name, @conns) {
    my @wrong = grep { read_bytes($conns[$_], length $hit) ne $hit } 0 .. $#conns;
    is("@wrong", '', $name);
}

sub ask_all($name, @conns) {
    put($_, "get a\r\nget a" . ' x' x 30 . "\r\n") for @conns;
    my @wrong = grep { read_bytes($conns[$_], 2 * length $hit) ne $hit x 2 } 0 .. $#conns;
    is("@wrong", '', $name);
}

# ---- clocks -------------------------------------------------------------------------------------

SKIP: {
    skip 'no library to preload', 1 if !$jump;

    # The wall clock is set. The kernel's stamps are of the old time then, or too old to be true.
    start('-t', '2', '--slo=p95:1s', '--balance', '--cpu-limit=1000%', '--qps-limit=10m');
    my @conns = map { $server->connect } 1 .. 8;
    for my $step (1, 3600, -1.5, -3600, 86400 * 400, -86400 * 400, 1e9, -2e9) {
        jump($step, 0);
        ask_all("the wall clock is set by $step seconds", @conns);
    }
    for my $step (0.8, -0.8) {
        jump($step, 0);
        ask_all("packets on their way when it is set by $step seconds", $_) for @conns[0, 1];
        jump(0, 0);
        ask_all('and those that come after', @conns);
    }
    is(qos()->{slo_shed}, 0, 'nobody is refused for it');
    ok(defined mem_stats($server->control, 'latency')->{latency_all_read_count}, 'stats latency');

    # Suspended: all time-outs are over at once.
    for my $seconds (10, 3610, 1_000_000) {
        jump(0, $seconds);
        ask_all("$seconds seconds of suspension", @conns);
        ok($server->is_alive, 'alive');
    }
    $server->stop;

    # A bucket is full after a suspension, and not fuller: neither by what came to it nor by the
    # slots of those who wait. At 1 a second and bursts of 10 that is 10, and 10 seconds' slots.
    start('-t', '1', '--qps-limit=1,burst=10');
    my $begin = time;
    @conns = delay(150);
    my $before = qos()->{qps_admitted};
    jump(0, 3600);
    soon { qos()->{qps_admitted} > $before } 'a suspension: tokens are there again';
    serve_nothing_more($before, $begin);
    for my $hours (2 .. 4) {
        $before = qos()->{qps_admitted};
        jump(0, 3600 * $hours);
        soon { qos()->{qps_admitted} > $before } 'and after the next';
        serve_nothing_more($before, $begin);
    }
    exchange($server->control, "qos qps_limit off\r\n", "OK\r\n");
    are_served('all are answered', @conns);
    $server->stop;

    # Items that come back have aged by what passed since the stop, wherever the wall clock was set to before.
    my @saved = ('-m', '44', '-e', scratch_dir() . '/memory');
    for my $set (86400, -86400) {
        start(@saved);
        exchange($server->connect, "set b 0 1000 1\r\n1\r\nset c 0 4000 1\r\n1\r\n", "STORED\r\n" x 2);
        jump($set, 0);
        exchange($server->connect, "get b\r\n", "VALUE b 0 1\r\n1\r\nEND\r\n", "set by $set seconds: b is there");
        $server->stop('USR1');
        jump($set + 2000, 0);
        restart(@saved);
        exchange($server->connect, "get a b c\r\n", "VALUE a 0 1\r\n1\r\nVALUE c 0 1\r\n1\r\nEND\r\n",
            'started 2000 seconds later: what was to live for 1000 is gone, no more');
        $server->stop;
    }
}

# What was admitted since is a burst and its time's slots, and what real time has brought.
sub serve_nothing_more($before, $begin) {
    sleep 0.1; # so that what is too much would be seen
    my $admitted = qos()->{qps_admitted} - $before;
    cmp_ok($admitted, '<=', 25 + (time - $begin), 'but no more than a burst and its slots');
}

# ---- stopped, as a virtual machine is -------------------------------------------------------------

{
    my $workers = 2;
    $server = serve('-t', $workers, '--qps-limit=200,burst=16', '--balance',
            '--cpu-limit=400%', '--slo=p95:30s', '--pin=none');
    exchange($server->connect, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my @conns = delay(400);
    my ($asked, $before) = (time, qos()->{qps_admitted});
    kill 'STOP', $server->pid;
    my $stopped = time;
    sleep 1.2;
    my $continued = time;
    kill 'CONT', $server->pid;
    my $admitted = qos()->{qps_admitted} - $before;
    my $running = $stopped - $asked + time - $continued;
    # a burst; 80 ms of a full bucket and 20 ms more of slots of each worker; a lease of each
    cmp_ok($admitted, '<=', 200 * $running + 16 + 20 + 2 * $workers + 4,
        "stopped for 1.2 s, $workers workers: no 240 requests pass at once");
    exchange($server->control, "qos qps_limit off\r\n", "OK\r\n");
    are_served('all are answered', @conns);
}

# ---- the cpuset shrinks, and grows ----------------------------------------------------------------

sub pin { return mem_stats($server->control, 'pin'); }

SKIP: {
    my $list = cpu_list();
    my ($a, $b) = map { /^(\d+)-(\d+)$/ ? ($1 .. $2) : $_ } split /,/, $list;
    skip 'needs two CPUs', 1 if !defined $b;
    my $dir = make_group('cpuset', 'cpuset.cpus' => "$a,$b", 'cpuset.mems' => '0')
        // skip 'no cgroup v1 cpuset can be made', 1;
    skip 'built without hwloc', 1 if run_program('--pin', '--pin-dry-run', '-u', 'root')->{status} != 0;
    # Also where the workers could not bind themselves at the start: they are bound by another thread.
    for my $is_refused (0, 1) {
        next if $is_refused && !$refuse;
        my $name = $is_refused ? 'no worker binds itself' : 'as it is';
        # A shell does not bear a sanitizer's library: it is for the server alone.
        my @env = $is_refused ? ('env', "LD_PRELOAD=$refuse", 'REFUSE=sched_setaffinity:0:0=1') : ();
        $server = serve('-t', '2', '--pin', '--steer=cpu', '--balance', {wrap => inside($dir, @env)});
        exchange($server->connect, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
        my @conns = map { $server->connect } 1 .. 16;
        is(pin()->{pin_allowed_cpus}, 2, "$name: two CPUs");
        is(pin()->{pin_errors}, $is_refused ? 2 : 0, 'bound, or not');
        my $replans = pin()->{pin_replans};
        ok(try_write("$dir/cpuset.cpus", $b), 'the cpuset shrinks to one CPU');
        soon { ask_all('it serves meanwhile', @conns); pin()->{pin_allowed} eq $b } 'the server sees it';
        my $now = pin();
        is("$now->{pin_worker_0_cpu} $now->{pin_worker_1_cpu}", "$b $b", 'both workers are there');
        has($now, 'without errors, one is too many, which took a new plan', pin_errors => 0,
            pin_oversubscribed => 1, pin_replans => ['>', $replans]);
        ok(try_write("$dir/cpuset.cpus", "$a,$b"), 'it grows again');
        soon { ask_all('it serves meanwhile', @conns); pin()->{pin_allowed_cpus} == 2 } 'the server sees that';
        $now = pin();
        isnt($now->{pin_worker_0_cpu}, $now->{pin_worker_1_cpu}, 'each worker has its CPU');
        my @lines = grep { /pinned again/ } split /\n/, $server->err;
        cmp_ok(scalar(@lines), '>=', 2, 'a line for each') or diag($server->err);
        cmp_ok(scalar(@lines), '<=', 8, 'and not many more');
        $server->stop;
    }
}

done_testing();
