#!/usr/bin/env perl
# What agents are there for: some send the load, others measure beside it, and the table's
# latencies are theirs, others ask servers for their stats. Each row says which.
use MCTest;
use MCLoad;
use MCSwarm;

my @servers = map { start_server() } 1, 2;
my @at = map { $_->at } @servers;
my ($load, $meter, $second, $watcher) = map { start_agent("127.0.0.$_") } 2 .. 5;

sub role { my ($role, $agent) = @_; return ('-a', "$agent;role=$role"); }

# The row of a process: its role, and what it offered a second.
sub row($run, $name) {
    my ($row) = $run->{out} =~ /^Agent \Q$name\E = (.*)$/m or return {};
    my ($offered) = $row =~ /^offered ([\d.]+)/;
    my ($role) = $row =~ /, role (\w+)$/;
    my ($answers, $servers) = $row =~ /^(\d+) answers to stats of (\d+) servers/;
    return {offered => $offered, role => $role, answers => $answers, servers => $servers};
}

# ---- all three -----------------------------------------------------------------------------

my @all = ((map { ('-s', $_) } @at), '-r', 500, '-q', 2000, '-Q', 200, '-a', $load, role('measure', $meter),
    role('observe', $watcher));
my $run = mcload_json(@all, '-t', 1, '--server-stats=0.2');
ran_ok($run, 'load, measure and observe: a run ends');
my %rows = map { $_ => row($run, $_) } 'leader', $load, $meter, $watcher;
is($rows{$_->[0]}{role}, $_->[1], "$_->[0]: $_->[1]")
    for ['leader', 'load'], [$load, 'load'], [$meter, 'measure'], [$watcher, 'observe'];
cmp_ok($rows{$meter}{offered}, '>', 100, 'who measures sends its part of the rate');
cmp_ok($rows{$meter}{offered}, '<', 320, '... and no more');
cmp_ok($rows{leader}{offered} + $rows{$load}{offered}, '>', 1400, 'the others have the rest');
like($run->{json}{agents} // '', qr/"name": "\Q$_->[0]\E", "lost": false, "role": "$_->[1]"/,
    "$_->[0] in the JSON") for [$load, 'load'], [$meter, 'measure'], [$watcher, 'observe'];
is((mem_stats($_->control))->{curr_items}, 500, 'records are stored once, on each server') for @servers;

# mutilate's -C: the table is of the measuring client, the totals are of all.
my ($headline) = $run->{out} =~ /^read +(.*)$/m;
my ($measured) = $run->{out} =~ /^Class measure:.*?^gets +(.*?)$/ms;
my ($loaded) = $run->{out} =~ /^Class load:.*?^gets +(.*?)$/ms;
is($headline, $measured, 'the table has the latencies of agents that measure');
isnt($headline, $loaded, '... not those of the load');
my ($answered) = $run->{out} =~ /^Total QPS = [\d.]+ \((\d+) /m;
my %of = map { $_ => $run->{json}{"classes.$_.totals.requests"} // 0 } qw(load measure);
cmp_ok($of{$_}, '>', 0, "$_: there are answers") for sort keys %of;
is($answered, $of{load} + $of{measure}, 'the totals are of all');

is($rows{$watcher}{servers}, 2, 'who observes asks each server');
cmp_ok($rows{$watcher}{answers}, '>=', 4, '... at the begin and the end at least');
like($run->{out}, qr/^Server stats = CPU [\d.]+% of a core, .* 1000 items/m, '... and its answers are reported');
like($run->{json}{'server_stats.series'} // '', qr/"server": "\Q$_\E"/, "... those of $_") for @at;

# ---- without the leader, and several that measure ----------------------------------------------

$run = mcload_json('-s', $at[0], '-r', 500, '--noload', '-l', 0, '-q', 1500, '-Q', 301, '-C', 2, '-t', 0.6,
    '-a', $load, role('measure', $meter), role('measure', $second));
ran_ok($run, 'a leader that sends nothing: a run ends');
is(row($run, $_)->{role}, 'measure', "$_ measures") for $meter, $second;
cmp_ok(row($run, $_)->{offered}, '<', 260, '... with a half of the part') for $meter, $second;
has($run, '... over connections of -C', out => qr/^Class measure: .* x 2 connections/m,
    out => qr/^Offered = .* 301 asked for/m, out => ['!~', qr/^Agent leader/m]);

# Without a word about the rate of those that measure it is low, also beside a closed loop.
$run = mcload_json('-s', $at[0], '-r', 500, '--noload', '-l', 0, '-t', 0.5, '-a', $load, role('measure', $meter));
ran_ok($run, 'a closed loop beside: a run ends');
like($run->{out}, qr/^Offered = .*open loop, 1000 asked for/m, 'who measures has a rate');

# Who sends in turn sends each key, also when others measure: parts are of those that send it.
{
    my $control = $servers[0]->control;
    put($control, "flush_all\r\n");
    read_line($control);
    ran_ok(mcload_json('-s', $at[0], '-r', 8, '-T', 1, '-l', 0, '-q', 400, '-u', 1, '--noload',
        '--popularity=seq', '-Q', 1, '-t', 1, '-a', $load, role('measure', $meter)), 'in turn: a run ends');
    is(mem_stats($control)->{total_items} > 30 ? mem_stats($control)->{curr_items} : 'few', 8,
        '... and the load sends each key');
}

# ---- observers beside the leader's own load; several ---------------------------------------------

$run = mcload_json((map { ('-s', $_) } @at), '-r', 500, '--noload', '-q', 300, '-t', 0.5,
    role('observe', $watcher), role('observe', $second));
ran_ok($run, 'only observers: a run ends');
is(row($run, 'leader')->{role}, 'load', '... with the leader\'s load');
is(row($run, $_)->{servers}, 1, "... $_ has a server of its own") for $watcher, $second;
is($run->{json}{'server_stats.servers'}, 2, '... the answers of both are reported');

$run = mcload_json('-s', $at[0], '-r', 500, '--noload', '-q', 1000, '-C', 1, '-Q', 100, '-t', 0.5, '-a', $load);
is(row($run, 'leader')->{role}, 'measure', 'without agents that measure the leader does');

# ---- what is refused ---------------------------------------------------------------------------

sub refuses($name, $status, $line, @args) {
    my $run = mcload('-s', $at[0], '-t', 0.3, @args);
    is($run->{status}, $status, "$name: status $status") or diag($run->{out});
    like($run->{err}, $line, "$name: a line says why");
    is($run->{out}, '', "$name: no table");
}

refuses('no such role', 1, qr/;role=load, measure or observe/, '-a', "$load;role=meter");
refuses('something else', 1, qr/;role=load, measure or observe/, '-a', "$load;port=5");
refuses('no load', 1, qr/no process sends load/, '-l', 0, role('observe', $watcher));
refuses('only the leader, which measures', 1, qr/no process sends load/, '-C', 1, role('observe', $watcher));
refuses('more observers than servers', 1, qr/more agents that observe than servers/, role('observe', $watcher),
    role('observe', $second));
refuses('classes', 1, qr/--class and role=measure are mutually exclusive/, '--class=a:{connections=2}',
    role('measure', $meter));
my $narrow = start_agent('127.0.0.6', '--agent-max-qps=5', '--agent-allow=127.0.0.1/32:' . $servers[0]->port);
refuses('too often', 2, qr/\Q$narrow\E: refuses: more requests a second/, '--server-stats=0.1',
    role('observe', $narrow));
refuses('another server', 2, qr/\Q$narrow\E: refuses: \Q$at[1]\E is outside/, '-s', $at[1], '-s', $at[1],
    role('observe', $narrow), role('observe', $watcher));

# ---- who observes is lost ------------------------------------------------------------------------

my $gets = mem_stats($servers[0]->control)->{cmd_get};
my $pid = in_child(sub {
    wait_until(sub { mem_stats($servers[0]->control)->{cmd_get} > $gets + 100 });
    kill 'KILL', agent_pid($watcher);
    require POSIX;
});
{
    $run = mcload_json(@all, '--noload', '-t', 2);
}
waitpid $pid, 0;
is($run->{status}, 3, 'an observer is lost: the run is invalid');
like($run->{out}, qr/^Agent \Q$watcher\E = LOST .*role observe$/m, '... it is named');
my ($seconds) = $run->{out} =~ m{^Total QPS = [\d.]+ \(\d+ / ([\d.]+)s\)}m;
cmp_ok($seconds, '>', 1.9, '... and the load is that of the whole run');

$_->stop for @servers;
done_testing();
