#!/usr/bin/env perl
# Each option of a leader either reaches its agents, or is each machine's own, or is refused
# with a line: none is passed over in silence.
use MCTest;
use MCLoad;
use MCSwarm;
use MCTLS;

my $dir = scratch_dir();
my @servers = map { start_server() } 1, 2;
my @at = map { $_->at } @servers;
my $agent = start_agent('127.0.0.2');
# Short: no answer is asserted, which there may not be where the machine stands still.
my $seconds = 0.4;
my @lead = ('-a', $agent, '-l', 0, '-r', 1000, '-t', $seconds);
my @both = (@lead, map { ('-s', $_) } @at);

# What the servers had counted before a run, and behind it.
my ($before, $after);

sub works($name, @args) {
    $before = counts();
    my $run = mcload_awake(@args);
    $after = counts();
    ran_ok($run, "$name: a run ends");
    cmp_ok($run->{json}{'totals.offered'} // 0, '>', 0, "$name: there are requests")
        or diag("$run->{out}$run->{err}");
    unlike($run->{out}, qr/LOST|^INVALID: [^\n]*errors/m, "$name: no agent is lost, and there are no errors");
    return $run;
}

sub counts { return [map { mem_stats($_->control) } @servers]; }

sub more { my ($what, $i) = @_; return $after->[$i]{$what} - $before->[$i]{$what}; }

# ---- what travels -----------------------------------------------------------------------

works('each thread all servers', @both, '-T', 2, '-c', 2, '-q', 200);
is(more('total_connections', $_), 4, "... server $_") for 0, 1;
works('--roundrobin', @both, '-T', 2, '-c', 2, '-q', 200, '--roundrobin', '--noload');
is(more('total_connections', $_), 2, "--roundrobin: server $_ has one thread's") for 0, 1;

works('--hash', @both, '--hash=ketama', '-q', 200, '--records=1500');
my @items = map { more('cmd_set', $_) } 0, 1;
is($items[0] + $items[1], 1500, '--hash: each record is on one server') or diag("@items");
cmp_ok($items[0], '>', 0, '... of both');
cmp_ok($items[1], '>', 0, '... of both');

my @one = (@lead, '-s', $at[0]);
my $run = works('--antagonist', @one, '--class=a:{qps=100 connections=1}',
    '--class=b:{antagonist=sets records=100 depth=1 connections=1 think=0.01}');
like($run->{out}, qr/^Class b/m, '--antagonist: in a class of its own');
works('--antagonist alone', @one, '--antagonist=sets', '-c', 1, '-q', 200, '--noload', '-t', 2);
cmp_ok(more('cmd_set', 0), '>', 0, '--antagonist: it sets');
works("--protocol=$_", @one, "--protocol=$_", '-q', 200) for qw(ascii meta binary);
$run = works('sessions', @one, '--mode=partly', '--session=fixed:4', '--think=0.001', '-q', 400);
like($run->{json}{'classes'} // $run->{out}, qr/partly/, 'sessions: the mode is told') or diag($run->{out});
# What needs a rate has one by a scan and a search, too.
for (['--late=drop'], ['-S'], ['--max-outstanding=10'], ['--session=4'], ['--mode=open'], ['--schedule=square:50%:150%:0.1:0.1']) {
    ran_ok(mcload(@one, '--scan=200:200:1', @$_), "a scan with @$_");
}
$run = works('--think', @one, '-c', 4, '--think=0.02');
cmp_ok($run->{json}{'totals.achieved'}, '<=', 4 * ($seconds / 0.02 + 2), '--think: users think');
works('--warmup-drain', @one, '-w', 0.2, '--warmup-drain=0.1', '-q', 200);
works('--workload', @one, '--workload=ycsb:a', '-q', 200, '-V', 100, '-K', 20);

my $list = "$dir/servers";
write_file($list, map { "# both\n$_\n" } @at);
works('--servers-file', @lead, "--servers-file=$list", '-c', 3, '-q', 200);
is(more('total_connections', $_), 3, "--servers-file: server $_, which the leader has read of") for 0, 1;

# A pause before the first run is one of all.
my $begun = time;
works('--wait', @one, '--wait=1.5', '-q', 200);
cmp_ok(time - $begun, '>=', 1, '--wait: the agent waits');

# ---- what is each machine's own ---------------------------------------------------------

my $secret = scratch_file('secret', "tom:sesame\n");
my $guarded = serve('--auth-file', $secret);
my @guard = (@lead, '-s', $guarded->at, '-q', 200, '--auth-file', $secret);
$run = mcload(@guard);
is($run->{status}, 2, 'an agent without a secret: status 2');
like($run->{err}, qr/^mcload: agent \Q$agent\E: has no --auth-file of its own$/m, '... and a line');
my $knowing = start_agent('127.0.0.3', '--auth-file', $secret, '--engine=epoll');
$guard[1] = $knowing;
works('an agent with a secret', @guard);

SKIP: {
    my $why = no_tls_because();
    skip $why, 4 if $why;
    certificates();
    my $tls = serve(tls_args());
    my @args = (@lead, '-s', 'tls://127.0.0.1:' . $tls->port, '-q', 200);
    $run = mcload(@args, '--tls-verify=no');
    is($run->{status}, 2, 'an agent that trusts nobody: status 2') or diag($run->{out});
    like($run->{err}, qr/^mcload: agent \Q$agent\E: .*TLS handshake/m, '... and a line');
    my $trusting = start_agent('127.0.0.4', '--tls-verify=no');
    $args[1] = $trusting;
    $run = works('an agent that trusts', @args);
}

# ---- what is refused --------------------------------------------------------------------

sub refuses($name, $line, @args) {
    my $run = mcload(@one, @args);
    has($run, "$name: usage, a line says why, no table", status => 1, err => qr/$line/, out => '');
}

refuses('a password', 'is secret, and not sent to agents', '-U', 'tom', '-P', 'sesame');
my $values = scratch_file('values', "100 1\n200 1\n");
refuses('a file of values', 'names a file, which agents do not read', '-V', "file:$values");
refuses('a class with an auth-file', 'names a file', "--class=a:{auth-file=$secret}");
refuses('a class of short options', 'agents take classes of long options', '--class=a:{-d 4}');
refuses('what an agent allows', 'is said to the agent', '--agent-max-qps=5');

my $quiet = run_program({command => [$MCLOAD, '--agent-mode=127.0.0.1:1x', '-T', 4, '--json=x']});
like($quiet->{err}, qr/^mcload: --$_ is the leader's to say: an agent has no use for it$/m,
    "an agent says that it has no use for --$_") for qw(threads json);

$_->stop for @servers, $guarded;
done_testing();
