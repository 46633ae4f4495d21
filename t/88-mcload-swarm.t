#!/usr/bin/env perl
# A leader and agents send the load of one run: rates add up, histograms merge exactly, and an
# agent does only what its own command line allows, only for those who have its key, and only
# as long as its leader is there.
use MCTest;
use MCLoad;
use MCSwarm;
use POSIX ();

my $dir = scratch_dir();
my $server = serve();
my $at = $server->at;
my @agents = map { start_agent("127.0.0.$_") } 2 .. 4;
my @lead = ('-s', $at, '-c', 2, map { ('-a', $_) } @agents);

# ---- one run ---------------------------------------------------------------------------

my $run = mcload_json(@lead, '-r', 1000, '-q', 2000, '-t', 1, '-w', 0.1, '--seed=3');
my $json = $run->{json};
ran_ok($run, 'a run ends');
like($run->{out}, qr/^Agent \Q$_\E = offered .* within 1 ms/m, "a line for $_") for 'leader', @agents;
is(mem_stats($server->control)->{curr_items}, 1000, 'together they store each record once');
like($json->{agents} // '', qr/"name": "\Q$_\E", "lost": false/, "$_ in the JSON") for @agents;
has($json, 'the rate is that of all together', 'totals.offered' => ['>', 1500], 'totals.offered' => ['<', 2500],
    'latency.intended.buckets.sum' => $json->{'totals.answered'});
like($json->{phases} // '', qr/"load".*"warmup".*"measure".*"drain"/s, 'its phases, by the leader');
like($run->{out}, qr/^Phases = load [\d.]+ s, warmup 0\.100 s, measure 1\.00\d s, drain/m, '... in the text');
is(achieved_by_agents($json), $json->{'totals.achieved'}, 'parts add up to the whole');

# ---- a leader without a load of its own, and the server's count -------------------------

my $before = mem_stats($server->control);
$run = mcload_json(@lead, '-r', 1000, '--noload', '-q', 1500, '-t', 0.5, '-l', 0, '--server-stats=0.2');
my $after = mem_stats($server->control);
unlike($run->{out}, qr/^Agent leader/m, 'without a load of its own no line for the leader');
is($after->{cmd_get} - $before->{cmd_get}, $run->{json}{'totals.sent'}, 'the server saw what was sent')
    or diag($run->{err}, $run->{out});

like($run->{out}, qr/^Server/m, '... at which the leader looks meanwhile') or diag($run->{out});

# A rate that varies is told by its mean, and the gaps by how many requests each process made one of.
$run = mcload_json(@lead, '-r', 1000, '--noload', '-q', 3000, '-t', 1, '-l', 0, '-i', 'fixed',
    '--schedule=square:0%:200%:100ms:0.25');
cmp_ok(abs($run->{json}{'load.qps'} - 1500), '<', 1, 'a schedule: the rate is its mean') or diag($run->{err});
cmp_ok(abs($run->{json}{'totals.offered'} - 1500), '<', 10, '... as what was offered');

# ---- the measuring client ---------------------------------------------------------------

$run = mcload_json(@lead, '-r', 1000, '--noload', '-q', 1000, '-Q', 100, '-C', 1, '-t', 0.5);
like($run->{out}, qr/^Agent leader = offered (?:[5-9]\d|1\d\d)\.\d/m, 'the leader measures with its part')
    or diag($run->{err}, $run->{out});

# ---- what an agent refuses --------------------------------------------------------------

sub refused($name, $agent, $why, @args) {
    has(mcload('-a', $agent, '-t', 0.2, @args), "$name: status 2, a line says why, no table", status => 2,
        err => qr/^mcload: agent \Q$agent\E: $why\n\z/m, out => '');
}

my $narrow = start_agent('127.0.0.5', '--agent-allow=10.9.8.0/24:11211', '--agent-max-conns=4');
refused('target outside', $narrow, qr/refuses: \Q$at\E is outside what the agent allows/, '-s', $at, '-l', 0);
end_agent($narrow);
$narrow = start_agent('127.0.0.5', '--agent-max-conns=4', '--agent-max-qps=100', '--agent-max-time=2');
my @small = ('-s', $at, '-l', 0, '--noload', '-q', 50);
refused('connections', $narrow, qr/refuses: more connections .*/, @small, '-c', 5);
refused('time', $narrow, qr/refuses: a longer run .*/, @small, '-t', 3);
my $cap = qr/\(--agent-max-qps=100\)/;
refused(@$_) for ['rate', $narrow, qr/refuses: more requests a second .* $cap/, @small, '-q', 101],
    ['peaks of the rate', $narrow, qr/refuses: more requests a second .* $cap/, @small,
        '--schedule=square:10%:210%:20ms:0.5'],
    ['a closed loop', $narrow, qr/refuses: a closed loop, .* $cap/, @small, '-q', 0],
    ['a closed loop beside the leader', $narrow, qr/refuses: a closed loop, .* $cap/, '-s', $at, '--noload',
        '-q', 0], ['a search', $narrow, qr/refuses: a closed loop, .* $cap/, @small, '--search=p95:1ms'];
refused('another agent', $narrow, qr/refuses: more requests a second .* $cap/, @small, '-a', $agents[0],
    '-q', 500, "--on-agent-loss=$_") for qw(continue accept repeat abort);
$run = mcload('-a', $narrow, @small, '-t', 0.2, '--schedule=square:10:50:20ms:0.5');
is($run->{status}, 1, 'rates that cannot be shared out: usage');
$run = mcload('-a', $narrow, '-s', $at, '-t', 0.1, '--popularity=cdf:/etc/passwd');
is($run->{status}, 1, 'files: usage');

# ---- shares by what each can send -----------------------------------------------------------

# Once more, when an agent did not have a CPU in the time that shows what it can send.
sub with_capacity(@args) {
    my $run;
    for (1 .. 20) {
        $run = mcload_json(@args);
        last if $run->{err} !~ /its capacity is not known$/m;
    }
    return $run;
}

{
    # One that may move little, and one that may move much: without a word they would get as much.
    my @pair = (start_agent('127.0.0.7', '--agent-max-bandwidth=20k'), start_agent('127.0.0.8'));
    my @by = ('-s', $at, '-l', 0, '--noload', '-r', 1000, '-t', 0.6, map { ('-a', $_) } @pair);
    my $parts = sub ($run) {
        my %of = map { /"name": "([^"]*)".*"qps": ([\d.]+)(?:, "capacity": ([\d.]+))?/ ? ($1, [$2, $3]) : () }
            split /\}/, $run->{json}{agents} // '';
        return map { $of{$_} // [0] } @pair;
    };
    $run = with_capacity(@by, '-q', 2000, '--split=capacity');
    ran_ok($run, 'by capacity: a run ends');
    like($run->{out}, qr/^Phases = load /m, '... and tells how long loading took') or diag($run->{out});
    my ($low, $high) = $parts->($run);
    is($low->[0] + $high->[0], 2000, '... with the rate asked for');
    cmp_ok($low->[1] // 0, '>', 0, '... what each can send is known');
    isnt($low->[1], $high->[1], '... and not alike');
    cmp_ok(abs($low->[0] - 2000 * $low->[1] / ($low->[1] + $high->[1])), '<=', 1, '... and that is its share');
    like($run->{out}, qr/^Agent \Q$_\E = .*, capacity [\d.]+\/s, role load$/m, "... told of $_") for @pair;
    # A peak that is measured anyway tells it.
    $run = with_capacity(@by, '--scan=20%:20%:10%', '--split=capacity');
    ran_ok($run, 'by capacity: a scan of shares of the peak');
    $run = mcload_json(@by, '-q', 2000, '--split=weight');
    ($low, $high) = $parts->($run);
    is("$low->[0] $high->[0]", '1000 1000', 'by weight: as without a word');
    $run = mcload('-a', $narrow, @small, '-t', 0.2, '--split=capacity');
    has($run, 'by capacity, with a limit of requests: refused', status => 2,
        err => qr/^mcload: agent \Q$narrow\E: refuses: a closed loop, .* $cap: --split=capacity measures what each can send$/m);
    is(mcload(@by, '--split=half')->{status}, 1, 'by halves: usage');
}

# ---- keys -------------------------------------------------------------------------------

SKIP: {
    my $key = key_file('key', '0123456789abcdef');
    my $probe = run_program({command => [$MCLOAD, '--agent-mode=127.0.0.1:1x', "--key-file=$key"]});
    skip 'built without OpenSSL', 1 if $probe->{err} =~ /no OpenSSL/;
    my $agent = start_agent('127.0.0.6', "--key-file=$key");
    my @args = ('-s', $at, '-l', 0, '--noload', '-q', 100);
    $run = mcload_json('-a', $agent, "--key-file=$key", @args, '-t', 0.3);
    has($run, 'with the key it works', 'totals.offered' => ['>', 0], err => ['!~', qr/mcload: agent/]);
    refused('no key', $agent, qr/wants a key: --key-file/, @args);
    my $other = key_file('other', '0123456789abcdeF');
    refused('wrong key', $agent, qr/refuses: that is not its key/, @args, "--key-file=$other");
    refused('no key there', $agents[0], qr/has no key/, @args, "--key-file=$key");
    for my $bad ([key_file('short', '0123456789abcde'), 'shorter than 16'],
        [key_file('open', '0123456789abcdef', 0644), 'open to others'])
    {
        $run = mcload('-a', $agent, "--key-file=$bad->[0]", @args);
        has($run, "$bad->[1]: usage, a line says so", status => 1, err => qr/$bad->[1]/);
    }
}
$run = run_program({command => [$MCLOAD, '--agent-mode=0.0.0.0:1']});
is($run->{status}, 1, 'without a key an agent listens on loopback only');

# ---- a leader that does not follow the rules ----------------------------------------------

sub read_frame($s) {
    my $bytes = '';
    while (length $bytes < 4 || length $bytes < 4 + unpack 'N', $bytes) {
        IO::Select->new($s)->can_read(60) or return;
        sysread $s, $bytes, (length $bytes < 4 ? 4 : 4 + unpack('N', $bytes)) - length $bytes,
            length $bytes or return;
    }
    my (undef, $type, $session, $sequence) = unpack 'NnQ>Q>', $bytes;
    my %fields = map { @$_ } fields_of(substr $bytes, 22);
    return {type => $type, fields => \%fields};
}

# What all tallies are laid out like is the agent's to say: its hello is answered with it.
sub greet($agent) {
    my ($shape, $hello);
    for (1, 2) {
        my $s = IO::Socket::INET->new(PeerAddr => $agent, Timeout => 60) or die "connect: $!";
        my $mine = frame(1, 0, 0, field(1, 'mcload swarm'), number(2, SWARM_VERSION), number(3, 0),
            field(5, $shape // "\0" x 8), number(6, 1), field(4, 'n' x 32));
        syswrite $s, $mine;
        $hello = read_frame($s);
        return ($s, unpack 'Q>', $hello->{fields}{4}) if $shape;
        $shape = $hello ? $hello->{fields}{5} : shape_of();
    }
}

# A leader's hello, as an agent of our own hears it.
sub shape_of {
    my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
    my $pid = fork // die;
    if (!$pid) {
        open STDERR, '>', '/dev/null';
        open STDOUT, '>', '/dev/null';
        exec $MCLOAD, '-s', $at, '-a', '127.0.0.1:' . $l->sockport or die;
    }
    my $hello = read_frame(scalar $l->accept);
    close $l;
    waitpid $pid, 0;
    return $hello->{fields}{5};
}

my ($s, $session) = greet($agents[0]);
is(read_frame($s)->{type}, 3, 'a leader by hand is welcome');
$run = mcload('-a', $agents[0], @small);
has($run, 'another leader is not, and hears why', status => 2, err => qr/is busy with another leader/);
my $stamp = frame(9, $session, 1, number(14, 1));
syswrite $s, $stamp;
is(read_frame($s)->{type}, 10, 'its frame is answered');
syswrite $s, $stamp;
is(read_frame($s), undef, 'the same frame once more ends it');
close $s;

# The dead man: configured, running flat out, and then silent.
($s, $session) = greet($agents[0]);
is(read_frame($s)->{type}, 3, 'the agent is free again');
my $unled = mem_stats($server->control);
syswrite $s, frame(6, $session, 1, number(11, 0), number(12, 1), field(10, "--server=$at"),
    field(10, '--noload'), field(10, '--records=1000'));
is(read_frame($s)->{type}, 7, 'it is ready');
syswrite $s, frame(11, $session, 2, number(19, 0), number(20, 600e9), number(21, 0), number(22, 0),
    field(23, pack 'Q>', 200), number(35, 100e6));
is(read_frame($s)->{type}, 12, 'it reports');
while (read_frame($s)) { }
cmp_ok(mem_stats($server->control)->{total_connections}, '>', $unled->{total_connections}, 'it has connected');
soon { mem_stats($server->control)->{curr_connections} <= $unled->{curr_connections} }
    'without a word from its leader it closes its connections';
close $s;

# Files of the agent's machine: it reads none for a leader, whatever the leader is.
for my $word ('--arrivals=times:/etc/passwd', '--schedule=file:/etc/passwd', '--auth-file=/etc/passwd',
    '--class=a:{arrivals=gaps:/etc/passwd}', '--class=a:{depth=2 auth_file=/etc/passwd}')
{
    ($s, $session) = greet($agents[0]);
    is(read_frame($s)->{type}, 3, 'the agent is free');
    syswrite $s, frame(6, $session, 1, number(11, 0), number(12, 1), field(10, "--server=$at"),
        field(10, $word));
    my ($name) = $word =~ /^--(\w[\w-]*)/;
    like(join(' ', values %{read_frame($s)->{fields}}), qr/takes no --$name from a leader/, "$word is refused");
    close $s;
}
my $times = '--arrivals=times:' . key_file('times', "0\n1\n3\n");
$run = mcload('-a', $agents[0], @small, '-t', 0.1, $times);
has($run, "$times: usage, a line says why", status => 1, err => qr/names a file, which agents do not read/);
$run = mcload('-a', $agents[0], @small, '-t', 0.1, '--class=a:{-d 4}');
is($run->{status}, 1, 'a class that agents cannot take: usage');
like($run->{err}, qr/agents take classes of long options/, '... and a line says why');

# ---- a leader that is ended ----------------------------------------------------------------

sub ended_leader($signal) {
    my $stats = mem_stats($server->control);
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/ended" or die;
        exec $MCLOAD, @lead, '-r', 1000, '-l', 0, '--noload', '-q', 1000, '-t', 600 or die;
    }
    soon { mem_stats($server->control)->{cmd_get} > $stats->{cmd_get} + 100 } "$signal: a run is on";
    kill $signal, $pid;
    waitpid $pid, 0;
    my $status = $?;
    soon { mem_stats($server->control)->{curr_connections}
                <= $stats->{curr_connections} } "$signal: the agents are gone from the server";
    return $status;
}

is(ended_leader('TERM') >> 8, 3, 'SIGTERM on the leader ends the run');
like(`cat $dir/ended`, qr/^INVALID: .*interrupted/m, '... and what was sent is told');
ended_leader('KILL');

# One that greets an agent which says nothing. The signal waits from before the start on: whatever the
# machine does meanwhile it comes in time.
for my $signal (qw(INT TERM HUP)) {
    my $mute = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
    my $pid = fork // die;
    if (!$pid) {
        open STDERR, '>', "$dir/greeting" or die;
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        my $number = POSIX->can("SIG$signal")->();
        POSIX::sigprocmask(POSIX::SIG_BLOCK(), POSIX::SigSet->new($number)) or die;
        kill $signal, $$;
        exec $MCLOAD, '-s', $at, '-a', '127.0.0.1:' . $mute->sockport or die;
    }
    waitpid $pid, 0;
    is($?, 2 << 8, "SIG$signal while an agent is greeted: status 2");
    is(`cat $dir/greeting`, "mcload: interrupted while agents were greeted\n", '... and a line');
}

# ---- losing an agent ---------------------------------------------------------------------

my $unknown = 0; # capacities

# An agent ends once all have `reported` an interval, or are `sending`; then the leader is interrupted once
# what it says on its way is like $until, if it has not ended by itself.
sub lose_one($policy, $when, $until, @args) {
    my $victim = start_agent('127.0.0.7');
    my ($out, $err, $file) = map { "$dir/lose.$_" } qw(out err json);
    my $gets = mem_stats($server->control)->{cmd_get};
    unlink $file;
    write_file($err, "");
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', $out or die;
        open STDERR, '>', $err or die;
        $SIG{INT} = 'DEFAULT';
        exec $MCLOAD, '-v', '--timeout=60', '-s', $at, '-a', $agents[0], '-a', $victim, '-r', 1000, '--noload', '-q',
            1000, '-t', 600, "--on-agent-loss=$policy", '--interval=0.2', '--progress=always', "--json=$file", @args or die;
    }
    my $status;
    my $has_ended = sub { waitpid($pid, POSIX::WNOHANG()) == $pid && defined($status = $?) };
    my $says = sub ($what) { read_file($err) =~ $what };
    my $is_time = $when eq 'reported' ? sub { $says->(qr{ s  \d+/s}) }
        : sub { mem_stats($server->control)->{cmd_get} > $gets + 500 };
    wait_until(sub { $has_ended->() || $is_time->() });
    end_agent($victim, 'KILL');
    wait_until(sub { defined $status || $has_ended->() || $says->($until) });
    kill 'INT', $pid if !defined $status;
    wait_until(sub { defined $status || $has_ended->() });
    my $run = {status => $status >> 8, out => read_file($out), err => read_file($err),
        json => -s $file ? json_of($file) : {}};
    $run->{err} =~ s/\r\e\[K[^\r\n]*(?=\r)//g;
    $run->{err} =~ s/\r\e\[K//g;
    # The other agent did not have a CPU in the time that is for that: once more.
    return lose_one($policy, $when, $until, @args)
        if $run->{err} =~ /its capacity is not known$/m && $unknown++ < 20;
    like($run->{err}, qr/^mcload: agent \Q$victim\E is lost: /m, "$policy: a line says who is lost");
    like($run->{out}, qr/^Agent \Q$victim\E = LOST \(/m, "$policy: the agent is named")
        if $policy eq 'continue' || $policy eq 'accept'; # the others report another run, or none
    return $run;
}

# What those that are left were to send.
sub rate_of_the_others($run) {
    my $sum = 0;
    $sum += $_ for $run->{json}{agents} =~ /"lost": false[^}]*"qps": ([\d.]+)/g;
    return $sum;
}

my $IS_TOLD = qr/agents lost [1-9]/;
$run = lose_one('continue', 'reported', $IS_TOLD);
is($run->{status}, 3, 'continue: the run is invalid');
my @lost = $run->{out} =~ /LOST \(/g; # on a machine that stands still the other one may be, too
like($run->{out}, qr/^INVALID: .*\b${\ scalar @lost} agents lost/m, 'continue: and says why');
my ($headline) = $run->{out} =~ /^Agents lost after ([\d.]+) s/m;
cmp_ok($headline // 0, '>', 0, 'continue: the numbers are of the time before') or diag($run->{out});
my ($total, $seconds) = $run->{out} =~ m{^Total QPS = [\d.]+ \((\d+) / ([\d.]+)s\)}m;
cmp_ok(abs($seconds - $headline), '<', 0.06, '... which the rates are of');
like($run->{out}, qr/^After the loss = offered [\d.]+\/s, achieved [\d.]+\/s \([\d.]+% of what was/m,
    'continue: what was still offered, and achieved of it');
my @rows = map { /^interval/ ? $_ : () } split /\n/, $run->{out};
my @marked = grep { /\(agents lost: 1\)/ } @rows;
cmp_ok(scalar @marked, '>', 0, 'continue: intervals after the loss are marked');
cmp_ok(scalar @marked, '<', scalar @rows, '... those before are not');
like($rows[-1], qr/lost/, '... the last one is');
# What agents said last was copied while their threads counted on: not all of it is of one instant.
my ($answered, $in_buckets) = @{$run->{json}}{qw(totals.answered latency.intended.buckets.sum)};
is($in_buckets, $run->{json}{'latency.intended.count'}, 'continue: each latency of the headline is in a bucket');
cmp_ok(abs($in_buckets - $answered), '<=', 0.05 * $answered,
    'continue: the answers of the headline are in buckets, and no others') or diag("$in_buckets, not $answered");
$run = lose_one('accept', 'reported', $IS_TOLD);
like($run->{out}, qr/^Agents lost after/m, 'accept: the loss is told');
unlike($run->{out}, qr/^INVALID: .*agents lost/m, '... and is no reason to refuse the run');
# Within the warm-up: there is no time when all were there.
$run = lose_one('accept', 'sending', qr/repeated without it\n.* warm-up/s, '-w', 600);
has($run, 'accept: one lost before the window: the run is made again', status => 3, err => qr/repeated without it/);
is(rate_of_the_others($run), 1000, '... by the others, with the whole rate');
unlike($run->{out}, qr/^INVALID: .*agents lost/m, '... which is no reason to refuse it');
$run = lose_one('abort', 'reported', qr/ends by itself/);
has($run, 'abort: status 3, no table', status => 3, out => '');
$run = lose_one('repeat', 'reported', qr{repeated without it\n.* s  \d+/s}s);
has($run, 'repeat: a line says so, the run is that of the others', err => qr/repeated without it/, out => ['!~', qr/LOST/]);
is(rate_of_the_others($run), 1000, '... with the whole rate');

# Nearly always while capacities are measured, and told in either case.
for my $policy (qw(continue accept)) {
    $run = lose_one($policy, 'sending', $IS_TOLD, '--split=capacity');
    like($run->{out}, qr/^Agent \S+ = LOST \(/m, "$policy: one lost while capacities are measured is named")
        or diag($run->{out}, $run->{err});
    if ($policy eq 'continue') {
        has($run, '... the run is invalid, and says why', status => 3, out => qr/^INVALID: .*agents lost/m);
    } else {
        unlike($run->{out}, qr/^INVALID: .*agents lost/m, '... and is no reason to refuse the run');
    }
}
$run = lose_one('abort', 'sending', qr/ends by itself/, '--split=capacity');
is("$run->{status} $run->{out}", '3 ', 'abort: it ends without a table');

# ---- a UNIX socket -------------------------------------------------------------------------

my $path = "$dir/agent.sock";
ok(start_agent("unix:$path"), 'an agent on a UNIX socket');
$run = mcload_json('-a', "unix:$path", @small, '-t', 0.3);
has($run, 'it works', 'totals.offered' => ['>', 0], err => ['!~', qr/mcload: agent/]);
is(end_agent("unix:$path"), 0, 'SIGTERM ends an agent with status 0');
ok(!-e $path, 'and its socket is gone');

is(end_agent($_), 0, "$_ ends") for @agents;
done_testing();
