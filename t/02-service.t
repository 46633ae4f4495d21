#!/usr/bin/env perl
# A service manager: what it is told through NOTIFY_SOCKET, and the sockets that it hands over
# with LISTEN_FDS.
use MCTest ':ours';
use File::Basename qw(dirname);
use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use IO::Socket::IP;
use POSIX ();
use Socket qw(:all);

my $dir = scratch_dir();

# ---- being told ------------------------------------------------------------------------

# A manager's socket; a name that starts with @ is abstract.
sub manager($name) {
    socket my $sock, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!";
    (my $path = $name) =~ s/^@/\0/;
    bind $sock, pack_sockaddr_un($path) or die "bind: $!";
    return $sock;
}

# The next datagram, as lines.
sub told($manager) {
    my $text = '';
    IO::Select->new($manager)->can_read($ENV{MCTEST_TIMEOUT} || 60) or return ['nothing'];
    defined recv $manager, $text, 4096, 0 or return ["recv: $!"];
    return [split /\n/, $text, -1];
}

for my $name ("$dir/notify", "\@mctest-notify-$$") {
    my $manager = manager($name);
    my $what = substr($name, 0, 1) eq '@' ? 'an abstract socket' : 'a path';
    my $server = serve('-t', '2', {env => {NOTIFY_SOCKET => $name}});
    my $tls = $ENV{MCTEST_TLS} ? ' (TLS)' : '';
    is_deeply(told($manager), ['READY=1', 'STATUS=listening on tcp:' . $server->at . "$tls; 2 workers"],
        "$what: ready when it listens");
    $server->stop;
    is_deeply(told($manager), ['STOPPING=1'], "$what: hears of the stop");
    ok(!IO::Select->new($manager)->can_read(0), "$what: and of nothing else");
}

{
    my $manager = manager("$dir/reload");
    my $file = scratch_file('reload.conf', "qps-limit = 10k\n");
    my $server = serve('--config', $file, {env => {NOTIFY_SOCKET => "$dir/reload"}});
    my $ready = told($manager);
    for my $round (1 .. 2) {
        kill 'HUP', $server->pid;
        my $reload = told($manager);
        is($reload->[0], 'RELOADING=1', "reload $round: it begins");
        like($reload->[1], qr/^MONOTONIC_USEC=[1-9]\d*$/, "reload $round: and says when");
        is_deeply(told($manager), $ready, "reload $round: ready again");
    }
    $server->stop;
}

# A failed start is not ready.
{
    my $manager = manager("$dir/failed");
    local $ENV{NOTIFY_SOCKET} = "$dir/failed";
    my $port = free_port();
    my $taken = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $port, Listen => 1);
    is(run_program('-l', '127.0.0.1', '-p', $port, @AS_ROOT)->{status}, 71, 'a port in use ends the start');
    ok(!IO::Select->new($manager)->can_read(0), 'and nothing is told');
}

my $long = '/' . 'x' x 107;
for my $bad ('', '/', '@', 'relative', $long) {
    my $server = serve({env => {NOTIFY_SOCKET => $bad}});
    is($server->err, 'memcached: warning: NOTIFY_SOCKET must be a path or @NAME of less than 108 bytes: '
            . "$bad; the service manager is told nothing\n", "NOTIFY_SOCKET=$bad is reported");
    expect_open($server->connect, 'and it serves');
}
{
    my $server = serve({env => {NOTIFY_SOCKET => "$dir/none"}});
    soon { $server->err eq 'memcached: warning: the service manager cannot be told (NOTIFY_SOCKET): '
            . "No such file or directory\n" } 'a manager that is not there is reported';
    expect_open($server->connect, 'and it serves');
}

# A manager that does not read, with room for nothing more, holds up neither clients nor orders nor the end.
{
    my $manager = manager("$dir/full");
    my $server = serve({env => {NOTIFY_SOCKET => "$dir/full"}});
    told($manager);
    my ($sent, @fillers); # each socket can send so many only
    do {
        socket my $filler, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!";
        $filler->blocking(0);
        push @fillers, $filler;
        for ($sent = 0; defined send $filler, 'x', 0, pack_sockaddr_un("$dir/full"); $sent++) { }
    } while $sent > 0;
    $server->stop('TERM', 'a manager that does not read: the server ends');
    like($server->err, qr/^memcached: warning: the service manager cannot be told \(NOTIFY_SOCKET\): Resource temporarily unavailable$/m, '... and says so');
}

# The file of the package, with the sockets of a test.
{
    my $file = dirname(__FILE__) . '/../scripts/packaging/memcached-qos.conf';
    my $server = serve('--config', $file, '-p', '-1', {listen => 0});
    expect_open($server->connect, 'it serves with the configuration of the package');
    is(mem_stats($server->connect, 'settings')->{maxbytes}, 64 << 20, 'which sets -m');
}

# ---- inherited sockets -----------------------------------------------------------------

# Runs a command with its first arguments as descriptors 3, 4 and so on, for it alone.
my $launcher = <<'END';
use Fcntl;
my @given = map { open my $h, '+<&=', $_ or die "$_: $!"; fcntl $h, F_DUPFD, 64 } split /,/, shift;
POSIX::close($_) for 3 .. 63;
POSIX::dup2($given[$_], 3 + $_) for 0 .. $#given;
POSIX::close($_) for @given;
$ENV{LISTEN_PID} //= $$;
exec { $ARGV[0] } @ARGV;
END

my @handed; # they stay open
sub handed(@sockets) {
    push @handed, @sockets;
    fcntl($_, F_SETFD, 0) || die "fcntl: $!" for @sockets;
    return ($^X, '-MPOSIX', '-e', $launcher, join ',', map { fileno $_ } @sockets);
}

sub tcp(%more) {
    my $sock = IO::Socket::IP->new(LocalHost => '127.0.0.1', Listen => 8, Type => SOCK_STREAM, %more)
        or die "listen: $@";
    return $sock;
}

sub udp { return IO::Socket::IP->new(LocalHost => '127.0.0.1', Type => SOCK_DGRAM) || die "udp: $@"; }

sub unix($path) { return IO::Socket::UNIX->new(Local => $path, Listen => 8) || die "unix: $!"; }

sub try($sockets, $env, @args) {
    local @ENV{keys %$env} = values %$env;
    return run_program({command => [handed(@$sockets), server_binary(), '-l', '127.0.0.1', '-p', free_port(),
        @AS_ROOT, @args]});
}

{
    my ($tcp, $unix, $port) = (tcp(), unix("$dir/given"), free_port());
    my $server = serve('-l', '127.0.0.1', '-p', $port, {listen => 0, wrap => [handed($tcp, $unix)],
        env => {LISTEN_FDS => 2}});
    is($server->port, $tcp->sockport, 'the port file names the inherited port');
    expect_open($server->connect, 'TCP: it answers');
    ok(!IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $port), 'nothing is opened beside them');
    my $local = IO::Socket::UNIX->new(Peer => "$dir/given");
    print {$local} "version\r\n";
    is(readline $local, VERSION_REPLY(), 'UNIX: it answers');
    my %flags;
    for my $fd (3, 4) {
        my ($octal) = read_file('/proc/' . $server->pid . "/fdinfo/$fd") =~ /^flags:\s+(\d+)/m;
        my $flags = oct $octal;
        ok($flags & POSIX::O_NONBLOCK(), "descriptor $fd does not block");
        ok($flags & 02000000, "descriptor $fd is closed by exec");
    }
    $server->stop;
    ok(-S "$dir/given", 'the file of an inherited UNIX socket stays');
    my @alone = (handed($unix), server_binary(), @AS_ROOT);
    my $alone = fork // die "fork: $!";
    if (!$alone) {
        @ENV{qw(LISTEN_FDS MEMCACHED_PORT_FILENAME)} = (1, "$dir/no-ports");
        exec { $alone[0] } @alone or POSIX::_exit(127);
    }
    my $given = IO::Socket::UNIX->new(Peer => "$dir/given") or die "connect: $!";
    print {$given} "version\r\n";
    is(readline $given, VERSION_REPLY(), 'an inherited UNIX socket alone');
    kill 'TERM', $alone;
    waitpid $alone, 0;
    ok(!-e "$dir/no-ports", '... and has no port to write');
    my $late = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $tcp->sockport);
    my $next = serve({listen => 0, wrap => [handed($tcp, $unix)], env => {LISTEN_FDS => 2}});
    print {$late} "version\r\n";
    is(readline $late, VERSION_REPLY(), 'a connection made between two servers is served by the next') if !$ENV{MCTEST_TLS};
}

{
    my ($tcp, $udp) = (tcp(), udp());
    for my $threads (1, 3) {
        my ($server, $s) = serve('-t', $threads, {listen => 0, wrap => [handed($udp, $tcp)], env => {LISTEN_FDS => 2}});
        exchange($s, "set k 0 0 1\r\nv\r\n", "STORED\r\n", "UDP, $threads threads: stored");
        is_deeply([$server->ports('UDP INET')], [$udp->sockport], "UDP, $threads threads: in the port file");
        for my $client (1 .. 4) {
            my $from = $server->udp;
            udp_request($from, "get k\r\n");
            is(udp_reply($from), "VALUE k 0 1\r\nv\r\nEND\r\n", "UDP, $threads threads: client $client");
        }
    }
}

# Marks behind names are those of -l.
{
    my ($plain, $marked) = (tcp(), tcp());
    my $server = serve('--control=marked', {listen => 0, wrap => [handed($plain, $marked)],
        env => {LISTEN_FDS => 2, LISTEN_FDNAMES => 'web:admin;class=bulk;control'}});
    my $s = $server->connect;
    put($s, "qos qps_limit off\r\n");
    like(read_line($s), qr/^CLIENT_ERROR/, 'a listener without a mark has no control');
    $server->{port} = $marked->sockport;
    exchange($server->connect, "qos qps_limit off\r\n", "OK\r\n", 'one with ;control has');
}
has(try([tcp()], {LISTEN_FDS => 1, LISTEN_FDNAMES => 'web;class=urgent'}), 'a class that is none', status => 71,
    err => qr/^memcached: Invalid class of a listener: "urgent"/);
has(try([tcp()], {LISTEN_FDS => 1, LISTEN_FDNAMES => 'web;control;urgent'}), 'a mark that is none', status => 71,
    err => "memcached: behind the name of an inherited socket only ;class=NAME and ;control may stand: "
        . "web;control;urgent\n");

{
    my $tcp = tcp();
    my $server = serve('--steer=reuseport', {listen => 0, wrap => [handed($tcp)], env => {LISTEN_FDS => 1}});
    is($server->err, 'memcached: warning: inherited sockets are shared by the workers; --steer=reuseport steers '
            . "as cpu does\n", '--steer=reuseport with them is reported');
    my $s = $server->connect;
    put($s, "qos\r\n");
    my @lines = map { read_line($s) } 1 .. 3;
    like($lines[2], qr/; steer cpu, /, 'qos tells how it steers');
    is((mem_stats($server->connect, 'qos'))->{steer_mode}, 'cpu', '... and so does stats qos');
}

has(try([tcp(), udp()], {LISTEN_FDS => 2}, '-Y', scratch_file('tokens', "user:secret\n")), 'UDP beside -Y', status => 71,
    err => "memcached: inherited descriptor 4 is a UDP socket, which has no authentication (-S, -Y); hand over TCP "
        . "and UNIX sockets only\n");

# One that another process has shut down is not waited for any more; the others are served.
{
    my ($gone, $tcp) = (tcp(), tcp());
    my $server = serve({listen => 0, wrap => [handed($gone, $tcp)], env => {LISTEN_FDS => 2}});
    shutdown $gone, 2;
    my $where = 'tcp:127.0.0.1:' . $gone->sockport;
    log_says($server, qr/^memcached: warning: \Q$where\E was shut down by a process that shares it; no more connections are accepted there$/m,
        'a listener that was shut down is named');
    $server->{port} = $tcp->sockport;
    serves($server, 'another one is served');
    is(scalar(() = $server->err =~ /shut down/g), 1, 'it is said once');
}

# -s is left alone beside them, as -p is.
{
    write_file("$dir/own", '');
    my $server = serve('-s', "$dir/own", {listen => 0, wrap => [handed(tcp())], env => {LISTEN_FDS => 1}});
    expect_open($server->connect, '-s beside inherited sockets');
    $server->stop;
    ok(-f "$dir/own", 'what is at its path stays');
}

# Variables for another process, or not all of them, mean nothing.
for my $env ({LISTEN_FDS => 1, LISTEN_PID => 1}, {LISTEN_FDS => 'x', LISTEN_PID => 1}) {
    my $server = serve({wrap => [handed(tcp())], env => $env});
    expect_open($server->connect, "LISTEN_FDS=$env->{LISTEN_FDS} for another process: it opens its own");
}
{
    my $server = serve({wrap => [handed(tcp())]});
    expect_open($server->connect, 'LISTEN_PID alone: it opens its own');
}

for my $bad ('', '0', '-1', '1x', '1025', '4294967297') {
    has(try([tcp()], {LISTEN_FDS => $bad}), "LISTEN_FDS=$bad", status => 71,
        err => "memcached: LISTEN_FDS must be a number from 1 to 1024: \"$bad\"; it is set by what starts the "
            . "process with sockets\n");
}
for my $bad ('', '0', 'me') {
    has(try([tcp()], {LISTEN_FDS => 1, LISTEN_PID => $bad}), "LISTEN_PID=$bad", status => 71,
        err => qr/^memcached: LISTEN_PID must be a number from 1 to 2147483647: "$bad"/);
}

# What it cannot serve.
sub raw($family, $type, $address = undef) {
    socket my $sock, $family, $type, 0 or die "socket: $!";
    bind $sock, $address or die "bind: $!" if defined $address;
    return $sock;
}

my $plain = tcp();
my $loopback = pack_sockaddr_in(0, INADDR_LOOPBACK);
socketpair my $one, my $other, AF_UNIX, SOCK_STREAM, 0 or die "socketpair: $!";
open my $file, '+<', scratch_file('file') or die "file: $!";
my @rows = (
    ['a file', 'is not a socket', $file],
    ['TCP that does not listen', 'does not listen; connections are not taken over (Accept=no)',
        raw(AF_INET, SOCK_STREAM, $loopback)],
    ['a connection', 'does not listen; connections are not taken over (Accept=no)', $one],
    ['UDP without a port', 'is a UDP socket without a port', raw(AF_INET, SOCK_DGRAM)],
    ['UNIX datagrams', 'is neither a TCP, a UDP nor a UNIX stream socket (ListenStream=, ListenDatagram=)',
        manager("$dir/datagrams")],
    ['netlink', 'is neither an IPv4, an IPv6 nor a UNIX socket', raw(16, SOCK_DGRAM)],
);
for my $row (@rows) {
    my ($name, $wrong, $sock) = @$row;
    has(try([$plain, $sock], {LISTEN_FDS => 2}), $name, status => 71,
        err => "memcached: inherited descriptor 4 of 2 (LISTEN_FDS=2) $wrong\n");
}
has(try([$plain], {LISTEN_FDS => 2}), 'fewer than were said', status => 71,
    err => "memcached: inherited descriptor 4 of 2 (LISTEN_FDS=2) is not open\n");

done_testing();
