#!/usr/bin/env perl
# A swarm on a network: a leader with its server and three agents, each in a network namespace
# of its own, joined by a bridge. With a key rates add up and histograms merge exactly; frames
# that are sent again and connections that are are refused, so are wrong keys and targets that
# were not allowed; an agent that dies is handled as was asked for. Needs root.
use FindBin;
use MCTest;
use MCLoad;
use MCSwarm;

my $NET = '10.213.78';
my $LEADER = "$NET.1";

sub run_quietly { return system("@_ >/dev/null 2>&1") == 0; }

sub program { return (grep { -x } map { "$_/$_[0]" } split /:/, "$ENV{PATH}:/sbin:/usr/sbin")[0]; }

my ($ip, $unshare, $nsenter) = map { program($_) } qw(ip unshare nsenter);
if (!$ENV{MCTEST_SWARM_NETNS}) {
    plan skip_all => 'needs root' if $> != 0;
    plan skip_all => 'needs ip, unshare and nsenter' if !$ip || !$unshare || !$nsenter;
    plan skip_all => 'no network namespaces here' if !run_quietly("$unshare --net true");
    # Namespaces without names end with the last process in them, however that ends.
    $ENV{MCTEST_SWARM_NETNS} = 1;
    exec $unshare, '--net', $^X, '-I', "$FindBin::Bin/lib", $0 or die "exec: $!";
}

# ---- from here on in the leader's namespace ------------------------------------------------

my (%keepers, %netns);

# A process that keeps a namespace for as long as this one holds the other end of its pipe.
sub keep_namespace($last) {
    pipe my $end, my $ours or die "pipe: $!";
    my $here = readlink "/proc/$$/ns/net";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        close $ours;
        open STDIN, '<&', $end or die;
        exec $unshare, '--net', 'cat' or die "exec: $!";
    }
    $keepers{$pid} = $ours;
    $netns{$last} = "--net=/proc/$pid/ns/net";
    return wait_until(sub { (readlink "/proc/$pid/ns/net" // $here) ne $here }) ? $pid : undef;
}

sub join_bridge($last) {
    my $pid = keep_namespace($last) or return 0;
    my $there = "$nsenter $netns{$last} $ip";
    for my $command ("$ip link add swarm$last type veth peer name veth0 netns $pid",
        "$ip link set swarm$last master swarm0", "$ip link set swarm$last up",
        "$there addr add $NET.$last/24 dev veth0", "$there link set veth0 up",
        "$there link set lo up")
    {
        run_quietly($command) or return 0;
    }
    return 1;
}

my $is_set_up = 1;
$is_set_up &&= run_quietly($_) for "$ip link set lo up", "$ip link add swarm0 type bridge",
    "$ip addr add $LEADER/24 dev swarm0", "$ip link set swarm0 up";
$is_set_up &&= join_bridge($_) for 2 .. 4;
plan skip_all => 'no bridge or veth here' if !$is_set_up;

my $probe = run_program({command => [$MCLOAD, '--agent-mode=127.0.0.1:1x', '--key-file=/dev/null']});
plan skip_all => 'built without OpenSSL' if $probe->{err} =~ /no OpenSSL/;

sub start_at($last, @args) {
    return start_agent([$nsenter, $netns{$last}], "$NET.$last", @args);
}

my $server = serve('-l', $LEADER, '-p', '-1', {listen => 0});
my $at = "$LEADER:" . $server->port;
my $control = IO::Socket::INET->new(PeerAddr => $at, Proto => 'tcp', Timeout => 60) or die;
$control->blocking(0);
${*$control}{mctest_server} = $server;

my $key = '--key-file=' . key_file('key', '0123456789abcdef');
my $allow = "--agent-allow=$LEADER/32:" . $server->port;
my @agents = map { start_at($_, $key, $allow) } 2 .. 4;
my @lead = ('-s', $at, $key, '-c', 2, '-r', 1000, map { ('-a', $_) } @agents);

# ---- adding up ------------------------------------------------------------------------------

my $run = mcload_json(@lead, '-l', 0, '-q', 1500, '-t', 1);
ran_ok($run, 'a run over the network ends');
is(mem_stats($control)->{curr_items}, 1000, 'together they stored each record once');
my $json = $run->{json};
cmp_ok($json->{'totals.offered'} // 0, '>', 1000, 'rates add up');
cmp_ok($json->{'totals.offered'} // 0, '<', 2000, '... to that asked for');
is($json->{'latency.intended.buckets.sum'}, $json->{'totals.answered'},
    'each answer is in a bucket of the sum');
is(scalar(() = $run->{out} =~ /^Agent .* achieved [\d.]+/mg), 3, 'a line for each agent');
is(achieved_by_agents($json), $json->{'totals.achieved'}, 'which add up to the whole');
my $before = mem_stats($control);
$run = mcload_json(@lead, '-l', 0, '--noload', '-q', 1500, '-t', 0.5, '--update=0.5');
my $after = mem_stats($control);
is($after->{cmd_get} + $after->{cmd_set} - $before->{cmd_get} - $before->{cmd_set},
    $run->{json}{'totals.sent'}, 'the server saw what they sent');

# ---- what is refused --------------------------------------------------------------------------

my @small = ('-s', $at, '-l', 0, '--noload', '-r', 1000, '-q', 100, '-t', 0.3);

sub refused($name, $agent, $why, @args) {
    my $run = mcload('-a', $agent, @args);
    has($run, "$name: status 2, a line says why", status => 2, err => qr/^mcload: agent \Q$agent\E: $why\n\z/m);
}

refused('no key', $agents[0], qr/wants a key: --key-file/, @small);
refused('wrong key', $agents[0], qr/refuses: that is not its key/, @small,
    '--key-file=' . key_file('other', '0123456789abcdeF'));
my $elsewhere = "$NET.2:" . $server->port;
refused('another target', $agents[1], qr/refuses: \Q$elsewhere\E is outside what the agent allows/,
    @small, $key, '-s', $elsewhere);
refused('another port', $agents[1], qr/refuses: \Q$LEADER\E:1 is outside what the agent allows/,
    '-s', "$LEADER:1", @small[2 .. $#small], $key);

# ---- somebody between leader and agent -----------------------------------------------------------

# Passes on what a leader and an agent say; the leader's frame $twice (from 0) is passed on twice.
# Returns all that the leader said, when either has ended the connection. The leader hears an end,
# and what it says until it hears it is read: to close over unread bytes would reset its connection.
sub pass_on($listener, $agent, $twice) {
    my $leader = $listener->accept or die "accept: $!";
    my $there = IO::Socket::INET->new(PeerAddr => $agent, Timeout => 60) or die "connect: $!";
    my $select = IO::Select->new($leader, $there);
    my ($all, $waiting, $frames, $has_ended) = ('', '', 0, 0);
    until ($has_ended) {
        for my $s ($select->can_read(60)) {
            my $n = sysread $s, my $bytes, 65536;
            $has_ended ||= !$n;
            last if $has_ended;
            if ($s == $there) {
                syswrite $leader, $bytes;
                next;
            }
            $all .= $bytes;
            $waiting .= $bytes;
            while (length $waiting >= 4 && length $waiting >= 4 + unpack 'N', $waiting) {
                my $frame = substr $waiting, 0, 4 + unpack('N', $waiting), '';
                syswrite $there, $frame x ($frames++ == $twice ? 2 : 1);
            }
        }
    }
    shutdown $leader, 1;
    1 while sysread $leader, my $bytes, 65536;
    return $all;
}

sub run_between($agent, $twice) {
    my $listener = IO::Socket::INET->new(Listen => 4, LocalAddr => '127.0.0.1') or die;
    my $pid = fork // die;
    if (!$pid) {
        $SIG{PIPE} = 'IGNORE';
        my $all = pass_on($listener, $agent, $twice);
        # A whole connection once more: the agent's nonce is another one.
        my $again = IO::Socket::INET->new(PeerAddr => $agent, Timeout => 60) or die;
        syswrite $again, $all;
        my $said = '';
        while (IO::Select->new($again)->can_read(60) && sysread $again, my $bytes, 65536) {
            $said .= $bytes;
        }
        POSIX::_exit($said =~ /that is not its key/ ? 0 : 1);
    }
    my $name = '127.0.0.1:' . $listener->sockport;
    close $listener;
    my $run = mcload('-a', $name, @small, '-t', 1, $key);
    waitpid $pid, 0;
    return ($run, $name, $? >> 8);
}

my ($through, $name, $status) = run_between($agents[0], -1);
ok($through->{status} == 0 || $through->{status} == 3, 'frames may be passed on') or diag($through->{err});
unlike($through->{err}, qr/lost/, '... once');
is($status, 0, 'a connection that is replayed is refused');
for my $frame (2 .. 4) {
    ($through, $name, $status) = run_between($agents[0], $frame);
    has($through, "frame $frame twice: the run fails, the agent ends it", status => ['>', 0],
        err => qr/^mcload: agent \Q$name\E(?: is lost)?: closed the connection$/m);
}

# ---- an agent dies --------------------------------------------------------------------------

sub lose_one($policy) {
    my $victim = start_at(3, $key, $allow);
    my $gets = mem_stats($control)->{cmd_get};
    my $pid = agent_pid($victim);
    my $killer = fork // die;
    if (!$killer) {
        wait_until(sub { mem_stats($control)->{cmd_get} > $gets + 50 });
        kill 'KILL', $pid;
        POSIX::_exit(0);
    }
    my $run = mcload_json(@lead, '-a', $victim, '-l', 0, '--noload', '-q', 1000, '-t', $policy eq 'abort' ? 200 : 3,
        "--on-agent-loss=$policy");
    waitpid $killer, 0;
    end_agent($victim);
    like($run->{err}, qr/^mcload: agent \Q$victim\E is lost: /m, "$policy: a line says who is lost");
    return $run;
}

$run = lose_one('continue');
has($run, 'continue: the run is invalid, and says why', status => 3, out => qr/^INVALID: .*1 agents lost/m);
is(scalar(() = $run->{out} =~ /LOST \(/g), 1, 'continue: one agent is marked');
$run = lose_one('abort');
has($run, 'abort: status 3, no table', status => 3, out => '');
$run = lose_one('repeat');
like($run->{err}, qr/repeated without it/, 'repeat: a line says so');
cmp_ok($run->{json}{'totals.offered'} // 0, '>', 1600, 'repeat: the others send the whole rate');

# ---- an agent that is no longer reached --------------------------------------------------------

my $gets = mem_stats($control)->{cmd_get};
my $pid = in_child(sub {
    wait_until(sub { mem_stats($control)->{cmd_get} > $gets + 50 });
    run_quietly("$ip link set swarm4 down");
});
$run = mcload_json(@lead, '-l', 0, '--noload', '-q', 1000, '-t', 200, '--on-agent-loss=abort');
waitpid $pid, 0;
has($run, 'an agent behind a cut line is lost, which ends the run',
    err => qr/^mcload: agent \Q$agents[2]\E is lost: has said nothing for 5 s$/m, status => 3);

is(end_agent($_), 0, "$_ ends") for @agents;
close $control;
done_testing();
