#!/usr/bin/env perl
# Two saturated workers, and nearly all the greedy clients on one of them: connections go to the
# other, though at any moment most of them wait in a queue; and all that was asked is answered. How
# many go, and how soon, is up to who else uses the CPUs: t/unit/check_balance.c has that.
use MCTest ':ours';
use Time::HiRes qw(time);

my ($MANY, $FEW, $DEPTH) = (40, 2, 10);
# Misses cost the server more than the client; lines of so many keys wait in the queue of bulk.
my $line = 'get ' . join(' ', map { "key$_" } 1 .. 100) . "\r\n";
my $batch = $line x $DEPTH;
my $reply = "END\r\n" x $DEPTH;

# Both workers on one CPU, where that can be had, so that it takes little to saturate them.
my @conns;
my $server = serve('-t', '2', '--steer=rr', '--balance');
my ($cpu) = MCTest::slurp('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\d+)/m;
my $pid = $server->pid;
system("taskset -apc $cpu $pid >/dev/null 2>&1");
my $s = $server->control;

sub conns_of {
    my $stats = mem_stats($s, 'qos');
    return map { $stats->{"worker_${_}_conns"} } 0, 1;
}

@conns = map { $server->connect } 1 .. $MANY;
exchange($_, "version\r\n", VERSION_REPLY()) for @conns;
# Who else uses the CPU may be a reason to move some back, so it is ordered until it is so.
soon {
    put($s, "qos rebalance 1 0 1000\r\n");
    read_line($s);
    (conns_of())[1] == 0;
} 'everybody is on worker 0';
my @more = map { $server->connect } 1 .. 2 * $FEW; # of which every other one is for worker 1
exchange($_, "version\r\n", VERSION_REPLY()) for @more;
push @conns, @more;

my %state = map { ($_ => {sock => $_, got => '', asked => 0, answered => 0}) } @conns;
my $select = IO::Select->new(@conns);
my ($end, $look, $wrong, $is_seen) = (time + 300, 0, '', 0);

sub ask($c) {
    put($c->{sock}, $batch);
    $c->{asked}++;
}

sub hear($c) {
    my $n = sysread $c->{sock}, $c->{got}, 65536, length $c->{got};
    return $wrong ||= 'closed' if !$n;
    return if length $c->{got} < length $reply;
    $wrong ||= "got $c->{got}" if $c->{got} ne $reply;
    $c->{got} = '';
    $c->{answered}++;
    return 1;
}

ask($_) for values %state;
my $from = 0;
while (!$wrong && !$is_seen && time < $end) {
    for my $sock ($select->can_read(1)) {
        ask($state{$sock}) if hear($state{$sock});
    }
    if (time > $look) {
        $look = time + 0.1;
        my $stats = mem_stats($s, 'qos');
        $from = $stats->{migr_last_reason};
        $is_seen = $stats->{worker_1_conns} > $FEW && $from ne 'order';
    }
}
is($wrong, '', 'all replies are right');
ok($is_seen, 'worker 1 gets its part: ' . (conns_of())[1]);
like($from, qr/^(busy|wait|backlog)$/, 'because of the load');
log_says($server, qr/balance: \d+ connections? from worker 0 .* to 1 .*: (busy|wait|backlog)/,
    'and lines say so');

# what waits is served where it is
$end = time + 300;
while (!$wrong && time < $end && grep { $_->{answered} < $_->{asked} } values %state) {
    hear($state{$_}) for $select->can_read(1);
}
is(scalar(grep { $_->{answered} != $_->{asked} } values %state), 0, 'the queues drain');
my $classes = mem_stats($s, 'classes');
my $asked = 0;
$asked += $_->{asked} * $DEPTH for values %state;
is($classes->{class_bulk_served}, $asked, 'each request was served once');
done_testing();
