#!/usr/bin/env perl
# What an agent allows on its own command line holds, whatever its leader asks for, while it
# stores the records as well as while it is measured.
use MCTest;
use Time::HiRes qw(time);
use MCLoad;
use MCSwarm;

my $server = serve();
my $other = serve();
my ($at, $elsewhere) = map { $_->at } $server, $other;

sub refused($name, $agent = undef, $why = undef, @args) {
    has(mcload('-a', $agent, '-l', 0, '-t', 0.3, @args), "$name: status 2, a line says why, no table",
        status => 2, err => qr/^mcload: agent \Q$agent\E: $why\n\z/m, out => '');
}

# ---- requests a second --------------------------------------------------------------------

# 400 of the records at once, the others by and by: 500 of them need more than a second.
my $agent = start_agent('127.0.0.2', '--agent-max-qps=400');
my $begin = time;
my $run = mcload_json('-a', $agent, '-l', 0, '-s', $at, '-r', 900, '-q', 50, '-t', 0.3);
ran_ok($run, 'a run within the limit ends');
cmp_ok(time - $begin, '>', 1, 'requests: loading is held to the limit');
is(mem_stats($server->control)->{curr_items}, 900, '... and stores all');

$agent = start_agent('127.0.0.3', '--agent-max-qps=50', '--agent-max-time=1000ms');
refused('time', $agent, 'refuses: loading takes longer than the agent allows', '-s', $at, '-r',
    10000, '-q', 10);
soon { mem_stats($server->control)->{curr_connections} <= 2 } 'time: the agent is gone from the server';

# What is moved at once after a pause is so once, and not for each leader anew.
$agent = start_agent('127.0.0.8', '--agent-max-qps=50');
$begin = time;
mcload('-a', $agent, '-l', 0, '-s', $at, '-r', 50, '-q', 10, '-t', 0.1) for 1 .. 4;
cmp_ok(time - $begin, '>', 2.9, 'requests: a leader that comes again has no more of them');

# ---- bytes a second -----------------------------------------------------------------------

my $rate = 200 * 1024;
$agent = start_agent('127.0.0.4', '--agent-max-bandwidth=200k');
$begin = time;
$run = mcload_awake('-a', $agent, '-l', 0, '-s', $at, '-r', 400, '-V', 1000, '-t', 1, '-c', 1);
my $took = time - $begin;
cmp_ok($took, '>', 2, 'bandwidth: loading and the run are held to the limit');
my $bytes = ($run->{json}{'totals.rx_bytes'} // 0) + ($run->{json}{'totals.tx_bytes'} // 0);
cmp_ok($bytes, '>', 0, 'bandwidth: there are answers') or diag($run->{err});
cmp_ok($bytes, '<', 2 * $rate, '... no more than the limit and what is on its way');

# Replies that are on their way when the window ends are taken no faster: eight large ones are some
# seconds' worth, of which a second is waited for.
mcload_json('-s', $at, '-r', 8, '-V', 400000, '--key-prefix=drain', '-q', 10, '-t', 0.3);
$agent = start_agent('127.0.0.9', '--agent-max-bandwidth=200k');
$run = mcload_awake('-a', $agent, '-l', 0, '-s', $at, '--noload', '-r', 8, '-V', 400000, '--key-prefix=drain', '-t',
    0.4, '-c', 1, '-d', 8);
my ($drained) = $run->{out} =~ /^Phases = .*drain ([\d.]+) s/m;
cmp_ok($drained // 0, '>', 0.5, 'bandwidth: what is left behind the window is held to the limit, too')
    or diag($run->{out}, $run->{err});

# ---- where to -----------------------------------------------------------------------------

my $narrow = start_agent('127.0.0.5', "--agent-allow=127.0.0.1/32:" . $server->port);
refused('sharded', $narrow, qr/refuses: \Q$elsewhere\E is outside what the agent allows/, '-s', $at,
    '-s', $elsewhere, '--hash=ketama', '-r', 100);
refused('udp', $narrow, qr/refuses: \Q$at\E is loaded over UDP, which the agent does not allow/, '-s',
    $at, '--transport=udp', '--noload', '-r', 100);
refused('many', start_agent('127.0.0.6', '--agent-allow=0.0.0.0/0', '--agent-allow-udp'),
    qr/refuses: 224\.0\.0\.1 is a multicast address/, '-s', '224.0.0.1', '--transport=udp', '--noload');

my $port = free_port();
my $udp = serve('-U', $port);
$agent = start_agent('127.0.0.7', '--agent-allow-udp');
$run = mcload_json('-a', $agent, '-l', 0, '-s', "udp://127.0.0.1:$port", '--noload', '-r', 100, '-q',
    200, '-t', 0.4);
has($run, 'udp: with the word for it, it works', 'totals.offered' => ['>', 0], err => ['!~', qr/mcload: agent/]);

# Loading waits for the limit, and what is answered meanwhile is not taken for lost.
$agent = start_agent('127.0.0.10', '--agent-allow-udp', '--agent-max-qps=100');
my $sets = mem_stats($udp->control)->{cmd_set};
ran_ok(mcload_json('-a', $agent, '-l', 0, '-s', "udp://127.0.0.1:$port", '-r', 300, '-q', 20, '-t', 0.4, '-c',
    4), 'udp: loading within the limit ends');
cmp_ok(mem_stats($udp->control)->{cmd_set} - $sets, '<', 450, 'udp: ... and sends hardly any twice');

$_->stop for $server, $other, $udp;
done_testing();
