#!/usr/bin/env perl
# --sched: each worker is scheduled as asked, and stats tells what the kernel has made of it;
# refusals are explained and counted, and the server serves all the same.
use MCTest ':ours';
use MCCgroup;

sub sched_stats($server) {
    return mem_stats($server->control, 'pin');
}

# (policy, nice) of a thread by /proc: fields 41 and 19; the name in parentheses has blanks
sub scheduled($server, $tid) {
    open my $fh, '<', '/proc/' . $server->pid . "/task/$tid/stat" or return ();
    my $line = <$fh>;
    $line =~ s/^.*\) //;
    return (split ' ', $line)[38, 16];
}

sub other_threads($server) {
    my $stats = sched_stats($server);
    my %is_worker = map { $stats->{$_} => 1 } grep { /_tid$/ } keys %$stats;
    return grep { !$is_worker{$_} } map { m{/(\d+)$} } glob '/proc/' . $server->pid . '/task/*';
}

# nothing asked
{
    my $server = serve('-t', '2');
    my $stats = sched_stats($server);
    has($stats, 'nothing asked, the default policy, no errors, sched_autogroup', sched => 'default',
        sched_policy => 'other', sched_errors => 0, sched_autogroup => qr/^(off|cgroup|-?\d+)$/);
    is(mem_stats($server->control, 'qos')->{sched_policy}, 'other', 'stats qos has it too');
}

# What asks for no rights: more niceness than these tests have, slices.
my $own = getpriority(0, 0);
SKIP: {
    skip 'there is no more niceness', 1 if $own > 14;
    my $more = $own + 5;
    my $server = serve('-t', '2', "--sched=other:$more");
    my $stats = sched_stats($server);
    is($stats->{sched}, "other:$more", 'other:N: asked');
    for my $worker (0, 1) {
        is($stats->{"pin_worker_${worker}_sched_nice"}, $more, "worker $worker has it");
        is_deeply([scheduled($server, $stats->{"pin_worker_${worker}_tid"})], [0, $more], 'as /proc says');
    }
    is((grep { (scheduled($server, $_))[1] != $own } other_threads($server)), 0, 'other threads do not');
    my $autogroup = $stats->{sched_autogroup};
    ok($autogroup eq $more || $autogroup eq 'off' || $autogroup eq 'cgroup',
        'the session has it too, where it counts') or diag($autogroup);

    $server = serve('-t', '2', '--sched=slice:200us');
    $stats = sched_stats($server);
    has($stats, 'slice:200us: asked, the policy stays', sched => 'slice:200us', sched_policy => 'other');
    if ($stats->{sched_errors} == 0) {
        is($stats->{"pin_worker_${_}_sched_slice_ns"}, 200000, "worker $_ has it") for 0, 1;
        is($stats->{sched_slice_ns}, 200000, 'in short');
    } else {
        log_says($server, qr/slices need Linux 6\.12/, 'an old kernel is told of');
        isnt($stats->{sched_slice_ns}, 200000, 'and stats tells the truth');
    }
    serves($server);
}

# What asks a scheduler of sched_ext, which machines have only where it is loaded.
{
    my $server = serve('-t', '2', '--sched=bvt');
    my $stats = sched_stats($server);
    is($stats->{sched}, 'bvt', 'bvt: asked');
    if ($stats->{sched_errors} == 0) {
        is($stats->{sched_policy}, 'ext', '... and there');
    } else {
        is($stats->{sched_errors}, 2, '... and not there, for both workers');
        log_says($server, qr/--sched=bvt: (the kernel has no sched_ext|bvt is not the kernel's scheduler)/, '... with the reason');
    }
    serves($server, 'bvt: it serves');
}

# What asks for rights.
for my $case (['fifo', 'fifo', 1, 1], ['fifo:7', 'fifo', 1, 7], ['rr:2', 'rr', 2, 2],
        ['other:-3', 'other', 0, 0], ['batch', 'batch', 3, 0]) {
    my ($option, $policy, $number, $priority) = @$case;
    my $server = serve('-t', '2', "--sched=$option");
    my $stats = sched_stats($server);
    if ($stats->{sched_errors} > 0) {
        is($stats->{sched_errors}, 2, "$option: both workers are refused");
        log_says($server, qr/--sched=.*(not permitted|real-time budget)/, 'with the reason');
        is($stats->{sched_policy}, 'other', 'and stats tells the truth');
    } else {
        has($stats, "$option: policy, priority", sched_policy => $policy, sched_priority => $priority);
        for my $worker (0, 1) {
            my @now = scheduled($server, $stats->{"pin_worker_${worker}_tid"});
            is($now[0], $number, "worker $worker has it");
            is($now[1], -3, 'and its nice value') if $option =~ /other/;
        }
        is((grep { (scheduled($server, $_))[0] != 0 } other_threads($server)), 0, 'other threads do not');
    }
    log_says($server, qr/batch.*preempt nothing/, 'what it means is said') if $option eq 'batch';
    serves($server, "$option: it serves");
}

# What is given up with root is asked for before.
SKIP: {
    skip 'needs root', 1 if $> != 0 || !defined getpwnam 'nobody';
    chmod 0777, scratch_dir();
    my $server = serve('-t', '1', '-u', 'nobody', '--sched=fifo:2');
    my $stats = sched_stats($server);
    SKIP: {
        skip 'real-time priority is not permitted here', 2 if $stats->{sched_errors} > 0;
        has($stats, 'fifo as another user, with its priority', sched_policy => 'fifo', sched_priority => 2);
    }
    $server = serve('-t', '1', '-u', 'nobody', '--sched=other:-4');
    $stats = sched_stats($server);
    SKIP: {
        skip 'niceness is not permitted here', 2 if $stats->{sched_errors} > 0;
        is($stats->{sched_nice}, -4, 'a negative nice value as another user');
        like($stats->{sched_autogroup}, qr/^(-4|off|cgroup)$/, 'of the session too');
    }
    # and so is what is only a return to what others have
    for my $row ([['nice', '-n', 10], 'other:5', 'other', 5], [['nice', '-n', 10], 'other', 'other', 0],
            [['chrt', '-i', 0], 'other', 'other', 0], [['chrt', '-i', 0], 'batch', 'batch', 0]) {
        my ($wrap, $option, $policy, $nice) = @$row;
        my $probe = run_program({command => [@$wrap, 'chrt', '-o', 0, 'nice', '-n', -1, 'true']});
        last if $own != 0 || $probe->{status} != 0 || $probe->{err} ne ''; # not permitted here
        $server = serve('-t', '1', '-u', 'nobody', "--sched=$option", {wrap => $wrap});
        has(sched_stats($server), "@$wrap, --sched=$option as another user", sched_errors => 0,
            sched_policy => $policy, sched_nice => $nice);
    }
    $server->stop;
    chmod 0700, scratch_dir();
}

# A control group without real-time budget.
SKIP: {
    skip 'no cgroup v1 with real-time budgets', 1 if !-e '/sys/fs/cgroup/cpu/cpu.rt_runtime_us';
    my $dir = make_group('cpu') // skip 'no cgroup can be made', 1;
    my $server = serve('-t', '2', '--sched=fifo:1', {wrap => inside($dir)});
    my $stats = sched_stats($server);
    has($stats, 'a group without budget: both workers are refused', sched_errors => 2, sched_policy => 'other');
    is($stats->{sched_autogroup}, 'cgroup', 'autogroups do not count here')
        if $stats->{sched_autogroup} ne 'off';
    my @lines = grep { /--sched=fifo:1/ } split /\n/, $server->err;
    is(scalar(@lines), 1, 'it is said once');
    like($lines[0], qr{\Q$dir\E/cpu\.rt_runtime_us}, 'with the file that helps');
    serves($server);
}

# Workers at real-time priority and the threads in the background, on one CPU.
SKIP: {
    my $cpu = cpu_list();
    $cpu =~ s/\D.*//;
    my $server = serve('-t', '2', '--sched=fifo:1', "--pin=list:$cpu", '-m', '4',
        '-o', 'slab_reassign,slab_automove,lru_maintainer,lru_crawler');
    skip 'real-time priority is not permitted here', 1 if sched_stats($server)->{sched_errors} > 0;
    my $before = mem_stats($server->control);
    my @socks = map { $server->connect } 1 .. 4;
    my $value = 'v' x 2000;
    for my $round (1 .. 10) {
        for my $sock (@socks) {
            put($sock, join '', map { "set $round-$_ 0 1 2000 noreply\r\n$value\r\n" } 1 .. 200);
            put($sock, "lru_crawler crawl all\r\nslabs reassign -1 1\r\n");
        }
        debugtime($server, 2);
        for my $sock (@socks) {
            read_line($sock) for 1, 2;
        }
    }
    expect_open($_, 'a client is served to the end') for @socks;
    is(mem_stats($server->control)->{cmd_set} - $before->{cmd_set}, 8000, 'every set was executed');
}

# What cannot be is refused at the start.
for my $wrong (['batch:1', qr/rr\[:P\], bvt or batch/], ['deadline:1ms/10ms', qr/admission control/],
        ['deadline', qr/--pin/], ['fifo:0', qr/1 to 99/], ['other:-21', qr/-20 to 19/],
        ['slice:', qr/100us/], ['slice:99us', qr/from 100us to 100ms/],
        ['slice:101ms', qr/from 100us to 100ms/], ['', qr/other:N/]) {
    my ($text, $reason) = @$wrong;
    my $run = run_program("--sched=$text", '--pin', @AS_ROOT);
    is($run->{status}, 64, "--sched=$text is refused");
    like($run->{err}, $reason, 'with the reason');
}

done_testing();
