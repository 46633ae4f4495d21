#!/usr/bin/env perl
# The server starts, tells its version and help, writes its pid and port files, becomes a
# daemon, and ends with status 0 on SIGTERM and SIGINT.
use MCTest;
use Time::HiRes qw(sleep);

my $dir = scratch_dir();

# -V and -h
my $run = run_program('-V');
is($run->{status}, 0, '-V exits 0');
my @lines = split /\n/, $run->{out};
if (is_ours()) {
    is($lines[0], 'memcached 1.6.45', '-V: first line');
    like($lines[1], qr/^memcached-qos \d+\.\d+/, '-V: second line is our own version');
    is(scalar(@lines), 2, '-V: two lines');
    is($run->{err}, '', '-V: nothing on stderr');
    for my $row (['1.6', '1.6.45'], ['1.4', '1.4.39'], ['native', '1.6.45']) {
        $run = run_program("--compat=$row->[0]", '-V');
        is((split /\n/, $run->{out})[0], "memcached $row->[1]", "--compat=$row->[0] -V: first line");
    }
    is((split /\n/, run_program('--version')->{out})[0], 'memcached 1.6.45', '--version is -V');
    has(run_program('memcached', '-V'), 'its name as the first argument', out => qr/^memcached 1\.6\.45\n/, err => '');
    has(run_program('-V', 'memcached'), 'its name behind an option',
        err => "memcached: not an option, ignored: memcached\n");
}
$run = run_program('-h');
is($run->{status}, 0, '-h exits 0');
like($run->{out}, qr/^memcached 1\.[46]\.\d+/, '-h: first line') ;
unlike($run->{out}, qr/^memcached 1\.1\./, '-h: not taken for 1.1');
if (is_ours()) {
    has($run, '-h names --pin, -h names --qps-limit, -h names --compat, -h: nothing on stderr',
        out => qr/--pin\b/, out => qr/--qps-limit\b/, out => qr/--compat\b/, err => '');
    is((grep { length > 120 } split /\n/, $run->{out}), 0, '-h: no line is longer than 120');
}

each_profile(sub ($profile) {
    for my $signal (qw(TERM INT)) {
        my ($server, $s) = serve($profile);
        exchange($s, "version\r\n", VERSION_REPLY($profile));
        $server->stop($signal);
        is(read_bytes($s, 1), '', 'the client sees the end');
    }

    # pid file without -d
    my $pid_file = "$dir/pid.$profile";
    my $server = serve($profile, '-P', $pid_file);
    soon { -s $pid_file } '-P writes a pid file';
    my $text = read_file($pid_file);
    is($text, $server->pid . "\n", 'with the pid and a newline');
    ok(!-e "$pid_file.tmp", 'and no temporary file is left');
    is(mem_stats($server->connect)->{pid}, $server->pid, 'stats pid agrees');
    is(scalar(@{$server->{ports}}), 1, 'one line in the port file');
    is($server->{ports}[0][0], 'TCP INET', 'of the TCP socket; UDP is off');
    isnt($server->port, 11211, '-p -1 takes a free port');
    $server->stop;

    # daemon
    my $port_file = "$dir/port.daemon.$profile";
    $pid_file = "$dir/pid.daemon.$profile";
    {
        local $ENV{MEMCACHED_PORT_FILENAME} = $port_file;
        $run = run_program('-d', '-P', $pid_file, '-l', '127.0.0.1', '-p', '-1', @AS_ROOT,
            is_ours() ? "--compat=$profile" : ('-U', '0'));
    }
    is($run->{status}, 0, '-d: the parent exits 0');
    soon { -s $pid_file } '-d: pid file';
    my ($pid) = read_file($pid_file) =~ /^(\d+)\n$/;
    ok($pid && kill(0, $pid), '-d: the process lives');
    my ($port) = read_file($port_file) =~ /^TCP INET: (\d+)$/m;
    my $fake = bless {profile => $profile, port => $port, pid => 0, owner => $$}, 'MCTest::Server';
    my $s = $fake->connect;
    exchange($s, "version\r\n", VERSION_REPLY($profile), '-d: serves');
    is(mem_stats($s)->{pid}, $pid, "-d: stats pid is the daemon's");
    kill 'HUP', $pid;
    exchange($s, "version\r\n", VERSION_REPLY($profile), '-d: SIGHUP does not kill it');
    kill 'TERM', $pid;
    soon { !kill 0, $pid } '-d: ends on SIGTERM';

    # spellings of arguments
    if (is_ours()) {
        for my $case (['-m 64', 67108864], ['-m65', 68157440], ['-m', 66, 69206016],
            ['--memory-limit=67', 70254592], ['-m', '64m', 67108864], ['-m64MB', 67108864], ['--memory-limit=1g', 1073741824]) {
            my @args = @$case;
            my $want = pop @args;
            my $odd = eval { start_server(profile => $profile, args => \@args) };
            diag($@) if !$odd;
            ok($odd, "starts with the arguments '@args'") or next;
            is(mem_stats($odd->connect)->{limit_maxbytes}, $want, 'and takes them');
            $odd->stop;
        }
    }
    for my $case (
        ['maxconns', 200, '-c', '200', '-t', '2'], ['num_threads', 2, '-t', '2'],
        ['tcp_backlog', 8675, '-b', '8675'], ['cas_enabled', 'no', '-C'],
        ['evictions', 'off', '-M'], ['reqs_per_event', 7, '-R', '7'],
        ['growth_factor', '1.50', '-f', '1.5'], ['chunk_size', 100, '-n', '100'],
        ['item_size_max', 2097152, '-m', '64', '-I', '2m'], ['verbosity', 2, '-vv'],
        ['verbosity', 1, '-v'], ['binding_protocol', 'ascii', '-B', 'ascii'],
        ['maxconns_fast', 'yes', '-o', 'maxconns_fast'], ['hashpower_init', 17, '-o', 'hashpower=17'],
        ['flush_enabled', 'no', '-F'])
    {
        my ($name, $want, @args) = @$case;
        my $odd = eval { start_server(profile => $profile, args => \@args) };
        diag($@) if !$odd;
        ok($odd, "starts with @args") or next;
        is(mem_stats($odd->connect, 'settings')->{$name}, $want, "@args: $name");
        $odd->stop;
    }
});

done_testing();
