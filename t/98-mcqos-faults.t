#!/usr/bin/env perl
# mcqos and servers that are none: silence, garbage, endless lines, half an answer, the end in the
# middle of it. It ends in time, with the exit status that its manual has, and says what is wrong;
# nothing that a terminal would obey is passed on.
use MCTest;
use MCQos;
use JSON::PP;

# A server that gives these answers, one for each line that it is asked, then does as told: 'close',
# or 'wait' for the client to leave. Its address.
sub fake($then, @answers) { return fakes($then, \@answers); }

# Likewise of several connections, one behind the other.
sub fakes($then, @connections) {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
    my $pid = in_child(sub {
        $SIG{PIPE} = 'IGNORE';
        for my $answers (@connections) {
            my $client = $listener->accept;
            for my $answer (@$answers) {
                defined(my $line = <$client>) or last;
                $client->syswrite(ref $answer ? $answer->() : $answer);
            }
            1 while $then eq 'wait' && defined <$client>;
        }
    });
    return '127.0.0.1:' . $listener->sockport;
}

my $version = "VERSION 1.6.45\r\n";
my @rows = ( # status, complaint, then, answers, command
    [2, qr/closed the connection before the end of its answer/, 'close', [''], 'ping'],
    [2, qr/closed the connection before the end/, 'close', ['VERSION 1.6'], 'ping'],
    [2, qr/no answer from 127\.0\.0\.1:\d+ within 0\.3 s/, 'wait', [], 'ping'],
    [2, qr/no answer from .* within 0\.3 s/, 'wait', ['VERS'], 'ping'],
    [1, qr/answers "version" with: HTTP\/1\.1 400 Bad Request$/, 'wait', ["HTTP/1.1 400 Bad Request\r\n"], 'ping'],
    [1, qr/answers "version" with: \?\[2J\?\]0;x\?\?$/, 'wait', ["\e[2J\e]0;x\a\xff\n"], 'ping'],
    [1, qr/answers "version" with: ERROR Too many open connections/, 'close', ["ERROR Too many open connections\r\n"], 'ping'],
    [2, qr/a line of more than 65536 bytes: it is no memcached/, 'wait', ['x' x 70000], 'ping'],
    [0, '', 'wait', [$version], 'ping'],
    [0, '', 'wait', ["VERSION 1.6.45\n"], 'ping'],
    [1, qr/answers "stats" with: garbage/, 'wait', ["STAT pid 1\r\ngarbage\r\n"], 'status', '-i', 0],
    [2, qr/closed the connection before the end/, 'close', ["STAT pid 1\r\n"], 'status', '-i', 0],
    [2, qr/closed the connection before the end/, 'close', ["STAT pid 1\r\nEND\r\n", "STAT server_version 1\r\n"], 'status', '-i', 0],
    [1, qr/does not know "stats qos"/, 'close', ["ERROR\r\n"], 'limit'],
    [1, qr/does not know "qos reload": it is not memcached-qos, or too old/, 'wait', ["ERROR\r\n"], 'reload'],
    [1, qr/does not know "qos save"/, 'wait', ["CLIENT_ERROR usage: qos show|repin ...\r\n"], 'save'],
    [1, qr/refuses "qos reload": there is no file/, 'wait', ["CLIENT_ERROR there is no file\r\n"], 'reload'],
    [1, qr/refuses "qos reload": nothing has changed/, 'wait', ["WRONG f:1: x\r\nCLIENT_ERROR nothing has changed\r\n"], 'reload'],
    [0, '', 'wait', ["OK\r\n"], 'reload'],
    [2, qr/closed the connection/, 'close', ["CHANGED a 1 -> 2\r\n"], 'reload'],
    [1, qr/"lru_crawler metadump all" with: BUSY/, 'wait', ["BUSY currently processing\r\n"], 'dump', 'keys'],
    [2, qr/closed the connection/, 'close', ["OK\r\nkey=a exp=-1\r\n", ''], 'dump', 'keys'],
    [2, qr/closed the connection/, 'close', ["OK\r\n"], 'watch'],
    [1, qr/has no log of that name: fetchers/, 'close', ["ERROR\r\n"], 'watch', "\e[2J"],
    [1, qr/wants a password .* --admin/, 'close', ["CLIENT_ERROR unauthenticated\r\n"], 'limit'],
    [1, qr/refuses "qos qps_limit \?\[2J": no/, 'wait', [("END\r\n") x 2, "CLIENT_ERROR no\r\n"], 'limit', "\e[2J"],
    [1, qr/refuses "watch x": no/, 'close', ["CLIENT_ERROR no\r\n"], 'watch', 'x'],
    [1, qr/answers "stats" with: garbage/, 'close', ["garbage\r\n"], 'dump', 'stats'],
);
for my $row (@rows) {
    my ($status, $complaint, $then, $answers, @command) = @$row;
    # What is to come too late has a short time; the rest has as long as a busy machine takes.
    my $timeout = $complaint =~ /within/ ? 0.3 : 60;
    my $run = mcqos('-s', fake($then, @$answers), '--timeout', $timeout, @command);
    has($run, "@command: $complaint", status => $status, err => $complaint);
    unlike($run->{out} . $run->{err}, qr/[^\n\x20-\x7e]/, 'nothing that a terminal obeys');
}

# A line at a time, for ever: the answer as a whole has a time.
{
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
    my $pid = in_child(sub {
        $SIG{PIPE} = 'IGNORE';
        my $client = $listener->accept;
        my $line = <$client>;
        1 while $client->syswrite("STAT a 1\r\n");
    });
    my $run = mcqos('-s', '127.0.0.1:' . $listener->sockport, '--timeout', 0.5, '-i', 0, 'status');
    like($run->{err}, qr/no answer from .* within 0\.5 s|answers "stats" with: STAT a 1/, 'an endless answer ends');
    isnt($run->{status}, 0, 'and is none');
    kill 'TERM', $pid;
}

# Another memcached: what the plain statistics have.
{
    my $stats = join '', map { "STAT $_\r\n" } 'uptime 100', 'version 1.6.18', 'curr_connections 3',
        'get_hits 30', 'get_misses 10', 'cmd_get 40', 'cmd_set 60', 'bytes 1048576', 'limit_maxbytes 67108864',
        'evictions 0', 'threads 4', 'rejected_connections 0';
    my $at = fake('wait', "${stats}END\r\n", "ERROR\r\n");
    has(mcqos('-s', $at, '-i', 0, 'status'), 'another memcached', status => 0, err => '',
        out => "$at: memcached 1.6.18, without QoS, up 1 min, 3 connections\n"
            . "load      1 requests a second (since the start); 75 % of gets hit\n"
            . "memory    1 of 64 MB in use; 0 evictions a second\n");
    mcqos_says(1, '', qr/is another memcached: it has no classes/, '-s', fake('wait', "${stats}END\r\n", "ERROR\r\n"), '-i', 0, $_)
        for 'class', 'pin';
    my ($json) = mcqos_json('-s', fake('wait', "${stats}END\r\n", "END\r\n"), '-i', 0, 'status');
    is($json->{version}, '1.6.18', 'as JSON');
    ok(!$json->{has_qos}, 'which says so');
    is($json->{$_}, undef, "what is not known is null: $_") for qw(headroom_pct qps_limit qps_action cpu_limit slo);
    is_deeply([map { [$_->{cpu}, $_->{place}] } @{$json->{workers}}], [([undef, '']) x 4], 'nor is where workers are');
}

# Counters that were reset between two samples.
{
    my ($first, $second) = map { "STAT pid 7\r\nSTAT uptime 100\r\nSTAT version 1.6.18\r\n$_\r\nSTAT cmd_set 0\r\nEND\r\n" }
        "STAT get_hits 500\r\nSTAT get_misses 5", "STAT get_hits 20\r\nSTAT get_misses 7";
    has(mcqos('-s', fakes('close', map { [$_, "ERROR\r\n"] } $first, $second), '-i', 0.01, 'status'), 'counters that were reset',
        status => 0, err => '', out => qr/^load .*; hits were reset$/m);
}

# A command is one line.
for my $words (["5k\r\nx"], ['x' x 300], ['x' x 200, 'y' x 200]) {
    mcqos_says(64, '', qr/a command has less than 300 bytes, and no line end in it$/, '-s', fake('wait', ''), $_, @$words) for 'limit', 'watch';
}

# A server that closes what stands still, and one that was started again between two samples: what the first one
# has counted is of another process, also where that has the same number.
for (['pid 7', 'uptime 101', qr/^load .* requests a second \(over \d/m], ['pid 8', 'uptime 101', qr/^load .*\(since the start\)/m],
    ['pid 7', 'uptime 99', qr/^load .*\(since the start\)/m]) {
    my ($pid, $uptime, $load) = @$_;
    my ($first, $second) = map { join '', map({ "STAT $_\r\n" } @$_, 'version 1.6.18', 'cmd_set 0'), "END\r\n" }
        ['pid 7', 'uptime 100', 'cmd_get 50'], [$pid, $uptime, 'cmd_get 100'];
    has(mcqos('-s', fakes('close', map { [$_, "ERROR\r\n"] } $first, $second), '-i', 0.01, 'status'),
        "then $pid, $uptime", status => 0, err => '', out => $load);
}

# Many workers with the same trouble are one line.
{
    my $pin = join '', map { "STAT pin_worker_${_}_sched_wait_ns " . ($_ == 5 ? 0 : 2e9 + $_ * 1e8) . "\r\nSTAT pin_worker_${_}_drift 1\r\n" } 0 .. 39;
    my @answers = ("STAT uptime 10\r\nSTAT threads 40\r\nEND\r\n", "STAT server_version 1\r\nEND\r\n", "END\r\n", "END\r\n",
        "${pin}STAT sched_errors 1\r\nEND\r\n", "limit off\r\nslo off\r\nqos show\r\nEND\r\n");
    my $json = mcqos_json('-s', fake('wait', @answers), '-i', 0, 'status');
    is_deeply([map { "$_->{what}: $_->{text}" } @{$json->{findings}}[0 .. 2]], [
        'cpu_wait: workers 0-4,6-39 wait for a CPU, up to 59 % of the time: other programs run there; move them, or see --sched, --balance',
        'moved: workers 0-39 were moved off their CPUs from outside (taskset, cpuset)',
        'sched_errors: the kernel refuses --sched: it needs CAP_SYS_NICE, LimitNICE= or LimitRTPRIO='], 'findings of many workers');
}

# Figures that cannot be: the kernel accounts a wait when it is over, so that one second may have those of
# several; and the capacity that a server expects may be less than what it serves.
{
    my @answers = ("STAT uptime 10\r\nSTAT threads 1\r\nEND\r\n", "STAT server_version 1\r\nSTAT qos_headroom_pct 97\r\n"
        . "STAT qos_capacity_now 90\r\nSTAT qps_delayed_bulk 20\r\nSTAT qps_delay_p99_us 5000\r\nEND\r\n",
        "STAT class_small_served 1000\r\nEND\r\n", "END\r\n", "STAT pin_worker_0_sched_wait_ns 22800000000\r\nEND\r\n",
        "limit off\r\nslo off\r\nqos show\r\nEND\r\n");
    has(mcqos('-s', fake('wait', @answers), '-i', 0, 'status'), 'figures that cannot be', status => 0,
        out => qr/^! requests wait for a limit: bulk 2 a second \(p99 5\.0 ms\); a higher one \(mcqos\n  limit\) would admit more$/m,
        out => qr/^! worker 0 waits for a CPU, up to 100 % of the time: /m,
        out => qr/^headroom +97 % of the workers' time$/m);
}

# What a higher limit would change: what waits needs time that is left; what is refused takes time now.
for (['qps_delayed_bulk 20', 97, 90, 'limit_delays', qr/would admit more$/],
    ['qps_delayed_bulk 20', 3, 90, 'limit_delays', qr/; a higher limit would not help: the workers have no time left$/],
    ['qps_delayed_bulk 20', 50, 200, 'limit_delays', qr/would admit up to 100 more$/],
    ['qps_rejected_small 5000', 0, 600, 'limit_refuses', qr/: small 500 a second; a higher one \(mcqos limit\) would admit up to 500 more$/],
    ['qps_rejected_small 5000', 50, 300, 'limit_refuses', qr/would admit up to 200 more$/]) {
    my ($counter, $headroom, $capacity, $what, $text) = @$_;
    my @answers = ("STAT uptime 10\r\nSTAT threads 1\r\nEND\r\n", "STAT server_version 1\r\nSTAT qos_headroom_pct $headroom\r\n"
        . "STAT qos_capacity_now $capacity\r\nSTAT $counter\r\nEND\r\n", "STAT class_small_served 1000\r\nEND\r\n", "END\r\n", "END\r\n",
        "limit off\r\nslo off\r\nqos show\r\nEND\r\n");
    my $json = mcqos_json('-s', fake('wait', @answers), '-i', 0, 'status');
    my ($finding) = grep { $_->{what} eq $what } @{$json->{findings}};
    like($finding && $finding->{text}, $text, "$counter, headroom $headroom, capacity $capacity");
}

# What a reload answers is passed on.
{
    my @lines = ("CHANGED qps-limit 1 -> 2", "RESTART threads f:3");
    mcqos_says(0, join("\n", @lines, "OK\n"), '', '-s', fake('wait', join("\r\n", @lines, "OK\r\n")), 'reload');
    my $json = mcqos_json('-s', fake('wait', join("\r\n", @lines, "OK\r\n")), 'reload');
    is_deeply($json->{lines}, \@lines, 'as JSON');
    ok($json->{is_done}, 'which says that it was done');
    $json = mcqos_json('-s', fake('wait', "$lines[1]\r\nCLIENT_ERROR nothing has changed\r\n"), 'reload');
    ok($json->{lines} && !$json->{is_done}, 'or not');
}

# ping as JSON, whatever happens.
{
    my ($json, $run) = mcqos_json('-s', fake('wait', $version), 'ping');
    ok($json->{answered} && $json->{is_well}, 'it is there');
    ok(JSON::PP::is_bool($json->{$_}), "$_ is true or false") for qw(answered is_well);
    cmp_ok($json->{latency_us}, '>', 0, 'and how long that took');
    ($json, $run) = mcqos_json('-s', fake('close', ''), 'ping');
    ok(!$json->{answered}, 'it is not there');
    like($json->{error}, qr/closed the connection/, 'and why');
    is($json->{latency_us}, undef, 'no latency');
    is($run->{status}, 2, 'exit status');
}
my $port = free_port();
mcqos_says(2, '', qr/cannot connect to 127\.0\.0\.1 port $port: Connection refused; is the server running/,
    '-s', "127.0.0.1:$port", 'ping');
mcqos_says(2, '', qr/\[::1 is no server: write HOST, HOST:PORT/, '-s', '[::1', 'ping');
mcqos_says(2, '', qr/is no server: write HOST, HOST:PORT/, '-s', $_, 'ping') for '127.0.0.1:65536', '127.0.0.1:0', '127.0.0.1:', '';
mcqos_says(2, '', qr/ is no server, .*: write HOST.* with a slash/, '-s', $_, 'ping') for '::1:11211', 'a,b', '127.0.0.1:no-such-port';
mcqos_says(2, '', qr/has at most 107 bytes/, '-s', '/' . 'x' x 200, 'ping');
# A listener that takes no more is waited for.
{
    my $path = scratch_dir() . '/full';
    my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 1) or die "listen: $!";
    my @waiting;
    while (@waiting < 100) {
        socket my $client, Socket::AF_UNIX(), Socket::SOCK_STREAM() | Socket::SOCK_NONBLOCK(), 0 or die "socket: $!";
        connect $client, Socket::pack_sockaddr_un($path) or last;
        push @waiting, $client;
    }
    mcqos_says(2, '', qr/cannot connect to .*full: Connection timed out/, '-s', $path, '--timeout=0.2', 'ping');
    # Signals that interrupt it do not make it shorter.
    my $err = scratch_dir() . '/interrupted';
    my $pid = in_child(sub {
        open STDERR, '>', $err;
        exec @MCQOS, '-s', $path, '--timeout=0.5', 'ping';
    });
    until (waitpid($pid, POSIX::WNOHANG()) == $pid) {
        for my $signal (qw(STOP CONT)) {
            kill $signal, $pid;
            select undef, undef, undef, 0.002;
        }
    }
    is($? >> 8, 2, 'interrupted: status 2');
    like(read_file($err), qr/cannot connect to .*full: Connection timed out/, '... for the same reason');
}
done_testing();
