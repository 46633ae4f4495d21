#!/usr/bin/env perl
# mcqos layout: the processes of a shape on machines that are described, units of systemd, and
# layouts that run: each server is where it should be and serves, and all end together.
use MCTest;
use MCQos;

my $dir = scratch_dir();
my $papers = 'pack:2 l3:1 core:6 pu:2'; # the machine of the papers
my $no_hwloc = mcqos('layout', '1s1c1t', "--machine=$papers")->{err} =~ /built without hwloc/;
if ($no_hwloc) {
    mcqos_says(64, '', qr/needs hwloc, and this program was built without hwloc/, 'layout', '1s1c1t');
    done_testing();
    exit;
}

# The whole of a small one.
my $memcached = '--memcached=/usr/bin/memcached';
mcqos_says(0, <<'TEXT', '', 'layout', '2s1c2t', "--machine=$papers", '-m', 1000, $memcached, '--', '-c', 4096, '--slo', 'p95:1ms x');
# 2s1c2t: 4 processes, 1000 MB in all
# port 11211: socket 0, core 0, node 0, CPU 0
/usr/bin/memcached -l 127.0.0.1 -p 11211 -m 250 -t 1 --pin=list:0 --membind=local -c 4096 --slo 'p95:1ms x'
# port 11212: socket 0, core 0, node 0, CPU 1
/usr/bin/memcached -l 127.0.0.1 -p 11212 -m 250 -t 1 --pin=list:1 --membind=local -c 4096 --slo 'p95:1ms x'
# port 11213: socket 1, core 6, node 0, CPU 12
/usr/bin/memcached -l 127.0.0.1 -p 11213 -m 250 -t 1 --pin=list:12 --membind=local -c 4096 --slo 'p95:1ms x'
# port 11214: socket 1, core 6, node 0, CPU 13
/usr/bin/memcached -l 127.0.0.1 -p 11214 -m 250 -t 1 --pin=list:13 --membind=local -c 4096 --slo 'p95:1ms x'

# servers, for clients with weighted ketama
127.0.0.1:11211,127.0.0.1:11212,127.0.0.1:11213,127.0.0.1:11214

# nutcracker.yml
layout:
  listen: 127.0.0.1:22121
  hash: md5
  distribution: ketama
  auto_eject_hosts: false
  timeout: 400
  servers:
   - 127.0.0.1:11211:1
   - 127.0.0.1:11212:1
   - 127.0.0.1:11213:1
   - 127.0.0.1:11214:1
TEXT

# "port:CPUs/threads@node=MB*share" of each process, and the servers.
sub planned($shape, @args) {
    my $json = mcqos_json('layout', $shape, @args) or return 'none';
    return join ' ', map { "$_->{port}:$_->{cpus}/$_->{threads}\@$_->{node}=$_->{memory_mb}*$_->{share}" }
        @{$json->{instances}};
}
is(planned('2s3c2t', "--machine=$papers"),
    join(' ', map { 11211 + $_ . ':' . ($_ < 6 ? $_ : $_ + 6) . '/1@0=64*1' } 0 .. 11), 'the layout of the papers');
is(planned('2s3,1c1t', "--machine=$papers", '-p', 5000), '5000:0/1@0=64*1 5001:2/1@0=64*1 5002:4/1@0=64*1 5003:12/1@0=64*1',
    'sockets that differ');
is(planned('2s2c2t', '--machine=pack:2 numa:1 core:2 pu:2', '--per=core', '-m', 401),
    '11211:0-1/2@0=100*1 11212:2-3/2@0=100*1 11213:4-5/2@1=100*1 11214:6-7/2@1=100*1', 'one for each core');
is(planned('2s2c1t', '--machine=pack:2 numa:1 core:2 pu:2', '--per=socket', '--share=3,1', '-m', 400),
    '11211:0,2/2@0=300*3 11212:4,6/2@1=100*1', 'one for each socket, of different size');
is(planned('2s2c1t', '--machine=pack:2 numa:1 core:2 pu:2', '--per=socket', '-m', '1g'),
    '11211:0,2/2@0=512*1 11212:4,6/2@1=512*1', 'memory with a suffix');
# So many workers leave few of the default's connections to clients, or none.
like(mcqos('layout', '1s60c2t', '--per=socket', '--machine=pack:1 core:60 pu:2')->{out}, qr/ -t 120 .* -c 1624( |$)/m, 'many workers: more connections');
unlike(mcqos('layout', '1s50c2t', '--per=socket', '--machine=pack:1 core:60 pu:2')->{out}, qr/ -c /, '... not so many: as by default');
like(mcqos('layout', '1s2c1t', "--machine=$papers", '--share=2,1', '-l', 'h')->{out},
    qr/^h:11211:2,h:11212:1\n.*^   - h:11211:2\n   - h:11212:1\n\z/ms, 'shares are weights for clients');
# A host that does not tell of sockets, as one without /sys.
like(mcqos('layout', '1s1c1t', '--machine=pu:2')->{out}, qr/^# port 11211: socket unknown, core unknown, node 0, CPU 0$/m, 'what is not known is said');
is_deeply([@{mcqos_json('layout', '1s1c1t', '--machine=pu:2')->{instances}[0]}{'socket', 'node'}], [undef, 0], '... and null in JSON');
scratch_file('machine.xml', '');
has(mcqos('layout', '1s1c1t', "--machine=$dir/machine.xml"), 'no XML', status => 64, err => qr/^mcqos: hwloc cannot read the topology/m);

is(mcqos_json('layout', '1s1c1t', "--machine=$papers", '-l', $_->[0])->{servers}, $_->[1], "clients call $_->[0]")
    for ['h;class=bulk', 'h:11211'], ['::1', '[::1]:11211'], ['[::1];control', '[::1]:11211'];
like(mcqos('layout', '1s1c1t', "--machine=$papers", '-l', 'h;class=bulk', '--', '-o', "it's")->{out},
    qr/ -l 'h;class=bulk' -p 11211 .* 'it'\\''s'\n/, 'a shell reads the commands as they are meant');

# What cannot be is refused.
mcqos_says(64, '', qr/does not fit: socket 0 has 6 of the 7 cores/, 'layout', '2s7c1t', "--machine=$papers");
mcqos_says(64, '', qr/"$_": a layout is a shape such as 2s3c2t/, 'layout', $_, "--machine=$papers")
    for 'nonsense', 'spread', 'list:0', '';
mcqos_says(64, '', qr/"--memory=11" is less|--memory=11 is less than 1 MB for each of 12/, 'layout', '2s3c2t', '-m', 11, "--machine=$papers");
mcqos_says(64, '', qr/12 ports from --port=65530 on go beyond 65535/, 'layout', '2s3c2t', '-p', 65530, "--machine=$papers");
mcqos_says(64, '', qr/--share=1,0: shares are/, 'layout', '2s3c2t', '--share=1,0', "--machine=$papers");
mcqos_says(64, '', qr/"walk": behind the shape come run, or -- and/, 'layout', '2s3c2t', 'run', 'walk');
mcqos_says(64, '', qr/"walk": behind the shape come run/, 'layout', '2s3c2t', 'walk', "--machine=$papers");
mcqos_says(64, '', qr/run goes with neither --machine/, 'layout', '2s3c2t', 'run', "--machine=$papers");

mcqos_says(64, '', qr/--listen=\Q$_\E: it is one address without a port/, 'layout', '1s2c1t', "--machine=$papers", '-l', $_)
    for '127.0.0.1,::1', '127.0.0.1:11300', 'notls:127.0.0.1', 'h:1;class=bulk', '[::1]:11300', 'notls:[::1]', 'notls:::1', '';

# Units of systemd.
{
    my $units = "$dir/units";
    my $run = mcqos('layout', '1s2c1t', "--machine=$papers", "--units=$units", $memcached, '--', '-o', 'a "b"$%');
    has($run, 'units', status => 0, err => qr/units are in \Q$units\E; .* systemctl enable --now memcached-layout\.target/);
    like(read_file("$units/memcached-layout.target"),
        qr/^Wants=memcached-layout\@11211\.service\nWants=memcached-layout\@11212\.service\n/m, 'the target wants all');
    like(read_file("$units/memcached-layout\@.service"), qr/^PartOf=memcached-layout\.target$/m, 'they stop with it');
    like(read_file("$units/memcached-layout\@.service"),
        qr/^ExecStart="\/usr\/bin\/memcached" -l "127\.0\.0\.1" -p %i \$INSTANCE "-o" "a \\"b\\"\$\$%%"$/m, 'words are quoted');
    mcqos('layout', '1s2c1t', "--machine=$papers", "--units=$dir/odd", '--memcached=/opt/my 100%/"new"$/memcached');
    like(read_file("$dir/odd/memcached-layout\@.service"),
        qr{^ExecStart="/opt/my 100%%/\\"new\\"\$/memcached" -l "127}m, 'and so is the program, which has no variables');
    is(read_file("$units/memcached-layout\@11212.service.d/instance.conf"),
        "[Service]\nCPUAffinity=2\nEnvironment=\"INSTANCE=-m 64 -t 1 --pin=list:2 --membind=local\"\n", 'each has its own');
    my ($systemd) = (`systemd-analyze --version 2>/dev/null` // '') =~ /^systemd (\d+)/;
    if (-x $memcached =~ s/.*=//r && ($systemd // 0) >= 250) { # it reviews without systemd running
        mcqos('layout', '1s2c1t', "--machine=$papers", "--units=$units", $memcached);
        my $verify = run_program({command => ['env', "SYSTEMD_UNIT_PATH=$units:", 'systemd-analyze', 'verify',
                '--man=no', "$units/memcached-layout\@11211.service", "$units/memcached-layout.target"]});
        unlike($verify->{err}, qr/memcached-layout/, 'systemd finds nothing wrong');
        my $security = run_program({command => ['systemd-analyze', 'security', '--offline=yes', '--threshold=15',
                "$units/memcached-layout\@.service"]});
        is($security->{status}, 0, 'and its exposure level is 1.5 at most') || diag($security->{out});
    }
    scratch_file('file', '');
    mcqos_says(1, '', qr{cannot write \Q$dir\E/file}, 'layout', '1s1c1t', "--machine=$papers", "--units=$dir/file/x");
}

# ---- layouts that run ------------------------------------------------------------------

my ($server) = server_binary();
# Two processes where there are two cores of a socket, else one.
my $shape = mcqos('layout', '1s2c1t')->{status} == 0 ? '1s2c1t' : '1s1c1t';
my @cpus = map { $_->{cpus} } @{mcqos_json('layout', $shape)->{instances}};

sub started($first, @more) {
    my $out = "$dir/run.$first";
    my $pid = in_child(sub {
        open STDOUT, '>', $out;
        open STDERR, '>&', \*STDOUT;
        exec @MCQOS, 'layout', $shape, 'run', '-p', $first, "--memcached=$server", @more, '--', '-v', @AS_ROOT;
    });
    return ($pid, $out);
}

sub ended($pid) {
    waitpid $pid, 0;
    return $?;
}

for my $signal (qw(INT TERM)) {
    my $first = free_ports(2);
    my ($pid, $out) = started($first);
    for my $n (0 .. $#cpus) {
        my $port = $first + $n;
        my $s;
        soon { $s = IO::Socket::INET->new("127.0.0.1:$port") } "port $port is served";
        syswrite $s, "set k$n 0 0 1\r\n$n\r\nget k$n\r\nget none\r\nstats pin\r\n";
        my $got = '';
        $got .= <$s> // last while $got !~ /STAT pin_worker_0_sched_wait_ns/;
        like($got, qr/\ASTORED\r\nVALUE k$n 0 1\r\n$n\r\nEND\r\nEND\r\n/, 'it stores and serves');
        like($got, qr/^STAT pin_allowed $cpus[$n]\r$/m, 'all of it has its CPU only');
        like($got, qr/^STAT pin_worker_0_cpu $cpus[$n]\r$/m, 'and the worker is there');
        like($got, qr/^STAT pin_membind local\r$/m, 'memory is of its node');
    }
    kill $signal, $pid;
    is(ended($pid), 0, "SIG$signal ends all, with status 0");
    my $said = read_file($out);
    like($said, qr/^$_\| .*\bport $_\b|^$_\| .*127\.0\.0\.1:$_/m, "what $_ prints has its port in front") for map { $first + $_ } 0 .. $#cpus;
    ok(!IO::Socket::INET->new("127.0.0.1:$first"), 'nothing is left');
}

# What reads its output has ended: all end. The kernel does not tell a server that has changed its user.
{
    my $first = free_ports(2);
    pipe my $reader, my $writer or die "pipe: $!";
    my $pid = in_child(sub {
        close $reader;
        open STDOUT, '>&', $writer;
        exec @MCQOS, 'layout', $shape, 'run', '-p', $first, "--memcached=$server", '--', '-vv', $> == 0 ? ('-u', 'nobody') : ();
    });
    close $writer;
    $reader->blocking(0);
    my $s;
    soon { 1 while sysread $reader, my $said, 4096; $s = IO::Socket::INET->new("127.0.0.1:$first") } 'served';
    close $reader;
    syswrite $s, "version\r\n"; # is printed
    soon { waitpid($pid, POSIX::WNOHANG()) == $pid } 'mcqos ends';
    soon { !IO::Socket::INET->new("127.0.0.1:$first") } 'and its servers';
}

# One that ends takes the others along.
if (@cpus > 1) {
    my $first = free_ports(2);
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $first + 1, Listen => 1) or die "listen: $!";
    my ($pid, $out) = started($first);
    is(ended($pid) >> 8, 1, 'a port that is taken ends all');
    like(read_file($out), qr/the server on port @{[$first + 1]} ended with status \d+; stopping the others/, 'and it is said');
}
{
    my ($pid, $out) = started(free_ports(2), '--memcached=/nowhere/memcached');
    is(ended($pid) >> 8, 1, 'no server');
    like(read_file($out), qr{cannot start /nowhere/memcached: No such file or directory; --memcached=PATH}, 'and the remedy');
}
done_testing();
