#!/usr/bin/env perl
# The life of the process, as upstream's harnesses start it and as init systems do: order of
# the start, files, daemon, signals, shutdown, through a parent that forwards signals.
use MCTest ':ours';
use File::Spec;
use POSIX ':sys_wait_h';
use Time::HiRes qw(sleep);

my $dir = scratch_dir();

# Starts a command whose streams go to files, as a harness would.
sub launch($env, @command) {
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        $ENV{$_} = $env->{$_} for keys %$env;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir/launched.out";
        open STDERR, '>', "$dir/launched.err";
        exec {$command[0]} @command or POSIX::_exit(127);
    }
    return $pid;
}

# A parent that forwards signals and ends with its child's status.
my $timed = "$dir/timed";
open my $script, '>', $timed or die;
print $script <<'END';
my ($seconds, @command) = @ARGV;
my $pid;
$SIG{$_} = do { my $name = $_; sub { kill $name, $pid if $pid } } for qw(INT TERM HUP USR1);
$pid = fork; # and nothing else in the statement: within it Perl hears of signals
die if !defined $pid;
if (!$pid) { exec @command or exit 127 }
alarm $seconds;
$SIG{ALRM} = sub { kill 'KILL', $pid };
1 until waitpid($pid, 0) == $pid;
exit(($? & 127) ? 128 + ($? & 127) : $? >> 8);
END
close $script;

sub ends($pid, $want, $name) {
    my $status;
    my $gone = wait_until(sub { waitpid($pid, WNOHANG) == $pid ? (($status = $?), 1)[1] : 0 });
    kill 'KILL', $pid if !$gone;
    return is($gone ? $status : 'alive', $want, $name);
}

sub ask($sock, $command, $want, $name) {
    $sock->blocking(0);
    put($sock, $command);
    return is(read_bytes($sock, length $want), $want, $name);
}

each_profile(sub ($profile) {
    my @ours = (server_binary(), "--compat=$profile");
    my $version = VERSION_REPLY($profile);

    # over TCP, ports given, through the parent; SIGINT when the handle goes, SIGTERM to stop
    for my $signal (qw(INT TERM)) {
        my ($tcp, $udp) = (free_port(), free_port());
        my $pid = launch({}, $^X, $timed, 600, @ours, '-p', $tcp, '-U', $udp, @AS_ROOT,
            '-l', '127.0.0.1', '-o', 'relaxed_privileges');
        my $sock;
        soon { $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$tcp") } '-p and -U: up';
        ask($sock, "version\r\n", $version, 'and answers');
        kill $signal, $pid;
        ends($pid, 0, "SIG$signal through the parent: exit 0");
        is(read_file("$dir/launched.out"), pick($profile, '1.4' => 'Signal handled: ' . {INT => 'Interrupt',
            TERM => 'Terminated'}->{$signal} . ".\n", '1.6' => ''), 'what stdout says of it');
    }

    # over a UNIX socket
    my $path = "$dir/memcachetest.$profile";
    my $pid = launch({}, $^X, $timed, 600, @ours, @AS_ROOT, '-s', $path, '-o', 'relaxed_privileges',
        '-o', 'no_modern');
    my $sock;
    soon { $sock = IO::Socket::UNIX->new(Peer => $path) } '-s: up';
    ask($sock, "version\r\n", $version, 'and answers');
    is(mem_stats($sock, 'settings')->{domain_socket}, $path, 'settings domain_socket');
    kill 'TERM', $pid;
    ends($pid, 0, '-s: exit 0');
    ok(!-e $path, 'the socket is gone');

    # a daemon on any port
    for my $verbose ([], ['-vvv']) {
        my ($ports, $pids) = ("$dir/ports.$profile.@$verbose", "$dir/pids.$profile.@$verbose");
        my $parent = launch({MEMCACHED_PORT_FILENAME => $ports}, $^X, $timed, 600, @ours, '-A',
            '-p', '-1', '-U', '0', @AS_ROOT, '-d', '-P', $pids, @$verbose);
        ends($parent, 0, "-d @$verbose: the parent exits 0");
        soon { -s $pids } 'pid file';
        my ($port) = read_file($ports) =~ /^TCP INET: (\d+)$/m;
        ok($port, 'the port file was there before');
        ok(!-e "$ports.lck" && !-e "$pids.tmp", 'and nothing half done beside');
        my ($daemon) = read_file($pids) =~ /^(\d+)\n\z/;
        $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
        is(mem_stats($sock)->{pid}, $daemon, "stats pid is the daemon's");
        is(readlink "/proc/$daemon/cwd", '/', 'in the directory /') if -e "/proc/$daemon/cwd";
        is(readlink "/proc/$daemon/fd/1", @$verbose ? "$dir/launched.out" : '/dev/null',
            'its output') if -e "/proc/$daemon/fd/1";
        my ($group) = read_file("/proc/$daemon/stat") =~ /^\d+ \(.*\) \S+ \d+ (\d+)/;
        is($group, $daemon, 'leads a session of its own') if defined $group;
        kill 'HUP', $daemon;
        ask($sock, "version\r\n", $version, 'SIGHUP does not kill it');
        put($sock, "shutdown\r\n");
        is(read_bytes($sock, 1), '', 'shutdown: closed without a word');
        soon { !kill 0, $daemon } 'and the daemon ends';
        soon { !-e $pids } 'without its pid file';
    }

    # a pid file that names somebody alive, and one that does not
    for my $case (["$$\n", 'running process'], ["999999999\n", undef], ["junk\n", undef]) {
        my ($old, $warning) = @$case;
        my $pids = "$dir/old.$profile";
        write_file($pids, $old);
        my $server = serve($profile, '-P', $pids);
        soon { read_file($pids) eq $server->pid . "\n" } 'pid file overwritten';
        $warning ? log_says($server, qr/warning.*$warning/, 'and says so')
            : is($server->err, '', 'in silence');
        $server->stop;
        ok(!-e $pids, 'removed at the end');
    }

    # a graceful stop, by signal and by command
    my ($server, $s) = serve($profile, '-A');
    exchange($s, "set k 0 0 1\r\n1\r\n", "STORED\r\n");
    $server->stop('USR1', 'SIGUSR1: exit 0');
    for my $command ('shutdown', 'shutdown noreply', pick($profile, '1.4' => [],
        '1.6' => ['shutdown graceful', 'shutdown graceful noreply'])->@*)
    {
        ($server, $s) = serve($profile, '-A');
        exchange($s, "shutdown fooble\r\n", pick($profile, '1.4' => "ERROR\r\n",
                '1.6' => "CLIENT_ERROR invalid shutdown mode\r\n"), 'shutdown fooble');
        put($s, "$command\r\n");
        is(read_bytes($s, 1), '', "$command: closed without a word");
        ends($server->pid, 0, "$command: exit 0");
        $server->{pid} = 0;
    }
    ($server, $s) = serve($profile);
    exchange($s, "shutdown graceful\r\n", pick($profile, '1.4' => "ERROR\r\n",
            '1.6' => "SERVER_ERROR: shutdown not enabled\r\n"), 'graceful without -A');
    # nothing to reload: 1.6 goes on, 1.4 ends as it always has
    kill 'HUP', $server->pid;
    if ($profile eq '1.6') {
        exchange($s, "version\r\n", $version, 'SIGHUP without anything to reload');
        $server->stop;
    } else {
        ends($server->pid, POSIX::SIGHUP(), 'SIGHUP kills what is no daemon');
        $server->{pid} = 0;
    }

    # counters that start high, files that fit
    $server = serve($profile, '-m', '4098', '-c', '100', '-t', '2', {env => {T_MEMD_INITIAL_MALLOC => '4294967328',
            T_MEMD_SLABS_ALLOC => '0'}});
    cmp_ok(mem_stats($server->connect, 'slabs')->{total_malloced}, '>=', 4294967328, 'T_MEMD_INITIAL_MALLOC');
    my ($files) = read_file('/proc/' . $server->pid . '/limits') =~ /^Max open files\s+(\d+)/m;
    cmp_ok($files, '>=', 100, 'the limit on open files') if defined $files;
    my $groups = read_file('/proc/' . $server->pid . '/status');
    like($groups, qr/^Groups:\s*$/m, 'no supplementary groups') if $> == 0;
    $server->stop;

    # -v: what serves, where, and how
    $server = serve($profile, '-v', '-t', 2, '-U', '-1', '--pin=none', '--qps-limit=50k',
        '--slo=p95:500us', '--balance');
    my $of = pick($profile, '1.4' => '1.4.39', '1.6' => '1.6.45');
    my ($tcp_port, $udp_port) = map { $_->[1] } @{$server->{ports}};
    log_says($server, qr/^memcached: memcached-qos \S+ as memcached \Q$of\E \(profile \Q$profile\E\), listening on tcp:127\.0\.0\.1:$tcp_port, udp:127\.0\.0\.1:$udp_port$/m,
        '-v: version, profile, listeners');
    log_says($server, qr/^memcached: 2 workers on any CPU; limit 50000 \(burst 100\); action delay, unit cmd; slo p95:500us; classes on; steer rr, sched default, balance on$/m,
        '-v: workers and quality of service');
    $server->stop;
    $server = serve($profile, '-v', map { ('-l', "127.0.1.$_:" . free_port()) } 1 .. 10);
    log_says($server, qr/listening on (?:tcp:127\.\S+, ){7}tcp:\S+ and 3 more$/m, '-v: not endless');
    $server->stop;

    # -vv lists the classes, and tells what clients say and hear; a client cannot make lines
    $server = serve($profile, '-vv', '-Y', scratch_file('tokens', "user:password\n"));
    log_says($server, qr/^slab class   1: chunk size        96 perslab   10922$/m,
        '-vv lists the slab classes');
    like($server->err, qr/^<\d+ server listening on tcp:127\.0\.0\.1:\d+$/m, '-vv: the listener');
    $s = $server->connect;
    exchanges($s, ["set x 0 0 13\r\nuser password\r\n", "STORED\r\n"],
        ["set k 0 0 7\r\na\nsec\r\n\r\n", "STORED\r\n"],
        ["get k j\r\n", "VALUE k 0 7\r\na\nsec\r\n\r\nEND\r\n"], ["get \x1b[2J\rx\xff\\\r\n", "END\r\n"],
        ["fooble\n", "ERROR\r\n"]);
    put($s, "quit\r\n");
    is(read_bytes($s, 1), '', 'closed');
    log_says($server, qr/^<\d+ connection closed\.$/m, '-vv: the end');
    my $told = $server->err =~ s/^(?:slab class|.*listening|memcached: ).*\n//mgr =~ s/^([<>])\d+ /$1/mgr
        =~ s/^<version\n>VERSION .*\n//mgr;
    is($told, join("\n", '<new ascii client connection', '>STORED', '<set k 0 0 7', '>STORED', '<get k j',
        '>sending key k', '>END', '<get \x1b[2J\x0dx\xff\x5c', '>END', '<fooble', '>ERROR', '<quit', '<connection closed.', ''),
        '-vv: commands and replies, escaped, without values and passwords');
    put(my $talk = $server->connect, "set x 0 0 13\r\nuser password\r\nverbosity 0\r\n");
    is(read_bytes($talk, 12), "STORED\r\nOK\r\n", 'verbosity 0');
    my $before = $server->err;
    exchange($talk, "get k\r\n", "VALUE k 0 7\r\na\nsec\r\n\r\nEND\r\n");
    is($server->err, $before, '... nothing more is told');
    exchanges($talk, ["verbosity 2\r\n", "OK\r\n"], ["get later\r\n", "END\r\n"]);
    log_says($server, qr/^<\d+ get later\n>\d+ END$/m, 'verbosity 2: told again');
});

# ---- the pid file in odd places: what is there, and what is said -------------------------

# Starts and stops; what it said.
sub life_with_pid_file($profile, $path, $while = undef, @args) {
    my $server = serve($profile, '-P', $path, @args);
    $while->($server) if $while;
    $server->stop('TERM', "-P $path: exit 0");
    return $server->err;
}

each_profile(sub ($profile) {
    my $odd = "$dir/odd.$profile";
    mkdir $odd or die;
    my $victim = "$odd/victim";
    my $refill = sub { open my $fh, '>', $victim or die; print $fh "precious\n"; close $fh };
    my $has_pid = sub {
        my ($path) = @_;
        return sub {
            my $want = $_[0]->pid . "\n";
            soon { read_file($path) eq $want } "$path has the pid";
        };
    };
    $refill->();
    symlink $victim, "$odd/link" or die;
    is(life_with_pid_file($profile, "$odd/link", $has_pid->("$odd/link")), '', 'a link: silence');
    is(read_file($victim), "precious\n", '... is replaced, not followed');
    for my $kind ('symlink', 'link') {
        ok($kind eq 'link' ? link($victim, "$odd/x.tmp") : symlink($victim, "$odd/x.tmp"), "a $kind is in the way");
        is(life_with_pid_file($profile, "$odd/x", $has_pid->("$odd/x")), '', "$kind beside it: silence");
        is(read_file($victim), "precious\n", '... is not written to');
        ok(!-e "$odd/x" && !-l "$odd/x.tmp", '... and nothing is left');
    }
    # where it cannot be written: upstream goes on
    mkdir "$odd/folder" or die;
    POSIX::mkfifo("$odd/fifo", 0600) or die;
    for my $case (["$odd/folder", 'Is a directory'], ["$odd/fifo", 'File exists'],
        ["$odd/none/pid", 'No such file or directory'], ["$victim/pid", 'Not a directory'],
        ["$odd/" . 'x' x 5000, 'File name too long'])
    {
        my ($path, $why) = @$case;
        is(life_with_pid_file($profile, $path),
            "memcached: warning: cannot write the pid file $path (-P): $why\n",
            "the file and the reason: $why");
    }
    is(life_with_pid_file($profile, ''), "memcached: warning: there is no name of a pid file (-P)\n", 'no name');
    ok(-p "$odd/fifo" && -d "$odd/folder" && !-e "$odd/folder.tmp" && !-e "$odd/fifo.tmp",
        'what was there stays, and nothing else');
    # another server has it by now
    life_with_pid_file($profile, "$odd/y", sub {
        wait_until(sub { -s "$odd/y" });
        write_file("$odd/y", "$$\n");
    });
    is(read_file("$odd/y"), "$$\n", "another process's pid stays");
});

# by default it ends the start, also that of a daemon
for my $args ([], ['-d']) {
    my $run = run_program('-l', '127.0.0.1', '-p', free_port(), @AS_ROOT, '-P', "$dir/none/pid", @$args);
    is($run->{status}, 71, "@$args -P that cannot be written: exit 71");
    is($run->{err}, "memcached: cannot write the pid file $dir/none/pid (-P): No such file or directory\n", '... and says so');
    has(run_program('-l', '127.0.0.1', '-p', free_port(), @AS_ROOT, '-P', '', @$args), "@$args -P without a name", status => 71,
        err => "memcached: there is no name of a pid file (-P)\n");
}

# the port file likewise; an empty name is none, and with -s there is no port to write
{
    my ($unix, $none, $ports) = ("$dir/ports.sock", "$dir/none/ports", "$dir/ports.none");
    my $why = "failed to write the port file $none: No such file or directory\n";
    for my $profile (qw(native 1.6 1.4)) {
        for my $name ('', $none, $ports) {
            my $server = serve($profile, '-s', $unix, {path => $unix, env => {MEMCACHED_PORT_FILENAME => $name}});
            $server->stop('TERM', "$profile: -s and the port file '$name': exit 0");
            is($server->err, '', '... in silence');
        }
        ok(!-e $ports, "$profile: -s: no port file");
        my $port = free_port();
        local $ENV{MEMCACHED_PORT_FILENAME} = $none;
        my @args = ("--compat=$profile", '-l', '127.0.0.1', '-p', $port, @AS_ROOT);
        if ($profile eq 'native') {
            has(run_program(@args), 'by default one that cannot be written ends the start', status => 71,
                err => "memcached: $why");
            next;
        }
        my $pid = launch({}, server_binary(), @args);
        soon { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") } "$profile: one that cannot be written";
        kill 'TERM', $pid;
        ends($pid, 0, '... exit 0');
        is(read_file("$dir/launched.err"), "memcached: warning: $why", '... is a warning');
    }
}

# and lines of -v begin with the time, unless they are the journal's
{
    delete local $ENV{JOURNAL_STREAM};
    my $server = serve('native', '-v');
    log_says($server, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ memcached: memcached-qos \S+ as memcached 1\.6\.45 \(profile native\), listening on tcp:/m,
        '-v: the time, and the profile');
    $server = serve('native', '-v', {env => {JOURNAL_STREAM => '8:1'}});
    log_says($server, qr/^memcached: memcached-qos \S+ as/m, '-v to the journal: without the time');
}

# The log tells replies, never values, also where output is cut in the middle of a line.
{
    my ($server, $s) = serve('native', '-vv');
    exchange($s, "set key 0 0 6\r\nsecret\r\n", "STORED\r\n");
    exchange($s, 'get' . ' key' x 8000 . "\r\n", "VALUE key 0 6\r\nsecret\r\n" x 8000 . "END\r\n", 'a long reply');
    log_says($server, qr/^>\d+ END$/m, '-vv: its end');
    my %lines;
    $lines{$_}++ for grep { !/^VERSION / } $server->err =~ /^>\d+ (.*)$/mg;
    is_deeply(\%lines, {STORED => 1, 'sending key key' => 8000, END => 1}, '... and each line of it once');
}

# ---- in the background: the parent ends when the server serves, or with its status --------

sub status_of($pid) {
    my $status;
    wait_until(sub { waitpid($pid, WNOHANG) == $pid ? (($status = $?), 1)[1] : 0 });
    return $status;
}

each_profile(sub ($profile) {
    my @daemon = (server_binary(), "--compat=$profile", '-d', '-l', '127.0.0.1', @AS_ROOT);
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die;
    my $run = run_program({command => [@daemon, '-p', $taken->sockport]});
    is($run->{status}, 71, "-d, the port is taken: the parent's exit status");
    is($run->{err}, 'memcached: failed to listen on TCP port ' . $taken->sockport . ': 127.0.0.1: '
            . "Address already in use; stop the server that listens there, or choose another port\n",
        '... and the message');
    # The child writes its ports to a fifo, and stands until somebody reads.
    for my $end ('serves', 'is killed') {
        my $ports = "$dir/held.$profile";
        unlink "$ports.lck";
        POSIX::mkfifo("$ports.lck", 0600) or die;
        my $parent = launch({MEMCACHED_PORT_FILENAME => $ports}, @daemon, '-p', -1, '-P', "$dir/held.pid");
        my $child;
        soon { ($child) = read_file("/proc/$parent/task/$parent/children") =~ /(\d+)/ } '-d: there is a child';
        soon { my @f = stat "/proc/$child/cwd/."; @f && readlink("/proc/$child/cwd") eq '/' }
            '... that has left its directory';
        is(waitpid($parent, WNOHANG), 0, 'the parent waits for it');
        if ($end eq 'serves') {
            open my $fifo, '<', "$ports.lck" or die;
            my $line = <$fifo>;
            close $fifo;
            is(status_of($parent), 0, 'the child serves: exit status 0');
            is(read_file("$dir/held.pid"), "$child\n", '... and the pid file is there');
            is(readlink "/proc/$child/fd/2", '/dev/null', '... and the output is /dev/null');
            my ($port) = $line =~ /(\d+)$/;
            my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
            ask($sock, "version\r\n", VERSION_REPLY($profile), '... and it answers');
            kill 'TERM', $child;
            soon { !kill 0, $child } 'it ends';
        } else {
            kill 'KILL', $child;
            is(status_of($parent), 1 << 8, 'the child is killed: exit status 1');
            is(read_file("$dir/launched.err"), "memcached: the server was killed by signal 9 (Killed) at its start\n",
                '... and a line says so');
        }
    }
    # streams that are closed are not those of a socket, nor of the pipe to the parent
    my $port = free_port();
    my $parent = launch({}, 'sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh', @daemon, '-p', $port, '-P', "$dir/closed.pid");
    is(status_of($parent), 0, "-d without streams: the parent's exit status");
    my ($closed) = read_file("$dir/closed.pid") =~ /^(\d+)\n\z/;
    is_deeply([map { readlink "/proc/$closed/fd/$_" } 0 .. 2], [('/dev/null') x 3], '... they are /dev/null');
    ask(IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port), "version\r\n", VERSION_REPLY($profile),
        '... and it answers');
    kill 'TERM', $closed;
    soon { !kill 0, $closed } '... and ends';
    # a relative path is one of the directory where the command is given
    for my $row (['-p', free_port(), '--admin=unix:relative.admin'], ['-s', 'relative.socket']) {
        my @files = ("relative.pid", @$row == 3 ? ('relative.admin', 'relative.ports') : 'relative.socket');
        local $ENV{MEMCACHED_PORT_FILENAME} = 'relative.ports';
        $run = run_program({command => ['sh', '-c', 'cd "$0" && exec "$@"', $dir, (map { -e $_ ? File::Spec->rel2abs($_) : $_ } @daemon),
                '-P', 'relative.pid', @$row]});
        is($run->{status}, 0, "-d -P relative @$row") or diag($run->{err});
        my ($pid) = read_file("$dir/relative.pid") =~ /^(\d+)\n\z/;
        is_deeply([grep { !-e "$dir/$_" } @files], [], '... all files are in the directory of the command');
        kill 'TERM', $pid if $pid;
        ok($pid && wait_until(sub { !kill 0, $pid }), '... it ends');
        is_deeply([grep { -e "$dir/$_" } grep { !/ports/ } @files], [], '... and removes them from there');
    }
    # with -r the server stays there: the path of a socket may not be longer than 107 bytes
    my $deep = "$dir/" . 'a' x 100;
    mkdir $deep;
    $run = run_program({command => ['sh', '-c', 'cd "$0" && exec "$@"', $deep, (map { -e $_ ? File::Spec->rel2abs($_) : $_ } @daemon),
            '-r', '-P', 'deep.pid', '-s', 'deep.socket']});
    is($run->{status}, 0, '-d -r: a relative path stays one') or diag($run->{err});
    my ($pid) = read_file("$deep/deep.pid") =~ /^(\d+)\n\z/;
    kill 'TERM', $pid if $pid;
    ok($pid && wait_until(sub { !kill 0, $pid }), '... it ends');
});

SKIP: {
    skip 'only root can change user', 5 if $> != 0;
    chmod 0755, $dir;
    my $pid_file = "$dir/unwritable.pid";
    my $port = free_port();
    my $run = run_program({command => [server_binary(), '--compat=1.6', '-d', '-l', '127.0.0.1', '-p', $port,
        '-u', 'nobody', '-P', $pid_file]});
    is($run->{err}, "memcached: warning: cannot write the pid file $pid_file (-P): Permission denied\n",
        '-d -u nobody: a folder that may not be written is told before the parent ends');
    is($run->{status}, 0, '... and the server goes on, as upstream');
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
    my $stats = $sock ? mem_stats($sock) : {};
    ok($stats->{pid}, '... it answers');
    kill 'TERM', $stats->{pid} if $stats->{pid};
    # /dev/null as a chroot without devices may have it
    my $null = "$dir/null";
    open my $fh, '>', $null or die;
    chmod 0600, $null;
    my $mount = run_program({command => ['unshare', '-m', 'mount', '--bind', $null, '/dev/null']});
    skip 'no mount namespace', 2 if $mount->{status} != 0;
    $run = run_program({command => ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /dev/null && exec "$@"', $null,
        server_binary(), '--compat=1.6', '-d', '-u', 'nobody', '-l', '127.0.0.1', '-p', free_port()]});
    has($run, '-d -u nobody, /dev/null may not be written: exit 1, and says so', status => 1,
        err => "memcached: cannot open /dev/null for reading and writing (-d): Permission denied\n");
}

SKIP: {
    skip 'only root can change user', 2 if $> != 0;
    chmod 0777, $dir;
    my $server = serve('-u', 'nobody');
    my $status = read_file('/proc/' . $server->pid . '/status');
    my $uid = getpwnam 'nobody';
    like($status, qr/^Uid:\s+$uid\s+$uid\s+$uid\s+$uid$/m, '-u nobody: all ids change');
}

done_testing();
