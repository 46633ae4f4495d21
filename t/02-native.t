#!/usr/bin/env perl
# The default profile: on the wire 1.6.45, with statistics of its own, and as many pinned workers
# as there are CPUs.
use MCTest ':ours';

my @QOS = qw(qos_limit qos_admitted qos_delayed qos_refused qos_level_pct);

# Without --compat it is native, which says what 1.6 says but for the lines of its own.
{
    my $native = serve('native');
    my $other = serve('1.6');
    my @names = map { [grep { $_ ne 'qos_headroom_pct' } stat_names($_->connect)] } $native, $other;
    is_deeply([@{$names[0]}[-@QOS .. -1]], \@QOS, 'stats ends with lines of its own');
    is_deeply([@{$names[0]}[0 .. $#{$names[0]} - @QOS]], $names[1], 'and begins as in 1.6');
    my %settings = map { $_->{profile} => mem_stats($_->connect, 'settings') } $native, $other;
    delete $_->{tcpport} for values %settings;
    is(delete $settings{native}{lru_policy}, 's3fifo', 'a policy of its own');
    delete $_->{lru_segmented} for values %settings;
    is_deeply($settings{native}, $settings{'1.6'}, 'the rest of stats settings as in 1.6');
    my $control = $native->connect;
    my $room;
    soon { defined($room = mem_stats($control)->{qos_headroom_pct}) } 'headroom is told once it is known';
    like($room, qr/^(?:100|\d?\d)\.\d$/, 'in percent');
    is(mem_stats($other->connect)->{qos_headroom_pct}, undef, 'not in 1.6');
    exchange($native->connect, "version\r\n", "VERSION 1.6.45\r\n");
}
{
    is(run_program('-V')->{out}, run_program('--compat=native', '-V')->{out}, 'native is the default');
    is(run_program('-h')->{out}, run_program('--compat=native', '-h')->{out}, 'in the help as well');
    my $run = run_program('--compat=1.5', '-V');
    has($run, 'an unknown profile', status => 64, err => qr/--compat must be native, 1\.6 or 1\.4/);
}

# What the lines say. Nothing that a limit of one request a second refuses depends on time: the
# burst is used up, and the clock stands still for the bucket only as long as a round trip takes.
{
    my ($server, $s) = serve('native', '--qps-limit=1,burst=1', '--qps-limit-action=error');
    is(mem_stats($s)->{qos_limit}, 1, 'the limit is told');
    roundtrip($s, "get a\r\n" x 100, undef);
    my $stats = mem_stats($s);
    is($stats->{qos_admitted} + $stats->{qos_refused}, 100, 'admitted or refused');
    has($stats, 'some were refused, none waited, no target refuses any', qos_refused => ['>', 0],
        qos_delayed => 0, qos_level_pct => '100.0');
    exchange($s, "qos qps_limit off\r\n", "OK\r\n");
    is(mem_stats($s)->{qos_limit}, 0, '0: no limit');
}

# As many threads as upstream, but pinned ones do not share CPUs unless that is asked for.
sub threads($wrap, @args) {
    my $server = serve('native', @args, {wrap => $wrap});
    return mem_stats($server->connect)->{threads};
}

is(threads([]), 4, '-t defaults to 4');
my ($cpu) = do {
    open my $fh, '<', '/proc/self/status' or die;
    map { /^Cpus_allowed_list:\s*(\d+)/ ? $1 : () } <$fh>;
};
SKIP: {
    skip 'needs taskset', 4 if system("taskset -c $cpu true 2>/dev/null") != 0;
    my $one = ['taskset', '-c', $cpu];
    is(threads($one), 4, 'on one CPU as well');
    is(threads($one, '--pin'), 1, 'with --pin one for that CPU');
    is(threads($one, '--pin', '-t', '2'), 2, 'unless asked for');
    is(threads($one, '--pin=none'), 4, 'or nothing is pinned');
}

done_testing();
