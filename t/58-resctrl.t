#!/usr/bin/env perl
# --resctrl on a directory that looks like resctrl, and --busy-poll: what they write, what stats
# tells, and that nothing of it hinders the start.
use MCTest ':ours';

my $root = scratch_dir() . '/resctrl';
mkdir $root or die "$root: $!";

# off
{
    my $server = serve('-t', '1');
    is_deeply([stat_lines($server->control, 'resctrl')], [], 'off: nothing to tell');
    is(mem_stats($server->control, 'pin')->{busy_poll_usecs}, 0, 'nor does anybody poll busily');
}

# the plan alone
{
    my $run = run_program('--pin=list:0', '-t', '1', '--resctrl=plan', "--resctrl-root=$root", '--resctrl-schemata=L3:0=1', '--pin-dry-run');
    is($run->{status}, 0, 'a plan is printed') or diag($run->{err});
    ok(!-e "$root/plan", '... and nothing is made');
}

# a group that is there
{
    my $dir = "$root/front";
    mkdir $_ for $dir, "$dir/mon_data", "$dir/mon_data/mon_L3_00";
    write_file("$dir/tasks", '');
    write_file("$dir/schemata", "    L3:0=fff\n    MB:0=100\n");
    write_file("$dir/mon_data/mon_L3_00/llc_occupancy", "1048576\n");
    write_file("$dir/mon_data/mon_L3_00/mbm_local_bytes", "17\n");
    my $server = serve('-t', '3', '--resctrl=front', "--resctrl-root=$root");
    my $pin = mem_stats($server->control, 'pin');
    my @tids = map { $pin->{"pin_worker_${_}_tid"} } 0 .. 2;
    is(read_file("$dir/tasks"), join('', map { "$_\n" } @tids), 'the workers have joined');
    is_deeply([stat_lines($server->control, 'resctrl')], ['STAT resctrl_group front', 'STAT resctrl_workers 3',
        'STAT resctrl_errors 0', 'STAT resctrl_schemata L3:0=fff;MB:0=100',
        'STAT resctrl_mon_L3_00_llc_occupancy 1048576', 'STAT resctrl_mon_L3_00_mbm_local_bytes 17'],
        'stats resctrl');
    write_file("$dir/mon_data/mon_L3_00/llc_occupancy", "2097152\n");
    is(mem_stats($server->control, 'resctrl')->{resctrl_mon_L3_00_llc_occupancy}, 2097152, 'reads each time');
    serves($server);
}

# a group that is made
{
    my $server = serve('-t', '1', '--resctrl=made', "--resctrl-root=$root",
        '--resctrl-schemata=L3:0=ff0;1=f0;MB:0=70');
    is(mem_stats($server->control, 'resctrl')->{resctrl_errors}, 0, 'nothing has failed');
    is(read_file("$root/made/schemata"), "L3:0=ff0;1=f0\nMB:0=70\n", 'limits make the group');
    like(read_file("$root/made/tasks"), qr/^\d+\n\z/, 'the worker has joined it');
}

# what is not there
{
    my $server = serve('-t', '2', '--resctrl=nothing', "--resctrl-root=$root");
    my $stats = mem_stats($server->control, 'resctrl');
    is($stats->{resctrl_errors}, 1, 'a missing group is counted');
    log_says($server, qr/--resctrl: .*nothing: .*is resctrl mounted/, 'and said');
    is($stats->{resctrl_workers}, 0, 'nobody has joined');
    serves($server);
}

# busy polling
{
    my $server = serve('-t', '2', '--busy-poll=20:8');
    my $stats = mem_stats($server->control, 'pin');
    has($stats, '--busy-poll: time, budget', busy_poll_usecs => 20, busy_poll_budget => 8);
    if ($stats->{busy_poll_errors} > 0) {
        is($stats->{busy_poll_errors}, 2, 'both workers were refused');
        log_says($server, qr/--busy-poll is not set/, 'which is said');
    } else {
        unlike($server->err, qr/busy-poll/, 'the kernel has taken it');
    }
    serves($server);
}

# suspended interrupts: what is set here, and what the administrator has to set
for my $args (['--irq-suspend'], ['--irq-suspend', '--busy-poll=20:8']) {
    my $server = serve('-t', '2', @$args);
    my $stats = mem_stats($server->control, 'pin');
    is($stats->{irq_suspend}, 'on', "@$args");
    is($stats->{busy_poll_usecs}, @$args == 2 ? 20 : 0, 'with or without polling before sleep');
    log_says($server, qr/--irq-suspend is not set/, 'a refusal is said') if $stats->{busy_poll_errors} > 0;
    log_says($server, qr/irq-suspend/, 'what is missing is said');
    my @lines = grep { /irq-suspend/ } split /\n/, $server->err;
    cmp_ok(scalar(@lines), '<=', 2, 'in a line or two');
    like($lines[0], qr/napi-set.*irq-suspend-timeout|suspends no interrupts/, 'it helps');
    serves($server);
}
{
    my $server = start_server;
    is(mem_stats($server->control, 'pin')->{irq_suspend}, 'off', 'off by default');
    $server->stop;
}

# limits of no group
{
    my $run = run_program('--resctrl-schemata=L3:0=ff0', @AS_ROOT);
    has($run, 'limits without a group are refused', status => 64, err => qr/--resctrl names it/);
}

for my $wrong ('--resctrl=', '--resctrl=../x', '--resctrl=/x', '--resctrl-schemata=L3',
        '--resctrl-schemata=', '--busy-poll=x', '--busy-poll=1:0', '--busy-poll=') {
    my $run = run_program($wrong, @AS_ROOT);
    has($run, "$wrong is refused, with a line", status => 64, err => qr/resctrl|busy-poll/);
}

done_testing();
