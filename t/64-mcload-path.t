#!/usr/bin/env perl
# mcload allocates nothing, takes no lock and prints nothing for a request: a run of more
# requests does as much of it, with each protocol, engine and way of sending.
# t/preload/fail_alloc.c counts allocations, of the whole program, t/preload/count_calls.c locks
# and formatted prints, those of the main thread apart from those of others, which send.
use MCTest;
use MCLoad;
use MCPreload;

my %control = map { $_ => scratch_dir() . "/$_" } qw(alloc calls);
my %environment = (preloaded(qw(fail_alloc count_calls)), FAIL_ALLOC => $control{alloc}, COUNT_CALLS => $control{calls});

# What the main thread may need for more looks at a longer run, and what sending threads may.
my ($SLACK, $SLACK_SENDING) = (40, 4);

# What a run did, and its requests.
sub cost_of {
    my @args = @_;
    control_put($_, 0, 0, 0, 0) for values %control;
    local %ENV = (%ENV, %environment);
    my $run = mcload(@args);
    my %cost;
    ($cost{allocations}) = control_of($control{alloc});
    @cost{qw(main_locks locks main_prints prints)} = control_of($control{calls});
    ($cost{requests}) = $run->{out} =~ /^Total QPS = \S+ \((\d+) /m;
    diag("@args: $run->{out}$run->{err}") if !$cost{requests};
    $cost{requests} //= 0;
    return \%cost;
}

my $server = serve();
my $at = $server->at;
my @common = ('-s', $at, '-r', '200', '-c', '4', '--warmup=0', '--progress=none');
my @loads = (
    ['-d', 1],
    ['-d', 16, '-u', '0.3', '--verify=1'],
    ['--protocol=meta', '--getcount=4', '--by-size'],
    ['--protocol=binary', '--ops=get:5,set:2,delete:1,touch:1,incr:1'],
    ['-q', 2000, '--arrivals=exponential'],
    ['--ops=get:1,delete:1', '--on-miss=set-after:1ms'],
    ['--ops=get:1,delete:1', '--on-miss=lease:1ms', '--protocol=meta'],
);
push @loads, ['--engine=io_uring', '-d', 4] if mcload('--engine=help')->{out} =~ /io_uring/;
for my $load (@loads) {
    my $short = cost_of(@common, @$load, '-t', 100, '--until=n:100');
    my $long = cost_of(@common, @$load, '-t', 100, '--until=n:' . ($short->{requests} + 20 * $SLACK));
    cmp_ok($short->{$_}, '>', 0, "@$load: $_ are counted") for qw(allocations locks main_prints);
    cmp_ok($long->{requests}, '>', $short->{requests} + 10 * $SLACK, "@$load: more requests");
    cmp_ok($long->{allocations} - $short->{allocations}, '<=', $SLACK, "@$load: and no more allocations");
    cmp_ok($long->{$_} - $short->{$_}, '<=', $SLACK_SENDING, "@$load: nor $_ by threads that send")
        for qw(locks prints);
}
done_testing();
