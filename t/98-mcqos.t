#!/usr/bin/env perl
# mcqos against a real server, over TCP and a UNIX socket, in each profile: what it shows, sets and
# refuses, as text and as JSON.
use MCTest ':ours';
use MCQos;
use Cwd 'abs_path';
use File::Copy 'copy';
use JSON::PP;

my $dir = scratch_dir();
plan skip_all => 'mcqos speaks no TLS' if $ENV{MCTEST_TLS};

for my $profile (profiles(), 'native') {
    my ($server, $s) = serve($profile, '-t', '2', '--qps-limit=100k', '-m', '100', '-o', 'lru_crawler');
    my @at = ('-s', $server->at);
    exchange($s, join('', map { "set k$_ 0 0 1\r\nx\r\n" } 1 .. 3), "STORED\r\n" x 3);
    exchange($s, "get k1 k2 none\r\n", "VALUE k1 0 1\r\nx\r\nVALUE k2 0 1\r\nx\r\nEND\r\n");

    my $version = VERSION_REPLY($profile) =~ s/VERSION (\S+)\r\n/$1/r;
    my $run = mcqos(@at, 'status', '-i', 0);
    has($run, "[$profile] status", status => 0, err => '',
        out => qr/\A127\.0\.0\.1:\d+: memcached-qos \S+ \(memcached \Q$version\E\), up .+, \d+ connections?\n/);
    like($run->{out}, qr/^load .* requests a second \(since the start\); 67 % of gets hit$/m, 'load');
    like($run->{out}, qr/^memory .* of 100 MB in use; 0 evictions a second$/m, 'memory');
    like($run->{out}, qr/^QoS       limit 100000 \(burst 200\); action delay, unit cmd; slo off$/m, 'limits');
    like($run->{out}, qr/^headroom .* of the workers' time(?:; about \S+ requests a second at most)?$/m, 'headroom');
    like($run->{out}, qr/^workers   2, not pinned; busiest: [01] \(.* busy, .* without CPU\)$/m, 'workers');
    like($run->{out}, qr/^class +served\/s +queued\/s.*\nsmall .*\nwrite /m, 'classes that were used');
    cmp_ok($run->{out} =~ tr/\n//, '<=', 24, 'a screen at most');
    my @long = grep { length > 80 } split /\n/, $run->{out};
    is("@long", '', 'no line is longer than a terminal');

    my $json = mcqos_json(@at, 'status', '--interval=0.01');
    is($json->{mcqos}, 1, "[$profile] JSON: the version of its form");
    ok(JSON::PP::is_bool($json->{$_}), "$_ is true or false") for qw(has_qos since_start);
    is($json->{version}, $version, 'version');
    ok(!$json->{since_start}, 'over the interval');
    cmp_ok($json->{seconds}, '>=', 0.01, 'which was that long');
    is_deeply([map { $_->{class} } @{$json->{classes}}], [qw(control small write bulk background)], 'all classes');
    is_deeply([map { "$_->{worker} $_->{place}" } @{$json->{workers}}], ['0 free', '1 free'], 'both workers');
    is_deeply([sort keys %$json], [qw(bytes capacity_per_s classes connections cpu_limit evictions_per_s
            findings has_qos headroom_pct hit_pct limit_bytes mcqos qps_action qps_limit requests_per_s
            seconds server server_version since_start slo slo_level_pct uptime_s version workers)],
        'the members that there are');

    mcqos_says(0, qr/^qps_limit +100000$/m, '', @at, 'limit');
    mcqos_says(0, "qps_limit                100000 -> 50000\nqps_burst                200 -> 100\n", '',
        @at, 'limit', '50k');
    mcqos_says(0, "OK, and all settings are as they were\n", '', @at, 'limit', '50k');
    mcqos_says(0, "qps_limit_bulk           off -> 2000\nqps_burst_bulk           0 -> 32\n", '',
        'limit', 'bulk', '2k', '32', @at);
    mcqos_says(0, "qps_limit_peer           off -> 10\nqps_burst_peer           0 -> 16\n", '',
        @at, 'limit', 'peer', '10');
    mcqos_says(0, "qps_action               delay -> error\n", '', @at, 'limit', 'action', 'error');
    mcqos_says(0, "cpu_limit                off -> 80%\n", '', @at, 'limit', 'cpu_limit', '80%');
    mcqos_says(0, "slo                      off -> p95:1000us\n", '', @at, 'slo', 'p95:1ms');
    mcqos_says(0, "slo_bulk                 off -> p95:9000us\n", '', @at, 'slo', 'bulk', 'p95:9ms');
    like(mcqos(@at, 'status', '-i', 0)->{out} =~ s/\n {10}/ /gr, qr/^QoS       limit 50000 \(burst 100\), bulk 2000 \(burst 32\), peer 10 \(burst 16\), cpu 80%; action error, unit cmd; slo p95:1000us, bulk p95:9000us$/m,
        'all limits and targets');
    is_deeply(mcqos_json(@at, 'limit', 'off')->{changed},
        {qps_limit => {before => '50000', after => 'off'}, qps_burst => {before => '100', after => '0'}},
        'a change as JSON');
    is(mcqos_json(@at, 'slo')->{settings}{slo}, 'p95:1000us', 'settings as JSON');
    is(mem_stats($s, 'qos')->{qps_limit}, 'off', 'it is so on the server');

    # The server decides, and its sentence is passed on.
    mcqos_says(1, '', qr/refuses "qos qps_limit many": a limit is a number from 1 to 1000m, or off/, @at, 'limit', 'many');
    mcqos_says(1, '', qr/refuses "qos slo p200:1ms": /, @at, 'slo', 'p200:1ms');
    mcqos_says(1, '', qr/refuses "qos peer": usage: qos peer <n\|off> \[burst\]/, @at, 'limit', 'peer');
    mcqos_says(64, '', qr/"nonsense" is not known: mcqos pin repin/, @at, 'pin', 'nonsense');
    mcqos_says(64, '', qr/usage: mcqos class/, @at, 'class', 'bulk');

    mcqos_says(0, qr/\Aclass .*\ncontrol .*\nsmall .*\nwrite .*\nbulk .*\nbackground .*\n\z/, '', @at, 'class', '-i', 0);
    mcqos_says(0, qr/\Aworker .*\n0 +any .* free\n1 +any .* free\n\z/, '', @at, 'pin', '-i', 0);
    mcqos_says(0, "OK, and all settings are as they were\n", '', @at, 'pin', 'repin');
    is_deeply([map { scalar @{mcqos_json(@at, '-i', 0, $_->[0])->{$_->[1]}} } ['class', 'classes'], ['pin', 'workers']],
        [5, 2], 'tables as JSON');
    mcqos_says(0, qr/\A127\.0\.0\.1:\d+: memcached \Q$version\E answers in \d+ us\n\z/, '', @at, 'ping');

    # Dumps: the profile 1.4 does not say where the keys end.
    is_deeply([sort map { /^key=(k\d) exp=/ } split /\n/, mcqos(@at, 'dump', 'keys')->{out}], [qw(k1 k2 k3)],
        "[$profile] dump keys");
    is_deeply([sort map { decode_json($_)->{key} } split /\n/, mcqos(@at, '--json', 'dump', 'keys')->{out}],
        [qw(k1 k2 k3)], 'as JSON');
    exchange($s, "flush_all\r\n", "OK\r\n");
    mcqos_says(0, '', '', @at, 'dump', 'keys') if $profile ne '1.4';
    mcqos_says(0, qr/\A\[general\]\npid \d+\n.*^\[qos\]\nserver memcached-qos\n.*^\[pin\]\n/ms, '', @at, 'dump', 'stats');
    is(mcqos_json(@at, 'dump', 'stats')->{stats}{general}{version}, $version, 'statistics as JSON');
    mcqos_says(64, '', qr/dump keys or dump stats, not "all"/, @at, 'dump', 'all');
}

# What waits or is refused is said, with what a higher limit would change.
{
    my ($server, $s) = serve('-t', '1', '--qps-limit=1,burst=1', '--qps-limit-action=error');
    my $refused = "SERVER_ERROR 307 busy\r\n";
    exchange($s, "get a\r\nget a\r\nget a\r\n", "END\r\n$refused$refused");
    has(mcqos('-s', $server->at, 'status', '-i', 0), 'refused', status => 0,
        out => qr/^! requests are refused by a limit: small \S+ a second; a higher (?:one \(mcqos limit\) would\n  admit|one|limit)/m);
    my $json = mcqos_json('-s', $server->at, 'status', '-i', 0);
    ok((grep { $_->{what} eq 'limit_refuses' } @{$json->{findings}}), 'as JSON');
    unlike(mcqos('-s', $server->at, 'status', '-i', 0)->{out}, qr/^OK/m, 'not OK');
}

# A UNIX socket, the live log, and its end.
{
    my $path = "$dir/socket";
    my $server = serve('-s', $path, {path => $path});
    my $s = $server->connect;
    mcqos_says(0, qr/\A\Q$path\E: memcached-qos /, '', '-s', $path, '-i', 0, 'status');
    mcqos_says(0, qr/^qps_limit +off -> 7$/m, '', '-s', $path, 'limit', '7');
    exchange($s, "qos qps_limit off\r\n", "OK\r\n");
    for my $json (0, 1) {
        my $out = "$dir/watch$json";
        my $pid = in_child(sub {
            open STDOUT, '>', $out;
            exec @MCQOS, '-s', $path, $json ? '--json' : (), 'watch', 'mutations', 'fetchers';
        });
        soon { put($s, "set w 0 0 1\r\nx\r\n"); read_line($s); read_file($out) =~ /\n/ } 'the live log has a line';
        my ($first) = read_file($out) =~ /\A(.*)\n/;
        $json ? is(decode_json($first)->{key}, 'w', 'as JSON') : like($first, qr/^ts=\S+ gid=\d+ type=item_\w+ key=w /, 'as it comes');
        kill 'INT', $pid;
        waitpid $pid, 0;
    }
    mcqos_says(1, '', qr/has no log of that name: fetchers, mutations/, '-s', $path, 'watch', 'nonsense');
}
mcqos_says(2, '', qr{cannot connect to \Q$dir\E/none: No such file}, '-s', "$dir/none", 'status');

# What was built without it is told.
mcqos_says(64, '', qr/top needs a terminal|built without ncurses/, '-s', serve()->at, 'top');

# Without control rights nothing is changed, and the remedy is in the sentence.
{
    my $server = serve('--control=marked');
    mcqos_says(1, '', qr/not from this connection: .*--control/, '-s', $server->at, 'limit', '5');
    mcqos_says(0, qr/^qps_limit +off$/m, '', '-s', $server->at, 'limit');
}

# The doctor: of the server that is asked, of a process, of a server that is to run.
{
    my ($binary) = server_binary();
    my $server = serve('-t', '3', '-I', '32m');
    my @doctor = ("--memcached=$binary", '-s', $server->at, 'doctor');
    for my $row ([[], 3, 'warn'], [[$server->pid], 3, 'warn'], [['--', '-t', 5], 5, 'good']) {
        my ($words, $workers, $level) = @$row;
        my ($json, $run) = mcqos_json(@doctor, @$words);
        my %found = map { $_->{name} => $_ } @{$json->{checks}};
        like($found{cpuset}{found}, qr/^$workers workers may use/, "doctor @$words: $workers workers");
        is($found{'item-size'}{level}, $level, '... and the settings');
        is($run->{status}, $json->{counts}{bad} + $json->{counts}{warn} > 0 ? 1 : 0, '... and the exit status');
    }
    like(mcqos(@doctor, 'all')->{out}, qr/^\d+ bad, .*^good     \S/ms, 'doctor all');
    mcqos_says(64, '', qr/--doctor takes all, json/, @doctor, 'nonsense');
    mcqos_says(64, '', qr{cannot start /nowhere: No such file or directory; --memcached=PATH}, '--memcached=/nowhere', 'doctor', '--', '-m', 5);
    mcqos_says(2, '', qr{cannot connect to .*; for a server that is to run: mcqos doctor -- OPTIONS}, '-s', "$dir/none", 'doctor');
}

# Before the server is installed it is that of the same build, or the one in PATH.
SKIP: {
    my ($installed) = mcqos('help', 'memcached')->{out} =~ m{\((/[^)]+)\)};
    skip 'a server is installed', 3 if -e $installed;
    my $name = $installed =~ s{.*/}{}r;
    for my $folder (qw(bin memcached mcqos)) {
        mkdir "$dir/$folder" or die "$dir/$folder: $!";
    }
    for my $path ("bin/$name", 'memcached/memcached') {
        write_file("$dir/$path", "#!/bin/sh\necho \"\$0 \$@\"\n");
        chmod 0755, "$dir/$path" or die "chmod: $!";
    }
    copy($MCQOS[-2], "$dir/mcqos/mcqos") or die "copy: $!";
    chmod 0755, "$dir/mcqos/mcqos" or die "chmod: $!";
    local $ENV{PATH} = "$dir/bin:$ENV{PATH}";
    local @MCQos::MCQOS = "$dir/mcqos/mcqos";
    mcqos_says(0, abs_path($dir) . "/mcqos/../memcached/memcached --doctor -m 5\n", '', 'doctor', '--', '-m', 5);
    unlink "$dir/memcached/memcached";
    mcqos_says(0, "$dir/bin/$name --doctor -m 5\n", '', 'doctor', '--', '-m', 5);
    SKIP: {
        skip 'built without hwloc', 4 if !has_hwloc();
        mcqos_says(0, qr/^\Q$name\E -l /m, '', 'layout', '1s1c1t');
    }
}

SKIP: {
    skip 'needs root, unshare and ip', 1 if $> != 0 || system('unshare --net ip link set lo up >/dev/null 2>&1') != 0;
    my $run = run_program({command => ['unshare', '--net', 'sh', '-ec', <<'SH', 'sh', server_binary(), "$dir/pid", @MCQOS]});
program=$1 pid=$2; shift 2
ip link set lo up; ip addr add 10.9.9.1/32 dev lo; ip addr add 10.9.9.2/32 dev lo
ip route replace local 10.9.9.2 dev lo table local src 10.9.9.1
"$program" -d -P "$pid" -u root -l 10.9.9.2 -p 11211
status=0; "$@" -s 10.9.9.2 doctor || status=$?
kill "$(cat "$pid")"; exit $status
SH
    has($run, 'a server elsewhere', status => 1, err => qr/10\.9\.9\.2 is not on this host: run memcached --doctor=\d+ there/);
}

# Passwords: asked for, given, wrong, missing; and not told to a server that has none.
{
    my $token = scratch_file('token', "user:pass word\nother:one\n");
    my $server = serve('-Y', $token);
    my @at = ('-s', $server->at);
    mcqos_says(1, '', qr/wants a password \(-Y\): --auth-file=FILE, .* the listener of --admin/, @at, 'status');
    mcqos_says(0, qr/^memory/m, '', @at, '--auth-file', $token, '-i', 0, 'status');
    mcqos_says(0, qr/answers in/, '', @at, "--auth-file=$token", 'ping');
    mcqos_says(0, qr/^qps_limit +off -> 1000$/m, '', @at, "--auth-file=$token", 'limit', '1000');
    mcqos_says(0, qr/answers in/, '', @at, '--auth-file', scratch_file('crlf', "user:pass word\r\n"), 'ping');
    my $wrong = scratch_file('wrong', "user:password\n");
    for my $command ('ping', 'status') {
        mcqos_says(1, '', qr/ refuses "\Q$wrong\E": authentication failure$/, @at, '--auth-file', $wrong, $command);
    }
    mcqos_says(64, '', qr/wants a password, and \Q$_\E has none: its first line is USER:PASSWORD/, @at, '--auth-file', $_, 'status')
        for "$token.none", scratch_file('empty', ''), scratch_file('no-colon', "user\n");
    # The password comes in one piece with the command: alone it would wait for the acknowledgement of that.
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
    my $pieces = scratch_dir() . '/pieces';
    in_child(sub {
        my $client = $listener->accept;
        $client->sysread(my $piece, 4096);
        $client->syswrite("CLIENT_ERROR unauthenticated\r\n");
        $client->sysread($piece, 4096);
        write_file($pieces, $piece);
        $client->syswrite("STORED\r\nVERSION 1.6.18\r\n");
        1 while $client->sysread($piece, 4096);
    });
    mcqos_says(0, qr/answers in/, '', '-s', '127.0.0.1:' . $listener->sockport, '--auth-file', $token, 'ping');
    is(read_file($pieces), "set mcqos 0 0 14\r\nuser pass word\r\n", 'one piece');
    my $sasl = serve('-S', {env => {MEMCACHED_SASL_PWDB => $wrong}});
    mcqos_says(2, '', qr/or does not speak the text protocol \(-S, -B binary: see the listener of --admin\)/,
        '-s', $sasl->at, '--timeout', 0.3, 'status');
    my $open = serve();
    mcqos_says(0, qr/answers in/, '', '-s', $open->at, '--auth-file', $token, 'ping');
    exchange($open->connect, "get mcqos\r\n", "END\r\n", 'a server without passwords is told none');
}

# Usage.
mcqos_says(64, '', qr/no command; there are: status top /);
mcqos_says(64, '', qr/no such command: statsu; there are: status top /, 'statsu');
mcqos_says(64, '', qr/\Amcqos: usage: mcqos status\n\z/, 'status', 'all');
mcqos_says(64, '', qr/unknown option --jsn; did you mean --json\?/, '--jsn', 'status');
mcqos_says(64, '', qr/an interval is a number of seconds/, '-i', 'x', 'status');
mcqos_says(0, qr/\Amcqos \d+\.\d+/, '', '--version');
mcqos_says(0, qr/^usage: mcqos .*^  status.*^  -s, --server=/ms, '', '--help');
is(join("\n", grep { length > 80 } split /\n/, mcqos('--help')->{out}), '', 'its lines fit a terminal');
mcqos_says(0, qr/\A  --units=DIR /, '', @$_) for ['--help=units'], ['help', 'units'];

mcqos_says(0, qr/\A  dump keys\|stats\n      all keys, or all statistics\n\z/, '', 'help', 'dump');

# The completion knows every command and option.
{
    my $completion = read_file("$TOP/scripts/packaging/completion/mcqos");
    my $help = mcqos('--help')->{out};
    my @words = ($help =~ /^  ([a-z]+)\b/mg, $help =~ /(?:^  |, )(--[a-z-]+)/mg);
    cmp_ok(scalar @words, '>', 20, 'commands and options are found');
    is(join(' ', grep { $completion !~ /(?<![\w-])\Q$_\E(?![\w-])/ } @words), '', 'and all are completed');
    is(system('bash', '-n', "$TOP/scripts/packaging/completion/mcqos"), 0, 'bash understands it')
        if system('command -v bash >/dev/null') == 0;
}
done_testing();
