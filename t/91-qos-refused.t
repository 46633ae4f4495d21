#!/usr/bin/env perl
# Privileged calls that the kernel refuses, as in a sandbox: one clear line at the most, a count
# where there is one, and the server serves; or the start ends with one line. Not once a second
# again. t/preload/refuse.c, preloaded into the server, does it.
use MCTest ':ours';
use Errno qw(EAGAIN EINVAL ENOPROTOOPT ENOSYS EPERM);

my $preload = preload('refuse') // plan skip_all => 'no library to preload, or the server runs under something else';

sub refusing(@rules) {
    return {LD_PRELOAD => $preload, REFUSE => join ',', @rules};
}

{
    my $probe = run_program({command => ['/usr/bin/env', "LD_PRELOAD=$preload", 'REFUSE=mbind=1',
        (server_binary())[0], '-V']});
    plan skip_all => 'no seccomp here' if $probe->{status} != 0;
}

# What the server says, but for what it says in any case here. It may say it when it serves
# already: with a number of lines it is waited for.
sub said {
    my ($server, $lines) = @_;
    wait_until(sub { said($server) >= $lines }) if $lines;
    return grep { !/WARNING: Thread|CPU quota|more than the CPUs|deals connections out/ }
        split /\n/, $server->err;
}

sub stats_of($server) {
    return mem_stats($server->control, 'pin');
}

my ($SO_REUSEPORT, $SO_TIMESTAMPNS, $SO_BUSY_POLL, $SO_INCOMING_CPU, $SO_ATTACH_CBPF) = (15, 35, 46, 49, 51);
my $EPIOCSPARAMS = 0x40088a01;
my ($PR_SET_DUMPABLE, $PR_SET_KEEPCAPS) = (4, 8);
my ($RLIMIT_CORE, $RLIMIT_NOFILE, $RLIMIT_MEMLOCK) = (4, 7, 8);

sub option { return "setsockopt:2:$_[0]"; }

# ---- the server goes on -------------------------------------------------------------------------

for my $error (EPERM, EINVAL, ENOSYS) {
    for my $case (
        # what is refused, options, what is said (undef: nothing), a count in "stats pin"
        [['sched_setaffinity'], ['--pin'], qr/2 of 2 workers could not be pinned/, 'pin_errors'],
        [['sched_setscheduler'], ['--pin'], undef],
        [['sched_setattr'], ['--sched=other:19'], qr/--sched=other:19: /, 'sched_errors'],
        [['sched_getattr'], ['--sched=other:19'], qr/--sched=other:19: /, 'sched_errors'],
        [['sched_setattr'], ['--sched=slice:1ms'], qr/--sched=slice:1000us: /, 'sched_errors'],
        [['setpriority', 'set_mempolicy', 'ioctl:1:21524'], ['--pin'], undef],
        [['mbind'], ['--membind=interleave'], undef],
        [["ioctl:1:$EPIOCSPARAMS"], ['--busy-poll=50'], qr/--busy-poll is not set: /],
        [[map { option($_) } $SO_TIMESTAMPNS, $SO_BUSY_POLL, $SO_INCOMING_CPU, $SO_ATTACH_CBPF],
            ['--slo=p95:100ms'], undef],
        [['setsockopt:1:6'], [], undef], # all of IPPROTO_TCP
    ) {
        my ($calls, $args, $line, $count) = @$case;
        next if $error != EPERM && !defined $line; # what is borne in silence is so once
        my $name = "errno $error of " . join(' ', @$calls) . " with @$args";
        my $server = serve('-t', '2', @$args, {env => refusing(map { "$_=$error" } @$calls)});
        exchange($server->connect, "set a 0 0 1\r\n1\r\nget a\r\nqos repin\r\n",
            "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\nOK\r\n", "$name: it serves");
        my @said = said($server, defined $line);
        if (defined $line) {
            ok(@said == 1 && $said[0] =~ $line, "$name: one line") or diag(join "\n", @said);
        } else {
            is(join("\n", @said), '', "$name: nothing to be said");
        }
        cmp_ok(stats_of($server)->{$count}, '>', 0, "$name: $count") if $count;
    }
}

# The watchdog does not try again for ever.
{
    my $server = serve('-t', '2', '--pin', {env => refusing('sched_setaffinity=' . EPERM)});
    my $passes = 0;
    my $before = stats_of($server)->{pin_replans};
    # mc-upkeep wakes up at least once a second; three seconds of its time
    my $switches = sub {
        my ($task) = grep { read_file("$_/comm") =~ /mc-upkeep/ } glob '/proc/' . $server->pid . '/task/*';
        return read_file("$task/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : 0;
    };
    my $start = $switches->();
    soon { $switches->() >= $start + 3 } 'the watchdog has looked';
    is(stats_of($server)->{pin_replans}, $before, 'a refusal is not a change of the CPUs');
    is(scalar(said($server)), 1, 'and is told once') or diag($server->err);
    exchange($server->control, "qos repin\r\n", "OK\r\n", 'qos repin');
    is(stats_of($server)->{pin_errors} > 0, 1, 'which is refused, too');
}

# Steering on kernels that do not have it.
for my $case (
    [[option($SO_INCOMING_CPU) . '=' . ENOPROTOOPT], qr/a program does it \(cbpf\)|instead/],
    [[map { "$_=" . EPERM } option($SO_INCOMING_CPU), option($SO_ATTACH_CBPF)], qr/--steer=cpu instead/],
    [[option($SO_REUSEPORT) . '=' . ENOPROTOOPT], qr/--steer=cpu instead/],
) {
    my ($rules, $line) = @$case;
    my $server = serve('-t', '2', '--pin', '--steer=reuseport', {env => refusing(@$rules)});
    my @conns = map { $server->connect } 1 .. 10;
    expect_open($_, 'steering refused: it serves') for @conns;
    my @said = said($server, 1);
    SKIP: {
        skip 'nobody is pinned here', 1 if grep { /not pinned/ } @said;
        ok(@said == 1 && $said[0] =~ $line, "@$rules: one line") or diag(join "\n", @said);
    }
}

# --resctrl, with a group that cannot be joined
{
    my $root = scratch_dir() . '/resctrl';
    mkdir $_ for $root, "$root/group", "$root/group/tasks";
    my $server = serve('-t', '2', "--resctrl-root=$root", '--resctrl=group');
    is(scalar(grep { /--resctrl/ } said($server, 1)), 1, 'resctrl: one line') or diag($server->err);
    expect_open($server->connect, 'it serves');
}

# What is asked of the kernel for the whole process.
{
    my $users = scratch_dir() . '/users';
    write_file($users, "user:password\n");
    my $is_root = $> == 0 && defined getpwnam 'nobody';
    chmod 0777, scratch_dir() if $is_root;
    for my $case (
        [["prctl:0:$PR_SET_DUMPABLE"], ['-Y', $users], qr/memory is not hidden/],
        $preload =~ /lib[at]san/ ? () : ([['mlockall', "setrlimit:1:$RLIMIT_MEMLOCK"], ['-k', '-m', 8], qr/-k invalid/]),
        $is_root ? ([['setgroups'], ['-u', 'nobody'], undef],
            [["prctl:0:$PR_SET_KEEPCAPS"], ['-u', 'nobody', '--sched=fifo:1'], qr/--sched=fifo:1: /]) : (),
    ) {
        my ($calls, $args, $line) = @$case;
        my $name = "@$calls refused with @$args";
        my ($server, $s) = serve('-t', '2', @$args, {env => refusing(map { "$_=" . EPERM } @$calls)});
        exchange($s, "set auth 0 0 13\r\nuser password\r\n", "STORED\r\n", "$name: a login") if "@$args" =~ /-Y/;
        exchange($s, "set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n", "$name: it serves");
        my @said = said($server, defined $line);
        ok(defined $line ? @said == 1 && $said[0] =~ $line : !@said, "$name: what is to be said")
            or diag(join "\n", @said);
    }
    chmod 0700, scratch_dir();
}

# ---- the start ends ------------------------------------------------------------------------------

sub ends($name, $rules, $line, @args) {
    my $run = run_program({command => ['/usr/bin/env', "LD_PRELOAD=$preload",
        'REFUSE=' . join(',', @$rules), server_binary(), '-p', '-1', '-l', '127.0.0.1', @args]});
    ok($run->{status} == 71 && $run->{err} =~ $line && ($run->{err} =~ tr/\n//) == 1, "$name: one line, status 71")
        or diag("status $run->{status}, signal $run->{signal}: $run->{err}");
}

ends('no thread', ['clone=' . EAGAIN], qr/can't start the live log: .*; raise .*ulimit -u/, @AS_ROOT);
ends('its CPUs are not told', ['sched_getaffinity=' . EPERM], qr/cannot plan the workers' CPUs: /, '--pin', @AS_ROOT);
ends('no core files', ["setrlimit:1:$RLIMIT_CORE=" . EPERM], qr/core files/, '-r', @AS_ROOT);
ends('no descriptors', ["setrlimit:1:$RLIMIT_NOFILE=" . EPERM], qr/limit on open files: /, @AS_ROOT);
SKIP: {
    skip 'needs root', 1 if $> != 0 || !defined getpwnam 'nobody';
    ends('a group that stays', ['setgid=' . EPERM], qr/failed to assume the identity of the user: /, '-u', 'nobody');
    ends('a user that stays', ['setuid=' . EPERM], qr/failed to assume the identity of the user: /, '-u', 'nobody');
    ends('rights that stay', ['capset=' . EPERM], qr/failed to give up the rights of root: /, '-u', 'nobody',
        '--sched=fifo:1');
}

done_testing();
