#!/usr/bin/env perl
# In real control groups of version 1: the cpuset shrinks and grows while pinned workers run;
# the quota of CPU time is told, warned of, and followed by -t auto; a limit on memory that is
# too small for -m is warned of.
use MCTest ':ours';
use MCCgroup;

sub pin_stats($server) {
    return mem_stats($server->control, 'pin');
}

my $list = cpu_list();
my @allowed = allowed_cpus();
my $has_hwloc = has_hwloc();

SKIP: {
    skip 'needs hwloc and two CPUs', 1 if !$has_hwloc || @allowed < 2;
    my ($a, $b) = @allowed;
    my $dir = make_group('cpuset', 'cpuset.mems' => '0', 'cpuset.cpus' => "$a,$b");
    skip 'no cgroup v1 cpuset can be made', 1 if !$dir;
    my $server = serve('-t', '2', '--pin', {wrap => inside($dir)});
    my $stats = pin_stats($server);
    is($stats->{pin_allowed_cpus}, 2, 'two CPUs for two workers');
    isnt($stats->{pin_worker_0_cpu}, $stats->{pin_worker_1_cpu}, 'one each');
    is($stats->{pin_replans}, 0, 'in the first plan');

    ok(try_write("$dir/cpuset.cpus", $b), 'the cpuset shrinks');
    soon { pin_stats($server)->{pin_replans} >= 1 } 'there is a new plan';
    $stats = pin_stats($server);
    has($stats, 'for what is left, which is too little', pin_allowed => $b, pin_oversubscribed => 1);
    is($stats->{"pin_worker_${_}_cpu"}, $b, "worker $_ is there") for 0, 1;
    is($stats->{pin_errors}, 0, 'without errors');

    ok(try_write("$dir/cpuset.cpus", "$a,$b"), 'the cpuset grows');
    soon { pin_stats($server)->{pin_allowed_cpus} == 2 } 'there is another plan';
    $stats = pin_stats($server);
    isnt($stats->{pin_worker_0_cpu}, $stats->{pin_worker_1_cpu}, 'with a CPU for each');
    is($stats->{pin_oversubscribed}, 0, 'which is enough');
    serves($server);
}

SKIP: {
    my $dir = make_group('cpu', 'cpu.cfs_period_us' => '50000', 'cpu.cfs_quota_us' => '75000');
    skip 'no cgroup v1 quota can be set', 1 if !$dir;
    my $inner = make_group($dir);
    my $server = serve('-t', '4', {wrap => inside($inner)});
    is(pin_stats($server)->{pin_quota}, '1.500', 'the quota of the group above is told');
    log_says($server, qr/4 workers share a CPU quota of 1\.50 CPUs/, 'and warned of');
    is(mem_stats($server->control)->{threads}, 4, '-t is as it was given');
    ok(try_write("$dir/cpu.cfs_quota_us", '-1'), 'the quota is lifted');
    is(pin_stats($server)->{pin_quota}, 'none', 'which is seen at once');
    $server->stop;

    ok(try_write("$dir/cpu.cfs_quota_us", '40000'), 'a quota of less than one CPU');
    $server = serve('-t', 'auto', $has_hwloc ? '--pin' : '--pin=none', {wrap => inside($inner)});
    is(mem_stats($server->control)->{threads}, 1, '-t auto: feeds one worker');
    is(mem_stats($server->control, 'settings')->{num_threads}, 1, 'stats settings says so');
    is(pin_stats($server)->{pin_quota}, '0.800', 'stats pin tells why');
    unlike($server->err, qr/quota/, 'nobody is warned');
}

SKIP: {
    my $dir = make_group('memory', 'memory.limit_in_bytes' => '960M');
    skip 'no cgroup v1 limit on memory can be set', 1 if !$dir;
    for my $case ([960, 1], [959, 0]) {
        my ($megabytes, $is_warned) = @$case;
        my $server = serve('-t', '1', '-m', $megabytes, {wrap => inside($dir)});
        my $warnings = () = $server->err =~ /-m \d+ does not fit .* memory limit of 960 megabytes/g;
        is($warnings, $is_warned, "a limit of 960 MiB and -m $megabytes: $is_warned warnings");
    }
}

{
    my $server = serve('-t', 'auto');
    my $threads = mem_stats($server->control)->{threads};
    my $quota = pin_stats($server)->{pin_quota};
    $quota = @allowed if $quota eq 'none';
    my $most = $quota < @allowed ? POSIX::ceil($quota) : @allowed;
    is($threads, $most, '-t auto: one for each CPU, as far as the quota goes');
    $server->stop;
    for my $option ('interleave', 'local', 'node:0', 'none') {
        $server = serve('-t', '1', "--membind=$option", '-m', '8');
        serves($server, "--membind=$option: serves");
        my $stats = pin_stats($server);
        if ($option eq 'none') {
            has($stats, 'and binds nothing, nowhere', pin_membind => 'none', pin_membind_areas => 0);
        } else {
            is($stats->{pin_membind}, $option, 'says so');
            cmp_ok($stats->{pin_membind_areas} + $stats->{pin_membind_errors}, '>=', 1, 'and has tried');
        }
    }
    $server = serve('-t', '1', '--membind=node:1023');
    log_says($server, qr/--membind: .*no memory node 1023/,
        'a node that is not there is warned of');
    has(pin_stats($server), 'and counted, the system decides', pin_membind_errors => 1, pin_membind => 'none');
    $server->stop;
    for my $wrong ('', 'node:', 'node:-1', 'node:x', 'all') {
        my $run = run_program("--membind=$wrong", @AS_ROOT);
        has($run, "--membind=$wrong is refused, with the reason", status => 64, err => qr/membind must be/);
    }
    is(run_program('-t', 'automatic', @AS_ROOT)->{status}, 1, '-t takes no other word');
}

done_testing();
