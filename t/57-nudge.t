#!/usr/bin/env perl
# --sched=slice:T beside a batch job on the worker's CPU: the kernel is made to look again whom the
# CPU belongs to while that helps, and by nobody otherwise. That it helps is up to the kernel and to
# who else is there: scripts/ci quiet. t/unit/check_nudge.c has the decisions.
use MCTest ':ours';
use Time::HiRes qw(time sleep);

my $list = cpu_list();
my ($cpu) = $list =~ /^(\d+)/;
plan skip_all => 'needs taskset' if system('taskset -V >/dev/null 2>&1') != 0;

sub sched_stats($server) {
    return mem_stats($server->control, 'pin');
}

# The folders in /proc of the threads that do it.
sub nudgers($server) {
    return grep { read_file("$_/comm") =~ /^mc-nudge/ } glob '/proc/' . $server->pid . '/task/*';
}

# The 41st field; the name in parentheses has blanks.
sub policy_of($task) {
    my $line = read_file("$task/stat");
    $line =~ s/^.*\) //s;
    return (split ' ', $line)[38];
}

# How often the thread that nudges has slept. Whoever asked the server would make its worker wait.
sub sleeps($server) {
    my ($task) = nudgers($server) or die 'nobody is there who nudges';
    return (read_file("$task/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m)[0];
}

# Were there no nudges for a while that is long for them?
sub is_calm($server) {
    my $before = sleeps($server);
    sleep 0.2;
    return sleeps($server) == $before;
}

# Asks for more than the worker's share of its CPU until $is_enough says so; gives up after a while.
sub keep_asking($server, $is_enough) {
    my @conns = map { $server->connect } 1 .. 4;
    my $batch = ('get ' . join(' ', map { "k$_" } 1 .. 40) . "\r\n") x 20;
    my $end = time + 30;
    while (time < $end) {
        for (1 .. 10) {
            put($_, $batch) for @conns;
            for my $c (@conns) {
                return 'a wrong reply' if read_bytes($c, length "END\r\n" x 20) ne "END\r\n" x 20;
            }
        }
        return 'enough' if $is_enough->();
    }
    return 'not seen';
}

my $has_realtime = system('chrt -f 1 true 2>/dev/null') == 0;

# Nobody asks: the thread that nudges is there. The same without a slice,
# whatever else runs.
for my $slice (1, 0) {
    my @args = ("--pin=list:$cpu", $slice ? '--sched=slice:100us' : ());
    my $server = serve('-t', '1', @args);
    my $stats = sched_stats($server);
    my $wanted = $slice && $stats->{sched_errors} == 0 ? 1 : 0;
    my $refused = $wanted && !$has_realtime ? 1 : 0;
    is($stats->{sched_nudges}, 0, "@args: no nudges") if !$slice; # it may have had to wait already
    is($stats->{sched_nudgers_refused}, $refused, 'refused if real-time priority is');
    is(scalar(nudgers($server)), $wanted - $refused, 'by a thread if there is a slice');
}

# beside a batch job
SKIP: {
    skip 'measures: scripts/ci quiet', 1 if !is_quiet();
    my $server = serve('-t', '1', "--pin=list:$cpu", '--sched=slice:100us');
    skip 'the kernel takes no slices', 1 if sched_stats($server)->{sched_errors} > 0;
    my $tid = sched_stats($server)->{pin_worker_0_tid};
    my $pid = in_child(sub {
        alarm 120; # whatever becomes of this test
        exec 'taskset', '-c', $cpu, 'sh', '-c', 'while :; do :; done';
    });
    my $stats;
    my $seen = keep_asking($server, sub {
        $stats = sched_stats($server);
        return !$has_realtime || $stats->{sched_nudges} > 0;
    });
    is($seen, 'enough', 'beside a batch job there are nudges, if they are permitted');
    is($stats->{pin_worker_0_sched_policy}, 'other', 'the worker stays what it is');
    is($stats->{pin_worker_0_sched_slice_ns}, 100000, 'with its slice');
    SKIP: {
        skip 'real-time priority is not permitted here', 1 if !$has_realtime;
        # Nobody asks, so the worker waits for nothing, whatever else uses the CPU.
        soon { is_calm($server) } 'nobody asks: they end';
    }
    kill 'KILL', $pid;
    waitpid $pid, 0;
    serves($server);
}

# Root that becomes another user nudges all the same, and has no other right left.
SKIP: {
    skip 'needs root that may set real-time priority', 1
        if $> != 0 || !$has_realtime || !defined getpwnam 'nobody';
    chmod 0777, scratch_dir();
    my $server = serve('-t', '2', '-u', 'nobody', "--pin=list:$cpu", '--sched=slice:100us');
    skip 'the kernel takes no slices', 1 if sched_stats($server)->{sched_errors} > 0;
    is(sched_stats($server)->{sched_nudgers_refused}, 0, 'as another user: none refused');
    is_deeply([map { policy_of($_) } nudgers($server)], [1, 1], 'one a worker, at SCHED_FIFO');
    my @rights = map { read_file("$_/status") =~ /^CapPrm:\s+0+$/m } glob '/proc/' . $server->pid . '/task/*';
    ok(!(grep { !$_ } @rights), 'no thread has a right left');
    $server->stop;
    chmod 0700, scratch_dir();
}

done_testing();
