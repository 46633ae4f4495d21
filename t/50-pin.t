#!/usr/bin/env perl
# --pin puts each worker on its own allowed CPU and stats pin tells the plan; outside the
# inherited mask nothing is ever used; failure is a warning, a wrong word is an error.
use MCTest ':ours';

my @allowed = allowed_cpus();

# CPU of each worker that has only one; waits until all of $count have, on as many CPUs: workers move by
# themselves, and a thread has its maker's mask at first.
sub wait_single($server, $count) {
    my $pin = mem_stats($server->connect, 'pin');
    my @tids = map { $pin->{"pin_worker_${_}_tid"} } 0 .. $count - 1;
    my $cpus = $count < @allowed ? $count : @allowed;
    my @single;
    wait_until(sub {
        @single = grep { /^\d+$/ } map { proc_status($_, 'Cpus_allowed_list') // '' } @tids;
        my %used = map { $_ => 1 } @single;
        return @single >= $count && keys %used >= $cpus;
    });
    return @single;
}

# CPU list text of every thread of a process.
sub thread_masks($pid) {
    my @masks;
    for my $path (glob "/proc/$pid/task/*/status") {
        open my $fh, '<', $path or next;
        while (my $line = <$fh>) {
            push @masks, $1 if $line =~ /^Cpus_allowed_list:\s+(\S+)/;
        }
    }
    return @masks;
}

my $has_hwloc = has_hwloc();
my @taskset = grep { -x } map { "$_/taskset" } split /:/, $ENV{PATH};
note('allowed CPUs: ' . join ',', @allowed);

# no pinning: the threads keep the inherited mask
{
    my $server = serve('-t', '2');
    my @masks = thread_masks($server->pid);
    is((grep { $_ ne cpu_list() } @masks), 0, 'without --pin every thread keeps the inherited mask');
    my @lines = stat_lines($server->connect, 'pin');
    ok((grep { /^STAT \S*policy none$/ } @lines), 'stats pin: policy none') or diag(join "\n", @lines);
    $server = serve('-t', '2', '--pin=none');
    is((grep { $_ ne cpu_list() } thread_masks($server->pid)), 0, 'nor does --pin=none move any');
}

SKIP: {
    skip 'built without hwloc', 1 if !$has_hwloc;
    my $workers = @allowed < 2 ? 1 : 2;
    for my $option ('--pin', '-T', '--pin=spread', '--pin=llc', '--pin=compact', '--pin=cores') {
        my $server = serve('-t', $workers, $option);
        my @single = wait_single($server, $workers);
        my %used = map { $_ => 1 } @single;
        if (@allowed > 1) {
            cmp_ok(scalar(@single), '>=', $workers, "$option: every worker has one CPU");
            is(scalar(keys %used), $workers, "$option: each its own");
        }
        my %may = map { $_ => 1 } @allowed;
        is((grep { !$may{$_} } keys %used), 0, "$option: inside the inherited mask");
        my @lines = stat_lines($server->connect, 'pin');
        my $policy = $option =~ /=(\w+)/ ? $1 : 'spread';
        ok((grep { /^STAT \S*policy $policy$/ } @lines), "$option: stats pin tells the policy")
            or diag(join "\n", @lines);
        for my $cpu (keys %used) {
            ok((grep { /cpu\S* $cpu\b|\bcpu[ =:]*$cpu\b/i } @lines), "$option: and CPU $cpu");
        }
        serves($server, "$option serves");
    }

    # more workers than CPUs: the plan wraps around and says so
    my $server = serve('-t', 2 * @allowed + 1, '--pin');
    my %count;
    $count{$_}++ for wait_single($server, 2 * @allowed + 1);
    is(scalar(keys %count), scalar(@allowed), 'more workers than CPUs: all CPUs are used') if @allowed > 1;
    my @lines = stat_lines($server->connect, 'pin');
    ok((grep { /^STAT \S*oversubscribed 1$/ } @lines), 'and stats pin says so') or diag(join "\n", @lines);
    $server->stop;

    # the dry run
    my $run = run_program('--pin', '--pin-dry-run', '-t', $workers, @AS_ROOT);
    is($run->{status}, 0, '--pin-dry-run exits 0');
    is((grep { /\S/ } split /\n/, $run->{out}) >= $workers + 1 ? 1 : 0, 1,
        'with a summary and a line a worker') or diag($run->{out});
}

# a list
{
    my $last = $allowed[-1];
    my $server = serve('-t', '1', "--pin=list:$last");
    my @single = grep { $_ eq $last } wait_single($server, 1);
    cmp_ok(scalar(@single), '>=', 1, "--pin=list:$last: the worker is there") if @allowed > 1;
    $server->stop;
    if (@allowed > 1) {
        $server = serve('-t', '2', "--pin=list:$allowed[1],$allowed[0]");
        my %used = map { $_ => 1 } wait_single($server, 2);
        is(join(',', sort keys %used), join(',', sort @allowed[0, 1]), 'a list of two');
    }
}

SKIP: {
    skip 'needs taskset and two CPUs', 1 if !@taskset || @allowed < 2;
    my ($in, $out) = @allowed[0, 1];
    my $server = serve('-t', '2', '--pin', {wrap => [$taskset[0], '-c', $in]});
    # but for the instant, once a second, in which mc-upkeep asks the kernel for the cpuset
    soon { !grep { $_ ne $in } thread_masks($server->pid) } 'under taskset no thread leaves the mask';
    $server->stop;
    $server = eval {
        start_server(args => ['-t', '1', "--pin=list:$out"], wrap => [$taskset[0], '-c', $in]);
    };
    ok($server, 'a listed CPU outside the mask does not hinder the start') or diag($@);
    if ($server) {
        soon { !grep { $_ ne $in } thread_masks($server->pid) } 'and is not used';
        log_says($server, qr/pin|CPU/i, 'but warned of');
        my @lines = stat_lines($server->connect, 'pin');
        ok((grep { /fail\S* [1-9]|policy none/ } @lines), 'and counted') or diag(join "\n", @lines);
        $server->stop;
    }
    has(run_program('--pin-dry-run', '--pin=list:' . $in, '-t', '1', @AS_ROOT),
        'dry run of a list, names the CPU', status => 0, out => qr/\b$in\b/);
}

done_testing();
