#!/usr/bin/env perl
# --balance beside a batch job: connections leave the worker whose CPU it uses, new ones go to
# the other worker, and when it has ended they come back. t/unit/check_crowd.c has the decisions.
use MCTest ':ours';
use Time::HiRes qw(time);

plan skip_all => 'measures: scripts/ci quiet' if !is_quiet();
my ($allowed) = read_file('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\S+)/m;
my @cpus = map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $allowed // '';
plan skip_all => 'needs two CPUs' if @cpus < 2;
plan skip_all => 'needs taskset' if system('taskset -V >/dev/null 2>&1') != 0;

my $server = serve('-t', '2', "--pin=list:$cpus[0],$cpus[1]", '--balance', '--steer=p2c');
my $s = $server->control;
my @conns = map { $server->connect } 1 .. 16;

# Waits until $what of the statistics is like $want, while requests come and go; gives up after
# a while.
sub keep_asking($what, $want) {
    my ($end, $batch) = (time + 25, "version\r\n" x 50);
    my $reply = VERSION_REPLY() x 50;
    my $got = '';
    while (time < $end) {
        put($_, $batch) for @conns;
        for my $c (@conns) {
            return 'a wrong reply' if read_bytes($c, length $reply) ne $reply;
        }
        $got = mem_stats($s, 'qos')->{$what};
        return $got if $got =~ $want;
        select undef, undef, undef, 0.002; # so that this does not fill its own CPU
    }
    return $got;
}

sub is_seen($what, $want, $why) {
    return like(keep_asking($what, $want), $want, $why);
}

sub start_batch {
    return in_child(sub { exec 'taskset', '-c', $cpus[0], $^X, '-e', 'alarm 100; 1 while 1' });
}

my @batch = (start_batch(), start_batch());

is_seen('worker_0_crowded', qr/^yes$/, 'the batch jobs are noticed');
log_says($server, qr/balance: CPU $cpus[0] of worker 0 is crowded/, 'and the log says so');
is_seen('worker_0_conns', qr/^0$/, 'everybody leaves');
my @late = map { $server->connect } 1 .. 8;
exchange($_, "version\r\n", VERSION_REPLY()) for @late;
is(mem_stats($s, 'qos')->{worker_0_conns}, 0, 'new connections are elsewhere, too');
kill 'KILL', @batch;
waitpid $_, 0 for @batch;
is_seen('worker_0_crowded', qr/^no$/, 'and it is noticed that they end');
is_seen('worker_0_conns', qr/^[1-9]/, 'connections come back');
$server->stop;
done_testing();
