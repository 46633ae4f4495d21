#!/usr/bin/env perl
# mcload tells the truth: its percentiles are those that can be computed from the log of a
# server whose behaviour is known, and every fault of the server is counted under its name.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use List::Util qw(max min);
use Test::More;
use Time::HiRes qw(time);
use MCLoad;
use MCTest;
use MCTestd;

# What waits for a CPU beside the server's time is not in its log: the server's before it reads a
# request, mcload's before it reads a reply. In one of a few runs it is no more than this; what
# mcload made up itself would be in all of them.
my $SLACK_NS = 50e6;
# Latencies lie in buckets of 0.1 %.
my $BUCKET = 1.002;
# A run may last so much longer than it should: start, the last replies, a busy machine.
my $GRACE_S = 20;

# The smallest number that at least the share q of all do not exceed.
sub quantile {
    my ($q, @all) = @_;
    my @sorted = sort { $a <=> $b } @all;
    my $rank = int($q * @sorted + 0.999999);
    return $sorted[max(1, min($rank, scalar @sorted)) - 1];
}

# Runs mcload against such a server, and again, each with a server of its own, while
# is_in_vain(run, what the server did): both of the last run. What both are told may be a code
# that is given how many runs were in vain.
sub measure_unless {
    my ($is_in_vain, @how) = @_;
    my $did;
    my $in_vain = 0;
    my $run = until_not(12, sub { $is_in_vain->($_[0], $did) }, sub {
        my ($server, @args) = ref $how[0] eq 'CODE' ? $how[0]->($in_vain++) : @how;
        my $testd = start_testd(@$server);
        my $start = time;
        my $run = mcload_json('-s', "127.0.0.1:$testd->{port}", '-r', '100', @args);
        $run->{took} = time - $start;
        $did = stop_testd($testd);
        return $run;
    });
    return ($run, $did);
}

sub measure { return measure_unless(\&disturbed, @_); }

# What mcload says, and what is true by the server's log, from the start that is named.
sub seen_and_true {
    my ($run, $from, $truth, $p) = @_;
    return ($run->{json}{"latency.$from.pct.$p"} // -1, quantile(substr($p, 1) / 100, @$truth));
}

my @percentiles = qw(p50 p75 p90);

# Requests that were never sent, because the run ended while the machine was busy with something
# else, have no latency to compare; those that waited for the machine have another one.
# truth_of(what the server did) has the true latencies, by where they are counted from.
sub measure_calmly {
    my ($truth_of, @how) = @_;
    return measure_unless(sub {
        my ($run, $did) = @_;
        return 'some were never sent' if $run->{json}{'totals.unsent'};
        my %truth = $truth_of->($did);
        for my $from (keys %truth) {
            for my $p (@percentiles) {
                my ($seen, $true) = seen_and_true($run, $from, $truth{$from}, $p);
                return "$p from $from is $seen" if $seen > $true * $BUCKET + $SLACK_NS;
            }
        }
        return '';
    }, @how);
}

# No percentile may be below what the server knows to be true, nor far above.
sub agrees {
    my ($run, $name, %truth) = @_;
    for my $from (sort keys %truth) {
        for my $p (@percentiles) {
            my ($seen, $true) = seen_and_true($run, $from, $truth{$from}, $p);
            ok($seen * $BUCKET >= $true && $seen <= $true * $BUCKET + $SLACK_NS,
                "$name: $p from $from is $seen, by the server's log at least " . int $true);
        }
    }
}

# ---- a stalling server --------------------------------------------------------------------

# One request at a time, 400 a second, and after 600 ms the server does nothing for 300 ms. What
# waited is sent in the half second after it. Where the machine has no time for so many, all of it is
# slower.
# The i-th request was meant to start i/400 s after the first: the one that was sent most in
# time says when that was.
{
    my $rate;
    my $truth_of = sub {
        my ($did) = @_;
        my @rows = @{$did->{rows}};
        my @intended = map { $_ * 1e9 / $rate } 0 .. $#rows;
        my $begin = min(map { $rows[$_]{received} - $intended[$_] } 0 .. $#rows);
        return (intended => [map { $rows[$_]{sent} - $intended[$_] - $begin } 0 .. $#rows],
            issue => [map { $_->{sent} - $_->{received} } @rows]);
    };
    my ($run, $did) = measure_calmly($truth_of, sub {
        my $slower = 2 ** min(3, int($_[0] / 2));
        $rate = 400 / $slower;
        my $stall = join ':', map { $_ * $slower } 300, 900;
        return (['--delay=300', "--stall=$stall", '--value=100'], '--noload', '-q', $rate, '-i', 'fixed',
            '-t', 1.5 * $slower);
    });
    my $json = $run->{json};
    is(scalar @{$did->{rows}}, $json->{'totals.sent'}, 'a stall: each request sent is in the log');
    is($json->{'totals.sent'}, $json->{'totals.offered'}, 'a stall: no request is left out');
    agrees($run, 'a stall', $truth_of->($did));
    cmp_ok($json->{'latency.intended.pct.p90'}, '>', 2 * $json->{'latency.issue.pct.p90'},
        'a stall: whoever measures from issue leaves most of it out');
}

# ---- delays and queues --------------------------------------------------------------------

for my $case (
    ['a delay of 2 ms', ['--delay=2000', '--value=50']],
    ['a queue', ['--exp=1000', '--seed=5', '--value=50']],
    ['a queue, binary', ['--exp=1000', '--seed=6', '--value=50'], '--protocol=binary'],
) {
    my ($name, $server, @args) = @$case;
    my $truth_of = sub {
        my @times = map { $_->{sent} - $_->{received} } @{$_[0]{rows}};
        return (issue => \@times, intended => \@times);
    };
    my ($run, $did) = measure_calmly($truth_of, $server, '--noload', '-q', '400', '-c', '8', '-d',
        '8', '-t', '0.7', @args);
    is(scalar @{$did->{rows}}, $run->{json}{'totals.achieved'}, "$name: all are answered");
    agrees($run, $name, $truth_of->($did));
}

# ---- faults -------------------------------------------------------------------------------

my @counters = qw(error client_error server_error unexpected wrong_value desync disconnect
    timeout connect);

# The server's fault and the counter it belongs to; all others stay at 0. A fault behind the
# last reply that is waited for is not seen: at most one a connection.
sub counted {
    my ($fault, $counter, $run, $did, $name) = @_;
    my $json = $run->{json};
    my $done = $did->{faults}{$fault};
    my $seen = $json->{"errors.$counter"} // 'missing';
    cmp_ok($done, '>', 0, "$name: the server did so");
    ok($seen > 0 && $seen <= $done && $seen >= $done - 2,
        "$name: $seen of $done counted as $counter") or diag($run->{err}, $run->{out});
    is(join(' ', grep { $_ ne $counter && $json->{"errors.$_"} } @counters), '',
        "$name: as nothing else");
    is($run->{status}, 3, "$name: the run is worth nothing");
    like($run->{out}, qr/^INVALID: .*errors/m, "$name: and says why");
    cmp_ok($run->{took}, '<', $GRACE_S, "$name: it ends in time");
}

for my $protocol (qw(ascii meta binary redis)) {
    for my $row (
        [error => $protocol eq 'redis' ? 'error' : 'server_error'],
        [wrong => 'wrong_value'],
        [garbage => 'desync'],
    ) {
        my ($fault, $counter) = @$row;
        my ($run, $did) = measure(["--fault=$fault:20", '--from=100', '--delay=100'],
            "--protocol=$protocol", '-t', '0.4', '-c', '2', '--verify=1');
        counted($fault, $counter, $run, $did, "$protocol, $fault");
    }
}

for my $row (
    [duplicate => 'desync'],
    [short => 'disconnect'],
    ['half-close' => 'disconnect'],
    [close => 'disconnect'],
    [reset => 'disconnect'],
    [lose => 'timeout', '--timeout=0.8'],
) {
    my ($fault, $counter, @args) = @$row;
    my ($run, $did) = measure(["--fault=$fault:20", '--delay=100', '--value=10'], '--noload',
        '-t', '0.4', '-c', '2', @args);
    counted($fault, $counter, $run, $did, $fault);
    cmp_ok($run->{json}{'totals.hits'}, '>', 0, "$fault: others are served");
}

{
    my ($run) = measure(['--dribble=7:50', '--value=30'], '--noload', '-t', '0.6', '-c', '2');
    is(join(' ', grep { $run->{json}{"errors.$_"} } @counters), '', 'a dribble is no error');
    cmp_ok($run->{json}{'totals.hits'}, '>', 0, 'a dribble: hits');
    is($run->{json}{'totals.hits'}, $run->{json}{'totals.keys'}, 'a dribble: nothing but hits');
}

# ---- nobody there -------------------------------------------------------------------------

{
    my ($run) = measure(['--fault=refuse'], '-t', '0.2');
    is($run->{status}, 2, 'refused from the start: status 2');
    like($run->{err}, qr/^mcload: cannot connect to [^\n]*: Connection refused\n\z/,
        'refused from the start: a line says so');
    is($run->{out}, '', 'refused from the start: no table');
}

for my $row (
    ['refuse', 'gone in the middle', '--timeout=0.2'],
    ['deaf', 'deaf in the middle', '--timeout=0.2'],
) {
    my ($fault, $name, @args) = @$row;
    my ($run) = measure(["--fault=$fault", '--from=50', '--value=10'], '--noload',
        '-t', '1.2', '-c', '2', @args);
    cmp_ok($run->{json}{'errors.disconnect'}, '>=', 1, "$name: disconnected");
    cmp_ok($run->{json}{'errors.connect'}, '>=', 1, "$name: could not connect again");
    is($run->{status}, 3, "$name: the run is worth nothing");
    cmp_ok($run->{took}, '<', $GRACE_S, "$name: it ends in time");
}

{
    my ($run, $did) = measure(['--fault=lose', '--value=10'], '--noload', '-t', '0.3', '-q',
        '100', '-c', '2');
    like($run->{out}, qr/^INVALID: .*no request was answered/m, 'silence: the verdict');
    is($run->{json}{'totals.unanswered'} + $run->{json}{'totals.unsent'},
        $run->{json}{'totals.offered'}, 'silence: every request is accounted for');
    cmp_ok($run->{took}, '<', $GRACE_S, 'silence: it ends in time');
}

done_testing();
