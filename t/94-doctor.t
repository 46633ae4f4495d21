#!/usr/bin/env perl
# --doctor on this host, whatever it is: reads only, ends with 0 or 1, as any user; what it says of
# settings, of a server that runs, and of what it cannot look at.
use MCTest ':ours';
use JSON::PP;
use Cwd qw(getcwd);
use File::Spec;

my @binary = server_binary();
my $here = getcwd();

sub doctor(@args) { return run_program('--doctor' . shift(@args), @args) }

# The findings by name.
sub findings(@args) {
    my ($words, @options) = @args;
    my $run = doctor($words, @options);
    my $report = eval { decode_json($run->{out}) };
    is($@, '', "--doctor$words @options: JSON") or diag($run->{out}, $run->{err});
    return ({map { $_->{name} => $_ } @{$report->{checks}}}, $report, $run);
}

# Settings of the kernel that a careless program might have changed.
sub settings_of_kernel {
    return join '', map { "$_: " . read_file($_) } glob '/proc/sys/net/core/* /proc/sys/vm/*_memory '
        . '/proc/sys/kernel/sched_* /proc/sys/kernel/numa_balancing /sys/kernel/mm/transparent_hugepage/*';
}

# As this user: text.
my $before = settings_of_kernel();
my $run = doctor('');
ok($run->{status} == 0 || $run->{status} == 1, 'exits 0 or 1') or diag(explain($run));
is($run->{err}, '', 'nothing on stderr');
like($run->{out}, qr/^\d+ bad, (?:1 warning|(?!1 )\d+ warnings), (?:1 note|(?!1 )\d+ notes), \d+ unknown, \d+ good\n\n/, 'sums first');
is((grep { length > 80 } split /\n/, $run->{out}), 0, 'fits into 80 columns');
my ($bad, $warnings) = $run->{out} =~ /^(\d+) bad, (\d+) warnings?/;
is($run->{status}, $bad + $warnings > 0 ? 1 : 0, 'the status says whether there are any');
like($run->{out}, qr/^\d+ checks? (?:is|are) good; --doctor=all shows (?:it|them)$/m, 'good ones in a line');
my $all = doctor('=all');
unlike($all->{out}, qr/--doctor=all/, '--doctor=all: no such line');
like($all->{out}, qr/^good     \S/m, '--doctor=all: good ones');

# JSON: the same.
my ($found, $report, $json) = findings('=json');
is_deeply([sort keys %{$report->{counts}}], [qw(bad good note unknown warn)], 'counts of all levels');
my %counted;
$counted{$_->{level}}++ for values %$found;
is($report->{counts}{$_}, $counted{$_} // 0, "count: $_") for sort keys %{$report->{counts}};
is((grep { $_ eq '' } map { @{$_}{qw(found wanted why now)} } values %$found), 0,
    'each finding has its parts');
is(settings_of_kernel(), $before, 'nothing has changed');

# As an ordinary user.
SKIP: {
    skip 'not root', 3 if $> != 0;
    # The build folder may be closed to others, so the program is opened before the user changes.
    open my $program, '<', $binary[-1] or die "$binary[-1]: $!";
    my $user = run_program({command => [$^X, '-e',
        'open my $p, "<", shift or die $!; use Fcntl; fcntl $p, F_SETFD, 0; $( = $) = "65534 65534"; '
        . '$< = $> = 65534; exec { "/proc/self/fd/" . fileno $p } "memcached", @ARGV or die $!',
        $binary[-1], '--doctor=json'], timeout => 120});
    ok($user->{status} == 0 || $user->{status} == 1, 'an ordinary user: exits 0 or 1') or diag(explain($user));
    is($user->{err}, '', '... nothing on stderr');
    ok(eval { decode_json($user->{out}) }, '... JSON');
}

# Settings of the same command line.
($found) = findings('=json', '-l', '127.0.0.1');
is($found->{listeners}{level}, 'good', '-l 127.0.0.1 is good');
for my $open ('0.0.0.0', '*', '[::]:11211', '127.0.0.1,0.0.0.0:11300') {
    ($found) = findings('=json', '-l', $open);
    is($found->{listeners}{level}, 'warn', "-l $open is not");
}
($found) = findings('=json', '-U', '11211');
is($found->{listeners}{level}, 'bad', 'nor is UDP');
($found) = findings('=json', '-s', '/nowhere/socket');
is($found->{listeners}{level}, 'good', 'a UNIX socket is good');
($found) = findings('=json', '-l', '10.0.0.1');
is($found->{listeners}{level}, 'note', 'one address is worth a note');
($found) = findings('=json', '-t', '1000', '-c', '20000', '--sched=fifo');
is($found->{cpuset}{level}, 'warn', 'more workers than CPUs');
like($found->{cpuset}{found}, qr/^1000 workers/, '... as many as -t says');
is($found->{'sched-slice'}{found}, '--sched=fifo:1', '--sched is known');
($found) = findings('=json', '--sched=bvt');
like($found->{'sched-slice'}{found}, qr/^--sched=bvt\b/, '... each policy');
($found) = findings('=json', '-m', '100', '-I', '32m');
is($found->{'item-size'}{level}, 'warn', '-I is large for -m');
like($found->{'item-size'}{found}, qr/32768 KB, of which -m 100 holds 3$/, '... in numbers');
SKIP: {
    skip 'built without hwloc', 1 if !has_hwloc();
    ($found) = findings('=json', '-t', '1', '--pin');
    is($found->{pinning}{level}, 'good', '--pin is known');
}

# A server that runs: its settings, and its threads.
{
    my $server = serve('-t', '3', '-m', '100', '-I', '32m');
    mem_stats($server->connect);
    ($found) = findings('=json,' . $server->pid);
    like($found->{cpuset}{found}, qr/^3 workers may use/, 'a server that runs: its workers');
    is($found->{'item-size'}{level}, 'warn', '... its -I');
    is($found->{listeners}{level}, 'good', '... its -l');
    like($found->{'open-files'}{found}, qr/^\d+ files may be open; -c 1024/, '... its limits');
}

# What the kernel has made of its --sched.
SKIP: {
    my @without = ('setpriv', '--bounding-set=-sys_nice');
    skip 'needs root, and setpriv', 1 if $> != 0 || run_program({command => [@without, 'true']})->{status} != 0;
    chmod 0777, scratch_dir();
    my $server = serve('-t', '2', '-u', 'nobody', '--sched=fifo', {wrap => \@without});
    skip 'a limit permits it here', 1 if mem_stats($server->connect, 'pin')->{sched_errors} == 0;
    ($found) = findings('=json,' . $server->pid);
    has($found->{'sched-policy'}, '--sched that was refused', level => 'warn',
        found => qr/^--sched=fifo:1, but workers have other:/, now => qr/CAP_SYS_NICE/);
    isnt($found->{'sched-slice'}{found}, '--sched=fifo:1', '... is not called good');
    $server->stop;
    chmod 0700, scratch_dir();
}

# Its file of options is found where it was started.
{
    my $dir = scratch_dir();
    my $port = free_port();
    write_file("$dir/own.conf", "memory-limit = 100\nmax-item-size = 32m\n");
    my $pid = in_child(sub {
        chdir $dir or die "chdir: $!";
        exec File::Spec->rel2abs($binary[0], $here), @binary[1 .. $#binary], '--config', 'own.conf', '-l', '127.0.0.1', '-p', $port, @AS_ROOT;
    });
    soon { IO::Socket::INET->new("127.0.0.1:$port") } 'a server with a file is up';
    ($found) = findings("=json,$pid");
    is($found->{'item-size'}{level}, 'warn', 'its file counts');
    kill 'TERM', $pid;
    waitpid $pid, 0;
}

# What cannot be looked at.
for my $row (["=$$", qr/process $$ is .*, not memcached/], ['=4194305', qr/there is no process 4194305/]) {
    my ($words, $message) = @$row;
    $run = doctor($words);
    is($run->{status}, 2, "--doctor$words exits 2");
    like($run->{err}, $message, '... and says why');
    is($run->{out}, '', '... only there');
}
for my $words ('=some', '=0', '=all,-1', '=json;all') {
    $run = doctor($words);
    is($run->{status}, 64, "--doctor$words exits 64");
    like($run->{err}, qr/--doctor takes all, json/, '... and says what there is');
}
$run = doctor('', '-m', '100', '-I', '90m');
isnt($run->{status}, 0, 'settings that no server would start with');
like($run->{err}, qr/item size limit/, '... are refused as there');
done_testing();
