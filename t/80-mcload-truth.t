#!/usr/bin/env perl
# mcload tells the truth: its percentiles are those that can be computed from the log of a
# server whose behaviour is known, and every fault of the server is counted under its name.
use MCTest;
use List::Util qw(max min);
use MCLoad;
use MCTestd;

# What waits for a CPU beside the server's time is not in its log: the server's before it reads a
# request, mcload's before it reads a reply. On a machine that does nothing else it is no more than
# this.
my $SLACK_NS = 50e6;
# Latencies lie in buckets of 0.1 %.
my $BUCKET = 1.002;

# The smallest number that at least the share q of all do not exceed.
sub quantile($q, @all) {
    my @sorted = sort { $a <=> $b } @all;
    my $rank = int($q * @sorted + 0.999999);
    return $sorted[max(1, min($rank, scalar @sorted)) - 1];
}

# Runs mcload against such a server: (run, what the server did).
sub measure($server, @args) {
    my $testd = start_testd(@$server);
    my $run = mcload_json('-s', "127.0.0.1:$testd->{port}", '-r', '100', @args);
    return ($run, stop_testd($testd));
}

# No percentile, from the start that is named, may be below what the server's log says, nor far above
# it where both have a CPU when they want one. Of requests that were never sent, because the window
# ended first, the log has nothing; they are above all that is known.
sub agrees($run, $name, %truth) {
    delete $truth{intended} if $run->{json}{'totals.unsent'};
    for my $from (sort keys %truth) {
        for my $p (qw(p50 p75 p90)) {
            my $seen = $run->{json}{"latency.$from.pct.$p"} // 0;
            $seen = 'inf' if $seen eq 'null';
            my $true = quantile(substr($p, 1) / 100, @{$truth{$from}});
            cmp_ok($seen * $BUCKET, '>=', $true, "$name: $p from $from, by the server's log at least " . int $true);
            cmp_ok($seen, '<=', $true * $BUCKET + $SLACK_NS, '... and not much more') if is_quiet();
        }
    }
}

# ---- a stalling server --------------------------------------------------------------------

# One request at a time, 400 a second, and after 600 ms the server does nothing for 300 ms. What
# waited is sent in the half second after it.
# The i-th request was meant to start i/400 s after the first: the one that was sent most in
# time says when that was.
{
    my $rate = 400;
    my ($run, $did) = measure(['--delay=300', '--stall=300:900', '--value=100'], '--noload', '-q', $rate, '-i',
        'fixed', '-t', 1.5);
    my $json = $run->{json};
    my @rows = @{$did->{rows}};
    my @intended = map { $_ * 1e9 / $rate } 0 .. $#rows;
    my $begin = min(map { $rows[$_]{received} - $intended[$_] } 0 .. $#rows);
    is(scalar @rows, $json->{'totals.sent'}, 'a stall: each request sent is in the log');
    is($json->{'totals.sent'} + $json->{'totals.unsent'}, $json->{'totals.offered'},
        'a stall: no request is left out');
    agrees($run, 'a stall', intended => [map { $rows[$_]{sent} - $intended[$_] - $begin } 0 .. $#rows],
        issue => [map { $_->{sent} - $_->{received} } @rows]);
    my ($intended, $issue) = map { $json->{"latency.$_.pct.p90"} } qw(intended issue);
    # more than one in ten never sent: above all that is known
    ok($intended eq 'null' || $intended > 2 * $issue,
        "a stall: p90 from issue, $issue, leaves most of it out: $intended");
}

# ---- delays and queues --------------------------------------------------------------------

for my $case (
    ['a delay of 2 ms', ['--delay=2000', '--value=50']],
    ['a queue', ['--exp=1000', '--seed=5', '--value=50']],
    ['a queue, binary', ['--exp=1000', '--seed=6', '--value=50'], '--protocol=binary'],
) {
    my ($name, $server, @args) = @$case;
    my ($run, $did) = measure($server, '--noload', '-q', '400', '-c', '8', '-d', '8', '-t', '0.7', @args);
    my @times = map { $_->{sent} - $_->{received} } @{$did->{rows}};
    my ($good, @late) = map { $run->{json}{"totals.$_"} } qw(answered unanswered lost);
    # None is late unless the server stands still behind the window.
    ok(@times >= $good && @times <= $good + $late[0] + $late[1], "$name: all are answered") or diag($run->{out});
    agrees($run, $name, issue => \@times, intended => \@times);
}

# ---- faults -------------------------------------------------------------------------------

my @counters = qw(error client_error server_error unexpected wrong_value desync disconnect
    timeout connect);

# The server's fault and the counter it belongs to; all others stay at 0. A fault behind the
# last reply that is waited for is not seen: at most one a connection.
sub counted($fault, $counter, $run, $did, $name) {
    my $json = $run->{json};
    my $done = $did->{faults}{$fault};
    my $seen = $json->{"errors.$counter"} // 'missing';
    cmp_ok($done, '>', 0, "$name: the server did so");
    ok($seen > 0 && $seen <= $done && $seen >= $done - 2,
        "$name: $seen of $done counted as $counter") or diag($run->{err}, $run->{out});
    is(join(' ', grep { $_ ne $counter && $json->{"errors.$_"} } @counters), '', "$name: as nothing else");
    has($run, "$name: the run is worth nothing, and says why", status => 3, out => qr/^INVALID: .*errors/m);
}

for my $protocol (qw(ascii meta binary redis)) {
    for my $row (
        [error => $protocol eq 'redis' ? 'error' : 'server_error'],
        [wrong => 'wrong_value'],
        [garbage => 'desync'],
    ) {
        my ($fault, $counter) = @$row;
        my ($run, $did) = measure(["--fault=$fault:20", '--from=100', '--delay=100'],
            "--protocol=$protocol", '-t', 100, '--until=n:400', '-c', '2', '--verify=1');
        counted($fault, $counter, $run, $did, "$protocol, $fault");
    }
}

for my $row (
    [duplicate => 'desync'],
    [short => 'disconnect'],
    ['half-close' => 'disconnect'],
    [close => 'disconnect'],
    [reset => 'disconnect'],
    [lose => 'timeout', '--timeout=4'], # longer than anybody stands still
) {
    my ($fault, $counter, @args) = @$row;
    my ($run, $did) = measure(["--fault=$fault:" . ($fault eq 'lose' ? 60 : 20), '--delay=100', '--value=10'], '--noload',
        '-t', 100, '--until=n:200', '-c', '2', @args);
    counted($fault, $counter, $run, $did, $fault);
    cmp_ok($run->{json}{'totals.hits'}, '>', 0, "$fault: others are served");
}

{
    my ($run) = measure(['--dribble=7:50', '--value=30'], '--noload', @BRIEFLY, '-c', '2');
    is(join(' ', grep { $run->{json}{"errors.$_"} } @counters), '', 'a dribble is no error');
    has($run, 'a dribble: hits', 'totals.hits' => ['>', 0], 'totals.hits' => $run->{json}{'totals.keys'});
}

# ---- nobody there -------------------------------------------------------------------------

{
    my ($run) = measure(['--fault=refuse'], '-t', '0.2');
    has($run, 'refused from the start: status 2, a line says so, no table', status => 2,
        err => qr/^mcload: cannot connect to [^\n]*: Connection refused\n\z/, out => '');
}

for my $row (
    ['refuse', 'gone in the middle', '--timeout=0.2'],
    ['deaf', 'deaf in the middle', '--timeout=0.2'],
) {
    my ($fault, $name, @args) = @$row;
    my ($run) = measure(["--fault=$fault", '--from=50', '--value=10'], '--noload',
        '-t', 100, '--until=n:60', '-c', '2', @args);
    has($run, "$name: disconnected, could not connect again, the run is worth nothing",
        'errors.disconnect' => ['>=', 1], 'errors.connect' => ['>=', 1], status => 3);
}

{
    my ($run, $did) = measure(['--fault=lose', '--value=10'], '--noload', '-t', '0.3', '-q', '100', '-c', '2');
    like($run->{out}, qr/^INVALID: .*no request was answered/m, 'silence: the verdict');
    is($run->{json}{'totals.unanswered'} + $run->{json}{'totals.unsent'},
        $run->{json}{'totals.offered'}, 'silence: every request is accounted for');
}

done_testing();
