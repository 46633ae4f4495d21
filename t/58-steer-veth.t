#!/usr/bin/env perl
# Steering on a real device: a veth pair between two network namespaces, on whose server side
# RPS says which CPU receives. Connections go to the worker of that CPU, whatever CPU the client
# runs on. Needs root.
use MCTest;

my $SERVER_IP = '10.213.77.1';
my $CLIENT_IP = '10.213.77.2';

sub run_quietly { return system("@_ >/dev/null 2>&1") == 0; }

my @allowed = allowed_cpus();
my ($ip) = grep { -x } map { "$_/ip" } split /:/, "$ENV{PATH}:/sbin:/usr/sbin";
my $outer = $ENV{MCTEST_VETH};

if (!$outer) {
    plan skip_all => 'needs memcached-qos' if !is_ours();
    plan skip_all => 'needs root' if $> != 0;
    plan skip_all => 'needs two CPUs, with numbers below 32' if @allowed < 2 || $allowed[1] > 31;
    plan skip_all => 'needs ip' if !$ip;
}

my ($name) = $outer || "mct$$";
my ($server_ns, $client_ns) = ("${name}s", "${name}c");

if (!$outer) {
    my @made;
    my $is_set_up = 1;
    for my $ns ($server_ns, $client_ns) {
        $is_set_up &&= run_quietly("$ip netns add $ns");
        push @made, $ns if $is_set_up;
    }
    $is_set_up &&= run_quietly($_) for
        "$ip link add ${name}0 netns $server_ns type veth peer name ${name}1 netns $client_ns",
        "$ip -n $server_ns addr add $SERVER_IP/24 dev ${name}0",
        "$ip -n $client_ns addr add $CLIENT_IP/24 dev ${name}1",
        "$ip -n $server_ns link set lo up", "$ip -n $server_ns link set ${name}0 up",
        "$ip -n $client_ns link set lo up", "$ip -n $client_ns link set ${name}1 up";
    my $status = 0;
    if ($is_set_up) {
        local $ENV{MCTEST_VETH} = $name;
        $status = system $ip, 'netns', 'exec', $client_ns, $^X, '-I', "$TOP/t/lib", $0;
    }
    run_quietly("$ip netns del $_") for @made;
    plan skip_all => 'no network namespaces or veth here' if !$is_set_up;
    exit($status >> 8 || ($status ? 1 : 0));
}

# ---- from here on inside the client's namespace -----------------------------------------

sub receive_on($cpu) {
    my $mask = sprintf '%x', 1 << $cpu;
    return run_quietly("$ip netns exec $server_ns sh -c "
            . "'echo $mask > /sys/class/net/${name}0/queues/rx-0/rps_cpus'");
}

sub connect_to($server) {
    my $sock = IO::Socket::INET->new(PeerAddr => $SERVER_IP, PeerPort => $server->port,
        Proto => 'tcp', Timeout => 60) or die "connect: $!";
    $sock->blocking(0);
    ${*$sock}{mctest_server} = $server;
    return $sock;
}

my ($first, $second) = @allowed;
plan skip_all => 'no RPS here' if !receive_on($first);

for my $mode ('cpu', 'reuseport') {
    my $server = serve('-l', $SERVER_IP, '-p', '-1', '-t', '2', "--pin=list:$first,$second",
            "--steer=$mode", {listen => 0, wrap => [$ip, 'netns', 'exec', $server_ns]});
    my $s = connect_to($server);
    my $kernel = mem_stats($s, 'qos')->{steer_kernel};
    note("$mode: $kernel");
    for my $row ([$first, 0], [$second, 1], [$first, 0]) {
        my ($cpu, $worker) = @$row;
        ok(receive_on($cpu), "$mode: CPU $cpu receives");
        exchange($s, "version\r\n", VERSION_REPLY());
        my $before = mem_stats($s, 'qos');
        my @conns = map { connect_to($server) } 1 .. 4;
        for (1 .. 50) {
            exchange($_, "version\r\n", VERSION_REPLY()) for @conns;
        }
        my $after = mem_stats($s, 'qos');
        my $here = $after->{"worker_${worker}_conns"} - $before->{"worker_${worker}_conns"};
        is($here, 4, "$mode: all connections go to worker $worker");
        is($after->{steer_local} - $before->{steer_local}, 4, "$mode: and are local");
        my $checked = $after->{rx_checked} - $before->{rx_checked};
        my $local = $after->{rx_checked} * $after->{rx_local_pct}
            - $before->{rx_checked} * $before->{rx_local_pct};
        cmp_ok($checked, '>=', 2, "$mode: some reads were checked");
        # the control connection may be elsewhere
        cmp_ok($local, '>=', 100 * ($checked - 2), "$mode: they are local ($local of ${checked}00)");
        close $_ for splice @conns;
        soon {
            my $now = mem_stats($s, 'qos');
            $now->{worker_0_conns} + $now->{worker_1_conns} == 1;
        } "$mode: they left";
    }
    close $s;
}

done_testing();
