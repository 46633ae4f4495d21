#!/usr/bin/env perl
# patches/memcached-1.6.18: workers of any memcached are bound to CPUs in turn, and nothing else is;
# with -N they get the connections that their CPU receives.
use MCTest;

my $patch = "$TOP/patches/memcached-1.6.18";
my $folder = scratch_dir();

my $usage = run_program({command => ["$patch/build"]});
is($usage->{status}, 2, 'build wants a folder');
like($usage->{err}, qr/^usage: /, '... and says so');

my $header = run_program({command => ['sh', '-c', 'echo "#include <hwloc.h>" | gcc -fsyntax-only -x c -']});
if ($header->{status} != 0) {
    done_testing();
    exit;
}
my $build = run_program({command => ["$patch/build", $folder]});
is($build->{status}, 0, 'it is built') or diag($build->{err});
my $library = "$folder/workers.so";

# CPUs as a list of numbers.
sub cpus($list) { return map { my ($a, $b) = split /-/; $a .. $b // $a } split /,/, $list }

sub allowed($status) {
    open my $fh, '<', $status or return;
    my ($list) = map { /^Cpus_allowed_list:\s+(\S+)/ } <$fh>;
    return [cpus($list)];
}

sub threads($pid) {
    my %threads;
    for my $task (glob "/proc/$pid/task/*") {
        open my $fh, '<', "$task/comm" or next;
        chomp(my $name = <$fh>);
        push @{$threads{$name =~ /^mc-worker/ ? 'workers' : 'others'}}, allowed("$task/status");
    }
    return \%threads;
}

# How many workers each CPU has; others may run wherever the process may.
sub check($name, $pid, $count, @may) {
    my $threads;
    wait_until(sub {
        $threads = threads($pid);
        return @{$threads->{workers} // []} == $count && !grep { @$_ != 1 } @{$threads->{workers}};
    });
    is(scalar(grep { @$_ == 1 } @{$threads->{workers}}), $count, "$name: each worker has one CPU");
    my %workers;
    $workers{$_->[0]}++ for @{$threads->{workers}};
    my @counts = sort { $a <=> $b } map { $workers{$_} // 0 } @may;
    ok($counts[-1] - $counts[0] <= 1, '... in turn') or diag("@counts");
    is(scalar(grep {"@$_" ne "@may"} @{$threads->{others}}), 0, '... and no other thread is bound');
}

my @all = @{allowed('/proc/self/status')};
my ($binary, @wrapped) = server_binary();
my $libs = `ldd $binary 2>/dev/null`;
my $preload = join ' ', ($libs =~ m{=> (\S+/lib[at]san\.so\S*)}g), $library;
SKIP: {
    skip 'run by another program', 1 if @wrapped;
    my $server = serve('-t', 3, {env => {LD_PRELOAD => $preload}});
    check('this server', $server->{pid}, 3, @all);
}

my ($theirs) = grep { -x } map {"$_/memcached"} split /:/, $ENV{PATH};
SKIP: {
    skip 'no other memcached', 1 if !$theirs;
    for my $may ([@all], [$all[0]]) {
        my $socket = scratch_dir() . "/$#$may.socket";
        my $pid = in_child(sub {
            $ENV{LD_PRELOAD} = $library;
            exec 'taskset', '-c', join(',', @$may), $theirs, '-t', 4, '-s', $socket, ($> == 0 ? ('-u', 'root') : ());
        });
        wait_until(sub { -S $socket });
        check("the other one, CPUs @$may", $pid, 4, @$may);
        kill 'TERM', $pid;
        waitpid $pid, 0;
    }
    my $steered = run_program({command => ['env', "LD_PRELOAD=$library", "$patch/try", $theirs]});
    is($steered->{status}, 0, 'each worker has the connections of its CPU') or diag(@$steered{qw(out err)});
    skip 'one CPU', 1 if @all < 2;
    is(run_program({command => ["$patch/try", $theirs]})->{status}, 1, '... and without the library has not');
}

done_testing();
