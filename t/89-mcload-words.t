#!/usr/bin/env perl
# Words of the command line, each by what it does: seen in what the server holds, in the
# report, or in the message that refuses it.
use MCTest;
use IO::Socket::INET;
use Socket qw(sockaddr_in);
use MCLoad;

my $server = serve();
my $at = $server->at;
my $s = $server->connect;

sub first_line($key) {
    put($s, "get $key\r\n");
    my $line = read_line($s);
    while ($line =~ /^VALUE/ && read_line($s) ne "END\r\n") { }
    return $line;
}

# One line, and the status of a wrong command line.
sub refuses($like, @args) {
    my $run = mcload('-s', $at, '-r', '10', '-t', '0.1', @args);
    has($run, "@args: refused, in a line", status => 1, err => qr/\Amcload: [^\n]*$like[^\n]*\n\z/);
}

sub stores(@args) {
    my $run = mcload('-s', $at, '--loadonly', @args);
    is($run->{status}, 0, "@args: stored") or diag($run->{err});
}

# ---- keys and values ---------------------------------------------------------------------

stores('-r', '300', '-K', '6', '--key-prefix=d', '--key-format=decimal', '--flags=0');
is(first_line('d00255'), "VALUE d00255 0 200\r\n", 'a decimal key');
stores('-r', '300', '-K', '6', '--key-prefix=h', '--key_format=hex', '--flags=4294967295');
is(first_line('h0012b'), "VALUE h0012b 4294967295 200\r\n", 'a hexadecimal key, and flags');
for my $protocol (qw(binary meta)) {
    stores('-r', '3', '-K', '6', '--key-prefix=f', "--protocol=$protocol", '--flags=77');
    is(first_line('f00002'), "VALUE f00002 77 200\r\n", "flags in the words of $protocol");
}
stores('-r', '66000', '-K', '6', '-V', '1', '--key-prefix=b', '--key-format=binary', '--binary');
my $run = mcload_json('-s', $at, '-r', '66000', '-K', '6', '-V', '1', '--key-prefix=b',
    '--key-format=binary', '--binary', '--noload', '--verify=1', @BRIEFLY);
has($run, 'keys of any byte are found, with their values', 'totals.misses' => 0, 'errors.wrong_value' => 0);
refuses(@$_) for ['binary', '--key-format=binary'], ['decimal, hex or binary', '--key-format=octal'],
    ['4294967295', '--flags=4294967296'];

# ---- mcperf's multigets ------------------------------------------------------------------

# A share of the gets has so many keys: between one and all of them.
for my $case (['0', 1, 1], ['1', 10, 10], ['0.5', 2, 9]) {
    my ($share, $least, $most) = @$case;
    my $json = mcload_json('-s', $at, '-r', '50', '-t', 100, '--until=n:300', '--getq_size=10',
        "--getq_freq=$share")->{json};
    my $mean = $json->{'totals.keys'} / ($json->{'totals.gets'} || 1);
    ok($mean >= $least && $mean <= $most, "--getq_freq=$share: $mean keys a get");
}
my $json = mcload_json('-s', $at, '-r', '50', @BRIEFLY, '--getq-freq=1')->{json};
is($json->{'totals.keys'}, 100 * $json->{'totals.gets'}, '--getq-freq alone: 100 keys');
refuses('between 0 and 1', '--getq-freq=1.5');

# ---- times -------------------------------------------------------------------------------

# Numbers are seconds; units may say otherwise.
for my $args (['--time=300ms', '--timeout=1s', '--warmup=0.1s', '--warmup-drain=50ms',
        '--wait=10ms', '--interval=100ms'], ['-t', '0.3', '-w', '100000us', '-W', '0.01']) {
    $run = mcload_json('-s', $at, '-r', '50', @$args, '--schedule=const', '-q', '1000');
    has($run, "@$args: its time, and its warm-up", 'load.time' => '0.3', 'load.warmup' => '0.1');
}
refuses('above 0', $_) for '--time=0s', '--timeout=1x', '--timeout=';
refuses('0 or more', $_) for '--warmup=soon', '--wait=-1', '--search-budget=x', '--warmup-drain=x';
refuses('0\.01', $_) for '--interval=1us', '--server-stats=s';

# ---- arrivals ----------------------------------------------------------------------------

like(mcload('-s', $at, '-r', '50', '-t', '0.3', '-q', '500', '-i', 'fixed', "--arrival-scope=$_")->{out},
    qr/^Offered = /m, "--arrival-scope=$_") for qw(total agent thread connection);
refuses('agent', '--arrival-scope=host');

# ---- connections -------------------------------------------------------------------------

# What a listener that never answers sees of the local ports.
sub ports_seen($count, @args) {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16, Timeout => 60)
        or die "listen: $!";
    my $pid = start_mcload('-s', '127.0.0.1:' . $listener->sockport, '--noload', '-t', '0.3', @args);
    my (@clients, @ports);
    while (@clients < $count) {
        # the address that comes with it: a socket that is gone again has none to be asked for
        my ($client, $address) = $listener->accept or last;
        push @clients, $client;
        push @ports, (sockaddr_in($address))[0];
    }
    return ($pid, \@clients, sort { $a <=> $b } @ports);
}

# Standard output and errors are left to files.
my ($out, $err) = map { scratch_dir() . "/$_" } qw(out err);

sub start_mcload(@args) {
    return in_child(sub {
        open STDOUT, '>', $out or die $!;
        open STDERR, '>', $err or die $!;
        exec $MCLOAD, @args or die $!;
    });
}

sub status_of($pid) {
    waitpid $pid, 0;
    return $?;
}

{
    # Some ports in a row that nobody has just now, not of those that other tests listen on, nor
    # those that this test tries elsewhere at the same time.
    my $first = 10000 + 4 * ($$ % 2400);
    $first += 4 while grep { !IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $_,
        Listen => 1, ReuseAddr => 1) } $first .. $first + 3;
    for my $time (1, 2) {
        my ($pid, $clients, @ports) = ports_seen(4, '-c', '2', '-T', '2', "--src-port=$first");
        is("@ports", join(' ', $first .. $first + 3), "--src-port, time $time") or diag(read_file($err));
        status_of($pid);
    }
    refuses('not enough ports', '-c', '10', '--src_port=65530');
    my @three = map { ('-s', "127.0.0.1:$_") } 1 .. 3;
    refuses('not enough ports', @three, '-R', '-c', '4', '-T', '3', '--src-port=65521');
    like(mcload(@three, '-s', $at, '-R', '-c', '4', '-T', '3', '--src-port=65520')->{err}, qr/cannot connect/, 'ports enough');
    refuses('between 1 and 65535', '--src-port=0');
}

# ---- places ------------------------------------------------------------------------------

for my $args (['--busy-poll'], ['--busy_poll', '-q', '500'], ['--numa=auto', '-T', '2']) {
    $run = mcload_json('-s', $at, '-r', '50', @BRIEFLY, @$args);
    cmp_ok($run->{json}{'totals.gets'}, '>', 0, "@$args: runs") or diag($run->{err});
}
SKIP: {
    skip 'no memory nodes here', 1 if !-e '/sys/devices/system/node/node0/cpulist';
    $run = mcload_json('-s', $at, '-r', '50', @BRIEFLY, '--numa=0');
    ok($run->{json}{'totals.gets'} || $run->{err} =~ /memory node/, '--numa=0') or diag($run->{err});
}
refuses(@$_) for ['memory node', '--numa=1023'], ['memory node', '--numa=x'],
    ['exclusive', '--numa=0', '--affinity'], ['microseconds', '--busy-poll=x'];

# ---- time stamps -------------------------------------------------------------------------

# The kernel begins to stamp packets some time after the first socket has asked for it, and goes on as
# long as there is one.
my $asks = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die "udp: $!";
setsockopt $asks, Socket::SOL_SOCKET(), Socket::SO_TIMESTAMP(), 1 or die "SO_TIMESTAMP: $!";
for my $args ([], ['-q', '2000', '-c', '2'], ['-c', '2', '-d', '8', '-u', '0.3']) {
    $json = mcload_json('-s', $at, '-r', '50', '-t', 100, '--until=n:200', '--timestamps=kernel', @$args)->{json};
    my ($count, $all) = map { $json->{"$_.count"} // 0 } qw(wire latency.issue);
    cmp_ok($count, '>', $all / 2, "kernel's time stamps @$args: $count of $all requests");
    has($json, '... take time, but no more than the client sees', 'wire.min' => ['>', 0],
        'wire.mean' => ['<=', $json->{'latency.issue.mean'}]);
}
is(mcload_json('-s', $at, '-r', '50', @BRIEFLY)->{json}{'wire.count'}, undef, 'none by default');
refuses('user, kernel or nic', '--timestamps=sun');
$run = mcload('-s', $at, '-r', '50', '-t', '0.3', '--timestamps=nic:lo');
is($run->{status}, 2, 'no card stamps the packets of lo');
like($run->{err}, qr/\Amcload: lo puts no time stamps on packets: [^\n]+\n\z/, '... in a line');

# ---- names of others ---------------------------------------------------------------------

# A warm-up of 2 s at 600/s is 1200 requests, one at the rate of the run 200.
for my $case (['--qps_warmup=2:600', 250, 1300], ['--qps-warmup=0.5', 0, 120]) {
    my ($option, $least, $most) = @$case;
    my $before = mem_stats($server->control)->{cmd_get};
    $json = mcload_json('-s', $at, '-r', '50', '--noload', '-t', '0.5', '-q', '100', '-c', '4', $option)->{json};
    my $warm = mem_stats($server->control)->{cmd_get} - $before - $json->{'totals.sent'};
    ok($warm >= $least && $warm <= $most, "$option: $warm requests before the window");
    cmp_ok($json->{'totals.offered'}, '<', 150, '... and the rate of the run within it');
}
refuses('TIME:RATE', '--qps-warmup=1:');
$run = mcload('-s', $at, '-r', '50', '-t', '0.3', '--poll_freq=1');
has($run, "mcperf's polling of agents", out => qr/^#type/m, err => qr/no effect/);
refuses('--poll-max needs --agent', '--poll_max=3');

# Words of memtier_benchmark and wrk: the same, or what to write.
for my $case (['--pipeline=3', 'load.depth', 3], ['--clients=2', 'load.connections', 2],
    ['--test-time=0.2', 'load.time', 0.2], ['--duration=0.2', 'load.time', 0.2], ['--data-size=7', 'load.value_size', 7],
    ['--value-size=7', 'load.value_size', 7], ['--key-size=40', 'load.key_size', 40], ['--ratio=1:3', 'load.update', 0.25],
    ['--rate=900', 'load.qps', 900], ['--threads=2', 'load.threads', 2]) {
    my ($option, $key, $value) = @$case;
    $json = mcload_json('-s', $at, '-r', '50', '-t', '0.2', $option)->{json};
    cmp_ok($json->{$key} // -1, '==', $value, $option);
}
my $repeated = mcload('-s', $at, '-r', '50', '-t', '0.1', '--run-count=2', '--json-out-file=-');
is(scalar(() = $repeated->{out} =~ /"schema":/g), 3, '--run-count, --json-out-file');
refuses('a duration is -t SECONDS', '-d30s');
refuses("\Q$$_[1]\E", $$_[0]) for ['--requests=1000', '--until=n:N'], ['--hide-histogram', 'leave it out'], ['--key-maximum=5', '--records=N'],
    ['--data-size-range=1-5', '--valuesize=uniform:MIN,MAX'], ['--rate-limiting=5', '--qps=N'], ['--latency', 'always printed'],
    ['--port=5', '--server=HOST:PORT'], ['--key-pattern=S:S', '--popularity='], ['--tls', '--transport=tls'];
refuses('SETS:GETS', "--ratio=$_") for '1', '0:0', ':', '1:x', '1:2:3';
refuses('two percentiles have the same name', "--percentiles=$_") for '9.99,99.9', '50,95,50';

# ---- the JSON ----------------------------------------------------------------------------

{
    my $file = scratch_dir() . '/keys.json';
    my @around = time;
    mcload('-s', $at, '-r', '50', '-t', '0.3', '-w', '0.1', '--json', $file);
    push @around, time;
    my $text = read_file($file);
    for my $key (qw(schema tool version argv seed target phases classes totals latency lag
        adherence intervals servers agents server_stats checks valid)) {
        like($text, qr/^ "$key": /m, "the JSON has $key");
    }
    like($text, qr/^ "phases": \[\{\s+"name": "load",.*"warmup",.*"measure"/ms, 'its phases');
    my ($began) = $text =~ /^ "began_s": ([\d.]+),/m;
    cmp_ok($began, '>=', $around[0], 'the time of day when it began');
    cmp_ok($began, '<=', $around[1] + 1, '... is before it has ended');
}

# ---- signals -----------------------------------------------------------------------------

{
    # While it connects to a server that says nothing to its greeting, or stores its records.
    my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8, Timeout => 60) or die "listen: $!";
    my $address = '127.0.0.1:' . $mute->sockport;
    my $pid = start_mcload('-s', $address, '-t', '1');
    my $client = $mute->accept;
    kill 'INT', $pid;
    is(status_of($pid) >> 8, 2, 'interrupted while loading: status 2');
    is(read_file($err), "mcload: interrupted before the run: 0 of 10000 records stored\n", '... and a line');
    is(read_file($out), '', '... and no table');

    # Its first request has no answer: what came first is waited for, the second is not.
    $pid = start_mcload('-s', $address, '-t', '30', '--noload', '-r', '10');
    $client = $mute->accept;
    ok(read_line($client), 'a request');
    kill 'TERM', $pid;
    is(status_of($pid) >> 8, 3, 'interrupted in the run: status 3');
    like(read_file($out), qr/^INVALID: .*interrupted/m, '... and a report');

    # So does a terminal that hangs up, unless that is ignored.
    $pid = start_mcload('-s', $address, '-t', '30', '--noload', '-r', '10', '--json=' . scratch_dir() . '/hangup');
    $client = $mute->accept;
    ok(read_line($client), 'a request');
    kill 'HUP', $pid;
    is(status_of($pid) >> 8, 3, 'a hang-up: status 3');
    like(read_file($out), qr/^INVALID: .*interrupted/m, '... and a report');
    like(read_file(scratch_dir() . '/hangup'), qr/"interrupted"/, '... also in its file');
    {
        local $SIG{HUP} = 'IGNORE';
        $pid = start_mcload('-s', $address, '-t', '30', '--noload', '-r', '10');
    }
    $client = $mute->accept;
    ok(read_line($client), 'a request');
    kill 'HUP', $pid;
    put($client, "END\r\n");
    ok(read_line($client), 'with nohup it goes on');
    kill 'TERM', $pid;
    is(status_of($pid) >> 8, 3, '... until another signal');

    $pid = start_mcload('-s', $address, '-t', '30', '--noload', '-r', '10');
    $client = $mute->accept;
    ok(read_line($client), 'a request');
    kill 'INT', $pid;
    soon { kill 'INT', $pid; waitpid($pid, POSIX::WNOHANG()) == $pid } 'more signals end it';
    ok(($? & 127) == POSIX::SIGINT() || $? >> 8 == 3, '... at once, or with its report') or diag($?);
}

done_testing();
