#!/usr/bin/env perl
# Pinned workers stay where the plan has them: moved by hand they come back within a second or
# two, a new mask of the process is obeyed, the other threads keep off the workers' CPUs.
use MCTest ':ours';

my ($taskset) = grep { -x } map { "$_/taskset" } split /:/, $ENV{PATH};
plan skip_all => 'needs taskset' if !$taskset;

my $list = cpu_list();
my @allowed = allowed_cpus();
plan skip_all => 'needs two CPUs' if @allowed < 2;
my ($a, $b) = @allowed;

sub pin_stats($server) {
    return mem_stats($server->control, 'pin');
}

# Which CPUs a thread of the server may use.
sub mask_of($server, $tid) {
    open my $fh, '<', "/proc/" . $server->pid . "/task/$tid/status" or return '';
    while (my $line = <$fh>) {
        return $1 if $line =~ /^Cpus_allowed_list:\s+(\S+)/;
    }
    return '';
}

sub other_threads($server) {
    my $stats = pin_stats($server);
    my %is_worker = map { $stats->{$_} => 1 } grep { /_tid$/ } keys %$stats;
    return grep { !$is_worker{$_} } map { m{/(\d+)$} } glob '/proc/' . $server->pid . '/task/*';
}

sub set_mask($id, $cpus, @more) {
    return run_program({command => [$taskset, @more, '-cp', $cpus, $id]})->{status} == 0;
}

# one worker, one CPU left over
{
    my $server = serve('-t', '1', "--pin=list:$a");
    my $stats = pin_stats($server);
    my @rest = grep { $_ != $a } @allowed;
    my $rest = $stats->{pin_background};
    ok($rest =~ /\b$rest[0]\b/, 'stats pin tells the CPUs of the other threads') or diag($rest);
    my @others = other_threads($server);
    cmp_ok(scalar(@others), '>=', 2, 'there are some');
    soon { !grep { mask_of($server, $_) ne $rest } @others } 'and they are there';
    my $tid = $stats->{pin_worker_0_tid};
    is(mask_of($server, $tid), $a, 'the worker is on its own');
    has($stats, 'nothing has been planned again, nor has anything drifted, it has run, it may have waited, it has not changed its CPU',
        pin_replans => 0, pin_worker_0_drift => 0, pin_worker_0_sched_run_ns => qr/^[1-9]\d*$/,
        pin_worker_0_sched_wait_ns => qr/^\d+$/, pin_worker_0_migrations => 0);

    ok(set_mask($tid, $b), 'the worker is moved by hand');
    soon { mask_of($server, $tid) eq $a } 'and comes back';
    soon { pin_stats($server)->{pin_replans} >= 1 } 'which is counted';
    cmp_ok(pin_stats($server)->{pin_worker_0_drift}, '>=', 1, 'as a drift');
    log_says($server, qr/pinned again/, 'and logged');

    my $before = pin_stats($server)->{pin_replans};
    exchange($server->control, "qos repin\r\n", "OK\r\n", 'qos repin');
    cmp_ok(pin_stats($server)->{pin_replans}, '>', $before, 'plans again');
    is(mask_of($server, $tid), $a, 'to the same end');
    exchange($server->control, "qos repin 1\r\n", qr/^CLIENT_ERROR usage: qos repin\r\n/,
        'it takes no argument');
}

# no CPU left over: the others float, and do not preempt
{
    my $server = serve('-t', scalar(@allowed), '--pin=list:' . join(',', @allowed));
    is(pin_stats($server)->{pin_background}, 'any', 'no CPU is left over');
    my @others = other_threads($server);
    is((grep { mask_of($server, $_) ne $list } @others), 0, 'the other threads float');
    # policy is the 41st field, the name in parentheses has blanks; 3 is SCHED_BATCH
    my @policies = map {
        open my $fh, '<', '/proc/' . $server->pid . "/task/$_/stat" or die;
        my $line = <$fh>;
        $line =~ s/^.*\) //;
        (split ' ', $line)[38]
    } @others;
    is((grep { $_ != 3 } @policies), 0, 'as batch work') or diag("@policies");
}

# taskset for the whole process
SKIP: {
    skip 'built without hwloc', 1 if !has_hwloc();
    my $server = serve('-t', '2', '--pin=cores');
    is(pin_stats($server)->{pin_oversubscribed}, 0, 'each worker has a CPU');
    ok(set_mask($server->pid, $b, '-a'), 'the process is confined by hand');
    soon { pin_stats($server)->{pin_allowed} eq $b } 'and obeys';
    my $stats = pin_stats($server);
    has($stats, 'worker 0 is there, worker 1 too, which is one too many', pin_worker_0_cpu => $b,
        pin_worker_1_cpu => $b, pin_oversubscribed => 1);
    ok(set_mask($server->pid, $list, '-a'), 'it is given all back');
    soon { pin_stats($server)->{pin_allowed} eq $list } 'and takes it';
    is(pin_stats($server)->{pin_oversubscribed}, 0, 'each worker has a CPU again');
    serves($server);
}

done_testing();
