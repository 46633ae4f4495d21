#!/usr/bin/env perl
# Numbers that cannot be, in each field of each frame that a leader and an agent say to each
# other: whoever hears one gives the other up with a line, at once, and the agent is there for
# the next leader. Somebody between the two changes one field of one frame.
use MCTest;
use MCLoad;
use MCSwarm;
use Time::HiRes 'sleep';

my $server = serve();
my $at = $server->at;
my $agent = start_agent('127.0.0.2');

my ($HELLO, $WELCOME, $CONFIG, $READY, $STAMP, $STAMPS, $START, $DELTA, $DONE, $STOP, $SAMPLE, $RENEW) =
    (1, 3, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16);
my $MOST = ~0;

sub n { return pack 'Q>', $_[0]; }
sub double { return pack 'd>', $_[0]; }

# The frame with other bytes in the field: all of that tag are replaced, undef leaves it out. A
# code changes what is there.
sub changed($bytes, $tag, $value) {
    my (undef, $type, $session, $sequence) = unpack 'NnQ>Q>', $bytes;
    my @fields;
    for my $f (fields_of(substr $bytes, 22)) {
        my $new = $f->[0] != $tag ? $f->[1] : ref $value ? $value->($f->[1]) : $value;
        push @fields, field($f->[0], $new) if defined $new;
    }
    return frame($type, $session, $sequence, @fields);
}

# The same frame with another number.
sub renumbered($bytes, $by) {
    my (undef, $type, $session, $sequence) = unpack 'NnQ>Q>', $bytes;
    return frame($type, $session, $sequence + $by, substr $bytes, 22);
}

# Passes frames on from one to the other until one of them ends the connection. The type may
# be 'stop': right behind the order to start comes the one to stop; and 'log': their types go to a file; and
# 'cut': both are left behind the first frame of the type. A function is told of each frame its type and
# whether it is the leader's, and the frame, and says whether it is passed on.
sub pass_on {
    my ($leader, $there, $type, $tag, $value) = @_;
    my $stops = $type eq 'stop';
    my $log = $type eq 'log' ? $value : '/dev/null';
    my $more = 0;
    open my $types, '>', $log or die;
    $types->autoflush;
    my $last = $type eq 'cut' ? $tag : 0;
    my $watch = ref $type ? $type : sub { 1 };
    $type = 0 if $type !~ /^\d/;
    my $select = IO::Select->new($leader, $there);
    my %waiting = ($leader => '', $there => '');
    while (my @ready = $select->can_read(60)) {
        for my $s (@ready) {
            sysread $s, my $bytes, 65536 or return;
            $waiting{$s} .= $bytes;
            while (length $waiting{$s} >= 4 && length $waiting{$s} >= 4 + unpack 'N', $waiting{$s}) {
                my $frame = substr $waiting{$s}, 0, 4 + unpack('N', $waiting{$s}), '';
                print $types unpack('x4n', $frame), ' ';
                next if !$watch->(unpack('x4n', $frame), $s == $leader, $frame);
                my $is_hello = unpack('x4n', $frame) == $HELLO && $s == $leader;
                $frame = changed($frame, $tag, $value) if unpack('x4n', $frame) == $type && !$is_hello;
                $frame = renumbered($frame, $more) if $s == $leader && $more > 0;
                if ($stops && $s == $leader && unpack('x4n', $frame) == $START) {
                    my (undef, undef, $session, $sequence) = unpack 'NnQ>Q>', $frame;
                    $frame .= frame($STOP, $session, $sequence + 1);
                    $more++;
                }
                syswrite $s == $leader ? $there : $leader, $frame;
                return if $last != 0 && unpack('x4n', $frame) == $last;
            }
        }
    }
}

sub run_between($role, @change) {
    my @args = ref $change[-1] eq 'ARRAY' ? @{pop @change} : ();
    my @wrap = ref $change[-1] eq 'HASH' ? ('sh', '-c', 'echo $$ >$0; exec "$@"', (pop @change)->{pid_file}) : ();
    my $listener = IO::Socket::INET->new(Listen => 4, LocalAddr => '127.0.0.1', Timeout => 60) or die;
    my $name = '127.0.0.1:' . $listener->sockport;
    my $pid = in_child(sub {
        $SIG{PIPE} = 'IGNORE';
        my $leader = $listener->accept or die;
        my $there = IO::Socket::INET->new(PeerAddr => $agent, Timeout => 60) or die;
        pass_on($leader, $there, @change);
    });
    close $listener;
    my $run = run_program({command => [@wrap, $MCLOAD, '-v', '--timeout=60', '-s', $at, '-r', 100, '-q', 2000, $role eq 'observe' ? ()
        : ('-l', 0), '-t', 0.2, '--server-stats=0.05', '-a', "$name;role=$role", @args], timeout => 120});
    waitpid $pid, 0;
    return ($run, $name);
}

sub gives_up($name, $why, $role, @change) {
    my ($run, $through) = run_between($role, @change);
    like($run->{status}, qr/^[23]\z/, "$name: status $run->{status}") or diag($run->{out});
    like($run->{err}, qr/^mcload: agent \Q$through\E(?: is lost)?: $why/m, "$name: a line says why");
}

my ($run) = run_between('load', 0, 0, '');
unlike($run->{err}, qr/lost/, 'frames as they are: nobody is given up') or diag($run->{err});

# Before each run but the first, connections are made anew, and only when they are there it begins.
{
    my $log = scratch_dir() . '/types';
    ($run) = run_between('load', 'log', 0, $log, ['--repeat=3']);
    my @types = grep { /^(?:$READY|$START|$DONE|$RENEW)\z/ } split ' ', read_file($log);
    is("@types", join(' ', $READY, $START, $DONE, ($RENEW, $READY, $START, $DONE) x 2), 'three runs: what is said, in order')
        or diag($run->{err});
}

# An order to stop that comes before the agent has begun to do what it was told just before.
my $began = time;
($run) = run_between('load', 'stop', 0, '', ['-w', 100]);
cmp_ok(time - $began, '<', 90, 'start and stop at once: nobody warms up any more') or diag($run->{err});
unlike($run->{err}, qr/lost/, '... nor is anybody lost');
my ($phases) = $run->{out} =~ /^Phases = (.*)/m;
my ($warmed) = ($phases // 'warmup 99 s') =~ /warmup ([\d.]+) s/;
cmp_ok($warmed // 0, '<', 15, '... and no warm-up is reported that was not') or diag($run->{out});

# An agent that is lost in a run that is for others only is told by the run that these are for.
for my $for (['-w', 'auto'], ['-q', '50%', '-w', 0]) {
    ($run) = run_between('load', 'cut', $DONE, '', ['-l', 1, @$for]);
    like($run->{out}, qr/^INVALID: 1 agents lost/m, "@$for: an agent lost before makes the run invalid") or diag($run->{err});
    like($run->{out}, qr/^Agent 127.*LOST/m, '... and has its line');
}

# One that is lost before a run begins has done nothing in it.
($run) = run_between('load', 'cut', $RENEW, '', ['-l', 1, '--repeat=2']);
my ($lost) = $run->{out} =~ /^Agent 127\S+ = (LOST.*)/m;
like($lost // $run->{out}, qr/CPU 0\.0%/, 'lost before it began: no CPU time of the run before') or diag($run->{err});

# When it is lost and the run is not to go on without, the leader does not wait for its own warm-up.
$began = time;
($run) = run_between('load', 'cut', $START, '', ['-l', 1, '-w', 100, '--on-agent-loss=abort']);
cmp_ok(time - $began, '<', 90, 'abort ends the warm-up') or diag($run->{err});
like($run->{err}, qr/the run was given up/, '... with a line');

# The agent's processes that serve leaders.
sub services {
    return map { m{^/proc/(\d+)/} && (proc_status($1, 'PPid') // 0) == agent_pid($agent) ? $1 : () }
        glob '/proc/[0-9]*/status';
}

sub append($file, $text) {
    open my $fh, '>>', $file or die "$file: $!";
    print $fh $text;
    close $fh;
}

# One that stood still says how long, also when words of its leader have come meanwhile.
{
    my $log = scratch_dir() . '/behind';
    my ($is_heard, @stopped);
    ($run) = run_between('load', sub ($type, $is_leader, $frame) {
        append($log, join '', map { $_->[0] == 18 ? unpack('Q>', $_->[1]) . "\n" : () } fields_of(substr $frame, 22))
            if $type == $STAMPS;
        $is_heard ||= $type == $STAMPS;
        if ($type == $STAMP && $is_heard && !@stopped) {
            kill 'STOP', @stopped = services();
            wait_until(sub { !grep { (proc_status($_, 'State') // 'Z') !~ /[TZ]/ } @stopped });
            in_child(sub { sleep 0.5; kill 'CONT', @stopped });
        }
        return 1;
    });
    my ($most) = sort { $b <=> $a } split ' ', read_file($log);
    cmp_ok($most, '>=', 0.4e9, 'an agent that stood still for 0.5 s was late by what is above 0.1 s') or diag($run->{err});
}

# A process that ends by a signal in a run says nothing more: that it was ended is no result.
{
    my $log = scratch_dir() . '/ended';
    ($run) = run_between('load', sub ($type, @) {
        append($log, "$type ");
        kill 'TERM', services() if $type == $DELTA;
        return 1;
    }, ['-l', 1, '-t', 2]);
    unlike(read_file($log), qr/\b$DONE\b/, 'an agent that is ended says no DONE') or diag($run->{err});
    like($run->{out}, qr/^Agent 127.*LOST/m, '... and is lost');
}

# The first signal stops the agents, the second one ends the leader, also one that only leads.
{
    my $pid_file = scratch_dir() . '/leader';
    my $is_deaf = 0;
    ($run) = run_between('load', sub ($type, $is_leader, @) {
        $is_deaf ||= $type == $START;
        kill 'TERM', int read_file($pid_file) if $is_leader && ($type == $START || $type == $STOP);
        return $type == $START || !$is_deaf;
    }, {pid_file => $pid_file}, ['-t', 60]);
    is($run->{signal}, 15, 'the second signal ends it') or diag($run->{out}, $run->{err});
}

# ---- what an agent says -----------------------------------------------------------------------

my $no_sense = qr/sent a (?:report|result) that makes no sense/;
my $stamps = qr/sent (?:stamps that (?:make no sense|are too old)|inconsistent stamps)/;
my @of_agents = (
    ['magic', qr/does not speak/, $HELLO, 1, 'mcload swarn'],
    ['version', qr/speaks another version/, $HELLO, 2, n(SWARM_VERSION + 1)],
    ['features, cut', qr/does not speak/, $HELLO, 3, 'x'],
    ['nonce, cut', qr/does not speak/, $HELLO, 4, 'x' x 31],
    ['layout', qr/is another version of mcload/, $HELLO, 5, n(5)],
    ['with a key', qr/does not speak/, $HELLO, 6, n(2)],
    ['no weight', qr/refuses/, $WELCOME, 9, n(0)],
    ['most weight', qr/refuses/, $WELCOME, 9, n($MOST)],
    ['too much loaded', qr/says that it is ready in a way/, $READY, 13, n($MOST)],
    ['nothing loaded', qr/says that it is ready in a way/, $READY, 13, undef],
    ['sent later', $stamps, $STAMPS, 14, n($MOST)],
    ['sent long ago', $stamps, $STAMPS, 14, n(1)],
    ['heard late', $stamps, $STAMPS, 15, n($MOST)],
    ['answered early', $stamps, $STAMPS, 16, n(0)],
    ['behind', $stamps, $STAMPS, 18, n($MOST)],
    ['interval 0', $no_sense, $DELTA, 24, n(0)],
    ['interval to come', qr/sent a report of an interval to come/, $DELTA, 24, n($MOST)],
    ['class', $no_sense, $DELTA, 25, n(1)],
    ['most classes', $no_sense, $DELTA, 25, n($MOST)],
    ['counters, cut', qr/sent a report that does not follow/, $DELTA, 26, sub { substr $_[0], 0, -1 }],
    ['counters, more', qr/sent a report that does not follow/, $DELTA, 26, sub { "$_[0]\0" }],
    ['a counter, most', qr/sent a report that does not follow/, $DELTA, 26,
        sub { "\xff" x 9 . "\x01" . substr $_[0], 1 }],
    ['a histogram of none', qr/sent a report that does not follow/, $DELTA, 27, sub { "\x7f" . substr $_[0], 1 }],
    ['histograms, cut', qr/sent a report that does not follow/, $DELTA, 27, sub { substr $_[0], 0, 20 }],
    ['a minimum above', qr/sent a report that does not follow/, $DELTA, 27,
        sub { substr($_[0], 0, 9) . n($MOST) . substr $_[0], 17 }],
    ['a sum that is none', qr/sent a report that does not follow/, $DELTA, 27,
        sub { substr($_[0], 0, 25) . double('nan') . substr $_[0], 33 }],
    ['a sum beyond all', qr/sent a report that does not follow/, $DELTA, 27,
        sub { substr($_[0], 0, 25) . double(1.7e308) . substr $_[0], 33 }],
    ['squares beyond all', qr/sent a report that does not follow/, $DELTA, 27,
        sub { substr($_[0], 0, 33) . double(1.7e308) . substr $_[0], 41 }],
    ['digests, cut', $no_sense, $DONE, 28, 'x' x 7],
    ['another digest', qr/sent intervals that do not add up/, $DONE, 28, n(1)],
    ['costs, cut', $no_sense, $DONE, 29, sub { substr $_[0], 1 }],
    ['no costs', $no_sense, $DONE, 29, ''],
    ['costs, most', $no_sense, $DONE, 29, n($MOST) x 4],
    ['elapsed', qr/sent a result of more time than there was/, $DONE, 30, n($MOST)],
    ['began', $no_sense, $DONE, 31, n($MOST)],
    ['local', $no_sense, $DONE, 33, n($MOST)],
);
my $tells_steal = -r '/proc/stat';
push @of_agents, ['stolen time', $no_sense, $DONE, 45, n(1e9 + 1)] if $tells_steal;
gives_up("agent, $_->[0]", $_->[1], 'load', @$_[2 .. 4]) for @of_agents;
SKIP: {
    skip 'the kernel does not say', 2 if !$tells_steal;
    ($run) = run_between('load', $DONE, 45, n(5e8));
    like($run->{out}, qr/^INVALID: steal: 50\.00% > 2% of the CPUs' time went to others/m,
        'time that was stolen from an agent makes the run invalid') or diag($run->{err});
    ($run) = run_between('load', $DONE, 45, undef);
    unlike($run->{out} . $run->{err}, qr/is lost|LOST|steal:/, '... an agent may not know it');
}
my $stats = qr/sent stats that make no sense/;
my @of_observers = (
    ['server', $stats, $SAMPLE, 37, n(1)],
    ['most servers', $stats, $SAMPLE, 37, n($MOST)],
    ['when', $stats, $SAMPLE, 38, n($MOST)],
    ['told', $stats, $SAMPLE, 44, n($MOST)],
    ['values, cut', $stats, $SAMPLE, 39, 'x' x 79],
    ['values that are none', $stats, $SAMPLE, 39, double('nan') x 10],
    ['values below 0', $stats, $SAMPLE, 39, double(-1) x 10],
    ['values beyond all', $stats, $SAMPLE, 39, double(1.7e308) x 10],
);
gives_up("observer, $_->[0]", $_->[1], 'observe', @$_[2 .. 4]) for @of_observers;

# ---- what a leader says -----------------------------------------------------------------------

my $puzzled = qr/does not understand the leader/;
my @of_leaders = (
    ['agent', $puzzled, $CONFIG, 11, n(64)],
    ['no agents', $puzzled, $CONFIG, 12, n(0)],
    ['most agents', $puzzled, $CONFIG, 12, n($MOST)],
    ['sender', $puzzled, $CONFIG, 42, n($MOST)],
    ['no senders', $puzzled, $CONFIG, 43, n(0)],
    ['role', $puzzled, $CONFIG, 36, n(3)],
    ['role, cut', $puzzled, $CONFIG, 36, ''],
    ['words', qr/has options that are none/, $CONFIG, 10, 'x'],
    ['words with a line', qr/has options that are none/, $CONFIG, 10, "--records=1\n"],
    ['long words', qr/has options that are none/, $CONFIG, 10, '--key-prefix=' . 'x' x 2000],
    ['begin', $puzzled, $START, 19, n($MOST)],
    ['no time', $puzzled, $START, 20, n(0)],
    ['most time', $puzzled, $START, 20, n($MOST)],
    ['warm-up', $puzzled, $START, 21, n($MOST)],
    ['fresh', $puzzled, $START, 22, n(2)],
    ['rates, cut', $puzzled, $START, 23, 'x' x 7],
    ['most rates', $puzzled, $START, 23, n($MOST)],
    ['no length', $puzzled, $START, 35, n(0)],
    ['most length', $puzzled, $START, 35, n($MOST)],
    ['a slice of nothing', $puzzled, $START, 40, n(5) . n(5)],
    ['a slice beyond', $puzzled, $START, 40, n(5) . n($MOST)],
    ['a slice, cut', $puzzled, $START, 40, n(5)],
);
gives_up("leader, $_->[0]", $_->[1], 'load', @$_[2 .. 4]) for @of_leaders;
gives_up('leader, renewed how', $puzzled, 'load', $RENEW, 22, n(2), ['--repeat=2']);

($run) = run_between('load', 0, 0, '');
unlike($run->{err}, qr/lost/, 'the agent is there as before') or diag($run->{err});
is(end_agent($agent), 0, 'it ends');
done_testing();
