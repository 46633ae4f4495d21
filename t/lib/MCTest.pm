# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# Helper of the Perl tests: starts a server, speaks raw bytes to it with time-outs, stops it.
#
# MEMCACHED names the server binary (default ./memcached/memcached); it may carry a wrapper
# in front ("valgrind -q ./memcached/memcached"). MCTEST_TIMEOUT is the number of seconds
# after which a missing reply is a failure (default 180). Any other memcached 1.6 serves as
# a reference: tests then run in the one profile "ref" and skip what it does not have.
# MCTEST_TLS=1 lets servers on TCP and the connections to them speak TLS. MCTEST_QUIET=1: nothing else
# uses this machine, so what takes a time, or a part of a CPU, may be asserted (scripts/ci quiet).
#
# `use MCTest` is also `use strict`, `use warnings`, signatures of subs, and Test::More; with ':ours'
# the test is skipped when the server is another one.
package MCTest;

use strict;
use warnings;
use feature 'signatures';
no warnings 'experimental::signatures';
use Cwd qw(abs_path);
use Exporter ();
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
use File::Temp qw(tempdir);
use IO::Handle;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(:sys_wait_h setsid);
use Scalar::Util qw(weaken);
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Test::More;
use Time::HiRes qw(time sleep);

our @ISA = ('Exporter');
our @EXPORT = (@Test::More::EXPORT, qw(
    start_server serve run_program server_binary is_ours is_quiet profiles each_profile pick in_child
    has exchange exchanges mem_get_is mem_gets mem_stats stat_names stat_lines debugtime serves canary
    put drain read_bytes read_line read_until_eof expect_bytes expect_eof expect_open
    roundtrip show free_port free_ports claim_port wait_until soon all_have_left log_says proc_status is_stopped scratch_dir
    read_file write_file scratch_file cpu_list allowed_cpus stay_on has_hwloc udp_request udp_reply with_room
    preload slowed VERSION_REPLY @AS_ROOT $TOP
));

# Of the sources.
our $TOP = abs_path(__FILE__ =~ s{[^/]*\z}{../..}r);

# What every start as root needs.
our @AS_ROOT = $> == 0 ? ('-u', 'root') : ();

my $TIMEOUT = $ENV{MCTEST_TIMEOUT} || 180;
my %WANT_VERSION = ('1.4' => '1.4.39', '1.6' => '1.6.45', native => '1.6.45');
my @running;
my @children; # some may have been waited for
my $late_status = 0; # of servers that ended after the last assertion
my $main_pid = $$;
my $ours;
my $ref_version;
my $scratch;
my $serial = 0;
my @claims; # to ports, for as long as this process runs

sub import {
    my ($class, @names) = @_;
    strict->import;
    warnings->import;
    feature->import('signatures');
    warnings->unimport('experimental::signatures');
    plan(skip_all => 'needs memcached-qos') if grep({ $_ eq ':ours' } @names) && !is_ours();
    $class->export_to_level(1, $class, grep { $_ ne ':ours' } @names);
}

sub scratch_dir {
    $scratch //= tempdir('mctest.XXXXXX', TMPDIR => 1, CLEANUP => 1);
    return $scratch;
}

sub server_binary {
    my @words = split ' ', ($ENV{MEMCACHED} || './memcached/memcached');
    return @words;
}

# True when the binary is memcached-qos: its -V has a second line.
sub is_ours {
    if (!defined $ours) {
        my $run = run_program('-V');
        my @lines = split /\n/, $run->{out};
        die "cannot run the server '@{[server_binary()]}': $run->{err}\n" if !@lines;
        $ours = @lines > 1 ? 1 : 0;
        ($ref_version) = $lines[0] =~ /^memcached (\S+)/;
    }
    return $ours;
}

# Whether what depends on other users of this machine may be asserted.
sub is_quiet { return $ENV{MCTEST_QUIET} ? 1 : 0; }

# The profiles to run a test file in; what is not said of native is as in 1.6.
sub profiles {
    return is_ours() ? ('1.4', '1.6') : ('ref');
}

# Runs the code, which is told the profile, in a subtest for each.
sub each_profile($code) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for my $profile (profiles()) {
        subtest($profile => sub { $code->($profile) });
    }
}

# pick($profile, '1.4' => a, '1.6' => b, ref => c): 'ref' falls back to '1.6'.
sub pick($profile, %by) {
    return exists $by{$profile} ? $by{$profile} : $by{'1.6'};
}

sub VERSION_REPLY($profile = 'native') {
    is_ours();
    return 'VERSION ' . ($WANT_VERSION{$profile} || $ref_version) . "\r\n";
}

# ---- programs --------------------------------------------------------------------------

# Runs the server binary with arguments to its end: {status, signal, out, err, timed_out}.
sub run_program(@args) {
    my %opt = ref $args[-1] eq 'HASH' ? %{pop @args} : ();
    my $dir = scratch_dir();
    my $id = $$ . '.' . ++$serial;
    my ($out, $err) = ("$dir/out.$id", "$dir/err.$id");
    my @command = $opt{command} ? @{$opt{command}} : (server_binary(), @args);
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $out;
        open STDERR, '>', $err;
        { no warnings; exec { $command[0] } @command; }
        print STDERR "exec $command[0]: $!\n";
        POSIX::_exit(127);
    }
    my $end = time + ($opt{timeout} || $TIMEOUT);
    my ($done, $status, $timed_out) = (0, 0, 0);
    while (1) {
        $done = waitpid $pid, WNOHANG;
        $status = $?;
        last if $done == $pid;
        if (time > $end) {
            $timed_out = 1;
            kill 'KILL', $pid;
            waitpid $pid, 0;
            $status = $?;
            last;
        }
        sleep 0.01;
    }
    return {
        status => $status >> 8, signal => $status & 127, timed_out => $timed_out,
        out => slurp($out), err => slurp($err),
    };
}

# The bytes of a file; none when it is not there.
sub read_file($path) {
    open my $fh, '<:raw', $path or return '';
    local $/;
    return scalar <$fh> // '';
}

# Makes a file of these bytes; returns its path.
sub write_file($path, @bytes) {
    open my $fh, '>:raw', $path or die "$path: $!";
    print {$fh} @bytes;
    close $fh or die "$path: $!";
    return $path;
}

# The same in this test's own folder.
sub scratch_file($name, @bytes) { return write_file(scratch_dir() . "/$name", @bytes); }

sub slurp($path) {
    my $text = read_file($path);
    unlink $path if index($path, scratch_dir()) == 0;
    return $text;
}

# A process that runs the code and ends, with this test at the latest; its id.
sub in_child($code) {
    my $pid = fork // die "fork: $!";
    push @children, $pid;
    return $pid if $pid;
    $code->();
    POSIX::_exit(0);
}

# True for one test at a time: the port is this process's from now on, if nobody else listens there.
sub claim_port($port) {
    my $claim = IO::Socket::UNIX->new(Local => "\0mctest-port-$port", Listen => 1) or return 0;
    push @claims, $claim;
    return 1;
}

sub free_port { return free_ports(1); }

# The first of as many ports, one behind the other.
sub free_ports($count) {
    for (1 .. 200) {
        my $first = 20000 + int(rand(10000 - $count));
        # Other tests that run now choose others: these names are taken until the process ends.
        my @wanted = map { IO::Socket::UNIX->new(Local => "\0mctest-port-$_", Listen => 1) // () }
            $first .. $first + $count - 1;
        my @probes = map {
            IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $_, Proto => 'tcp', Listen => 1) // ()
        } $first .. $first + $count - 1;
        if (@wanted == $count && @probes == $count) {
            push @claims, @wanted;
            return $first;
        }
    }
    die 'no free port';
}

# ---- CPUs ------------------------------------------------------------------------------

# Those that this process may use, as the kernel writes them, and as numbers.
sub cpu_list { return proc_status($$, 'Cpus_allowed_list') // ''; }
sub allowed_cpus { return map { /^(\d+)-(\d+)$/ ? ($1 .. $2) : $_ } split /,/, cpu_list(); }

# This process on these CPUs, so that what it sends is received there.
sub stay_on($list) { return system("taskset -cp $list $$ >/dev/null 2>&1") == 0; }

sub has_hwloc {
    return run_program('--pin=spread', '--pin-dry-run', '-t', '1', @AS_ROOT)->{status} == 0;
}

# ---- server ----------------------------------------------------------------------------

# A server that ends with the scope that it is in, and a connection to it unless only the server is
# asked for: serve('1.6', '-t', '2', {env => {...}}). The profile may be left out; the last argument
# has other keys of start_server.
sub serve(@args) {
    my %more = @args && ref $args[-1] ? %{pop @args} : ();
    $more{profile} = shift @args if @args && $args[0] =~ /^(?:1\.[46]|native|ref)$/;
    my $server = start_server(args => \@args, is_scoped => 1, %more);
    return wantarray ? ($server, $server->connect) : $server;
}

# start_server(profile => 'native', args => [...]). Other keys: debug => 0 leaves out
# --debug-commands; listen => 0 leaves out -l and -p (the args bring them); env => {...};
# path => UNIX socket path given in args; no_port => 1: it may have no TCP port. Dies when the
# server does not come up.
sub start_server(%opt) {
    my $profile = $opt{profile} || (is_ours() ? 'native' : 'ref');
    my $dir = scratch_dir();
    my $id = $$ . '.' . ++$serial;
    my $self = bless {
        profile => $profile, port_file => "$dir/port.$id", err_file => "$dir/log.$id",
        out_file => "$dir/stdout.$id", path => $opt{path}, owner => $$,
        no_port => $opt{no_port}, is_scoped => $opt{is_scoped},
    }, 'MCTest::Server';

    my @args = @{$opt{args} || []};
    if (is_ours()) {
        push @args, "--compat=$profile" if !grep { /^--compat/ } @args;
        push @args, '--debug-commands' if !exists $opt{debug} || $opt{debug};
    } else {
        unshift @args, '-o', 'no_modern', '-U', '0';
    }
    push @args, '-u', 'root' if $> == 0 && !grep { /^-u/ } @args;
    if (!exists $opt{listen} || $opt{listen}) {
        unshift @args, '-l', '127.0.0.1', '-p', '-1' if !defined $opt{path};
    }
    if ($ENV{MCTEST_TLS} && !defined $opt{path}) {
        require MCTLS;
        unshift @args, MCTLS::tls_args();
        $self->{has_tls} = 1;
    }
    my @command = (@{$opt{wrap} || []}, server_binary(), @args);
    $self->{command} = "@command";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if (!$pid) {
        setsid();
        $ENV{MEMCACHED_PORT_FILENAME} = $self->{port_file};
        $ENV{$_} = $opt{env}{$_} for keys %{$opt{env} || {}};
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $self->{out_file};
        open STDERR, '>', $self->{err_file};
        { no warnings; exec { $command[0] } @command; }
        print STDERR "exec $command[0]: $!\n";
        POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    push @running, $self;
    weaken($running[-1]) if $opt{is_scoped};
    my $end = time + 2 * $TIMEOUT;
    until ($self->_is_up) {
        my $gone = waitpid $pid, WNOHANG;
        if ($gone == $pid) {
            $self->{pid} = 0;
            my $status = $?;
            die "Failed to start (wait status $status): $self->{command}\n" . $self->err;
        }
        if (time > $end) {
            $self->_kill;
            die "Failed to start in time: $self->{command}\n" . $self->err;
        }
        sleep 0.01;
    }
    return $self;
}

# A library of t/preload behind a sanitizer's own, as LD_PRELOAD has it; undef: there is none, or the server
# runs under something else.
sub preload($name) {
    my ($binary, @wrapped) = server_binary();
    my $library = ($ENV{TOP_BUILDDIR} // '.') . "/t/preload/$name.so";
    return undef if @wrapped || !-e $library;
    return join ' ', `ldd $binary 2>/dev/null` =~ m{=> (\S+/lib[at]san\.so\S*)}g, $library;
}

# The environment of a server whose clocks go so many times as slowly, where that can be had: it decides
# by the clock, and for so much less counts what the machine stands still.
sub slowed($times) {
    my $library = preload('slow_clock') // return {};
    return {LD_PRELOAD => $library, SLOW_CLOCK => $times};
}

package MCTest::Server;

use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);

use constant SO_PEERCRED => 17;

# A UNIX socket can only be tried. That connection becomes the first that `connect` returns: were
# it closed, its end would come between what the test does, whenever the server gets to it.
sub _is_up($self) {
    if (defined $self->{path}) {
        my $sock = IO::Socket::UNIX->new(Peer => $self->{path}) or return 0;
        # not another server that had the path before
        my ($pid) = unpack 'i', getsockopt($sock, Socket::SOL_SOCKET(), SO_PEERCRED) // '';
        return 0 if !$pid || $pid != $self->{pid};
        $self->{first} = $sock;
        return 1;
    }
    return 0 if !-e $self->{port_file};
    my @lines = split /\n/, MCTest::read_file($self->{port_file});
    $self->{ports} = [map { /^(TCP INET6?|UDP INET6?): (\d+)$/ ? [$1, $2] : () } @lines];
    for my $entry (@{$self->{ports}}) {
        if ($entry->[0] =~ /^TCP/) {
            $self->{port} = $entry->[1];
            return 1;
        }
    }
    return $self->{no_port} ? 1 : 0;
}

sub port { return $_[0]{port}; }
sub at { return "127.0.0.1:$_[0]{port}"; }
sub pid { return $_[0]{pid}; }
sub profile { return $_[0]{profile}; }

sub err($self) { return MCTest::read_file($self->{err_file}); }

# A new connection; dies when it cannot be had. no_wait: does not wait until it is made. plain:
# without TLS in any case. from: the address that it comes from.
sub connect($self, %opt) {
    my $sock;
    for my $try (1 .. 3) {
        $sock = defined $self->{path}
            ? $self->_first || IO::Socket::UNIX->new(Peer => $self->{path})
            : IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port},
                Proto => 'tcp',
                $opt{from} ? (LocalAddr => $opt{from}) : (),
                $opt{no_wait} ? (Blocking => 0) : (Timeout => $TIMEOUT));
        last if $sock;
    }
    if (!$sock) {
        die "cannot connect to the server: $!";
    }
    binmode $sock;
    setsockopt $sock, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1 if !defined $self->{path};
    $sock->blocking(0);
    ${*$sock}{mctest_server} = $self;
    Scalar::Util::weaken(${*$sock}{mctest_server}) if $self->{is_scoped};
    if ($self->{has_tls} && !$opt{plain}) {
        require MCTLS;
        MCTLS::tls_upgrade($sock) or die "no TLS: $IO::Socket::SSL::SSL_ERROR";
    }
    return $sock;
}

# Ports of a kind, as in the port file: TCP INET, TCP INET6, UDP INET, UDP INET6.
sub ports($self, $kind) {
    return map { $_->[0] eq $kind ? $_->[1] : () } @{$self->{ports}};
}

# A socket for datagrams to it, from an address if need be.
sub udp($self, $from = undef) {
    my ($port) = $self->ports('UDP INET');
    return MCTest::with_room(IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp',
        $from ? (LocalAddr => $from) : ()) || die "udp: $!");
}

sub _first($self) {
    return $self->{owner} == $$ ? delete $self->{first} : undef;
}

# The connection for questions of the helper itself (stats, debugtime).
sub control($self) {
    $self->{control} ||= $self->connect;
    return $self->{control};
}

sub _reap($self, $seconds) {
    my $end = time + $seconds;
    while (1) {
        my $gone = waitpid $self->{pid}, WNOHANG;
        return $? if $gone == $self->{pid};
        return undef if $gone < 0 || time > $end;
        sleep 0.01;
    }
}

sub _kill($self) {
    return if !$self->{pid} || $self->{owner} != $$;
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    $self->{pid} = 0;
}

# Sends the signal (TERM) and asserts that the server ends with status 0.
sub stop($self, $signal = undef, $name = undef) {
    $signal ||= 'TERM';
    $name ||= "[$self->{profile}] the server exits 0 on SIG$signal";
    if (!$self->{pid}) {
        return Test::More::fail("$name (it was gone already)");
    }
    delete $self->{control};
    kill $signal, $self->{pid};
    my $status = $self->_reap($TIMEOUT * 2);
    if (!defined $status) {
        $self->_kill;
        return Test::More::fail("$name (it did not end)");
    }
    $self->{pid} = 0;
    my $ok = Test::More::is($status, 0, $name);
    Test::More::diag("stderr of the server:\n" . substr($self->err, 0, 6000)) if !$ok;
    return $ok;
}

# The same when all that was to be asserted has been: the test's own status has it.
sub _stop_late($self) {
    return if !$self->{pid};
    delete $self->{control};
    kill 'TERM', $self->{pid};
    my $end = $self->_reap($TIMEOUT);
    if (!defined $end) {
        $self->_kill;
        $end = -1;
    }
    $self->{pid} = 0;
    return if $end == 0;
    print STDERR "# a server left to the end ended with wait status $end\n";
    print STDERR substr($self->err, 0, 6000);
    $late_status = 1;
}

# True while the process lives.
sub is_alive($self) {
    return 0 if !$self->{pid};
    my $gone = waitpid $self->{pid}, WNOHANG;
    if ($gone == $self->{pid}) {
        $self->{exit} = $?;
        $self->{pid} = 0;
        return 0;
    }
    return 1;
}

sub DESTROY($self) {
    return if !$self->{pid} || $self->{owner} != $$;
    local ($?, $!, $@);
    return defined Test::More->builder->has_plan ? $self->_stop_late : $self->stop if $self->{is_scoped};
    kill 'TERM', $self->{pid};
    if (defined $self->_reap(10)) {
        $self->{pid} = 0;
    } else {
        $self->_kill;
    }
}

package MCTest;

# A test that is told to stop stops its servers too.
$SIG{$_} = sub { exit 1 } for qw(TERM INT HUP PIPE);

# Every server still running is stopped and its exit status is part of the test's.
END {
    if ($$ == $main_pid) {
        my $status = $?;
        my @left = grep { waitpid($_, WNOHANG) == 0 } @children;
        kill 'KILL', @left;
        waitpid $_, 0 for @left;
        $_->_stop_late for grep { defined } @running;
        @running = ();
        $? = $status || $late_status;
    }
}

# ---- bytes -----------------------------------------------------------------------------

# Printable form of bytes, cut in the middle when long.
sub show {
    my ($bytes) = @_;
    return '(nothing)' if !defined $bytes || $bytes eq '';
    my $n = length $bytes;
    $bytes = substr($bytes, 0, 240) . "<... $n bytes ...>" . substr($bytes, -120) if $n > 400;
    $bytes =~ s/\\/\\\\/g;
    $bytes =~ s/\r/\\r/g;
    $bytes =~ s/\n/\\n/g;
    $bytes =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
    return $bytes;
}

sub wait_io($sock, $for_write, $seconds) {
    my $bits = '';
    vec($bits, fileno $sock, 1) = 1;
    my $n = $for_write
        ? select(undef, $bits, undef, $seconds)
        : select($bits, undef, undef, $seconds);
    return $n > 0;
}

# Writes all bytes while reading nothing. Returns the number written (less on error or when
# the peer stays stuck).
sub put($sock, $bytes, $seconds = undef) {
    local $SIG{PIPE} = 'IGNORE';
    my $end = time + ($seconds || $TIMEOUT);
    my $done = 0;
    while ($done < length $bytes) {
        my $n = syswrite $sock, $bytes, length($bytes) - $done, $done;
        if (defined $n) {
            $done += $n;
            next;
        }
        last if $! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR;
        my $left = $end - time;
        last if $left <= 0;
        wait_io($sock, 1, $left);
    }
    return $done;
}

# Bytes received but not yet taken by a reader of this module.
sub pending : lvalue {
    my ($sock) = @_;
    ${*$sock}{mctest_pending} //= '';
    ${*$sock}{mctest_pending};
}

# One read into the pending bytes: number of bytes, 0 at end of file, undef on time-out.
sub fill($sock, $seconds) {
    my $end = time + $seconds;
    while (1) {
        my $n = sysread $sock, my $chunk, 262144;
        if (defined $n) {
            pending($sock) .= $chunk if $n;
            return $n;
        }
        return 0 if $! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR;
        my $left = $end - time;
        return undef if $left <= 0;
        wait_io($sock, 0, $left);
    }
}

# Exactly n bytes, or what there was when the peer closed or time ran out.
sub read_bytes($sock, $n, $seconds = undef) {
    my $end = time + ($seconds || $TIMEOUT);
    while (length(pending($sock)) < $n) {
        my $left = $end - time;
        last if $left <= 0;
        my $got = fill($sock, $left);
        last if !$got;
    }
    return substr pending($sock), 0, $n, '';
}

# One line with its LF, or what there was.
sub read_line($sock, $seconds = undef) {
    my $end = time + ($seconds || $TIMEOUT);
    my $from = 0;
    while (1) {
        my $at = index pending($sock), "\n", $from;
        return substr pending($sock), 0, $at + 1, '' if $at >= 0;
        $from = length pending($sock);
        my $left = $end - time;
        my $got = $left > 0 ? fill($sock, $left) : undef;
        return substr pending($sock), 0, length(pending($sock)), '' if !$got;
    }
}

# All bytes until the peer closes; (bytes, true when it closed in time).
sub read_until_eof($sock, $seconds = undef) {
    my $end = time + ($seconds || $TIMEOUT);
    my $closed = 0;
    while (1) {
        my $left = $end - time;
        last if $left <= 0;
        my $got = fill($sock, $left);
        last if !defined $got;
        if ($got == 0) {
            $closed = 1;
            last;
        }
    }
    my $bytes = substr pending($sock), 0, length(pending($sock)), '';
    return wantarray ? ($bytes, $closed) : $bytes;
}

# What arrives within a short while; for diagnostics only.
sub drain($sock, $seconds = undef) {
    my $end = time + ($seconds || 0.3);
    while ((my $left = $end - time) > 0) {
        last if !fill($sock, $left);
    }
    return substr pending($sock), 0, length(pending($sock)), '';
}

sub profile_of($sock) {
    return ${*$sock}{mctest_server}{profile};
}

sub report_bytes($name, $sent, $want, $got = undef) {
    my $ok = Test::More::ok(0, $name);
    diag('    sent: ' . show($sent)) if defined $sent;
    diag('    want: ' . (ref $want ? "$want" : show($want)));
    diag('    got:  ' . show($got));
    return $ok;
}

# Asserts that exactly these bytes come next.
sub expect_bytes($sock, $want, $name = undef, $sent = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = read_bytes($sock, length $want);
    if ($got eq $want) {
        return pass($name);
    }
    $got .= drain($sock);
    return report_bytes($name, $sent, $want, $got);
}

# Asserts that the peer closes after exactly these bytes.
sub expect_eof($sock, $want, $name = undef, $sent = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($got, $closed) = read_until_eof($sock);
    return pass($name) if $closed && $got eq $want;
    return report_bytes($name, $sent, "$want<closed>", $got . ($closed ? '<closed>' : '<open>'));
}

# Asserts that the connection answers `version` with nothing before it.
sub expect_open($sock, $name = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    put($sock, "version\r\n");
    return expect_bytes($sock, VERSION_REPLY(profile_of($sock)), $name, "version\r\n");
}

# As many bytes as `want` has; stops early when what comes is something else.
sub read_like($sock, $want) {
    my $end = time + $TIMEOUT;
    my $n = length $want;
    my $checked = 0;
    while (length(pending($sock)) < $n) {
        my $have = length pending($sock);
        last if substr(pending($sock), $checked) ne substr($want, $checked, $have - $checked);
        $checked = $have;
        my $left = $end - time;
        last if $left <= 0 || !fill($sock, $left);
    }
    return substr pending($sock), 0, $n, '';
}

# Sends bytes, then (when everything expected has come) `version`, and returns what came
# before the version reply: so the returned reply is complete and nothing follows it.
sub roundtrip($sock, $send, $want = undef) {
    my $tail = VERSION_REPLY(profile_of($sock));
    put($sock, $send);
    my $got = defined $want ? read_like($sock, $want) : '';
    put($sock, "version\r\n");
    my $end = time + $TIMEOUT;
    while (1) {
        my $rest = pending($sock);
        if (length $rest >= length $tail && substr($rest, -length $tail) eq $tail) {
            pending($sock) = '';
            return $got . substr $rest, 0, length($rest) - length $tail;
        }
        my $left = $end - time;
        my $n = $left > 0 ? fill($sock, $left) : undef;
        if (!$n) {
            pending($sock) = '';
            return $got . $rest . (defined $n ? '<closed>' : '<no reply to version>');
        }
    }
}

# exchange($sock, $send, $expect [, {counter => delta}] [, $name])
#
# Asserts that `send` is answered by exactly the bytes `expect` and by nothing more, and
# that the named counters of `stats` moved by exactly the deltas. `expect` may be a qr//
# for the whole reply.
sub exchange($sock, $send, $expect, @rest) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $deltas = ref $rest[0] eq 'HASH' ? shift @rest : undef;
    my $server = ${*$sock}{mctest_server};
    my $name = "[$server->{profile}] " . (shift @rest // show(substr $send, 0, 70));
    my $before = $deltas ? mem_stats($server->control) : undef;
    my $got = roundtrip($sock, $send, ref $expect ? undef : $expect);
    my $ok = ref $expect ? $got =~ $expect : $got eq $expect;
    return report_bytes($name, $send, $expect, $got) if !$ok;
    if ($deltas) {
        my $after = mem_stats($server->control);
        for my $counter (sort keys %$deltas) {
            my $moved = ($after->{$counter} // 'nan') - ($before->{$counter} // 'nan');
            next if $moved == $deltas->{$counter};
            fail($name);
            diag("    sent: " . show($send));
            diag("    counter $counter moved by $moved, not by $deltas->{$counter}");
            return 0;
        }
    }
    return pass($name);
}

# exchanges($s, [$send, $expect, ...], ...): a row of such arguments for each.
sub exchanges($sock, @rows) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    exchange($sock, @$_) for @rows;
}

# has(\%got, $name, field => $want, ...): each field is this, is like this (qr//), or compares with
# it ([$operator, $value]). Of what run_program returns, FIELD_lines is the number of lines in a
# field; of what mcload_json does, fields of the JSON can be named directly.
sub has($got, $name, @want) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $good = 1;
    while (my ($field, $want) = splice @want, 0, 2) {
        my $is = exists $got->{$field} ? $got->{$field}
            : $field =~ /^(out|err)_lines$/ ? $got->{$1} =~ tr/\n//
            : ref $got->{json} ? $got->{json}{$field} : undef;
        $good &= ref $want eq 'ARRAY' ? cmp_ok($is, $want->[0], $want->[1], "$name: $field")
            : ref $want ? like($is, $want, "$name: $field") : is($is, $want, "$name: $field");
    }
    diag($got->{err}) if !$good && defined $got->{err};
    return $good;
}

# ---- datagrams -------------------------------------------------------------------------

# A socket in which as many of them may wait as the kernel allows, whatever it gives unasked.
sub with_room($sock) {
    setsockopt $sock, Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 1 << 22;
    return $sock;
}

# Sends a request as the one datagram of this id.
sub udp_request($sock, $request, $id = 1) {
    return send $sock, pack('n4', $id, 0, 1, 0) . $request, 0;
}

# The payload of the next one, and its id; nothing when none comes.
sub udp_reply($sock, $seconds = $TIMEOUT) {
    return if !IO::Select->new($sock)->can_read($seconds);
    recv $sock, my $bytes, 65536, 0;
    my ($payload, $id) = (substr($bytes, 8), unpack 'n', $bytes);
    return wantarray ? ($payload, $id) : $payload;
}

# ---- memcached -------------------------------------------------------------------------

# Asserts that a new connection can store and read.
sub serves($server, $name = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return exchange($server->connect, "set a 0 0 1\r\n1\r\nget a\r\n",
        "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n", $name // 'it serves');
}

# Stores a canary; the code returned asserts that the server lives and that this connection, open all
# along, is in sync.
sub canary($server, $sock) {
    exchange($sock, "set canary 5 0 6\r\nyellow\r\n", "STORED\r\n");
    return sub ($name) {
        local $Test::Builder::Level = $Test::Builder::Level + 2;
        ok($server->is_alive, "$name: alive") or BAIL_OUT("server died: " . $server->err);
        exchange($sock, "get canary\r\n", "VALUE canary 5 6\r\nyellow\r\nEND\r\n", "$name: in sync");
    };
}

# The key has this value (and flags); undef: it is absent.
sub mem_get_is($sock, $key, $value, $name = undef, $flags = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $server = ${*$sock}{mctest_server};
    $flags //= 0;
    my $want = defined $value
        ? "VALUE $key $flags " . length($value) . "\r\n$value\r\nEND\r\n" : "END\r\n";
    return exchange($sock, "get $key\r\n", $want, $name // "$key is " . show($value));
}

# (cas unique, value) of a key, or ('', undef).
sub mem_gets($sock, $key) {
    put($sock, "gets $key\r\n");
    my $line = read_line($sock);
    return ('', undef) if $line eq "END\r\n";
    my ($bytes, $cas) = $line =~ /^VALUE \S+ \d+ (\d+) (\d+)\r\n$/
        or die 'unexpected reply to gets: ' . show($line);
    my $data = read_bytes($sock, $bytes + 2 + 5);
    return ($cas, substr $data, 0, $bytes);
}

# The STAT lines as they came, without END.
sub stat_lines($sock, $group = undef) {
    put($sock, defined $group && $group ne '' ? "stats $group\r\n" : "stats\r\n");
    my @lines;
    while (1) {
        my $line = read_line($sock);
        last if $line !~ /\n\z/;
        last if $line =~ /^(END|RESET|ERROR|CLIENT_ERROR|SERVER_ERROR)/;
        $line =~ s/\r?\n\z//;
        push @lines, $line;
    }
    return @lines;
}

sub mem_stats($sock, $group = undef) {
    my %stats = map { /^STAT (\S+) ?(.*)$/ ? ($1, $2) : () } stat_lines($sock, $group);
    return \%stats;
}

sub stat_names($sock, $group = undef) {
    return map { /^STAT (\S+)/ ? $1 : () } stat_lines($sock, $group);
}

# Moves the server's clock forward.
sub debugtime($server, $seconds) {
    my $sock = $server->control;
    put($sock, "debugtime $seconds\r\n");
    my $line = read_line($sock);
    die 'debugtime was answered: ' . show($line) if $line ne "OK\r\n";
    return 1;
}

# Asserts that the server's stderr says it, soon: what the line tells of may be seen before it.
sub log_says($server, $what, $name = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    wait_until(sub { $server->err =~ $what });
    return like($server->err, $what, $name);
}

# Calls the code until it is true or time is up; for states that another thread reaches.
sub wait_until($code, $seconds = undef) {
    my $end = time + ($seconds || $TIMEOUT);
    while (1) {
        my $result = $code->();
        return $result if $result;
        return 0 if time > $end;
        sleep 0.01;
    }
}

# soon { CODE } $name: asserts that the code becomes true.
sub soon : prototype(&$) ($code, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok(wait_until($code), $name);
}

# Waits until the server has accepted $more connections since $before = mem_stats($sock) and as
# many are open as then. The count of open ones alone would not tell: connections that nobody has
# accepted yet are not in it.
sub all_have_left($sock, $before, $more) {
    return wait_until(sub {
        mem_stats($sock)->{total_connections} >= $before->{total_connections} + $more;
    }) && wait_until(sub {
        mem_stats($sock)->{curr_connections} == $before->{curr_connections};
    });
}

# Are all threads of the server stopped, by SIGSTOP?
sub is_stopped($server) {
    for my $path (glob '/proc/' . $server->pid . '/task/*/stat') {
        my $line = read_file($path);
        return 0 if $line ne '' && $line !~ /^.*\) [Tt]/;
    }
    return 1;
}

# A field of /proc/PID/status, e.g. VmRSS in kB.
sub proc_status($pid, $field) {
    return read_file("/proc/$pid/status") =~ /^\Q$field\E:\s+(\S+)/m ? $1 : undef;
}

1;
